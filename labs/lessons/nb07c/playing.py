"""The jobs of this notebook, played: `main` of a script on ranks that take turns, and what comes of it.

As with Horovod, ranks come together in a collective only if they bring tensors of the same name.
"""

import contextlib
import io
from dataclasses import dataclass

from labs.checks import connected, student_code

RANKS = 2
SECONDS = 3.0  # that a rank may take from one collective to the next


class World(connected.World):
    """Ranks that exchange by the names of tensors."""

    def allreduce(self, tensor, op="Average", name=None):
        return self._meet("allreduce", [tensor], (op, name))[0]

    def grouped_allreduce(self, tensors, op="Average", name=None):
        return self._meet("grouped_allreduce", tensors, (op, name))

    def allgather(self, tensor, name=None):
        return self._meet("allgather", [tensor], (None, name))[0]

    def broadcast(self, tensor, root_rank=0, name=None):
        return self._meet("broadcast", [tensor], (root_rank, name))[0]

    def _fit(self, came):
        calls = [(kind, option[1]) for kind, option, _ in came]
        if len(set(calls)) > 1:
            said = [f"rank {rank} waits in {kind} \"{name}\"" for rank, (kind, name) in enumerate(calls)]
            raise connected.ConnectedError(f"Still, {' and '.join(said)}: neither comes to the other's call.")
        super()._fit(came)

    def _results(self, kind, option, brought):
        return super()._results(kind, option[0], brought)


@dataclass
class Played:
    """What `main` has returned on each rank, and what all of them have printed."""

    returned: list
    text: str
    exchanges: int


def play(path):
    """Play the script's main. Raises connected.ConnectedError where ranks do not come together."""
    world = World(RANKS, SECONDS)
    names = connected.definitions(path, world)
    text = io.StringIO()
    if not callable(names.get("main")):
        raise connected.ConnectedError("The script no longer defines `main`: keep its name.")
    try:
        with contextlib.redirect_stdout(text):
            returned = world.play(names["main"])
    except student_code.Endless as problem:
        others = "while another rank waits in a collective" if world.exchanges else "and nobody has exchanged anything"
        raise connected.ConnectedError(f"Still, a rank waits at {problem.line.lower()}, {others}.") from None
    return Played(returned, text.getvalue(), len(world.exchanges))
