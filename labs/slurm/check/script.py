"""The check of a batch script: what `sbatch --test-only` sees in it and what it does not see.

The script is read: nothing of it is run, and nothing is submitted. What cannot be told without running it gives no
finding; the report names it.
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
from labs.results.text import decode
from labs.slurm import directives, sites
from labs.slurm.check import commands, form, resources, starts
from labs.slurm.check.finding import Subject, finding

_NO_ANSWER = re.compile(
    r"(?i)unable to contact|connect(ion)? |configuration source|fetch_config|dns_srv|timed out|"
    r"munge|authentication|protocol|zero bytes"
)
SECONDS = 20  # for the scheduler's answer
LARGEST = 2**20  # bytes of a script


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
    return _checked(path_or_text, site, root, scheduler)[0]


def _text(path):
    """The text of a script's file. Raises ScriptError."""
    try:
        if path.exists() and not path.is_file():
            raise ScriptError(f"{path} cannot be checked: it is no file.")
        if path.stat().st_size > LARGEST:
            raise ScriptError(f"{path} cannot be checked: with more than {LARGEST >> 20} MiB it is no batch script.")
        return decode(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise ScriptError(f"{path} cannot be checked: {getattr(problem, 'strerror', None) or problem}.") from None


def _checked(path_or_text, site, root=None, scheduler=True):
    """(the Findings, the Subject)."""
    root = Path(root or sites.find_root())
    site = sites.load(site, root) if isinstance(site, str) else site
    given = isinstance(path_or_text, str) and "\n" in path_or_text
    text = path_or_text if given else _text(Path(path_or_text))
    subject, broken = _subject(text, site, root)
    started = commands.trainings(subject.commands, root)
    found = [finding("blank", number, line=line) for number, line in subject.blank.items()]
    found += [broken, *form.findings(subject), *resources.findings(subject, started)]
    found = [one for one in (*found, *commands.findings(subject, started)) if one]
    if scheduler and site.id == sites.default() and not subject.blank and not any(one.refused for one in found):
        found.append(refusal(text, site, root))
    return sorted({one for one in found if one}), subject


def _subject(text, site, root):
    """(the Subject, the Finding of what bash cannot read or None)."""
    unix = text.replace("\r\n", "\n")
    script = directives.read(unix)
    meant = script.meant()
    shell = starts.readable(unix)
    broken = form.syntax(unix) if shell else None
    known = os.environ | {name: site.personal[key] for key, name in sites.PERSONAL.items() if key in site.personal}
    reading = partial(starts.read, unix, root, known)
    return Subject(
        text=text,
        lines=unix.split("\n"),
        site=site,
        root=root,
        script=script,
        meant=meant,
        asked=meant.resources(),
        blank=dict(blanks.blanks_of_batch(text)),
        reading=starts.Reading([], whole=False) if broken else reading(),
        more=partial(reading, scale=2),
        shell=shell,
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
    """Print the findings on a file, and what could not be told; returns the exit code, 0: none, 1: some. Raises as
    `check`."""
    found, subject = _checked(Path(path), site)
    name, unknown = subject.site.id, _unknown(subject)
    if as_json:
        rows = [dataclasses.asdict(one) for one in found]
        told = {"file": str(path), "site": name, "done": "read", "unknown": unknown, "findings": rows}
        print(json.dumps(told, indent=1))
        return 1 if found else 0
    print("".join(f"{one.text()}\n" for one in found), end="")
    count = f"{len(found)} finding{'s' * (len(found) > 1)}" if found else "Nothing found"
    print(f"{count} in {path} for {name}. The script was read; nothing of it was run.")
    if unknown:
        print(f"Not to be told without running it: {'; '.join(unknown)}.")
    return 1 if found else 0


def _unknown(subject):
    """What of a script could not be told by reading, in words."""
    if not subject.shell:
        return ["its commands, which are none of bash (only the directives were read)"]
    rows = [f"line {one.line_number}: {', '.join(said)}" for one in subject.commands if (said := one.unknown())]
    if not subject.reading.whole:
        rows.append("all of its commands" if not subject.commands else "what stands behind the last of them")
    return list(dict.fromkeys(rows))
