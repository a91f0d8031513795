"""Programs that a script starts: stand-ins for those of a cluster, and what they write down."""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from labs.sandbox.walls import WORK
from labs.slurm import directives

FOLDER = ".calls"  # below the course's, where the stand-ins write
STAND_INS = (
    *directives.LAUNCHERS,
    *("python", "python3", "python3.11", "python3.12", "sbatch", "scontrol", "squeue", "sacct", "sinfo", "scancel"),
    *("module", "ml", "spack", "conda", "mamba", "micromamba", "uv", "pip", "labs", "singularity", "apptainer"),
    *("shifter", "nvidia-smi", "rocm-smi", "numactl", "nsys", "ncu", "jutil", "sleep"),
)
_PROCESSES = directives.OPTIONS["launchers"]["processes"]
_WITH_VALUE = {*_PROCESSES, *directives.OPTIONS["launchers"]["with_value"], "--cpu-bind"}
_WITH_VALUE |= {f"--{name}" for name in directives.OPTIONS["sbatch"]["with_value"]}  # srun has most of them


@dataclass(frozen=True)
class Call:
    """A program that a script starts.

    line_number: in the script, None where it is not known. words: its name and all words behind it. folder: where,
    below the course's folder. env: its variables. launcher: the Call of srun, mpiexec, ... that started it, or None.
    """

    line_number: int | None
    words: list
    folder: str
    env: dict
    launcher: "Call | None" = None

    def ranks(self):
        """How many processes its launcher makes of it, as text; "1" without a launcher."""
        one = self.launcher
        while one and one.words[0] not in directives.LAUNCHERS:
            one = one.launcher
        return "1" if one is None else _count(one.words[1:]) or one.env.get("SLURM_NTASKS", "1")


def files():
    """{path: text} of the stand-ins, and of what bash reads before the script."""
    here = Path(__file__).parent
    text = stand_in()
    files = {"/tmp/beside.sh": (here / "beside.sh").read_text(encoding="utf-8"), f"{FOLDER}/.keep": ""}
    files |= {".venv/bin/activate": "", ".venv/bin/python": text}
    return files | {f"/tmp/stand-ins/{name}": text for name in STAND_INS}


def stand_in():
    """Text of a stand-in; its name tells it what it stands for."""
    text = Path(__file__).with_name("stand_in.sh").read_text(encoding="utf-8")
    return text.replace("@LAUNCHERS@", " | ".join(directives.LAUNCHERS)).replace(
        "@WITH_VALUE@", " ".join(sorted(_WITH_VALUE))
    )


def read(records, first):
    """The Calls in order, from {number: record}. first: gives the first line of a command for any of its lines."""
    calls = {}
    for number in sorted(filter(str.isdecimal, records), key=int):
        with contextlib.suppress(ValueError):  # a script that writes there itself
            calls[number] = _call(records[number], calls, first)
    return list(calls.values())


def _call(record, calls, first):
    """The Call that a stand-in has written down."""
    name, folder, count, *rest = os.fsdecode(record).split("\0")
    words, env = rest[: int(count)], dict(item.partition("=")[::2] for item in rest[int(count) :] if "=" in item)
    line = env.get("LABS_LINE", "")
    folder = os.path.relpath(folder, WORK)
    return Call(
        first(int(line)) if line.isdecimal() else None, [name, *words], folder, env, calls.get(env.get("LABS_CALL"))
    )


def _count(words):
    """The number of processes that a launcher's words ask for, as text, or None."""
    words = iter(words)
    for word in words:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            return None
        if re.fullmatch(r"-n\d+", word):
            return word[2:]
        if name in _PROCESSES:
            return value if equals else next(words, "")
        if not equals and name in _WITH_VALUE:
            next(words, None)
    return None
