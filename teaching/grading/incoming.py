"""What comes in: an export of a platform, or a folder, as the files that each student handed in.

Nothing of it is trusted, and nothing is unpacked to a path that it names (zip slip): files are read into memory, within
limits, and kept at the places that a submission has.
"""

import io
import re
import stat
import zipfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

from labs.course.release import unsafe
from labs.errors import UseError
from labs.printed import few, grouped
from teaching.grading import canvas, moodle

MOST_BYTES, MOST_FILES = 200 << 20, 5000  # of one submission, unpacked
MOST_READ = 32 << 20  # of a report, a notebook, all records together: JSON takes thirty times as much memory
MOST_CODE = 1 << 20  # of all scripts together: their tokens take three hundred times as much
MOST_EXPORT = 20 << 30  # of all submissions together, packed
FEW = 8  # lines that say the same of several files of a submission
_OF_NOTEBOOKS = r"runs/[^/]+\.(json|out|err)|\d\d[a-z]?_[^/]+\.ipynb|scripts/[^/]+\.py"  # also without their folder
_PLACES = re.compile(
    r"report\.(pdf|json|schema\.json)|manifest\.json|runs/[^/]+\.(json|out|err)|slurm/[^/]+/[^/]+\.sh"
    rf"|notebooks/({_OF_NOTEBOOKS})"
)
_WITHIN = re.compile(rf"(?P<top>([^/]+/){{0,3}}?)(notebooks/)?({_OF_NOTEBOOKS})")
_LITTER = re.compile(
    r"(?:.*/)?(?:__MACOSX|\.ipynb_checkpoints|\.DS_Store|\._[^/]*|Thumbs\.db|desktop\.ini)(?:/.*)?", re.S | re.I
)


@dataclass
class Handed:
    """One thing that a student handed in: who, by which identifier, and the files {path: bytes}.

    rest: the name that the student's own file had; order, stamp: what came later has more, the platform's number before
    the date of a file; beside: an answer in a text field, or a file beside a zip, which never counts; told: what there
    is to say of it, a line each.
    """

    who: str
    id: str
    platform: str
    source: str
    rest: str = ""
    order: int = 0
    stamp: float | tuple = 0.0
    beside: bool = False
    contents: dict = field(default_factory=dict, repr=False)
    told: list = field(default_factory=list)

    @property
    def file(self):
        """The name of the student's own file, which a report may hold: the one in an export names the student."""
        return _base(self.rest)[:80] or "its file"

    def saying(self, line):
        """The same, with one more line that is told."""
        self.told.append(line)
        return self


@dataclass
class _ExportFile:
    """A file of an export: of whom, its name there without folders, its size and a function that opens it."""

    handed: Handed
    name: str
    size: int
    opened: object


def handed_in(source):
    """What was handed in, a Handed for each thing that may be a submission."""
    if source.is_dir():
        yield from _of_export(_in_folder(source))
        return
    if not source.is_file():
        raise UseError(f"{source} is no folder and no zip.")
    try:
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as problem:
        raise UseError(f"{source} cannot be read as a zip ({problem}); get it again from the platform.") from None
    with archive:
        if {"manifest.json", "report.json"} <= {*archive.namelist()}:
            yield _opened(_handed_by(source.name), lambda: open(source, "rb"))
            return
        if sum(entry.file_size for entry in archive.infolist()) > MOST_EXPORT:
            raise UseError(f"{source} says that it unpacks to more than {MOST_EXPORT >> 30} GiB: it is not read.")
        entries = [each for each in archive.infolist() if not each.is_dir()]
        yield from _of_export(
            [(each.filename, each.date_time, each.file_size, partial(archive.open, each)) for each in entries]
        )


def _in_folder(source):
    """(path below it, date, size, function that opens it) of what a folder holds; of a link no function."""
    for path in sorted(source.rglob("*")):  # which follows no link
        name, has = path.relative_to(source).as_posix(), path.lstat()
        if name.startswith("."):
            continue
        if stat.S_ISREG(has.st_mode):
            yield name, has.st_mtime, has.st_size, partial(open, path, "rb")
        elif not stat.S_ISDIR(has.st_mode):
            yield name, has.st_mtime, 0, None


