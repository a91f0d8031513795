"""One training step as the measurements take it: compiled once, for batches of any size, without Keras' loop."""

import timeit
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any


def compiled(model: Any, optimizer: Any) -> Callable:
    """A function (images, labels) -> loss that trains a Keras model once, with an optimizer of Keras.

    images: uint8, N x 32 x 32 x 3; labels: int64, (N,).
    """
    import keras
    import tensorflow as tf

    loss, weights = keras.losses.SparseCategoricalCrossentropy(), model.trainable_variables
    optimizer.build(weights)

    # The batch dimension is left open, so that one trace serves all batch sizes.
    @tf.function(input_signature=[tf.TensorSpec([None, 32, 32, 3], tf.uint8), tf.TensorSpec([None], tf.int64)])
    def step(images, labels):
        with tf.GradientTape() as tape:
            value: Any = loss(labels, model(images, training=True))
        optimizer.apply(tape.gradient(value, weights), weights)
        return value

    return step


def timed(function: Callable, times: int) -> list[float]:
    """Seconds of each of several calls, in which Python collects its garbage as in a training."""
    return timeit.repeat(function, "gc.enable()", repeat=times, number=1)


def over_ranks(steps: Sequence[list[float] | None]) -> list[float]:
    """Seconds of each step, averaged over the ranks that took it; steps: seconds of each rank, None for one at rest."""
    return [fmean(step) for step in zip(*filter(None, steps), strict=True)]
