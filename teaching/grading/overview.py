"""PDF for the instructor: points, findings and what was decided about them, mistakes, and what waits for a person."""

from pathlib import Path
from statistics import fmean

from labs.printed import few, grouped
from labs.report import document
from teaching.grading import collect, feedback, pins, points, term

MOST_HINTS, LONGEST = 20, 300


def pdf(graded, made):
    """The overview of a Graded, as bytes. made: {number: its PointsLines}."""
    found, rules, numbers = graded.found, graded.rules, sorted(made)
    lines = grouped((line.id, line) for of_one in made.values() for line in of_one)
    data = {
        "title": "Overview of the submissions",
        "count": len(found),
        "most": f"{rules.most:g}",
        "rows": [[number, *_row(made[number], found[number]["findings"])] for number in numbers],
        "tasks": [[feedback.titled(id, rules), *_task(of)] for id, of in lines.items() if of[0].of],
        "hints": [
            [str(len(each.numbers)), feedback.titled(each.check, rules), each.hint[:LONGEST], _pinned(each, rules)]
            for each in pins.mistakes(found)[:MOST_HINTS]
        ],
        "findings": [
            [number, each.severity, f"{each.where}, {each.kind}: {each.seen}"[:LONGEST], each.honest, state]
            for number in numbers
            for each, state in states(found[number]["findings"], graded.own(number))
            if each.severity != "note"
        ],
        "waiting": [[said, ", ".join(whose)] for said, whose in waiting(made, rules)],
        "told": [[number, line[:LONGEST]] for number in numbers for line in found[number]["told"]],
        "collected": [[number, line[:LONGEST]] for number, told in sorted(graded.collected.items()) for line in told],
    }
    return document.of_data(Path(__file__).with_name("overview.typ"), data)


def _row(lines, findings):
    """Points, items that are open, findings, and the first of these in words."""
    first = [f"{each.severity}: {each.where}, {each.seen}"[:LONGEST] for each in findings[:1]]
    return f"{points.total(lines):g}", str(sum(line.open for line in lines)), str(len(findings)), "".join(first)


def _task(lines):
    """Points of a check or item, the mean share of them, and how many are open."""
    mean = fmean(line.points / line.of for line in lines)
    return f"{lines[0].of:g}", f"{mean:.2f}", f"{sum(line.open for line in lines)}"


def _pinned(mistake, rules):
    return next((pin.comment for pin in rules.pin if pin.is_about(mistake.check, mistake.hint)), "")


def waiting(made, rules):
    """(title of a check or written answer that a person has to decide, the numbers of those whose it is), in the order
    of the rubric."""
    found = {rules.question(id): {} for id in (*rules.checks, *rules.items)}
    for number, of_one in sorted(made.items()):
        for line in of_one:
            if line.open and line.why != points.NOT_JUDGED:
                found[rules.question(line.id)][number] = True
    return [(feedback.titled(id, rules), list(numbers)) for id, numbers in found.items() if numbers]


def still_open(graded, made):
    """Lines on what a person still has to do, of the arguments of `pdf`."""
    found, own = graded.found, {number: graded.own(number) for number in graded.found}
    for number, each in found.items():
        yield from term.waiting(number, each["checks"], own[number].checks)
    unrun = [number for number, of_one in made.items() for line in of_one if line.why == points.NOT_JUDGED]
    if unrun:
        yield f"Not run yet, so open: {len(unrun)} checks of {few(sorted({*unrun}))}. `teach in` runs them."
    for number, lines in collect.not_read(graded.collected).items():
        yield f"{number}: not read: {few(lines, 3)}"
    for said, numbers in waiting(made, graded.rules):
        yield f"Open: {said}: {few(numbers)}"
    if waits := [n for n, each in found.items() if any(undecided(one, own[n]) for one in each["findings"])]:
        yield f"Findings that nobody has confirmed or dismissed, in {few(waits)}: students get nothing of them."
    for number, marked in own.items():
        for kind, each in marked.findings.items():
            if kind not in {finding.kind for finding in found[number]["findings"]}:
                gone = f"{number}: {kind} was {each.state}, and is not found any more"
                yield f"{gone}: to take that back, delete it in marks.json."
            elif each.state == "confirmed" and not each.sentence:
                yield f"{number}: {kind} is confirmed without a sentence, so its feedback says nothing of it."
        if unknown := sorted({*marked.items, *marked.checks} - {*graded.rules.items, *graded.rules.checks}):
            yield f"{number}: marks.json marks {', '.join(unknown)}, which rubric.toml does not have: no points."
    if strangers := sorted(graded.decided.keys() - graded.paths.keys()):
        yield f"marks.json marks {', '.join(strangers)}, and there is no such submission."


def undecided(finding, own):
    """Whether nobody has said anything of a finding that is more than a note."""
    return finding.severity != "note" and not is_decided(finding, own)


def states(findings, own):
    """(finding, what a person has said of it: open, or confirmed or dismissed, by whom and when)."""
    for each in findings:
        decision = own.findings.get(each.kind)
        if is_decided(each, own):
            yield each, f"{decision.state} ({decision})"
        else:
            yield each, f"new; others were {decision.state} ({decision})" if decision else "open"


def is_decided(finding, own):
    """Whether a person has said something of a finding; those of its kind elsewhere may have come later."""
    decision = own.findings.get(finding.kind)
    return decision is not None and (not decision.about or finding.where in decision.about)
