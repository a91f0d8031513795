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
    return lambda copies: reduce([np.max(absolute(a - b)) for a, b in pairs(copies)])


def stepped(exchange):
    """Answer to mirrored.7: with what `exchange` makes of the list of gradients."""

    def step(copies, shares, gradient, rate):
        found = exchange([gradient(copy, *share) for copy, share in zip(copies, shares, strict=True)])
        return [copy - rate * each for copy, each in zip(copies, found, strict=True)]

    return step


def step_with_loops(copies, shares, gradient, rate):
    total = np.zeros_like(copies[0])
    for number in range(len(copies)):
        images, labels = shares[number]
        total += gradient(copies[number], images, labels)
    new = []
    for copy in copies:
        new.append(copy - rate * total / len(copies))
    return new


def from_first(copies, shares, gradient, rate):
    mean = np.mean([gradient(copies[0], *share) for share in shares], axis=0)
    return [copy - rate * mean for copy in copies]


def one_share(copies, shares, gradient, rate):
    mean = np.mean([gradient(copy, *shares[0]) for copy in copies], axis=0)
    return [copy - rate * mean for copy in copies]


def step_in_place(copies, shares, gradient, rate):
    mean = np.mean([gradient(copy, *share) for copy, share in zip(copies, shares, strict=True)], axis=0)
    for copy in copies:
        copy -= rate * mean
    return copies


