"""Name the failure in what a job printed: which line proves it, and what to do about it.

The lines are those of TensorFlow, Python, SLURM, the shell, modules, launchers and networks. Nothing is
inferred: without a line that names a failure, no failure is told. Of several, the first cause counts, not what
other ranks and the launcher say in its wake.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from typing_extensions import TypedDict  # pydantic refuses that of typing before Python 3.12

from labs.results import text


class Failure(TypedDict):
    """What proves a failure: its kind, one of those that `failure` lists; the line and its number from 1; what to do;
    the name of the file, "" of a text."""

    kind: str
    line_number: int
    line: str
    advice: str
    file: str


_ENVIRONMENT = "Start the job in the kit's environment (uv run ..., or load the site's modules)."
_STOPPED = "Someone stopped the job; submit it again."
_BATCH = "Halve the batch size (--batch_size) or use smaller images, and run again."
_HOST = "Halve the batch size, or ask for more host memory (in SLURM: --mem or more --cpus-per-task)."
_SHM = "Start the container with --shm-size=1g or --ipc=host (Docker, Podman), or bind /dev/shm (Apptainer)."
_EXCEPTIONS = {  # what ends a program, by the name of its exception; "" for all others: (kind, advice)
    "ModuleNotFoundError": ("import error", _ENVIRONMENT),
    "ImportError": ("import error", _ENVIRONMENT),
    "FileNotFoundError": ("missing file", "Check the path and the folder the job starts in."),
    "KeyboardInterrupt": ("cancelled", _STOPPED),
    "": ("python error", "Read the traceback above this line: it names the file and the line of the script."),
}
# {group: [(kind, pattern, advice), ...]}, searched in a line without its rank prefix. They stand in the order in which
# they prove a failure, and so do the signs of a group.
# Sources: TensorFlow, Keras, Python, bash, SLURM 22.05, Lmod, Environment Modules, MPICH, Open MPI, Intel MPI,
# Cray MPICH, NCCL, Horovod, Gloo.
_SIGNS = {
    "certain": [  # nothing else in the file counts beside these
        ("out of memory", r"OOM when allocating tensor with shape", _BATCH),
        ("out of memory", r"ResourceExhaustedError|RESOURCE_EXHAUSTED: (?!End of)|CUDA out of memory", _BATCH),
        (
            "out of memory",
            r"oom[-_]kill event|oom_kill|out-of-memory handler|tasks? .*: Out Of Memory|exceeded memory limit \("
            r"|Exceeded (?:job|step) memory limit|^(?:[\w.]*\.)?_?(?:Array)?MemoryError\b|std::bad_alloc"
            r"|annot allocate memory",
            _HOST,
        ),
        (
            "shared memory",
            r"NCCL WARN .*(?:posix_fallocate|shared memory segment)|/dev/shm.*No space left|No space left.*/dev/shm",
            "Not the disk: the shared memory of the container, /dev/shm, is too small (64 MB by default). " + _SHM,
        ),
        (
            "shared memory",
            r"\b[Bb]us error\b|\bsignal 7\b|CODE: 135\b|exit code 135\b",
            "A bus error: most often /dev/shm, the shared memory of a container, is too small, or a file was cut "
            "while it was read. " + _SHM,
        ),
        (
            "disk full",
            r"No space left on device|Disk quota exceeded",
            "Delete what is not needed (`df -h .`, `quota`).",
        ),
    ],
    "scheduler": [  # the first of these lines and of the exceptions is the cause: what follows it are echoes
        ("time limit", r"DUE TO TIME LIMIT|TIMEOUT \*\*\*", "Ask for more time (--time) or train for fewer epochs."),
        (
            "node failure",
            r"DUE TO NODE FAILURE|^srun: error: Node failure on ",
            "A node broke; the script is not to blame. Submit it again, and tell the site if it happens twice.",
        ),
        ("cancelled", r"\*\*\* .*DUE TO PREEMPTION", "A job with a higher priority took its place; submit it again."),
        ("cancelled", r"\*\*\* JOB .*CANCELLED AT \S+ \*\*\*", _STOPPED),
    ],
    "probable": [  # a request that was refused; a program can go on after it
        ("out of memory", r"CUDA_ERROR_OUT_OF_MEMORY", "If nobody else uses the GPU, halve the batch size.")
    ],
    "module": [  # a module that is missing explains a package or file that is missing after it
        (
            "missing module",
            r"(?:^|: )(?:module|ml): (?:command )?not found$",
            "There is no module command here: begin the script with `#!/bin/bash -l`, or leave the modules out.",
        ),
        (
            "missing module",
            r"Unable to locate a modulefile|Lmod has detected the following error"
            r"|^\s*ERROR: .*\bcannot be loaded due to\b|ModuleCmd_Load\.c\(\d+\):ERROR",
            "Find the module's right name with `module avail` (or `module spider NAME`) on a login node, and correct "
            "the script.",
        ),
    ],
    "late": [  # often only the consequence of an exception
        ("cancelled", r"^KeyboardInterrupt\b", _STOPPED),
        (
            "missing file",
            r"can't open file|(?<!shared object file): No such file or directory|: command not found|: not found$",
            "Check the path and the folder the job starts in, and load the modules or the environment first.",
        ),
        (
            "killed",
            r"^(?:\S+: line \d+: +\d+ )?Killed\b|KILLED BY SIGNAL|tasks? .*: Killed|signal 9\b|Segmentation fault"
            r"|CODE: 13[79]\b",
            "The system ended the process, most often for lack of memory: halve the batch size and run again.",
        ),
    ],
    "network": [  # the rank that says so may be the one that was left alone: another that died in a known way counts
        (
            "NCCL error",
            r"\bnccl[A-Z]\w+ failed|\bNCCL: (?:unhandled|internal|invalid|remote) |\bNCCL error\b"
            r"|\bnccl(?:System|UnhandledCuda|Internal|InvalidUsage|InvalidArgument|Remote)\w*\b",
            "The GPUs could not talk to each other. Run it again with NCCL_DEBUG=INFO and read the first line with "
            "NCCL WARN; check that each rank has a GPU of its own and that NCCL_SOCKET_IFNAME is the site's network.",
        ),
        (
            "MPI error",
            r"^Abort\(-?\d+\) on node |Fatal error in (?:P?MPI|internal)_|\*\*\* An error occurred in "
            r"|\bMPI_ERR_[A-Z]+: |MPI_ABORT was invoked|application called MPI_Abort"
            r"|OMPI was not built with SLURM's PMI support|It looks like MPI_INIT failed"
            r"|There are not enough slots available in the system",
            "The ranks were not connected, or lost each other. Check that the launcher belongs to the MPI that Horovod "
            "was built with (in SLURM: srun --mpi=...), and the ranks' lines above this one.",
        ),
        (
            "Gloo error",
            r"\bgloo/\S+\.(?:cc|h):\d+\]|\bgloo::\w+|\bGloo \w+ failed",
            "The ranks could not reach each other, or one ended silently. Check the network interface "
            "(HOROVOD_GLOO_IFACE) and the ranks' lines around this one.",
        ),
    ],
    "launcher": [  # its word that a process ended, or SLURM's that it cancelled the others; the first of them
        ("cancelled", r"\*\*\* .*CANCELLED AT \S+ \*\*\*", _STOPPED),
        (
            "cancelled",
            r"\*\*\* .*CANCELLED(?!.*\*\*\*)",
            "The line is cut off: someone stopped the job, or its time ran out. `sacct -j NUMBER` tells.",
        ),
        (
            "job error",
            r"^(?:srun|sbatch|salloc|slurmstepd)(?:-\S+)?: fatal: ",
            "SLURM refuses what this line names: correct the script's options, or the variables, and submit it again.",
        ),
        (
            "job error",
            r"^(?:srun|sbatch|slurmstepd|mpiexec|horovodrun)(?:-\S+)?: error: |[Ee]xited with exit code [1-9]",
            "The launcher gives no reason here: read the lines above it in the .err.",
        ),
    ],
    "echo": [  # when nothing else is there
        (
            "job error",
            r"Horovod has been shut down|Horovod detected that one or more processes exited",
            "Another rank ended first and left no line in this file; read the end of the .out.",
        )
    ],
}
SIGNS = {group: [(kind, re.compile(sign), advice) for kind, sign, advice in signs] for group, signs in _SIGNS.items()}
# A line that names a failure, or an exception's, holds one of these words.
_MARKS = (
    "abort|alloc|bus error|cancel|code: 13|due to|error|exception|exhausted|exit|failed|fatal|fault|found|gloo|"
    "horovod|interrupt|kill|lmod|loaded|memory|modulefile|mpi|nccl|no space|no such|oom|open file|quota|signal|"
    "slots|srun|subset of ranks|terminat|timeout|traceback"
).split("|")

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

_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*)(?::\s.*|:?)$")
_WHOLE = re.compile(r":|(?:Error|Exception|Interrupt|Exit|Warning|Iteration)$")  # a name that is not cut off
_UNCLEAR = ("UnknownError", "InternalError", "AbortedError", "UnavailableError", "CancelledError")  # TensorFlow's
_ECHO = re.compile(r"^Horovod has been shut down|^Horovod detected that one or more processes exited")


MOST = 2000  # lines that may name a failure, at each end
_BELOW = 60  # lines below the first one of a traceback, with its exception
_STALL = re.compile("tensors were submitted to be reduced.* by subset of ranks")


def failure(log: str | Path) -> Failure | None:
    """The failure that a text or the file at a Path names, or None.

    Its kind is one of "out of memory", "shared memory", "disk full", "stalled", "time limit", "node failure", "import
    error", "missing module", "missing file", "python error", "cancelled", "killed", "NCCL error", "MPI error",
    "Gloo error", "job error".
    Errors: FileNotFoundError for a path that does not exist.
    """
    if isinstance(log, Path):
        return first_cause(text.lines(log, _MARKS), log.name)
    lines = log.split("\n")
    return first_cause((number, line, number < len(lines)) for number, line in enumerate(lines, 1))


def in_files(*paths: Path | None) -> Failure | None:
    """The failure in the files of a job, by their order, those that are there: the first with a reason, else the
    launcher's word that something failed."""
    named = [found for path in paths if path and path.is_file() and (found := failure(path))]
    return next((found for found in named if found["kind"] != "job error"), named[0] if named else None)


