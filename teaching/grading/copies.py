"""Runs that are those of somebody else: across students, and the kit's own recorded ones.

Two step times are never equal by chance, nor are the shapes of two series of them. So each run becomes the logarithms
of its step times without the warm-up: scaled copies differ by a constant then. Two runs are copies if nine tenths of
their differences lie within a tenth of the run's spread; or if both hold the same times in another order, to a
thousandth of it.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from labs import recorded
from labs.printed import few, grouped
from labs.results.run import NoRecordError, load_record
from teaching.grading.finding import Finding

LEAST, CLOSE, SAME = 12, 0.1, 1e-3  # steps in common; tolerances (of the spread) in order and in any order
KIT = "the kit"


@dataclass(frozen=True)
class Series:
    """The step times of one run, in seconds: whose, its name, kind, and when it began."""

    owner: str
    name: str
    kind: str
    started: str | None
    seconds: list

    @cached_property
    def steps(self):
        """Their logarithms."""
        return np.log(self.seconds)


def series(owner, found):
    """A Series for each of {name: Run} that has enough step times behind the warm-up."""
    for name, record in found.items():
        steps = [seconds for epoch in record.epochs if epoch.epoch for seconds in epoch.step_seconds]
        if len(steps) >= LEAST and min(steps) > 0:
            yield Series(owner, name, record.kind, record.started, steps)


def kit():
    """The Series of the kit's recorded runs."""
    for path in sorted(Path(recorded.HERE).glob("*/*.json")):
        with suppress(NoRecordError):  # what lies beside the records
            yield from series(KIT, {f"{path.parent.name}/{path.stem}": load_record(path)})


def alike(one, other):
    """By which factor the step times of one run are those of the other, or None where they are not. Both are logarithms
    of step times."""
    count = min(len(one), len(other))
    difference = one[:count] - other[:count]
    factor = np.median(difference)
    if np.quantile(np.abs(difference - factor), 0.9) <= max(CLOSE * _spread(one[:count]), 1e-9):
        return float(np.exp(factor))
    if len(one) != len(other) or len(set(one)) < count / 2:  # rounded times are often the same by chance
        return None
    difference = np.sort(one) - np.sort(other)
    factor = np.median(difference)
    same = np.max(np.abs(difference - factor)) <= max(SAME * _spread(one), 1e-9)
    return float(np.exp(factor)) if same else None


def _spread(steps):
    return np.median(np.abs(steps - np.median(steps)))


def _copies(runs):
    """(place, place, factor) of the runs that are copies. Of one owner's runs that are copies of each other, only pairs
    with the first one.

    A class has millions of pairs. So the first steps of each run are held against those of all later ones at once, and
    only what is near there, but for a quarter at either end, or of the same length and width, is compared as a whole.
    """
    if not runs:
        return
    first, again = np.stack([run.steps[:LEAST] for run in runs]), set()
    spread = np.array([_spread(run.steps) for run in runs])
    width, length = np.array([(np.ptp(run.steps), len(run.steps)) for run in runs]).T
    for place, run in enumerate(runs):
        difference = np.sort(first[place] - first[place + 1 :], axis=1)
        middle = difference[:, -1 - LEAST // 4] - difference[:, LEAST // 4]  # the width of the middle half
        room = np.maximum(spread[place], spread[place + 1 :])
        near = middle <= 4 * np.maximum(CLOSE * room, 1e-9)
        alike_in_width = np.abs(width[place] - width[place + 1 :]) <= 2 * np.maximum(SAME * room, 1e-9)
        near |= alike_in_width & (length[place] == length[place + 1 :])
        for other in map(int, place + 1 + np.flatnonzero(near)):
            same_owner = run.owner == runs[other].owner
            if same_owner and again & {place, other}:
                continue
            if (factor := alike(run.steps, runs[other].steps)) is not None:
                again |= {other} if same_owner else set()
                yield place, other, factor


def findings(runs):
    """{owner: findings} of some Series of all students. For who has the run that began earlier, by the dates in
    the records, a copy is a note."""
    found, repeated, every = [], [], [*runs, *kit()]
    for first, second, factor in sorted(_copies(every), key=lambda pair: (pair[1] >= len(runs), pair)):
        one, other = every[first], every[second]
        if one.owner == KIT or (other.owner == KIT and one.kind != "measured"):
            continue  # it says itself that it is recorded: the report's findings name it
        equal = abs(factor - 1) < 1e-6
        how = "equal to" if equal else f"{factor:.4g} times"
        if one.owner == other.owner:
            repeated.append((first, f"{how} those of {other.name}"))
            continue
        for here, there, said in ((one, other, how), (other, one, how if equal else f"{1 / factor:.4g} times")):
            kind = "recorded" if KIT in (one.owner, other.owner) else "copy"
            of = there.name if there.owner == KIT else f"{there.name} of submission {there.owner}"
            seen = f"its step times are {said} those of {'the recorded run ' if kind == 'recorded' else ''}{of}"
            earlier = kind == "copy" and here.started and there.started and here.started < there.started
            found.append((here.owner, Finding(kind, "note" if earlier else "serious", here.name, seen)))
    for first, said in grouped(repeated).items():
        seen = f"its step times are {few(said)}"
        found.append((every[first].owner, Finding("repeated", "serious", every[first].name, seen)))
    return grouped((owner, each) for owner, each in found if owner != KIT)