# Answers to mirrored.3 and mirrored.10 are expressions: they need 4 devices, whose number is fixed once in a process.
ANSWERS = {
    "mirrored.2": dict(right=[(1,), (1.0,), ("1",)], wrong=[(4,), (0,), (2,), (True,)], secret=r"\b1\b|\bone\b device"),
    "mirrored.3": dict(
        right=["mirrored"],
        wrong=["tf.Variable([1.0, 2.0, 3.0])", "on_two", "other_shape", "zeros", "[1.0, 2.0, 3.0]", "{'a': 1.0}"],
        secret=None,
    ),
    "mirrored.4": dict(right=[(4,), ([4, 4, 4, 4],), (np.int32(4),)], wrong=[(16,), (64,), (8,)], secret=r"\b4\b"),
    "mirrored.5": dict(
        right=[(lambda x, n: np.sum(x) / n,), (lambda x, n: sum(x / n),), (lambda x, n: np.mean(x) * len(x) / n,)],
        wrong=[
            (lambda x, n: np.mean(x),),
            (lambda x, n: np.sum(x),),
            (lambda x, n: np.mean(x) / n,),
            (lambda x, n: np.max(x),),
            (lambda x, n: np.sum(x) / 16,),
            (lambda x, n: np.mean(x) / 4,),
            (lambda x, n: x / n,),
            (lambda x, n: None,),
        ],
        secret=r"\b16\b(?!, but wrong)|global",
        same=[(4, 5)],  # right for 4 images out of 16 only
    ),
    "mirrored.7": dict(
        right=[
            (stepped(lambda g: [sum(g) / len(g)] * len(g)),),
            (step_with_loops,),
            (
                lambda c, s, gradient, rate: (
                    np.array(c) - rate * np.mean([gradient(a, *b) for a, b in zip(c, s, strict=True)], 0)
                ),
            ),
        ],
        wrong=[
            (stepped(lambda g: g),),
            (stepped(lambda g: [sum(g)] * len(g)),),
            (stepped(lambda g: [sum(g) / len(g) ** 2] * len(g)),),
            (stepped(lambda g: [-sum(g) / len(g)] * len(g)),),
            (stepped(lambda g: [g[0]] * len(g)),),
            (stepped(lambda g: [g[-1]] * len(g)),),
            (stepped(lambda g: [sum(g) / 4] * len(g)),),
            (stepped(lambda g: [sum(g) / len(g)] + [0 * g[0]] * (len(g) - 1)),),
            (lambda c, s, gradient, rate: stepped(lambda g: [sum(g) / len(g)] * len(g))(c, s, gradient, 1.0),),
            (lambda c, s, gradient, rate: stepped(lambda g: [sum(g) / len(g)] * len(g))(c, s, gradient, rate)[0],),
            (lambda c, s, gradient, rate: [c[0] - rate * sum(gradient(c[0], *b) for b in s) / len(s)] * len(s),),
            (from_first,),
            (one_share,),
            (lambda c, s, gradient, rate: [a - rate * sum(gradient(a, *b) for b in s) / len(s) for a in c],),
            (step_in_place,),
            (stepped(lambda g: [np.mean(g)] * len(g)),),
            (lambda c, s, gradient, rate: stepped(lambda g: [sum(g) / len(g)] * len(g))(c, s, gradient, 0.5),),
        ],
        secret=r"/ ?(len|count|4)|sum\(",
    ),
    "mirrored.6": dict(
        right=[(distance(max),), (distance(max, lambda c: [(a, b) for a in c for b in c]),)],
        wrong=[
            (distance(max, lambda c: [(c[-1], c[0])]),),
            (distance(max, absolute=lambda x: x),),
            (distance(max, absolute=lambda x: -x),),
            (distance(np.mean),),
            (lambda copies: 1.0,),
            (distance(max, lambda c: [(c[1], c[0])]),),
            (distance(max, lambda c: [(a, c[0]) for a in c[:-1]]),),
            (lambda copies: max(np.linalg.norm(c - copies[0]) for c in copies),),
            (distance(sum),),
            (lambda copies: max(np.max(np.abs(c.__isub__(copies[0]))) for c in copies[::-1]),),
            (lambda copies: max(abs(c - copies[0]) for c in copies),),
            (distance(max, lambda c: [(each, c[0]) for each in c[:4]]),),
        ],
        secret=r"\b4\b",
        raises=[10],
        same=[(1, 2), (3, 8)],  # the two signs of one mistake; means and sums
    ),
    "mirrored.8": dict(
        right=[(4 * TRAINABLE,), (4.0 * TRAINABLE,), (94e6,), (94.2e6,), ("94159400",)],
        wrong=[
            (TRAINABLE,),
            (4 * (TRAINABLE + FROZEN),),
            (8 * TRAINABLE,),
            (32 * TRAINABLE,),
            (25_600_000,),
            (94.3e6,),
            (94.2,),
            (89.8,),
        ],
        secret=r"94[.,\s]?1\d\d",
        same=[(2, 3), (1, 5), (6, 7)],  # twice too many: workers or bits; all variables; megabytes
    ),
    "mirrored.10": dict(
        right=[
            "compiled(scope=True), batches(64)",
            "compiled(scope=True, jit_compile='auto'), batches(64)",
            "compiled(True, loss=keras.losses.SparseCategoricalCrossentropy), batches(64).prefetch(2)",
            "compiled(scope=True), strategy.experimental_distribute_dataset(batches(64))",
            "compiled(scope=True), data.pipeline(dataset, 4 * 16, workers=4)",
        ],
        wrong=[
            "compiled(scope=False), batches(64)",
            "in_scope, batches(64)",
            "compiled(scope=True, jit_compile=True), batches(64)",
            "half, batches(64)",
            "late, batches(64)",
            "keras.Sequential(), batches(64)",
            "'model', batches(64)",
            "compiled(scope=True, optimizer=lambda: keras.optimizers.SGD(0.01)), batches(64)",
            "compiled(scope=True, optimizer=lambda: keras.optimizers.SGD(0.16)), batches(64)",
            "compiled(scope=True, optimizer=lambda: keras.optimizers.Adam(0.04)), batches(64)",
            "compiled(scope=True, optimizer=lambda: keras.optimizers.SGD(0.04, momentum=0.9)), batches(64)",
            "compiled(scope=True, loss=lambda: 'mse'), batches(64)",
            "compiled(scope=True), batches(16)",
            "compiled(scope=True), batches(4)",
            "compiled(scope=True), dataset",
        ],
        secret=None,
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


def compiled(scope, jit_compile=False, optimizer=lambda: keras.optimizers.SGD(0.04),
             loss=lambda: "sparse_categorical_crossentropy"):
    with strategy.scope() if scope else tf.device("CPU:0"):
        model = models.build("SmallCNN", image_size=32, classes=10)
        model.compile(optimizer(), loss(), jit_compile=jit_compile)
    return model


dataset = data.load("digits", images=128)
batches = lambda size: data.pipeline(dataset, size)
sgd = keras.optimizers.SGD(0.04)
outside, late = models.network("SmallCNN", 32, 10), compiled(True, optimizer=lambda: sgd)
with strategy.scope():
    in_scope = models.build("SmallCNN", 32, 10)
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
