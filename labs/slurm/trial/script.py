"""One script tried out, from its beginning to its end."""

import contextlib
import itertools
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from labs import sandbox
from labs.sandbox import walls
from labs.slurm import directives, sites, variables
from labs.slurm.trial import calls, failing
from labs.slurm.trial.calls import Call

LIMITS = sandbox.Limits(seconds=30, memory=1 << 30, processes=200, disk=32 << 20, files=3000, output=1 << 18)
SECONDS = 8  # after which bash is stopped at its next command
ATTEMPTS = 8  # after each of which something is made up that only a site has
_SHELL = re.compile(rf"(?!#!)|#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?)?(bash|sh|dash)((?:\s+[-{directives.DASHES}]\S+)*)\s*$")
_NO_BASH = "its first line names no bash"
_HERE = re.compile(
    r"LABS_|SCRIPTS$|SLURM_|PYTHON|LD_|BASH|PATH$|HOME$|TMPDIR$|O?L?D?PWD$|CUDA_VISIBLE_DEVICES$|SHELL|ENV$"
)
# Signals as a job has them: bash lets a command in the background ignore SIGINT and SIGQUIT, which shows what is one.
_SIGNALS = (
    "import os, signal, sys; [signal.signal(each, signal.SIG_DFL) for each in (2, 3)]; os.execvp('sh', sys.argv[1:])"
)
# The script; then until what it has left in the background is gone (two processes are not of it), or for a second.
_TO_THE_END = """"$@"; status=$?; i=0; ls "$LABS_CALLS" >"$LABS_CALLS/ended"
while set -- /proc/[0-9]*; [ $# -gt 2 ] && [ $((i += 1)) -le 20 ]; do /bin/sleep 0.05; done
exit $status"""
_PATH = re.compile(r"[\w.@+-]+(?:/[\w.@+-]+)*")


@dataclass(frozen=True)
class Tried:
    """What a script does.

    calls: in order. line_number, error: where and why it does not come to its end, else None; certain: would it end
    there at every site? unknown: (line number or None, words) of what only its site can tell, so that what follows
    from it was made up. not_found: (line number, name) of what is not a command. files: paths that it has written.
    waits: the steps (Call.step) at which it waits for what it started in the background.
    """

    calls: list[Call]
    line_number: int | None = None
    error: str | None = None
    certain: bool = True
    unknown: tuple[tuple[int | None, str], ...] = ()
    not_found: tuple[tuple[int | None, str], ...] = ()
    files: frozenset[str] = frozenset()


def trial_missing(text: str) -> str | None:
    """Why a script's text cannot be tried out here, in words, or None."""
    if not _SHELL.match(text.split("\n", 1)[0]):
        return _NO_BASH
    return sandbox.sandbox_missing()


def try_out(
    text: str,
    name: str = "script.sh",
    root: str | Path | None = None,
    known: Mapping[str, str] | None = None,
    options: Iterable[tuple[str, str]] = (),
) -> Tried:
    """Try out the text of a batch script; returns the Tried.

    name: its path below `root`
    root: the course's folder, where it starts (default: the one around the working directory)
    known: {variable: value} of what is set where it is submitted
    options: (long name, value) of options of `sbatch` in the command line, which count before the script's own

    Raises SandboxError where `trial_missing` says why.
    """
    root = Path(root or sites.find_root()).resolve()
    if not (first := _SHELL.match(text.split("\n", 1)[0])):
        raise sandbox.SandboxError(_NO_BASH)
    shell, flags = first[1] or "bash", [flag for flag in (first[2] or "").split() if flag.startswith("-")]
    script = directives.read(text).meant().with_options(options)
    env = variables.of_job(script, name, walls.WORK)
    handed = (known or {}) if script.value("export") in (None, "ALL") else {}
    named = {key: value for key, value in handed.items() if not _HERE.match(key)}
    env |= {key: value for key, value in named.items() if re.search(rf"\b{re.escape(key)}\b", text)}
    env |= {"LABS_POSIX": "1"} if shell == "sh" else {}
    argv = ["sh", "-c", _TO_THE_END, "sh", "bash" if shell == "sh" else shell, *flags, "--", name]
    files, made = _course(root, text) | {name: text}, []
    tried, command = _once(argv, files, env, text)
    for _ in range(ATTEMPTS):
        if tried.error is None or (more := failing.made_up(tried.error, command, env, files, text)) is None:
            break
        made += [(tried.line_number, more)] if more else []
        try:
            tried, command = _once(argv, files, env, text)
        except sandbox.SandboxError:  # a file cannot be put there
            break
    sure = tried.error is None or failing.certain(tried.error, command, made, calls.files() | files)
    if not sure:
        made.append((tried.line_number, f"{tried.error}; what follows it was not seen"))
    odd = [one for one in tried.calls if one.words[0] == calls.UNKNOWN and not one.words[1].endswith(".py")]
    made += [(one.line_number, f"`{one.words[1]}` is not known here, and was taken to succeed") for one in odd]
    return replace(tried, certain=sure, unknown=tuple(made))


