"""Judges of 02_averages."""

import itertools
import math

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import called


@judges("averages.2")
def distance(function):
    from lessons.averages import sgd

    weights, rows = np.random.default_rng(1).normal(0, 0.1, (65, 10)), np.arange(5, 17)
    few, full = sgd.gradient(weights, rows), sgd.gradient(weights)
    got, changed = called(function, weights, rows)
    got = np.asarray(got, float)
    yield (
        got.shape == full.shape,
        "This is a matrix with one number for each weight. Which single number is its length?",
    )
    yield got.shape, f"This has the shape {got.shape}: return one number, the length of the difference."
    right = np.linalg.norm(few - full)
    yield np.isclose(got, right), changed
    yield (
        abs(got) < 1e-9,
        "For 12 of the digits your function gives 0. In a sum, opposite signs cancel; in a length they do not.",
    )
    yield (
        np.isclose(got, abs(np.linalg.norm(few) - np.linalg.norm(full))),
        "This compares two lengths. But two gradients of equal length can point in different directions.",
    )
    start = np.zeros((65, 10))
    yield (
        np.isclose(got, np.linalg.norm(sgd.gradient(start, rows) - sgd.gradient(start))),
        "You compute both gradients at the initial weights. Use the `weights` passed to the function.",
    )
    yield (
        np.isclose(got, np.linalg.norm(few - sgd.gradient(start))),
        "You compute the two gradients at different weights. Compute both at the given `weights`.",
    )
    yield (
        np.isclose(got, np.linalg.norm(few)) or np.isclose(got, np.linalg.norm(full)),
        "This is the length of one of the gradients. How far is it from the other one?",
    )
    yield np.isclose(got, right**2), "This is the square of the length."
    yield (
        True,
        f"For 12 of the digits your function gives {got:.4g}. Subtract the gradients first; then take the length.",
    )


@judges("averages.4")
def averaged(function):
    gradients = [np.arange(6.0).reshape(2, 3) * k + k**2 for k in (1, 2, 4)]
    value, changed = called(function, gradients)
    value = np.asarray(value, float)
    yield (
        value.shape == () and np.isclose(value, np.mean(gradients)),
        "This is a single number, the mean over all workers *and* all weights. Average only over the workers.",
    )
    yield (
        value.shape != (2, 3),
        f"Three gradients of shape (2, 3) give an array of shape {value.shape}: return the shape of a gradient.",
    )
    if np.allclose(value, np.mean(gradients, axis=0)):
        two = np.asarray(called(function, gradients[:2])[0], float)
        yield changed, f"The mean is right. {changed}"
        yield np.allclose(two, np.mean(gradients[:2], axis=0)), None
        yield True, "Right for three gradients, but wrong for two. By what number do you divide?"
    yield np.allclose(value, np.sum(gradients, axis=0)), "This is the sum. An update that uses it is K times too large."
    yield (
        np.allclose(value, np.sum(gradients, axis=0) / 4),
        "You divide by 4, whatever the number of gradients. Here there are three.",
    )
    yield (
        np.allclose(value, np.median(gradients, axis=0)),
        "This is the median. In the gradient for all samples, each sample must have the same weight.",
    )
    yield True, "For three gradients your function gives a different matrix. Add them up. What must you then divide by?"


