"""Where and why a script does not come to its end, and what of that only its site can have."""

import re
from pathlib import PurePosixPath

from labs.sandbox.walls import WORK
from labs.slurm.trial import calls

_SAID = re.compile(r"^(?P<name>[^:\n]+): (?:line )?(?P<line>\d+): (?P<text>.*)$", re.MULTILINE)
_OF_SITES = "SCRATCH|WORK|PROJECT|TMP|TEMP|HOME|STORE|ARCHIVE|DATA|ROOT|DIR|PATH|PREFIX"
_VARIABLE = re.compile(
    rf"(?:^|line \d+: )(LABS_[A-Z]+|(?:[A-Z0-9]+_)*(?:{_OF_SITES})(?:DIR|_[A-Z0-9_]+|\d+)?): (?!command not found)"
)
_FILE = re.compile(r"(?P<cd>cd: )?(?P<path>/[^:'\n]+)'?: No such file or directory")


def end(done, records, last, name, first, limits, seconds):
    """(line number, error) of a script that does not come to a good end, else (None, None).

    done: the sandbox's Outcome. records: {name: bytes} that the traps wrote. last: line of the last program it started.
    """
    if records.get("endless", b"").strip().isdigit():
        return first(int(records["endless"])), f"this runs again and again: after {seconds} s the script had not ended"
    if done.ended:
        sizes = {"memory": limits.memory, "disk": limits.disk, "output": limits.output}
        most = {name: f"{size / 2**20:g} MiB of {name}" for name, size in sizes.items()}
        most |= {"time": f"{limits.seconds} s", "files": f"{limits.files} files or programs"}
        most["processes"] = f"{limits.processes} processes at once"
        return last, f"the script was stopped behind this line: it takes more than {most[done.ended]}"
    if done.status == 0:
        return None, None
    said = done.stderr.decode(errors="replace")
    own = [match for match in _SAID.finditer(said) if match["name"] in (name, "bash", "sh")]
    own = [(first(int(match["line"])), match["text"]) for match in own]
    status, line, command = [*records.get("failed", b"").decode(errors="replace").strip().split(" ", 2), "", "", ""][:3]
    line = first(int(line)) if line.isdecimal() else None
    if status == "exit":
        return line, f"`{command}` ends the script"
    if own and (line is None or (own[-1][0] or 0) >= line):
        then = f"; then line {own[-1][0]}: {own[-1][1]}" if own[0] != own[-1] else ""
        return own[0][0], own[0][1] + then
    more = f": {said.strip().splitlines()[-1]}" if said.strip() else ""
    if line:
        return line, f"`{command}` ends with status {status}{more}"
    return last, f"the script ends with status {done.status}{more}"


def made_up(error, env, files):
    """Make up what an error says is missing, if only the site can have it: a variable in capitals, a file outside."""
    if (match := _VARIABLE.search(error)) and match[1] not in env:
        env[match[1]] = f"/tmp/{match[1]}"
        files[f"/tmp/{match[1]}/.keep"] = ""
        return True
    match = _FILE.search(error)
    if not match or match["path"].startswith(WORK):
        return False
    program = PurePosixPath(match["path"]).name in calls.STAND_INS
    path = match["path"] + ("/.keep" if match["cd"] else "")
    made = path not in files
    files[path] = calls.stand_in() if program else "#!/bin/sh\n"
    return made
