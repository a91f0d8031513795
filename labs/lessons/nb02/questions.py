"""Questions of 02_concurrency, first half: mini-batches, the averaged gradient, the barrier."""

import numpy as np

from labs.checks.judging import choice, prediction, question

HERE = "02_concurrency"

prediction("02.1", "Factor of the error of a gradient, from a batch 4 times as large", HERE)
prediction("02.5", "Is the mean of two gradients right for batches of 4 and 12", HERE)
prediction("02.9", "Share of the time that 64 workers compute", HERE)


@question(
    "02.2",
    "The error of a mini-batch's gradient",
    HERE,
    points=2,
    why="The length of the difference between the two gradients, one number.",
)
def distance(function):
    from labs.simulate import sgd

    weights, rows = np.random.default_rng(1).normal(0, 0.1, (65, 10)), np.arange(5, 17)
    few, full = sgd.gradient(weights, rows), sgd.gradient(weights)
    value = np.asarray(function(weights.copy(), rows.copy()), float)
    if value.shape == full.shape:
        return "This is a matrix, with one number for each weight. Which single number is its length?"
    if value.shape:
        return f"This has the shape {value.shape}: return one number, the length of the difference."
    right = np.linalg.norm(few - full)
    if np.isclose(value, right):
        return None
    if np.isclose(value, abs(np.linalg.norm(few) - np.linalg.norm(full))):
        return "This compares two lengths. Two gradients of equal length can point into different directions."
    start = np.zeros((65, 10))
    if np.isclose(value, np.linalg.norm(sgd.gradient(start, rows) - sgd.gradient(start))):
        return "Both gradients are taken at the start. Take them at the `weights` that the function is given."
    if np.isclose(value, np.linalg.norm(few - sgd.gradient(start))):
        return "The two gradients are of different weights: take both at the `weights` that the function is given."
    if np.isclose(value, np.linalg.norm(few)) or np.isclose(value, np.linalg.norm(full)):
        return "This is the length of one of the gradients. How far is it from the other one?"
    if np.isclose(value, right**2):
        return "This is the square of the length."
    if np.isclose(value, np.sum(few - full)) or np.isclose(value, np.mean(few - full)):
        return "In this sum, differences of opposite signs cancel. A length is never below 0."
    return f"For 12 of the digits your function gives {value:.4g}. Subtract the gradients first, then take the length."


choice(
    "02.3",
    "A batch 16 times as large",
    HERE,
    right="b",
    wrong={
        "a": "Look at the left picture: each time the batch is 4 times as large, by which factor does the error fall?",
        "c": "Only all digits together have no error. Is the batch that large?",
        "d": "Set the batch to 4, then to 512, at one rate. Both read as many samples: does the loss end at one place?",
    },
    why="The error falls with the square root of the batch, the number of updates with the batch itself.",
)


@question(
    "02.4",
    "The mean of K gradients",
    HERE,
    why="One gradient from K, of the same shape: what all workers take for their update.",
)
def averaged(function):
    gradients = [np.arange(6.0).reshape(2, 3) * k + k**2 for k in (1, 2, 4)]
    value = np.asarray(function([gradient.copy() for gradient in gradients]), float)
    if value.shape == () and np.isclose(value, np.mean(gradients)):
        return "This is one number, the mean over all workers *and* all weights. Average over the workers only."
    if value.shape != (2, 3):
        return f"Three gradients of shape (2, 3) give an array of shape {value.shape}: it must be that of a gradient."
    if np.allclose(value, np.mean(gradients, axis=0)):
        return None
    if np.allclose(value, np.sum(gradients, axis=0)):
        return "This is the sum. A step with it is K times too long."
    if np.allclose(value, np.sum(gradients, axis=0) / 4):
        return "You divide by 4, for any number of gradients. Here there are three."
    if np.allclose(value, np.median(gradients, axis=0)):
        return "This is the median. For the gradient of all samples each of them must weigh the same."
    return "For three gradients your function gives another matrix than their mean. Add them, and divide by how many?"


