"""What is wrong with a batch script: one finding."""

from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class ScriptFinding:
    """line_number: in the script, from 1. problem, why, fix: what it is, what it does, what to write instead, each a
    sentence. severity: "error" for what will not run or computes something else than asked, else "note"."""

    line_number: int
    problem: str
    why: str
    fix: str
    severity: str = field(default="error", compare=False)
    name: str = field(default="", compare=False)

    def text(self) -> str:
        """For people: the line and the problem, then reason and fix."""
        kind = "" if self.severity == "error" else f"{self.severity}: "
        return f"line {self.line_number}: {kind}{self.problem}\n    {self.why}\n    -> {self.fix}"


def error(name, line_number, problem, why, fix, severity="error"):
    """A ScriptFinding."""
    return ScriptFinding(line_number or 1, problem, why, fix, severity, name)


def note(*words):
    """A ScriptFinding that is no error."""
    return error(*words, severity="note")
