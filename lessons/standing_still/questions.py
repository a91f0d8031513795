"""Judges of 21_standing_still. Scripts are played on ranks that take turns (playing)."""

import re
from dataclasses import dataclass
from unittest import mock

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import near
from lessons.standing_still import playing

LINE = 2.0, 1.0  # slope and intercept of the line near which the points of each script lie
KINDS = ("allreduce", "allgather", "broadcast")


@dataclass(frozen=True)
class Place:
    """Where a job stands still, by the line numbers of the script as students get it (tests/lessons/test_stuck.py).

    who, at, kind: the rank that is asked for, its lines, and the collective in which it waits
    other: lines of the other rank; stack: lines above and below the right one in the same stack
    """

    script: str
    who: int
    at: tuple[int, ...]
    kind: str
    other: tuple[int, ...]
    stack: tuple[int, ...]


PLACES = {
    "standing.2": Place("reports_loss.py", 0, (32,), "allgather", (21, 29), (39, 46)),
    "standing.14": Place("keeps_best.py", 0, (37,), "allgather", (21, 34), (26, 45)),
    "standing.18": Place("own_share.py", 0, (32,), "allreduce", (42,), (19, 41)),
    "standing.7": Place("prepares_once.py", 1, (32, 33), "allreduce", (17, 25, 31), (42, 53)),
}


def seen(id, rank, line, collective):
    """Cases of an answer to `id` that is not the place where the job stands still."""
    place, collective = PLACES[id], _kind(collective)
    yield (
        collective not in KINDS,
        f"{collective!r:.40} is not a collective of these scripts. Give its name as a string, such as {KINDS[2]!r}.",
    )
    yield isinstance(line, str), "Give one number for the line: the one in the function that the question names."
    yield line in place.at and rank != place.who, "That is the line. But which rank is there? It is above its stack."
    yield line in place.other, f"The other rank was at line {line}. Compare the two stacks."
    within = f"Line {line} is in this stack, but in a different function from the one asked for. Follow the stack."
    yield line in place.stack, within
    yield line not in place.at, f"No rank was at line {line} when the job stood still. Read the stacks once more."
    yield collective != place.kind, "Rank and line are right. Which collective does `labs why` name there?"


def _kind(collective):
    """A collective as KINDS has it, however the script, the notebook or Horovod's message writes it."""
    if not isinstance(collective, str):
        return collective
    return re.sub(r"^(hvd|horovod)\.?|\(.*\)$|[-_ ]", "", collective.strip().lower())


def same(played):
    """Cases of ranks that end with different results, or with none."""
    yield any(each is None for each in played.returned), "`main` no longer returns what the ranks have found."
    first, *others = played.returned
    for rank, each in enumerate(others, 1):
        differs = np.shape(each) != np.shape(first) or not np.allclose(each, first)
        found = f"rank 0 ends with {_shown(first)} and rank {rank} with {_shown(each)}"
        yield differs, f"The job comes to its end, but {found}. Do they exchange all that they need, in the same order?"


def a_line(played):
    """Cases of a result that is not the line on which the points lie."""
    found = np.ravel(played.returned[0])[:2]
    off = len(found) < 2 or not np.allclose(found, LINE, atol=0.08)
    yield off, f"All ranks end with {_shown(found)}, but the points lie near another line. Are all steps still taken?"


def _shown(values):
    return ", ".join(f"{value:.3f}" for value in np.ravel(values)[:3])


@judges("standing.2")
def reports_loss(rank, line, collective):
    yield from seen("standing.2", rank, line, collective)


@judges("standing.3")
def reports_loss_mended(path):
    played = yield from playing.play(path)
    yield from same(played)
    yield from a_line(played)
    losses = played.numbers("losses")
    yield not losses, "The job no longer hangs, but no printed line shows the losses of all ranks."
    yield len(losses[0]) < playing.RANKS, "What is reported now is the loss of one rank. Where are those of the others?"
    count = len(losses)
    yield count != 6, f"The losses are reported {count} times: one rank should do that after every 10th of 60 steps."


@judges("standing.14")
def keeps_best(rank, line, collective):
    yield from seen("standing.14", rank, line, collective)


@judges("standing.15")
def keeps_best_mended(path):
    played = yield from playing.play(path)
    yield from same(played)
    yield from a_line(played)
    tests = played.kinds.count("allgather") + max(0, played.kinds.count("allreduce") - 60)
    yield (
        tests < 6,
        f"The job no longer hangs, but the ranks exchange {tests} times outside of the steps. Is the line still tested "
        "6 times on the points of all ranks?",
    )
    yield tests > 6, f"The line is now tested {tests} times, and each test costs time. When is it to be tested?"


