"""What comes out of a grading: grades.csv, feedback/*.pdf, overview.pdf; and whose points moved."""

import json

from labs import files
from labs.report import document
from teaching.grading import feedback, overview, points, sheet, store, worksheet
from teaching.grading.graded import Graded


def write(out, platform=None, column=None):
    """Write all results into the folder `out`; returns lines: how many, and each total that is another than before.

    platform, column: of worksheet.give_back. Raises UseError where nothing was looked at, and as that does.
    """
    graded = Graded(out)
    out, found, most = graded.out, graded.found, graded.rules.most
    made = {number: graded.lines(number) for number in found}
    totals = {number: points.total(lines) for number, lines in made.items()}
    before = store.read(out / "points.json")
    told = [f"{len(found)} submissions, {sum(line.open for each in made.values() for line in each)} items are open."]
    if missing := sorted(graded.paths.keys() - found.keys()):
        told.append(f"Not looked at yet, so not in any of this: {', '.join(missing)}. Run `teach check`.")
    told += [f"{n}: {before[n]:g} -> {total:g} points" for n, total in totals.items() if before.get(n, total) != total]
    told += overview.still_open(graded, made)
    for number, lines in made.items():
        page = document.of_data(feedback.FORM, feedback.page(graded, number, lines))
        files.write(out / f"feedback/{number}.pdf", page)
    comments = {n: " ".join(text for _, text in feedback.comments(graded, n)) for n in found}
    files.write(out / "grades.csv", sheet.text(graded.names, made, most, comments).encode(errors="replace"))
    files.write(out / "overview.pdf", overview.pdf(graded, made))
    files.write(out / "points.json", json.dumps(totals, indent=1))
    return told + worksheet.give_back(graded, made, platform, column)
