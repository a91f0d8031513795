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
_ARROWS = ((0.37, 0.63), (1.37, 1.63), (2.36, 2.44), (2.56, 2.64), (3.37, 3.63))  # from column to column


def step():
    """One step of SGD with rate 0.1 on 4 replicas, from left to right: what each one has, and what is exchanged.

    W are the three weights of a linear function of 16 samples; the loss of a sample is half of its squared error, 1/16
    of it counts, so the sum of the replicas' gradients is that of the mean over all. Coloured: different on each
    replica; white: the same on all.
    """
    random, weights = np.random.default_rng(_SEED), np.array([1.0, 2.0, 3.0])
    x, noise = random.normal(size=(16, 3)), random.normal(size=16)
    error = x @ (weights - [0.5, 2.5, 2.0]) + noise
    gradients = (error[:, None] * x / 16).reshape(4, 4, 3).sum(axis=1)
    total = gradients.sum(axis=0)
    start, summed, end, *own = map(_numbers, (weights, total, weights - 0.1 * total, *gradients))
    figure, (axis,) = canvas(width=10.6, height=3.4, left=0.9, right=0.1, bottom=0.25, top=0.65)
    axis.set_axis_off()
    axis.set(xlim=(-0.45, 4.45), ylim=(3.5, -0.5))
    sentences = []
    for row, gradient in enumerate(own):
        samples = f"samples {4 * row} to {4 * row + 3}"
        axis.text(-0.47, row, f"replica {row}", ha="right", va="center", fontsize=9)
        for column, text in enumerate((start, samples, gradient, summed, end)):
            look = {"fc": COLOURS[row], "alpha": 0.3} if column in (1, 2) else {"fc": "white"}
            box = {"boxstyle": "round,pad=0.45", "ec": "0.3"} | look
            axis.text(column, row, text, ha="center", va="center", fontsize=9, family="monospace", bbox=box)
        for begin, to in _ARROWS:
            look = {"arrowstyle": "->", "color": "0.3", "shrinkA": 0, "shrinkB": 0}
            axis.annotate("", (to, row), (begin, row), arrowprops=look)
        sentences.append(f"Replica {row}: {samples}, gradient {gradient}.")
    bar = {"boxstyle": "round,pad=0.02", "fc": "0.9", "ec": "0.3"}
    axis.add_patch(FancyBboxPatch((2.46, -0.4), 0.08, 3.8, **bar))
    axis.text(2.5, 1.5, "all-reduce", rotation=90, ha="center", va="center", fontsize=9)
    for column, head in enumerate(_HEADS):
        axis.text(column, -0.62, head, ha="center", va="bottom", fontsize=9)
    same = f"All replicas begin with W = {start}, get the sum {summed}, and end with W = {end}."
    return done(figure, f"One step on 4 replicas. {' '.join(sentences)} {same}")


def _numbers(values):
    return " ".join(f"{value:.2f}" for value in values)
