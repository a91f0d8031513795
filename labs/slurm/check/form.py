"""Findings on what is written: the first line, directives that SLURM ignores or refuses, files, personal names; and
where bash ends the script."""

import contextlib
import difflib
import os
import re
import subprocess
from pathlib import PurePosixPath

from labs.slurm import directives, sites, trial, variables
from labs.slurm.check.finding import error, note

_NUMBERS = ("nodes", "ntasks", "ntasks-per-node", "ntasks-per-gpu", "cpus-per-task", "cpus-per-gpu")
_SYSTEM = "bin|dev|etc|lib|lib64|proc|run|sbin|sys|tmp|usr|var"
_ABSOLUTE = re.compile(rf"(?:^|(?<=[\s\"'=(]))(/(?!(?:{_SYSTEM})(?:/|\b))[\w.@+-]+(?:/[\w.@%+-]+)+)")
_ERREXIT = r"-[A-Za-z]*e\w*"
_WITH_UNIT = r"(\d+)([KMGT]?)B?"


def findings(subject):
    """All findings of this theme."""
    checks = (_first_line, _ignored, _refused, _values, _pairs, _time, _memory, _partition, _logs, _personal)
    for check in (*checks, _stops, _fails):
        yield from check(subject)


def merge(text):
    """The ScriptFinding of Git's marks of a merge conflict in a text, or None."""
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines, 1) if re.match(r"(<{7}|={7}|>{7})( |$)", line)]
    if not marks or not lines[marks[0] - 1].startswith("<"):
        return None
    why = "Both versions stand one above the other, and bash reads neither."
    fix = f"Keep one of them, and remove the lines {', '.join(map(str, marks))}."
    return error("merge", marks[0], "The script has Git's marks of a merge conflict.", why, fix)


def syntax(text):
    """The ScriptFinding of what bash cannot read in a text, or None. Nothing is run."""
    try:
        told = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, timeout=10).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    errors = re.findall(r"line (\d+): (?!warning)(.*)", told)
    if not errors:
        return None
    problem = f"bash cannot read the script: {'; '.join(dict.fromkeys(said for _, said in errors[:2]))}."
    why = "sbatch accepts it; the job starts, runs up to this place and ends with an error."
    fix = "Close the quote, bracket, loop or `if` that is open here or above; `bash -n FILE` tells whether it is right."
    return error("bash_cannot_read", int(errors[0][0]), problem, why, fix)


def _first_line(subject):
    text, first = subject.text, subject.lines[0]
    wrong = ["begins with a byte-order mark"] * text.startswith("\ufeff") + ["has the line ends of Windows"] * (
        "\r" in text
    )
    if wrong:
        problem, why = f"The file {' and '.join(wrong)}.", "sbatch refuses such a script."
        fix = r"Convert it: sed -i '1s/^\xEF\xBB\xBF//; s/\r$//' FILE (UTF-16 first: iconv -f UTF-16 -t UTF-8)."
        line = 1 if text.startswith("\ufeff") else text.split("\r")[0].count("\n") + 1
        yield error("bytes", line, problem, why, fix)
    odd = [word for word in first.split() if directives.TYPOGRAPHIC.search(word)]
    if not first.startswith("#!"):
        problem, why = "The first line does not say which program reads the script.", "sbatch refuses it."
        yield error("first_line", 1, problem, why, "Write #!/bin/bash as the very first line.")
    elif odd:
        problem = f"`{odd[0]}` in the first line contains a dash, quotation mark or blank from a word processor."
        why = "The shell takes it for the name of a script, which it does not find: the job ends at once."
        yield error("first_line", 1, problem, why, f"Write {first.split()[0]} {directives.plain(odd[0])}")
    elif subject.shell and len(first.split()) > 2 and "env" not in first:
        problem, why = "The first line has several options.", "Linux hands all of them to the shell as one word."
        yield error("first_line", 1, problem, why, f"Write {first.split()[0]}, and the options in a line with `set`.")


def _ignored(subject):
    begin = subject.script.first_command or len(subject.lines)
    late = [line for line, *_ in subject.script.ignored if line > begin]
    for line, text, reason in subject.script.ignored:
        if line in late[1:]:
            continue  # told with the first of them
        others = f" and the {len(late) - 1} below it" if line in late and len(late) > 1 else ""
        why = "To sbatch it is a comment, which it silently ignores: the job runs with the site's default instead."
        fix = "Begin the line with #SBATCH, without blanks, above the first command."
        yield error("ignored", line, f"SLURM ignores `{text}`{others}: {reason}.", why, fix)


def _refuses(line, problem, fix):
    return error("refused", line, problem, "sbatch refuses the script.", fix)