@judges("averages.6")
def weighted(function):
    gradients, sizes = [np.full((2, 3), 1.0) + np.eye(2, 3), np.full((2, 3), 5.0), np.full((2, 3), -2.0)], [4, 12, 1]
    value, changed = called(function, gradients, sizes)
    value = np.asarray(value, float)
    total = np.tensordot(sizes, gradients, 1)
    yield (
        value.shape != (2, 3),
        f"Three gradients of shape (2, 3) give an array of shape {value.shape}: return the shape of a gradient.",
    )
    if np.allclose(value, total / 17):
        yield changed, changed
        other = np.asarray(called(function, gradients[1:], [2, 6])[0], float)
        yield np.allclose(other, np.tensordot([2, 6], gradients[1:], 1) / 8), None
        yield True, "Right for batches of 4, 12 and 1, but wrong for 2 and 6. What must the weights add up to?"
    yield (
        np.allclose(value, np.mean(gradients, axis=0)),
        "This is the plain mean: a sample in a batch of 4 counts three times as much as one in a batch of 12.",
    )
    yield (
        np.allclose(value, total),
        "The weights are in the right proportion. But if all gradients are equal, what must the result be?",
    )
    yield np.allclose(value, total / 3), "You divide by the number of workers. How many samples are there?"
    yield np.allclose(value, total / 16), "You divide by 16, whatever the sizes. Here they are 4, 12 and 1."
    yield (
        np.allclose(value, np.average(gradients, axis=0, weights=1 / np.array(sizes))),
        "Here the smallest batch has the largest weight. Each *sample* should have the same weight.",
    )
    yield True, "For batches of 4, 12 and 1 your function gives a different matrix. What weight must each gradient get?"


@judges("averages.8")
def step_seconds(function):
    times = np.array([[1.0, 2.0, 7.0], [6.0, 1.0, 2.0]])  # 2 steps, 3 workers
    value, changed = called(function, times)
    value = np.asarray(value, float)
    yield value.shape == (2,), "This is one number for each step. Return their mean."
    yield value.shape, f"This has the shape {value.shape}: return one number, the mean seconds of a step."
    if np.isclose(value, 6.5):
        yield changed, changed
        more = np.array([[1.0, 2.0, 7.0, 3.0], [6.0, 1.0, 2.0, 1.0], [1.0, 1.0, 1.0, 2.0]])
        yield np.isclose(float(called(function, more)[0]), 5), None
        yield True, "Right for 2 steps of 3 workers, but wrong for 3 steps of 4: average over all the steps."
    yield (
        np.isclose(value, times.max(axis=0).mean()),
        "This takes the slowest step of each worker. Take the slowest worker in each step: which axis is that?",
    )
    yield np.isclose(value, times.mean()), "This is the mean time of a worker, as if nobody had to wait."
    yield (
        np.isclose(value, times.max()),
        "This is the slowest step of all. First find the time of each step; then take the mean.",
    )
    yield (
        np.isclose(value, times.mean(axis=0).max()),
        "This is the mean time of the slowest worker. But in each step, a different one may be the slowest.",
    )
    yield np.isclose(value, times.max(axis=1).sum()), "This is the total time of all the steps."
    yield (
        np.isclose(value, times.sum(axis=1).mean()),
        "This adds the times of the workers, but they work at the same time.",
    )
    yield np.isclose(value, times.min(axis=1).mean()), "The step does not end when the fastest worker is done."
    yield True, f"For the steps [1, 2, 7] and [6, 1, 2] your function gives {value:.4g}. When does each of them end?"


def _other_work(arguments, draw):
    """[gradients, one of them] in place of `arguments`: some workers, each of which computes one after the other."""
    work = []
    for worker in range(draw.randint(2, 4)):
        times = itertools.accumulate(draw.uniform(0.5, 4) for _ in range(draw.randint(3, 5)))
        work += [(worker, begin, end) for begin, end in itertools.pairwise(times)]
    made = [type(arguments[1])(*each, -1) for each in sorted(work, key=lambda each: each[2])]
    return [made, draw.choice(made)]


