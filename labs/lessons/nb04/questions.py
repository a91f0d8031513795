"""Judges of 04_batch_size_and_learning_rate."""

import math
from functools import cache

from labs.checks.judging import judges
from labs.checks.reading import close, near, no_evidence


@cache
def _parts():
    from labs import models

    return models.memory(models.network("ResNet50V2", 32, 10), 1, optimizer_slots=1)


@judges("04.1")
def border(batch):
    parts = _parts()
    weights, gradients, optimizer, activations = (
        parts[part] for part in ("weights", "gradients", "optimizer", "activations")
    )
    rest = weights + gradients + optimizer
    batch = float(batch)
    yield close(batch, rest / activations) or batch == math.ceil(rest / activations), None
    yield near(batch, weights / activations), "Weights alone are not the rest: which parts are there once, too?"
    yield near(batch, (weights + gradients) / activations), "What the optimizer keeps is there as well."
    yield near(batch, (rest + activations) / activations, 1e-3), "The activations are no part of the rest."
    yield (
        near(batch, activations / rest),
        "Upside down: this is which share of the rest the activations of one image are.",
    )
    yield near(batch, rest), "These are the bytes of the three parts. How many images have activations of that size?"
    yield (
        near(batch, rest / activations / 3),
        "This is the mean of the three parts. They are in memory at once: add them.",
    )
    return "The bytes of the other three parts, divided by the bytes of the activations of one image."


@judges("04.5")
def bisect(function):
    if near(function(64, 128), 96, 0):
        yield near(function(96, 128), 112, 0) and near(function(64, 96), 80, 0), None
        return "Right for one pair of sizes, wrong for another: use both arguments."
    yield float(function(64, 128)) in (64, 128), "This size has been tried already. Which size in between tells most?"
    yield (
        float(function(64, 128)) == 65,
        "One by one finds the border too, with up to 63 trials. Which size halves the gap?",
    )
    yield float(function(64, 128)) == 256, "Larger than a size that already failed: it will fail as well."
    return "Take the size in the middle of the largest that fits and the smallest that does not."


judges("04.4")(no_evidence)


@judges("04.6")
def linear_rule(batch, rate):
    yield batch == 256, "256 is the local batch. With MirroredStrategy you pass the images of a step over all workers."
    yield batch == 64, "The local batch stays 256: with more workers, a step takes more images, not smaller shares."
    yield batch != 1024, "Global batch = local batch x workers."
    yield near(rate, 0.01), "The rate of one worker: the linear rule multiplies it by the same factor as the batch."
    yield near(rate, 0.02), "That is the square-root rule. The course uses the linear one (Goyal et al. 2017)."
    if near(rate, 0.0025):
        return "Divided instead of multiplied: a larger batch gives a less noisy gradient, so the step may be longer."
    yield not near(rate, 0.04), "Rate = rate of one worker x number of workers."


@judges("04.7")
def last_batch(steps, last):
    yield (steps, last) == (6, 848) or steps == 6, "6 full batches are 49,152 images. Where do the others go?"
    yield steps != 7, "Divide 50,000 by 8192 and round up: a rest needs a step too."
    yield last == 8192, "7 x 8192 would be 57,344 images: more than there are."
    yield last != 848, "The images that 6 full batches leave over."