def first_cause(lines: Iterable[tuple[int, str, bool]], name: str = "") -> Failure | None:
    """The failure that some lines (number, text, whether it has ended) name; name: of their file."""
    kept, below, last = [], 0, (0, "", True)
    for last in lines:
        number, line, _ = last
        below = _BELOW if "Traceback" in line or _STALL.search(line) else below - 1
        low = line.lower()
        if below > 0 or any(mark in low for mark in _MARKS):
            kept.append((number, line.rstrip()))
        if len(kept) > 4 * MOST:
            del kept[MOST : 3 * MOST]  # of so many the ends are looked at
    cut = bool(kept) and kept[-1][0] == last[0] and not last[2]
    ranked = [text.split_rank(line) for _, line in kept]
    causes = _without_echoes(ranked)
    event = _first(*(_find([sign], causes) for sign in SIGNS["scheduler"]))
    exception = _traceback(ranked, cut)
    cause = (
        _find(SIGNS["certain"], ranked)
        or (_stalled(kept, event) or event if event and event == _first(event, exception) else None)
        or _find(SIGNS["probable"], ranked)
        or exception
        or _find(SIGNS["module"] + SIGNS["late"], causes)
        or _find(SIGNS["network"], ranked)
        or _stalled(kept, _find(SIGNS["echo"], ranked))
        or _first(*(_find([sign], causes) for sign in SIGNS["launcher"]))
        or _find(SIGNS["echo"], ranked)
    )
    if not cause:
        return None
    index, kind, advice = cause
    number, line = kept[index]
    return Failure(kind=kind, line_number=number, line=line.strip(), advice=advice, file=name)


