"""Where and why a script fails, and whether it only lacks something that its site would have."""

import difflib
import re
from pathlib import PurePosixPath

from labs.sandbox.walls import WORK
from labs.slurm.trial import calls

_SAID = re.compile(r"^(?P<name>[^:\n]+): (?:line )?(?P<line>\d+): (?P<text>.*)$", re.MULTILINE)
_UNSET = re.compile(r"^(?:.*line \d+: )?(?P<name>[A-Za-z_]\w*)(?P<index>\[.*\])?: (?:unbound variable|(?P<asked>.*))$")
# Names that a script sets itself; every other one in capital letters may be set by the site, its modules or a login.
_OWN = re.compile(
    r"[a-z_].*|SLURM_(?!TMPDIR).*|.*(BATCH|EPOCH|SEED|WORKER|GPUS|RANK|TASKS|RATE|LR|_?SIZE|COUNT|STEPS|NODES|MODEL)"
)
_FILE = re.compile(r"(?P<cd>cd: )?(?P<path>[^:'\s]*/[^:'\n]+|[^:'\s/]+)'?: (?:No such file or directory|[Nn]ot found)")
# Programs that only compute: what they refuse is wrong everywhere.
_COMPUTE = {"expr", "bc", "awk", "dc", "seq", "printf", "let", "declare", "local", "((", "[["}
_PROGRAM = re.compile(r"(?:\w+=(?:\"?\$\(|`)\s*|(?:\w+=\S*\s+)*)(?P<name>[A-Za-z][\w.+-]*)")
MADE_UP = '#!/bin/sh\ncase ${0##*/} in NAME) exec /tmp/stand-ins/labs-unknown "$0" "$@" ;; esac\nlabs_conda\n'
_LENIENT = '#!/bin/sh\nPATH=${PATH#*/stand-ins:}\nNAME "$@" 2>/dev/null\nexit 0\n'


def end(done, records, last, name, first, limits, seconds):
    """(line number, error, command) of a script that does not come to a good end, else three times None.

    done: the SandboxOutcome. records: {name: bytes} that the traps wrote. last: line of the last program it started.
    command: what failed, as bash shows it, "" where that is not known.
    """
    if records.get("endless", b"").strip().isdigit():
        line = first(int(records["endless"]))
        return line, f"this runs again and again: after {seconds} s the script had not ended", ""
    if done.ended == "files":
        return last, f"this runs again and again: it takes more than {limits.files} files or programs", ""
    if done.ended:
        sizes = {"memory": limits.memory, "disk": limits.disk, "output": limits.output}
        most = {name: f"{size / 2**20:g} MiB of {name}" for name, size in sizes.items()}
        most |= {"time": f"{limits.seconds} s", "processes": f"{limits.processes} processes at once"}
        return last, f"the script was stopped after this line: it takes more than {most[done.ended]}", ""
    if done.status == 0:
        return None, None, None
    said = done.stderr.decode(errors="replace")
    own = [match for match in _SAID.finditer(said) if match["name"] in (name, "bash", "sh")]
    own = [(first(int(match["line"])), match["text"]) for match in own]
    status, line, command = [*records.get("failed", b"").decode(errors="replace").strip().split(" ", 2), "", "", ""][:3]
    line = first(int(line)) if line.isdecimal() else None
    if status == "exit":
        return line, f"`{command}` ends the script", command
    if own and (line is None or (own[-1][0] or 0) >= line):
        then = f"; then line {own[-1][0]}: {own[-1][1]}" if own[0] != own[-1] else ""
        return own[0][0], own[0][1] + then, command if line == own[0][0] else ""
    more = f": {said.strip().splitlines()[-1]}" if said.strip() else ""
    if line:
        return line, f"`{command}` ends with status {status}{more}", command
    return last, f"the script ends with status {done.status}{more}", ""


def unset_variable(error: str | None) -> tuple[str, str | None] | None:
    """(name, index or None) of the variable that an error of bash names as not set; None for another error.

    The index is that of an array, as bash writes it: "[3]".
    """
    match = _UNSET.match(error or "")
    return (match["name"], match["index"]) if match and match["asked"] is None else None


def certain(error, command, made, files):
    """Is an error wrong at every site? made: what was made up before it; files: what the course's folder has."""
    lost = _FILE.search(error)
    if lost and lost["path"] in files:
        return True  # it is there, but not below the folder that the script has gone to
    everywhere = "cd: |.*syntax error(?: near|: unexpected)|.*CommandNotFoundError"
    if unset_variable(error) or re.match(everywhere, error):
        return True
    if made:
        return False
    arithmetic = "division by 0|syntax error|command not found|value too great|bad substitution"
    if re.match(f"(?!`).*({arithmetic})", error):
        return True
    match = _PROGRAM.match(command)
    return bool(match and (match["name"] in _COMPUTE or match["name"].startswith("python")))


def made_up(error, command, env, files, text):
    """Make up what an error says is missing, if only the site can have it: a variable (in `env`), a file, or what a
    program of the machine refuses (in `files`, {path: text}). Says what in words, "" where that is as usual at a site;
    or None. text: of the script."""
    match = _UNSET.match(error)
    if match and match["name"] not in env and not _OWN.fullmatch(match["name"]) and not meant(match["name"], text):
        env[match["name"]] = f"/tmp/{match['name']}"
        files[f"/tmp/{match['name']}/.keep"] = ""
        return ""
    match, there = _FILE.search(error), files.keys() | calls.files().keys()
    if match and (path := match["path"].removeprefix(f"{WORK}/")) not in there and "command not found" not in error:
        if match["cd"] and not path.startswith("/"):
            return None
        program = PurePosixPath(path).name
        made = calls.stand_in() if program in calls.STAND_INS else MADE_UP.replace("NAME", program)
        files[path + ("/.keep" if match["cd"] else "")] = made
        return "" if path.startswith("/") else f"there is no {path} here"
    match = error.startswith("`") and _PROGRAM.match(command)
    if match and (name := match["name"]) not in _COMPUTE | {"exit", "false", "return", "test", *calls.STAND_INS}:
        if (path := f"/tmp/stand-ins/{name}") not in files:
            files[path] = _LENIENT.replace("NAME", name)
            return f"{error}, and was taken as done"
    return None


def meant(name: str, text: str) -> str | None:
    """The variable that a script's text sets and that a name not set is like, or None."""
    assigned = set(re.findall(r"(?m)(?:^|[\s;&|(])([A-Za-z_]\w*)\+?=", text)) - {name}
    return next(iter(difflib.get_close_matches(name, assigned, 1, 0.7)), None)
