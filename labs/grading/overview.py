"""PDF for the instructor: points, findings and what was decided about them, mistakes, and what waits for a person."""

from collections import Counter
from pathlib import Path
from statistics import fmean

from labs.grading import disputes, feedback, pins, points, term
from labs.printed import few
from labs.report import document

MOST_HINTS, LONGEST = 20, 300
MOST_SPEEDUPS = 12  # of one submission, in the figure of all


def pdf(found, made, rules, own, disputed, collected):
    """The overview, as bytes. found, made: {number: ...}; rules: the Rubric; own: {number: Marks};
    disputed: {number: {id: Dispute}}; collected: {number: lines}."""
    lines = {}
    for of_one in made.values():
        for line in of_one:
            lines.setdefault(line.id, []).append(line)
    figure = _speedups({number: each["speedups"] for number, each in found.items() if each["speedups"]})
    data = {
        "title": "Overview of the submissions",
        "count": len(found),
        "most": f"{rules.most:g}",
        "rows": [
            [
                number,
                f"{points.total(of_one):g}",
                str(sum(line.open for line in of_one)),
                str(len(found[number]["findings"])),
                next((f"{f.severity}: {f.where}, {f.seen}"[:LONGEST] for f in found[number]["findings"]), ""),
            ]
            for number, of_one in sorted(made.items())
        ],
        "tasks": [
            [
                feedback.titled(id, rules),
                f"{of[0].of:g}",
                f"{fmean(one.points / one.of for one in of):.2f}",
                f"{sum(one.open for one in of)}",
            ]
            for id, of in lines.items()
            if of[0].of
        ],
        "hints": [
            [
                str(len(each.numbers)),
                feedback.titled(each.check, rules),
                each.hint[:LONGEST],
                next((pin.comment for pin in rules.pin if pin.is_about(each.check, each.hint)), ""),
            ]
            for each in pins.mistakes(found)[:MOST_HINTS]
        ],
        "findings": [
            [number, each.severity, f"{each.where}, {each.kind}: {each.seen}"[:LONGEST], each.honest, state]
            for number, of_one in sorted(found.items())
            for each, state in states(of_one["findings"], own[number])
            if each.severity != "note"
        ],
        "waiting": [[said, ", ".join(numbers)] for said, numbers in waiting(made, rules)],
        "disputes": [
            [number, feedback.titled(id, rules), each[id].reason[:LONGEST]]
            for number, each in sorted(disputed.items())
            for id in disputes.waits(each, own[number])
        ],
        "told": [[number, line[:LONGEST]] for number, of_one in sorted(found.items()) for line in of_one["told"]],
        "alt": figure.alt if figure else None,
        "collected": [[number, line[:LONGEST]] for number, of_one in sorted(collected.items()) for line in of_one],
    }
    beside = {"speedups.svg": document.svg(figure)} if figure else {}
    return document.of_data(Path(__file__).with_name("overview.typ"), data, beside)


def waiting(made, rules):
    """(title of a check or written answer that a person has to decide, the numbers of those whose it is), in the order
    of the rubric."""
    found = {}
    for number, of_one in sorted(made.items()):
        for line in of_one:
            id = rules.items[line.id][0] if line.id in rules.items else line.id
            numbers = found.setdefault(id, [])
            if line.open and line.why != points.NOT_JUDGED and number not in numbers:
                numbers.append(number)
    return [(feedback.titled(id, rules), numbers) for id, numbers in found.items() if numbers]


def still_open(found, made, rules, own, disputed):
    """Lines on what a person still has to do, of the arguments of `pdf`."""
    for number, each in found.items():
        yield from term.waiting(number, each["checks"], own[number].checks)
    unrun = Counter(n for n, of_one in made.items() for line in of_one if line.why == points.NOT_JUDGED)
    yield from points.not_run(unrun)
    for said, numbers in waiting(made, rules):
        yield f"Open: {said}: {few(numbers)}"
    waits = [
        number
        for number, each in found.items()
        if any(one.severity != "note" and not is_decided(one, own[number]) for one in each["findings"])
    ]
    if waits:
        yield f"Findings that nobody has confirmed or dismissed, in {few(waits)}: students get nothing of them."
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


def _speedups(runs):
    """Every speedup with its interval over the submissions; None where there is none."""
    from labs.show import figure as figures

    if not runs:
        return None
    figure, (axis,) = figures.new_figure(width=7.5)
    said, marked = [], set()
    for place, (number, of_one) in enumerate(sorted(runs.items())):
        for source, workers, speedup, interval in of_one[:MOST_SPEEDUPS]:
            ends = interval or (speedup, speedup)
            style = {"fmt": figures.MARKERS[workers % 6], "color": figures.COLOURS[workers % 6], "capsize": 2}
            label = None if workers in marked else f"{workers} workers"
            marked.add(workers)
            reach = [[max(0, speedup - ends[0])], [max(0, ends[1] - speedup)]]
            axis.errorbar(place, speedup, reach, label=label, **style)
            within = f" [{interval[0]:.3g}, {interval[1]:.3g}]" if interval else ""
            said.append(f"{number}, {source.removesuffix('.json')}: {speedup:.3g}{within}")
    axis.set_xticks(range(len(runs)), sorted(runs), rotation=90)
    axis.set(xlabel="submission", ylabel="speedup (times)", ylim=(0, None))
    axis.legend()
    alt = "Speedups by submission, with 95 % intervals. " + "; ".join(said) + "."
    return figures.finished(figure, alt, "measured", note="as the records say")
