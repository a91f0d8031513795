"""A release: what students get, with a stamp.

    .release/release.json    the stamp: version, date, and the SHA-256 of every file
    .release/fresh/          fresh copies of what students fill in: notebooks, training scripts, batch scripts

`stamped` makes the stamp for a tree, `load` reads a release from a folder or a zip.
"""

import json
import re
import zipfile
import zlib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from labs import files, schema
from labs.errors import UseError

FOLDER = ".release"
STAMP, FRESH = f"{FOLDER}/release.json", f"{FOLDER}/fresh/"

_FILLED_IN = re.compile(r"notebooks/[^/]+\.ipynb|notebooks/scripts/[^/]+|slurm/(?!sites/)[^/]+/[^/]+\.sh")
_STUDENTS_OWN = re.compile(r"(\.git|\.venv|\.release|old)(/.*)?|notebooks/runs/(?!\.gitkeep).*|.*\.local\.toml")


class CourseError(UseError):
    """No course here, no release, no such notebook; the text says what to do."""


class ReleaseStamp(BaseModel, frozen=True):
    """What release.json says; files: {path: SHA-256 of its bytes}."""

    format: Literal[1]
    version: Annotated[str, Field(pattern=r"^\d{1,6}(\.\d{1,6}){0,3}$")]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    files: dict[str, str]

    def __str__(self):
        return f"{self.version} of {self.date[:10]}"

    @property
    def notebooks(self):
        """The names of the notebooks that were given out, as 05_resnet50_scaling, in order."""
        return [found[1] for name in sorted(self.files) if (found := re.fullmatch(r"notebooks/([^/]+)\.ipynb", name))]

    def age(self):
        """(version as numbers, date): greater for a newer release."""
        return tuple(map(int, self.version.split("."))), self.date


def filled_in(name: str) -> bool:
    """Is this path one of those that students fill in: a notebook, a training script, a site's batch script?"""
    return _FILLED_IN.fullmatch(name) is not None


def stamped(version, date, contents):
    """{path: bytes} of .release/ for a tree with these `contents`, {path: bytes}; the same for the same input."""
    sums = {name: files.digest(contents[name]) for name in sorted(contents)}
    text = json.dumps({"format": 1, "version": version, "date": date, "files": sums}, indent=1) + "\n"
    _stamp(text, "what is to be stamped", "Release under another version, or without this file.")
    return {FRESH + name: contents[name] for name in sums if filled_in(name)} | {STAMP: text.encode()}


def is_release(root: Path) -> bool:
    """Was the course at `root` made by a release: has it a stamp? A clone has none."""
    return (root / STAMP).is_file()


def find_course(start: str | Path = ".") -> Path:
    """The course's top folder, with what students fill in: from `start` upwards the first that a release, or the
    authors' sources, made. For slurm/sites alone see labs.slurm.sites.find_root.

    Raises CourseError where there is none.
    """
    start = Path(start).resolve()
    for folder in (start, *start.parents):
        if is_release(folder) or ((folder / "solutions").is_dir() and (folder / "labs/__init__.py").is_file()):
            return folder
    copy = f"If it is the course's folder, copy the hidden folder {FOLDER} into it from the release you began with."
    lacks = f"{start} is in no course ({STAMP} is not here, nor above)"
    raise CourseError(f"{lacks}: go to the course's folder and try again. {copy}")


def stamp_of(root):
    """The ReleaseStamp of a course. Raises CourseError."""
    path, again = Path(root, STAMP), f"Copy the hidden folder {FOLDER} into the course from the release you began with."
    try:
        return _stamp(path.read_bytes(), path, again)
    except OSError as problem:
        raise CourseError(f"{path} cannot be read: {problem.strerror}. {again}") from None


def fresh_copy(root, name):
    """Bytes of the fresh copy of a file in a course. Raises CourseError: missing, or not the one of the stamp."""
    path = Path(root, FRESH, name)
    if not path.is_file() or files.digest(path.read_bytes()) != stamp_of(root).files[name]:
        again = "was an update interrupted? Run `labs update` again with your release: it repairs the copy."
        raise CourseError(f"The fresh copy {path} is missing or has changed: {again}")
    return path.read_bytes()


def load(path):
    """(the stamp, {path: bytes}) of the release in a zip, or in the folder that it was unpacked to, read whole and
    checked. Raises CourseError."""
    path = Path(path)
    try:
        read = _reader(path)
        stamp = _stamp(read(STAMP), f"{path}: {STAMP}", "Get the release again.")
        contents = {name: read(FRESH + name if filled_in(name) else name) for name in stamp.files}
    except (OSError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as problem:
        raise CourseError(f"{path} is no release, or a damaged one ({problem}): get it again.") from None
    for name, content in contents.items():
        if files.digest(content) != stamp.files[name]:
            raise CourseError(f"{path}: {name} differs from the release's stamp: it is damaged; get it again.")
    return stamp, contents


def _reader(path):
    """Function that gives the bytes of a file of a release, which lies at the top of a folder or a zip, or in a folder
    of the zip."""
    if path.is_dir():
        return lambda name: (path / name).read_bytes()
    archive = zipfile.ZipFile(path)
    stamps = [name for name in archive.namelist() if f"/{name}".endswith(f"/{STAMP}")]
    top = min(stamps, key=len, default=STAMP).removesuffix(STAMP)
    return lambda name: archive.read(top + name)


def _stamp(text, where, cure):
    """The ReleaseStamp in a JSON text. Raises CourseError, also for a path that no release may write."""
    try:
        stamp = ReleaseStamp.model_validate_json(text, strict=True)
    except ValidationError as problem:
        raise CourseError(f"{where} is not the stamp of a release: {schema.first_mistake(problem)} {cure}") from None
    for name in stamp.files:
        if unsafe(name) or _STUDENTS_OWN.fullmatch(name):
            raise CourseError(f"{where} names {name!r:.80}, which no release may replace. {cure}")
    return stamp


def unsafe(name):
    """Why nothing may be written to this path below a course (zip slip), as the end of a sentence; None if it may."""
    parts = name.removesuffix("/").split("/")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "is an absolute path"
    if ".." in parts:
        return "leads out of the folder"
    too_long = max(len(part.encode(errors="replace")) for part in parts) > 200  # what a file system counts
    odd = too_long or "" in parts or "." in parts or "\\" in name or not name.isprintable()
    return "is no plain path" if odd else None
