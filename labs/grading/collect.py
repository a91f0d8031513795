"""What was handed in, brought together: one clean zip for each student, under a number.

    grades/names.json            {number: who}; read here and where the grade sheet is written, and nowhere else
    grades/submissions/007.zip   the files of submission 007: plain files at known places, and nothing else
    grades/collection.json       a line for each thing that was found, and for all that was left out

What comes in is a folder, or the zip that Moodle or Canvas exports, with a submission.zip or a folder for each student.
Nothing of it is trusted, and nothing is unpacked to a path that it names: files are read into memory, within LIMITS.
"""

import hashlib
import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from labs import files
from labs.course.release import unsafe
from labs.errors import UseError
from labs.grading import store
from labs.printed import printable
from labs.report.archive import zipped
from labs.sandbox import written

MOST_BYTES, MOST_FILES = 200 << 20, 5000  # of one submission, unpacked
MOST_JSON = 32 << 20  # of a report, a notebook, all records together: read, they take thirty times as much memory
MOST_CODE = 1 << 20  # of all scripts together: their tokens take three hundred times as much
MOST_EXPORT = 20 << 30  # of all submissions together, packed
FEW = 8  # lines that say the same of several files of a submission
_PLACES = re.compile(
    r"report\.(pdf|json|schema\.json)|manifest\.json|(notebooks/)?runs/[^/]+\.(json|out|err)|notebooks/\d\d[a-z]?_[^/]+\.ipynb"
    r"|notebooks/scripts/[^/]+\.py|slurm/[^/]+/[^/]+\.sh"
)
# What learning platforms make of a student's file, as of Moodle 4 and Canvas. Its own name stands behind and is the
# student's to choose: so the first fit counts, and Canvas' form is tried first, which a name at Moodle does not have.
_MOODLE = re.compile(r"(?P<name>[^/]+?)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_/?(?P<rest>.*))?")
_CANVAS = re.compile(r"(?P<name>[^/_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_(?P<rest>[^/]+)")
_PLATFORMS = {"canvas": _CANVAS, "moodle": _MOODLE}


@dataclass
class Handed:
    """One thing that a student handed in: who, by which identifier, when (UTC or None), and the files {path: bytes}.

    told: what there is to say of it, a line each.
    """

    who: str
    id: str
    platform: str
    source: str
    when: datetime | None = None
    late: bool = False
    contents: dict = field(default_factory=dict, repr=False)
    told: list = field(default_factory=list)


def collect(source, out, due=None):
    """Bring a folder, or a zip of a learning platform, into the folder `out`; returns the lines of its report.

    due: a datetime; what came later is told. It can be repeated, with more submissions: numbers stay. Of two
    submissions of a student the later one is kept, of those that can be read. Raises UseError (nothing is there),
    files.WriteError.
    """
    out, found = Path(out), {}
    for handed in _handed(Path(source)):
        of_one = found.setdefault((handed.platform, handed.id, handed.who), [])
        of_one.append(handed)
        of_one.sort(key=_order)
        for each in of_one[:-1]:
            each.contents = dict.fromkeys(each.contents, b"")  # it will not count: it takes no memory meanwhile
    if not found:
        raise UseError(f"{source} holds no submission: name the folder with them, or the zip that the platform gave.")
    names = kept(out / "names.json")
    known = {(each["platform"], each["id"], each["who"]): number for number, each in names.items()}
    for key in sorted(found.keys() - known.keys(), key=_shuffled):
        known[key] = f"{len(names) + 1:03d}"
        names[known[key]] = {"platform": key[0], "id": key[1], "who": key[2]}
    text = json.dumps(names, indent=1, ensure_ascii=False)
    files.write(out / "names.json", text.encode(errors="surrogatepass"))  # so that a name is the same one next time
    report = kept(out / "collection.json")
    for key, all_of_one in found.items():
        number = known[key]
        *others, last = all_of_one
        if others:
            last.told.append(f"handed in {len(others) + 1} times: the last one that can be read counts")
            last.told += [f"another one, {one.source:.80}: {line}" for one in others for line in one.told]
        if last.late or (due and last.when and last.when > due):
            last.told.append("late" + (f": {last.when:%Y-%m-%d %H:%M} UTC" if last.when else ""))
        files.write(out / f"submissions/{number}.zip", zipped(last.contents))
        report[number] = [printable(line).replace("\n", r"\n") for line in last.told] or ["complete"]
    _twins(out, report)
    files.write(out / "collection.json", json.dumps(dict(sorted(report.items())), indent=1, ensure_ascii=False))
    return [f"{number}: {line}" for number in sorted(report) for line in report[number]]


def moment(text):
    """The datetime that a text says, in UTC where it names no zone; None of None. Raises UseError."""
    try:
        when = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise UseError(f"--due: {text!r} is no date; write it as 2026-12-01T12:00.") from None
    return when and (when if when.tzinfo else when.replace(tzinfo=UTC))


def submissions(out):
    """{number: path} of the collected submissions."""
    return {path.stem: path for path in sorted(Path(out, "submissions").glob("*.zip"))}