def _of_export(files):
    """The Handed of an export's files, of each (path, date, size, function that opens it)."""
    files = [each for each in files if not _LITTER.fullmatch(each[0])]
    around, found = _around([path for path, *_ in files]), []
    for name, stamp, size, opened in files:
        path = name.removeprefix(around)
        handed = _handed_by(path, stamp=stamp)
        if opened is None:
            handed.beside = True
            yield handed.saying(f"{handed.file}: a symbolic link, or no plain file: it was not followed")
            continue
        if why := unsafe(path):
            handed.saying(f"{handed.file}: its path {why}; its content was read all the same, without that path")
        found.append(_ExportFile(handed, path, size, opened))
    yield from _by_student(found)


def _by_student(found):
    """A Handed for each zip and text answer of each student, or one for all files of a student who packed no zip."""
    for of_one in grouped(((each.handed.platform, each.handed.id, each.handed.who), each) for each in found).values():
        packed = [each for each in of_one if not each.handed.beside]
        zips = [each for each in packed if each.name.lower().endswith(".zip")]
        yield from (each.handed.saying(_TEXT.format(each.handed.file)) for each in of_one if each.handed.beside)
        if loose := [each for each in packed if each not in zips]:
            yield _of_files(loose, beside=bool(zips))
        yield from map(_of_zip, zips)


_TEXT = "a text answer ({}): it is not graded here; read it on the platform"


def _of_zip(file):
    """The Handed of a zip in an export."""
    handed, name = file.handed, _base(file.handed.rest)
    if file.size > MOST_BYTES:
        return handed.saying(f"unreadable: {handed.file} has {file.size >> 20} MiB, more than any submission")
    if name and not re.fullmatch(r"submission([ -]*\(?\d+\)?)?\.zip", name):
        handed.saying(f"misnamed: {name} instead of submission.zip")
    return _opened(handed, file.opened)


def _of_files(loose, beside):
    """The Handed of files that a student put into no zip. beside: there is a zip as well, which is what counts."""
    handed, found, room = loose[-1].handed, {}, MOST_BYTES
    some = few([each.handed.file for each in loose], FEW)
    if beside:
        handed.beside = True
        return handed.saying(f"beside the zip, and not read: {some}")
    for each in loose[:MOST_FILES]:
        place = each.handed.rest.lstrip("/") or each.name
        if each.size <= room and not unsafe(place):
            with suppress(Exception), each.opened() as file:  # zipfile passes on what its unpackers raise, and more
                found[place] = file.read(room + 1)[:room]
                room -= len(found[place])
    if any(_WITHIN.fullmatch(place) or _PLACES.fullmatch(place) for place in found):
        handed.saying(f"misnamed: {len(loose)} files instead of submission.zip ({some})")
        return _taken(handed, found)
    return handed.saying(f"unreadable: no zip, where submission.zip is asked for: {some}")


def _platform(path):
    """What a platform's name for a file says; None if it is no platform's."""
    return moodle.exported(path) or canvas.exported(path)


def _handed_by(name, stamp: float | tuple = 0.0):
    """Who handed in a file of this name."""
    path = name.strip("/").replace("\\", "/")
    if says := _platform(path):
        return Handed(source=name, stamp=stamp, **says)
    who, *rest = PurePosixPath(path).parts or ("nobody",)
    who = who if rest else re.sub(r"\.zip$", "", who)
    return Handed(who, "", "folder", name, "/".join(rest), stamp=stamp)


def _around(paths):
    """The folder that somebody put around a platform's export; "" where there is none."""
    around = {path.partition("/")[0] + "/" for path in paths}
    inside = [path.partition("/")[2] for path in paths]
    return around.pop() if len(around) == 1 and any(map(_platform, inside)) and not any(map(_platform, paths)) else ""


def _base(name):
    return PurePosixPath(name.replace("\\", "/")).name


