"""Judges of 22_when_workers_do_not_help."""

import math

import numpy as np

from labs.checks import student_code
from labs.checks.judging import judges
from labs.checks.reading import CUT, close, near
from lessons import connected, scripts
from lessons.asked import ROUNDED, rounded
from lessons.when_workers_do_not_help import equal_ranks


@judges("workers.1")
def times_as_long(ratio):
    yield near(ratio, 443 / 73, 0.02), None
    yield near(ratio, 73 / 443, 0.02), "This is upside down: it is below 1, although four processes took longer."
    yield near(ratio, 443 - 73, 0.01), "This is a difference in seconds. How many *times* as long is it?"
    yield (
        near(ratio, 370 / 73, 0.02),
        "This is the extra time, divided by 73 s. How many times as long did they take in total?",
    )
    yield near(ratio, 8, 0.06), "This is what the text says. Divide the two times yourself."
    yield near(ratio, 4, 0.01), "This is the number of processes. Divide the two times."
    yield True, "Divide the time that four processes take by the time that one takes."


@judges("workers.3")
def speedup(function):
    cases = ((2.0, 0.5, 3.0, 2), (1.0, 0.25, 4.0, 8), (0.5, 1.0, 0.0, 1), (1.5, 0.3, 2.0, 3), (0.7, 0.6, 1.0, 5))
    got = [function(*case) for case in cases]
    text = isinstance(got[0], str)
    yield text, f"Your function returns the text {got[0]!r:.40}. The cell below computes with a number."
    got = [float(value) for value in got]

    def are(formula):
        return np.allclose(got, [formula(*case) for case in cases], rtol=1e-6)

    yield are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e)), None
    yield rounded(got, [(s + 32 * c) / (s + 32 * c / k + e) for s, c, e, k in cases]), ROUNDED
    yield are(lambda s, c, e, k: (s + 32 * c) / (s + 32 // k * c + e)), CUT
    yield (
        any(are(lambda s, c, e, k: (s + 32 * c) / (s + whole(32 / k) * c + e)) for whole in (round, math.ceil)),  # noqa: B023
        "This is right if the images divide evenly. With 3 or 5 ranks you round the share: keep the fraction.",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * c / k + e) / (s + 32 * c)),
        "This is upside down: a faster step must give more than 1.",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / ((s + 32 * c) / k + e)),
        "Here the ranks divide the start of operations. But each rank has to start all of its operations.",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k)),
        "The exchange is missing. Every rank has to wait for it.",
    )
    yield (
        are(lambda s, c, e, k: 32 * c / (32 * c / k + e)),
        "The start of operations is missing. It is part of both steps.",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c + e)),
        "Here each rank computes all 32 images. How many does each one get if the global batch is fixed?",
    )
    yield (
        are(lambda s, c, e, k: k * (s + 32 * c) / (s + 32 * c + e)),
        "Here the ranks divide the whole step, including the start and the exchange, or the batch grows with the "
        "number of ranks.",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * k * c) / (s + 32 * c + e)),
        "This holds for a batch that grows with the ranks. Here all the ranks together have 32 images.",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e / k)),
        "Here the exchange is divided by the number of ranks. Does it get shorter when there are more of them?",
    )
    yield are(lambda s, c, e, k: (s + c) / (s + c / k + e)), "`per_image` is for one image, and a step has 32 of them."
    yield (
        are(lambda s, c, e, k: (s + 32 * c + e) / (s + 32 * c / k + e)),
        "Here the exchange is part of both steps. With which other rank would a single rank exchange anything?",
    )
    yield (
        any(are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e * n(k))) for n in (lambda k: k, lambda k: k - 1)),  # noqa: B023
        "`exchange` already contains everything that the exchange adds to a step. You count it several times.",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / (32 * c / k + e))
        or are(lambda s, c, e, k: 32 * c / (s + 32 * c / k + e)),
        "Here the start of operations is in only one of the two steps. It is part of both.",
    )
    yield (
        are(lambda s, c, e, k: s + 32 * c - (s + 32 * c / k + e)),
        "This is a difference in time. A speedup is a ratio.",
    )
    yield (
        are(lambda s, c, e, k: s + 32 * c / k + e),
        "This is the step time of several ranks. A speedup compares it with the step time of one.",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e) / k),
        "This is divided by the number of ranks, which gives the efficiency.",
    )
    yield (
        are(lambda s, c, e, k: s + 32 * c / (s + 32 * c / k + e)),
        "Only the computing is divided by the step of several ranks. Put the whole step of one rank in brackets.",
    )
    yield (
        True,
        "Divide the step time of one rank by that of several. What does each consist of: start, computing for how "
        "many images, exchange?",
    )


