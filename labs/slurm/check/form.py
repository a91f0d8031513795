"""Findings on what is written: the first line, directives that SLURM ignores or refuses, files, personal names."""

import os
import re
import subprocess
from pathlib import PurePosixPath

from labs.slurm import directives, sites
from labs.slurm.check.finding import Finding

_NUMBERS = ("nodes", "ntasks", "ntasks-per-node", "ntasks-per-gpu", "cpus-per-task", "cpus-per-gpu")
_SYSTEM = "bin|dev|etc|lib|lib64|proc|run|sbin|sys|tmp|usr|var"
_ABSOLUTE = re.compile(rf"(?:^|(?<=[\s\"'=(]))(/(?!(?:{_SYSTEM})(?:/|\b))[\w.@+-]+(?:/[\w.@%+-]+)+)")


def findings(subject):
    """All findings of this theme."""
    for check in (_first_line, _ignored, _refused, _values, _time, _partition, _logs, _personal, _absolute, _stops):
        yield from check(subject)


def syntax(text):
    """The Finding of what bash cannot read, or None. Nothing is run."""
    try:
        told = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, timeout=10).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    errors = re.findall(r"line (\d+): (?!warning)(.*)", told)
    if not errors:
        return None
    line = int(errors[0][0])
    said = "; ".join(dict.fromkeys(message for _, message in errors[:2]))
    return Finding(
        line,
        f"bash cannot read the script: {said}.",
        "sbatch accepts it; the job starts, runs up to this place and ends with an error.",
        "Close the quote, bracket, loop or `if` that is open here or above; `bash -n FILE` tells whether it is right.",
    )


def _first_line(subject):
    if "\r" in subject.text:
        line = subject.text.split("\r")[0].count("\n") + 1
        yield Finding(
            line,
            "The lines end as on Windows (CR LF).",
            "sbatch refuses such a script, and bash would take the CR for a part of every last word.",
            "Convert it: sed -i 's/\\r$//' FILE.",
            True,
        )
    if not subject.script.first.startswith("#!"):
        yield Finding(
            1,
            "The first line does not say which program reads the script.",
            "sbatch refuses a script without it.",
            "Write #!/bin/bash as the very first line.",
            True,
        )


def _ignored(subject):
    for line, text, reason in subject.script.ignored:
        same = [one for one in subject.script.ignored if one[2] == reason]
        if "after the first command" in reason and same[0][0] != line:
            continue  # told with the first of them
        others = f" and the {len(same) - 1} below it" if "after" in reason and len(same) > 1 else ""
        yield Finding(
            line,
            f"SLURM ignores `{text}`{others}: {reason}.",
            "To sbatch it is a comment, and it says nothing: the job runs with the site's default instead.",
            "Begin the line with #SBATCH, without blanks, above the first command.",
        )


def _refused(subject):
    for line, word, reason in subject.script.refused:
        near = directives.similar(word.partition("=")[0]) if "no option of sbatch" in reason else None
        fix = f"Did you mean --{near}?" if near else "Write #SBATCH --option=value, without blanks around the =."
        yield Finding(line, f"sbatch refuses this directive: {reason}.", "The script is not submitted.", fix, True)


def _values(subject):
    for line, option, value in subject.meant.directives:
        if line in subject.blank:
            continue
        wanted = None
        if option in _NUMBERS and not directives.number(value):
            wanted = "a whole number, at least 1"
        elif option in ("time", "time-min") and sites.minutes(value) is None:
            wanted = "a time as hours:minutes:seconds, such as 00:30:00"
        elif option in ("mem", "mem-per-cpu", "mem-per-gpu") and not re.fullmatch(r"\d+[KMGT]?B?", value, re.I):
            wanted = "a size such as 4G"
        elif option == "gres" and not re.fullmatch(r"(gpu|[a-z_]+)(:[A-Za-z]\w*)?([:=]\d+)?(,.*)?", value):
            wanted = "the kind and the number on each node, such as gpu:2"
        if wanted:
            yield Finding(
                line,
                f"--{option}={value}: this is no value for --{option}.",
                "sbatch refuses the script.",
                f"Write {wanted}.",
                True,
            )
        elif option == "gres" and "gpu" in value and not re.search(r"(^|,)gpu\b", value):
            yield Finding(
                line,
                f"--gres={value}: SLURM does not know this resource.",
                "GPUs are called gpu, in the singular.",
                "Write --gres=gpu:N.",
                True,
            )


def _time(subject):
    asked, most = subject.asked["time_minutes"], subject.site.time_max
    if asked and asked > most:
        yield Finding(
            subject.line("time"),
            f"--time={subject.meant.value('time')} is longer than the "
            f"{most / 60:g} hours that {subject.site.name} allows.",
            "The job is refused, or waits for ever.",
            "Ask for less; a short limit also starts earlier.",
            True,
        )