def _refused(subject):
    for line, word, kind, reason in subject.script.refused:
        near = directives.similar(word.partition("=")[0]) if kind == "unknown" else None
        fix = f"Did you mean --{near}?" if near else "Write #SBATCH --option=value, without blanks around the =."
        if kind == "typographic":
            fix = "Type - and quotation marks on the keyboard again; this one was copied from a formatted text."
        elif kind == "unknown" and not near:
            fix += " If it belongs to a plugin of your site, sbatch --help there lists it."
        yield _refuses(line, f"sbatch refuses this directive: {reason}.", fix)


def _values(subject):
    for line, option, value in subject.meant.directives:
        wanted = None
        if option in _NUMBERS and not directives.number(value):
            wanted = "a whole number, at least 1"
        elif option in ("time", "time-min") and directives.minutes(value) is None:
            wanted = "a time as hours:minutes:seconds, such as 00:30:00"
        elif option in ("mem", "mem-per-cpu", "mem-per-gpu") and not re.fullmatch(_WITH_UNIT, value, re.I):
            wanted = "a size such as 4G"
        elif option == "gres" and not re.fullmatch(r"(gpu|[a-z_]+)(:[A-Za-z]\w*)?([:=]\d+)?(,.*)?", value):
            wanted = "the kind and the number on each node, such as gpu:2"
        elif option == "gres" and "gpu" in value and not re.search(r"(^|,)gpu\b", value):
            wanted = "GPUs as gpu, in the singular: SLURM does not know this resource"
        if wanted and line not in subject.blank:
            problem = f"--{option}={value}: not a value for --{option}, which takes {wanted}."
            yield _refuses(line, problem, "Give it such a value.")


def _pairs(subject):
    """Options that exclude each other, or lack one that they need; by the table in options.toml."""
    for part in subject.meant.parts:
        told = set()
        for kind in ("refused", "refused_later"):
            for one, other in directives.PAIRS[kind]:
                if not part.find(one) or not part.find(other) or one in told:
                    continue
                told.add(one)
                fix, later = f"Remove --{one}.", kind == "refused_later"
                if one == "ntasks-per-gpu" and other != "ntasks-per-node" and not part.find("ntasks"):
                    fix = f"Write --ntasks-per-node={part.resources()['tasks_per_node']} in place of --{one}."
                problem = f"--{one} and --{other} exclude each other."
                if later:
                    yield note("pair", part.line(one), problem, "SLURM from 24.05 on ends the job at its srun.", fix)
                else:
                    yield _refuses(part.line(one), problem, fix)
        for option, others in directives.PAIRS["needs"].items():
            if part.find(option) and not part.find(*others):
                problem = f"--{option} needs one of --{', --'.join(others)} beside it."
                yield _refuses(part.line(option), problem, f"Add --{others[0]}=N.")


def _time(subject):
    asked, site = subject.asked[0]["time_minutes"], subject.site
    time, line = subject.meant.value("time"), subject.meant.line("time")
    if asked and asked > site.time_max:
        problem = f"--time={time} is longer than the {site.time_max / 60:g} hours that {site.name} allows."
        most = f"{int(site.time_max // 60)}:{int(site.time_max % 60):02}:00"
        why = "The job is refused, or waits for ever."
        yield error("too_long", line, problem, why, f"Write --time={most} at most; a short limit also starts earlier.")
    elif asked is not None and asked < 2 and _works(subject):
        problem = f"--time={time} is a limit of {round(asked * 60)} seconds."
        why = "TensorFlow alone takes longer to start; SLURM then ends the job, whatever it has done."
        fix = "Write hours:minutes:seconds, such as --time=00:30:00; a number alone counts minutes."
        yield error("too_short", line, problem, why, fix)


def _memory(subject):
    """Less memory than TensorFlow takes for itself; a number alone is in MB."""
    asked, given = subject.asked[0], subject.meant.find("mem", "mem-per-cpu", "mem-per-gpu")
    match = given and re.fullmatch(_WITH_UNIT, given.value, re.I)
    count = {"mem": 1, "mem-per-cpu": asked["cpus_per_node"], "mem-per-gpu": asked["gpus_per_node"]}
    if not match or not _works(subject) or not count[given.option] or len(subject.asked) > 1:
        return
    memory = int(match[1]) * 1024 ** " KMGT".index(match[2].upper() or "M") * count[given.option]
    if 0 < memory < 2**30:  # 0: all of the node
        problem = f"--{given.option}={given.value} is {memory / 2**20:g} MB of memory in all."
        why = "A number alone counts megabytes; TensorFlow takes more at its start, and SLURM then ends the job."
        fix = f"Write the unit: --{given.option}={match[1]}G."
        yield error("little_memory", given.line_number, problem, why, fix)


