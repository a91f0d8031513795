"""What a measured speedup makes one ask, and which one cannot be: the same words in every lesson that measures one."""

import math
import re

from labs.checks.judging import TooNoisy


def question(speedup, interval, workers=2):
    """What to ask of a speedup on some workers; interval: its 95 % interval (low, high), or None."""
    times = {2: "twice"}.get(workers, f"{workers} times")
    low, high = interval or (0.0, math.inf)
    if speedup > workers:
        return f"More than {times} as fast? That is noise: measure again when the machine is quiet."
    if high < 1:
        return "Why slower?"
    if low <= 1:
        return "Faster or slower? These rounds cannot tell."
    return f"Why not {times} as fast?" if high < workers else f"Is it {times} as fast?"


def told(sentence):
    """One of the answers of a question about an interval, as the kit spells it: "cannot tell" is "can't tell"."""
    given = str(sentence).strip().lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return "can't tell" if re.fullmatch(r"can(not|\s+not|'?t)\s+tell", given) else given


def refuse_noise(*rows):
    """Raise TooNoisy for rows of a study (labs.results.collect) in which workers are faster than they can be."""
    for row in rows:
        workers, speedup = row["workers"], row.get("speedup") or 0
        if workers and speedup > workers:
            raise TooNoisy(
                f"{workers} workers would be {speedup:.3g} times as fast as 1, more than they can be. Run the study "
                "again when the machine is quiet."
            )