def _partition(subject):
    given, site = subject.meant.find("partition"), subject.site
    if not given or given.line_number in subject.blank or given.value == site.partition:
        return
    others = [] if site.partition else [_load(id, subject.root) for id in sites.names(subject.root) if id != site.id]
    owner = next((other.name for other in others if other and other.partition == given.value), None)
    if site.partition or owner:
        yield Finding(
            given.line_number,
            f"{site.name} has no partition {given.value!r} for this course"
            + (f"; it is one of {owner}'s." if owner else "."),
            "The job is refused, or lands on nodes of another kind.",
            f"Write --partition={site.partition}." if site.partition else "Leave the line out: the site has a default.",
            True,
        )


def _load(id, root):
    try:
        return sites.load(id, root)
    except sites.SiteError:
        return None


def _logs(subject):
    out, err = subject.meant.find("output"), subject.meant.find("error")
    if not err:
        yield Finding(
            subject.line("output"),
            "No --error: what goes wrong is mixed into the .out file.",
            "The .out is evidence of the training, the .err of what went wrong.",
            "Add #SBATCH --error=..._%j.err beside --output.",
        )
    elif out and err.value == out.value and err.line_number not in subject.blank:
        yield Finding(
            err.line_number,
            "--output and --error name the same file.",
            "Training log and errors are mixed, and lines are torn apart.",
            "End one in .out and the other in .err.",
        )
    missing = set()
    for found in filter(None, (out, err)):
        folder = str(PurePosixPath(found.value).parent)
        if found.line_number in subject.blank or found.value.startswith("/dev/"):
            continue
        if not re.search(r"%(\d*)[jJA]", found.value) and (found is out or not out or err.value != out.value):
            yield Finding(
                found.line_number,
                f"--{found.option}={found.value} has no job number in it.",
                "The next job overwrites the log of this one.",
                "Put %j into the name: SLURM writes the job's number there.",
            )
        if "$" in found.value or found.value.startswith("~"):
            yield Finding(
                found.line_number,
                f"--{found.option}={found.value}: sbatch does not fill in variables.",
                "It looks for a folder with exactly this name, and the job fails without a log.",
                "Write a path below the course's folder.",
            )
        elif "%" not in folder and not found.value.startswith("/") and folder not in missing:
            if not (subject.root / folder).is_dir():
                missing.add(folder)
                yield Finding(
                    found.line_number,
                    f"The folder {folder} of --{found.option} does not exist.",
                    "SLURM opens the log before the script can make a folder: the job fails at once, without a log.",
                    f"Make it before you submit: mkdir -p {folder}.",
                )


def _personal(subject):
    site, account = subject.site, subject.meant.find("account")
    for option, wanted in (("account", site.account), ("qos", site.qos)):
        name = f"SBATCH_{option.upper()}"
        if wanted and not (subject.meant.find(option) or site.personal.get(option) or os.environ.get(name)):
            yield Finding(
                subject.line(),
                f"{site.name} wants {'an account' if option == 'account' else 'a QOS'}, and none is set.",
                "The job is refused, or waits for ever.",
                f'export {name}=..., or write {option} = "..." into slurm/sites/{site.id}.local.toml.',
                True,
            )
    if account and account.line_number not in subject.blank:
        yield Finding(
            account.line_number,
            f"The account {account.value} is written into the script.",
            "It is yours: whoever gets the script would compute on your hours, or be refused.",
            "Remove the line and export SBATCH_ACCOUNT=..., which sbatch reads.",
        )


def _absolute(subject):
    told = [(number, line) for number, line in subject.code()]
    told += [(found.line_number, found.value) for found in subject.meant.directives]
    for number, line in told:
        match = _ABSOLUTE.search(line)
        if match and not line.startswith("#!"):
            yield Finding(
                number,
                f"{match[1]} is a path of one machine.",
                "At another site, or for another person, it does not exist.",
                "Write paths below the course's folder, or use a variable that is set in your environment.",
            )


def _stops(subject):
    flags = subject.script.first.split()[1:]
    if any(re.fullmatch(r"-\w*e\w*", flag) for flag in flags):
        return
    lines = [text for _, text in subject.code()]
    if any(re.match(r"\s*set\s+(?:\S+\s+)*?(-[a-df-z]*e\w*|-o\s+errexit|-\w*o\s+errexit)", text) for text in lines):
        return
    if len(subject.commands) > 1 or (not subject.commands and len(lines) > 1):
        yield Finding(
            subject.script.first_command or 1,
            "The script goes on after an error.",
            "The next command follows a training that failed, and SLURM counts the job as COMPLETED.",
            "Write `set -euo pipefail` as the first command.",
        )
