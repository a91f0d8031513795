"""Trainings that are compared take turns, an epoch at a time: how a training waits for its own.

labs.jobs.turns starts such trainings together, and names itself to them in the environment variable LABS_TURNS.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, cast

VARIABLE = "LABS_TURNS"
_KEEPER = Path(__file__).with_name("keeper.py")


class Gate:
    """Where this process waits. `study`, `order_seed` and `sharing` are for the run record (labs.results.run)."""

    def __init__(self, settings: dict[str, Any], rank: int, ranks: int):
        """settings: what labs.jobs.turns has put into LABS_TURNS; rank: of this process, one of the `ranks` of its
        training."""
        self.study, self.order_seed, self.sharing = map(settings.pop, ("study", "order_seed", "sharing"))
        command = [sys.executable, "-I", "-S", str(_KEEPER)]
        self._keeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._asks, self._turns = cast(IO[bytes], self._keeper.stdin), cast(IO[bytes], self._keeper.stdout)
        self._tell(json.dumps(settings | {"rank": rank, "ranks": ranks}))

    def wait(self) -> dict[str, int]:
        """Wait, stopped, until it is this training's turn: {"round": number from 0, "order": place in it from 0}.

        Where nobody gives turns any more, the process ends (SystemExit).
        """
        self._tell("wait")
        turn = self._turns.readline()
        if not turn:
            sys.exit("The other trainings, or the program that gave the turns, have ended: this training stops, too.")
        return json.loads(turn)

    def _tell(self, line):
        with contextlib.suppress(BrokenPipeError):  # then there is no answer either
            self._asks.write(line.encode() + b"\n")
            self._asks.flush()

    def close(self) -> None:
        """No turn is needed any more."""
        with contextlib.suppress(OSError):
            self._asks.close()
        self._turns.close()
        self._keeper.wait()


def join(rank: int = 0, ranks: int = 1) -> Gate | None:
    """The Gate of a process that was started to take turns, or None if it trains alone.

    rank: of this process; ranks: how many its training has.
    """
    settings = os.environ.get(VARIABLE)
    return Gate(json.loads(settings), rank, ranks) if settings else None
