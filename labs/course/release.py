"""A release: what students get, with a stamp.

    .release/release.json    the stamp: version, date, and the SHA-256 of every file
    .release/fresh/          fresh copies of what students fill in: notebooks, training scripts, batch scripts

`stamped` makes the stamp for a tree, `load` reads a release from a folder or a zip, and believes nothing in it.
"""

import hashlib
import json
import re
import stat
import zipfile
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from labs import files, schema
from labs.errors import UseError

FOLDER = ".release"
STAMP, FRESH = f"{FOLDER}/release.json", f"{FOLDER}/fresh/"

MOST_BYTES, MOST_FILES = 100 * 2**20, 5000  # of a release; the course itself has about 5 MiB in 500 files
_FILLED_IN = re.compile(r"notebooks/[^/]+\.ipynb|notebooks/scripts/[^/]+|slurm/(?!sites/)[^/]+/[^/]+\.sh")
_STUDENTS_OWN = re.compile(r"(\.git|\.venv(-gpu)?|\.tools|\.release|build|old)(/.*)?|notebooks/runs/.*|.*\.local\.toml")
_RUNS = "notebooks/runs/.gitkeep"
_NO_RELEASE = "it is not a release of this course; ask for the file that the instructor gave out"


class CourseError(UseError):
    """No course here, no release, no such notebook, a release that cannot be trusted; the text says what to do."""


class ReleaseStamp(BaseModel, frozen=True):
    """What release.json says."""

    format: Literal[1]
    version: Annotated[str, Field(pattern=r"^\d{1,6}(\.\d{1,6}){0,3}$")]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    files: Annotated[
        dict[str, Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]], Field(min_length=1, max_length=MOST_FILES)
    ]

    def __str__(self):
        return f"{self.version} of {self.date[:10]}"

    @property
    def notebooks(self):
        """The names of the notebooks that were given out, as 05_resnet50_scaling, in order."""
        return [found[1] for name in sorted(self.files) if (found := re.fullmatch(r"notebooks/([^/]+)\.ipynb", name))]

    def age(self):
        """(version as numbers, date): greater for a newer release."""
        return tuple(map(int, self.version.split("."))), self.date


@dataclass(frozen=True)
class Release:
    """A release that was read and found whole: its stamp, and the bytes of each file by its path."""

    stamp: ReleaseStamp
    files: dict[str, bytes]


def filled_in(name: str) -> bool:
    """Is this path one of those that students fill in: a notebook, a training script, a site's batch script?"""
    return _FILLED_IN.fullmatch(name) is not None


def digest(content):
    """SHA-256 of bytes, as hex."""
    return hashlib.sha256(content).hexdigest()


def stamped(version, date, contents):
    """{path: bytes} of .release/ for a tree with these `contents`, {path: bytes}; the same for the same input."""
    sums = {name: digest(contents[name]) for name in sorted(contents)}
    text = json.dumps({"format": 1, "version": version, "date": date, "files": sums}, indent=1) + "\n"
    _stamp(text, "the stamp")
    return {FRESH + name: contents[name] for name in sums if filled_in(name)} | {STAMP: text.encode()}


def is_release(root: Path) -> bool:
    """Was the course at `root` made by a release, and is it no clone?"""
    return (root / STAMP).is_file()


def find_course(start: str | Path = ".") -> Path:
    """The course's top folder: from `start` upwards the first that a release, or the authors' sources, made.

    Raises CourseError where there is none.
    """
    start = Path(start).resolve()
    for folder in (start, *start.parents):
        if (folder / STAMP).is_file() or ((folder / "solutions").is_dir() and (folder / "labs/__init__.py").is_file()):
            return folder
    copy = f"If it is the course's folder, copy the hidden folder {FOLDER} into it from the release you began with."
    lacks = f"{start} is in no course ({STAMP} is not here, nor above)"
    raise CourseError(f"{lacks}: go to the course's folder and try again. {copy}")


def stamp_of(root):
    """The ReleaseStamp of a course. Raises CourseError."""
    path = Path(root, STAMP)
    try:
        return _stamp(path.read_bytes(), str(path))
    except OSError as problem:
        raise CourseError(f"{path} cannot be read: {problem.strerror}.") from None


def fresh_copy(root, name):
    """Bytes of the fresh copy of a file in a course. Raises CourseError: missing, or not the one of the stamp."""
    path = Path(root, FRESH, name)
    again = "was an update interrupted? Run `labs update` again with your release: it repairs the copy."
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise CourseError(f"The fresh copy {path} cannot be read ({problem.strerror}): {again}") from None
    if digest(content) != stamp_of(root).files.get(name):
        raise CourseError(f"The fresh copy {path} has changed: {again}")
    return content


def load(path):
    """The Release in a folder or a zip, read whole and checked. Raises CourseError."""
    path = Path(path)
    if path.is_dir():
        read = partial(_of_folder, path)
    elif path.is_file():
        read = _Zip(path)
    else:
        raise CourseError(f"{path} is neither a zip nor a folder: name the release that the instructor gave out.")
    stamp = _stamp(read(STAMP, 4 * 2**20), f"{path}: {STAMP}")
    found, left = {}, MOST_BYTES
    for name, right in stamp.files.items():
        found[name] = read(FRESH + name if filled_in(name) else name, left)
        if digest(found[name]) != right:
            raise CourseError(f"{path}: {name} differs from the release's stamp: it is damaged; get it again.")
        left -= len(found[name])
    return Release(stamp, found)


