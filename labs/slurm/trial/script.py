"""One script tried out, from its beginning to its end."""

import contextlib
import itertools
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from labs import sandbox
from labs.slurm import directives, sites, variables
from labs.slurm.trial import calls, failing

LIMITS = sandbox.Limits(seconds=30, memory=1 << 30, processes=200, disk=32 << 20, files=3000, output=1 << 18)
SECONDS = 8  # after which bash is stopped at its next command
ATTEMPTS = 8  # after each of which something is made up that only a site has
_SHELL = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?)?(bash|sh|dash)((?:\s+-\w+)*)\s*$")
_HERE = re.compile(
    r"LABS_|SCRIPTS$|SLURM_|PYTHON|LD_|BASH|PATH$|HOME$|TMPDIR$|O?L?D?PWD$|CUDA_VISIBLE_DEVICES$|SHELL|ENV$"
)


@dataclass(frozen=True)
class Tried:
    """What a script does. calls: in order. line_number, error: where and why it does not come to its end, else None."""

    calls: list
    line_number: int | None = None
    error: str | None = None


def missing(text):
    """Why a script's text cannot be tried out here, in words, or None."""
    if not _SHELL.match(text.split("\n", 1)[0]):
        return "its first line names no bash"
    return sandbox.missing()


def run(text, name="script.sh", root=None, known=None, options=()):
    """Try out the text of a batch script; returns the Tried.

    name: its path in the course's top folder `root`, where it starts. known: what is set where it is submitted.
    options: pairs (long name, value) of `sbatch` in the command line, which count before the script's own.
    Raises SandboxError where `missing` says why.
    """
    root = Path(root or sites.find_root()).resolve()
    shell, flags = _SHELL.match(text.split("\n", 1)[0]).groups()
    script = directives.read(text).meant()
    script = script._replace(directives=script.directives + [directives.Directive(0, *pair) for pair in options])
    env = variables.of_job(script, name, sandbox.walls.WORK)
    named = {key: value for key, value in (known or {}).items() if not _HERE.match(key)}
    env |= {key: value for key, value in named.items() if re.search(rf"\b{re.escape(key)}\b", text)}
    files = _course(root) | {name: text}
    tried = _once([shell, *flags.split(), "--", name], files, env, text)
    for _ in range(ATTEMPTS):
        if tried.error is None or not failing.made_up(tried.error, env, files):
            break
        with contextlib.suppress(sandbox.SandboxError):  # a file cannot be put there
            tried = _once([shell, *flags.split(), "--", name], files, env, text)
    return tried


def _once(argv, files, env, text):
    told = {
        "PATH": "/tmp/stand-ins:" + sandbox.walls.ENVIRONMENT["PATH"],
        "LC_ALL": "C",
        "BASH_ENV": "/tmp/beside.sh",
        "LABS_CALLS": f"{sandbox.walls.WORK}/{calls.FOLDER}",
        "LABS_REAL_PYTHON": sys._base_executable,
        "LABS_SECONDS": str(SECONDS),
    }
    read_only = [] if sys.base_prefix.startswith("/usr") else [sys.base_prefix]
    done = sandbox.run(argv, files=calls.files() | files, read_only=read_only, env=told | env, limits=LIMITS)
    records = {Path(path).name: text for path, text in done.files.items() if str(Path(path).parent) == calls.FOLDER}
    first = _first_lines(text)
    started = calls.read(records, first)
    last = started[-1].line_number if started else None
    return Tried(started, *failing.end(done, records, last, argv[-1], first, LIMITS, SECONDS))


def _course(root):
    """{path: text} of what a script may look at in the course's folder."""
    found = [*root.glob("slurm/*/*.sh"), *root.glob("notebooks/scripts/*.py")]
    small = (path for path in found if path.is_file() and path.stat().st_size < 1 << 18)
    files = {str(path.relative_to(root)): path.read_bytes() for path in itertools.islice(small, 200)}
    return files | {"notebooks/runs/.gitkeep": ""}


def _first_lines(text):
    """Line number -> that of the first line of its command: bash may tell the last one of a continued one."""
    first, lines = [0], text.split("\n")
    for number, _ in enumerate(lines, 1):
        continued = number > 1 and re.search(r"(?<!\\)(?:\\\\)*\\$", lines[number - 2])
        first.append(first[-1] if continued else number)
    return lambda number: first[number] if 0 < number < len(first) else None