def submission(out, number):
    """The path of one collected submission. Raises UseError where there is none."""
    try:
        return submissions(out)[number]
    except KeyError:
        raise UseError(f"There is no submission {number} in {out}.") from None


def contents(path, only=None):
    """{path: bytes} of a collected submission, which is a zip of ours; of some paths only. Raises UseError for a
    damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if only is None or name in only}
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, zlib.error) as problem:
        help = "delete it and run `labs grade collect` again, which writes it anew."
        raise UseError(f"{path} is damaged: {problem}. Nothing was changed; {help}") from None


def kept(path):
    """What a JSON file of the grading holds, a dict; empty where there is none yet. Raises UseError."""
    return store.read(path)


def _order(handed):
    """What is handed in later stands behind, and what cannot be read before all that can."""
    return bool(handed.contents), handed.when or datetime.min.replace(tzinfo=UTC), handed.source


def _shuffled(key):
    """An order that says nothing about names, and is the same each time."""
    return hashlib.sha256("\0".join(key).encode(errors="replace")).hexdigest()


def _twins(out, report):
    """A line for each submission that is, to the last byte, that of another student."""
    by_content = {}
    for number, path in submissions(out).items():
        if contents(path):
            by_content.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), []).append(number)
    for numbers in by_content.values():
        for number in numbers:
            line = f"equal to the last byte: {', '.join(other for other in numbers if other != number)}"
            if len(numbers) > 1 and line not in report[number]:
                report[number].append(line)


def _handed(source):
    """What was handed in, a Handed for each file or folder that may be a submission."""
    if source.is_dir():
        for path in sorted(source.iterdir()):
            if path.name.startswith("."):
                continue
            when = datetime.fromtimestamp(path.lstat().st_mtime, UTC)
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                yield _handed_by(path.name, when, told=["a symbolic link, or no plain file: it was not followed"])
            elif path.is_dir():
                yield _of_folder(path, when)
            else:
                yield from _of_file(path.name, lambda path=path: open(path, "rb"), path.stat().st_size, when)
        return
    if not source.is_file():
        raise UseError(f"{source} is no folder and no zip.")
    try:
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as problem:
        raise UseError(f"{source} cannot be read as a zip ({problem}); get it again from the platform.") from None
    with archive:
        if "manifest.json" in archive.namelist() and "report.json" in archive.namelist():
            yield _opened(_handed_by(source.name, None), lambda: open(source, "rb"))
            return
        if sum(entry.file_size for entry in archive.infolist()) > MOST_EXPORT:
            raise UseError(f"{source} says that it unpacks to more than {MOST_EXPORT >> 30} GiB: it is not read.")
        for entry in archive.infolist():
            if not entry.is_dir():
                yield from _of_file(entry.filename, lambda e=entry: archive.open(e), entry.file_size, _date(entry))


def _of_file(name, opened, size, when):
    """The Handed of one file of a folder or an export."""
    handed = _handed_by(name, when)
    base = PurePosixPath(name.replace("\\", "/")).name
    if why := unsafe(name):
        handed.told.append(f"{base}: its path {why}; its content was read nevertheless, to no path of its own")
    if not base.endswith(".zip"):
        handed.told.append(f"{base}: no zip, where submission.zip is asked for; it is not read")
    elif size > MOST_BYTES:
        handed.told.append(f"{base}: {size >> 20} MiB, more than any submission; it is not read")
    else:
        kept = _rest(name)
        if kept and not re.fullmatch(r"submission([ -]*\(?\d+\)?)?\.zip", kept):
            handed.told.append(f"misnamed: {kept} instead of submission.zip")
        handed = _opened(handed, opened)
    yield handed


def _of_folder(path, when):
    """The Handed of a student's folder: its submission.zip, else the files that would be in one."""
    handed = _handed_by(path.name, when)
    inside = sorted(path.glob("*.zip"))
    if len(inside) > 1:
        handed.told.append(f"{len(inside)} zips in one folder: {inside[-1].name} is read")
    if inside and inside[-1].is_file() and not inside[-1].is_symlink():
        if inside[-1].name != "submission.zip":
            handed.told.append(f"misnamed: {inside[-1].name} instead of submission.zip")
        handed.when = datetime.fromtimestamp(inside[-1].stat().st_mtime, UTC)
        return _opened(handed, lambda: open(inside[-1], "rb"))
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found, left = written.collect(folder, MOST_BYTES, MOST_FILES)
    finally:
        os.close(folder)
    said = defaultdict(list)
    for name, why in left.items():
        said[f"{why}; it was left out"].append(f"{name}:")
    handed.told += _few(said)
    handed.told.append("a folder, and not a submission.zip: nothing says that it is as it was packed")
    return _taken(handed, found)


def _handed_by(name, when, told=()):
    """Who handed in a file of this name."""
    path = name.strip("/").replace("\\", "/")
    for platform, pattern in _PLATFORMS.items():
        if found := pattern.match(path):
            late = bool(found.groupdict().get("late"))
            return Handed(found["name"], found["id"], platform, name, when, late, told=list(told))
    parts = PurePosixPath(path).parts or ("nobody",)
    who = parts[-2] if len(parts) > 1 else re.sub(r"\.zip$", "", parts[-1])
    return Handed(who, "", "folder", name, when, told=list(told))


