"""Archives, known by their content and not by their name, and the paths in them."""

import re
import stat
import unicodedata
from contextlib import suppress
from pathlib import PurePosixPath

HEAD = 512  # bytes at the beginning of a file that show what it is
_BEGIN = {b"PK\3\4": "zip", b"PK\5\6": "zip", b"7z\xbc\xaf": "7z", b"Rar!": "rar", b"\x1f\x8b": "gz", b"\xfd7zXZ": "xz"}
_SUFFIXES = {*".zip .7z .rar .tar .tgz .gz .xz .bz2".split()}
_OTHER_ZIPS = {*".docx .xlsx .pptx .odt .ods .odp .epub .jar .whl .npz .keras .pages .numbers".split()}
PACK_AGAIN = "archives are not read here: pack it again as a zip, as `labs report` makes one"


def kind(head, name=""):
    """zip, or what other archive it is; None for none. head: the first bytes of a file, of this name."""
    suffix = PurePosixPath(name.lower()).suffix
    by_name = suffix.removeprefix(".") if suffix in _SUFFIXES else None
    begin = next((kind for begin, kind in _BEGIN.items() if head.startswith(begin)), by_name)
    return None if suffix in _OTHER_ZIPS else "tar" if head[257:262] == b"ustar" else begin


def normal(path):
    """A path as every system reads it: slashes for Windows' backslashes, letters with their accents (NFC)."""
    return re.sub(r"^(\./)+", "", unicodedata.normalize("NFC", path.replace("\\", "/")))


def entry_path(entry):
    """The path of a zip's entry, also where it is in UTF-8 without the flag that says so, as macOS writes it."""
    path = entry.orig_filename
    if not entry.flag_bits & 0x800:
        with suppress(UnicodeError):  # then it is cp437, as zipfile took it
            path = path.encode("cp437").decode()
    return normal(path)


def is_plain(entry):
    """Whether a zip's entry is a file, and no link or device."""
    return stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