def sentence(failure: Failure, source: str = "") -> str:
    """A failure with its proof and what to do about it; source: the file, where the failure does not name it."""
    place = f"{failure['file'] or source}, line {failure['line_number']}"
    return f"failed: {failure['kind']} ({place}: {failure['line'][:200]}). {failure['advice']}"


def harmless(problem: Failure) -> bool:
    """Whether a job whose runs have all finished can have gone on after this failure."""
    return "CUDA_ERROR_OUT_OF_MEMORY" in problem["line"] or problem["kind"] in ("missing file", "missing module")


def _stalled(kept, event):
    """Horovod's stall message before a job was ended from outside, or by Horovod, as (index, kind, advice) of its first
    line; else None."""
    if not event or event[1] not in ("time limit", "cancelled", "job error"):
        return None
    stalls = [index for index, (_, line) in enumerate(kept[: event[0]]) if _STALL.search(line)]
    if not stalls:
        return None
    missing = {}
    for _, line in kept[stalls[-1] : event[0]]:
        for rank, tensors in re.findall(r"^(?:\[[^\]]*\]<std\w+>:|\d+: ?)?\s*(\d+): \[(.*?)\]$", line):
            missing.setdefault(tensors, []).append(int(rank))
        for tensors, ranks in re.findall(r"(\S+) \[missing ranks: ([\d, ]+)\]", line):
            missing.setdefault(tensors, []).extend(map(int, ranks.split(",")))
    waits = "; ".join(f"{_ranks(ranks)} not come to {tensors[:120]}" for tensors, ranks in missing.items())
    advice = f"Ranks waited for each other{f': {waits}' if waits else ''}. "
    if len(missing) > 1:
        advice += (
            "So they stand in different calls: look for `if rank() == 0:` around something that exchanges, as "
            "evaluate() with Horovod's metrics. Let all ranks do it, or use a model without Horovod there. "
        )
    end = kept[event[0]][0]
    return stalls[0], "stalled", f"{advice}If the training went on after this, line {end} is the cause: {event[1]}."


