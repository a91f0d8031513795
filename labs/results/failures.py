"""Name the failure in what a job printed: which line proves it, and what to do about it.

The lines (failures.toml) are those of TensorFlow, Python, SLURM, the shell, modules, launchers and networks. Nothing is
inferred: without a line that names a failure, no failure is told. Of several, the first cause counts, not what
other ranks and the launcher say in its wake.
"""

import re
from collections import namedtuple
from pathlib import Path
from typing import TypedDict

from labs import files
from labs.results import text

Sign = namedtuple("Sign", "kind pattern advice")


class Failure(TypedDict):
    """What proves a failure: its kind, one of those that `failure` lists; the line and its number from 1; what to do;
    the name of the file, "" of a text."""

    kind: str
    line_number: int
    line: str
    advice: str
    file: str


_FILE = files.beside(__file__)
_SAID, _EXCEPTIONS, MARKS = (_FILE.pop(part) for part in ("advice", "exceptions", "marks"))
SIGNS = {  # {group: [Sign, ...]} in the order of failures.toml
    group: [
        Sign(e["kind"], re.compile(e["pattern"].replace("\n", "|")), _SAID.get(e["advice"], e["advice"])) for e in signs
    ]
    for group, signs in _FILE.items()
}

# After the first line of this kind srun ends the other ranks, and says of them what happened to them.
_RANK_ENDED = re.compile(
    r"^srun: error: .*tasks? [\d,-]+: (?!Terminated)|Terminating (?:StepId=|job step)"
    r"|\*\*\* (?:STEP|JOB) .*CANCELLED"
)
_ENDED_BY_SRUN = re.compile(
    r"^srun: error: .*tasks? [\d,-]+: (?:Killed|Terminated|Segmentation fault)"
    r"|\*\*\* STEP .*CANCELLED AT \S+ \*\*\*"
)


_SIGNALLED = re.compile(r"SystemExit: 1(?:30|43)$")  # 128 + SIGINT or SIGTERM: what was asked for to end

_RANK = re.compile(
    r"^[^\[\]<>]{0,40}\[(?:[^\[\]<>]*?,)?(\d{1,9})\]<std(?:out|err)>:[ ]?"  # horovodrun, mpirun --tag-output
    r"|^\[(\d{1,9})\] "  # mpiexec -prepend-rank
    r"|^ {0,4}(\d{1,5}): ?"  # srun --label
)

_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*)(?::\s.*|:?)$")
_WHOLE = re.compile(r":|(?:Error|Exception|Interrupt|Exit|Warning|Iteration)$")  # a name that is not cut off
_UNCLEAR = ("UnknownError", "InternalError", "AbortedError", "UnavailableError", "CancelledError")  # TensorFlow's
_ECHO = re.compile(r"^Horovod has been shut down|^Horovod detected that one or more processes exited")


def split_rank(line: str) -> tuple[int | None, str]:
    """(rank, rest) of a line with a launcher's rank prefix; (None, line) without one.

    For example `[1,0]<stdout>:Epoch 1/5` gives (0, "Epoch 1/5"), and `1: Epoch 1/5` gives (1, "Epoch 1/5").
    """
    match = _RANK.match(line)
    if not match:
        return None, line
    return int(next(group for group in match.groups() if group)), line[match.end() :]


_BELOW = 60  # lines below the first one of a traceback, with its exception


def _lines(path):
    """(lines of a file, their numbers from 1): all of them, or of a large file those that may name a failure.

    These are the lines with one of MARKS, and those below the first line of a traceback, up to text.PIECE characters.
    """
    found, numbers, left, below = [], [], text.PIECE, 0
    for number, line, end in text.lines(path, [mark.encode() for mark in MARKS]):
        low = line.lower()
        below = _BELOW if "traceback" in low else below - 1
        if end or (left > 0 and (below > 0 or any(mark in low for mark in MARKS))):
            found.append(line)
            numbers.append(number)
            left -= 0 if end else len(line)
    return found, numbers


