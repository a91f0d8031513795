"""What comes in: an export of a platform, or a folder, as the files that each student handed in.

Nothing of it is trusted, and nothing is unpacked to a path that it names (zip slip): files are read into memory, within
limits, and kept at the places that a submission has. Whatever is not read is told, and what could hold work that is
missed elsewhere is kept in others/, for a person.
"""

import io
import re
import stat
import zipfile
from collections import Counter
from functools import cache, partial
from pathlib import PurePosixPath

from labs.checks import tasks
from labs.course.release import unsafe
from labs.errors import UseError
from labs.printed import few, grouped
from teaching.grading import archives, cells, whose
from teaching.grading.whose import LOST, MOST_READ, OWN, ExportFile, Handed, base_name

MOST_BYTES, MOST_FILES = 200 << 20, 5000  # of one submission, unpacked
MOST_CODE = 1 << 20  # of all scripts together: their tokens take three hundred times as much
MOST_OTHERS = 20  # that are kept beside a submission
FEW = 8  # lines that say the same of several files of a submission
_OF_NOTEBOOKS = r"runs/[^/]+\.(json|out|err)|scripts/[^/]+\.py"  # also without their folder
_PLACES = re.compile(
    r"report\.(pdf|json|schema\.json)|manifest\.json|runs/[^/]+\.(json|out|err)|slurm/[^/]+/[^/]+\.sh"
    rf"|notebooks/({_OF_NOTEBOOKS})"
)
_LITTER = re.compile(
    r"(?:.*/)?(?:__MACOSX|__pycache__|\.ipynb_checkpoints|\.git|\.venv|\.release|\.DS_Store|\._[^/]*|Thumbs\.db"
    r"|desktop\.ini)(?:/.*)?",
    re.S | re.I,
)
_WORK = {*".ipynb .py .html .htm .md .txt .pdf .doc .docx .odt .rtf .zip .7z .rar .gz .tgz".split(), ""}


def handed_in(source):
    """What was handed in, for each student a Handed for each thing that may be a submission, in order: the last one
    counts, and of the others no contents are kept. Raises UseError."""
    if source.is_dir():
        yield from _of_export([*_in_folder(source)], source.name)
        return
    if not source.is_file():
        raise UseError(f"{source} is no folder and no zip.")
    try:
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as problem:
        help = "get it again from the platform, or unpack it and name the folder"
        raise UseError(f"{source} cannot be read as a zip ({problem}); {help}.") from None
    with archive:
        found = [*_in_zip(archive)]
        if any(re.match(r"(report|manifest)\.json$|notebooks/", each.path) for each in found):  # of one student
            handed = Handed(source.stem, "", "folder", source.name, source.name)
            with open(source, "rb") as file:
                yield [_opened(handed, file.read(MOST_BYTES + 1))]
        else:
            yield from _of_export(found, source.stem)


def _in_zip(archive):
    """An ExportFile for each file of a zip."""
    for entry in archive.infolist():
        if not (path := archives.entry_path(entry)).endswith("/") and not _LITTER.fullmatch(path):
            opened = partial(archive.open, entry) if archives.is_plain(entry) else None
            yield ExportFile(path, entry.date_time, opened)


def _in_folder(source):
    """An ExportFile for each file of a folder, without what is hidden at its top."""
    for path in sorted(source.rglob("*")):  # which follows no link
        name, has = path.relative_to(source).as_posix(), path.lstat()
        if name.startswith(".") or _LITTER.fullmatch(name):
            continue
        if stat.S_ISREG(has.st_mode):
            yield ExportFile(archives.normal(name), has.st_mtime, partial(open, path, "rb"))
        elif not stat.S_ISDIR(has.st_mode):
            yield ExportFile(archives.normal(name), has.st_mtime, None)


def _of_export(files, title):
    """The Handed of an export's _ExportFiles. title: its own name."""
    around = whose.folders_around([each.path for each in files])
    for each in files:
        each.path = each.path.removeprefix(around)
        if says := whose.platform_says(each.path.lstrip("/")):
            each.handed = Handed(source=each.path, stamp=each.stamp, **says)
    nobodys = [each for each in files if not each.handed]
    if len(nobodys) == len(files):
        nobodys = whose.tell_apart(files, title)
    yield from _by_student([each for each in files if each.handed])
    if nobodys:
        names = few([each.path[-80:] for each in nobodys], FEW)
        yield [Handed("", "", "", "").saying(f"{LOST}{names}: beside the submissions, and no student's")]


