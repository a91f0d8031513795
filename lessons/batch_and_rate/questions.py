"""Judges of 04_batch_and_rate."""

import math
from functools import cache
from pathlib import Path

from labs.checks.judging import judges
from labs.checks.reading import close, near


@cache
def _parts():
    from labs import models
    from lessons import counts

    return counts.memory(models.network("ResNet50V2", 32, 10), 1, optimizer_slots=1)


@judges("rate.1")
def border(batch):
    parts = _parts()
    weights, gradients, optimizer, activations = (
        parts[part] for part in ("weights", "gradients", "optimizer", "activations")
    )
    rest = weights + gradients + optimizer
    batch = float(batch)
    yield close(batch, rest / activations) or batch == math.ceil(rest / activations), None
    yield (
        near(batch, weights / activations),
        "The weights are not the only part that does not grow: what are the others?",
    )
    yield near(batch, (weights + gradients) / activations), "The optimizer stores something as well."
    yield near(batch, (rest + activations) / activations, 1e-3), "The activations are not one of the other three parts."
    yield (
        near(batch, activations / rest),
        "Upside down: you divided the activations of one image by the other three parts.",
    )
    yield (
        near(batch, rest),
        "This is the size of the three parts in bytes. The activations of how many images take up as much?",
    )
    yield (
        near(batch, rest / activations / 3),
        "You used the mean of the three parts. They are in memory at the same time, so add them.",
    )
    yield True, "Divide the bytes of the other three parts by the bytes of the activations of one image."


@judges("rate.5")
def bisect(function):
    if near(function(64, 128), 96, 0):
        yield near(function(96, 128), 112, 0) and near(function(64, 96), 80, 0), None
        yield True, "This is right for one pair of sizes but wrong for another: use both arguments."
    yield (
        float(function(64, 128)) in (64, 128),
        "This size has been tried already. Which size in between tells you the most?",
    )
    yield (
        float(function(64, 128)) == 65,
        "Going up one at a time finds the limit, too, but takes up to 63 trials. Which size halves the gap?",
    )
    yield (
        float(function(64, 128)) == 256,
        "This is larger than a size that has already failed, so it will fail as well.",
    )
    yield True, "Take the size halfway between the largest that fits and the smallest that does not."


@judges("rate.4")
def line_of_the_failure(line, result):
    line = str(line).strip()
    yield (
        not result.get("evidence"),
        "The search has not run out of memory yet: give it less memory, or a higher limit.",
    )
    several = len([part for part in line.splitlines() if part.strip()])
    yield several > 1, f"Your answer has {several} lines. One line is asked for: which of them says it?"
    file = Path(result["evidence"]["file"])
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    copied = line and line in map(str.strip, lines)
    yield not copied, f"This line is not in {file}. Copy the whole line from there."
    yield (
        "Traceback" in line or line.startswith("File "),
        "That is where Python was when it happened. Look for the line that says which memory it could not get.",
    )
    yield (
        line.startswith("Hint:"),
        "This is TensorFlow's advice on how to find out more. Which line says what was missing?",
    )
    yield (
        "OOM" not in line and "RESOURCE_EXHAUSTED" not in line and "out of memory" not in line.lower(),
        "This line is in the file, but does not say that memory ran out. Look for the word OOM.",
    )
    yield (
        "shape[" not in line and any("shape[" in other and "OOM" in other for other in lines),
        "This line says that memory ran out. Another one also names the tensor: look for its shape.",
    )


@judges("rate.6")
def linear_rule(batch, rate):
    yield batch == 256, "256 is the local batch size. With MirroredStrategy you pass that of all workers together."
    yield batch == 64, "The local batch size stays at 256: more workers process more images, not smaller shares."
    yield batch != 1024, "Global batch size = local batch size x number of workers."
    yield near(rate, 0.01), "This is the learning rate for one worker. By what factor did the batch size grow?"
    yield near(rate, 0.02), "That is the square-root rule. The course uses the linear one (Goyal et al. 2017)."
    yield (
        near(rate, 0.0025),
        "You divided instead of multiplying: a larger batch gives a less noisy gradient, so steps can be larger.",
    )
    yield not near(rate, 0.04), "Learning rate = rate for one worker x number of workers."


@judges("rate.7")
def last_batch(steps, last):
    yield steps == 6, "6 full batches contain 49,152 images. Where do the others go?"
    yield steps != 7, "Divide 50,000 by 8192 and round up: the remaining images need a step, too."
    yield last == 8192, "7 x 8192 would be 57,344 images, which is more than there are."
    yield last != 848, "How many images are left over after 6 full batches?"
