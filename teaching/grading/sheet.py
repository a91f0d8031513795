"""grades.csv: points of every student, with the identifiers that the learning platform gave. Read back by any CSV
reader; a cell that a spreadsheet would run as a formula is made text."""

import csv
import io
import re

_FORMULA = re.compile(r"""(?:^|(?<=;))(?=[\s"]*[=+\-@＝＋－＠])""")


def cell(value):
    """A text as a cell: no control characters; what begins like a formula gets an apostrophe in front (OWASP's advice
    on CSV injection), also behind a semicolon, which ends a cell where numbers have a comma."""
    text = "".join(c if c.isprintable() else " " for c in str(value))
    return _FORMULA.sub("'", text)


def text(names, made, most, comments):
    """The sheet as text.

    names: {number: who}; made: {number: its PointsLines}; most: points that can be had; comments: {number: text}
    """
    from teaching.grading import points

    ids = list(dict.fromkeys(line.id for lines in made.values() for line in lines))
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\r\n")
    head = ["Number", "ID", "Full name", "Grade", "Maximum Grade", "Open", "Feedback comments"]
    rows.writerow([*head, *map(cell, ids)])
    for number, lines in sorted(made.items()):
        who, of_id = names.get(number, {"who": "", "id": ""}), {line.id: line.points for line in lines}
        row = [number, who["id"], who["who"], f"{points.total(lines):g}", f"{most:g}"]
        row += [sum(line.open for line in lines), comments.get(number, "")]
        rows.writerow([*map(cell, row), *(f"{of_id[id]:g}" if id in of_id else "" for id in ids)])
    return buffer.getvalue()
