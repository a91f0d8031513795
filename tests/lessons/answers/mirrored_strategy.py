"""Answers to the checks of 03_mirrored_strategy that have a judge of their own, some on 4 devices (test_answers.py)."""

from contextlib import nullcontext
from functools import cache

import keras
import tensorflow as tf

from labs import data

NUMBERS, ENTROPY = [1.0, 2.0, 3.0], "sparse_categorical_crossentropy"


@cache
def strategy(devices=4):
    return tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(devices)])


def variable(numbers=NUMBERS, devices=4):
    """Answer to mirrored.3: a variable on so many devices."""

    def make(folder):
        with strategy(devices).scope():
            return (tf.Variable(numbers),)

    return make


def batches(size=64):
    return data.pipeline(data.load("digits", images=128), size)


def network():
    return keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten(), keras.layers.Dense(10, "softmax")])


def sgd(rate=0.04, **more):
    return keras.optimizers.SGD(rate, **more)


def compiled(optimizer=sgd, loss=lambda: ENTROPY, read=batches, jit_compile=False, scope=lambda: strategy().scope()):
    """Answer to mirrored.10: a model that is made and compiled so, and what it reads."""

    def make(folder):
        with scope():
            model = network()
            model.compile(optimizer(), loss(), jit_compile=jit_compile)
        return model, read()

    return make


def optimizer_outside(folder):
    optimizer = sgd()
    return compiled(lambda: optimizer)(folder)


def layers_outside(folder):
    layers = network()
    with strategy().scope():
        return keras.Sequential([layers, keras.layers.Dense(10)]), batches()


AFTER, MEAN = "return [copy - rate * mean for copy in copies]", "sum(gradients) / len(gradients)"
RIGHT = [
    ("mirrored.3", variable()),
    ("mirrored.4", (4,)),
    ("mirrored.4", ([4, 4, 4, 4],)),
    ("mirrored.10", compiled()),
    ("mirrored.10", compiled(loss=keras.losses.SparseCategoricalCrossentropy, jit_compile="auto")),
    ("mirrored.10", compiled(read=lambda: strategy().experimental_distribute_dataset(batches()))),
]
WRONG = [
    ("mirrored.3", lambda folder: (tf.Variable(NUMBERS),)),
    ("mirrored.3", variable(devices=2)),
    ("mirrored.3", variable([0.0] * 3)),
    ("mirrored.3", (NUMBERS,)),
    ("mirrored.4", (16,)),
    ("mirrored.4", (8,)),
    ("mirrored.10", compiled(scope=nullcontext)),
    ("mirrored.10", optimizer_outside),
    ("mirrored.10", layers_outside),
    ("mirrored.10", compiled(jit_compile=True)),
    ("mirrored.10", lambda folder: ("model", batches())),
    ("mirrored.10", compiled(lambda: sgd(0.01))),
    ("mirrored.10", compiled(lambda: sgd(momentum=0.9))),
    ("mirrored.10", compiled(lambda: keras.optimizers.Adam(0.04))),
    ("mirrored.10", compiled(loss=lambda: "mse")),
    ("mirrored.10", compiled(read=lambda: batches(16))),
    ("mirrored.10", compiled(read=lambda: data.load("digits", images=128))),
]
STYLES = [("mirrored.7", AFTER, "return np.array(copies) - rate * mean")]
MISTAKES = [
    ("mirrored.7", AFTER, "return [copy - rate * each for copy, each in zip(copies, gradients)]"),
    ("mirrored.7", "/ len(gradients)", "/ 4"),
    ("mirrored.7", MEAN, "np.mean(gradients)"),
    ("mirrored.7", "zip(copies, shares)", "zip(copies[:1] * len(copies), shares)"),
    ("mirrored.7", "zip(copies, shares)", "zip(copies, shares[:1] * len(copies))"),
    ("mirrored.7", AFTER, f"{AFTER}[0]"),
    ("mirrored.7", AFTER, f"{AFTER}[:1] * len(copies)"),
    ("mirrored.7", AFTER, "for copy in copies:\n        copy -= rate * mean\n    return copies"),
]
