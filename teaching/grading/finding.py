"""A finding about the evidence: for a person, who decides. No finding takes a point by itself."""

from dataclasses import dataclass
from typing import Literal, get_args

Severity = Literal["note", "look", "serious"]
SEVERITIES = get_args(Severity)

# What an honest cause could be, by the kind of finding; a person reads it beside what was seen.
HONEST = {
    "clock": "the record was mended by hand after a crash, or written by another recorder",
    "images": "a script of the student's own counts images in another way",
    "log": "the log is of another run of that name, or the machine slept during the training",
    "script": "the script was changed after the run, as for a later task",
    "spread": "a clock with coarse ticks, as on some virtual machines",
    "superlinear": "a worker's share of the data fits into a cache, or the baseline was disturbed",
    "recorded": "the kit's recorded run was copied into the folder of the runs to try something",
    "copy": "two students worked on one machine and share their runs, which the course may allow",
    "repeated": "a record was copied inside the folder, as a backup under another name",
    "alike": "two students worked together, which the course may allow, or took the same words from one source",
    "solution": "a student who quotes the course's own text, or who learnt with an earlier year's solutions",
    "progress": "the check was right once, and its cell was changed later, or needs what was not handed in",
    "stopped": "a file that is damaged, or of another version of the kit",
    "record": "a training that was killed while its record was written; a file damaged on its way",
}


@dataclass(frozen=True)
class Finding:
    """kind: a key of HONEST, or a kind of the report's own findings; where: the run, task or file; seen: a sentence."""

    kind: str
    severity: Severity
    where: str
    seen: str

    @property
    def honest(self):
        return HONEST.get(self.kind, "see what the report says about it")


@dataclass(frozen=True)
class CheckResult:
    """How a check was judged. how: outside, inside or person, as teaching.grading.judge says; text: the hint.

    Where a person decides, the state is what was said in the sandbox, and gives no points. Open and not left to a
    person is what was not done.
    """

    state: Literal["right", "wrong", "open"]
    how: str
    text: str = ""


def by_id(checks):
    """{id: how it was judged} of the checks of all notebooks, {notebook: {id: how it was judged}}."""
    return {id: judged for of_one in checks.values() for id, judged in of_one.items()}


def looked(where, look, *given):
    """The findings of one look. Where it cannot go to its end, what it has found stays and one more finding says so:
    whatever was handed in stops neither the other looks nor anybody else's grading."""
    found = []
    try:
        found.extend(look(*given))
    except Exception as problem:
        seen = f"{look.__name__.strip('_')} could not be looked at to the end: {type(problem).__name__}: {problem}"
        found.append(Finding("stopped", "look", where, seen[:300]))
    return found