_LIKE = {
    "nothing": "The weights do not change, because no step is taken. Take a step for each batch.",
    "never": "The ranks never average their weights, so each rank trains a network of its own.",
    "every step": "With k = 3 the ranks exchange at every step. That is synchronous SGD, whatever k is.",
    "early": "You take the mean after steps 1, 1 + k, ... With which number do you start to count the batches?",
    "one early": "You take the mean one step before each k-th. With which number do you start to count the batches?",
    "once": "You take the mean only after step k, and never again. Take it after every k-th step.",
    "not at k": "You take the mean after all steps except each k-th. Look at the condition again.",
    "at the end": "The mean comes only after the last batch: one loop over `batches` reads all of them. Take it after "
    "every k-th step.",
    "first mean": "Training ends after the weights are averaged for the first time, although there are more batches.",
    "only k-th": "You use only one batch in k. Each rank takes a step for every batch, and the mean after k steps.",
    "repeated": "You use each batch k times before you take the mean. Use each batch for one step.",
    "collected": "You take one step for k batches, with the mean of their gradients. Take a step for each batch.",
    "collected sum": "You take one step for k batches, with the sum of their gradients. Take a step for each batch.",
    "sum": "You add up the weights over the ranks, but do not divide the sum by the number of ranks.",
    "by k": "You divide the sum over the ranks by k. How many numbers were added?",
    "by all": "You divide the sum over the ranks by the number of ranks and by k. How many numbers were added?",
    "twice": "You divide the mean over the ranks by the number of ranks again.",
    "gradients at k": "At every k-th step you average the gradients. By then the weights differ: average the weights.",
    "rank 0": "After every k-th step, all the ranks have rank 0's weights. What the other rank has learned is lost.",
    "weights alone": "With momentum, you average only the weights, so each rank continues with its own velocity.",
    "momentum alone": "You average the velocities but not the weights, so each rank keeps its own weights.",
    "momentum sum": "You average the weights, but you add up the velocities without dividing by the number of ranks.",
    "momentum of rank 0": "At every exchange, all the ranks get rank 0's velocities. Take the mean of these as well.",
    "momentum lost": "You set the velocities to 0 at every exchange. A step changes them, so take their mean as well.",
    "no momentum": "The steps ignore the optimizer's momentum. Let the optimizer make the update.",
    "before": "At every k-th step you take the mean before the update, so the ranks end with different weights.",
    "rate": "The steps are too large: you multiply the learning rate by the number of ranks. Leave it as it is.",
    "uphill": "The steps increase the loss. Does the gradient get the wrong sign before the update?",
}


_OF_THE_TAPE = {  # TensorFlow's words: what they mean here
    "No gradients provided": "the tape recorded nothing that leads from the weights to this loss. Compute both the "
    "predictions and the loss inside `with tf.GradientTape() as tape:`.",
    "non-persistent GradientTape": "a tape gives gradients only once, and here it is asked again. Ask for the "
    "gradients of all the weights in one call.",
}


