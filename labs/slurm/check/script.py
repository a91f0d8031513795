"""The check of a batch script: what `sbatch --test-only` sees in it and what it does not see.

Nothing of the script is run and nothing is submitted. What cannot be told without running it gives no finding.
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

from labs import blanks
from labs.errors import LabsError
from labs.results import failures
from labs.slurm import directives, sites
from labs.slurm.check import commands, form, resources
from labs.slurm.check.finding import Subject, finding
from labs.slurm.check.rehearse import rehearse

_NO_ANSWER = re.compile(
    r"(?i)unable to contact|connect(ion)? |configuration source|fetch_config|dns_srv|timed out|"
    r"munge|authentication|protocol|zero bytes"
)
SECONDS = 20  # for the scheduler's answer


class ScriptError(LabsError):
    """A batch script cannot be read; the message names it and the reason."""

    code = 2


def check(path_or_text, site, root=None, scheduler=True):
    """The Findings on a batch script, in order of its lines; [] for a right one.

    Args: a Path, a file name, or the text itself (more than one line); a Site or its id; the course's top folder, in
    which it would be submitted; whether `sbatch --test-only` is asked too (only where it is there and answers, and
    `site` is the one in use here: another site's partitions and nodes are not known to it).
    Raises ScriptError for a file that cannot be read, SiteError for an unknown site.
    """
    root = Path(root or sites.find_root())
    site = sites.load(site, root) if isinstance(site, str) else site
    text = path_or_text
    if isinstance(path_or_text, Path) or "\n" not in path_or_text:
        try:
            text = failures.decode(Path(path_or_text).read_bytes())
        except OSError as problem:
            raise ScriptError(f"{path_or_text} cannot be checked: {problem.strerror}.") from None
    subject, broken = _subject(text, site, root)
    started = commands.trainings(subject.commands, root)
    found = [finding("blank", number, line=line) for number, line in subject.blank.items()]
    found += [broken, *form.findings(subject), *resources.findings(subject, started)]
    found = [one for one in (*found, *commands.findings(subject, started)) if one]
    if scheduler and site.id == sites.default() and not subject.blank and not any(one.refused for one in found):
        found.append(refusal(text, site, root))
    return sorted({one for one in found if one})


def _subject(text, site, root):
    """(the Subject, the Finding of what bash cannot read or None)."""
    unix = text.replace("\r\n", "\n")
    script = directives.read(unix)
    meant = script.meant()
    broken = form.syntax(unix)
    known = os.environ | {name: site.personal[key] for key, name in sites.PERSONAL.items() if key in site.personal}
    rehearsed = partial(rehearse, unix, root, known)
    return Subject(
        text=text,
        lines=unix.split("\n"),
        site=site,
        root=root,
        script=script,
        meant=meant,
        asked=meant.resources(),
        blank=dict(blanks.blanks_of_batch(text)),
        commands=[] if broken else rehearsed(),
        more=partial(rehearsed, scale=2),
    ), broken


def refusal(text, site, root):
    """What `sbatch --test-only` has against a script, as a Finding in line 1; None if nothing, or if no scheduler
    answers."""
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


def report(path, site, as_json=False):
    """Print the findings on a file; returns the exit code, 0: none, 1: some. Raises as `check`."""
    found = check(Path(path), site)
    name = site if isinstance(site, str) else site.id
    if as_json:
        rows = [dataclasses.asdict(one) for one in found]
        print(json.dumps({"file": str(path), "site": name, "findings": rows}, indent=1))
    elif found:
        print("\n".join(one.text() for one in found))
        print(f"{len(found)} finding{'s' * (len(found) > 1)} in {path} for {name}.")
    else:
        print(f"Nothing found in {path} for {name}.")
    return 1 if found else 0