def _once(argv, files, env, text):
    """(the Tried, the command that failed)."""
    told = {
        "PATH": "/tmp/stand-ins:" + walls.ENVIRONMENT["PATH"],
        "LC_ALL": "C",
        "BASH_ENV": "/tmp/beside.sh",
        "LABS_CALLS": f"{walls.WORK}/{calls.FOLDER}",
        "LABS_REAL_PYTHON": os.path.realpath(sys._base_executable),
        "LABS_SECONDS": str(SECONDS),
    }
    read_only = [] if sys.base_prefix.startswith("/usr") else [sys.base_prefix]
    argv = [told["LABS_REAL_PYTHON"], "-ISc", _SIGNALS, *argv]
    done = sandbox.run_walled(argv, files=calls.files() | files, read_only=read_only, env=told | env, limits=LIMITS)
    records = {Path(path).name: text for path, text in done.files.items() if str(Path(path).parent) == calls.FOLDER}
    first = _first_lines(text)
    started = calls.read(records, first)
    last = next((one.line_number for one in reversed(started) if one.line_number), None)
    line, error, command = failing.end(done, records, last, argv[-1], first, LIMITS, SECONDS)
    lost = [row.partition(" ")[::2] for row in records.get("not_found", b"").decode(errors="replace").splitlines()]
    lost = tuple((first(int(number)), word) for number, word in lost if number.isdecimal())
    written = frozenset(path for path in done.files if path not in files)
    return Tried(started, line, error, not_found=lost, files=written), command


def _course(root, text):
    """{path: text} of what a script may look at in the course's folder: its scripts, and what the text names."""
    named = (root / path for path in sorted(set(_PATH.findall(text))) if ".." not in path)
    found = [*root.glob("slurm/*/*.sh"), *root.glob("notebooks/scripts/*.py"), *itertools.islice(named, 1000)]
    files = {"notebooks/runs/.gitkeep": ""}
    for path in itertools.islice(found, 1200):
        with contextlib.suppress(OSError):
            name = str(path.relative_to(root))
            if path.is_dir() and path.resolve().is_relative_to(root):
                files.setdefault(f"{name}/.keep", "")
            elif path.is_file() and path.stat().st_size < 1 << 18 and ".local." not in name:
                files[name] = path.read_bytes()
    return files


def _first_lines(text):
    """Line number -> that of the first line of its command: bash may tell the last one of a continued one."""
    first, lines = [0], text.split("\n")
    for number, _ in enumerate(lines, 1):
        before = lines[number - 2] if number > 1 else ""
        continued = before.strip() != "\\" and re.search(r"(?<!\\)(?:\\\\)*\\$", before)
        first.append(first[-1] if continued else number)
    return lambda number: first[number] if 0 < number < len(first) else None
