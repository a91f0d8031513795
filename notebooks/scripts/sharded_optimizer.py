"""SGD with momentum whose state is sharded over the ranks (ZeRO-1): each keeps the velocity of its share of the weights.

Trains a small network. Then one process trains it with Keras' own optimizer on the whole batches, and the script
compares both.
"""

import argparse

from labs import devices, hvd, training  # import this first: it sets up TensorFlow
from lessons.faster_steps import by_hand

import keras
import numpy as np
import tensorflow as tf


def flat(tensors, length):
    """All values of some tensors in one vector, filled with zeros up to this length."""
    values = tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], 0)
    return tf.pad(values, [[0, length - values.shape[0]]])


class ShardedSGD:
    """v <- momentum * v - rate * g and w <- w + v, where g is the mean of all ranks' gradients.

    A rank keeps the part of v for its share of the weights, and updates this share. The others send it the rest.
    """

    def __init__(self, weights, rate, momentum):
        """weights: the trained variables, a list, equal on all ranks."""
        self.weights, self.rate, self.momentum = weights, rate, momentum
        # Keep the number of values in each weight, the length of a share (rounded up), and v for this rank's share.
        ...  # your code here

    def step(self, gradients):
        """One update of all weights. gradients: this rank's own, a list with one for each of the weights."""
        # 1. Reduce-scatter: the mean gradient of this rank's share.
        # 2. The new v and the new weights of this rank's share.
        # 3. All-gather: the new weights of all shares. Assign to each weight its own values, in its shape.
        ...  # your code here


class WholeSGD:
    """The same without shards: every rank keeps the whole velocity, and averages the whole gradient."""

    def __init__(self, weights, rate, momentum):
        self.weights, self.optimizer = weights, keras.optimizers.SGD(rate, momentum)
        self.optimizer.build(weights)

    def step(self, gradients):
        self.optimizer.apply(hvd.grouped_allreduce(gradients), self.weights)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true", help="without shards")
    by_hand.arguments(parser)
    args = training.parse(parser)
    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    model = by_hand.network(args.model, args.hidden, seed=hvd.rank())  # other weights on each rank
    for variable in model.variables:
        variable.assign(hvd.broadcast(variable))
    start = model.get_weights()

    gradient = by_hand.gradient_of(model)
    shares = list(by_hand.batches(args, hvd.rank(), hvd.size()))
    gradient(*shares[0])  # traced before memory is measured
    usage = by_hand.Usage(hvd)
    optimizer = (WholeSGD if args.whole else ShardedSGD)(model.trainable_variables, by_hand.RATE, by_hand.MOMENTUM)
    for images, labels in shares:
        optimizer.step(gradient(images, labels))
    usage.say(args.steps)
    by_hand.compare(model, start, args, hvd)


if __name__ == "__main__":
    main()
