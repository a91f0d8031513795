"""Points: a pure function of what was found about a submission, the rubric and the marks. Nothing else goes in."""

from dataclasses import dataclass

from teaching.grading import pins
from teaching.grading.finding import by_id
from teaching.grading.marks import Marks, answer_of, digest

NOT_JUDGED = "not judged: it was not run yet (`teach in`)"


@dataclass(frozen=True)
class PointsLine:
    """Points for one check or item of the rubric, of how many, and why in a sentence. open: a person has to decide;
    state: right, wrong (also in part), not done, or open."""

    id: str
    points: float
    of: float
    why: str
    open: bool = False
    state: str = "right"


def points_lines(found, rubric, marks=None):
    """A PointsLine for each check and rubric item. found: of check.results; marks: of this submission, or None."""
    marks = marks or Marks()
    judged, pinned, handed = by_id(found["checks"]), pins.pinned(rubric.pin, found), handed_in(found)
    checks = [(id, of) for id, of in rubric.checks.items() if of]
    texts = {id: answer_of(found, rubric, id) for id in marks.stamps}
    now = {id: digest(text) for id, text in texts.items() if text or id in rubric.items}
    changed = {id for id, by in marks.stamps.items() if by.answer and by.answer != now.get(id, by.answer)}
    shares = {id: share for id, share in marks.checks.items() if id not in changed}  # new code is judged anew
    made = [_check(id, of, judged.get(id), shares.get(id), pinned.get(id), handed) for id, of in checks]
    for id, (answer, item) in rubric.items.items():
        share, text = marks.items.get(id), found["answers"].get(answer)
        got, why, state = (share or 0.0) * item.points, item.text, _state(share)
        if share is not None and id in changed:
            since = "was changed" if text else "is gone"
            why, state = f"marked with {share:g}, and the answer {since} since: look at it again", "open"
        elif share is None:
            why, state = ("not marked yet", "open") if text else ("no answer is written", "not done")
        made.append(PointsLine(id, got, item.points, why, open=state == "open", state=state))
    for kind, each in marks.findings.items():
        if each.state == "confirmed" and (off := rubric.findings.get(kind, 0.0)):
            made.append(PointsLine(kind, -off, 0.0, each.sentence or "a finding that was confirmed"))
    return made


def handed_in(found):
    """Whether there was anything to look at. In an empty or damaged submission nothing can be open."""
    return any(found.get(key) for key in ("notebooks", "answers", "findings", "alike", "steps", "tables"))


def _check(id, of, judged, share, pin, handed):
    if share is not None:
        why = f"a person has given it {share * of:g} of {of:g} points"
        return PointsLine(id, share * of, of, why, state=_state(share))
    if not handed:
        return PointsLine(id, 0.0, of, "nothing that was handed in can be read", state="not done")
    if judged is None:
        return PointsLine(id, 0.0, of, NOT_JUDGED, open=True, state="open")
    if "fell" in judged:
        why = f"right as it was judged first; now: {judged['fell']}"
        return PointsLine(id, of, of, why, open=True, state="open")
    if judged["how"] == "person":
        return PointsLine(id, 0.0, of, judged["text"], open=True, state="open")
    if judged["state"] == "right":
        return PointsLine(id, of, of, judged["text"] or "right")
    state = "wrong" if judged["state"] == "wrong" else "not done"
    return PointsLine(id, pin.share * of if pin else 0.0, of, judged["text"] or judged["state"], state=state)


def _state(share):
    return "right" if share == 1 else "wrong"


def total(made):
    """The sum of some PointsLines, not below 0."""
    return round(max(0.0, sum(line.points for line in made)), 3)
