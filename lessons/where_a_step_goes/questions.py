"""Judges of 26_where_a_step_goes."""

from functools import partial
from math import ceil, floor

import numpy as np

from labs.checks import reading
from labs.checks.judging import judges

near = partial(reading.near, relative=0.005)


@judges("step.2")
def parts(function):
    got = tuple(float(value) for value in function(1.0, 1.1, 1.4, 1.45))
    yield len(got) != 4, f"Return four parts. Your function returns {len(got)}."
    yield np.allclose(got, (1.0, 0.1, 0.3, 0.05)), None
    steps = np.allclose(got, (1.0, 1.1, 1.4, 1.45))
    yield steps, "These are the times of the steps themselves. What does each kind of step add to the one before it?"
    yield (
        np.allclose(got, (1.0, 0.1, 0.4, 0.45)),
        "You compare each kind with the step alone, so the exchange includes sharing, which then counts twice.",
    )
    yield (
        min(got) < 0,
        "One part is negative although the steps get longer. Subtract the earlier kind of step from the later one.",
    )
    yield not near(sum(got), 1.45), "The parts must add up to the last kind of step, which contains all of them."
    yield True, "Computation is the step alone. Every other part is a kind of step minus the kind before it."


CASES = ((70e6, 1e9, 0.004), (35e6, 1e9, 0.004), (35e6, 4e9, 0.006))  # bytes, bytes/s, seconds for each image


@judges("step.5")
def threshold(function):
    got = [float(function(*case)) for case in CASES]
    right = [size / bandwidth / (2 / 3 * seconds) for size, bandwidth, seconds in CASES]

    def all_near(values):
        return all(near(a, b) for a, b in zip(got, values, strict=True))

    def times(factor):
        return all_near([factor * value for value in right])

    yield times(1), None
    cut = any(got == list(map(whole, right)) for whole in (floor, ceil, round))
    yield cut, "You rounded to whole images. Return the number without rounding: the plot marks its exact position."
    yield (
        times(2 / 3),
        "With this batch, the forward and backward passes together take as long as the message. Which one can hide it?",
    )
    yield times(2), "You used only a third of an image's time. That is the forward pass, when no gradient is ready yet."
    yield (
        times(4 / 9),
        "The batch is too small: multiply an image's time by the backward pass's share instead of dividing by it.",
    )
    yield times(8) or times(16 / 3), "This is 8 times too large: the bandwidth is already in bytes per second."
    yield (
        all_near([1 / value for value in right]),
        "This is upside down: divide the message's time by the time of one image's backward pass.",
    )
    taken = [size / bandwidth for size, bandwidth, _ in CASES]
    yield all_near(taken), "This is the message's time. How many images does the backward pass process in that time?"
    yield got[0] == got[1], "With half the bytes, your batch stays the same. How long does such a message take?"
    yield near(got[1], 2 * got[0]), "With half the bytes, your batch doubles. But a shorter message is easier to hide."
    yield (
        got[2] >= got[1],
        "With a faster link and a slower worker, your batch gets no smaller. Which time gets longer, which shorter?",
    )
    yield (
        True,
        "Set the message's time equal to the backward pass's, 2/3 x batch x image_seconds, and solve for the batch.",
    )


@judges("step.6")
def below(small, large, at_equal, at_largest):
    from lessons.where_a_step_goes import what_if

    def at(small_batch, large_batch, bandwidth):
        return tuple(
            what_if.first_below(name, batch=local_batch, bandwidth=bandwidth)
            for name, local_batch in zip(what_if.NAMES, (small_batch, large_batch), strict=True)
        )

    got, right = (small, large), at(128, 64, 10)
    if got == right:
        yield from _order(at_equal, at_largest, what_if)
        yield True, None
    yield got == right[::-1], "The two numbers are swapped: give ResNet50V2 first, then ResNet152V2."
    yield got == at(128, 64, 25), "These are the numbers for 25 Gbit/s. Change the bandwidth first."
    yield (
        got in (at(64, 64, 10), at(128, 128, 10)),
        "Both numbers are for the same batch. Give each network its own largest batch.",
    )
    yield got == at(64, 128, 10), "The batches are swapped. For which network do more images fit into memory?"
    for value in got:
        yield (
            value not in what_if.WORKERS,
            f"The plot has no point at {value!r}. Read the number below the curves, after `below 0.8 from`.",
        )
    for name, value, wanted, local_batch in zip(what_if.NAMES, got, right, (128, 64), strict=True):
        there = f"At a batch of {local_batch} and 10 Gbit/s, the central efficiency of {name} is"
        yield (
            value > wanted,
            f"{there} already below 0.8 with fewer than {value} workers. Did you move another control?",
        )
        yield value < wanted, f"{there} still 0.8 or more with {value} workers. Did you move another control?"


def _order(at_equal, at_largest, what_if):
    """Cases of the order of two predictions on 64 workers, at 10 Gbit/s."""
    answers = (*what_if.NAMES, "can't tell")
    for given in (at_equal, at_largest):
        yield given not in answers, f"{given!r} is not one of the three answers. Spell your answer as in the text."
    for given, batches, where in ((at_equal, (64, 64), "same batch"), (at_largest, (128, 64), "largest batches")):
        value, (low, high) = what_if.order(64, batches, 10)["ratio"]
        right, seen = what_if.ahead((low, high)), f"The ratio at the {where} is {value:.3f} [{low:.3f}, {high:.3f}]"
        if given == right:
            continue
        if right == "can't tell":
            yield True, f"{seen}. Does this range contain a ratio of 1?"
        yield (
            given == "can't tell",
            f"{seen}. The efficiencies' ranges overlap, but what shifts both cancels in the ratio. Is 1 in it?",
        )
        yield True, f"{seen}. Which network's efficiency is the numerator of this ratio?"
