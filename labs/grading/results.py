"""What comes out of a grading: grades.csv, feedback/*.pdf, overview.pdf, alike.html; and whose points moved."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from labs import files
from labs.errors import UseError
from labs.grading import check, collect, disputes, feedback, likeness, marks, overview, points, rubric, sheet, worksheet
from labs.report import document


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
    own = {number: decided.get(number) or marks.Marks() for number in found}
    made = {number: points.lines(each, rules, own[number]) for number, each in found.items()}
    totals = {number: points.total(lines) for number, lines in made.items()}
    before, paths = collect.kept(out / "points.json"), collect.submissions(out)
    told = [f"{len(found)} submissions, {sum(line.open for each in made.values() for line in each)} items are open."]
    if missing := sorted(paths.keys() - found.keys()):
        told.append(f"Not looked at yet, so not in any of this: {', '.join(missing)}. Run `labs grade check`.")
    told += [f"{n}: {before[n]:g} -> {total:g} points" for n, total in totals.items() if before.get(n, total) != total]
    names, collected = collect.kept(out / "names.json"), collect.kept(out / "collection.json")
    disputed = {number: each for number, each in disputes.every(out).items() if number in found}
    told += overview.still_open(found, made, rules, own, disputed)
    for number, lines in made.items():
        given = (who(names.get(number)), found[number], lines, rules, own[number], disputed.get(number))
        page = feedback.page(number, paths[number], *given, collected.get(number, []))
        _feedback(out / f"feedback/{number}.pdf", page)
    comments = {n: " ".join(text for _, text in feedback.comments(found[n], rules, own[n])) for n in found}
    files.write(out / "grades.csv", sheet.text(names, made, rules.most, comments).encode(errors="replace"))
    files.write(out / "overview.pdf", overview.pdf(found, made, rules, own, disputed, collected))
    files.write(out / "alike.html", _alike(out, found).encode(errors="replace"))
    files.write(out / "points.json", json.dumps(totals, indent=1))
    return told + worksheet.give_back(out, made, rules.most, platform, column)


def who(name):
    """The student's own name, if the learning platform gave one; None where a folder's or nobody's is all there is."""
    known = name and name["platform"] in ("moodle", "canvas") and name["who"].strip()
    return known if known and not known.casefold().startswith("anon") else None


def _alike(out, found):
    """The page with pairs of scripts and answers that are alike."""
    pairs = likeness.pairs({number: each["alike"] for number, each in found.items()})
    paths, numbers = collect.submissions(out), {number for pair in pairs for number in pair[1:3]}
    texts = {n: likeness.texts(collect.contents(paths[n]), found[n]["answers"]) for n in numbers}
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