@judges("workers.5")
def local_sgd(path):
    yield from scripts.no_script(path)
    scripts.refuse_blanks(path)
    facts = equal_ranks.facts(path)
    says, line = str((facts["error"] or {}).get("says")), (facts["error"] or {}).get("line")
    for words, hint in _OF_THE_TAPE.items():
        yield words in says, f"{facts['where']}, line {line}: {hint}"
    yield (
        "local_sgd" in says and not line,
        "The script no longer has a function `local_sgd`. Keep its name and its arguments.",
    )
    yield from scripts.stops(facts, facts["where"])
    cases = facts["cases"]
    yield any(case["moved_frozen"] for case in cases), "A layer that must not be trained has changed."
    wrong = [case for case in cases if case["like"] != ["right"]]
    if not wrong:
        yield (
            any(case["ahead"] == equal_ranks.STEPS for case in cases),
            "The weights are right, but you read all the batches before the first step. Read a batch, take its step, "
            "then read the next one: the script measures the time from one batch to the next.",
        )
        yield (
            not _right_on_1_rank(path),
            "This is right on 2 ranks, but not on 1, where a mean over the ranks changes nothing. Does your function "
            "take the number of ranks for granted?",
        )
    yield not wrong, None
    for some in (wrong, [case for case in wrong if not case["momentum"]]):  # momentum may add a mistake of its own
        for mistake, hint in _LIKE.items():
            yield bool(some) and all(mistake in case["like"] for case in some), hint
    first = wrong[0]
    momentum = f" and momentum {first['momentum']}" if first["momentum"] else ""
    after = "are equal" if first["equal"] else "differ"
    yield (
        True,
        f"With k = {first['k']}{momentum}, the weights are not those of local SGD; the two ranks' weights {after} "
        "after the last step. A step computes the gradient of this rank's batch and makes an update. Take the mean "
        "after every k-th step.",
    )


def _right_on_1_rank(path):
    """Whether a script that is right on 2 ranks also trains one rank that is alone, in this process."""
    import tensorflow as tf

    world, logger = connected.World(1, equal_ranks.SECONDS, graphs=True), tf.get_logger()
    world.DistributedOptimizer = world.distributed
    level = logger.level
    logger.setLevel("ERROR")  # each check traces the step anew, and TensorFlow would warn of that
    try:
        with connected.placed(world), student_code.tried("1 rank"):
            function = connected.definitions(path, world)["local_sgd"]
            (found,) = world.play(lambda: equal_ranks.train(function, 0, k=2, momentum=0.0))
    finally:
        logger.setLevel(level)
    alone, _ = equal_ranks.trained(k=2, momentum=0.0, mistake="never")
    return equal_ranks.alike(np.array(found["weights"]), alone)


@judges("workers.7")
def exchanges(count, size, parameters):
    whole = 4 * parameters
    if float(count) != 8:
        yield float(count) == 512, "This is right for k = 1. How many times do 64 steps fit into 512?"
        yield float(count) == 64, "This is k, the number of steps from one exchange to the next."
        yield float(count) == 448, "This is 512 - 64. But there is an exchange after every 64th step."
        yield True, "There is an exchange after every k-th of 512 steps. How many is that?"
    yield close(size, 8 * whole), None
    yield close(size, whole), "These are the bytes of one exchange. How many are there?"
    yield close(size, parameters), "This is the number of weights. How many bytes does each one take up?"
    yield close(size, 8 * parameters), "This is the number of weights in all exchanges. How many bytes has each weight?"
    yield close(size, 512 * whole), "This is right for k = 1, with an exchange after each of the 512 steps."
    yield any(close(size, 8 * whole / unit) for unit in (1e6, 2**20)), "Give the number in bytes, not in megabytes."
    yield True, "The number of exchanges is right. Each one contains all the weights, and a float32 takes up 4 bytes."


@judges("workers.10")
def equal_generators(never, twice):
    yield (never, twice) == (500, 500), None
    yield 0 < never < 1 or 0 < twice < 1, "These are shares. Give numbers of samples, out of 1000."
    yield (
        (never, twice) == (0, 0),
        "The ranks would have to read different halves. Does anything make the generator of rank 1 different?",
    )
    yield (never, twice) == (250, 250), "Different orders would give this. Here both generators have the same seed."
    yield never == 500, "The first number is right. But how many samples do both ranks read?"
    yield (
        twice in (500, 1000),
        "Each rank takes half of the steps. Which samples are in these steps, and which are not?",
    )
    yield True, "Both ranks follow the same order from its beginning, and stop after half of the steps."