def _of_folder(folder, name, most):
    """The bytes of a file of a release that lies in a folder. Raises CourseError, also for a link and for anything but
    a plain file."""
    path = folder / name
    try:
        if path.resolve(strict=True) != folder.resolve() / name:
            raise CourseError(f"{path} is a symbolic link, or lies behind one: {_NO_RELEASE}.")
        if not path.is_file():
            raise CourseError(f"{path} is not a plain file: {_NO_RELEASE}.")
        if path.stat().st_size > most:
            raise CourseError(f"{path}: too large for a release (more than {MOST_BYTES >> 20} MiB in all).")
        return files.read(path)
    except OSError as problem:
        lacks = f"{path} cannot be read: {problem.strerror}. The release is not complete."
        raise CourseError(f"{folder} holds no {STAMP}: {_NO_RELEASE}." if name == STAMP else lacks) from None


def _stamp(text, where):
    """The ReleaseStamp in a JSON text. Raises CourseError, also for paths that no release may write."""
    try:
        table = json.loads(text)
        if isinstance(table, dict) and isinstance(table.get("format"), int) and table["format"] > 1:
            newer = "unpack it into a new folder, and copy your notebooks, scripts and runs there"
            raise CourseError(f"{where}: the release has a newer form, unknown to this `labs update`; {newer}.")
        stamp = ReleaseStamp.model_validate(table, strict=True)
    except ValidationError as problem:
        raise CourseError(f"{where}: {schema.first_mistake(problem)}"[:200]) from None
    except (ValueError, RecursionError):
        raise CourseError(f"{where}: cannot be read as JSON; {_NO_RELEASE}.") from None
    for name in stamp.files:
        if why := unsafe(name):
            raise CourseError(f"{where}: {name!r:.80} {why}; {_NO_RELEASE}.")
        if _STUDENTS_OWN.fullmatch(name) and name != _RUNS:
            raise CourseError(f"{where}: {name!r:.80} is a student's own file; {_NO_RELEASE}.")
        if any(parent.as_posix() in stamp.files for parent in PurePosixPath(name).parents):
            raise CourseError(f"{where}: {name!r:.80} lies in a file; {_NO_RELEASE}.")
    if "labs/__init__.py" not in stamp.files or not any(map(filled_in, stamp.files)):
        raise CourseError(f"{where}: names no notebook, or no labs/; {_NO_RELEASE}.")
    return stamp


def unsafe(name):
    """Why nothing may be written to this path below a course, as the end of a sentence; None if it may."""
    parts = name.removesuffix("/").split("/")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "is an absolute path"
    if ".." in parts:
        return "leads out of the folder"
    too_long = max(len(part.encode(errors="replace")) for part in parts) > 200  # what a file system counts
    odd = too_long or "" in parts or "." in parts or "\\" in name or not name.isprintable()
    return "is no plain path" if odd else None


class _Zip:
    """Reads a file of a release that is a zip, all of whose entries were looked at first."""

    def __init__(self, path):
        self.path = path
        try:
            if path.stat().st_size > MOST_BYTES:
                raise self._error(f"is larger than {MOST_BYTES >> 20} MiB: {_NO_RELEASE}")
            self.zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as problem:
            raise self._error(f"cannot be read as a zip ({problem}): damaged, or not a zip; get it again") from None
        entries = self.zip.infolist()
        if len(entries) > 3 * MOST_FILES:
            raise self._error(f"holds {len(entries)} files: {_NO_RELEASE}")
        for entry in entries:
            self._look_at(entry)
        if sum(entry.file_size for entry in entries) > 2 * MOST_BYTES:
            raise self._error(f"unpacks to more than {2 * MOST_BYTES >> 20} MiB: {_NO_RELEASE}")
        names = [entry.filename for entry in entries]
        if len(set(names)) < len(names):
            raise self._error(f"holds two files with one name: {_NO_RELEASE}")
        stamps = [name for name in names if re.fullmatch(r"([^/]+/){0,2}" + re.escape(STAMP), name)]
        if len(stamps) != 1:
            raise self._error(f"holds {'no' if not stamps else 'more than one'} {STAMP}: {_NO_RELEASE}")
        self.top = stamps[0].removesuffix(STAMP)

    def _error(self, text):
        return CourseError(f"{self.path} {text}.")

    def _look_at(self, entry):
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if why := unsafe(entry.filename) or unsafe(entry.orig_filename):
            raise self._error(f"holds {entry.orig_filename!r:.80}, which {why}: {_NO_RELEASE}")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise self._error(f"holds {entry.filename!r:.80}, a link or no plain file: {_NO_RELEASE}")
        if entry.flag_bits & 1:
            raise self._error(f"is encrypted: {_NO_RELEASE}")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._error(f"is compressed in a way that releases are not: {_NO_RELEASE}")

    def __call__(self, name, most):
        try:
            with self.zip.open(self.top + name) as file:
                content = file.read(most + 1)  # an entry may hold more than it says
        except KeyError:
            raise self._error(f"does not hold {name}: the release is not complete") from None
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as problem:
            raise self._error(f"is damaged ({name}: {problem}); get it again") from None
        if len(content) > most:
            raise self._error(f"unpacks to more than {MOST_BYTES >> 20} MiB: {_NO_RELEASE}")
        return content
