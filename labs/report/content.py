"""What a student wrote, made fit for a page: whatever it holds, it is content and never a program.

Markdown goes through pandoc without raw parts to Typst (content.lua says what becomes of each piece). What no font can
show is named instead; formulas that Typst cannot set are shown as code.
"""

import json
import re
import subprocess
import unicodedata
from functools import cache
from pathlib import Path

from labs.printed import mapped

FILTER = Path(__file__).with_name("content.lua")
MOST, MOST_LINES = 25_000, 400  # characters and lines of one answer on paper; report.json holds all
_READER = "gfm+tex_math_dollars-yaml_metadata_block"
_SECONDS, _MEMORY = 60, "-M1G"  # of pandoc for one answer
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_FORMULA = re.compile(r'#formula\("((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)", (true|false)\)')


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
    """The text with a name for each character that no font of ours can show, or that would hide or reorder others."""
    text = _ESCAPE.sub("", text.replace("\r\n", "\n"))
    text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))  # a bar, drawn over itself
    return text if text.isascii() and text.isprintable() else "".join(map(_character, text))


@cache
def _character(sign):
    kind = unicodedata.category(sign)
    if sign in "\n\u200b":
        return sign
    if sign in "\t\ufe0e\ufe0f\u200d\u200c":  # all but the tab say how the sign before them looks
        return "    " if sign == "\t" else ""
    if kind[0] != "C" and ord(sign) in _covered():
        return sign
    name = unicodedata.name(sign, "").lower()
    if not name or name.startswith("cjk ") or kind in ("Cs", "Co", "Cn", "Cc"):
        name = f"U+{ord(sign):04X}"
    return f"[{name}]"


def breakable(text, longest=40):
    """The text with places to break words that are longer than any line, and names behind each _ of theirs."""
    text = re.sub(r"[\w.-]{12,}", lambda found: re.sub(r"_(?=\w)", "_\u200b", found[0]), text)
    return re.sub(rf"\S{{{longest}}}(?=\S)", lambda found: found[0] + "\u200b", text)


def every(value):
    """All texts in lists and dicts, as they are printed."""
    return mapped(value, lambda each: breakable(shown(each)) if isinstance(each, str) else each)


def markup(markdown):
    """Typst markup of a student's Markdown; `plain` of what pandoc cannot read in the time and memory it has."""
    import pypandoc

    text = re.sub(
        r"(?m)^(\\begin\{(align|equation|gather)(\*?)\}[\s\S]*?\\end\{\2\3\})$", r"$$\n\1\n$$", _begin(markdown)
    )
    command = [pypandoc.get_pandoc_path(), "+RTS", _MEMORY, "-RTS", "--sandbox", "--quiet"]
    command += ["-f", _READER, "-t", "typst", "--wrap=preserve", "--lua-filter", str(FILTER)]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=_SECONDS, check=True)
    except (subprocess.SubprocessError, OSError):
        return plain(markdown)
    return done.stdout.decode(errors="replace") + _more(markdown)


def formulas(made):
    """Of Typst markup: the calls of `formula` in it, each once."""
    return list(dict.fromkeys(found[0] for found in _FORMULA.finditer(made)))


def as_code(made, calls):
    """Typst markup with some calls of `formula` shown as code: the TeX that was written."""
    return _FORMULA.sub(lambda found: f'#unset("{found[1]}")' if found[0] in calls else found[0], made)


def plain(text):
    """Typst markup that shows a text as it is."""
    return f"#verbatim({json.dumps(breakable(_begin(text)), ensure_ascii=False)})" + _more(text)


def _more(text):
    """A paragraph that says so, if not all of an answer is printed."""
    cut = len(text) > MOST or text.count("\n") >= MOST_LINES
    return "\n\nThis answer is longer than fits here: all of it is in report.json." if cut else ""


def _begin(text):
    """As much of an answer as is printed."""
    return "\n".join(shown(text[:MOST]).split("\n")[:MOST_LINES])
