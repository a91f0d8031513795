"""What was handed in, brought together: one clean zip for each student, under a number.

    grades/names.json            {number: who}; read here and where points go back to a platform, and nowhere else
    grades/submissions/007.zip   the files of submission 007: plain files at known places, and nothing else
    grades/collection.json       a line for each thing that was found, and for all that was left out
    grades/write_to.txt          who handed in what is damaged, misnamed, empty or cannot be read

When something was handed in is known from a platform only: a file's own date is that of a download.
"""

import hashlib
import json
import re
import zipfile
import zlib
from datetime import UTC, datetime
from pathlib import Path

from labs import files
from labs.errors import UseError
from labs.printed import grouped, printable
from labs.report.archive import zipped
from teaching.grading import copies, store
from teaching.grading.incoming import handed_in

_TO_WRITE = re.compile(r"(?:damaged|misnamed|empty|unreadable): .*", re.S)


def collect(source, out, due=None, sheet=None):
    """Bring a folder, or a zip of a learning platform, into the folder `out`; returns the lines of its report.

    due: a datetime; what is known to have come later is told. sheet: the platform's worksheet (a table.Sheet), which
    says when; its times are read in the time zone of `due`. It can be repeated, with more submissions: numbers stay.
    Of two submissions of a student the later one is kept, of those that can be read.
    Raises UseError (nothing is there), files.WriteError.
    """
    out, found = Path(out), {}
    for handed in handed_in(Path(source)):
        of_one = found.setdefault((handed.platform, handed.id, handed.who), [])
        of_one.append(handed)
        of_one.sort(key=_order)
        for each in of_one[:-1]:
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
    report, unknown = store.read(out / "collection.json"), []
    said = {}
    if sheet and sheet.late:
        said = {number: sheet.late[row] for number, row in sheet.rows_of(names)[0].items()}
    for key, (*others, last) in found.items():
        number = known[key]
        if counted := [each for each in others if not each.beside]:
            last.told.append(f"handed in {len(counted) + 1} times: the last one that can be read counts")
            last.told += [f"another one, {one.file}: {line}" for one in counted for line in one.told]
        last.told += [line for each in others if each.beside for line in each.told]
        last.told += ["empty: a text answer came, and no file"] * last.beside
        late = _lateness(last.late, due, said.get(number))
        last.told += [late] if late else ["late or not: unknown"] if late is None and (due or sheet) else []
        unknown += [number] * (late is None)
        files.write(out / f"submissions/{number}.zip", zipped(last.contents))
        report[number] = [printable(line).replace("\n", r"\n") for line in last.told] or ["complete"]
    _twins(out, report)
    files.write(out / "collection.json", json.dumps(dict(sorted(report.items())), indent=1, ensure_ascii=False))
    lines = [f"{number}: {line}" for number in sorted(report) for line in report[number]]
    if unknown and (due or sheet or any(names[number]["platform"] == "moodle" for number in unknown)):
        why = "A file has the date of its download; Moodle's grading worksheet says when it was handed in: --worksheet."
        lines.append(f"Unknown whether late: {len(unknown)} of {len(found)}. {why}")
    return lines + _to_write(out, names, report)


def _lateness(late, due, said):
    """A line on how late something is, "" if it is in time, None if nobody says. late: of incoming.Handed; said: of a
    table.Sheet, or None."""
    words, when, moved = said or (late, None, False)
    if due and when and not moved:
        late = when > due.replace(tzinfo=None)
        return f"late: {when:%Y-%m-%d %H:%M}, due {due:%Y-%m-%d %H:%M}" if late else ""
    return words and ("late" if words == "late" else f"late: the worksheet says {words!r}")


def _to_write(out, names, report):
    """Write down whom to write to, and why; returns a line on it. Names stand in this file and in names.json only."""
    whom = [
        f"{number} {who['who']} ({who['id'] or who['platform']}): {line}"
        for number, who in sorted(names.items())
        for line in report.get(number, ())
        if _TO_WRITE.fullmatch(line)
    ]
    path = out / "write_to.txt"
    path.unlink(missing_ok=True)
    if not whom:
        return []
    files.write(path, "".join(printable(line).replace("\n", r"\n") + "\n" for line in whom).encode(errors="replace"))
    return [f"{path}: whom to write to, with names ({len(whom)} damaged, misnamed, empty or unreadable)."]


def moment(text):
    """The datetime that a text says, in UTC where it names no zone; None if there is no text. Raises UseError."""
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


def holds(path):
    """Whether a collected submission has any file."""
    with zipfile.ZipFile(path) as archive:
        return bool(archive.namelist())


def contents(path, only=None):
    """{path: bytes} of a collected submission, which is a zip of ours; of some paths only. Raises UseError for a
    damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if only is None or name in only}
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, zlib.error) as problem:
        help = "delete it and run `teach collect` again, which writes it anew."
        raise UseError(f"{path} is damaged: {problem}. Nothing was changed; {help}") from None


def _order(handed):
    """Sorts what one student handed in; the last one counts. That is the latest of those that can be read. A text
    answer, or a file beside a zip, comes before all others."""
    return not handed.beside, bool(handed.contents), handed.order, handed.stamp, handed.source


def _shuffled(key):
    """An order that says nothing about names, and is the same each time."""
    return hashlib.sha256("\0".join(key).encode(errors="replace")).hexdigest()


def _twins(out, report):
    """A line for each submission that is, to the last byte, that of another student."""
    packed = {number: path for number, path in submissions(out).items() if not copies.untouched(contents(path))}
    equal = grouped((hashlib.sha256(path.read_bytes()).hexdigest(), number) for number, path in packed.items())
    for numbers in equal.values():
        for number in numbers if len(numbers) > 1 else ():
            line = f"equal to the last byte: {', '.join(other for other in numbers if other != number)}"
            report[number] += [line] * (line not in report[number])