@judges("standing.5")
def every_error_mended(path):
    played = yield from playing.play(path)
    yield from same(played)
    found = np.ravel(played.returned[0])
    yield len(found) != 3, "`main` should still return slope, intercept and mean square error."
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 25)
    errors = (found[0] * x + found[1] - (2 * x + 1 + random.normal(0, 0.1, 25))) ** 2
    by_rank = np.mean([errors[rank :: playing.RANKS].mean() for rank in range(playing.RANKS)])
    right = near(found[2], errors.mean(), 1e-6)
    yield (
        not right and near(found[2], by_rank, 1e-6),
        "This is the mean of the ranks' means, but the ranks have different numbers of points, so the points do not "
        "all count equally.",
    )
    left = f"{found[2]:.6f} is not the mean square error of all 25 points. Are some left out, or counted twice?"
    yield not right, left


@judges("standing.18")
def own_share(rank, line, collective):
    yield from seen("standing.18", rank, line, collective)


@judges("standing.6")
def own_share_mended(path):
    played = yield from playing.play(path)
    yield from same(played)
    yield from a_line(played)
    steps, slopes = played.kinds.count("allreduce"), played.numbers("slopes")
    alone = any(len(each) < playing.RANKS for each in slopes)
    yield alone, "What is reported now is the slope of one rank. Where are those of the others?"
    yield len(slopes) != 3, "After each of the 3 epochs, one rank should still report the slopes of all ranks."
    yield (
        steps < 36,
        f"All ranks now take {steps / 3:.0f} steps in each epoch. Could each rank have more of the 25 batches?",
    )
    yield (
        steps > 36,
        f"All ranks now take {steps / 3:.0f} steps in each epoch, so some of the 25 batches are taken more than once.",
    )
    others = yield from playing.play(path, ranks=5)
    yield from same(others)
    steps = others.kinds.count("allreduce")
    yield steps != 15, f"On 2 ranks this is right. But each of 5 ranks takes {steps / 3:.0f} steps in an epoch, not 5."


@judges("standing.7")
def prepares_once(rank, line, collective):
    yield from seen("standing.7", rank, line, collective)


@judges("standing.8")
def prepares_once_mended(path):
    with mock.patch.object(np, "save", wraps=np.save) as saved:
        played = yield from playing.play(path)
    count = saved.call_count
    yield (
        count > 1,
        f"`np.save` is called {count} times: while one rank writes the file again, another may read only half of it.",
    )
    yield from same(played)
    found = np.ravel(played.returned[0])
    unscaled = len(found) == 2 and found[1] > 5
    yield unscaled, "The job no longer hangs, but y is no longer divided by its mean."
    yield from a_line(played)


@judges("standing.16")
def smallest_first(rank_0, rank_1):
    rank_0, rank_1 = _kind(rank_0), _kind(rank_1)
    for rank, kind in enumerate((rank_0, rank_1)):
        yield kind not in KINDS[:2], f"Rank {rank}: {kind!r:.40}? This line calls one of {' and '.join(KINDS[:2])}."
    alike = "Two ranks in the same collective would not wait: read both stacks again."
    yield rank_0 == rank_1, alike
    yield rank_0 != "allreduce", "The other way round: which stack belongs to rank 0?"


@judges("standing.17")
def smallest_first_mended(path):
    played = yield from playing.play(path)
    yield from same(played)
    yield from a_line(played)
    gathers = played.kinds.count("allgather")
    yield gathers == 0, "The job no longer hangs, but there is no `allgather`. How do all ranks get all the far points?"


@judges("standing.11")
def signal_number(number):
    yield isinstance(number, str), "Give the signal's number: `kill -l` in a terminal lists names and numbers."
    yield number == 15, "Signal 15, SIGTERM, asks a program to end. Which number is in the launcher's lines?"
    yield (
        number in (137, -9),
        "A shell adds 128 to the number of a signal, and Python writes a minus sign before it. Which signal is it?",
    )
    yield number != 9, "The launcher's lines name the signal. Read what they say about the process that ended first."


@judges("standing.12")
def two_means_mended(path):
    played = yield from playing.play(path)
    yield from same(played)
    yield from a_line(played)
    moved = yield from playing.play(path, change=_moved)
    alike = np.allclose(moved.returned, LINE, atol=0.08)
    yield not alike, "With these points it is right. With other points, the order still depends on a rank's own data."


def _moved(names):
    """Let each rank but the first have other points of the same line, whose y is smaller than x."""
    share, rank = names.get("share"), names["hvd"].rank

    def other():
        x, y = share()
        return x - 10.0 * rank(), y - 20.0 * rank()

    if callable(share):
        names["share"] = other
