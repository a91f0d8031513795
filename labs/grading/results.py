"""What comes out of a grading: grades.csv, feedback/*.pdf, overview.pdf, alike.html; and whose points moved."""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from labs import files
from labs.errors import UseError
from labs.grading import check, collect, feedback, likeness, marks, points, rubric, sheet, term, worksheet


def write(out, platform=None, column=None):
    """Write all results into the folder `out`; returns lines: how many, and each total that is another than before.

    Feedback whose content is as it was is not set again. platform, column: of worksheet.give_back. Raises UseError
    where nothing was looked at, and as that does.
    """
    out = Path(out)
    found = check.results(out)
    if not found:
        raise UseError(f"{out} holds no results: run `labs grade check` first.")
    rules, decided = rubric.load(out), marks.load(out)
    made = {number: points.lines(each, rules, decided.get(number)) for number, each in found.items()}
    totals = {number: points.total(lines) for number, lines in made.items()}
    said = {
        number: [rules.comments.get(each, each) for each in decided[number].comments] if number in decided else []
        for number in found
    }
    before = collect.kept(out / "points.json")
    told = [f"{len(found)} submissions, {sum(line.open for each in made.values() for line in each)} items are open."]
    if missing := sorted(collect.submissions(out).keys() - found.keys()):
        told.append(f"Not looked at yet, so not in any of this: {', '.join(missing)}. Run `labs grade check`.")
    for number, each in found.items():
        told += term.waiting(number, each["checks"], decided[number].checks if number in decided else ())
    told += [f"{n}: {before[n]:g} -> {total:g} points" for n, total in totals.items() if before.get(n, total) != total]
    names, collected = collect.kept(out / "names.json"), collect.kept(out / "collection.json")
    for number, lines in made.items():
        _feedback(out, number, found[number], lines, rules.most, said[number], collected.get(number, []))
    comments = {number: " ".join(each) for number, each in said.items()}
    files.write(out / "grades.csv", sheet.text(names, made, rules.most, comments).encode(errors="replace"))
    files.write(out / "overview.pdf", feedback.overview(found, made, rules.most, collected))
    files.write(out / "alike.html", _alike(out, found).encode(errors="replace"))
    files.write(out / "points.json", json.dumps(totals, indent=1))
    return told + worksheet.give_back(out, made, rules.most, platform, column)


def _alike(out, found):
    """The page with pairs of scripts and answers that are alike."""
    pairs = likeness.pairs({number: each["alike"] for number, each in found.items()})
    paths, numbers = collect.submissions(out), {number for pair in pairs for number in pair[1:3]}
    texts = {n: likeness.texts(collect.contents(paths[n]), found[n]["answers"]) for n in numbers}
    return likeness.page(pairs, texts)


def _feedback(out, number, found, lines, most, comments, collected):
    """Set the feedback on a submission, where its content is not that of the PDF that is there."""
    content = [[asdict(line) for line in lines], [asdict(each) for each in found["findings"]], found["told"]]
    code = Path(feedback.__file__).read_text(encoding="utf-8")
    mark = hashlib.sha256(json.dumps([content, comments, collected, most, code]).encode(errors="replace")).hexdigest()
    path, kept = out / f"feedback/{number}.pdf", out / f"feedback/.{number}"
    if path.exists() and _text(kept) == mark:
        return
    files.write(path, feedback.pdf(number, found, lines, most, comments, collected))
    files.write(kept, mark)


def _text(path):
    with suppress(OSError):
        return path.read_text(encoding="utf-8")
    return None
