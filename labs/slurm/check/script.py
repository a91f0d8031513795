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

from labs.errors import UseError
from labs.printed import several
from labs.slurm import sites
from labs.slurm.check import commands, form, resources
from labs.slurm.check.finding import ScriptFinding, error
from labs.slurm.check.subject import Subject
from labs.slurm.sites import Site

_NO_ANSWER = re.compile(
    r"(?i)unable to contact|connect(ion)? |configuration source|fetch_config|dns_srv|timed out|"
    r"munge|authentication|protocol|zero bytes"
)
SECONDS = 20  # for the scheduler's answer
LARGEST = 2**20  # bytes of a script


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


def _text(path):
    """The text of a script's file. Raises ScriptError."""
    try:
        if path.exists() and not path.is_file():
            raise ScriptError(f"{path} cannot be checked: it is not a file.")
        if path.stat().st_size > LARGEST:
            raise ScriptError(f"{path} cannot be checked: no batch script has more than {LARGEST >> 20} MiB.")
        data = path.read_bytes()
        utf_16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")  # as PowerShell writes it, with a byte-order mark
        return "\ufeff" + data.decode("utf-16", "replace") if utf_16 else data.decode(errors="replace")
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
        text, name, elsewhere = path_or_text, "script.sh", False
    else:
        path = Path(path_or_text)
        text, name, elsewhere = _text(path), path.name, not path.resolve().is_relative_to(root.resolve())
    subject = Subject(text, name, site, root, elsewhere)
    why, fix = "It is for you to fill in; sbatch or the training refuses it.", "Replace the ... by a value."
    found = [error("blank", number, f"Still blank: {line}", why, fix) for number, line in subject.blank.items()]
    found += [subject.broken] if subject.broken else []
    if not subject.broken or subject.broken.name != "merge":  # else all else may follow from it
        found += [*form.findings(subject), *resources.findings(subject), *commands.findings(subject)]
    errors = any(one.severity == "error" for one in found)
    if scheduler and site.id == sites.default() and not errors and (refusal := scheduler_refusal(text, site, root)):
        found.append(refusal)
    return sorted(set(found)), subject


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
    fix = "These are the scheduler's words: compare them with the #SBATCH lines and with the site's rules."
    return error("scheduler", 1, f"sbatch refuses the script: {said}", "It would not be submitted.", fix)


def report_on_script(path: str | Path, site: Site | str, as_json: bool = False) -> int:
    """Print what was not looked at, then the findings on a batch script's file; returns the exit code: 1 if one of them
    is an error, 3 if there is none in a script that was not tried out, else 0.

    site: a Site or its id
    as_json: whether to print one JSON object instead, {file, site, tried_out, unknown, findings}

    Raises as `check_script`.
    """
    found, subject = check_and_try(Path(path), site)
    name, unknown = subject.site.id, subject.unknown()
    errors = sum(one.severity == "error" for one in found)
    code = 1 if errors else 3 if subject.untried else 0
    if as_json:
        rows = [dataclasses.asdict(one) for one in found]
        told = {"file": str(path), "site": name, "tried_out": not subject.untried, "unknown": unknown, "findings": rows}
        print(json.dumps(told, indent=1))
        return code
    if subject.untried:
        print(f"Not tried out: {subject.untried}. What the script starts was not checked.")
    for row in unknown[bool(subject.untried) :]:
        print(f"Not known: {row}.")
    print("".join(f"{one.text()}\n" for one in found), end="")
    counts = [(errors, "error"), (len(found) - errors, "note")]
    count = " and ".join(several(number, kind) for number, kind in counts if number) or "Nothing found"
    if subject.untried:
        print(f"{count} in the directives of {path} for {name}. It was not run: nothing is known of what it starts.")
    else:
        how = "bash ran it in the sandbox, with stand-ins for Python, srun and all that a site has."
        print(f"{count} in {path} for {name}. {how}")
    return code
