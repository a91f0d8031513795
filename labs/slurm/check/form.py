"""Findings on what is written: the first line, directives that SLURM ignores or refuses, files, personal names."""

import os
import re
import subprocess
from pathlib import PurePosixPath

from labs.slurm import directives, sites
from labs.slurm.check.finding import finding

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
    said = "; ".join(dict.fromkeys(message for _, message in errors[:2]))
    return finding("bash_cannot_read", int(errors[0][0]), said=said)


def _first_line(subject):
    if "\r" in subject.text:
        yield finding("windows_lines", subject.text.split("\r")[0].count("\n") + 1)
    if not subject.script.first.startswith("#!"):
        yield finding("no_interpreter", 1)


def _ignored(subject):
    for line, text, reason in subject.script.ignored:
        same = [one for one in subject.script.ignored if one[2] == reason]
        if "after the first command" in reason and same[0][0] != line:
            continue  # told with the first of them
        others = f" and the {len(same) - 1} below it" if "after" in reason and len(same) > 1 else ""
        yield finding("ignored", line, text=text, others=others, reason=reason)


def _refused(subject):
    for line, word, reason in subject.script.refused:
        near = directives.similar(word.partition("=")[0]) if "no option of sbatch" in reason else None
        fix = f"Did you mean --{near}?" if near else "Write #SBATCH --option=value, without blanks around the =."
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


def _partition(subject):
    given, site = subject.meant.find("partition"), subject.site
    if not given or given.line_number in subject.blank or given.value == site.partition:
        return
    others = [] if site.partition else [_load(id, subject.root) for id in sites.names(subject.root) if id != site.id]
    owner = next((other.name for other in others if other and other.partition == given.value), None)
    if site.partition or owner:
        fix = (
            f"Write --partition={site.partition}." if site.partition else "Leave the line out: the site has a default."
        )
        whose = f"; it is one of {owner}'s" if owner else ""
        yield finding("no_partition", given.line_number, site=site, given=given.value, owner=whose, fix=fix)


def _load(id, root):
    try:
        return sites.load(id, root)
    except sites.SiteError:
        return None


def _logs(subject):
    out, err = subject.meant.find("output"), subject.meant.find("error")
    if not err:
        yield finding("no_error_file", subject.line("output"))
    elif out and err.value == out.value and err.line_number not in subject.blank:
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
    flags = subject.script.first.split()[1:]
    if any(re.fullmatch(r"-\w*e\w*", flag) for flag in flags):
        return
    lines = [text for _, text in subject.code()]
    if any(re.match(r"\s*set\s+(?:\S+\s+)*?(-[a-df-z]*e\w*|-o\s+errexit|-\w*o\s+errexit)", text) for text in lines):
        return
    if len(subject.commands) > 1 or (not subject.commands and len(lines) > 1):
        yield finding("goes_on", subject.script.first_command or 1)