@judges("averages.12", varied=_other_work)
def staleness(function):
    from lessons.averages.sgd import Work

    spans = [(0, 0, 2), (1, 0, 3.5), (2, 0.5, 9), (0, 2, 4), (1, 3.5, 5), (0, 4, 8), (1, 5, 6)]
    work = [Work(worker, begin, end, -1) for worker, begin, end in spans]
    got = [function(list(work), one) for one in work]
    yield (
        any(isinstance(value, list | tuple | set | np.ndarray) for value in got),
        "These are the gradients themselves: return how many there are.",
    )
    got, one = [float(value) for value in got], work[5]
    yield got == [sum(one.begin < other.end < one.end for other in work) for one in work], None
    yield (
        all(value == -1 for value in got),
        "This is what the simulator recorded. Count for yourself, using `begin` and `end` of the others.",
    )
    yield (
        got == [sum(one.begin < other.end <= one.end for other in work) for one in work],
        "Your count includes `one` itself, but its own update was not made while it was being computed.",
    )
    yield (
        got == [sum(one.begin <= other.end < one.end for other in work) for one in work],
        "An update at the moment when `one` begins is already in its weights, so it does not make `one` staler.",
    )
    yield (
        got == [sum(one.begin <= other.end <= one.end for other in work) for one in work],
        "This also counts an update at the moment when `one` begins, and `one` itself when it ends.",
    )
    yield (
        got == [sum(one.begin < other.begin < one.end for other in work) for one in work],
        "This counts the gradients that *began* in between. A gradient changes the weights when it ends.",
    )
    yield (
        got == [sum(other.end < one.end for other in work) for one in work],
        "This counts all updates made before `one` ended. Those made before it began are already in its weights.",
    )
    yield (
        got == [sum(other.begin < one.end and other.end > one.begin for other in work) - 1 for one in work],
        "This counts all gradients that overlap with `one`. Which of them were applied before `one` ended?",
    )
    ends = ", ".join(f"{other.end:g}" for other in work if other is not one)
    asked = f"a gradient from {one.begin} s to {one.end} s, and others that end at {ends} s"
    yield True, f"For {asked}, your function gives {got[5]:g}. Which of these ends lie in between?"


@judges("averages.13")
def seconds_to(function):
    from lessons.averages.sgd import History

    seconds, losses = np.array([0.0, 1.5, 3.0, 4.5, 6.0]), np.array([2.3, 1.0, 0.5, 0.7, 0.4])
    history = History(seconds, losses, None, [])
    trials = {0.6: 3.0, 0.5: 3.0, 2.5: 0.0, 0.4: 6.0}
    got = {target: function(history, target) for target in [*trials, 0.1]}
    lists = [value for value in got.values() if isinstance(value, list | tuple | np.ndarray) and np.ndim(value)]
    yield lists, "These are several times: return a single number, the first of them."
    never = got.pop(0.1)
    yield (
        any(value is None for value in got.values()),
        "For a target that is reached, your function returns nothing. Does every path end with a `return`?",
    )
    got = {target: float(value) for target, value in got.items()}
    if all(math.isclose(got[target], time) for target, time in trials.items()):
        yield (
            never is None,
            "The times are right. For a target that is never reached, return np.inf, not None: it can be compared.",
        )
        yield float(never) == math.inf, None
        yield True, f"The times are right, but an unreached target gives {float(never):g}: what does the docstring say?"
    yield got[0.6] == 2, "This is the update number. How many seconds have passed by then?"
    yield got[0.6] == 0.5, "This is the loss. At what time was it reached?"
    yield (got[0.5], got[0.6]) == (6.0, 3.0), "A loss *equal* to the target counts as reached, too."
    yield got[0.6] == 6.0, "This is the last time at which the loss is low enough. When was it first low enough?"
    target = next(target for target, right in trials.items() if not math.isclose(got[target], right))
    for now, loss in zip(seconds, losses, strict=True):
        yield (
            now == got[target] and loss > target,
            f"At {now:g} s the loss is {loss:g}, above the target of {target:g}.",
        )
    asked = f"losses {', '.join(f'{loss:g}' for loss in losses)} at {', '.join(f'{s:g}' for s in seconds)} s"
    yield True, f"With {asked} your function gives {got[target]:g} s for a target of {target:g}."
