"""Trainings that are compared take turns, an epoch at a time: how a training waits for its own.

labs.jobs.turns starts such trainings together, and names itself to them in the environment variable LABS_TURNS.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

VARIABLE = "LABS_TURNS"
_KEEPER = Path(__file__).with_name("keeper.py")


class Gate:
    """Where this process waits, one of the `ranks` of its training; `study`, `order_seed` and
    `sharing` are for the run record."""

    def __init__(self, settings, rank, ranks):
        self.study, self.order_seed, self.sharing = map(settings.pop, ("study", "order_seed", "sharing"))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._keeper = subprocess.Popen([sys.executable, "-I", "-S", str(_KEEPER)], **pipes)
        self._tell(json.dumps(settings | {"rank": rank, "ranks": ranks}))

    def wait(self):
        """Wait, stopped, until it is this training's turn: {"round": number from 0, "order": place in it from 0}.

        Where nobody gives turns any more, the process ends (SystemExit).
        """
        self._tell("wait")
        turn = self._keeper.stdout.readline()
        if not turn:
            sys.exit("The other trainings, or the program that gave the turns, have ended: this training stops, too.")
        return json.loads(turn)

    def _tell(self, line):
        with contextlib.suppress(BrokenPipeError):  # then there is no answer either
            self._keeper.stdin.write(line.encode() + b"\n")
            self._keeper.stdin.flush()

    def close(self):
        """No turn is needed any more."""
        with contextlib.suppress(OSError):
            self._keeper.stdin.close()
        self._keeper.stdout.close()
        self._keeper.wait()


def join(rank: int = 0, ranks: int = 1) -> Gate | None:
    """The Gate of a process that was started to take turns, or None if it trains alone."""
    settings = os.environ.get(VARIABLE)
    return Gate(json.loads(settings), rank, ranks) if settings else None
