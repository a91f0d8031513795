"""The check of a batch script: what `sbatch --test-only` sees in it and what it does not see.

First its form: blanks, bash's syntax, the directives. If that is right, the script is tried out (labs.slurm.trial), and
what it asks for and starts is judged by the site's rules. Where it cannot be tried out, the report says first what was
not looked at. What only the site can tell gives no finding; the report names it.
"""

from pathlib import Path

from labs import printed, sandbox
from labs.errors import UseError
from labs.slurm import directives, sites, trial
from labs.slurm.check import commands, form, resources, training
from labs.slurm.check.finding import ScriptFinding
from labs.slurm.sites import Site


class CheckedScript:
    """A batch script, and what is known of it.

    text: as read; name: of its file; lines: with plain line ends. script: its BatchScript; asked: its resources.
    findings: the ScriptFindings, in order of lines. untried: why it was not tried out, or None. tried: without a trial
    one without calls. trainings: those that the trial saw.
    """

    def __init__(self, text: str, name: str, site: Site, root: Path):
        unix = text.removeprefix("\ufeff").replace("\r\n", "\n")
        self.text, self.name, self.lines = text, name, unix.split("\n")
        self.site, self.root = site, root
        self.script = directives.read(unix)
        self.asked = self.script.resources()
        self.tried, self.trainings = trial.Tried([]), []
        self.findings: list[ScriptFinding] = form.first_findings(self)
        self.untried = "what was found has to be mended first" if self.findings else sandbox.sandbox_missing()
        if not self.untried:
            try:
                self.tried = trial.try_out(unix, name, root)
            except sandbox.SandboxError as problem:  # there was one before
                self.untried = str(problem)
            self.trainings = training.started(self.tried, root)
        if not self.findings:
            found = [*form.findings(self), *commands.findings(self), *resources.findings(self)]
            # A program whose line bash could not say, as when it was killed, stands at the top.
            self.findings = sorted({one._replace(line_number=one.line_number or 1) for one in found})

    def unknown(self) -> list[str]:
        """What of the script is not known, in sentences."""
        rows = [f"line {line}: {words}" if line else words for line, words in self.tried.unknown]
        missing = f"Not tried out: {self.untried}. What the script starts was not checked."
        return [missing] * bool(self.untried) + [f"Not known: {row}." for row in dict.fromkeys(rows)]


def look_at(path_or_text: str | Path, site: Site | str, root: Path | None = None) -> CheckedScript:
    """The CheckedScript of a batch script: its findings, [] for a right one, and all that was looked at.

    path_or_text: a Path, a file name, or the text itself (more than one line)
    site: a Site or its id
    root: the course's folder, in which it would be submitted (default: the one around the working directory)

    Raises UseError for a file that cannot be read, or an unknown site.
    """
    root = Path(root or sites.find_root())
    site = sites.load(site, root) if isinstance(site, str) else site
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        return CheckedScript(path_or_text, "script.sh", site, root)
    path = Path(path_or_text)
    try:
        text = path.read_bytes().decode(errors="replace")
    except OSError as problem:
        raise UseError(f"{path} cannot be checked: {problem.strerror}. Batch scripts are in slurm/<site>/.") from None
    return CheckedScript(text, path.name, site, root)


def report_on_script(path: str | Path, site: Site | str) -> int:
    """Print what was not looked at, then the findings on a batch script's file; returns the exit code: 1 if there is
    one, 3 if there is none in a script that was not tried out, else 0.

    Raises as `look_at`.
    """
    subject = look_at(Path(path), site)
    found, untried = subject.findings, subject.untried
    count = printed.several(len(found), "error") if found else "Nothing found"
    ran = "bash ran it in the sandbox, with stand-ins for Python, srun and all that a site has."
    how = "It was not run: nothing is known of what it starts." if untried else ran
    last = f"{count} in {'the directives of ' * bool(untried)}{path} for {subject.site.id}. {how}"
    print(*subject.unknown(), *[one.text() for one in found], last, sep="\n")
    return 1 if found else 3 if untried else 0
