"""Picture of notebook 03: one step of MirroredStrategy. Made as those of lessons.basic_concepts.pictures."""

import numpy as np
from matplotlib.patches import FancyBboxPatch

from labs.show.figure import COLOURS
from lessons.canvas import canvas, done

_SEED = 80  # of those with which the numbers add up as they are shown, to two digits
_HEADS = (
    "1  scope: a copy of W\non each device",
    "2  its own share\nof the batch",
    "3  its own gradient,\nof its share",
    "4  all-reduce: the sum,\non each device",
    "5  the same step:\nW - 0.1 x sum",
)


def step():
    """One step of SGD with rate 0.1 on 4 replicas, from left to right: what each one has, and what is exchanged.

    W are the three weights of a linear function of 16 samples; the loss of a sample is half of its squared error, 1/16
    of it counts, so the sum of the replicas' gradients is that of the mean over all. Coloured: different on each
    replica; white: the same on all.
    """
    random, weights = np.random.default_rng(_SEED), np.array([1.0, 2.0, 3.0])
    x, noise = random.normal(size=(16, 3)), random.normal(size=16)
    shares, error = np.split(np.arange(16), 4), x @ (weights - [0.5, 2.5, 2.0]) + noise
    gradients = [error[share] @ x[share] / 16 for share in shares]
    total = sum(gradients)
    start, summed, end = map(_numbers, (weights, total, weights - 0.1 * total))
    figure, (axis,) = canvas(width=10.6, height=3.4, left=0.9, right=0.1, bottom=0.25, top=0.65)
    axis.set_axis_off()
    axis.set(xlim=(-0.45, 4.45), ylim=(3.5, -0.5))
    sentences = []
    for row, (share, gradient) in enumerate(zip(shares, gradients, strict=True)):
        samples, own = f"samples {share[0]} to {share[-1]}", _numbers(gradient)
        axis.text(-0.47, row, f"replica {row}", ha="right", va="center", fontsize=9)
        for column, text in enumerate((start, samples, own, summed, end)):
            look = {"fc": COLOURS[row], "alpha": 0.3} if text in (samples, own) else {"fc": "white"}
            box = {"boxstyle": "round,pad=0.45", "ec": "0.3"} | look
            axis.text(column, row, text, ha="center", va="center", fontsize=9, family="monospace", bbox=box)
        for column in (0, 1, 3):
            _arrow(axis, column + 0.37, column + 0.63, row, "0.3")
        _arrow(axis, 2.36, 2.44, row, COLOURS[row])  # into the all-reduce, and out of it
        _arrow(axis, 2.56, 2.64, row, "0.3")
        sentences.append(f"Replica {row}: {samples}, gradient {own}.")
    bar = {"boxstyle": "round,pad=0.02", "fc": "0.9", "ec": "0.3"}
    axis.add_patch(FancyBboxPatch((2.46, -0.4), 0.08, 3.8, **bar))
    axis.text(2.5, 1.5, "all-reduce", rotation=90, ha="center", va="center", fontsize=9)
    for column, head in enumerate(_HEADS):
        axis.text(column, -0.62, head, ha="center", va="bottom", fontsize=9)
    same = f"All replicas begin with W = {start}, get the sum {summed}, and end with W = {end}."
    return done(figure, f"One step on 4 replicas. {' '.join(sentences)} {same}")


def _numbers(values):
    return " ".join(f"{value:.2f}" for value in values)


def _arrow(axis, begin, end, row, colour):
    """A horizontal arrow in this row."""
    axis.annotate(
        "", (end, row), (begin, row), arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": 0, "shrinkB": 0}
    )
