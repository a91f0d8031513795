"""What a person has to know of a class, as text: findings and what was decided about them, mistakes, what is open."""

from statistics import fmean

from labs.checks import tasks
from labs.printed import few, grouped, printable, several
from teaching.grading import collect, feedback, pins, points, term

MOST_HINTS = 20


def text(graded, made):
    """The overview of a Graded: what grades.csv and the desk do not say of the class as a whole.

    made: {number: its PointsLines}
    """
    lines = grouped((line.id, line) for _, of_one in sorted(made.items()) for line in of_one if line.of)
    titled = {id: feedback.titled(id, graded.rules) for id in lines}
    parts = {"Mean share of the points": [], "Most frequent hints": [], "Findings": [], "What was seen": []}
    for id, of_id in lines.items():
        share, count = fmean(line.points / line.of for line in of_id), sum(line.open for line in of_id)
        parts["Mean share of the points"].append(f"{share:.2f} of {of_id[0].of:g}, {count} open: {titled[id]}")
    for each in pins.mistakes(graded.found)[:MOST_HINTS]:
        who, asked = several(len(each.numbers), "submission"), feedback.titled(each.check, graded.rules)
        parts["Most frequent hints"].append(f"{who}, {asked}: {each.hint}")
    for number, found in sorted(graded.found.items()):
        for each, state in states(found["findings"], graded.own(number)):
            said = f"{number}, {each.severity}, {state}: {each.where}, {each.kind}: {each.seen} (honest: {each.honest})"
            parts["Findings"] += [said] * (each.severity != "note")
        parts["What was seen"] += [f"{number}: {line}" for line in (*graded.collected.get(number, ()), *found["told"])]
    return "\n\n".join("\n".join([f"{head}:", *map(printable, of)]) for head, of in parts.items()) + "\n"


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
    """Lines on what a person still has to do, of the arguments of `text`."""
    found, own = graded.found, {number: graded.own(number) for number in graded.found}
    for number, each in found.items():
        yield from term.waiting(number, each["checks"], own[number].checks)
    unrun = [(number, line.id) for number, of_one in made.items() for line in of_one if line.why == points.NOT_JUDGED]
    if unrun:
        whose, which = sorted({number for number, _ in unrun}), {tasks.find(id)[0].notebook[:2] for _, id in unrun}
        said = f"Not run yet, so open: {len(unrun)} checks of {few(whose)}, in notebooks {few(sorted(which))}"
        yield f"{said}. `teach in` runs those that count (`--notebooks`); to count fewer, begin in an empty `--out`."
    for number, lines in collect.not_read(graded.collected).items():
        yield f"{number}: not read: {few(lines, 3)}"
    for said, numbers in waiting(made, graded.rules):
        yield f"Open: {said}: {few(numbers)}"
    if waits := [n for n, each in found.items() if any(undecided(one, own[n]) for one in each["findings"])]:
        yield f"Findings that nobody has confirmed or dismissed, in {few(waits)}: students get nothing of them."
    for number, marked in own.items():
        for kind, each in marked.findings.items():
            if kind not in {finding.kind for finding in found[number]["findings"]}:
                gone = f"{number}: {kind} is {each.state}, and nothing of that kind is found there now"
                yield f"{gone}. What is taken off for it stays off: to take that back, delete it in marks.json."
            elif each.state == "confirmed" and not each.sentence:
                yield f"{number}: {kind} is confirmed without a sentence, so its feedback says nothing of it."
        for what, marks, known in (
            ("items", marked.items, graded.rules.items),
            ("checks", marked.checks, graded.rules.checks),
        ):
            if unknown := sorted(marks.keys() - known):
                yield f"{number}: marks.json has {', '.join(unknown)} among {what}, and rubric.toml not: no points."
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
            yield each, decision.state + (f" ({decision})" if str(decision) else "")
        else:
            yield each, f"new; others were {decision.state} ({decision})" if decision else "open"


def is_decided(finding, own):
    """Whether a person has said something of a finding; those of its kind elsewhere may have come later."""
    decision = own.findings.get(finding.kind)
    return decision is not None and (not decision.about or finding.where in decision.about)