@question(
    "02.6",
    "The gradient of all samples, from batches of unequal size",
    HERE,
    points=2,
    why="A gradient from n samples weighs n: then each sample weighs the same.",
)
def weighted(function):
    gradients, sizes = [np.full((2, 3), 1.0) + np.eye(2, 3), np.full((2, 3), 5.0), np.full((2, 3), -2.0)], [4, 12, 1]
    value = np.asarray(function([gradient.copy() for gradient in gradients], list(sizes)), float)
    total = np.tensordot(sizes, gradients, 1)
    if value.shape != (2, 3):
        return f"Three gradients of shape (2, 3) give an array of shape {value.shape}: it must be that of a gradient."
    if np.allclose(value, total / 17):
        return None
    if np.allclose(value, np.mean(gradients, axis=0)):
        return "This is the plain mean: a sample in a batch of 4 weighs three times as much as one in a batch of 12."
    if np.allclose(value, total):
        return "The weights are right. What must their sum be, so that equal gradients give that same gradient?"
    if np.allclose(value, total / 3):
        return "You divide by the number of workers. How many samples are there?"
    if np.allclose(value, total / 16):
        return "You divide by 16, for any sizes. Here they are 4, 12 and 1."
    if np.allclose(value, np.average(gradients, axis=0, weights=1 / np.array(sizes))):
        return "Here the smallest batch weighs most. Each *sample* should weigh the same."
    return "For batches of 4, 12 and 1 your function gives another matrix. How much must each gradient weigh?"


choice(
    "02.7",
    "What travels, and when",
    HERE,
    right="c",
    wrong={
        "a": "After an epoch apart, the copies would be K different networks. What did the four workers exchange above?",
        "b": "No worker is special above: each had the mean and made the update. Rank 0 would be a bottleneck, too.",
        "d": "With the same samples, every worker would compute the same gradient, and nothing would be shared.",
    },
    why="Gradients at every step: equal copies and equal updates give equal copies.",
)


@question(
    "02.8",
    "Mean seconds of a step with a barrier",
    HERE,
    points=2,
    why="In each step the slowest worker counts; then the mean over the steps.",
)
def step_seconds(function):
    times = np.array([[1.0, 2.0, 7.0], [6.0, 1.0, 2.0]])  # 2 steps, 3 workers
    value = np.asarray(function(times.copy()), float)
    if value.shape == (2,):
        return "This is one number for each step. Return their mean."
    if value.shape:
        return f"This has the shape {value.shape}: return one number, the mean seconds of a step."
    if np.isclose(value, 6.5):
        return None
    if np.isclose(value, times.max(axis=0).mean()):
        return "This takes the slowest step of each worker. Take the slowest worker of each step: which axis is it?"
    if np.isclose(value, times.mean()):
        return "This is the mean time of a worker: as if nobody had to wait."
    if np.isclose(value, times.max()):
        return "This is the slowest of all steps. The others may be faster: take each step by itself, then the mean."
    if np.isclose(value, times.mean(axis=0).max()):
        return "This is the mean of the slowest worker. In each step, another one may be the slowest."
    if np.isclose(value, times.max(axis=1).sum()):
        return "This is the time of all steps together."
    if np.isclose(value, times.sum(axis=1).mean()):
        return "This adds the times of the workers, but they work at the same time."
    if np.isclose(value, times.min(axis=1).mean()):
        return "The fastest worker does not end the step."
    return f"For the steps [1, 2, 7] and [6, 1, 2] your function gives {value:.4g}. When is each of them over?"


choice(
    "02.10",
    "Why a step takes longer than 1 s",
    HERE,
    right="c",
    wrong={
        "a": "They would even out if workers could run ahead. But at each step the fast ones stand at the barrier.",
        "b": "All workers draw from the same times here: none of them is slower than the others on average.",
        "d": "Two workers that are late wait at the same time. Then the sum over 64 workers would be far more than 1.25 s.",
    },
    why="Late is somebody else each time, and with more workers it is nearly always somebody.",
)
