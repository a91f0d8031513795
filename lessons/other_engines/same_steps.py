"""20 steps of one Keras model on one engine: `python -m lessons.other_engines.same_steps OPTIONS`, in each rank.

OPTIONS: JSON, the arguments of `main`. engine: single, mirrored, horovod or jax; cases: a list.

All engines begin with the same weights and take the same batches, in float32 and without dropout. The weights after
each case are written beside the run's log, as NAME.npz: a vector for each. The cases:

plain       the loss takes the last layer's scores
order1 ...  the images of each batch in another order
half        one worker that takes its half of each batch, and hears nothing of the other one
softmax     the last layer ends in a softmax, and the loss takes its probabilities
batch_norm  a batch normalisation behind the first layer

With engine jax, KERAS_BACKEND=jax must be in the environment: Keras chooses its backend when it is imported.
"""

import contextlib
import json
import os
import sys

from labs import data, devices, jobs  # import this first: it sets up TensorFlow

# isort: split
import keras
import numpy as np

STEPS, BATCH, RATE, SURE = 20, 64, 0.003, 20


def network(case):
    """Two convolutions and a dense layer, with weights that NumPy drew."""
    layers = [keras.Input((32, 32, 3)), keras.layers.Rescaling(1 / 255)]
    layers += [keras.layers.Conv2D(filters, 3, 2, "same", activation="tanh") for filters in (16, 32)]
    if case == "batch_norm":
        layers.insert(3, keras.layers.BatchNormalization())
    last = keras.layers.Dense(10, activation="softmax" if case == "softmax" else None)
    model = keras.Sequential([*layers, keras.layers.Flatten(), last])
    random = np.random.default_rng(0)
    for weight in model.trainable_weights:
        if len(weight.shape) > 1:
            weight.assign(random.normal(0, np.prod(weight.shape[:-1]) ** -0.5, weight.shape).astype("float32"))
    last.kernel.assign(SURE * last.kernel)  # it begins sure of itself, and often wrong
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=case != "softmax")
    return model, loss


def batches(case):
    """(images (20, 64, 32, 32, 3), labels (20, 64)) of all steps."""
    dataset = data.load("digits")
    rows = np.random.default_rng(0).permutation(len(dataset.labels))[: STEPS * BATCH].reshape(STEPS, BATCH)
    if case.startswith("order"):
        rows = np.random.default_rng(int(case[-1])).permuted(rows, axis=1)
    return dataset.images[rows], dataset.labels[rows]


def main(engine, workers, cases):
    rank, wrap, callbacks, scope = 0, lambda optimizer: optimizer, [], contextlib.nullcontext
    if engine == "horovod":
        from labs import hvd

        hvd.init()
        devices.pin(hvd.local_rank(), hvd.local_size())
        rank, wrap = hvd.rank(), hvd.DistributedOptimizer
        callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
    elif engine == "jax":
        names = devices.workers_on_jax(workers)
        if workers > 1:
            keras.distribution.set_distribution(keras.distribution.DataParallel(devices=names))
    else:
        names = devices.workers(workers, kind="cpu")
        if engine == "mirrored":
            import tensorflow as tf

            scope = tf.distribute.MirroredStrategy(devices=names).scope
    found = {}
    for case in cases:
        images, labels = batches(case)
        shares = 2 if case == "half" else workers if engine == "horovod" else 1
        own = slice(rank * BATCH // shares, (rank + 1) * BATCH // shares)  # of one process; Keras divides it further
        images, labels = images[:, own], labels[:, own]
        with scope():
            model, loss = network(case)
            optimizer = wrap(keras.optimizers.SGD(RATE, momentum=0.9))
            model.compile(optimizer=optimizer, loss=loss, jit_compile=engine == "jax")
        arrays = images.reshape(-1, *images.shape[2:]), labels.reshape(-1)
        model.fit(*arrays, batch_size=images.shape[1], shuffle=False, verbose=0, callbacks=callbacks)
        found[case] = np.concatenate([keras.ops.convert_to_numpy(weight).ravel() for weight in model.trainable_weights])
    if rank == 0:
        np.savez(jobs.folder() / f"{os.environ['LABS_RUN']}.npz", **found)
        print(f"{engine}, {workers} workers: {STEPS} steps of {BATCH} images; {', '.join(found)}", flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
