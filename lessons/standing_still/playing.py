"""The jobs of this notebook, played: `main` of a script on ranks that take turns, and what comes of it.

Outside of a `tf.function`, Horovod brings together what is of one kind, whatever name it is given. So do played ranks.
"""

import contextlib
import io
import re
from dataclasses import dataclass

from labs.checks import student_code
from lessons import connected, scripts

RANKS = 2
SECONDS = 2.0  # that a rank may take from one collective to the next


@dataclass
class PlayedRanks:
    """What `main` has returned on each rank, what all of them have printed, and the kinds of their collectives."""

    returned: list
    text: str
    kinds: list

    def numbers(self, word):
        """The numbers in brackets, or the one number, that stand behind a word in each printed line that holds it."""
        found = re.findall(rf"{word}[^\d\[\n-]*\[?((?:\s*-?\d+\.?\d*(?:e-?\d+)?)+)", self.text)
        return [[float(number) for number in numbers.split()] for numbers in found]


def play(path, ranks=RANKS, change=None):
    """Play the script's main. Yields cases, as a judge does, of a script that cannot be played to its end.

    change: a function of the names that the script defines, called before `main` is.
    """
    yield from scripts.whole(path)
    world, text = connected.World(ranks, SECONDS), io.StringIO()
    names = connected.definitions(path, world)
    yield not callable(names.get("main")), "The script no longer defines `main`: keep its name."
    if change:
        change(names)
    try:
        with contextlib.redirect_stdout(text):
            returned = world.play(names["main"])
    except connected.ConnectedError as problem:
        told = re.sub(r" \((?:None|Average|Sum|\d+)\)", "", str(problem))
        yield True, f"Played on {ranks} ranks, {_at(world)}: {told}"
    except student_code.Endless as problem:
        line = str(problem)[0].lower() + str(problem)[1:]
        yield True, f"A rank does not get past {line}. Played on {ranks} ranks, {_at(world)}: who could change that?"
    return PlayedRanks(returned, text.getvalue(), [exchange.kind for exchange in world.exchanges])


def _at(world):
    return f"at lines {' and '.join(str(line or 'none') for line in world.lines)}"
