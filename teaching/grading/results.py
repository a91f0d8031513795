"""What comes out of a grading: grades.csv, feedback/*.pdf, overview.pdf, alike.html; and whose points moved."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from labs import files
from labs.report import document
from teaching.grading import collect, feedback, likeness, overview, points, sheet, store, worksheet
from teaching.grading.graded import Graded


def write(out, platform=None, column=None):
    """Write all results into the folder `out`; returns lines: how many, and each total that is another than before.

    Feedback whose content is as it was is not set again. platform, column: of worksheet.give_back. Raises UseError
    where nothing was looked at, and as that does.
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
        _feedback(out / f"feedback/{number}.pdf", feedback.page(graded, number, lines))
    comments = {n: " ".join(text for _, text in feedback.comments(graded, n)) for n in found}
    files.write(out / "grades.csv", sheet.text(graded.names, made, most, comments).encode(errors="replace"))
    files.write(out / "overview.pdf", overview.pdf(graded, made))
    files.write(out / "alike.html", _alike(graded).encode(errors="replace"))
    files.write(out / "points.json", json.dumps(totals, indent=1))
    return told + worksheet.give_back(graded, made, platform, column)


def _alike(graded):
    """The page with pairs of scripts and answers that are alike."""
    pairs = likeness.pairs({number: each["alike"] for number, each in graded.found.items()})
    numbers = {number for pair in pairs for number in pair[1:3]}
    texts = {n: likeness.texts(collect.contents(graded.paths[n]), graded.found[n]["answers"]) for n in numbers}
    return likeness.page(pairs, texts)


def _feedback(path, page):
    """Set the feedback on a submission, where its content is not that of the PDF that is there."""
    code = "".join(Path(path).read_text(encoding="utf-8") for path in (feedback.__file__, feedback.FORM))
    mark = hashlib.sha256(json.dumps([page, code]).encode(errors="replace")).hexdigest()
    kept = path.with_name(f".{path.stem}")
    with suppress(OSError):
        if path.exists() and kept.read_bytes() == mark.encode():
            return
    files.write(path, document.of_data(feedback.FORM, page))
    files.write(kept, mark)
