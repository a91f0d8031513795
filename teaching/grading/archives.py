"""Archives, known by their content and not by their name: zip and tar, also a compressed one.

Nothing is unpacked to a path: what they hold is read into memory, within limits.
"""

import bz2
import gzip
import io
import lzma
import re
import stat
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple

MOST_BYTES = 200 << 20  # of one submission, unpacked
HEAD = 512  # bytes at the beginning of a file that show what it is
_BEGIN = {b"PK\3\4": "zip", b"PK\5\6": "zip", b"7z\xbc\xaf": "7z", b"Rar!": "rar"}
_COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_OTHER_ZIPS = {*".docx .xlsx .pptx .odt .ods .odp .epub .jar .whl .npz .keras .key .pages .numbers".split()}
PACK_AGAIN = "unpack it and pack it again as a zip, or ask for submission.zip as `labs report` makes it"


class UnreadableError(Exception):
    """An archive that is not read; the text says why, and what to do."""


class Entry(NamedTuple):
    """A file in an archive: its path, that path as it was written, whether it is a plain file, and a function that
    reads so many of its bytes. It raises anything."""

    path: str
    written: str
    plain: bool
    read: Callable[[int], bytes]


def kind(head, name=""):
    """zip, tar, 7z or rar; None if it is no archive. head: the first bytes of a file, of this name."""
    suffix = PurePosixPath(name.lower()).suffix
    if suffix in _OTHER_ZIPS:
        return None
    if head[257:262] == b"ustar" or head.startswith((*_COMPRESSED,)):
        return "tar"
    damaged = suffix[1:] if suffix in (".zip", ".7z", ".rar") else None
    return next((found for begin, found in _BEGIN.items() if head.startswith(begin)), damaged)


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


def entries(content):
    """An Entry for each file of an archive, given as bytes. Raises UnreadableError, and what zipfile and tarfile do."""
    found = kind(content[:HEAD])
    if found in ("7z", "rar"):
        raise UnreadableError(f"{found} archives are not read here: {PACK_AGAIN}")
    if found == "tar":
        yield from _of_tar(content)
        return
    archive = zipfile.ZipFile(io.BytesIO(content))
    for entry in archive.infolist():
        if not (path := entry_path(entry)).endswith("/"):
            plain = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
            yield Entry(path, entry.orig_filename, plain, lambda most, entry=entry: archive.open(entry).read(most))


def _of_tar(content):
    if open_ := next((each for begin, each in _COMPRESSED.items() if content.startswith(begin)), None):
        with open_(io.BytesIO(content)) as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise UnreadableError(f"it unpacks to more than {MOST_BYTES >> 20} MiB")
    archive = tarfile.open(fileobj=io.BytesIO(content), mode="r:")
    for entry in archive:
        if not entry.isdir():
            read = lambda most, entry=entry: archive.extractfile(entry).read(most)  # noqa: E731
            yield Entry(normal(entry.name), entry.name, entry.isreg(), read)
