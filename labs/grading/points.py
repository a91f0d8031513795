"""Points: a pure function of what was found about a submission, the rubric and the marks. Nothing else goes in."""

from dataclasses import dataclass

from labs.grading import term
from labs.grading.marks import Marks


@dataclass(frozen=True)
class Line:
    """Points for one check or item of the rubric, of how many, and why in a sentence. open: a person has to decide."""

    id: str
    points: float
    of: float
    why: str
    open: bool = False


def lines(found, rubric, marks=None):
    """A Line for each check and item of the rubric. found: of check.results; marks: of this submission, or None."""
    marks = marks or Marks()
    judged = {id: each for of_one in found["checks"].values() for id, each in of_one.items()}
    made = [_check(id, of, judged.get(id), marks.checks.get(id)) for id, of in rubric.checks.items() if of]
    for id, (answer, item) in rubric.items.items():
        share, why = marks.items.get(id), "not marked yet"
        if share is not None and marks.of.get(id, now := term.digest(found["answers"].get(answer))) != now:
            share, why = None, f"its answer has changed since it was marked, {share:g} of it then: look at it again"
        if share is None and not found["answers"].get(answer):
            made.append(Line(id, 0.0, item.points, "no answer is written"))
        elif share is None:
            made.append(Line(id, 0.0, item.points, why, open=True))
        else:
            made.append(Line(id, share * item.points, item.points, item.text))
    for kind in marks.confirmed:
        if off := rubric.findings.get(kind, 0.0):
            made.append(Line(kind, -off, 0.0, "a finding that was confirmed"))
    return made


def _check(id, of, judged, share):
    if share is not None:
        return Line(id, share * of, of, "decided by a person")
    if judged is None:
        return Line(id, 0.0, of, "not judged")
    if "fell" in judged:
        return Line(id, of, of, f"right as it was judged first; now: {judged['fell']}", open=True)
    if judged["how"] == "person":
        return Line(id, 0.0, of, judged["text"], open=True)
    return Line(id, of if judged["state"] == "right" else 0.0, of, judged["text"] or judged["state"])


def total(made):
    """The sum of some Lines, not below 0."""
    return round(max(0.0, sum(line.points for line in made)), 3)