def _works(subject):
    """Does it start Python? Then seconds or megabytes are too little."""
    if subject.untried:
        return any(re.search(r"\bpython|\.py\b", text) for _, text in subject.code())
    return bool(subject.trainings) or any(one.words[0].startswith("python") for one in subject.tried.calls)


def _partition(subject):
    given, site, owner = subject.meant.find("partition"), subject.site, None
    if not given or given.line_number in subject.blank or given.value == site.partition:
        return
    with contextlib.suppress(sites.SiteError):  # another site's file is wrong
        others = [] if site.partition else [sites.load(id, subject.root) for id in sites.names(subject.root)]
        owner = next((other.name for other in others if other.partition == given.value), None)
    if site.partition or owner:
        problem = f"{site.name} has no partition {given.value!r} for this course{f'; {owner} has' if owner else ''}."
        fix = (
            f"Write --partition={site.partition}." if site.partition else "Remove --partition: the site has a default."
        )
        why = "The job is refused, or lands on nodes of another kind."
        yield error("partition", given.line_number, problem, why, fix)


def _logs(subject):
    out, err = subject.meant.find("output"), subject.meant.find("error")
    if (not err and not subject.miswritten("err")) or (out and err and err.value == out.value != "..."):
        what = "--output and --error name the same file" if err else "No --error"
        problem = f"{what}: what goes wrong is mixed into the training's log."
        fix = "Write #SBATCH --error=NAME_%j.err beside --output=NAME_%j.out."
        why = "The .out is evidence of the training, the .err of what went wrong."
        yield note("logs", subject.meant.line("error", "output"), problem, why, fix)
    array, missing = subject.meant.find("array"), set()
    for given in filter(None, (out, err)):
        line, name, folder = given.line_number, given.value, str(PurePosixPath(given.value).parent)
        if line in subject.blank or name.startswith("/dev/"):
            continue
        if not re.search(rf"%\d*[{'ja' if array else 'jJA'}]", name) and (
            given is out or not out or err.value != out.value
        ):
            what, mark = ("all tasks of the array write", "%A_%a") if array else ("the next job overwrites", "%j")
            problem = f"--{given.option}={name} is the same for every job: {what} this file."
            why = "Of several trainings one log is left, or lines of all of them."
            yield note("no_job_number", line, problem, why, f"Put {mark} into the name: SLURM writes numbers there.")
        if "$" in name or name.startswith("~"):
            why = "It looks for a folder with exactly this name, and the job fails without a log."
            problem = f"--{given.option}={name}: sbatch does not fill in variables."
            yield error("variable", line, problem, why, "Write a path below the folder from which you submit.")
        elif "%" not in folder and not name.startswith("/") and folder not in missing:
            if not (subject.root / subject.folder / (subject.meant.value("chdir") or "") / folder).is_dir():
                missing.add(folder)
                problem = f"The folder {folder} of --{given.option} does not exist in {subject.folder or 'the course'}."
                why = "SLURM opens the log before the script can make a folder: the job fails at once, without a log."
                fix = f"In the folder from which you submit: mkdir -p {folder}"
                severity = "note" if subject.elsewhere else "error"  # where it is submitted, is not known then
                yield error("no_folder", line, problem, why, fix, severity)


def _personal(subject):
    site, account = subject.site, subject.meant.find("account")
    for option, what, wanted in (("account", "an account", site.account), ("qos", "a QOS", site.qos)):
        variable = f"SBATCH_{option.upper()}"
        if wanted and not (subject.meant.find(option) or site.personal.get(option) or os.environ.get(variable)):
            problem, why = f"{site.name} requires {what}, which is not set.", "The job is refused, or waits for ever."
            fix = f'export {variable}=..., or write {option} = "..." into slurm/sites/{site.id}.local.toml.'
            yield error("personal_missing", subject.meant.line(), problem, why, fix)
    why = "Another person, or another machine, does not have it."
    if account and account.line_number not in subject.blank:
        problem, fix = f"The account {account.value} is written into the script.", "Remove --account, and export"
        yield note("personal", account.line_number, problem, why, f"{fix} SBATCH_ACCOUNT=..., which sbatch reads.")
    told = [*subject.code(), *((found.line_number, found.value) for found in subject.meant.directives)]
    for number, line in told:
        if (match := _ABSOLUTE.search(line)) and not line.startswith("#!"):
            fix = "Write paths below the course's folder, or use a variable that is set in your environment."
            yield note("personal", number, f"{match[1]} is a path of one machine.", why, fix)
    own = variables.of_job(subject.meant, subject.name, "")
    if kept := variables.inherited(os.environ, own):
        problem = f"You are inside a job: one that you submit from here keeps its {', '.join(kept)}."
        fix = f"Submit it from a login node, or with: env -u {' -u '.join(kept)} sbatch FILE"
        yield note(
            "inside", 1, problem, "srun in the new job takes these for its own, and may start another number.", fix
        )


