"""A training that goes on where its last job ended: after each epoch, rank 0 keeps all that the next job needs.

--epochs counts those of all jobs together. --stop_after ends a job early, as its time limit would.
"""

import argparse
from pathlib import Path

from labs import data, devices, hvd, ranks, training  # import this first: it sets up TensorFlow

import keras
import numpy as np
import tensorflow as tf

HELD_BACK = 256  # images that nobody trains on


def write(path, arrays, epochs):
    """Write a list of arrays and the number of finished epochs into the file `path`, array after array."""
    with open(path, "wb") as file:
        np.savez(file, *arrays, epochs=epochs)


def read(path):
    """(list of arrays, number of finished epochs) that `write` has written."""
    with np.load(path) as kept:
        return [kept[f"arr_{number}"] for number in range(len(kept.files) - 1)], int(kept["epochs"])


def save(path, model, epochs):
    """Keep in the one file `path` what a training needs to go on after `epochs` epochs.

    All ranks call it; only rank 0 writes. model: compiled; its optimizer, model.optimizer, has been used.
    A job may end at any moment: whoever opens `path` must find the last checkpoint or the one before it, never a part.
    `one.replace(other)` gives the file `one` the name `other` in a single step, also where `other` is there already.
    """
    ...  # your code here


def resume(path, model):
    """Give `model` and its optimizer, on all ranks, the state that `save` has kept; returns the epochs that are done.

    Without a checkpoint all ranks get the state of rank 0, and 0 is returned, on all of them.
    Ranks may run on several nodes: only rank 0 can count on finding the file. model: compiled; its optimizer is built.
    """
    ...  # your code here


def share(dataset, args, first):
    """This rank's batches: the first pass over them is epoch number `first` (counted from 0), the next the one after."""
    numbers = data.order(dataset, args.batch_size, seed=args.seed, first=first).shard(hvd.size(), hvd.rank())
    return data.batches(dataset, numbers, args.batch_size // hvd.size())


def step(model, images, labels):
    """One step of SGD with momentum, with gradients averaged over all ranks."""
    weights = model.trainable_variables
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(labels, model(images, training=True)))
    model.optimizer.apply(hvd.grouped_allreduce(tape.gradient(loss, weights)), weights)


def accuracy(model, held_back):
    """Share of right predictions on this rank's part of the images held back; all ranks have equally many of them."""
    mine = range(hvd.rank(), len(held_back.labels) // hvd.size() * hvd.size(), hvd.size())
    scores = model(held_back.images[mine], training=False)
    return float(np.mean(np.argmax(scores, axis=1) == held_back.labels[mine]))


def train(model, dataset, held_back, path, args):
    """Train until args.epochs epochs are done, those of earlier jobs included; returns the accuracy after each of its own.

    After each epoch all ranks validate, and a checkpoint is kept. args.stop_after: epochs of this job at most, or None.
    """
    means, done = [], resume(path, model)
    # The numbers of the epochs that are left, counted from 0; and this rank's batches in them.
    left = ...  # your code here
    batches = ...  # your code here
    for epoch in left:
        for images, labels in batches:
            step(model, images, labels)
        mine = accuracy(model, held_back)
        # The mean accuracy of all ranks. And now that the epoch is over: save.
        mean = ...  # your code here
        means.append(float(mean))
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1} of {args.epochs}: accuracy {means[-1]:.3f}", flush=True)
        if len(means) == args.stop_after:
            break
    return means


def network():
    """A dense network for images of 32 x 32 x 3, compiled; its optimizer is built."""
    layers = [keras.Input((32, 32, 3)), keras.layers.Rescaling(1 / 255), keras.layers.Flatten()]
    model = keras.Sequential([*layers, keras.layers.Dense(64, "relu"), keras.layers.Dense(10, "softmax")])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4, help="of all jobs together")
    parser.add_argument("--stop_after", type=int, help="end after so many epochs of this job, as at a time limit")
    parser.add_argument("--batch_size", type=int, default=64, help="images per step, over all ranks")
    parser.add_argument("--checkpoint", default="checkpoint.npz", help="name of the file, in the folder of the runs")
    training.arguments(parser)
    args = training.parse(parser)
    hvd.init()
    worker = devices.pin(hvd.local_rank(), hvd.local_size())
    print(f"Rank {hvd.rank()} of {hvd.size()} on {worker}", flush=True)
    keras.utils.set_random_seed(args.seed + hvd.rank())  # other weights on each rank, until `resume`
    every = data.load(args.dataset, images=args.images)
    dataset, held_back = [
        data.Dataset(every.name, every.images[part], every.labels[part], every.classes)
        for part in (slice(-HELD_BACK), slice(-HELD_BACK, None))
    ]

    model = network()
    path = Path(args.runs, args.checkpoint)
    train(model, dataset, held_back, path, args)
    weights = ranks.compare_weights(model)
    if hvd.rank() == 0:
        size = path.stat().st_size
        print(f"weights identical on all ranks: {weights['identical']}; SHA-256 {weights['sha256']}")
        print(f"checkpoint: {size:,} bytes, {size / (4 * model.count_params()):.3f} times the weights", flush=True)


if __name__ == "__main__":
    main()
