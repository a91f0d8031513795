"""What is wrong with a batch script: one finding, and what all checks look at."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

_TEXTS = tomllib.loads(Path(__file__).with_name("findings.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, order=True)
class Finding:
    """line_number: in the script, from 1. problem, why, fix: what it is, what it does, what to write instead, each a
    sentence. refused: the scheduler may say the same (`sbatch --test-only`); without it, only this check does."""

    line_number: int
    problem: str
    why: str
    fix: str
    refused: bool = field(default=False, compare=False)

    def text(self):
        """For people: the line and the problem, then reason and fix."""
        return f"line {self.line_number}: {self.problem}\n    {self.why}\n    -> {self.fix}"


def finding(name, line_number, /, **gaps):
    """The Finding that findings.toml has under this name, with the {gaps} of its sentences filled."""
    text = _TEXTS[name]
    sentences = [text[part].format(**gaps) for part in ("problem", "why", "fix")]
    return Finding(line_number, *sentences, text.get("refused", False))


def several(number, thing):
    """ "1 GPU", "2 GPUs"."""
    return f"{number} {thing}{'s' * (number > 1)}"


@dataclass
class Subject:
    """A script in all the forms that checks look at.

    script: directives.Script as written; meant: with the directives that sbatch ignores; asked: what `meant` asks for.
    blank: {line number: line} of blanks. commands: what it would start (starts.Command), [] if that cannot be told.
    reading: the starts.Reading they stand in; more: a function that gives the one with twice the nodes. shell: is it a
    script for bash? Of others only the directives are read.
    """

    text: str
    lines: list
    site: object
    root: Path
    script: object
    meant: object
    asked: dict
    blank: dict
    reading: object
    more: object
    shell: bool

    @property
    def commands(self):
        return self.reading.commands

    def miswritten(self, part):
        """Does a directive that sbatch refuses hold this text? What it should have said is then told already."""
        return any(part in word.lower() for _, word, _ in self.script.refused)

    def line(self, *options):
        """Line number of the directive that counts for the first of these options that is given, else of the last
        directive, where a missing one would go, else 1."""
        for option in options:
            if self.meant.find(option):
                return self.meant.find(option).line_number
        return max((found.line_number for found in self.meant.directives), default=1)

    def code(self):
        """(line number, text without comment) of the lines that are commands."""
        for number, line in enumerate(self.lines, 1):
            text = line.split(" #")[0] if not line.lstrip().startswith("#") else ""
            if text.strip():
                yield number, text
