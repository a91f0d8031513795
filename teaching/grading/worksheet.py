"""What goes back to a learning platform: the file that it gave, with the points in it, and feedback as it takes it.

grades/filled_NAME            the worksheet of Moodle or the gradebook of Canvas, the points in one of its columns
grades/feedback_moodle.zip    feedback of those whose submission came from Moodle
grades/feedback_by_name.zip   feedback of all, in a folder for each, called as they were in the export
"""

from collections import Counter, defaultdict
from pathlib import Path

from labs import files
from labs.errors import UseError
from labs.printed import few
from labs.report.archive import zipped
from teaching.grading import canvas, moodle, points, table


def sheet(path):
    """The table.Sheet of a file of Moodle or Canvas. Raises UseError where it is neither."""
    given = table.read(path)
    if given.rows and (found := canvas.sheet(given) or moodle.sheet(given)):
        return found
    raise UseError(
        f"{path} is neither a grading worksheet of Moodle (each row begins as Participant 123, in any language) nor a "
        "gradebook of Canvas (its first line begins Student,ID): give the file as the platform gave it."
    )


def give_back(graded, made, path=None, column=None):
    """Write into a Graded's folder what the platform takes back; returns lines on it.

    made: {number: its PointsLines} of submissions
    path: the platform's file, which stays as it is; its points are those of the rubric, scaled to its maximum
    column: name of its column for the points, where that is not clear

    Raises UseError: no such file or column.
    """
    if column is not None and path is None:
        raise UseError("--column names a column of a file: give that with --worksheet.")
    names = {number: graded.names[number] for number in made if number in graded.names}
    by_name = _feedback_by_name(graded.out, names)
    if path is None:
        return _feedback(graded.out, names) + by_name
    found = sheet(path)
    takes = found.column(column)
    own = {number: each for number, each in names.items() if each["platform"] == found.platform}
    rows, strangers = found.rows_of(own)
    feedback = _feedback(graded.out, {number: each for number, each in names.items() if number not in strangers})
    (at, top), most = takes, graded.rules.most
    scale = top / most if top and most else 1.0
    worth = {number: round(scale * points.total(lines), 2) for number, lines in made.items()}
    told = _filled(graded, found, at, rows, made, worth, Path(path))
    if scale != 1:
        told.append(f"The rubric has {most:g} points in all, the file {top:g}: points are scaled to that.")
    if others := sorted(names.keys() - own.keys()):
        said = f"Not from {found.platform.capitalize()}, so not in this file: {few(others)}"
        told.append(f"{said}. Give their platform's file to another `teach out`, again after each change.")
    for number, why in sorted(strangers.items()):
        told.append(f"{number}, {names[number]['who']}: {why}. They would be {worth[number]:g} of {top:g}.")
    taken = set(rows.values())
    others = [f"{id} {found.names[at[0]]}".strip() for id, at in found.rows.items() if not taken & set(at)]
    told += [f"In the file, and no submission is theirs: {'; '.join(others)}."] * bool(others) + feedback + by_name
    return [line.replace("\n", r"\n") for line in told]  # names are in it


def _filled(graded, found, at, rows, made, worth, path):
    """Write the file with the points; returns lines on it. at: the column; rows: {number of a submission: its row};
    worth: {number: its points in this file}."""
    cells, left, filled, sign = {}, defaultdict(list), 0, found.decimal()
    for number, row in rows.items():
        now, total = found.table.rows[row][at].strip(), worth[number]
        if not points.handed_in(graded.found[number]):
            left["what was handed in cannot be read"].append(number)
        elif any(line.open for line in made[number]):
            left["items are open"].append(number)
        elif now and table.number(now) is None:
            left[f"{now[:20]!r} stands there"].append(number)
        else:
            filled += 1
            if table.number(now) != total:
                cells[row, at] = f"{total:.2f}".rstrip("0").rstrip(".").replace(".", sign)
    target = graded.out / f"filled_{path.name}"
    files.write(target, found.table.filled(cells))
    form = f"UTF-8, {table.SEPARATORS[found.table.separator]}"
    told = [f"{target}: points of {filled} of {len(rows)} in {found.table.rows[0][at].strip()!r}. To upload as {form}."]
    if left:
        told.append(f"Cells left as they were: {'; '.join(f'{few(of)} ({why})' for why, of in sorted(left.items()))}.")
    return told


def _feedback(out, names):
    """Write the zip with feedback for Moodle; returns lines on it. names: {number: {platform, id, who}}."""
    theirs = {number: each for number, each in names.items() if each["platform"] == "moodle"}
    times, found = Counter(each["id"] for each in theirs.values()), {}
    for number, each in theirs.items():
        path = out / f"feedback/{number}.pdf"
        if times[each["id"]] == 1 and path.is_file():
            found[each["id"], each["who"]] = files.read(path)
    target = out / "feedback_moodle.zip"
    target.unlink(missing_ok=True)
    if not found:
        return []
    files.write(target, moodle.packed(found))
    why = "Moodle counts feedback as grading, and keeps a grade that is younger than the worksheet"
    return [f"{target}: feedback for {len(found)}. Upload the worksheet first: {why}."]


def _feedback_by_name(out, names):
    """Write the zip with feedback in a folder for each; returns a line on it. Where several have a name, the identifier
    of the platform, or the number of the submission, stands behind it."""
    who = {number: table.file_name(each["who"]) or number for number, each in names.items()}
    called, contents = Counter(name.casefold() for name in who.values()), {}
    for number, name in who.items():
        more = "" if called[name.casefold()] == 1 else f" {table.file_name(names[number]['id'])} {number}"
        contents[f"{name}{more}/feedback.pdf"] = files.read(out / f"feedback/{number}.pdf")
    target = out / "feedback_by_name.zip"
    files.write(target, zipped(contents))
    return [f"{target}: feedback for {len(contents)}, for platforms that take folders, and for mails."]
