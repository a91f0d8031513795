"""Judges of 12_where_a_step_goes."""

from functools import partial
from math import ceil, floor

import numpy as np

from labs.checks import reading
from labs.checks.judging import judges

near = partial(reading.near, relative=0.005)


@judges("12.2")
def parts(function):
    got = tuple(float(value) for value in function(1.0, 1.1, 1.4, 1.45))
    yield len(got) != 4, f"Four parts are wanted, these are {len(got)}."
    yield np.allclose(got, (1.0, 0.1, 0.3, 0.05)), None
    steps = np.allclose(got, (1.0, 1.1, 1.4, 1.45))
    yield steps, "These are the steps themselves. What does each have that the one before has not?"
    if np.allclose(got, (1.0, 0.1, 0.4, 0.45)):
        return "All are compared with the step alone: then the exchange holds the sharing as well, and counts it twice."
    yield min(got) < 0, "A part came out below 0 for growing steps: the later kind of step less the earlier one."
    yield not near(sum(got), 1.45), "The parts must add up to the last kind of step, in which everything is contained."
    return "Computation is the step alone; then the difference of each kind of step to the one before it."


CASES = ((70e6, 1e9, 0.004), (35e6, 1e9, 0.004), (35e6, 4e9, 0.006))  # bytes, bytes/s, seconds for each image


@judges("12.5")
def border(function):
    got = [float(function(*case)) for case in CASES]
    right = [size / bandwidth / (2 / 3 * seconds) for size, bandwidth, seconds in CASES]

    def all_near(values):
        return all(near(a, b) for a, b in zip(got, values, strict=True))

    def times(factor):
        return all_near([factor * value for value in right])

    yield times(1), None
    cut = any(got == list(map(whole, right)) for whole in (floor, ceil, round))
    yield cut, "This is rounded to whole images. Give the border as it is: the plot marks the place of it."
    yield times(2 / 3), "With these images forward and backward together last as long as the message. Which part hides?"
    yield times(2), "Only a third of an image's time was taken. That is forward, and no gradient is ready then."
    yield times(4 / 9), "The border is too low: multiply an image's time by backward's share, do not divide it by that."
    yield times(8) or times(16 / 3), "A factor of 8 too many: the bandwidth is in bytes per second already."
    yield all_near([1 / value for value in right]), "Upside down: the message's time over an image's backward."
    taken = [size / bandwidth for size, bandwidth, _ in CASES]
    yield all_near(taken), "These are the seconds of the message. In the backward of how many images do they fit?"
    yield got[0] == got[1], "Half of the bytes gave the same border. How long does a message of them take?"
    yield near(got[1], 2 * got[0]), "Half of the bytes gave twice the border: a shorter message is easier to hide."
    yield got[2] >= got[1], "A faster link and a slower worker gave no smaller border: what takes longer, what less?"
    return (
        "Set seconds of the message equal to seconds of backward, 2/3 x batch x seconds of an image; solve for batch."
    )


@judges("12.6")
def below(small, large, at_equal, at_largest):
    from labs.lessons.nb12 import pictures as what_if

    def at(small_batch, large_batch, bandwidth):
        return tuple(
            what_if.first_below(name, batch=batch, bandwidth=bandwidth)
            for name, batch in zip(what_if.NAMES, (small_batch, large_batch), strict=True)
        )

    got, right = (small, large), at(128, 64, 10)
    if got == right:
        return (yield from _order(at_equal, at_largest, what_if))
    yield got == right[::-1], "The two numbers are exchanged: first ResNet50V2, then ResNet152V2."
    yield got == at(128, 64, 25), "The numbers are those of 25 Gbit/s. Move the bandwidth first."
    yield got in (at(64, 64, 10), at(128, 128, 10)), "Both numbers at the same batch: here each network has its own."
    yield got == at(64, 128, 10), "The batches are exchanged: which network fits more images?"
    if any(value not in what_if.WORKERS for value in got):
        return "Read the number of workers below the curves, where it says `below 0.8 from`."
    return "Bandwidth 10, all other controls as they were; batch 128 for one reading, 64 for the other."


def _order(at_equal, at_largest, what_if):
    """Cases of the order of two predictions on 64 workers, at 10 Gbit/s."""
    answers = (*what_if.NAMES, "can't tell")
    for given in (at_equal, at_largest):
        yield given not in answers, f"{given!r} is none of the three answers; spell them as the text does."
    for given, batches, where in ((at_equal, (64, 64), "equal batch"), (at_largest, (128, 64), "largest batches")):
        value, (low, high) = what_if.order(64, batches, 10)["ratio"]
        right, seen = what_if.told((low, high)), f"The ratio at the {where} is {value:.3f} [{low:.3f}, {high:.3f}]"
        if given == right:
            continue
        if right == "can't tell":
            yield True, f"{seen}. Is a ratio of 1 within this interval or not?"
        if given == "can't tell":
            return f"{seen}: the efficiencies' own intervals overlap, but what moves both is not in this one."
        return f"{seen}. Which network's efficiency stands above the line of this ratio?"
