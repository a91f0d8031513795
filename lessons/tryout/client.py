"""The kernel's side: asks the fork server to try a script out. It is started once, and ends with its kernel."""

import atexit
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from labs.checks.judging import NotDone
from labs.jobs import launch
from labs.jobs.local import GUARD

CPU_SECONDS = 60  # of one performance; a right script needs about 2
PATIENCE = 300  # seconds of the clock, for a script that waits instead of computing


@dataclasses.dataclass(frozen=True)
class Performance:
    """How a script is tried out once: its command line, on how many images, and as which Horovod rank (if any)."""

    arguments: tuple[str, ...] = ()
    images: int = 0
    rank: int | None = None
    size: int = 1
    local_size: int = 1  # ranks of each node


def horovod_numbers(rank: int, size: int, local_size: int) -> dict[str, int]:
    """{name: what Horovod's function of this name returns on this rank}; local_size: ranks of each node."""
    node, local_rank = divmod(rank, local_size)
    numbers = {"rank": rank, "size": size, "local_rank": local_rank, "local_size": local_size}
    return numbers | {"cross_rank": node, "cross_size": -(-size // local_size)}


_known = {}  # the six steps of one script are six checks of the same performances


def try_out_script(script: str | Path, performances: list[Performance]) -> list[dict]:
    """What a script does, as a list of facts, one dict for each Performance; play.py says what they hold.

    All of them run at the same time, each in a process of its own, in a temporary folder. None outlives this call.
    Raises judging.NotDone where scripts cannot be tried out on this machine.
    """
    script = Path(script).resolve()
    beside = tuple(path.read_bytes() for path in sorted(script.parent.glob("*.py")))
    key = hash((str(script), beside, tuple(performances)))
    if key in _known:
        return _known[key]
    plays = [dataclasses.asdict(performance) for performance in performances]
    with tempfile.TemporaryDirectory(prefix="tryout_") as folder:
        limits = {"cpu_seconds": CPU_SECONDS, "patience": PATIENCE}
        facts = fork_server.ask({"script": str(script), "plays": plays, "folder": folder, **limits})
    if not any(each["stopped"] for each in facts):  # perhaps on a busy machine
        _known[key] = facts
    return facts


def environment() -> dict[str, str]:
    """The environment variables of the fork server."""
    foreign = ("LABS_", "SLURM_", "PMI", "OMPI_", "HOROVOD_", "TF_CONFIG", "MPLBACKEND")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return env | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "OPENBLAS_NUM_THREADS": "1"}


class _Server:
    """The fork server, started when it is first asked, and again if it is gone."""

    process: Any = None
    errors: Any = None  # a temporary file with its standard error

    def ask(self, request):
        answer = self._answer(request) or self._answer(request)  # once more: something outside may have ended it
        if not answer:
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace").strip().split("\n")[-1][:300]
            raise NotDone(f"The script cannot be tried out: the process for it has ended. It said: {said}")
        return json.loads(answer)

    def _answer(self, request):
        """What the server answers, as a line; b"" where it has ended instead."""
        if self.process is None or self.process.poll() is not None:
            self._start()
        try:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(json.dumps(request).encode() + b"\n")
                self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BaseException:  # an interrupt: what runs must end, and its answer is nobody's
            self.stop()
            raise
        if not answer:
            self.stop()
        return answer

    def _start(self):
        self.errors = tempfile.TemporaryFile()
        command = [*launch.MORTAL, *GUARD, sys.executable, "-P", "-m", "lessons.tryout.server"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        place = {"env": environment(), "cwd": tempfile.gettempdir(), "start_new_session": True}
        self.process = subprocess.Popen(command, **place, **pipes)

    def stop(self):
        """End the server, and with it all that it has started."""
        if self.process is not None:
            self.process.terminate()
            self.process.communicate()
            self.process = None


fork_server = _Server()
atexit.register(fork_server.stop)
