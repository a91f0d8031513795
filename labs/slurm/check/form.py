"""Findings on what is written: the first line, directives that SLURM ignores or refuses, files, personal names."""

import difflib
import os
import re
import subprocess
from pathlib import PurePosixPath

from labs.slurm import directives, sites, trial
from labs.slurm.check.finding import finding

_NUMBERS = ("nodes", "ntasks", "ntasks-per-node", "ntasks-per-gpu", "cpus-per-task", "cpus-per-gpu")
_SYSTEM = "bin|dev|etc|lib|lib64|proc|run|sbin|sys|tmp|usr|var"
_ABSOLUTE = re.compile(rf"(?:^|(?<=[\s\"'=(]))(/(?!(?:{_SYSTEM})(?:/|\b))[\w.@+-]+(?:/[\w.@%+-]+)+)")


_ERREXIT = r"-[A-Za-z]*e\w*"


def findings(subject):
    """All findings of this theme."""
    checks = (_first_line, _ignored, _refused, _values, _time, _memory, _partition, _logs, _personal)
    for check in (*checks, _absolute, _stops, _fails):
        yield from check(subject)


def syntax(text):
    """The ScriptFinding of what bash cannot read, or None. Nothing is run."""
    try:
        told = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, timeout=10).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    errors = re.findall(r"line (\d+): (?!warning)(.*)", told)
    if not errors:
        return None
    said = "; ".join(dict.fromkeys(message for _, message in errors[:2]))
    return finding("bash_cannot_read", int(errors[0][0]), said=said)


def _first_line(subject):
    if "\r" in subject.text:
        yield finding("windows_lines", subject.text.split("\r")[0].count("\n") + 1)
    if not subject.script.first.startswith("#!"):
        yield finding("no_interpreter", 1)


def _ignored(subject):
    begin = subject.script.first_command or len(subject.lines)
    late = [line for line, *_ in subject.script.ignored if line > begin]
    for line, text, reason in subject.script.ignored:
        if line in late[1:]:
            continue  # told with the first of them
        others = f" and the {len(late) - 1} below it" if line in late and len(late) > 1 else ""
        yield finding("ignored", line, text=text, others=others, reason=reason)


def _refused(subject):
    for line, word, kind, reason in subject.script.refused:
        near = directives.similar(word.partition("=")[0]) if kind == "unknown" else None
        fix = f"Did you mean --{near}?" if near else "Write #SBATCH --option=value, without blanks around the =."
        if kind == "typographic":
            fix = "Type - and quotation marks on the keyboard again; this one was copied from a formatted text."
        elif kind == "unknown" and not near:
            fix += " If it belongs to a plugin of your site, sbatch --help there lists it."
        yield finding("refused", line, reason=reason, fix=fix)


def _values(subject):
    for line, option, value in subject.meant.directives:
        if line in subject.blank:
            continue
        wanted = None
        if option in _NUMBERS and not directives.number(value):
            wanted = "a whole number, at least 1"
        elif option in ("time", "time-min") and directives.minutes(value) is None:
            wanted = "a time as hours:minutes:seconds, such as 00:30:00"
        elif option in ("mem", "mem-per-cpu", "mem-per-gpu") and not re.fullmatch(r"\d+[KMGT]?B?", value, re.I):
            wanted = "a size such as 4G"
        elif option == "gres" and not re.fullmatch(r"(gpu|[a-z_]+)(:[A-Za-z]\w*)?([:=]\d+)?(,.*)?", value):
            wanted = "the kind and the number on each node, such as gpu:2"
        if wanted:
            yield finding("no_value", line, option=option, value=value, wanted=wanted)
        elif option == "gres" and "gpu" in value and not re.search(r"(^|,)gpu\b", value):
            yield finding("no_resource", line, value=value)


def _time(subject):
    asked, site = subject.asked["time_minutes"], subject.site
    if asked and asked > site.time_max:
        time, hours = subject.meant.value("time"), site.time_max / 60
        yield finding("too_long", subject.line("time"), time=time, hours=hours, site=site)
    elif asked is not None and asked < 2 and _works(subject):
        yield finding("too_short", subject.line("time"), time=subject.meant.value("time"), seconds=round(asked * 60))


def _memory(subject):
    """Less memory than TensorFlow takes for itself; a number alone is in MB."""
    asked, given = subject.asked, subject.meant.find("mem", "mem-per-cpu", "mem-per-gpu")
    match = given and re.fullmatch(r"(\d+)([KMGT]?)B?", given.value, re.I)
    count = {"mem": 1, "mem-per-cpu": asked["cpus_per_node"], "mem-per-gpu": asked["gpus_per_node"]}
    if not match or not _works(subject) or not count[given.option] or subject.meant.parts > 1:
        return
    memory = int(match[1]) * 1024 ** " KMGT".index(match[2].upper() or "M") * count[given.option]
    if 0 < memory < 2**30:  # 0: all of the node
        number = int(match[1])
        yield finding("little_memory", given.line_number, given=given, size=f"{memory / 2**20:g} MB", number=number)


def _works(subject):
    """Does it start Python? Then seconds or megabytes are too little."""
    if subject.untried:
        return any(re.search(r"\bpython|\.py\b", text) for _, text in subject.code())
    return bool(subject.trainings) or any(one.words[0].startswith("python") for one in subject.calls)