def failure(log: str | Path) -> Failure | None:
    """The failure that a text or the file at a Path names, or None.

    Its kind is one of "out of memory", "time limit", "node failure", "import error", "missing module", "missing file",
    "python error", "cancelled", "killed", "NCCL error", "MPI error", "Gloo error", "job error". Of a file above 4 MiB
    the ends are read whole.
    Errors: FileNotFoundError for a path that does not exist.
    """
    if isinstance(log, Path):
        lines, numbers = _lines(log)
    else:
        lines = log.split("\n")
        numbers = range(1, len(lines) + 1)
    lines = [re.split(r"[\r\b]+", line.rstrip("\r"))[-1].rstrip() for line in lines]
    ranked = [split_rank(line) for line in lines]
    causes = _without_echoes(ranked)
    event = _first(*(_find([sign], causes) for sign in SIGNS["scheduler"]))
    exception = _traceback(ranked)
    found = (
        _find(SIGNS["certain"], ranked)
        or (event if event and event == _first(event, exception) else None)
        or _find(SIGNS["probable"], ranked)
        or exception
        or _find(SIGNS["module"] + SIGNS["late"], causes)
        or _find(SIGNS["network"], ranked)
        or _first(*(_find([sign], causes) for sign in SIGNS["launcher"]))
        or _find(SIGNS["echo"], ranked)
    )
    if not found:
        return None
    index, kind, advice = found
    line, name = lines[index].strip(), log.name if isinstance(log, Path) else ""
    return Failure(kind=kind, line_number=numbers[index], line=line, advice=advice, file=name)


def _find(signs, ranked):
    """(index, kind, advice) of the first sign that any line shows, and its first line; None without any."""
    for sign in signs:
        for index, (_, line) in enumerate(ranked):
            if sign.pattern.search(line):
                return index, sign.kind, sign.advice
    return None


def _first(*found):
    """The one that stands first in the file; None without any."""
    return min((item for item in found if item), key=lambda item: item[0], default=None)


def _without_echoes(ranked):
    """The lines, without what srun says of the ranks that it ended itself after another one had ended."""
    ended, causes = False, []
    for rank, line in ranked:
        causes.append((rank, "" if ended and _ENDED_BY_SRUN.search(line) else line))
        ended = ended or _RANK_ENDED.search(line) is not None
    return causes


def _network(line):
    return any(sign.pattern.search(line) for sign in SIGNS["network"])


def _traceback(ranked):
    """(index, kind, advice) of the exception that ended the program, or None.

    With several ranks it is the one of the rank that ended first. What other ranks say then is an echo: that Horovod
    was shut down or the network failed, or, from the launcher (which has no rank), that a process has failed.
    """
    inside, ends, last = set(), [], {}
    for index, (rank, line) in enumerate(ranked):
        match = _EXCEPTION.match(line)
        cut = index == len(ranked) - 1 and match and not _WHOLE.search(line)
        if line.startswith("Traceback (most recent call last)"):
            inside.add(rank)
        elif match and not cut and (rank in inside or match[1] in _EXCEPTIONS):
            last[rank] = len(ends)
            ends.append([index, match[1], rank, match[1] == "HorovodInternalError" or _network(line)])
            inside.discard(rank)
        elif rank in last and (_ECHO.search(line) or (ends[last[rank]][1] in _UNCLEAR and _network(line))):
            ends[last[rank]][3] = True
    by_rank = any(end[2] is not None for end in ends)
    causes = [end for end in ends if not end[3] and not (by_rank and end[2] is None)]
    if not causes:
        return None
    index, name = [end for end in causes if end[2] == causes[0][2]][-1][:2]
    stopped = name == "SystemExit" and _SIGNALLED.search(ranked[index][1])
    kind, advice = _EXCEPTIONS.get("KeyboardInterrupt" if stopped else name, _EXCEPTIONS[""]).values()
    # Without its module, a program's own files or packages are missing too.
    module = kind in ("import error", "missing file") and _find(SIGNS["module"], ranked[:index])
    return module or (index, kind, advice)