def _ranks(numbers):
    numbers = sorted(set(numbers))
    return f"rank {numbers[0]} has" if len(numbers) == 1 else f"ranks {', '.join(map(str, numbers))} have"


def _find(signs, ranked):
    """(index, kind, advice) of the first sign that any line shows, and its first line; None without any."""
    for kind, pattern, advice in signs:
        for index, (_, line) in enumerate(ranked):
            if pattern.search(line):
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


def _network(line):
    return any(pattern.search(line) for _, pattern, _ in SIGNS["network"])


def _traceback(ranked, last_is_cut):
    """(index, kind, advice) of the exception that ended the program, or None.

    With several ranks it is the one of the rank that ended first. What other ranks say then is an echo: that Horovod
    was shut down or the network failed, or, from the launcher (which has no rank), that a process has failed.
    """
    inside, ends, last = set(), [], {}
    for index, (rank, line) in enumerate(ranked):
        match = _EXCEPTION.match(line)
        cut = last_is_cut and index == len(ranked) - 1 and match and not _WHOLE.search(line)
        if line.startswith("Traceback (most recent call last)"):
            inside.add(rank)
        elif match and not cut and (rank in inside or match[1] in _EXCEPTIONS):
            last[rank] = len(ends)
            echo = match[1] == "HorovodInternalError" or "Horovod has been shut down" in line or _network(line)
            ends.append([index, match[1], rank, echo])
            inside.discard(rank)
        elif rank in last and (_ECHO.search(line) or (ends[last[rank]][1] in _UNCLEAR and _network(line))):
            ends[last[rank]][3] = True
    by_rank = any(end[2] is not None for end in ends)
    causes = [end for end in ends if not end[3] and not (by_rank and end[2] is None)]
    if not causes:
        return None
    index, name = [end for end in causes if end[2] == causes[0][2]][-1][:2]
    stopped = name == "SystemExit" and _SIGNALLED.search(ranked[index][1])
    kind, advice = _EXCEPTIONS.get("KeyboardInterrupt" if stopped else name, _EXCEPTIONS[""])
    # Without its module, a program's own files or packages are missing too.
    module = kind in ("import error", "missing file") and _find(SIGNS["module"], ranked[:index])
    return module or (index, kind, advice)
