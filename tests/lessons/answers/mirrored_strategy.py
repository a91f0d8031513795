"""Answers to the checks of 03_mirrored_strategy that have a judge of their own."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

AFTER, MEAN = "return [copy - rate * mean for copy in copies]", "sum(gradients) / len(gradients)"

# Answers to mirrored.3 and mirrored.10 are expressions: they need 4 devices, whose number is fixed once in a process.
RIGHT = [
    ("mirrored.3", "mirrored"),
    ("mirrored.4", (4,)),
    ("mirrored.4", ([4, 4, 4, 4],)),
    ("mirrored.10", "compiled(), batches(64)"),
    ("mirrored.10", "compiled(SGD, keras.losses.SparseCategoricalCrossentropy, jit_compile='auto'), batches(64)"),
    ("mirrored.10", "compiled(), strategy.experimental_distribute_dataset(batches(64))"),
]
WRONG = [
    ("mirrored.3", "tf.Variable([1.0, 2.0, 3.0])"),
    ("mirrored.3", "on_two"),
    ("mirrored.3", "zeros"),
    ("mirrored.3", "[1.0, 2.0, 3.0]"),
    ("mirrored.4", (16,)),
    ("mirrored.4", (8,)),
    ("mirrored.10", "compiled(scope=False), batches(64)"),
    ("mirrored.10", "compiled(jit_compile=True), batches(64)"),
    ("mirrored.10", "half, batches(64)"),
    ("mirrored.10", "compiled(lambda: sgd), batches(64)"),
    ("mirrored.10", "'model', batches(64)"),
    ("mirrored.10", "compiled(lambda: keras.optimizers.SGD(0.01)), batches(64)"),
    ("mirrored.10", "compiled(lambda: keras.optimizers.SGD(0.04, momentum=0.9)), batches(64)"),
    ("mirrored.10", "compiled(lambda: keras.optimizers.Adam(0.04)), batches(64)"),
    ("mirrored.10", "compiled(loss=lambda: 'mse'), batches(64)"),
    ("mirrored.10", "compiled(), batches(16)"),
    ("mirrored.10", "compiled(), dataset"),
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

ON_FOUR_DEVICES = """
# warm
import json, sys
from labs import data, devices
from labs import checks
import keras
import tensorflow as tf
tf.get_logger().setLevel("ERROR")
workers = devices.workers(4, pin=False, kind="cpu")
strategy = tf.distribute.MirroredStrategy(devices=workers)
with strategy.scope():
    mirrored, zeros = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([0.0] * 3)
with tf.distribute.MirroredStrategy(devices=workers[:2]).scope():
    on_two = tf.Variable([1.0, 2.0, 3.0])


def small():
    return keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten(), keras.layers.Dense(10, "softmax")])


SGD = lambda: keras.optimizers.SGD(0.04)


def compiled(optimizer=SGD, loss=lambda: "sparse_categorical_crossentropy",
             scope=True, jit_compile=False):
    with strategy.scope() if scope else tf.device("CPU:0"):
        model = small()
        model.compile(optimizer(), loss(), jit_compile=jit_compile)
    return model


dataset = data.load("digits", images=128)
batches = lambda size: data.pipeline(dataset, size)
sgd, outside = keras.optimizers.SGD(0.04), small()
with strategy.scope():
    half = keras.Sequential([outside, keras.layers.Dense(10)])
given = [(id, text, eval(text)) for id, text in json.loads(sys.argv[1])]
print(json.dumps({text: checks.judge(id, *got if id == "mirrored.10" else [got]) for id, text, got in given}))
"""


def judge(id, expression):
    """What is said to an answer that is an expression."""
    return _judged_on_four_devices()[expression]


@cache
def _judged_on_four_devices():
    texts = [(id, text) for id, text in RIGHT + WRONG if isinstance(text, str)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", ON_FOUR_DEVICES, json.dumps(texts)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
