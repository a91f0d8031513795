"""The check of a batch script: what `sbatch --test-only` sees in it and what it does not see.

Its directives and the site's rules are read; the script is tried out (labs.slurm.trial), and what it starts is judged.
Where it cannot be tried out, the report says first what was not looked at. What only the site can tell gives no
finding; the report names it.
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from labs import blanks
from labs.errors import UseError
from labs.printed import several
from labs.sandbox import SandboxError
from labs.slurm import directives, sites
from labs.slurm.check import commands, form, resources, training
from labs.slurm.check.finding import ScriptFinding, Subject, finding
from labs.slurm.sites import Site
from labs.slurm.trial import Tried, trial_missing, try_out

_NO_ANSWER = re.compile(
    r"(?i)unable to contact|connect(ion)? |configuration source|fetch_config|dns_srv|timed out|"
    r"munge|authentication|protocol|zero bytes"
)
SECONDS = 20  # for the scheduler's answer
LARGEST = 2**20  # bytes of a script
_BASH = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?(bash|sh|dash|ksh)(?:\s|$)|(?!#!)")


class ScriptError(UseError):
    """A batch script cannot be read; the message names it and the reason."""


def check_script(
    path_or_text: str | Path, site: Site | str, root: Path | None = None, scheduler: bool = True
) -> list[ScriptFinding]:
    """The ScriptFindings on a batch script, in order of its lines; [] for a right one.

    path_or_text: a Path, a file name, or the text itself (more than one line)
    site: a Site or its id
    root: the course's folder, in which it would be submitted (default: the one around the working directory)
    scheduler: whether `sbatch --test-only` is asked, too; it is only where it is there and answers, and `site` is the
        one in use here: another site's partitions and nodes are not known to it

    Raises ScriptError for a file that cannot be read, SiteError for an unknown site.
    """
    return check_and_try(path_or_text, site, root, scheduler)[0]


def _decode(data):
    """Text: UTF-8 (a replacement mark for other bytes), or UTF-16 as PowerShell writes it."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def _text(path):
    """The text of a script's file. Raises ScriptError."""
    try:
        if path.exists() and not path.is_file():
            raise ScriptError(f"{path} cannot be checked: it is not a file.")
        if path.stat().st_size > LARGEST:
            raise ScriptError(f"{path} cannot be checked: no batch script has more than {LARGEST >> 20} MiB.")
        return _decode(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise ScriptError(f"{path} cannot be checked: {getattr(problem, 'strerror', None) or problem}.") from None


def check_and_try(
    path_or_text: str | Path, site: Site | str, root: Path | None = None, scheduler: bool = True
) -> tuple[list[ScriptFinding], Subject]:
    """(what `check_script` gives, the Subject: all that was looked at, with the trial or why there was none).

    Arguments and errors are those of `check_script`.
    """
    root = Path(root or sites.find_root())
    site = sites.load(site, root) if isinstance(site, str) else site
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        text, name = path_or_text, "script.sh"
    else:
        text, name = _text(Path(path_or_text)), Path(path_or_text).name
    subject, broken = _subject(text, name, site, root)
    found: list[ScriptFinding | None] = [finding("blank", number, line=line) for number, line in subject.blank.items()]
    found += [broken, *form.findings(subject), *resources.findings(subject), *commands.findings(subject)]
    if scheduler and site.id == sites.default() and not subject.blank and not any(one and one.refused for one in found):
        found.append(scheduler_refusal(text, site, root))
    return sorted({one for one in found if one}), subject


def _subject(text, name, site, root):
    """(the Subject, the ScriptFinding of what bash cannot read or None)."""
    unix = text.replace("\r\n", "\n")
    script = directives.read(unix)
    meant, shell, blank = script.meant(), bool(_BASH.match(unix)), dict(blanks.blanks_of_batch(text))
    broken = form.syntax(unix) if shell else None
    known = dict(os.environ) | {
        name: site.personal[key] for key, name in sites.PERSONAL.items() if key in site.personal
    }
    untried = trial_missing(unix) if unix.startswith("#!") else "its first line does not say which program reads it"
    if blank or broken:
        untried = "it has blanks" if blank else "bash cannot read it"
    tried = Tried([])
    try:
        tried = tried if untried else try_out(unix, name, root, known)
    except SandboxError as problem:  # there was one before
        untried = str(problem)
    lines, asked, trainings = unix.split("\n"), meant.resources(), training.started(tried, root)
    written = text, lines, site, root, script, meant, asked, blank  # in the order of Subject's fields
    return Subject(*written, untried, tried, trainings, shell, name, known), broken


def scheduler_refusal(text: str, site: Site, root: Path) -> ScriptFinding | None:
    """What `sbatch --test-only` has against a script, as a ScriptFinding in line 1; None if nothing, or if no scheduler
    answers.

    text: of the script
    site: the one in use here; account and QOS that it knows are handed to sbatch
    root: the course's folder, in which it would be submitted
    """
    if not shutil.which("sbatch"):
        return None
    personal = {f"SBATCH_{key.upper()}": site.personal[key] for key in ("account", "qos") if key in site.personal}
    try:
        options = {"capture_output": True, "text": True, "cwd": root, "timeout": SECONDS, "env": os.environ | personal}
        done = subprocess.run(["sbatch", "--test-only"], input=text, **options)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0 or _NO_ANSWER.search(done.stderr):
        return None
    lines = re.sub(r"(?m)^(sbatch|allocation failure): (error: |fatal: )?", "", done.stderr).splitlines()
    said = "; ".join(dict.fromkeys(line.strip() for line in lines if line.strip())) or f"exit code {done.returncode}"
    return finding("scheduler_refuses", 1, said=said)


def report_on_script(path: str | Path, site: Site | str, as_json: bool = False) -> int:
    """Print what was not looked at, then the findings on a batch script's file; returns the exit code: 1 if one of them
    is an error, else 0.

    site: a Site or its id
    as_json: whether to print one JSON object instead, {file, site, tried_out, unknown, findings}

    Raises as `check_script`.
    """
    found, subject = check_and_try(Path(path), site)
    name, unknown = subject.site.id, unknowns(subject)
    errors = sum(one.severity == "error" for one in found)
    if as_json:
        rows = [dataclasses.asdict(one) for one in found]
        told = {"file": str(path), "site": name, "tried_out": not subject.untried, "unknown": unknown, "findings": rows}
        print(json.dumps(told, indent=1))
        return 1 if errors else 0
    if subject.untried:
        print(f"Not tried out: {subject.untried}. What the script starts was not checked.")
    for row in unknown[bool(subject.untried) :]:
        print(f"Not known: {row}.")
    print("".join(f"{one.text()}\n" for one in found), end="")
    counts = [(errors, "error"), (len(found) - errors, "note")]
    count = " and ".join(several(number, kind) for number, kind in counts if number) or "Nothing found"
    seen = "in the directives, by the site's rules" + (" and by `bash -n`" if subject.shell else "")
    where = f"{path} for {name}"
    tried = f"{count} in {where}. bash ran it in the sandbox, with stand-ins for Python, srun and all that a site has."
    print(f"{count} {seen}, in {where}. It was not run." if subject.untried else tried)
    return 1 if errors else 0


def unknowns(subject):
    """What of a script is not known, in words."""
    rows = [f"what it starts, as it was not tried out: {subject.untried}"] if subject.untried else []
    told = (f"line {line}: {words}" if line else words for line, words in subject.tried.unknown)
    return rows + list(dict.fromkeys(told))