def _fails(subject):
    """Where bash ends the script, or finds no program. What only a site can have is left out."""
    tried, lost = subject.tried, {}
    for line, name in tried.not_found:
        lost.setdefault(line, name)
    for one in subject.calls:
        if one.words[0] == trial.UNKNOWN and (near := _misspelt(one.words[1])):
            yield finding("no_command", one.line_number, name=one.words[1], fix=f"Did you mean {near}?")
    for line, name in lost.items():
        fix = "Check its name. A line begins with a program, a word of bash, or name=value."
        if re.search(rf"(?:^|[\s;]){re.escape(name)}\s+=|=\s", subject.lines[(line or 1) - 1]):
            fix = "Write name=value without blanks around the =."
        elif name.startswith("-") and line and re.search(r"\\\s+$", subject.lines[line - 2]):
            fix = f"Remove the blanks behind the \\ that ends line {line - 1}: it must be the last character."
        elif re.match(r"[\d(]|.*\*", name):
            fix = "$(...) runs a program; $((...)) computes."
        yield finding("no_command", line, name=name, fix=fix)
    if tried.error is None or not tried.certain or tried.line_number in lost:
        return
    line, (name, index) = tried.line_number, trial.unset_variable(tried.error) or (None, None)
    if index:
        yield finding("beyond_array", line, name=name, index=index)
    elif name:
        yield finding("unset", line, name=name, fix=_fix(subject, line, name))
    else:
        yield finding("fails", line, error=tried.error)


def _misspelt(name):
    """The program whose letters a name has in another order, or all but one of them, or None."""
    for program in trial.STAND_INS:
        close = len(program) > 5 and difflib.SequenceMatcher(None, name, program).ratio() > 0.85
        if name.isalpha() and (sorted(name) == sorted(program) or close):
            return program
    return None


def _fix(subject, line, name):
    """What to write where a variable is not set."""
    text = "\n".join(text for _, text in subject.code())
    assigned = re.findall(r"(?m)(?:^|[\s;&|(])([A-Za-z_]\w*)\+?=", text)
    near = difflib.get_close_matches(name, set(assigned) - {name}, 1, 0.7)
    if name in _ONLY_IF_ASKED:
        return f"Add #SBATCH --{_ONLY_IF_ASKED[name]}=..., or write ${{{name}:-1}}."
    if re.search(rf"\${name}\s*=", subject.lines[(line or 1) - 1]):
        return f"To set it write {name}=..., without the $."
    return f"Did you mean ${near[0]}?" if near else f"Set it above, or write ${{{name}:-VALUE}}."


_ONLY_IF_ASKED = {
    f"SLURM_{name.upper().replace('-', '_')}": name
    for name in ("ntasks", "ntasks-per-node", "cpus-per-task", "gpus", "gpus-per-node", "gpus-per-task")
} | {"SLURM_NPROCS": "ntasks", "SLURM_ARRAY_TASK_ID": "array", "SLURM_ARRAY_JOB_ID": "array"}


def _partition(subject):
    given, site = subject.meant.find("partition"), subject.site
    if not given or given.line_number in subject.blank or given.value == site.partition:
        return
    others = [] if site.partition else [_load(id, subject.root) for id in sites.names(subject.root) if id != site.id]
    owner = next((other.name for other in others if other and other.partition == given.value), None)
    if site.partition or owner:
        fix = f"Write --partition={site.partition}." if site.partition else "Leave it out: the site has a default."
        whose = f"; it is one of {owner}'s" if owner else ""
        yield finding("no_partition", given.line_number, site=site, given=given.value, owner=whose, fix=fix)


def _load(id, root):
    try:
        return sites.load(id, root)
    except sites.SiteError:
        return None


def _logs(subject):
    out, err = subject.meant.find("output"), subject.meant.find("error")
    if not err and not subject.miswritten("err"):
        yield finding("no_error_file", subject.line("output"))
    elif out and err and err.value == out.value and err.line_number not in subject.blank:
        yield finding("one_file", err.line_number)
    missing = set()
    for given in filter(None, (out, err)):
        line, name, folder = given.line_number, given.value, str(PurePosixPath(given.value).parent)
        if line in subject.blank or name.startswith("/dev/"):
            continue
        if not re.search(r"%(\d*)[jJA]", name) and (given is out or not out or err.value != out.value):
            yield finding("no_job_number", line, given=given)
        if "$" in name or name.startswith("~"):
            yield finding("variable_in_directive", line, given=given)
        elif "%" not in folder and not name.startswith("/") and folder not in missing:
            if not (subject.root / folder).is_dir():
                missing.add(folder)
                yield finding("no_folder", line, folder=folder, option=given.option)


def _personal(subject):
    site, account = subject.site, subject.meant.find("account")
    for option, what, wanted in (("account", "an account", site.account), ("qos", "a QOS", site.qos)):
        variable = f"SBATCH_{option.upper()}"
        if wanted and not (subject.meant.find(option) or site.personal.get(option) or os.environ.get(variable)):
            line = subject.line()
            yield finding("personal_missing", line, site=site, what=what, option=option, variable=variable)
    if account and account.line_number not in subject.blank:
        yield finding("account_in_script", account.line_number, account=account.value)


def _absolute(subject):
    told = [(number, line) for number, line in subject.code()]
    told += [(found.line_number, found.value) for found in subject.meant.directives]
    for number, line in told:
        match = _ABSOLUTE.search(line)
        if match and not line.startswith("#!"):
            yield finding("path_of_a_machine", number, path=match[1])


def _stops(subject):
    if not subject.shell:
        return
    flags = subject.script.first.split()[1:]
    if any(re.fullmatch(_ERREXIT, flag) for flag in flags):
        return
    lines = [text for _, text in subject.code()]
    if any(re.match(rf"\s*set\s+(?:\S+\s+)*?({_ERREXIT}|-\w*o\s+errexit)", text) for text in lines):
        return
    if len(subject.calls) > 1 or (not subject.calls and len(lines) > 1):
        yield finding("goes_on", subject.script.first_command or 1)
