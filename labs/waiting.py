"""Trainings that are compared take turns, an epoch at a time: how a training waits for its own.

labs.jobs.turns starts such trainings together, and says in the environment variable LABS_TURNS where it is reached.
Each process of a training has a child, the keeper (`python waiting.py`), between its parent, over pipes, and
labs.jobs.turns, over a socket:

    parent       {"host", "port", "token", "job", "ranks"} once, then a line whenever it waits for its turn
    labs.jobs    {"round", "order"}: the turn, handed on to the parent

The keeper stops a parent that waits (SIGSTOP): merely asleep, threads of Horovod and MPI would keep a core busy. It
lets it go on at its turn, and where nobody gives turns any more, since the socket closes.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from typing import IO, cast

TURNS_VARIABLE = "LABS_TURNS"


class Gate:
    """Where this process waits. `study` and `order_seed` are for the run record (labs.results.run)."""

    def __init__(self, settings: dict, ranks: int):
        """settings: what labs.jobs.turns has put into LABS_TURNS; ranks: how many processes this training has."""
        self.study, self.order_seed = map(settings.pop, ("study", "order_seed"))
        command = [sys.executable, "-I", "-S", __file__]  # it needs the standard library alone
        self._keeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._asks, self._turns = cast(IO[bytes], self._keeper.stdin), cast(IO[bytes], self._keeper.stdout)
        self._tell(json.dumps(settings | {"ranks": ranks}))

    def wait(self) -> dict[str, int]:
        """Wait, stopped, until it is this training's turn: {"round": number from 0, "order": place in it from 0}.

        Where nobody gives turns any more, the process ends (SystemExit).
        """
        self._tell("waiting")
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


def join(ranks: int = 1) -> Gate | None:
    """The Gate of a process that was started to take turns, or None if it trains alone. ranks: of its training."""
    settings = os.environ.get(TURNS_VARIABLE)
    return Gate(json.loads(settings), ranks) if settings else None


def _keep(parent):
    """Stop the process `parent`, which has started this one, whenever it waits; let it go on when its turn comes."""
    lines, settings = sys.stdin.buffer, json.loads(sys.stdin.buffer.readline())
    # In a step of SLURM's, srun's node gives the turns: SLURM tells its address.
    address = settings["host"] or os.environ["SLURM_LAUNCH_NODE_IPADDR"], settings["port"]
    try:
        coordinator = socket.create_connection(address, timeout=30)
    except OSError as problem:
        said = f"The program that gives the turns cannot be reached at {address[0]}, port {address[1]}: {problem}."
        sys.exit(f"{said} Do the nodes reach each other? Else run the study on one node, without --launcher srun.")
    coordinator.settimeout(None)
    coordinator.sendall(json.dumps(settings).encode() + b"\n")
    for line in lines:
        turn = b""
        with contextlib.suppress(OSError):
            coordinator.sendall(line)  # first: if this keeper is killed, labs.jobs then knows who stands still
            os.kill(parent, signal.SIGSTOP)
            turn = coordinator.recv(4096)
        if os.getppid() == parent:  # else its number may be another process' by now
            os.kill(parent, signal.SIGCONT)
        if not turn:
            break
        os.write(sys.stdout.fileno(), turn)


if __name__ == "__main__":
    _keep(os.getppid())
