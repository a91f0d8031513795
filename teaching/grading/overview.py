"""What a person still has to do of a class, a line each; and what was decided about findings."""

from labs.checks import tasks
from labs.printed import few, grouped
from teaching.grading import collect, feedback, points

MOST = 20  # questions of the same submissions that have a line each


def still_open(graded, made):
    """Lines on what a person still has to do of a Graded. made: {number: its PointsLines}"""
    found, own, rules = graded.found, {number: graded.own(number) for number in graded.found}, graded.rules
    open_lines = [(number, line) for number, of_one in sorted(made.items()) for line in of_one if line.open]
    if unrun := [(number, line.id) for number, line in open_lines if line.why == points.NOT_JUDGED]:
        whose, which = sorted({number for number, _ in unrun}), {tasks.find(id)[0].notebook[:2] for _, id in unrun}
        said = f"Not run yet, so open: {len(unrun)} checks of {few(whose)}, in notebooks {few(sorted(which))}"
        yield f"{said}. `teach in` runs those that count (`--notebooks`); to count fewer, begin in an empty `--out`."
    for number, lines in collect.not_read(graded.collected).items():
        yield f"{number}: not read: {few(lines, 3)}"
    left = [(rules.question(line.id), n, line.why) for n, line in open_lines if line.why != points.NOT_JUDGED]
    to_decide, again = grouped((id, n) for id, n, _ in left), {(id, n) for id, n, why in left if "marked with" in why}
    together = {}  # {numbers of submissions: their questions}
    for id in dict.fromkeys(map(rules.question, (*rules.checks, *rules.items))):
        if id in to_decide:
            named = (f"{n} (changed since it was marked)" if (id, n) in again else n for n in {*to_decide[id]})
            together.setdefault(few(sorted(named)), []).append(feedback.titled(id, rules))
    for numbers, titles in together.items():  # as of a notebook that could not be run
        many = [f"{len(titles)} questions, {titles[0]} to {titles[-1]}"] if len(titles) > MOST else titles
        yield from (f"Open: {title}: {numbers}" for title in many)
    for number, marked in own.items():
        seen = ((one.kind, f"{one.where}: {one.seen}") for one in found[number]["findings"] if undecided(one, marked))
        for kind, where in grouped(seen).items():
            yield f"{number}: nobody has confirmed or dismissed {kind}: {few(where)}. The student gets nothing of it."
        for kind, each in marked.findings.items():
            if kind not in {finding.kind for finding in found[number]["findings"]}:
                gone = f"{number}: {kind} is {each.state}, and nothing of that kind is found there now"
                yield f"{gone}. What is taken off for it stays off: to take that back, delete it in marks.json."
            elif each.state == "confirmed" and not each.sentence:
                yield f"{number}: {kind} is confirmed without a sentence, so its feedback says nothing of it."
        if unknown := sorted((marked.items.keys() - rules.items) | (marked.checks.keys() - rules.checks)):
            yield f"{number}: marks.json has {', '.join(unknown)}, and rubric.toml not, or elsewhere: no points."
    if strangers := sorted(graded.decided.keys() - graded.paths.keys()):
        yield f"marks.json marks {', '.join(strangers)}, and there is no such submission."


def undecided(finding, own):
    """Whether nobody has said anything of a finding that is more than a note."""
    return finding.severity != "note" and not is_decided(finding, own)


def state(finding, own):
    """What a person has said of a finding: open, or confirmed or dismissed, by whom and when."""
    decision = own.findings.get(finding.kind)
    return f"{decision.state} ({decision})".removesuffix(" ()") if is_decided(finding, own) else "open"


def is_decided(finding, own):
    """Whether a person has said something of a finding; those of its kind elsewhere may have come later."""
    decision = own.findings.get(finding.kind)
    return decision is not None and (not decision.about or finding.where in decision.about)
