"""Name the failure in what a job printed: which line proves it, and what to do about it.

The lines are those of TensorFlow, Python, SLURM, the shell, modules, launchers and networks. Nothing is
inferred: without a line that names a failure, no failure is told. Of several, the first cause counts, not what
other ranks and the launcher say in its wake.
"""

import re
from pathlib import Path

from typing_extensions import TypedDict  # pydantic refuses that of typing before Python 3.12

from labs.printed import grouped
from labs.results import text


class Failure(TypedDict):
    """What proves a failure: its kind, one of those that `failure` lists; the line and its number from 1; what to do;
    the name of the file, "" of a text."""

    kind: str
    line_number: int
    line: str
    advice: str
    file: str


_SMALLER = "Halve the batch size (--batch_size) or use smaller images, and run again."
_ENVIRONMENT = "Start the job in the kit's environment (uv run ..., or load the site's modules)."
_EXCEPTIONS = {  # what ends a program, by the name of its exception; "" for all others: (kind, advice)
    "ModuleNotFoundError": ("import error", _ENVIRONMENT),
    "ImportError": ("import error", _ENVIRONMENT),
    "FileNotFoundError": ("missing file", "Check the path and the folder the job starts in."),
    "KeyboardInterrupt": ("cancelled", "Someone stopped the job; submit it again."),
    "": ("python error", "Read the traceback above this line: it names the file and the line of the script."),
}
# (kind, advice, pattern) of a line without its rank prefix, in groups, from what proves most to what proves least. Seen
# in TensorFlow, Keras, Python, bash, SLURM 22.05, Lmod, Environment Modules, MPICH, Open MPI, NCCL, Horovod, Gloo.
_SIGNS = {
    "certain": [  # nothing else in the file counts beside these
        ("out of memory", _SMALLER, r"OOM when allocating tensor"),  # names the tensor: proves more than the next
        ("out of memory", _SMALLER, r"ResourceExhaustedError|RESOURCE_EXHAUSTED: (?!End of)|Error: .*out of memory"),
        (
            "out of memory",
            "Halve the batch size, or ask for more host memory (in SLURM: --mem or more --cpus-per-task).",
            r"oom[-_]kill|out-of-memory handler|tasks? .*: Out Of Memory|xceeded (?:job |step )?memory limit"
            r"|^(?:[\w.]*\.)?_?(?:Array)?MemoryError\b|std::bad_alloc|annot allocate memory",
        ),
        (
            "shared memory",
            "Most often /dev/shm of a container is too small (64 MB), and not the disk: start it with --shm-size=1g or "
            "--ipc=host (Docker, Podman), or bind /dev/shm (Apptainer).",
            r"NCCL WARN .*(?:posix_fallocate|shared memory segment)|/dev/shm.*No space left|No space left.*/dev/shm"
            r"|\b[Bb]us error\b|\bsignal 7\b|(?:CODE:|exit code) 135\b",
        ),
        ("disk full", "Delete what is not needed (`df -h .`, `quota`).", r"No space left on device|quota exceeded"),
    ],
    "scheduler": [  # the first of these lines and of the exceptions is the cause: what follows it are echoes
        ("time limit", "Ask for more time (--time) or train for fewer epochs.", r"DUE TO TIME LIMIT"),
        (
            "cancelled",
            "A person, a job with a higher priority or a broken node ended it, as the line says. Submit it again.",
            r"\*\*\* .*DUE TO (?:PREEMPTION|NODE FAILURE)|\*\*\* JOB .*CANCELLED AT \S+ \*\*\*",
        ),
    ],
    "late": [  # often only the consequence of an exception
        ("out of memory", "If nobody else uses the GPU, halve the batch size.", r"CUDA_ERROR_OUT_OF_MEMORY"),
        (
            "missing module",
            "Begin the script with `#!/bin/bash -l`, and find the right name with `module avail` on a login node.",
            r"(?:^|: )(?:module|ml): (?:command )?not found$|Unable to locate a modulefile"
            r"|Lmod has detected the following error|^\s*ERROR: .*\bcannot be loaded due to\b",
        ),
        (
            "missing file",
            "Check the path and the folder the job starts in, and load the modules or the environment first.",
            r"can't open file|(?<!shared object file): No such file or directory|: command not found|: not found$",
        ),
        (
            "killed",
            "The system ended the process, most often for lack of memory: halve the batch size and run again.",
            r"^(?:\S+: line \d+: +\d+ )?Killed\b|KILLED BY SIGNAL|tasks? .*: Killed|signal 9\b|Segmentation fault"
            r"|CODE: 13[79]\b",
        ),
    ],
    "network": [  # the rank that says so may be the one that was left alone: another that died in a known way counts
        (
            "network error",
            "One of the ranks ended without a word, or they were not connected: read all ranks' lines around this one, "
            "and check the launcher's MPI (srun --mpi=...) and the interface (HOROVOD_GLOO_IFACE, NCCL_SOCKET_IFNAME).",
            r"\bnccl[A-Z]\w+ failed|\bNCCL: (?:unhandled|internal|invalid|remote) |\bNCCL error\b|^Abort\(-?\d+\) on "
            r"|Fatal error in (?:P?MPI|internal)_|\*\*\* An error occurred in |MPI_ABORT was invoked|called MPI_Abort"
            r"|\bgloo/\S+\.(?:cc|h):\d+\]|\bgloo::\w+|\bGloo \w+ failed",
        )
    ],
    "launcher": [  # its word that a process ended, when nothing else is there
        ("cancelled", "Someone stopped it, or its time ran out: `sacct -j NUMBER` tells.", r"\*\*\* .*CANCELLED"),
        (
            "job error",
            "No reason is given here: read the lines above it in the .err, and the end of the .out.",
            r"^(?:srun|sbatch|salloc|slurmstepd|mpiexec|horovodrun)(?:-\S+)?: (?:error|fatal): "
            r"|[Ee]xited with exit code [1-9]|Horovod has been shut down|Horovod detected that one or more",
        ),
    ],
}
_COMPILED = {group: [(*said, re.compile(sign)) for *said, sign in signs] for group, signs in _SIGNS.items()}
_NETWORK = _COMPILED["network"][0][2]

