"""What a student wrote, made fit for a page: whatever it holds, it is content and never a program.

Markdown goes through pandoc without raw parts to Typst (content.lua says what becomes of each piece). What no font can
show is named instead.
"""

import json
import re
import subprocess
import unicodedata
from functools import cache
from pathlib import Path

SECONDS = 60  # of pandoc for one answer
_READER = "gfm+tex_math_dollars-yaml_metadata_block"
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_ENVIRONMENT = re.compile(r"(?m)^(\\begin\{(align|equation|gather)(\*?)\}[\s\S]*?\\end\{\2\3\})$")  # without dollars
_INVISIBLE = "\u200b\u200c\u200d\ufe0e\ufe0f\r"  # most say how the sign before them looks


@cache
def fonts():
    """Folder of the fonts that matplotlib brings along, DejaVu among them: what every installation has."""
    import matplotlib

    return Path(matplotlib.get_data_path(), "fonts", "ttf")


@cache
def _covered():
    """The characters that DejaVu Sans can show, as numbers."""
    from matplotlib.ft2font import FT2Font

    return set(FT2Font(str(fonts() / "DejaVuSans.ttf")).get_charmap())


def shown(text):
    """The text with a name for each character that no font of ours can show, or that would hide or reorder others; of a
    bar, drawn over itself, the last state."""
    text = re.sub(r"[^\n]*\r(?=[^\r\n])", "", _ESCAPE.sub("", text))
    return text if text.isascii() and text.isprintable() else "".join(map(_character, text))


@cache
def _character(sign):
    if sign in "\n\t":
        return sign.replace("\t", "    ")
    if sign in _INVISIBLE:
        return ""
    if unicodedata.category(sign)[0] != "C" and ord(sign) in _covered():
        return sign
    name = unicodedata.name(sign, "cjk").lower()  # a control character has none
    return f"[U+{ord(sign):04X}]" if name.startswith("cjk") else f"[{name}]"


def markup(markdown):
    """Typst markup of a student's Markdown; `plain` of what pandoc cannot read in the time and memory it has."""
    import pypandoc

    command = [pypandoc.get_pandoc_path(), "+RTS", "-M1G", "-RTS", "--sandbox", "--quiet", "--wrap=preserve"]
    command += ["-f", _READER, "-t", "typst", "--lua-filter", str(Path(__file__).with_suffix(".lua"))]
    text = _ENVIRONMENT.sub(r"$$\n\1\n$$", shown(markdown))
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=SECONDS, check=True)
    except (subprocess.SubprocessError, OSError):
        return plain(markdown)
    return done.stdout.decode(errors="replace")


def plain(text):
    """Typst markup that shows a text as it is."""
    return f"#verbatim({json.dumps(shown(text), ensure_ascii=False)})"
