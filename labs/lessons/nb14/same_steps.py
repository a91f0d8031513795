"""20 steps of one Keras model on one engine: `python -m labs.lessons.nb14.same_steps OPTIONS`, in each rank.

All engines begin with the same weights and take the same batches, in float32, without dropout and without batch
normalisation. The weights afterwards are written beside the run's log, as NAME.npy, in one row for each training.

With --engine jax, KERAS_BACKEND=jax must be in the environment: Keras chooses its backend when it is imported.
"""

import argparse
import contextlib
import os
from pathlib import Path

from labs import data, devices  # first: it silences TensorFlow's start-up messages

import keras
import numpy as np

STEPS, BATCH, RATE = 20, 64, 0.05
ENGINES = ("single", "mirrored", "horovod", "jax")


def network():
    """Two convolutions and a dense layer, with weights that NumPy drew."""
    layers = [keras.Input((32, 32, 3)), keras.layers.Rescaling(1 / 255)]
    layers += [keras.layers.Conv2D(filters, 3, 2, "same", activation="relu") for filters in (16, 32)]
    model = keras.Sequential([*layers, keras.layers.Flatten(), keras.layers.Dense(10, activation="softmax")])
    random = np.random.default_rng(0)
    drawn = [random.normal(size=weight.shape).astype("float32") for weight in model.weights]
    scales = [np.prod(weight.shape[:-1]) ** -0.5 if len(weight.shape) > 1 else 0.0 for weight in model.weights]
    model.set_weights([scale * values for scale, values in zip(scales, drawn, strict=True)])
    return model


def batches(order):
    """(images (20, 64, 32, 32, 3), labels (20, 64)) of all steps; order: of the images within each batch, a seed."""
    dataset = data.load("digits")
    rows = np.random.default_rng(0).permutation(len(dataset.labels))[: STEPS * BATCH].reshape(STEPS, BATCH)
    if order:
        rows = np.random.default_rng(order).permuted(rows, axis=1)
    return dataset.images[rows], dataset.labels[rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--engine", choices=ENGINES, required=True)
    add("--workers", type=int, default=1)
    add("--orders", type=int, default=1, help="train so many times, with other orders of the images within each batch")
    add("--apart", action="store_true", help="the first worker without the others: with its own share of each batch")
    args = parser.parse_args()
    if args.workers < 1 or BATCH % args.workers:
        parser.error(f"--workers {args.workers}: a batch of {BATCH} images has no equal shares for so many.")

    rank, wrap, callbacks, scope = 0, lambda optimizer: optimizer, [], contextlib.nullcontext()
    if args.engine == "horovod":
        from labs import hvd

        hvd.init()
        devices.pin(hvd.local_rank(), hvd.local_size())
        rank, wrap = hvd.rank(), hvd.DistributedOptimizer
        callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
    elif args.engine == "jax":
        names = devices.of_jax(args.workers)
        if args.workers > 1:
            keras.distribution.set_distribution(keras.distribution.DataParallel(devices=names))
    else:
        names = devices.workers(1 if args.apart else args.workers, kind="cpu")
        if args.engine == "mirrored":
            import tensorflow as tf

            scope = tf.distribute.MirroredStrategy(devices=names).scope()
    found = []
    for order in range(args.orders):
        images, labels = batches(order)
        if args.engine == "horovod" or args.apart:  # this process takes its share of each batch; else Keras divides it
            own = slice(rank * BATCH // args.workers, (rank + 1) * BATCH // args.workers)
            images, labels = images[:, own], labels[:, own]
        with scope:
            model = network()
            optimizer = wrap(keras.optimizers.SGD(RATE, momentum=0.9))
            loss, jit = "sparse_categorical_crossentropy", args.engine == "jax"
            model.compile(optimizer=optimizer, loss=loss, jit_compile=jit)
        arrays = images.reshape(-1, *images.shape[2:]), labels.reshape(-1)
        model.fit(*arrays, batch_size=images.shape[1], shuffle=False, verbose=0, callbacks=callbacks)
        found.append(np.concatenate([weight.ravel() for weight in model.get_weights()]))
    if rank == 0:
        path = Path(os.environ.get("LABS_RUNS", "runs"), os.environ.get("LABS_RUN", args.engine) + ".npy")
        np.save(path, found)
        print(f"{args.engine}, {args.workers} workers: {STEPS} steps of {BATCH} images, {len(found)} times", flush=True)


if __name__ == "__main__":
    main()
