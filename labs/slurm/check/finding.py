"""What is wrong with a batch script: one finding, and what all checks look at."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from labs import files
from labs.slurm.check.training import Training
from labs.slurm.directives import BatchScript
from labs.slurm.sites import Site
from labs.slurm.trial import Tried

_TEXTS = files.beside(__file__, "findings.toml")


@dataclass(frozen=True, order=True)
class ScriptFinding:
    """line_number: in the script, from 1. problem, why, fix: what it is, what it does, what to write instead, each a
    sentence. refused: the scheduler may say the same (`sbatch --test-only`); without it, only this check does.
    severity: "error" for what will not run or computes something else than asked, else "note". name: that of its texts
    in findings.toml."""

    line_number: int
    problem: str
    why: str
    fix: str
    refused: bool = field(default=False, compare=False)
    severity: str = field(default="error", compare=False)
    name: str = field(default="", compare=False)

    def text(self) -> str:
        """For people: the line and the problem, then reason and fix."""
        kind = "" if self.severity == "error" else f"{self.severity}: "
        return f"line {self.line_number}: {kind}{self.problem}\n    {self.why}\n    -> {self.fix}"


def finding(name, line_number, /, severity=None, **gaps):
    """The ScriptFinding that findings.toml has under this name, with the {gaps} of its sentences filled; severity: in
    place of the one that findings.toml gives."""
    text = _TEXTS[name]
    sentences = {part: text[part].format(**gaps) for part in ("problem", "why", "fix")}
    severity, refused = severity or text.get("severity", "error"), text.get("refused", False)
    return ScriptFinding(line_number or 1, **sentences, refused=refused, severity=severity, name=name)


@dataclass
class Subject:
    """A script in all the forms that checks look at.

    script: as written; meant: with the directives that sbatch ignores; asked: what `meant` asks for. blank: {line
    number: line} of blanks. untried: why it was not tried out, or None. tried: without a trial one without calls.
    trainings: those that the trial saw. shell: is it a script for bash?
    name, known: as for trial.try_out.
    """

    text: str
    lines: list[str]
    site: Site
    root: Path
    script: BatchScript
    meant: BatchScript
    asked: dict[str, float | None]
    blank: dict[int, str]
    untried: str | None
    tried: Tried
    trainings: list[Training]
    shell: bool
    name: str
    known: dict[str, str]

    @property
    def can_be_tried(self):
        """Is it in a language that is tried out where there is a sandbox?"""
        return self.shell and not re.match(r"#!.*\bksh\b", self.lines[0])

    @property
    def calls(self):
        return self.tried.calls

    def miswritten(self, part):
        """Does a directive that sbatch refuses hold this text? What it should have said is then told already."""
        return any(part in word.lower() for _, word, *_ in self.script.refused)

    def line(self, *options):
        """Line number of the directive that counts for the first of these options that is given, else of the last
        directive, where a missing one would go, else 1."""
        for option in options:
            if found := self.meant.find(option):
                return found.line_number
        return max((found.line_number for found in self.meant.directives), default=1)

    def code(self):
        """(line number, text without comment) of the lines that are commands."""
        for number, line in enumerate(self.lines, 1):
            text = line.split(" #")[0] if not line.lstrip().startswith("#") else ""
            if text.strip():
                yield number, text
