"""A network of one hidden layer on the bundled digits, in NumPy: real training runs, in milliseconds.

All functions take several runs at once: weights of shape (..., SIZE), one row for each run or worker.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax
from threadpoolctl import ThreadpoolController

HIDDEN = 32
SHAPES = ((64, HIDDEN), (1, HIDDEN), (HIDDEN, 10), (1, 10))  # weights and biases of two layers
ENDS = np.cumsum([rows * columns for rows, columns in SHAPES])
SIZE = int(ENDS[-1])
TRAIN = 1280  # images
PARTS = {"train": slice(TRAIN), "validation": slice(TRAIN, 1530), "test": slice(1530, None)}

# From here on NumPy computes in one thread: for matrices of this size the threads of its library take longer to meet
# than to multiply, up to 20 times on a busy machine.
ThreadpoolController().limit(limits=1, user_api="blas")


class Digits(NamedTuple):
    """Digits: images, shape (N, 64), from 0 to 1; labels, shape (N,)."""

    images: np.ndarray
    labels: np.ndarray


@cache
def digits(part):
    """One of PARTS of the 1797 digits, which are in a fixed random order: to train on, to choose by, for the result."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))[PARTS[part]]
    return Digits((found.data[order] / 16).astype(np.float32), found.target[order])


def begin(seed):
    """Random weights, shape (SIZE,): normal, of variance 1 / inputs; biases 0."""
    random = np.random.default_rng(seed)
    layers = [random.normal(0, rows**-0.5, (rows, columns)) * (rows > 1) for rows, columns in SHAPES]
    return np.concatenate([layer.ravel() for layer in layers]).astype(np.float32)


def layers(weights):
    """The weights as matrices, shapes (..., rows, columns)."""
    parts = np.split(weights, ENDS[:-1], axis=-1)
    return [part.reshape(*weights.shape[:-1], *shape) for part, shape in zip(parts, SHAPES, strict=True)]


def _forward(weights, images):
    first, bias, second, last = layers(weights)
    hidden = np.tanh(images @ first + bias)
    return hidden, hidden @ second + last


def gradient(weights, images, labels):
    """Gradient of the mean cross entropy, shape (..., SIZE); images (..., N, 64), labels (..., N)."""
    hidden, scores = _forward(weights, images)
    of_scores = (softmax(scores, axis=-1) - np.eye(10, dtype=scores.dtype)[labels]) / labels.shape[-1]
    back = (of_scores @ layers(weights)[2].swapaxes(-1, -2)) * (1 - hidden**2)
    found = [images.swapaxes(-1, -2) @ back, back.sum(-2), hidden.swapaxes(-1, -2) @ of_scores, of_scores.sum(-2)]
    return np.concatenate([part.reshape(*weights.shape[:-1], -1) for part in found], -1)


def loss(weights, part):
    """Mean cross entropy over Digits, in nats, shape (...)."""
    logarithms = log_softmax(_forward(weights, part.images)[1].astype(np.float64), axis=-1)
    return -(logarithms * np.eye(10)[part.labels]).sum(-1).mean(-1)


def accuracy(weights, part):
    """Share of the images of Digits that are recognised, shape (...)."""
    return (_forward(weights, part.images)[1].argmax(-1) == part.labels).mean(-1)


def batches(size, seed, numbers=TRAIN):
    """Numbers of one batch after the other, without end: each epoch in a new order, without what fills no batch.

    numbers: of the images to draw from, or how many these are
    """
    random = np.random.default_rng(seed)
    while True:
        order = random.permutation(numbers)
        for first in range(0, len(order) - size + 1, size):
            yield order[first : first + size]