# After its first word on a rank that ended, srun ends the others, and says of them what happened to them.
_RANK_ENDED = re.compile(r"^srun: error: .*tasks? [\d,-]+: (?!Term)|Terminating (?:StepId|job step)|\*\*\* .*CANCELLED")
_ENDED_BY_SRUN = re.compile(
    r"^srun: error: .*tasks? [\d,-]+: (?:Killed|Term|Segm)|\*\*\* STEP .*CANCELLED AT \S+ \*\*\*"
)

# A name with a colon behind it, or a whole one: it may be cut off.
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?=:(?:\s|$))|[A-Z]\w*(?:Error|Exception|Interrupt|Exit)$)")
_SIGNALLED = re.compile(r"SystemExit: 1(?:30|43)$")  # 128 + SIGINT or SIGTERM: what was asked for to end
_UNCLEAR = ("UnknownError", "InternalError", "AbortedError", "UnavailableError", "CancelledError")  # TensorFlow's
_ECHO = re.compile(r"HorovodInternalError|Horovod has been shut down|Horovod detected that one or more")

_STALL = "by subset of ranks"  # Horovod's stall inspector; the lines below say who has not come to what
_ABSENT = re.compile(r"^(?:\[[^\]]*\]<std\w+>:|\d+: ?)?\s*(\d+): \[(.*?)\]$")


def failure(log: str | Path) -> Failure | None:
    """The failure that a text or the file at a Path names, or None.

    Its kind is one of "out of memory", "shared memory", "disk full", "stalled", "time limit", "import error", "missing
    module", "missing file", "python error", "cancelled", "killed", "network error", "job error".
    Raises FileNotFoundError for a path that does not exist.
    """
    content, name = (text.content(log), log.name) if isinstance(log, Path) else (log, "")
    lines = [line.rstrip().rpartition("\r")[2] for line in content.split("\n")]
    ranked = [text.split_rank(line) for line in lines]
    causes = _without_echoes(ranked)
    ends = [end for end in (_first("scheduler", causes), _exception(ranked)) if end]
    end = (
        _first("certain", ranked)
        or min(ends, default=None)
        or _first("late", causes)
        or _first("network", ranked)
        or _first("launcher", causes)
    )
    if not end:
        return None
    index, kind, advice = _stalled(lines, *end) or end
    return Failure(kind=kind, line_number=index + 1, line=lines[index].strip(), advice=advice, file=name)


