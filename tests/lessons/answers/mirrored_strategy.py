"""Answers to the self-checks of 03_mirrored_strategy: right ones, and wrong ones that students give."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

TRAINABLE, FROZEN = 23_539_850, 45_440  # parameters of ResNet50V2 with 10 classes (tests/models)


def distance(reduce, pairs=lambda copies: [(c, copies[0]) for c in copies], absolute=np.abs):
    return (lambda copies: reduce([np.max(absolute(a - b)) for a, b in pairs(copies)]),)


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
    "mirrored.2": dict(right=[(1,), ("1",)], wrong=[(4,), (True,)], secret=r"\b1\b|\bone\b device"),
    "mirrored.3": dict(
        right=["mirrored"], wrong=["tf.Variable([1.0, 2.0, 3.0])", "on_two", "other_shape", "zeros", "[1.0, 2.0, 3.0]"]
    ),
    "mirrored.4": dict(right=[(4,), ([4, 4, 4, 4],)], wrong=[(16,), (8,)], secret=r"\b4\b"),
    "mirrored.5": dict(
        right=[(lambda x, n: np.sum(x) / n,), (lambda x, n: sum(x / n),)],
        wrong=[(lambda x, n: np.mean(x),), (lambda x, n: x / n,)],
        secret=r"\b16\b(?!, but wrong)|global",
    ),
    "mirrored.7": dict(
        right=[stepped(), (lambda *given: np.array(stepped()[0](*given)),)],
        wrong=[
            stepped(lambda g: g),
            stepped(lambda g: [sum(g) / 4] * len(g)),
            stepped(at=lambda copies: copies[:1] * len(copies)),
            stepped(share=lambda shares: shares[:1] * len(shares)),
            (lambda *given: stepped()[0](*given)[0],),
            (lambda c, s, gradient, rate: [a - rate * sum(gradient(a, *b) for b in s) / len(s) for a in c],),
            (step_in_place,),
        ],
        secret=r"/ ?(len|count|4)|sum\(",
    ),
    "mirrored.6": dict(
        right=[distance(max), distance(max, lambda c: [(a, b) for a in c for b in c])],
        wrong=[
            distance(max, lambda c: [(each, c[0]) for each in c[:4]]),
            distance(max, absolute=lambda x: x),
            (lambda copies: max(np.linalg.norm(c - copies[0]) for c in copies),),
            (lambda copies: max(np.max(np.abs(c.__isub__(copies[0]))) for c in copies[::-1]),),
        ],
        secret=r"\b4\b",
    ),
    "mirrored.8": dict(
        right=[(4 * TRAINABLE,), ("94e6",)], wrong=[(TRAINABLE,), (4 * (TRAINABLE + FROZEN),)], secret=r"94[.,\s]?1\d\d"
    ),
    "mirrored.10": dict(
        right=[
            "compiled(), batches(64)",
            "compiled(jit_compile='auto', loss=keras.losses.SparseCategoricalCrossentropy), batches(64).prefetch(2)",
            "compiled(), strategy.experimental_distribute_dataset(batches(64))",
        ],
        wrong=[
            "compiled(scope=False), batches(64)",
            "in_scope, batches(64)",
            "compiled(jit_compile=True), batches(64)",
            "half, batches(64)",
            "late, batches(64)",
            "'model', batches(64)",
            "compiled(lambda: keras.optimizers.SGD(0.01)), batches(64)",
            "compiled(lambda: keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.04, 9))), batches(64)",
            "compiled(lambda: keras.optimizers.SGD(0.04, momentum=0.9)), batches(64)",
            "compiled(lambda: keras.optimizers.Adam(0.04)), batches(64)",
            "compiled(loss=lambda: 'mse'), batches(64)",
            "compiled(), batches(4)",
            "compiled(), dataset",
        ],
    ),
}

ON_FOUR_DEVICES = """
# warm
import json, sys
from labs import data, devices, models
from labs import checks
import keras
import tensorflow as tf
tf.get_logger().setLevel("ERROR")
workers = devices.workers(4, pin=False, kind="cpu")
strategy = tf.distribute.MirroredStrategy(devices=workers)
with strategy.scope():
    mirrored, other_shape, zeros = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([1.0, 2.0]), tf.Variable([0.0] * 3)
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
sgd = keras.optimizers.SGD(0.04)
outside, late = small(), compiled(lambda: sgd)
with strategy.scope():
    in_scope = small()
    half = keras.Sequential([outside, keras.layers.Dense(10)])
    half.compile("sgd", "mse", jit_compile=False)
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
