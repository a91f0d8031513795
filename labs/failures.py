"""Name the failure in what a job printed: which line proves it, and what to do about it.

The lines are those of TensorFlow, Python, SLURM, the shell and the MPI launchers. Nothing is inferred:
without a line that names a failure there is none.
"""

import re
from pathlib import Path

_RANK = re.compile(
    r"^[^\[\]<>]{0,40}\[(?:[^\[\]<>]*?,)?(\d+)\]<std(?:out|err)>:[ ]?"  # horovodrun, mpirun --tag-output
    r"|^\[(\d+)\] "  # mpiexec -prepend-rank
    r"|^ {0,4}(\d{1,5}): ?"  # srun --label
)

_MEMORY = "Halve the batch size (--batch_size) or use smaller images, and run again."
_HOST = "Halve the batch size, or ask for more host memory (in SLURM: --mem or more --cpus-per-task)."
_SIGNS = [  # in order of how much they prove
    ("out of memory", r"OOM when allocating tensor with shape", _MEMORY),
    ("out of memory", r"ResourceExhaustedError|RESOURCE_EXHAUSTED: (?!End of)|CUDA out of memory", _MEMORY),
    ("out of memory", r"oom[-_]kill event|oom_kill|out-of-memory handler|task .*: Out Of Memory", _HOST),
    ("out of memory", r"^(?:[\w.]*\.)?_?(?:Array)?MemoryError\b|std::bad_alloc|annot allocate memory", _HOST),
    (
        "time limit",
        r"DUE TO TIME LIMIT|TIMEOUT \*\*\*",
        "Ask for more time (--time) or train for fewer epochs.",
    ),
    ("out of memory", r"CUDA_ERROR_OUT_OF_MEMORY", "If nobody else uses the GPU, halve the batch size."),
]
_LATE_SIGNS = [  # often only the consequence of what is above, or of a traceback
    ("cancelled", r"\*\*\* .*CANCELLED|^KeyboardInterrupt\b", "Someone stopped the job; submit it again."),
    (
        "missing file",
        r"can't open file|(?<!shared object file): No such file or directory|: command not found|: not found$"
        r"|Unable to locate a modulefile|Lmod has detected the following error",
        "Check the path and the folder the job starts in, and load the modules or the environment first.",
    ),
    (
        "killed",
        r"^(?:\S+: line \d+: +\d+ )?Killed\b|KILLED BY SIGNAL|task .*: Killed|signal 9\b|Segmentation fault"
        r"|CODE: 13[79]\b",
        "The system ended the process, most often for lack of memory: halve the batch size and run again.",
    ),
    (
        "job error",
        r"^(?:srun|sbatch|slurmstepd|mpiexec|horovodrun): error: |[Ee]xited with exit code [1-9]",
        "The launcher gives no reason here: read the lines above it in the .err.",
    ),
]
_ECHOES = [  # when nothing else is there
    (
        "job error",
        r"Horovod has been shut down|Horovod detected that one or more processes exited",
        "Another rank ended first, without a word in this file; read the end of the .out.",
    ),
]
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*)(?::\s.*|:?)$")
_ECHO = re.compile(r"^Horovod has been shut down|^Horovod detected that one or more processes exited")
_ADVICE = {
    "import error": "Start the job in the kit's environment (uv run ..., or load the site's modules).",
    "missing file": "Check the path and the folder the job starts in.",
    "cancelled": "Someone stopped the job; submit it again.",
    "python error": "Read the traceback above this line: it names the file and the line of the script.",
}
_KINDS = {
    "ModuleNotFoundError": "import error",
    "ImportError": "import error",
    "FileNotFoundError": "missing file",
    "KeyboardInterrupt": "cancelled",
}


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
    "time limit", "import error", "missing file", "python error", "cancelled", "killed", "job error".
    Errors: FileNotFoundError for a path that does not exist.
    """
    if isinstance(text_or_path, Path) or re.fullmatch(r"[^\n]*\.(?:err|error|out|output|log|txt)", text_or_path):
        text_or_path = decode(Path(text_or_path).read_bytes())
    lines = [re.split(r"[\r\b]+", line.rstrip("\r"))[-1].rstrip() for line in text_or_path.split("\n")]
    ranked = [split_rank(line) for line in lines]
    found = _find(_SIGNS, ranked) or _traceback(ranked) or _find(_LATE_SIGNS, ranked) or _find(_ECHOES, ranked)
    if not found:
        return None
    index, kind, advice = found
    return {"kind": kind, "line_number": index + 1, "line": lines[index].strip(), "advice": advice}


def _find(signs, ranked):
    for kind, pattern, advice in signs:
        sign = re.compile(pattern)
        for index, (_, line) in enumerate(ranked):
            if sign.search(line):
                return index, kind, advice
    return None


def _traceback(ranked):
    """(index, kind, advice) of the exception that ended the program, or None.

    With several ranks it is the one of the rank that ended first. What other ranks say then is an echo: that Horovod
    was shut down, or, from the launcher (which has no rank), that a process has failed.
    """
    inside, ends, last = set(), [], {}
    for index, (rank, line) in enumerate(ranked):
        match = _EXCEPTION.match(line)
        if line.startswith("Traceback (most recent call last)"):
            inside.add(rank)
        elif match and (rank in inside or match[1] in _KINDS):
            last[rank] = len(ends)
            ends.append([index, match[1], rank, match[1] == "HorovodInternalError"])
            inside.discard(rank)
        elif rank in last and _ECHO.search(line):
            ends[last[rank]][3] = True
    by_rank = any(end[2] is not None for end in ends)
    causes = [end for end in ends if not end[3] and not (by_rank and end[2] is None)]
    if not causes:
        return None
    index, name = [end for end in causes if end[2] == causes[0][2]][-1][:2]
    kind = _KINDS.get(name, "python error")
    return index, kind, _ADVICE[kind]