def in_files(*paths: Path | None) -> Failure | None:
    """The failure in the files of a job, by their order, those that are there: the first with a reason, else the
    launcher's word that something failed."""
    named = [found for path in paths if path and path.is_file() and (found := failure(path))]
    return next((found for found in named if found["kind"] != "job error"), named[0] if named else None)


def sentence(failure: Failure, source: str = "") -> str:
    """A failure with its proof and what to do about it; source: the file, where the failure does not name it."""
    place = f"{failure['file'] or source}, line {failure['line_number']}"
    return f"failed: {failure['kind']} ({place}: {failure['line'][:200]}). {failure['advice']}"


def harmless(problem: Failure) -> bool:
    """Whether a job whose runs have all finished can have gone on after this failure."""
    return problem["kind"] in ("missing file", "missing module") or "CUDA_ERROR_OUT" in problem["line"]


def _first(group, ranked):
    """(index, kind, advice) of the first sign of a group that any line shows, and its first line; None without any."""
    for kind, advice, sign in _COMPILED[group]:
        for index, (_, line) in enumerate(ranked):
            if sign.search(line):
                return index, kind, advice
    return None


def _stalled(lines, index, kind, advice):
    """(index, kind, advice) of Horovod's first stall message before a job was ended from outside, or by Horovod."""
    stalls = [place for place, line in enumerate(lines[:index]) if _STALL in line]
    if not stalls or kind not in ("time limit", "cancelled", "job error"):
        return None
    found = [match for line in lines[stalls[-1] : index] if (match := _ABSENT.match(line))]
    absent = grouped((match[2], match[1]) for match in found)  # {what is exchanged: ranks that have not come to it}
    waits = "; ".join(f"rank {', '.join(ranks)} not come to {what[:120]}" for what, ranks in absent.items())
    said = f"Ranks waited for each other{f': {waits}' if waits else ''}. "
    if len(absent) > 1:
        said += (
            "So they stand in different calls: look for `if rank() == 0:` around something that exchanges, as "
            "evaluate() with Horovod's metrics. Let all ranks do it, or use a model without Horovod there. "
        )
    said += f"If the training went on after this, line {index + 1} is the cause: {kind}."
    return stalls[0], "stalled", said


def _without_echoes(ranked):
    """The lines, without what srun says of the ranks that it ended itself after another one had ended."""
    ended, causes = False, []
    for rank, line in ranked:
        causes.append((rank, "" if ended and _ENDED_BY_SRUN.search(line) else line))
        ended = ended or _RANK_ENDED.search(line) is not None
    return causes


def _exception(ranked):
    """(index, kind, advice) of the exception that ended the program, or None.

    With several ranks it is the one of the rank that ended first. What other ranks say then is an echo: that Horovod
    was shut down or the network failed, or, from the launcher (which has no rank), that a process has failed.
    """
    inside, ends, latest = set(), [], {}  # an end: [index, rank, name, whether it is an echo]
    for index, (rank, line) in enumerate(ranked):
        match = _EXCEPTION.match(line)
        if line.startswith("Traceback (most recent call last)"):
            inside.add(rank)
        elif match and (rank in inside or match[1] in _EXCEPTIONS):
            latest[rank] = [index, rank, match[1], bool(_ECHO.search(line) or _NETWORK.search(line))]
            ends.append(latest[rank])
            inside.discard(rank)
        elif rank in latest and (_ECHO.search(line) or (latest[rank][2] in _UNCLEAR and _NETWORK.search(line))):
            latest[rank][3] = True
    by_rank = any(rank is not None for _, rank, _, _ in ends)
    causes = [end for end in ends if not end[3] and not (by_rank and end[1] is None)]
    if not causes:
        return None
    index, _, name, _ = [end for end in causes if end[1] == causes[0][1]][-1]
    stopped = _SIGNALLED.search(ranked[index][1])
    kind, advice = _EXCEPTIONS.get("KeyboardInterrupt" if stopped else name, _EXCEPTIONS[""])
    # Without its module, a program's own files or packages are missing too.
    before = _first("late", ranked[:index]) if kind in ("import error", "missing file") else None
    return before if before and before[1] == "missing module" else (index, kind, advice)