def _rest(name):
    """The name that a student's file had before the platform put others in front of it."""
    found = next(filter(None, (pattern.match(name) for pattern in _PLATFORMS.values())), None)
    return PurePosixPath(found["rest"]).name if found and found["rest"] else None


def _date(entry):
    try:
        return datetime(*entry.date_time, tzinfo=UTC) if entry.date_time[0] > 1980 else None
    except ValueError:
        return None


def _opened(handed, opened, deeper=True):
    """The Handed with what its zip holds."""
    try:
        with opened() as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            handed.told.append(f"more than {MOST_BYTES >> 20} MiB: it is not read")
            return handed
        archive = zipfile.ZipFile(io.BytesIO(content))
    except Exception as problem:  # zipfile passes on what its unpackers raise, and more
        handed.told.append(f"damaged: it cannot be read as a zip ({problem})")
        return handed
    found, room, said = {}, MOST_BYTES, defaultdict(list)
    entries = archive.infolist()
    if len(entries) > MOST_FILES:
        handed.told.append(f"{len(entries)} files, more than any submission has: it is not read")
        return handed
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if entry.is_dir():
            continue
        if why := unsafe(entry.filename) or unsafe(entry.orig_filename):
            said[f"{why}: left out"].append(f"{entry.orig_filename!r:.80}")
        elif kind not in (0, stat.S_IFREG):
            said["a symbolic link, or no plain file: left out"].append(f"{entry.filename:.80}:")
        elif entry.filename in found:
            said["stands in it twice: the first one counts"].append(f"{entry.filename:.80}")
        else:
            try:
                with archive.open(entry) as file:
                    data = file.read(room + 1)  # an entry may hold more than it says
            except Exception as problem:  # zipfile passes on what its unpackers raise, and more
                said["is damaged: left out"].append(f"{entry.filename:.80} ({problem})")
                continue
            if len(data) > room:
                handed.told.append(f"unpacks to more than {MOST_BYTES >> 20} MiB: the rest is not read")
                break
            room -= len(data)
            found[entry.filename] = data
    handed.told += _few(said)
    inner = [name for name in found if name.endswith(".zip")]
    if inner and deeper and not any(name.endswith("manifest.json") for name in found):
        handed.told.append(f"nested: {inner[0]:.80} is a zip in a zip")
        return _opened(handed, lambda: io.BytesIO(found[inner[0]]), deeper=False)
    return _taken(handed, found)


def _taken(handed, found):
    """The Handed with those of some files that a submission has, at their places; what else there is is told."""
    tops = [name.removesuffix("report.json") for name in found if re.fullmatch(r"([^/]+/){0,3}report\.json", name)]
    top = min(tops, key=len, default="")
    if top:
        handed.told.append(f"its files lie in {top:.80}")
    said, taken = defaultdict(list), Counter()
    for name, content in found.items():
        place = name.removeprefix(top)
        if place.endswith(".lock"):
            continue
        if not _PLACES.fullmatch(place) or unsafe(place):
            said["no file of a submission; left out"].append(f"{name:.80}:")
            continue
        what, most = _room(place)
        if taken[what] + len(content) > most:
            said["more than any has; left out"].append(f"{name:.80}: {len(content) / 2**20:.3g} MiB,")
            continue
        taken[what] += len(content)
        handed.contents[place] = content
    handed.told += [*_few(said), *_against_manifest(handed.contents)]
    return handed


def _room(place):
    """(what a file shares its room with, how many bytes that is)."""
    suffix = PurePosixPath(place).suffix
    if suffix in (".py", ".sh"):
        return "code", MOST_CODE
    if suffix in (".json", ".ipynb"):
        return "records" if "runs/" in place else place, MOST_JSON
    return place, MOST_BYTES


def _few(said):
    """Lines of {what: names}: of each kind the first ones, and how many others there are. Nobody reads thousands, and
    a line of another kind would be lost among them."""
    for what, names in said.items():
        yield from (f"{name} {what}" for name in names[:FEW])
        if names[FEW:]:
            yield f"{len(names) - FEW} others: {what}"


def _against_manifest(contents):
    """What the manifest says otherwise."""
    if not contents:
        yield "empty: no file of a submission is in it"
        return
    try:
        named = {name: entry["sha256"] for name, entry in json.loads(contents["manifest.json"])["files"].items()}
    except KeyError:
        yield "no manifest.json: nothing says that it is as `labs report` packed it"
        return
    except (ValueError, TypeError, AttributeError, RecursionError):
        yield "manifest.json cannot be read"
        return
    said = defaultdict(list)
    for name, content in contents.items():
        if name != "manifest.json" and named.get(name) != hashlib.sha256(content).hexdigest():
            what = "was changed after it was packed" if name in named else "was added after it was packed"
            said[what].append(f"{name:.80}")
    said["is missing: the manifest names it"] = [f"{name!r:.80}" for name in named if name not in contents]
    yield from _few(said)
