"""A finding about the evidence: for a person, who decides. No finding takes a point by itself."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from labs import files

Severity = Literal["note", "look", "serious"]
SEVERITIES = get_args(Severity)

# What an honest cause could be, by the kind of finding; a person reads it beside what was seen.
HONEST = files.beside(__file__, "honest.toml")


@dataclass(frozen=True)
class Finding:
    """kind: a key of HONEST, or a kind of the report's own findings; where: the run, task or file; seen: a sentence."""

    kind: str
    severity: Severity
    where: str
    seen: str
    __pydantic_config__: ClassVar = {"extra": "forbid"}  # where it is read from a file

    @property
    def honest(self):
        return HONEST.get(self.kind, "see what the report says about it")


@dataclass(frozen=True)
class CheckResult:
    """How a check was judged. how: outside, inside or person, as teaching.grading.judge says; text: the hint.

    Where a person decides, the state is what was said in the sandbox, and gives no points; code is what the student
    wrote for this check. Open and not left to a person is what was not done.
    """

    state: Literal["right", "wrong", "open"]
    how: str
    text: str = ""
    code: str | None = ""
    __pydantic_config__: ClassVar = {"extra": "allow"}  # of a newer kit, where it is read from a file


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
