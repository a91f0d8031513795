"""Answers to the checks of 03_mirrored_strategy that have a judge of their own."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np


def stepped(exchange=lambda g: [np.mean(g, 0)] * len(g), at=lambda copies: copies, share=lambda b: b):
    """Answer to mirrored.7: with what `exchange` makes of the list of gradients."""

    def step(copies, shares, gradient, rate):
        found = exchange([gradient(copy, *each) for copy, each in zip(at(copies), share(shares), strict=True)])
        return [copy - rate * each for copy, each in zip(copies, found, strict=True)]

    return (step,)


def step_in_place(copies, shares, gradient, rate):
    mean = np.mean([gradient(copy, *share) for copy, share in zip(copies, shares, strict=True)], axis=0)
    for copy in copies:
        copy -= rate * mean
    return copies


# Answers to mirrored.3 and mirrored.10 are expressions: they need 4 devices, whose number is fixed once in a process.
ANSWERS = {
    "mirrored.3": dict(
        right=["mirrored"], wrong=["tf.Variable([1.0, 2.0, 3.0])", "on_two", "zeros", "[1.0, 2.0, 3.0]"]
    ),
    "mirrored.4": dict(right=[(4,), ([4, 4, 4, 4],)], wrong=[(16,), (8,)], secret=r"\b4\b"),
    "mirrored.7": dict(
        right=[stepped(), (lambda *given: np.array(stepped()[0](*given)),)],
        wrong=[
            stepped(lambda g: g),
            stepped(lambda g: [sum(g) / 4] * len(g)),
            stepped(lambda g: [np.mean(g)] * len(g)),
            stepped(at=lambda copies: copies[:1] * len(copies)),
            stepped(share=lambda shares: shares[:1] * len(shares)),
            (lambda *given: stepped()[0](*given)[0],),
            (lambda *given: stepped()[0](*given)[:1] * len(given[0]),),
            (step_in_place,),
        ],
        secret=r"/ ?(len|count|4)|sum\(",
    ),
    "mirrored.10": dict(
        right=[
            "compiled(), batches(64)",
            "compiled(jit_compile='auto', loss=keras.losses.SparseCategoricalCrossentropy), batches(64).prefetch(2)",
            "compiled(), strategy.experimental_distribute_dataset(batches(64))",
        ],
        wrong=[
            "compiled(scope=False), batches(64)",
            "compiled(jit_compile=True), batches(64)",
            "half, batches(64)",
            "compiled(lambda: sgd), batches(64)",
            "'model', batches(64)",
            "compiled(lambda: keras.optimizers.SGD(0.01)), batches(64)",
            "compiled(lambda: keras.optimizers.SGD(0.04, momentum=0.9)), batches(64)",
            "compiled(lambda: keras.optimizers.Adam(0.04)), batches(64)",
            "compiled(loss=lambda: 'mse'), batches(64)",
            "compiled(), batches(16)",
            "compiled(), dataset",
        ],
    ),
}

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


def compiled(optimizer=lambda: keras.optimizers.SGD(0.04), loss=lambda: "sparse_categorical_crossentropy",
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
    texts = [(id, text) for id in ("mirrored.3", "mirrored.10") for text in ANSWERS[id]["right"] + ANSWERS[id]["wrong"]]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", ON_FOUR_DEVICES, json.dumps(texts)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
