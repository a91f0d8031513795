"""What goes back to a learning platform: the file that it gave, with the points in it, and feedback as it takes it.

grades/filled_NAME            the worksheet of Moodle or the gradebook of Canvas, the points in one of its columns
grades/feedback_moodle.zip    feedback of those whose submission came from Moodle
"""

from collections import Counter
from pathlib import Path

from labs import files
from labs.errors import UseError
from teaching.grading import canvas, moodle, points, table


def sheet(path, column=None):
    """The table.Sheet of a file of Moodle or Canvas. Raises UseError: it is neither, or its column is not clear."""
    given = table.read(path)
    if given.rows and (found := canvas.sheet(given, column) or moodle.sheet(given, column)):
        return found
    raise UseError(
        f"{path} is neither a grading worksheet of Moodle (each row begins as Participant 123, in any language) nor a "
        "gradebook of Canvas (its first line begins Student,ID): give the file as the platform gave it."
    )


def give_back(graded, made, path=None, column=None):
    """Write into a Graded's folder what the platform takes back; returns lines on it.

    made: {number: its PointsLines} of submissions
    path: the platform's file, which stays as it is
    column: name of its column for the points, where that is not clear

    Raises UseError: no such file or column; points above its maximum.
    """
    if column is not None and path is None:
        raise UseError("--column names a column of a file: give that with --worksheet.")
    names = {number: graded.names[number] for number in made if number in graded.names}
    if path is None:
        return _feedback(graded.out, names)
    found = sheet(path, column)
    rows, strangers = found.rows_of(names)
    feedback = _feedback(graded.out, {number: each for number, each in names.items() if number not in strangers})
    told = _filled(graded, found, rows, made, Path(path))
    told += [f"{number}, {names[number]['who']}: {why}." for number, why in sorted(strangers.items())]
    taken = set(rows.values())
    others = [f"{id} {found.names[at[0]]}".strip() for id, at in found.rows.items() if not taken & set(at)]
    told += [f"In the file, and no submission is theirs: {'; '.join(others)}."] * bool(others) + feedback
    return [line.replace("\n", r"\n") for line in told]  # names are in it


def _filled(graded, found, rows, made, path):
    """Write the file with the points; returns lines on it. rows: {number of a submission: its row}."""
    cells, left, high, filled, other = {}, Counter(), [], 0, 0
    sign, column, most = found.decimal(), found.table.rows[0][found.column].strip(), graded.rules.most
    open_items = {number: sum(line.open for line in made[number]) for number in sorted(rows)}
    for number, row in rows.items():
        now, total = found.table.rows[row][found.column].strip(), points.total(made[number])
        if not points.handed_in(graded.found[number]):
            left["what was handed in cannot be read"] += 1
        elif open_items[number]:
            left["items are open"] += 1
        elif now and table.number(now) is None:
            left[f"{now[:20]!r} stands there"] += 1
        elif found.most is not None and total > found.most:
            high.append(f"{number} has {total:g}")
        else:
            filled += 1
            if table.number(now) != total:
                other += bool(now)
                cells[row, found.column] = f"{total:.3f}".rstrip("0").rstrip(".").replace(".", sign)
    if high:
        said = f"{path.name} takes at most {found.most:g} points in {column!r}, and {', '.join(high)}."
        change = "change rubric.toml, or the maximum on the platform and get the file again. All else is written"
        raise UseError(f"{said} It was not filled. The rubric has {most:g} in all; {change}.")
    target = graded.out / f"filled_{path.name}"
    files.write(target, found.table.filled(cells))
    form = f"UTF-8, {table.SEPARATORS[found.table.separator]}"
    told = [f"{target}: points of {filled} of {len(rows)} in {column!r}. To upload as {form}."]
    told += [f"{other} of them held other points before."] * bool(other)
    if left:
        told.append(f"Cells left as they were: {', '.join(f'{n} ({why})' for why, n in sorted(left.items()))}.")
    if each := ", ".join(f"{number} ({count})" for number, count in open_items.items() if count):
        told.append(f"{sum(open_items.values())} open: {each}.")
    if found.most is None:
        told.append("The file does not say how many points there can be: Moodle drops those above its maximum.")
    elif found.most != most:
        told.append(f"The rubric has {most:g} points in all, the file {found.most:g}: they are written as they are.")
    return told


def _feedback(out, names):
    """Write the zip with feedback; returns lines on it."""
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
