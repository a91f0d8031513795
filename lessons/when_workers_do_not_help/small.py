"""A network of one hidden layer on the bundled digits, in NumPy: real training runs, in milliseconds.

All functions take several runs at once: weights of shape (..., SIZE), one row for each run or worker.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

HIDDEN = 32
SHAPES = ((64, HIDDEN), (1, HIDDEN), (HIDDEN, 10), (1, 10))  # weights and biases of two layers
SIZE = sum(rows * columns for rows, columns in SHAPES)
TRAIN, VALIDATION = 1280, 250  # images; the other 267 are for the test

# For matrices of this size the threads of NumPy's library take longer to meet than to multiply.
one_thread = ThreadpoolController().wrap(limits=1, user_api="blas")


class DigitsPart(NamedTuple):
    """Digits: images, shape (N, 64), from 0 to 1; labels, shape (N,)."""

    images: np.ndarray
    labels: np.ndarray


class Digits(NamedTuple):
    """The digits, divided once for all experiments."""

    train: DigitsPart
    validation: DigitsPart
    test: DigitsPart


@cache
def digits():
    """The 1797 digits in a fixed random order: 1280 to train on, 250 to choose by, 267 for the result."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    images, labels = (found.data[order] / 16).astype(np.float32), found.target[order]
    ends = (0, TRAIN, TRAIN + VALIDATION, len(labels))
    return Digits(*(DigitsPart(images[a:b], labels[a:b]) for a, b in zip(ends, ends[1:], strict=False)))


def begin(seed):
    """Random weights, shape (SIZE,): normal, of variance 1 / inputs; biases 0."""
    random = np.random.default_rng(seed)
    layers = [random.normal(0, rows**-0.5, (rows, columns)) * (rows > 1) for rows, columns in SHAPES]
    return np.concatenate([layer.ravel() for layer in layers]).astype(np.float32)


def _layers(weights):
    """The weights as matrices, shapes (..., rows, columns): views, so changing them changes `weights`."""
    found, start = [], 0
    for rows, columns in SHAPES:
        end = start + rows * columns
        found.append(weights[..., start:end].reshape(*weights.shape[:-1], rows, columns))
        start = end
    return found


def _forward(weights, images):
    first, bias, second, last = _layers(weights)
    hidden = np.tanh(images @ first + bias)
    return hidden, hidden @ second + last


def gradient(weights, images, labels):
    """Gradient of the mean cross entropy, shape (..., SIZE); images (..., N, 64), labels (..., N)."""
    hidden, scores = _forward(weights, images)
    scores -= scores.max(-1, keepdims=True)
    shares = np.exp(scores)
    shares /= shares.sum(-1, keepdims=True)
    np.put_along_axis(shares, labels[..., None], np.take_along_axis(shares, labels[..., None], -1) - 1, -1)
    shares /= labels.shape[-1]
    back = (shares @ _layers(weights)[2].swapaxes(-1, -2)) * (1 - hidden**2)
    found = [images.swapaxes(-1, -2) @ back, back.sum(-2), hidden.swapaxes(-1, -2) @ shares, shares.sum(-2)]
    return np.concatenate([part.reshape(*weights.shape[:-1], -1) for part in found], -1)


def loss(weights, part):
    """Mean cross entropy over a DigitsPart, in nats, shape (...)."""
    scores = _forward(weights, part.images)[1].astype(np.float64)
    scores -= scores.max(-1, keepdims=True)
    right = np.take_along_axis(scores, np.broadcast_to(part.labels, scores.shape[:-1])[..., None], -1)[..., 0]
    return (np.log(np.exp(scores).sum(-1)) - right).mean(-1)


def accuracy(weights, part):
    """Share of a DigitsPart's images that are recognised, shape (...)."""
    return (_forward(weights, part.images)[1].argmax(-1) == part.labels).mean(-1)


def batches(size, seed, numbers=None):
    """Numbers of one batch after the other, without end: each epoch in a new order, without what fills no batch.

    numbers: of the images to draw from (default: all training images).
    """
    random, numbers = np.random.default_rng(seed), np.arange(TRAIN) if numbers is None else np.asarray(numbers)
    while True:
        order = random.permutation(numbers)
        for first in range(0, len(order) - size + 1, size):
            yield order[first : first + size]