def _by_student(files):
    """For each student the Handed of each archive, or one for all files where none is packed; the last one counts."""
    for of_one in grouped(((each.handed.platform, each.handed.id, each.handed.who), each) for each in files).values():
        packed = []
        for archive in (each for each in of_one if each.archive):
            opened = _opened(archive.handed, archive.read(MOST_BYTES + 1))
            packed = sorted([*packed, opened], key=lambda each: each.place)
            for other in packed[:-1]:
                other.contents = dict.fromkeys(other.contents, b"")  # it takes no memory meanwhile
        if loose := [each for each in of_one if not each.archive]:
            handed, found, lost = _loose(loose)
            if packed and packed[-1].contents:
                packed[-1].told += handed.told
                _lose(packed[-1], [*lost, *(("beside the archive, which counts", *each) for each in found.items())])
            else:
                packed.append(_taken(handed, found, lost))
        yield packed


def _loose(files):
    """(the Handed, {path: content}, what is left out) of files that a student put into no archive."""
    handed = files[-1].handed
    handed.told = [line for each in files for line in each.handed.told]
    placed = ((each.handed.rest.lstrip("/") or f"its file{PurePosixPath(each.path).suffix}", each) for each in files)
    return handed, *_read([(place, each.opened) for place, each in placed][:MOST_FILES])


def _opened(handed, content, deeper=True):
    """The Handed with what an archive holds, given as bytes."""
    if len(content) > MOST_BYTES:
        return handed.lost(f"it has more than {MOST_BYTES >> 20} MiB")
    if (kind := archives.kind(content[: archives.HEAD], handed.rest)) not in ("zip", None):
        return handed.lost(f"{kind} {archives.PACK_AGAIN}")
    try:
        files = [*_in_zip(zipfile.ZipFile(io.BytesIO(content)))]
    except Exception as problem:  # zipfile passes on what its unpackers raise, and more
        return handed.lost(f"it is damaged and cannot be unpacked ({problem})")
    if len(files) > MOST_FILES:
        return handed.lost(f"it holds {len(files)} files, more than any submission")
    found, lost = _read([(each.path, each.opened) for each in files])
    inner = [path for path, data in found.items() if archives.kind(data[: archives.HEAD], path)]
    if inner and deeper and not any(map(OWN.fullmatch, found)):
        others = [("beside the archive in it that counts", path, found[path]) for path in found if path != inner[0]]
        return _lose(_opened(handed, found[inner[0]], deeper=False), lost + others)
    return _taken(handed, found, lost)


def _read(files):
    """({path: content} of some files of one submission, (why, name, content or None) of each that is left out).

    files: (path, function that opens it; None of what is no plain file)
    """
    found, lost, room = {}, [], MOST_BYTES
    for path, opened in files:
        name, data = f"{path:.80}", b""
        try:
            if opened:
                with opened() as file:
                    data = file.read(room + 1)  # an entry may hold more than it says
        except Exception as problem:
            lost.append((f"it is damaged ({problem})", name, None))
            continue
        if len(data) > room:
            lost.append((f"from {name} on, it unpacks to more than {MOST_BYTES >> 20} MiB", "the rest", None))
            break
        room -= len(data)
        while path in found:
            path = f"another/{path}"
        if not opened:
            lost.append(("a symbolic link, or no plain file: it was not followed", name, b""))
        elif why := unsafe(path):
            lost.append((f"its path {why}", f"{path!r:.80}", data))
        else:
            found[path] = data
    return found, lost


