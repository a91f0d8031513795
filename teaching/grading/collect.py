"""What was handed in, brought together: one clean zip for each student, under a number.

    grades/names.json            {number: who}; read here and where points go back to a platform, and nowhere else
    grades/submissions/007.zip   the files of submission 007: plain files at known places, and nothing else
    grades/collection.json       a line for each thing that was found, and for all that was left out

Of two submissions of a student the later one is kept, of those that can be read.
"""

import hashlib
import json
import zipfile
import zlib
from pathlib import Path

from labs import files
from labs.errors import UseError
from labs.printed import printable
from labs.report.archive import zipped
from teaching.grading import store
from teaching.grading.cells import OTHERS
from teaching.grading.incoming import LOST, handed_in


def collect(source, out):
    """Bring a folder, or a zip of a learning platform, into the folder `out`; returns the lines of its report.

    It can be repeated, with more submissions: numbers stay. Raises UseError (nothing is there), files.WriteError.
    """
    out, found, nobodys = Path(out), {}, []
    for handed in handed_in(Path(source)):
        if not handed.who:
            nobodys += handed.told
            continue
        of_one = found.setdefault((handed.platform, handed.id, handed.who), [])
        of_one.append(handed)
        of_one.sort(key=_order)
        for each in of_one[:-1]:
            if not each.beside:
                each.contents = dict.fromkeys(each.contents, b"")  # it will not count: it takes no memory meanwhile
    if not found:
        raise UseError(f"{source} holds no submission: name the folder with them, or the zip that the platform gave.")
    names = store.read(out / "names.json")
    known = {(each["platform"], each["id"], each["who"]): number for number, each in names.items()}
    for key in sorted(found.keys() - known.keys(), key=_shuffled):
        known[key] = f"{len(names) + 1:03d}"
        names[known[key]] = dict(zip(("platform", "id", "who"), key, strict=True))
    text = json.dumps(names, indent=1, ensure_ascii=False)
    files.write(out / "names.json", text.encode(errors="surrogatepass"))  # so that a name is the same one next time
    report = store.read(out / "collection.json")
    for key, (*others, last) in found.items():
        number = known[key]
        if counted := [each for each in others if not each.beside]:
            last.told.append(f"handed in {len(counted) + 1} times: the last one that can be read counts")
            last.told += [f"another one, {one.file}: {line}" for one in counted for line in one.told]
        for each in (each for each in others if each.beside):
            last.told += each.told
            last.contents = each.contents | last.contents
        last.told += ["empty: nothing came that can be graded here"] * last.beside
        files.write(out / f"submissions/{number}.zip", zipped(last.contents))
        report[number] = _printable(last.told) or ["complete"]
    files.write(out / "collection.json", json.dumps(dict(sorted(report.items())), indent=1, ensure_ascii=False))
    return [f"{number}: {line}" for number in sorted(report) for line in report[number]] + _printable(nobodys)


def _printable(lines):
    return [printable(line).replace("\n", r"\n") for line in lines]


def not_read(report):
    """{number: what of its files was not read, a line each} of a collection's report."""
    lost = {number: [line.partition(LOST)[2] for line in lines if LOST in line] for number, lines in report.items()}
    return {number: lines for number, lines in lost.items() if lines}


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
        help = "delete it and run `teach in` with the export again, which writes it anew."
        raise UseError(f"{path} is damaged: {problem}. Nothing was changed; {help}") from None


def _order(handed):
    """Sorts what one student handed in; the last one counts. That is the latest of those that can be read. A text
    answer, or a file beside a zip, comes before all others."""
    readable = any(not path.startswith(OTHERS) for path in handed.contents)
    return not handed.beside, readable, handed.order, handed.stamp, len(handed.source), handed.source


def _shuffled(key):
    """An order that says nothing about names, and is the same each time."""
    return hashlib.sha256("\0".join(key).encode(errors="replace")).hexdigest()
