"""What comes out of a grading: grades.csv, feedback/*.pdf; and whose points moved."""

import csv
import io
import json
import re

from labs import files
from labs.report import document
from teaching.grading import feedback, marks, overview, points, store, worksheet
from teaching.grading.graded import Graded

_FORMULA = re.compile(r"""(?:^|(?<=;))(?=[\s"]*[=+\-@＝＋－＠])""")


def write(out, platform=None, column=None):
    """Write all results into the folder `out`; returns lines: how many, and each total that is another than before.

    platform, column: of worksheet.give_back. Raises UseError where nothing was looked at, where a text that a student
    would read names another one, and as give_back does.
    """
    graded = Graded(out)
    out, found, most = graded.out, graded.found, graded.rules.most
    marks.stamp(out, graded.rules)
    graded.read()
    made = graded.all_lines()
    totals = {number: points.total(lines) for number, lines in made.items()}
    before = store.read(out / "points.json")
    comments = {number: [text for _, text in feedback.comments(graded, number)] for number in found}
    for number, texts in comments.items():  # which may have been written by hand
        for text in (*texts, *(each.sentence for each in graded.own(number).findings.values())):
            marks.fit_to_read(out, number, text)
    told = [f"{len(found)} submissions, {sum(line.open for each in made.values() for line in each)} items are open."]
    if missing := sorted(graded.paths.keys() - found.keys()):
        told.append(f"Not looked at yet, so not in any of this: {', '.join(missing)}. Run `teach in`.")
    told += [f"{n}: {before[n]:g} -> {total:g} points" for n, total in totals.items() if before.get(n, total) != total]
    told += overview.still_open(graded, made)
    for number, lines in made.items():
        page = document.pdf_of_data(feedback.FORM, feedback.page(graded, number, lines))
        files.write(out / f"feedback/{number}.pdf", page)
    said = {number: " ".join(texts) for number, texts in comments.items()}
    unread = {number for number, of_one in found.items() if not points.handed_in(of_one) and not totals[number]}
    files.write(out / "grades.csv", sheet(graded.names, made, most, said, unread).encode(errors="replace"))
    files.write(out / "points.json", json.dumps(totals, indent=1))
    return told + worksheet.give_back(graded, made, platform, column)


def cell(value):
    """A text as a cell: no control characters; what begins like a formula gets an apostrophe in front (OWASP's advice
    on CSV injection), also behind a semicolon, which ends a cell where numbers have a comma."""
    text = "".join(c if c.isprintable() else " " for c in str(value))
    return _FORMULA.sub("'", text)


def sheet(names, made, most, comments, unread):
    """grades.csv as text: points of every student, with the identifiers that the platform gave.

    names: {number: who}; made: {number: its PointsLines}; most: points that can be had; comments: {number: text};
    unread: numbers of those of which nothing could be read, which are left without a grade
    """
    ids = list(dict.fromkeys(line.id for lines in made.values() for line in lines))
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\r\n")
    head = ["Number", "ID", "Full name", "Grade", "Maximum Grade", "Open", "Feedback comments"]
    rows.writerow([*head, *map(cell, ids)])
    for number, lines in sorted(made.items()):
        who, of_id = names.get(number, {"who": "", "id": ""}), {line.id: line.points for line in lines}
        row = [number, who["id"], who["who"], "" if number in unread else f"{points.total(lines):g}", f"{most:g}"]
        row += [sum(line.open for line in lines), comments.get(number, "")]
        rows.writerow([*map(cell, row), *(f"{of_id[id]:g}" if id in of_id else "" for id in ids)])
    return buffer.getvalue()
