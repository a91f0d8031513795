"""Programs that a script starts: stand-ins for those of a cluster, and what they write down."""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labs.sandbox.walls import WORK
from labs.slurm import directives

FOLDER = ".calls"  # below the course's, where the stand-ins write
UNKNOWN = "labs-unknown"  # stands for a program that only a site can have, its first word
_PYTHONS = ("python", "python3", *(f"python3.{minor}" for minor in range(6, 15)))
STAND_INS = (*directives.LAUNCHERS, *_PYTHONS, *directives.OPTIONS["trial"]["programs"], UNKNOWN)
_PROCESSES = directives.OPTIONS["launchers"]["processes"]


@dataclass(frozen=True, eq=False)
class Call:
    """A program that a script starts.

    line_number: in the script, None where it is not known. words: its name and all words behind it. folder: where,
    below the course's folder. env: its variables. launcher: the Call of srun, singularity, ... that started it, or
    None. background: is it a Python script in the background? left: had it not ended when the batch script ended?
    """

    line_number: int | None
    words: list[str]
    folder: str
    env: dict[str, str]
    launcher: "Call | None" = None
    background: bool = False
    left: bool = False

    def above(self) -> "Iterator[Call]":
        """The Calls that started it, from the nearest on."""
        one = self.launcher
        while one:
            yield one
            one = one.launcher

    def starts_ranks(self) -> "Call | None":
        """The Call of srun, mpiexec, ... that started it, or None."""
        return next((one for one in self.above() if one.words[0] in directives.LAUNCHERS), None)

    def step(self) -> directives.BatchScript:
        """What srun asks for; on as many nodes as the job has, where it names none."""
        asked = directives.of_step(directives.launched(self.words[1:])[1])
        nodes = [] if asked.find("nodes") else [("nodes", self.env.get("SLURM_NNODES", "1"))]
        return asked.with_options(nodes)

    def part(self) -> int:
        """The part of a heterogeneous job in which srun starts its program."""
        match = re.search(r" --het-group[= ](\d+)", " ".join(self.words))
        return int(match[1]) if match else 0

    def ranks(self) -> str | None:
        """How many processes its launcher makes of it, as text; "1" without a launcher. None for a launcher that is not
        known."""
        one = self.starts_ranks()
        if one is None:
            return None if any(each.words[0] == UNKNOWN for each in self.above()) else "1"
        job = one.env.get(f"SLURM_NTASKS_HET_GROUP_{one.part()}") or one.env.get("SLURM_NTASKS")
        return directives.launched(one.words[1:])[0] or job or str(one.step().resources()["tasks"])


def files():
    """{path: text} of the stand-ins, and of what bash reads before the script."""
    here = Path(__file__).parent
    text = stand_in()
    files = {"/tmp/beside.sh": (here / "beside.sh").read_text(encoding="utf-8"), f"{FOLDER}/.keep": ""}
    files |= {".venv/bin/activate": "", ".venv/bin/python": text, "/tmp/stand-ins/activate": ""}
    return files | {f"/tmp/stand-ins/{name}": text for name in STAND_INS}


def stand_in():
    """Text of a stand-in; its name tells it what it stands for."""
    text = Path(__file__).with_name("stand_in.sh").read_text(encoding="utf-8")
    gaps = {"LAUNCHERS": " | ".join(directives.LAUNCHERS), "WITH_VALUE": " ".join(sorted(directives.WITH_VALUE))}
    gaps["PROCESSES"] = " | ".join(f"+{name}" for name in _PROCESSES)
    gaps["PROCESSES_IS"] = " | ".join(f"+{name}=*" for name in _PROCESSES)
    return re.sub("@([A-Z_]+)@", lambda gap: gaps[gap[1]], text)


def read(records, first):
    """The Calls in order, from {name: record}. first: gives the first line of a command for any of its lines."""
    calls, ended = {}, records.get("ended", b"").decode(errors="replace").split()
    for number in sorted(filter(str.isdecimal, records), key=int):
        background = bool(records.get(done := f"done.{number}", b"").strip())
        left = done in records and bool(ended) and done not in ended
        with contextlib.suppress(ValueError):  # a script that writes there itself
            name, folder, count, *rest = os.fsdecode(records[number]).split("\0")
            words, variables = rest[: int(count)], (item.partition("=") for item in rest[int(count) :])
            env = {key: value for key, equals, value in variables if equals}
            line, launcher = env.get("LABS_LINE", ""), calls.get(env.get("LABS_CALL"))
            line = first(int(line)) if line.isdecimal() else None
            calls[number] = Call(line, [name, *words], os.path.relpath(folder, WORK), env, launcher, background, left)
    return list(calls.values())
