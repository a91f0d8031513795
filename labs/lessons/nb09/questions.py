"""Judges of 09_why_scaling_fails."""

import numpy as np

from labs.checks import scripts
from labs.checks.judging import judges
from labs.checks.reading import close, near
from labs.lessons.nb09 import equal_ranks


@judges("09.1")
def times_as_long(ratio):
    yield near(ratio, 443 / 73, 0.02), None
    yield near(ratio, 73 / 443, 0.02), "Upside down: this is below 1, and four processes took longer."
    yield near(ratio, 443 - 73, 0.01), "This is a difference in seconds. How many *times* as long is it?"
    yield near(ratio, 370 / 73, 0.02), "This is how much *longer* it took, in shares of 73 s. As long, in all?"
    yield near(ratio, 8, 0.06), "This is what the text says. Divide the two times yourself."
    yield near(ratio, 4, 0.01), "This is the number of processes. Divide the two times."
    return "Seconds of four processes, divided by seconds of one."


@judges("09.3")
def speedup(function):
    cases = ((2.0, 0.5, 3.0, 2), (1.0, 0.25, 4.0, 8), (0.5, 1.0, 0.0, 1))
    got = [float(function(*case)) for case in cases]

    def are(formula):
        return np.allclose(got, [formula(*case) for case in cases], rtol=1e-6)

    yield are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e)), None
    yield (
        are(lambda s, c, e, k: (s + 32 * c / k + e) / (s + 32 * c)),
        "Upside down: a faster step must give more than 1.",
    )
    if are(lambda s, c, e, k: (s + 32 * c) / ((s + 32 * c) / k + e)):
        return "The start of the operations is divided by the ranks here: but each rank starts all of them."
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k)),
        "Without the exchange: every rank has to wait for it.",
    )
    yield are(lambda s, c, e, k: 32 * c / (32 * c / k + e)), "The start of the operations is in the steps of both."
    if are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c + e)):
        return "Each rank computes all 32 images here. How many are left for it if the batch of all stays the same?"
    if are(lambda s, c, e, k: k * (s + 32 * c) / (s + 32 * c + e)):
        return "All of the step is divided by the ranks here, start and exchange too, or the batch grows with them."
    if are(lambda s, c, e, k: (s + 32 * k * c) / (s + 32 * c + e)):
        return "This is for a batch that grows with the ranks. Here all ranks together have 32 images."
    if are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e / k)):
        return "The exchange is divided by the ranks here: does it get shorter when there are more of them?"
    yield are(lambda s, c, e, k: (s + c) / (s + c / k + e)), "`per_image` is for one image, and a step has 32 of them."
    if are(lambda s, c, e, k: (s + 32 * c + e) / (s + 32 * c / k + e)):
        return "The exchange is in the steps of both here: with whom does a single rank exchange?"
    if any(are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e * n(k))) for n in (lambda k: k, lambda k: k - 1)):  # noqa: B023
        return "`exchange` is all that the exchange adds to a step: here it is counted several times."
    if are(lambda s, c, e, k: (s + 32 * c) / (32 * c / k + e)) or are(lambda s, c, e, k: 32 * c / (s + 32 * c / k + e)):
        return "The start of the operations is in one of the two steps only. Which of them does without it?"
    yield (
        are(lambda s, c, e, k: s + 32 * c - (s + 32 * c / k + e)),
        "This is a difference in time. A speedup is a ratio.",
    )
    yield (
        are(lambda s, c, e, k: s + 32 * c / k + e),
        "This is the step of several ranks alone. Against what is it faster?",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e) / k),
        "Divided by the ranks, this is the efficiency.",
    )
    yield (
        are(lambda s, c, e, k: s + 32 * c / (s + 32 * c / k + e)),
        "Only the computing is divided by the step of several ranks: the whole step of one rank needs brackets.",
    )
    return "Seconds of a step of one rank over seconds of one on several: start, images of a rank, exchange."


