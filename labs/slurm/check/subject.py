"""A batch script in all the forms that checks look at."""

import os
import re

from labs import blanks
from labs.sandbox import SandboxError
from labs.slurm import directives, sites, trial
from labs.slurm.check import form, training


class Subject:
    """text: as read; lines: with plain line ends. script: as written; meant: with the directives that sbatch ignores;
    asked: what each part of `meant` asks for, as a rule one. blank: {line number: line} of blanks. shell: is it for
    bash? broken: the ScriptFinding of what keeps bash from reading it, or None. untried: why it was not tried out, or
    None. tried: without a trial one without calls. trainings: those that the trial saw. folder: from which it is taken
    to be submitted, below the course's. elsewhere: does its file lie outside of the course? name, known: as for
    trial.try_out.
    """

    def __init__(self, text, name, site, root, elsewhere=False):
        unix = text.removeprefix("\ufeff").replace("\r\n", "\n")
        self.text, self.name, self.site, self.root, self.elsewhere = text, name, site, root, elsewhere
        self.lines, self.blank = unix.split("\n"), dict(blanks.blanks_of_batch(text))
        self.script = directives.read(unix)
        self.meant = self.script.meant()
        self.asked = [part.resources() for part in self.meant.parts]
        self.shell = bool(re.match(r"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?(bash|sh|dash)(?:\s|$)|(?!#!)", unix))
        self.broken = (form.merge(unix) or form.syntax(unix)) if self.shell else None
        mine = {name: site.personal[key] for key, name in sites.PERSONAL.items() if key in site.personal}
        self.known = dict(os.environ) | mine
        self.tried, self.untried = trial.Tried([]), "it has blanks" if self.blank else trial.trial_missing(unix)
        self.untried = "bash cannot read it" if self.broken and not self.blank else self.untried
        try:
            self.tried = self.tried if self.untried else trial.try_out(unix, name, root, self.known)
        except SandboxError as problem:  # there was one before
            self.untried = str(problem)
        self.trainings = training.started(self.tried, root)
        self.folder = next((one.submitted for one in self.trainings if one.exists), "")

    def unknown(self):
        """What of the script is not known, in words."""
        rows = [f"what it starts, as it was not tried out: {self.untried}"] if self.untried else []
        told = [f"line {line}: {words}" if line else words for line, words in self.tried.unknown]
        if self.folder:
            told.append(f"where you submit it; its Python script is found from {self.folder}, so that was taken")
        return rows + list(dict.fromkeys(told))

    def miswritten(self, part):
        """Does a directive that sbatch refuses hold this text? What it should have said is then told already."""
        return any(part in word.lower() for _, word, *_ in self.script.refused)

    def code(self):
        """(line number, text without comment) of the lines that are commands."""
        for number, line in enumerate(self.lines, 1):
            text = line.split(" #")[0] if not line.lstrip().startswith("#") else ""
            if text.strip():
                yield number, text
