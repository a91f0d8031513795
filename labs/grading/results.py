"""What comes out of a grading: grades.csv, feedback/*.pdf, overview.pdf, alike.html; and whose points moved."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from labs import files
from labs.errors import UseError
from labs.grading import (
    check,
    collect,
    disputes,
    feedback,
    likeness,
    marks,
    overview,
    pins,
    points,
    rubric,
    sheet,
    shown,
    term,
    worksheet,
)

FEW = 8  # numbers of submissions in one line


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
    for number, each in found.items():
        told += term.waiting(number, each["checks"], decided[number].checks if number in decided else ())
    told += [f"{n}: {before[n]:g} -> {total:g} points" for n, total in totals.items() if before.get(n, total) != total]
    names, collected = collect.kept(out / "names.json"), collect.kept(out / "collection.json")
    disputed = {number: each for number, each in disputes.every(out).items() if number in found}
    told += _waiting(found, made, rules, own, disputed)
    for number, lines in made.items():
        given = (who(names.get(number)), found[number], lines, rules, own[number], disputed.get(number))
        _feedback(out, number, paths[number], given, collected.get(number, []))
    comments = {number: " ".join(_comments(rules, own[number], found[number])) for number in found}
    files.write(out / "grades.csv", sheet.text(names, made, rules.most, comments).encode(errors="replace"))
    files.write(out / "overview.pdf", overview.pdf(found, made, rules, own, disputed, collected))
    files.write(out / "alike.html", _alike(out, found).encode(errors="replace"))
    files.write(out / "points.json", json.dumps(totals, indent=1))
    return told + worksheet.give_back(out, made, rules.most, platform, column)


def _few(numbers):
    return ", ".join(numbers[:FEW]) + (f" and {len(numbers) - FEW} more" if numbers[FEW:] else "")


def who(name):
    """The student's own name, if the learning platform gave one; None where a folder's or nobody's is all there is."""
    known = name and name["platform"] in ("moodle", "canvas") and name["who"].strip()
    return known if known and not known.casefold().startswith("anon") else None


def _comments(rules, own, found):
    """The comments that a student gets: marked by a person, and pinned to their mistakes."""
    said = [rules.comments.get(each, each) for each in own.comments]
    return said + [pin.comment for pin in pins.pinned(rules.pin, found).values()]


def _waiting(found, made, rules, own, disputed):
    """Lines on what a person has still to do; whose it is stands in the overview, too."""
    unjudged = {n: sum(line.why == points.NOT_JUDGED for line in lines) for n, lines in made.items()}
    if numbers := [number for number, count in unjudged.items() if count]:
        count = sum(unjudged.values())
        yield f"Not judged yet, so open: {count} checks of {_few(numbers)}. `labs grade check` judges them."
    for said, numbers in overview.waiting(made, rules):
        yield f"Open: {said}: {_few(numbers)}"
    waits = [
        number
        for number, each in found.items()
        if any(one.severity != "note" and not overview.is_decided(one, own[number]) for one in each["findings"])
    ]
    if waits:
        yield f"Findings that nobody has confirmed or dismissed, in {_few(waits)}: students get nothing of them."
    for number, marked in own.items():
        for kind, each in marked.findings.items():
            if kind not in {finding.kind for finding in found[number]["findings"]}:
                yield f"{number}: {kind} was {each.state}, and is not found any more: look again, or --reopen it."
            elif each.state == "confirmed" and not each.sentence:
                yield (
                    f"{number}: {kind} is confirmed without a sentence, so its feedback says nothing of it: "
                    f'labs grade mark {number} --confirm "{kind}" --sentence "..."'
                )
    for number, each in disputed.items():
        if ids := disputes.waits(each, own[number]):
            yield f"{number} disputes {', '.join(ids)}: not answered yet; see the desk."


def _alike(out, found):
    """The page with pairs of scripts and answers that are alike."""
    pairs = likeness.pairs({number: each["alike"] for number, each in found.items()})
    paths, numbers = collect.submissions(out), {number for pair in pairs for number in pair[1:3]}
    texts = {n: likeness.texts(collect.contents(paths[n]), found[n]["answers"]) for n in numbers}
    return likeness.page(pairs, texts)


def _feedback(out, number, packed, given, collected):
    """Set the feedback on a submission, where its content is not that of the PDF that is there."""
    written = shown.code(collect.contents(packed, shown.notebooks()))
    page = feedback.page(number, *given, written, collected)
    code = "".join((feedback.HERE / name).read_text(encoding="utf-8") for name in ("feedback.py", "feedback.typ"))
    mark = hashlib.sha256(json.dumps([page, code]).encode(errors="replace")).hexdigest()
    path, kept = out / f"feedback/{number}.pdf", out / f"feedback/.{number}"
    if path.exists() and _text(kept) == mark:
        return
    files.write(path, feedback.set_pdf("feedback", page))
    files.write(kept, mark)


def _text(path):
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    return None