_LIKE = {
    "nothing": "The weights end as they began: no step is taken. Go through the batches, one step for each.",
    "never": "The ranks' weights are never brought together: each trains a network of its own.",
    "every step": "With k = 3 the ranks exchange at every step: that is synchronous SGD, whatever k is.",
    "early": "The mean is taken after the steps 1, 1 + k, ...: which number has the first batch, and is it a k-th one?",
    "one early": "The mean is taken one step before each k-th: which number has the first batch?",
    "not at k": "The mean is taken after all steps but each k-th: look at the condition again.",
    "at the end": "The mean is taken once, at the end. `k` says how often.",
    "first mean": "The training ends with its first mean: there are more batches.",
    "only k-th": "Of k batches one is trained on: each rank makes a step for every batch, and a mean after k of them.",
    "repeated": "Each batch is trained on k times, and then the mean is taken: a step is one batch, once.",
    "collected": "One step is made for k batches, by the mean of their gradients. Each rank makes one for each.",
    "collected sum": "One step is made for k batches, by the sum of their gradients. Each rank makes one for each.",
    "sum": "The weights are added up over the ranks, and not divided by how many there are.",
    "by k": "The sum over the ranks is divided by k. How many numbers were added?",
    "by all": "The sum over the ranks is divided by ranks and k. How many numbers were added?",
    "twice": "The mean over the ranks is divided by their number once more.",
    "gradients at k": "At every k-th step the gradients are averaged. By then the weights differ: average these.",
    "rank 0": "After every k-th step all ranks have the weights of rank 0: what the other has learned is lost.",
    "weights alone": "With momentum the weights alone are averaged: each rank goes on at a speed of its own.",
    "momentum alone": "The momentum is averaged, and the weights are not: each rank keeps its own.",
    "momentum sum": "The weights are averaged, but the momenta of the ranks are added up, and not divided by how many.",
    "momentum of rank 0": "At every mean all ranks take the momentum of rank 0: a mean is asked for there as well.",
    "momentum lost": "The momentum is set to 0 at every mean: it belongs to what a step changes, so take its mean.",
    "no momentum": "The steps are those without momentum, also where the optimizer has one: let it make the update.",
    "before": "At every k-th step the mean is taken before the update, and the ranks leave it with unequal weights.",
    "rate": "The steps are as many times too long as there are ranks: the rate is the optimizer's, and stays.",
    "uphill": "The steps go up the loss: is the sign of the gradient changed on its way to the update?",
}


@judges("09.5")
def local_sgd(path):
    yield from scripts.no_script(path)
    scripts.refuse_blanks(path)
    facts = equal_ranks.facts(path)
    if "local_sgd" in str((facts["error"] or {}).get("says")) and not facts["error"]["line"]:
        return "The script has no function `local_sgd` any more. What it is called, and its arguments, must stay."
    yield from scripts.stops(facts, "On 2 ranks")
    cases = facts["cases"]
    yield any(case["moved_frozen"] for case in cases), "A layer that is not to be trained has changed."
    wrong = [case for case in cases if case["like"] != ["right"]]
    if not wrong:
        yield (
            any(case["ahead"] == equal_ranks.STEPS for case in cases),
            "The weights are right, but all batches are taken before the first step: take one, make its step, take the "
            "next. The script times each of them until the next one is taken.",
        )
        return None
    for mistake, hint in _LIKE.items():
        if all(mistake in case["like"] for case in wrong):
            return hint
    first = wrong[0]
    momentum = f" and momentum {first['momentum']}" if first["momentum"] else ""
    after = "are equal" if first["equal"] else "differ"
    return (
        f"With k = {first['k']}{momentum} the weights are not those of local SGD; those of the two ranks {after} after "
        "the last step. One step: gradient of this rank's batch, update; after every k-th: the mean."
    )


@judges("09.7")
def exchanges(count, size, parameters):
    whole = 4 * parameters
    if float(count) != 4:
        yield float(count) == 512, "That many with k = 1. How often do 128 steps fit into 512?"
        yield float(count) == 128, "This is k: so many steps lie between two exchanges."
        yield float(count) == 384, "512 - 128: but every 128th step is one with an exchange."
        return "One exchange after every k-th of 512 steps: how many is that?"
    yield close(size, 4 * whole), None
    yield close(size, whole), "These are the bytes of one exchange. How many are there?"
    yield close(size, 4 * parameters / 4), "These are the weights of the network, as a number. How many bytes has each?"
    yield close(size, 512 * whole), "So many bytes with k = 1, where all 512 steps exchange."
    yield any(close(size, 4 * whole / unit) for unit in (1e6, 2**20)), "Give the bytes, not megabytes."
    return "The exchanges are right. Each is of all weights, and a float32 has 4 bytes."
