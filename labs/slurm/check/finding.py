"""What is wrong with a batch script: one finding."""

from typing import NamedTuple


class ScriptFinding(NamedTuple):
    """line_number: in the script, from 1. problem: what it is and does, fix: what to write instead, each in sentences.
    by_task: a task's own check says this, too, so there it is not repeated: where bash ends the script, numbers of
    workers and images.
    """

    line_number: int
    problem: str
    fix: str
    by_task: bool = False

    def text(self) -> str:
        """For people: the line and the problem, then the fix."""
        return f"line {self.line_number}: {self.problem}\n    -> {self.fix}"
