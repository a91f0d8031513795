"""Judges of 07c_why_does_it_stand_still. Scripts are played on ranks that take turns; what `labs why` shows is known."""

import re

import numpy as np

from labs.checks import connected, scripts
from labs.checks.judging import judges
from labs.checks.reading import near
from labs.lessons.nb07c import playing

SLOPE, INTERCEPT = 2.0, 1.0  # of the line on which the points of every script lie, but for noise
KINDS = ("allreduce", "allgather", "broadcast")


def seen(rank, line, collective, *, who, at, inside, kind):
    """Cases of (rank, line, collective) that is not (who, one of at, kind). inside: {line: what it is, in words}."""
    yield collective not in KINDS, f"{collective!r:.40} is not a collective of this script. It has {', '.join(KINDS)}."
    yield line in inside, f"Line {line}: {inside.get(line)}"
    yield (
        rank != who and line in at,
        "The line is right. Which rank is there? `labs why` writes the rank above its stack.",
    )
    yield line not in at, f"No rank was at line {line} when it stood still. Read the stack from its end upwards."
    yield rank != who, "The rank is another one: compare the two stacks line by line."
    yield collective != kind, "The rank and the line are right. Which collective does this line lead to?"


def told(path):
    """What comes of a mended script on played ranks; cases, as a judge yields them, of one that cannot be played."""
    yield from scripts.no_script(path)
    scripts.refuse_blanks(path)
    try:
        return playing.play(path)
    except connected.ConnectedError as problem:
        yield True, str(problem)


def same_everywhere(played):
    """Cases of ranks that end with different results, or with none."""
    first, *others = played.returned
    yield any(each is None for each in played.returned), "`main` no longer returns what it has found."
    for rank, each in enumerate(others, 1):
        differs = np.shape(each) != np.shape(first) or not np.allclose(each, first)
        found = f"rank 0 ends with {_shown(first)}, rank {rank} with {_shown(each)}"
        yield differs, f"It no longer hangs, but {found}. Is every gradient still averaged over the ranks?"


def a_line(played, slope=SLOPE, intercept=INTERCEPT):
    """Cases of a result that is not the line on which the points lie."""
    found = np.ravel(played.returned[0])[:2]
    off = len(found) < 2 or not np.allclose(found, (slope, intercept), atol=0.06)
    yield off, f"It ends with {_shown(found)}, but the points lie near another line. Does each step still take place?"


def _shown(values):
    return ", ".join(f"{value:.3f}" for value in np.ravel(values)[:3])


@judges("07.31")
def reports_loss(rank, line, collective):
    inside = {
        26: "this is inside of `mean`, which is called from two places. Which one calls it here?",
        34: "this is where the other rank is: in the next step's gradient, which both ranks average in every step.",
        50: "this is the call in `main`, on all ranks. Which line of `fit` comes next in the stack?",
    }
    yield from seen(rank, line, collective, who=0, at=(37,), inside=inside, kind="allreduce")


@judges("07.32")
def reports_loss_mended(path):
    played = yield from told(path)
    yield from same_everywhere(played)
    yield from a_line(played)
    losses = [float(number) for number in re.findall(r"loss ([\d.]+)", played.text)]
    yield not losses, "It no longer hangs, but no loss is reported any more."
    yield len(losses) > 6, f"The loss is printed {len(losses)} times. One rank should print it after every 10th step."
    own = len(losses) == 6 and played.exchanges < 66
    yield own, "The loss is reported, but no longer averaged: it is that of rank 0's points only."
    yield len(losses) < 6, f"The loss is printed {len(losses)} times, but it should be printed in every 10th of 60 steps."


@judges("07.34")
def keeps_best(rank, line, collective):
    inside = {
        25: "this is inside of `mean`, which is called from several places. Follow the stack upwards.",
        30: "this is inside of `loss`. Which line of `fit` calls it?",
        38: "this is where the other rank is: in the next step's gradient, which both ranks average in every step.",
    }
    yield from seen(rank, line, collective, who=0, at=(41,), inside=inside, kind="allreduce")


@judges("07.35")
def keeps_best_mended(path):
    played = yield from told(path)
    yield from same_everywhere(played)
    yield from a_line(played)
    tests = played.exchanges - 61
    yield tests < 6, "It no longer hangs, but the line is not tested on the points of all ranks after every 10th step."
    yield tests > 6, f"The line is tested {tests} times. That takes time: test it after every 10th step only."


@judges("07.36")
def every_error_mended(path):
    played = yield from told(path)
    yield from same_everywhere(played)
    yield from a_line(played)
    error = float(np.ravel(played.returned[0])[2]) if np.size(played.returned[0]) > 2 else np.nan
    exact, mean_of_means = 0.0, 0.0
    exact, mean_of_means = _errors(np.ravel(played.returned[0])[:2])
    yield near(error, mean_of_means) and not near(error, exact), (
        "The means of the two ranks count the same, although one rank has more points. Each point should count once."
    )
    yield not near(error, exact), f"The mean square error over all 25 points is not {error:.5f}."


def _errors(line):
    """(mean square error over the 25 points of the script, mean of the two ranks' means)."""
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 25)
    errors = (line[0] * x + line[1] - (2 * x + 1 + random.normal(0, 0.1, 25))) ** 2
    return errors.mean(), np.mean([errors[rank :: playing.RANKS].mean() for rank in range(playing.RANKS)])
