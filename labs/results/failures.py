"""Name the failure in what a job printed: which line proves it, and what to do about it.

The lines (labs.results.failure_signs) are those of TensorFlow, Python, SLURM, the shell, modules, launchers and networks.
Nothing is inferred: without a line that names a failure there is none. Of several, the first cause counts, not what
other ranks and the launcher say in its wake.
"""

import re
from pathlib import Path

from labs.results import failure_signs as signs

_RANK = re.compile(
    r"^[^\[\]<>]{0,40}\[(?:[^\[\]<>]*?,)?(\d+)\]<std(?:out|err)>:[ ]?"  # horovodrun, mpirun --tag-output
    r"|^\[(\d+)\] "  # mpiexec -prepend-rank
    r"|^ {0,4}(\d{1,5}): ?"  # srun --label
)

_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*)(?::\s.*|:?)$")
_WHOLE = re.compile(r":|(?:Error|Exception|Interrupt|Exit|Warning|Iteration)$")  # a name that is not cut off
_UNCLEAR = ("UnknownError", "InternalError", "AbortedError", "UnavailableError", "CancelledError")  # TensorFlow's
_NETWORK = re.compile("|".join(pattern for _, pattern, _ in signs.NETWORK))
_RANK_ENDED, _ENDED_BY_SRUN = re.compile(signs.RANK_ENDED), re.compile(signs.ENDED_BY_SRUN)
_ECHO = re.compile(r"^Horovod has been shut down|^Horovod detected that one or more processes exited")


def split_rank(line: str) -> tuple[int | None, str]:
    """(rank, rest) of a line with a launcher's rank prefix; (None, line) without one.

    For example `[1,0]<stdout>:Epoch 1/5` gives (0, "Epoch 1/5"), and `1: Epoch 1/5` gives (1, "Epoch 1/5").
    """
    match = _RANK.match(line)
    if not match:
        return None, line
    return int(next(group for group in match.groups() if group)), line[match.end() :]


def decode(data: bytes) -> str:
    """Text of a log: UTF-8 (a replacement mark for other bytes), or UTF-16 as PowerShell writes it."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def failure(text_or_path) -> dict | None:
    """The failure that a text or a file names, or None.

    Args: a Path, a file name (one line that ends in .err, .out, .log ...), or the text itself.
    Returns: {"kind", "line_number" (from 1), "line", "advice"}; kind is one of "out of memory",
    "time limit", "node failure", "import error", "missing module", "missing file", "python error", "cancelled",
    "killed", "NCCL error", "MPI error", "Gloo error", "job error".
    Errors: FileNotFoundError for a path that does not exist.
    """
    if isinstance(text_or_path, Path) or re.fullmatch(r"[^\n]*\.(?:err|error|out|output|log|txt)", text_or_path):
        text_or_path = decode(Path(text_or_path).read_bytes())
    lines = [re.split(r"[\r\b]+", line.rstrip("\r"))[-1].rstrip() for line in text_or_path.split("\n")]
    ranked = [split_rank(line) for line in lines]
    causes = _without_echoes(ranked)
    event = _first(*(_find([sign], causes) for sign in signs.SCHEDULER))
    exception = _traceback(ranked)
    found = (
        _find(signs.CERTAIN, ranked)
        or (event if event and event == _first(event, exception) else None)
        or _find(signs.PROBABLE, ranked)
        or exception
        or _find(signs.LATE, causes)
        or _find(signs.NETWORK, ranked)
        or _first(*(_find([sign], causes) for sign in signs.LAUNCHER))
        or _find(signs.ECHOES, ranked)
    )
    if not found:
        return None
    index, kind, advice = found
    return {"kind": kind, "line_number": index + 1, "line": lines[index].strip(), "advice": advice}


def _find(table, ranked):
    for kind, pattern, advice in table:
        sign = re.compile(pattern)
        for index, (_, line) in enumerate(ranked):
            if sign.search(line):
                return index, kind, advice
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
        elif match and not cut and (rank in inside or match[1] in signs.EXCEPTIONS):
            last[rank] = len(ends)
            ends.append([index, match[1], rank, match[1] == "HorovodInternalError" or _NETWORK.search(line)])
            inside.discard(rank)
        elif rank in last and (_ECHO.search(line) or (ends[last[rank]][1] in _UNCLEAR and _NETWORK.search(line))):
            ends[last[rank]][3] = True
    by_rank = any(end[2] is not None for end in ends)
    causes = [end for end in ends if not end[3] and not (by_rank and end[2] is None)]
    if not causes:
        return None
    index, name = [end for end in causes if end[2] == causes[0][2]][-1][:2]
    kind = signs.EXCEPTIONS.get(name, "python error")
    # Without its module, a program's own files or packages are missing too.
    module = kind in ("import error", "missing file") and _find(signs.NO_MODULE, ranked[:index])
    return module or (index, kind, signs.ADVICE[kind])