def _taken(handed, found, lost):
    """The Handed with those of some files that a submission has, at their places. lost: (why, name, content; None
    where it could not be read) of what is left out already."""
    top, taken, notebooks = _top(found), Counter(), {}

    def take(place, path):
        (what, most), size = _room(place), len(found[path])
        if place in handed.contents or unsafe(place):
            lost.append((f"{place:.80} stands in it twice, or is no name for a file", f"{path:.80}", found[path]))
        elif taken[what] + size > most:
            lost.append((f"{size / 2**20:.3g} MiB, more than any has", f"{path:.80}", None))
        else:
            taken[what] += size
            handed.contents[place] = found[path]

    for path, content in found.items():
        place, base = path.removeprefix(top), base_name(path)
        if place.endswith(".lock"):
            continue
        if _PLACES.fullmatch(place):
            take(place, path)
        elif lesson := _notebook(base, content):
            notebooks.setdefault(lesson, []).append(path)
        elif _PLACES.fullmatch(f"notebooks/{place}") and top + f"notebooks/{place}" not in found:
            take(f"notebooks/{place}", path)
        else:
            lost.append(("no file of a submission", f"{path:.80}", content))
    for lesson, paths in notebooks.items():
        name = f"{lesson}.ipynb"
        paths.sort(key=lambda path: (path != f"{top}notebooks/{name}", base_name(path) != name, path))
        if len(paths) > 1:
            paths.sort(key=lambda path: -cells.filled(found[path]))
        others = [each for each in paths[1:] if found[each] != found[paths[0]]]
        if base_name(paths[0]) != name:
            handed.saying(f"counted as {name}: {paths[0]:.80}")
        take(f"notebooks/{name}", paths[0])
        counts = f"{paths[0]:.80} counts as {name}, of several the one in which more is filled in"
        lost += [(counts, f"{path:.80}", found[path]) for path in others]
    if not handed.contents:
        handed.saying("empty: no file of a submission is in it")
    return _lose(handed, lost)


def _notebook(name, content):
    """The name of the course's notebook that a file is, whatever it is called; None if it is none of them."""
    if name.endswith(".ipynb") or (content.lstrip()[:1] == b"{" and b'"cells"' in content):
        return cells.lesson(content) or next((lesson for lesson in sorted(cells.notebooks()) if lesson in name), None)
    return None


@cache
def _scripts():
    """The names of the course's training scripts and batch scripts."""
    return {name for _, item in tasks.items().values() for name in (*item.evidence.scripts, *item.evidence.batch)}


def _lose(handed, lost):
    """The Handed with lines on what is not read; what could hold work is kept in others/, empty if it was not read."""
    kinds, room = grouped((why, name) for why, name, _ in lost), MOST_READ
    for why, names in kinds.items():  # nobody reads thousands, and a line of another kind would be lost among them
        handed.told += [f"{LOST}{name}: {why}" for name in names[:FEW]]
        handed.told += [f"{LOST}{len(names) - FEW} others: {why}"] * bool(names[FEW:])
    for _, name, content in lost:
        base = re.sub(r"[^\w.() -]", "_", base_name(archives.normal(name.strip("'\""))))[-80:].strip(". ") or "file"
        searched = content is not None and not cells.unreadable(content)
        could = cells.items(content) if searched and len(content) <= MOST_READ else content != b""
        known = PurePosixPath(base.lower()).suffix in _WORK and base != "report.pdf"
        if (known and could) or (content and (base in _scripts() or base.endswith(".ipynb"))):
            full = sum(path.startswith(cells.OTHERS) for path in handed.contents) > MOST_OTHERS
            kept = content if content and len(content) <= room and not full else b""
            room -= len(kept)
            handed.contents.setdefault(cells.OTHERS + ("more" if full else base), kept)
    return handed


def _top(found):
    """The folder in which the files of a submission lie, with / at its end: of its report, else of most notebooks."""
    tops = [
        path.removesuffix("report.json") for path in found if path == "report.json" or path.endswith("/report.json")
    ]
    counted = Counter(own["home"] for own in map(OWN.fullmatch, found) if own)
    return min(tops or [home for home in counted if counted[home] == max(counted.values())], key=len, default="")


def _room(place):
    """(what a file shares its room with, how many bytes that is)."""
    what = PurePosixPath(place).suffix
    if what in (".py", ".sh"):
        return "code", MOST_CODE
    records = what == ".json" and "runs/" in place
    return "records" if records else place, MOST_READ if what in (".json", ".ipynb", ".pdf") else MOST_BYTES
