"""What lessons ask and read alike: the question that a speedup raises, and which one cannot be."""

import math
import re

from labs.checks.judging import TooNoisy


def question(speedup, interval):
    """What to ask of a speedup on 2 workers; interval: its 95 % interval (low, high), or None."""
    low, high = interval or (0.0, math.inf)
    if speedup > 2:
        return "More than twice as fast? That is noise: measure again when the machine is quiet."
    if high < 1:
        return "Why slower?"
    if low <= 1:
        return "Faster or slower? These rounds cannot tell."
    return "Why not twice as fast?" if high < 2 else "Is it twice as fast?"


def told(sentence):
    """One of the answers of a question about an interval, as the kit spells it: "cannot tell" is "can't tell"."""
    given = str(sentence).strip().lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return "can't tell" if re.fullmatch(r"can(not|\s+not|'?t)\s+tell", given) else given


def undecided(sentence, interval, even, above, below, seen):
    """Cases of a wrong word about a 95 % interval (low, high): `above` or `below` where all of it lies on that side of
    `even`, else "can't tell". seen: what the interval is of, as "The interval of your speedup"."""
    given, (low, high) = told(sentence), interval
    yield given not in (above, below, "can't tell"), f"{sentence!r} is not one of the answers. Spell it as in the text."
    right = above if low > even else below if high < even else "can't tell"
    sides = f"Does all of it lie on one side of {even:g}, and on which?"
    yield given != right, f"{seen} ranges from {low:.3g} to {high:.3g}. {sides}"


def refuse_noise(*runs):
    """Raise TooNoisy for runs of a study in which workers are faster than they can be."""
    for run in runs:
        if (speedup := run.speedup.value or 0) > run.workers:
            raise TooNoisy(
                f"{run.workers} workers would be {speedup:.3g} times as fast as 1, more than they can be. Run the "
                "study again when the machine is quiet."
            )