def _opened(handed, opened, deeper=True):
    """The Handed with what its zip holds."""
    try:
        with opened() as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            return handed.saying(f"unreadable: more than {MOST_BYTES >> 20} MiB")
        archive = zipfile.ZipFile(io.BytesIO(content))
    except Exception as problem:  # zipfile passes on what its unpackers raise, and more
        return handed.saying(f"damaged: it cannot be read as a zip ({problem})")
    found, room, said = {}, MOST_BYTES, []
    entries = [each for each in archive.infolist() if not _LITTER.fullmatch(each.filename)]
    if len(entries) > MOST_FILES:
        return handed.saying(f"unreadable: {len(entries)} files, more than any submission has")
    for entry in entries:
        name, kind = f"{entry.filename:.80}", stat.S_IFMT(entry.external_attr >> 16)
        if entry.is_dir():
            continue
        if why := unsafe(entry.filename) or unsafe(entry.orig_filename):
            said.append((f"{why}: left out", f"{entry.orig_filename!r:.80}"))
        elif kind not in (0, stat.S_IFREG):
            said.append(("a symbolic link, or no plain file: left out", f"{name}:"))
        elif entry.filename in found:
            said.append(("stands in it twice: the first one counts", name))
        else:
            try:
                with archive.open(entry) as file:
                    data = file.read(room + 1)  # an entry may hold more than it says
            except Exception as problem:  # zipfile passes on what its unpackers raise, and more
                said.append(("is damaged: left out", f"{name} ({problem})"))
                continue
            if len(data) > room:
                handed.saying(f"unpacks to more than {MOST_BYTES >> 20} MiB: the rest is not read")
                break
            room -= len(data)
            found[entry.filename] = data
    handed.told += _few(said)
    inner = [name for name in found if name.lower().endswith(".zip")]
    if inner and deeper and not any(name.endswith("manifest.json") for name in found):
        handed.saying(f"nested: {inner[0]:.80} is a zip in a zip")
        return _opened(handed, lambda: io.BytesIO(found[inner[0]]), deeper=False)
    return _taken(handed, found)


def _taken(handed, found):
    """The Handed with those of some files that a submission has, at their places; what else there is is told."""
    if top := _top(found):
        handed.saying(f"its files lie in {top:.80}")
    said, taken, moved = [], Counter(), 0
    for path, content in found.items():
        place, name = path.removeprefix(top), f"{path:.80}"
        if place.endswith(".lock"):
            continue
        if not _PLACES.fullmatch(place) and _PLACES.fullmatch(f"notebooks/{place}"):
            place, moved = f"notebooks/{place}", moved + 1
            if top + place in found:
                said.append(("stands in notebooks/ as well: that one counts", name))
                continue
        what, most = _room(place)
        if not _PLACES.fullmatch(place) or unsafe(place):
            said.append(("no file of a submission; left out", f"{name}:"))
        elif taken[what] + len(content) > most:
            said.append(("more than any has; left out", f"{name}: {len(content) / 2**20:.3g} MiB,"))
        else:
            taken[what] += len(content)
            handed.contents[place] = content
    if moved:
        handed.saying(f"its notebooks and scripts lie in no folder notebooks/ ({moved} files): they were put there")
    handed.told += _few(said)
    if not handed.contents:
        handed.saying("empty: no file of a submission is in it")
    return handed


def _top(found):
    """The folder in which the files of a submission lie, with / at its end: of its report, else of most notebooks."""
    tops = [name.removesuffix("report.json") for name in found if re.fullmatch(r"([^/]+/){0,3}report\.json", name)]
    counted = Counter(match["top"] for match in map(_WITHIN.fullmatch, found) if match)
    tops = tops or [top for top, count in counted.items() if count == max(counted.values())]
    return min(tops, key=len, default="")


def _room(place):
    """(what a file shares its room with, how many bytes that is)."""
    what = PurePosixPath(place).suffix
    if what in (".py", ".sh"):
        return "code", MOST_CODE
    records = what == ".json" and "runs/" in place
    return "records" if records else place, MOST_READ if what in (".json", ".ipynb", ".pdf") else MOST_BYTES


def _few(said):
    """Lines of (what, name): of each kind the first ones, and how many others there are. Nobody reads thousands, and a
    line of another kind would be lost among them."""
    for what, names in grouped(said).items():
        yield from (f"{name} {what}" for name in names[:FEW])
        if names[FEW:]:
            yield f"{len(names) - FEW} others: {what}"