def _stops(subject):
    if not subject.shell or any(re.fullmatch(_ERREXIT, flag) for flag in subject.script.first.split()[1:]):
        return
    lines = [text for _, text in subject.code()]
    if any(re.match(rf"\s*set\s+(?:\S+\s+)*?({_ERREXIT}|-\w*o\s+errexit)", text) for text in lines):
        return
    if len(subject.tried.calls) > 1 or (not subject.tried.calls and len(lines) > 1):
        why = "The next command follows a training that failed, and SLURM counts the job as COMPLETED."
        fix = "Write `set -euo pipefail` as the first command."
        yield note("goes_on", subject.script.first_command, "The script goes on after an error.", why, fix)


def _fails(subject):
    """Where bash ends the script, or finds no program. What only a site can have is left out."""
    tried, lost = subject.tried, {}
    for line, name in tried.not_found:
        lost.setdefault(line, (name, _no_program(subject, line or 1, name)))
    for one in tried.calls:
        if one.words[0] == trial.UNKNOWN and (near := _misspelt(one.words[1])):
            lost.setdefault(one.line_number, (one.words[1], f"Did you mean {near}?"))
    ends = "Under `set -e` the script ends at this line; without it, it goes on without what this line should do."
    for line, (name, fix) in lost.items():
        hook = name in ("conda", "mamba", "micromamba")
        problem = f"`{name} activate` without its hook." if hook else f"bash finds no program `{name}`."
        yield error("fails", line, problem, ends, fix)
    if tried.error is None or not tried.certain or tried.line_number in lost:
        return
    line, (name, index) = tried.line_number, trial.unset_variable(tried.error) or (None, None)
    problem, why, fix = f"{tried.error}.", "The script ends at this line.", "`bash FILE` in a terminal shows the same."
    if index:
        problem = f"{name}{index} is not set: the array has no element with this index."
        fix = f"Compare the length of {name} with --array, or with the numbers of the loop; the first index is 0."
    elif name:
        problem, fix = f"${name} is not set, neither in the script nor here.", _assign(subject, line, name)
    yield error("fails", line, problem, why, fix)


def _no_program(subject, line, name):
    """What to write where bash finds no program of this name."""
    if name in ("conda", "mamba", "micromamba"):
        return (
            f'Write eval "$({name} shell.bash hook)" before it, or source etc/profile.d/conda.sh of the installation.'
        )
    if re.search(rf"(?:^|[\s;]){re.escape(name)}\s+=|=\s", subject.lines[line - 1]):
        return "Write name=value without blanks around the =."
    if name.startswith("-") and re.search(r"\\\s+$", subject.lines[line - 2]):
        return f"Remove the blanks behind the \\ that ends line {line - 1}: it must be the last character."
    if re.match(r"[\d(]|.*\*", name):
        return "$(...) runs a program; $((...)) computes."
    return "Check its name. A line begins with a program, a word of bash, or name=value."


def _misspelt(name):
    """The program whose letters a name has in another order, or all but one of them, or None."""
    for program in trial.STAND_INS:
        close = len(program) > 5 and difflib.SequenceMatcher(None, name, program).ratio() > 0.85
        if name.isalpha() and (sorted(name) == sorted(program) or close):
            return program
    return None


def _assign(subject, line, name):
    """What to write where a variable is not set."""
    if option := _ONLY_IF_ASKED.get(name):
        return f"Add #SBATCH --{option}=..., or write ${{{name}:-1}}."
    if re.search(rf"\${name}\s*=", subject.lines[(line or 1) - 1]):
        return f"To set it write {name}=..., without the $."
    near = trial.meant(name, "\n".join(text for _, text in subject.code()))
    return f"Did you mean ${near}?" if near else f"Set it above, or write ${{{name}:-VALUE}}."


_ONLY_IF_ASKED = {
    f"SLURM_{name.upper().replace('-', '_')}": name
    for name in ("ntasks", "ntasks-per-node", "cpus-per-task", "gpus", "gpus-per-node", "gpus-per-task")
} | {"SLURM_NPROCS": "ntasks", "SLURM_ARRAY_TASK_ID": "array", "SLURM_ARRAY_JOB_ID": "array"}
