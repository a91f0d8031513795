"""Findings on what is written: blanks, what bash cannot read, the first line, directives that SLURM ignores or refuses;
then, of a script whose form is right, its limits, files and personal settings."""

import os
import re
import subprocess
from pathlib import PurePosixPath

from labs import blanks
from labs.slurm import directives
from labs.slurm.check.finding import ScriptFinding

_BASH = re.compile(r"#! ?(/\S*/bash|/usr/bin/env bash)( -\w+)?\s*")
_COUNTS = ("nodes", "ntasks", "ntasks-per-node", "ntasks-per-gpu", "cpus-per-task", "cpus-per-gpu")


def syntax(text):
    """The ScriptFinding of what bash cannot read in a text, or None. Nothing is run."""
    said = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True).stderr
    errors = re.findall(r"line (\d+): (?!warning)(.*)", said)
    if not errors:
        return None
    words = "; ".join(dict.fromkeys(words for _, words in errors[:2]))
    problem = f"bash cannot read the script: {words}. sbatch accepts it; the job runs up to this place and ends there."
    fix = "Close the quote, bracket, loop or `if` that is open here or above; `bash -n FILE` tells whether it is right."
    return ScriptFinding(int(errors[0][0]), problem, fix)


def first_findings(subject):
    """What has to be mended before the rest can be looked at: blanks, else bash's syntax, else the first line and the
    directives."""
    fix = "It is for you to fill in: replace the ... by a value."
    if blank := blanks.blanks_of_batch(subject.text):
        return [ScriptFinding(number, f"Still blank: {line}", fix) for number, line in blank]
    if broken := syntax("\n".join(subject.lines)):
        return [broken]
    return [*_first_line(subject), *_ignored(subject.script), *_refused(subject.script)]


def findings(subject):
    """Findings on a script whose directives sbatch takes."""
    for look in (_limits, _logs, _personal):
        yield from look(subject, subject.script)


def _first_line(subject):
    says = {
        "The file begins with a byte-order mark": subject.text.startswith("\ufeff"),
        "The file has the line ends of Windows": "\r" in subject.text,
        "The first line is not #!/bin/bash, with one option at most": not _BASH.fullmatch(subject.lines[0]),
    }
    fix = r"Write #!/bin/bash as the first line. Of the whole file: sed -i '1s/^\xEF\xBB\xBF//; s/\r$//' FILE"
    if problem := next((problem for problem, there in says.items() if there), None):
        yield ScriptFinding(1, f"{problem}: sbatch refuses the script, or it ends at once.", fix)


def _ignored(script):
    late = [line for line, _, _ in script.ignored if script.first_command and line > script.first_command]
    for line, text, reason in script.ignored:
        if line not in late[1:]:  # else it is told with the first of them
            others = f" and the {len(late) - 1} below it" if line in late and len(late) > 1 else ""
            problem = f"SLURM ignores `{text}`{others}: {reason}. To sbatch it is a comment."
            yield ScriptFinding(line, problem, "Begin the line with #SBATCH, without blanks, above the first command.")


def _refused(script):
    """What sbatch refuses: directives and values."""
    for line, reason, fix in script.refused:
        yield ScriptFinding(line, f"sbatch refuses this directive: {reason}.", fix)
    for line, option, value in script.directives:
        if wanted := _wanted(option, value):
            problem = f"--{option}={value}: not a value for --{option}, which takes {wanted}. sbatch refuses it."
            yield ScriptFinding(line, problem, "Give it such a value.")


def _wanted(option, value):
    """What an option of sbatch takes, in words, where this value is not such a one; else None."""
    if option == "time":
        return "a time as hours:minutes:seconds, such as 00:30:00" if directives.minutes(value) is None else None
    if option in ("mem", "mem-per-cpu", "mem-per-gpu"):
        return None if re.fullmatch(r"(?i)\d+[KMGT]?B?", value) else "a size such as 4G"
    if option == "gres" and not re.fullmatch(r"(gpu|[a-z_]+)(:[A-Za-z]\w*)?([:=]\d+)?(,.*)?", value):
        return "the kind and the number on each node, such as gpu:2"
    if option == "gres" and "gpu" in value and not re.search(r"(^|,)gpu\b", value):
        return "GPUs as gpu, in the singular: SLURM does not know this resource"
    if option == "nodes":
        value = value.rpartition("-")[2]
    return "a whole number, at least 1" if option in _COUNTS and not directives.number(value) else None


def _limits(subject, script):
    """Time, memory and partition that `#SBATCH` lines ask for: over the site's limits, too small, or not the
    course's."""
    minutes, site, memory = subject.asked["time_minutes"], subject.site, script.value("mem") or ""
    time = f"--time={script.value('time')}"
    if minutes and minutes > site.time_max:
        problem = f"{time} is longer than the {site.time_max / 60:g} hours that {site.name} allows"
        fix = f"Write --time={int(site.time_max // 60)}:{int(site.time_max % 60):02}:00 at most."
        yield ScriptFinding(script.line("time"), f"{problem}: the job is refused, or waits for ever.", fix)
    elif minutes is not None and minutes < 2 and subject.trainings:
        problem = f"{time} is a limit of {round(minutes * 60)} seconds: TensorFlow starts slower."
        fix = "Write hours:minutes:seconds, such as --time=00:30:00; a number alone counts minutes."
        yield ScriptFinding(script.line("time"), problem, fix)
    if re.fullmatch("[1-9][0-9]{0,2}", memory) and subject.trainings:
        problem = f"--mem={memory} is {memory} MB of memory in all: TensorFlow takes more at its start."
        yield ScriptFinding(script.line("mem"), problem, f"Write the unit: --mem={memory}G.")
    partition = script.value("partition")
    if partition and site.partition and partition != site.partition:
        problem = f"{site.name} has no partition {partition!r} for this course: the job is refused, or lands elsewhere."
        yield ScriptFinding(script.line("partition"), problem, f"Write --partition={site.partition}.")


def _logs(subject, script):
    folders = set()
    for line, option, name in filter(None, (script.find("output"), script.find("error"))):
        folder = str(PurePosixPath(name).parent)
        if "$" in name or name.startswith("~"):
            problem = f"--{option}={name}: sbatch does not fill in variables, and the job fails without a log."
            yield ScriptFinding(line, problem, "Write a path below the folder from which you submit.")
        elif not ("%" in folder or name.startswith("/") or folder in folders):
            folders.add(folder)
            if not (subject.root / (script.value("chdir") or "") / folder).is_dir():
                problem = f"The folder {folder} of --{option} does not exist in the course: SLURM opens the log before "
                problem += "the script can make a folder, and the job fails without one."
                yield ScriptFinding(line, problem, f"In the course's folder, where you submit: mkdir -p {folder}")


def _personal(subject, script):
    site = subject.site
    for option, what, wanted in (("account", "an account", site.account), ("qos", "a QOS", site.qos)):
        variable = f"SBATCH_{option.upper()}"
        if wanted and not (script.find(option) or site.personal.get(option) or os.environ.get(variable)):
            problem = f"{site.name} requires {what}, which is not set: the job is refused, or waits for ever."
            fix = f'export {variable}=..., or write {option} = "..." into slurm/sites/{site.id}.local.toml.'
            yield ScriptFinding(script.line(), problem, fix)
