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
    yield near(batch, weights / activations), "The rest is more than the weights: which other parts do not grow?"
    yield near(batch, (weights + gradients) / activations), "The optimizer keeps something as well."
    yield near(batch, (rest + activations) / activations, 1e-3), "The activations are not part of the rest."
    yield (near(batch, activations / rest), "Upside down: this divides the activations of one image by the rest.")
    yield (near(batch, rest), "These are the bytes of the three parts. How many images' activations are that large?")
    yield (
        near(batch, rest / activations / 3),
        "This is the mean of the three parts. They are in memory at once: add them.",
    )
    return "Divide the bytes of the other three parts by the bytes of the activations of one image."


@judges("04.5")
def bisect(function):
    if near(function(64, 128), 96, 0):
        yield near(function(96, 128), 112, 0) and near(function(64, 96), 80, 0), None
        return "Right for one pair of sizes, wrong for another: use both arguments."
    yield (
        float(function(64, 128)) in (64, 128),
        "This size has been tried already. Which one in between tells you most?",
    )
    yield (
        float(function(64, 128)) == 65,
        "Going up one by one finds the limit too, but takes up to 63 trials. Which size halves the gap?",
    )
    yield float(function(64, 128)) == 256, "This is larger than a size that already failed: it will fail as well."
    return "Take the size halfway between the largest that fits and the smallest that does not."


judges("04.4")(no_evidence)


@judges("04.6")
def linear_rule(batch, rate):
    yield batch == 256, "256 is the local batch. With MirroredStrategy you pass the number of images over all workers."
    yield batch == 64, "The local batch stays 256: with more workers, a step takes more images, not smaller shares."
    yield batch != 1024, "Global batch = local batch x workers."
    yield near(rate, 0.01), "This is the rate of one worker. By which factor did the batch grow?"
    yield near(rate, 0.02), "That is the square-root rule. The course uses the linear one (Goyal et al. 2017)."
    if near(rate, 0.0025):
        return "You divided, but must multiply: a larger batch gives a less noisy gradient, so a step may be longer."
    yield not near(rate, 0.04), "Rate = rate of one worker x number of workers."


@judges("04.7")
def last_batch(steps, last):
    yield (steps, last) == (6, 848) or steps == 6, "6 full batches are 49,152 images. Where do the others go?"
    yield steps != 7, "Divide 50,000 by 8192 and round up: the remaining images need a step, too."
    yield last == 8192, "7 x 8192 would be 57,344 images: more than there are."
    yield last != 848, "How many images do 6 full batches leave over?"
