"""One script tried out, from its beginning to its end, or to where it fails."""

import difflib
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from labs import sandbox
from labs.sandbox import walls
from labs.slurm import directives, sites, variables
from labs.slurm.trial import calls
from labs.slurm.trial.calls import Call

# 30 s: they end a command that has no end of its own, as awk's; a loop of bash's ends after SECONDS.
LIMITS = sandbox.Limits(seconds=30, memory=1 << 30, processes=200, disk=32 << 20, files=3000, output=1 << 18)
SECONDS = 8  # after which bash is stopped at its next command
_NEEDED = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)(?::?\?[^}]*)?\}|([A-Z][A-Z0-9_]*))")  # $NAME, ${NAME}, ${NAME:?why}
_OF_BASH = re.compile("_|SLURM_|CUDA_VISIBLE|BASH|HOST|SHELL|RANDOM|SECONDS|LINENO|(OLD)?PWD|E?UID|PPID|IFS|REPLY")
_SAID = re.compile(r"^(?P<name>[^:\n]+): (?:line )?(?P<line>\d+): (?P<text>.*)$", re.MULTILINE)
# Words of errors that a script has at every site: bash's own, and of programs that only compute.
_EVERYWHERE = re.compile(
    "division by 0|syntax error|command not found|value too great|bad substitution|not a valid identifier|"
    r"unbound variable|^cd: [^/~]|^`(\w+=\S*\$\(\s*)?(python|expr|bc|awk|seq|printf)\b"
)


@dataclass(frozen=True)
class Tried:
    """What a script does.

    calls: in order. line_number, error: where and why it does not come to its end, else None; certain: would it end
    there at every site? unknown: (line number or None, words) of what only its site can tell.
    """

    calls: list[Call]
    line_number: int | None = None
    error: str | None = None
    certain: bool = True
    unknown: tuple[tuple[int | None, str], ...] = ()


def try_out(
    text: str, name: str = "script.sh", root: str | Path | None = None, options: Iterable[tuple[str, str]] = ()
) -> Tried:
    """Try out the text of a batch script for bash; returns the Tried.

    name: its path below `root`
    root: the course's folder, where it starts (default: the one around the working directory)
    options: (long name, value) of options of `sbatch` in the command line, which count before the script's own

    Raises SandboxError where there is no sandbox.
    """
    root = Path(root or sites.find_root()).resolve()
    texts = [*root.glob("slurm/*/*.sh"), *root.glob("notebooks/scripts/*.py")]
    files = calls.files() | {str(path.relative_to(root)): path.read_bytes() for path in texts}
    files |= {"notebooks/runs/.gitkeep": "", name: text}
    env = variables.of_job(directives.read(text).with_options(options), name, walls.WORK)
    env |= {
        "PATH": "/tmp/stand-ins:" + walls.ENVIRONMENT["PATH"],
        "LC_ALL": "C",
        "LD_LIBRARY_PATH": "",
        "BASH_ENV": "/tmp/before.sh",
        "LABS_CALLS": f"{walls.WORK}/{calls.FOLDER}",
        "LABS_REAL_PYTHON": os.path.realpath(sys._base_executable),
        "LABS_SECONDS": str(SECONDS),
    }
    made_up = _of_the_site(text, env)
    files |= {f"/tmp/{variable}/.keep": "" for variable in made_up}
    flags = re.findall(r"(?<=\s)-\S+", text.split("\n")[0])
    done = sandbox.run_walled(
        ["bash", *flags, "--", name],
        files=files,
        read_only=[] if sys.base_prefix.startswith("/usr") else [sys.base_prefix],
        env=env | {variable: f"/tmp/{variable}" for variable in made_up},
        limits=LIMITS,
    )
    records = {Path(path).name: text for path, text in done.files.items() if str(Path(path).parent) == calls.FOLDER}

    def first(number):
        return _first_line(text, number)

    started = calls.read(records, first)
    line, error, certain = _failure(done, records, name, files, first)
    unknown = [(None, f"${variable} is not set here") for variable in made_up]
    programs = [one for one in started if one.words[0] == calls.UNKNOWN]
    unknown += [(one.line_number, f"`{one.words[1]}` is not known here, and was taken to succeed") for one in programs]
    if not certain:
        unknown.append((line, f"{error}; what follows it was not seen"))
    return Tried(started, line, error, certain, tuple(unknown))


def similar_variable(name: str, text: str) -> str | None:
    """The variable that a script's text sets and that a name not set is like, or None."""
    return next(iter(difflib.get_close_matches(name, _assigned(text) - {name}, 1, 0.7)), None)


def _assigned(text):
    return set(re.findall(r"(?m)(?:^|[\s;&|(])([A-Za-z_]\w*)\+?=", text))


def _of_the_site(text, env):
    """Names of the variables that a script needs and that only its site, or its user, can have set."""
    named = dict.fromkeys(braced or plain for braced, plain in _NEEDED.findall(re.sub(r"(?m)^\s*#.*", "", text)))
    missing = named.keys() - _assigned(text) - env.keys() - walls.ENVIRONMENT.keys()
    return sorted(name for name in missing if not _OF_BASH.match(name) and not similar_variable(name, text))


def _failure(done, records, name, files, first):
    """(line number, error, certain), see Tried, of a script that does not come to a good end, else (None, None, True).

    done: the SandboxOutcome; records: {name: bytes} that the traps wrote; files: those that it was given, by their
    paths; first: see `calls.read`.
    """
    if line := first(records.get("endless", b"").strip().decode(errors="replace")):
        return line, f"this runs again and again: after {SECONDS} s the script had not ended", True
    if done.ended:
        return None, f"the script was stopped, since it takes more {done.ended} than it may", True
    if done.status == 0:
        return None, None, True
    said = done.stderr.decode(errors="replace")
    own = [match for match in _SAID.finditer(said) if match["name"] in (name, "bash")]
    status, line, command = [*records.get("failed", b"").decode(errors="replace").strip().split(" ", 2), "", "", ""][:3]
    line = first(line)
    more = f": {said.strip().splitlines()[-1]}" if said.strip() else ""
    error = f"`{command}` ends with status {status}{more}" if line else f"it ends with status {done.status}{more}"
    if status == "exit":
        error = f"`{command}` ends the script"
    elif own and (line is None or (first(own[-1]["line"]) or 0) >= line):
        line, error = first(own[0]["line"]), own[0]["text"]
    lost = re.search(r"([^:'\s]+)'?: No such file", error)
    return line, error, bool(_EVERYWHERE.search(error) or (lost and lost[1] in files))


def _first_line(text, number):
    """The first line of the command that holds the line `number`, a text; None for no line of the script. Of a
    continued command bash may tell the last line."""
    lines = text.split("\n")
    if not number.isdecimal() or not 0 < int(number) <= len(lines):
        return None
    first = int(number)
    while first > 1 and re.search(r"\S.*\\$", lines[first - 2]):
        first -= 1
    return first
