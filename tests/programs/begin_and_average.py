"""Started with 2 ranks by tests/keys/test_horovod.py: with and without broadcast, average and equal global batch."""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from labs import data, devices, hvd

out, scripts = sys.argv[1:]
sys.path.insert(0, scripts)
import own_optimizer as own

hvd.init()
devices.pin(hvd.local_rank(), hvd.local_size())
dataset, found = data.load("digits", images=128), {}


def train(model, rate, batch, *, averaged=True, shared=True, epochs=4):
    """Train on each batch, or this rank's share of it; returns the loss of all images."""
    optimizer, loss = keras.optimizers.SGD(rate), keras.losses.SparseCategoricalCrossentropy()
    optimizer = own.distributed(optimizer) if averaged else optimizer
    for numbers in np.split(np.tile(np.arange(128), epochs), 128 * epochs // batch):
        mine = np.array_split(numbers, hvd.size())[hvd.rank()] if shared else numbers
        with tf.GradientTape() as tape:
            value = loss(dataset.labels[mine], model(dataset.images[mine]))
        optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)
    return float(loss(dataset.labels, model(dataset.images)))


for name, begin, averaged in (("both", True, True), ("no broadcast", False, True), ("no average", True, False)):
    keras.utils.set_random_seed(hvd.rank())
    model = own.network()
    if begin:
        own.begin_equal(model)
    before = own.apart(model)
    train(model, 0.1, 16, averaged=averaged, epochs=1)
    found[name] = before, own.apart(model)


def dense():
    """The network of notebook 08, with the same weights on all ranks."""
    keras.utils.set_random_seed(7)
    layers = keras.layers
    hidden, last = layers.Dense(32, "relu"), layers.Dense(10, "softmax")
    return keras.Sequential([keras.Input((32, 32, 3)), layers.Rescaling(1 / 255), layers.Flatten(), hidden, last])


size = hvd.size()
found["1 rank"] = train(dense(), 0.02, 16, averaged=False, shared=False)
found["option 2"] = train(dense(), 0.02, 16)
found["option 1"] = train(dense(), 0.02 * size, 16 * size)
found["option 1, as many updates"] = train(dense(), 0.02 * size, 16 * size, epochs=4 * size)
Path(out, f"rank{hvd.rank()}.json").write_text(json.dumps(found))
