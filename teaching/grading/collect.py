"""What was handed in, brought together: one clean zip for each student, under a number.

    grades/names.json            {number: who}; read here and where points go back to a platform, and nowhere else
    grades/submissions/007.zip   the files of submission 007: plain files at known places, and nothing else
    grades/collection.json       a line for each thing that was found, and for all that was left out

Of two submissions of a student the later one is kept, of those that can be read; also of two exports.
"""

import hashlib
import json
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

from labs import files
from labs.errors import UseError
from labs.printed import few, printable
from labs.report.archive import zipped
from teaching.grading import store
from teaching.grading.incoming import handed_in
from teaching.grading.whose import LOST


def collect(source, out):
    """Bring a folder, or a zip of a learning platform, into the folder `out`; returns the lines of its report.

    It can be repeated, with more submissions: numbers stay. Raises UseError (nothing is there), files.WriteError.
    """
    out, found, nobodys = Path(out), {}, []
    for *others, last in handed_in(Path(source)):
        if last.who:
            found[last.platform, last.id, last.who] = others, last
        else:
            nobodys += last.told
    if not found:
        raise UseError(f"{source} holds no submission: name the folder with them, or the zip that the platform gave.")
    names = store.read(out / "names.json")
    known = {(each["platform"], each["id"], each["who"]): number for number, each in names.items()}
    for key in sorted(found.keys() - known.keys(), key=_shuffled):
        known[key] = f"{len(names) + 1:03d}"
        names[known[key]] = dict(zip(("platform", "id", "who"), key, strict=True))
    there, older = submissions(out), set()
    for key, (_, last) in found.items():
        who, place = names[number := known[key]], json.loads(json.dumps(last.place[:3]))
        older |= {number} if number in there and _is_older(place, who.get("place")) else set()
        who |= {} if number in older else {"place": place}
    text = json.dumps(names, indent=1, ensure_ascii=False)
    files.write(out / "names.json", text.encode(errors="surrogatepass"))  # so that a name is the same one next time
    report = store.read(out / "collection.json")
    for key, (others, last) in found.items():
        number, path = known[key], out / f"submissions/{known[key]}.zip"
        if number in older:
            line = f"{last.file} is older than what is kept, which stays; to take it, delete {path} first"
            report[number] = list(dict.fromkeys([*report.get(number, ()), line]))
            continue
        if others:
            last.told.append(f"handed in {len(others) + 1} times: the last one that can be read counts")
            last.told += [f"another one, {one.file}: {line}" for one in others for line in one.told]
        if number in there and path.read_bytes() != zipped(last.contents):
            last.told.append(f"handed in again: this counts now{_fewer(path, last.contents)}")
        files.write(path, zipped(last.contents))
        report[number] = _printable(last.told) or ["complete"]
    files.write(out / "collection.json", json.dumps(dict(sorted(report.items())), indent=1, ensure_ascii=False))
    here = sorted(known[key] for key in found)
    return [f"{number}: {line}" for number in here for line in report[number]] + _printable(nobodys)


def _fewer(path, found):
    """What to say of notebooks that the submission kept so far has, and the one that counts now has not; or ""."""
    with suppress(UseError):
        if lost := [name for name in contents(path) if name.endswith(".ipynb") and name not in found]:
            names = few([name.removeprefix("notebooks/") for name in lost])
            return f"; {names} of the one before is not in it. To take it, delete {path} and give its export again"
    return ""


def _is_older(place, kept):
    """Whether a hand-in comes before the one that is kept, by what sorts those of one export (whose.Handed.place)."""
    try:
        return kept is not None and place < kept
    except TypeError:  # one of a zip, the other of a folder: their dates are not compared
        return False


def _printable(lines):
    return [printable(line).replace("\n", r"\n") for line in lines]


def not_read(report):
    """{number: what of its files was not read, a line each} of a collection's report."""
    lost = {number: [line.partition(LOST)[2] for line in lines if LOST in line] for number, lines in report.items()}
    return {number: lines for number, lines in lost.items() if lines}


def submissions(out):
    """{number: path} of the collected submissions."""
    return {path.stem: path for path in sorted(Path(out, "submissions").glob("*.zip"))}


def contents(path, only=None):
    """{path: bytes} of a collected submission, which is a zip of ours; of some paths only. Raises UseError for a
    damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if only is None or name in only}
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, zlib.error) as problem:
        help = "delete it and run `teach in` with the export again, which writes it anew."
        raise UseError(f"{path} is damaged: {problem}. Nothing was changed; {help}") from None


def _shuffled(key):
    """An order that says nothing about names, and is the same each time."""
    return hashlib.sha256("\0".join(key).encode(errors="replace")).hexdigest()
