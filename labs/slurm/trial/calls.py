"""Programs that a script starts: stand-ins for those of a cluster, and what they write down."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from labs.sandbox.walls import WORK
from labs.slurm import directives

FOLDER = ".calls"  # below the course's, where the stand-ins write
UNKNOWN = "labs-unknown"  # stands for what only a site can have; the word behind it is that program's name
_PROGRAMS = """
mpiexec.hydra sbatch scontrol squeue sacct sinfo scancel module ml spack conda mamba micromamba uv pip labs singularity
apptainer shifter nvidia-smi rocm-smi numactl nsys ncu jutil sleep virtualenv torchrun python python3""".split()
STAND_INS = (*directives.LAUNCHERS, *_PROGRAMS, *(f"python3.{minor}" for minor in range(6, 15)), UNKNOWN)


@dataclass(frozen=True, eq=False)
class Call:
    """A program that a script starts.

    line_number: in the script, None where it is not known. words: its name and all words behind it. folder: where,
    below the course's folder. env: its variables. above: the Calls of srun, singularity, ... that started it, the
    nearest first.
    """

    line_number: int | None
    words: list[str]
    folder: str
    env: dict[str, str]
    above: "list[Call]"

    @property
    def launchers(self) -> "list[Call]":
        """The Calls of srun, mpiexec, ... that started it, the nearest first."""
        return [one for one in self.above if one.words[0] in directives.LAUNCHERS]

    @property
    def ranks(self) -> str | None:
        """How many processes its launcher makes of it, as text; "1" without a launcher. None for a launcher that is not
        known."""
        unknown = any(one.words[0] == UNKNOWN for one in self.above)
        return self.env.get("LABS_RANKS", "1") if self.launchers else None if unknown else "1"


def files():
    """{path: text} of the stand-ins, and of what bash reads before the script."""
    here = Path(__file__)
    lists = {"launchers": directives.LAUNCHERS, "processes": directives.PROCESSES, "with_value": directives.WITH_VALUE}
    head = "".join(f"{name}=' {' '.join(sorted(words))} '\n" for name, words in lists.items())
    stand_in = f"#!/bin/sh\n{head}{here.with_name('stand_in.sh').read_text(encoding='utf-8')}"
    paths = [".venv/bin/python", *(f"/tmp/stand-ins/{name}" for name in STAND_INS)]
    before = here.with_name("before.sh").read_text(encoding="utf-8")
    return {"/tmp/before.sh": before, f"{FOLDER}/.keep": "", ".venv/bin/activate": ""} | dict.fromkeys(paths, stand_in)


def read(records, first):
    """The Calls in order, from {name: record}. first: gives the first line of a command for any of its lines."""
    calls = {}
    for number in sorted(filter(str.isdecimal, records), key=int):
        with contextlib.suppress(ValueError):  # a script that writes there itself
            name, folder, count, *rest = os.fsdecode(records[number]).split("\0")
            words, variables = rest[: int(count)], (item.partition("=") for item in rest[int(count) :])
            env = {key: value for key, equals, value in variables if equals}
            starter = calls.get(env.get("LABS_CALL"))
            above = [starter, *starter.above] if starter else []
            line = first(env.get("LABS_LINE", ""))
            calls[number] = Call(line, [name, *words], os.path.relpath(folder, WORK), env, above)
    return list(calls.values())
