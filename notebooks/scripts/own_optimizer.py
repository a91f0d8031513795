"""Your own DistributedOptimizer, beside the kit's: both train one network on all ranks, from the same weights.

The network has a frozen layer, and one that is used twice. Rank 0 prints whether both are equal. Without `begin_equal`
the kit's does not train: it refuses ranks that begin with different weights.
"""

import argparse

from labs import data, devices, hvd, ranks, training  # import this first: it sets up TensorFlow

import keras
import numpy as np
import tensorflow as tf

OPTIMIZERS = {"sgd": lambda: keras.optimizers.SGD(0.02, momentum=0.9), "adam": lambda: keras.optimizers.Adam(0.002)}


def begin_equal(model):
    """Give all weights of `model` the values that they have on rank 0."""
    ...  # your code here


def distributed(optimizer):
    """An optimizer like this one (of keras.optimizers, not used yet), whose `apply` averages gradients over the ranks.

    Its `apply(gradients, variables)` gets two lists of equal length, and updates the variables.
    """

    ...  # your code here


def network():
    """A network for images of 32 x 32 x 3: its first layer is frozen, its second one is used twice."""
    images = keras.Input((32, 32, 3))
    values = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(images))
    values = keras.layers.Dense(32, "relu", trainable=False)(values)
    twice = keras.layers.Dense(32, "relu")
    return keras.Model(images, keras.layers.Dense(10, "softmax")(twice(twice(values))))


def train(model, optimizer, dataset, steps, batch_size):
    """Train on this rank's share of each batch; returns its loss in each step."""
    loss, weights, losses = keras.losses.SparseCategoricalCrossentropy(), model.trainable_variables, []
    numbers = np.random.default_rng(0).permutation(len(dataset.labels))
    for step in range(steps):
        batch = np.take(numbers, range(step * batch_size, (step + 1) * batch_size), mode="wrap")
        share = np.array_split(batch, hvd.size())[hvd.rank()]
        with tf.GradientTape() as tape:
            value = loss(dataset.labels[share], model(dataset.images[share], training=True))
        optimizer.apply(tape.gradient(value, weights), weights)
        losses.append(float(value))
    return losses


def apart(model):
    """The largest difference of a trained weight between any rank and rank 0."""
    by_rank = ranks.gather([weight.numpy() for weight in model.trainable_variables], "weights")
    return max(float(np.abs(a - b).max()) for other in by_rank for a, b in zip(other, by_rank[0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=64, help="images per step, over all ranks")
    parser.add_argument("--no_begin", action="store_true", help="leave `begin_equal` out")
    args = training.parse(parser)
    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    keras.utils.set_random_seed(hvd.rank())  # each rank draws other weights
    dataset = data.load("digits", images=1024)

    mine = network()
    if not args.no_begin:
        begin_equal(mine)
    kits = keras.models.clone_model(mine)
    kits.set_weights(mine.get_weights())
    before = apart(mine)
    make = OPTIMIZERS[args.optimizer]
    losses = train(mine, distributed(make()), dataset, args.steps, args.batch_size)
    after = apart(mine)
    print(f"rank {hvd.rank()}: loss {losses[0]:.3f} in the first step, {losses[-1]:.3f} in the last", flush=True)
    if hvd.rank() == 0:
        print(
            f"largest difference between the ranks' weights: {before:.6f} before, {after:.6f} after {args.steps} steps",
            flush=True,
        )
    if not args.no_begin:
        train(kits, hvd.DistributedOptimizer(make()), dataset, args.steps, args.batch_size)
        to_kit = max(float(np.abs(a - b).max()) for a, b in zip(mine.get_weights(), kits.get_weights()))
        if hvd.rank() == 0:
            print(f"largest difference from the kit's optimizer: {to_kit:.1e}", flush=True)


if __name__ == "__main__":
    main()
