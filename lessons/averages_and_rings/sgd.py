"""Synchronous and asynchronous SGD on a real problem, over simulated time: softmax regression on the bundled digits.

The gradients are really computed, but the times are given: `times[i, w]` is how long worker w takes for its i-th
gradient (lessons.averages_and_rings.stragglers.draws; used again from the start when they are over).
"""

import heapq
from functools import cache
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from labs.errors import UseError, number, whole

# From here on NumPy computes in one thread: for matrices of this size the threads of its library take longer to meet
# than to multiply, up to 20 times on a busy machine.
ThreadpoolController().limit(limits=1, user_api="blas")


class Work(NamedTuple):
    """One gradient: worker, seconds of its begin and end, and how many updates came from others in between."""

    worker: int
    begin: float
    end: float
    staleness: int


class History(NamedTuple):
    """A training run: seconds after each update and the loss then (both begin before the first one), the last weights,
    shape (65, 10), and the Work of all workers. With `every` above 1, only every `every`-th update and the last one are
    kept."""

    seconds: np.ndarray
    losses: np.ndarray
    weights: np.ndarray
    work: list


@cache
def digits():
    """(images, labels): the 1797 digits as rows of 64 numbers from 0 to 1 and a 1, shape (1797, 65); labels 0 to 9."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = np.hstack([found.data / 16, np.ones((len(found.data), 1))])
    images.setflags(write=False)
    return images, found.target


def loss(weights, rows=slice(None)):
    """Mean cross entropy of softmax regression with `weights`, shape (65, 10), over these rows of the digits."""
    images, labels = digits()
    scores = images[rows] @ weights
    scores = scores - scores.max(axis=1, keepdims=True)
    logs = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(scores)), labels[rows]]
    return float(logs.mean())


def gradient(weights, rows=slice(None)):
    """Gradient of `loss`, shape (65, 10)."""
    images, labels = digits()
    scores = images[rows] @ weights
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(shares)), labels[rows]] -= 1
    return images[rows].T @ shares / len(shares)


def batches(size, seed=0):
    """Row numbers of one batch after another, without end; each epoch has a new order and drops a partial batch."""
    count = len(digits()[1])
    size, random = whole("batch", size, most=count), np.random.default_rng(whole("seed", seed, 0))
    while True:
        order = random.permutation(count)
        for begin in range(0, count - size + 1, size):
            yield order[begin : begin + size]


def synchronous(workers, updates, times, batch=32, rate=0.5, seed=0, every=1, until=0.0):
    """K workers, a batch each; every update takes the mean of K gradients and waits for the slowest. A History, with
    the loss after every `every` updates (it is what takes longest to compute). until: the loss at which it ends."""
    workers, updates, times, rate, every = _given(workers, updates, times, rate, every)
    source, weights, now = batches(batch, seed), np.zeros((65, 10)), 0.0
    seconds, losses, work = [now], [loss(weights)], []
    for update in range(updates):
        taken = times[update % len(times), :workers]
        mean = np.mean([gradient(weights, next(source)) for _ in range(workers)], axis=0)
        weights = weights - rate * mean
        work += [Work(worker, now, now + taken[worker], 0) for worker in range(workers)]
        now += float(taken.max())
        if (update + 1) % every == 0 or update + 1 == updates:
            seconds.append(now)
            losses.append(loss(weights))
            if losses[-1] <= until:
                break
    return History(np.array(seconds), np.array(losses), weights, work)


def asynchronous(workers, updates, times, batch=32, rate=0.5, seed=0, every=1, until=0.0):
    """K workers that never wait: each takes the newest weights, computes, and its gradient is applied when it is done,
    to weights that others have changed since. With one worker this is sequential SGD. A History; `every`
    and `until` as above.

    Source: J. Dean and others, Large scale distributed deep networks, NIPS 2012 (Downpour SGD).
    """
    workers, updates, times, rate, every = _given(workers, updates, times, rate, every)
    source, weights = batches(batch, seed), np.zeros((65, 10))
    seconds, losses, work = [0.0], [loss(weights)], []
    running, counts = [], [0] * workers

    def begin(worker, now, done):
        taken = float(times[counts[worker] % len(times), worker])
        counts[worker] += 1
        heapq.heappush(running, (now + taken, worker, now, done, gradient(weights, next(source))))

    for worker in range(workers):
        begin(worker, 0.0, 0)
    for done in range(updates):
        now, worker, since, known, found = heapq.heappop(running)
        weights = weights - rate * found
        work.append(Work(worker, since, now, done - known))
        if (done + 1) % every == 0 or done + 1 == updates:
            seconds.append(now)
            losses.append(loss(weights))
            if losses[-1] <= until:
                break
        begin(worker, now, done + 1)
    return History(np.array(seconds), np.array(losses), weights, work)


def _given(workers, updates, times, rate, every):
    workers, updates, times = whole("workers", workers), whole("updates", updates), np.asarray(times, float)
    if times.ndim != 2 or not len(times) or times.shape[1] < workers:
        raise UseError(f"times has the shape {times.shape}: it must be (steps, workers), for {workers} workers.")
    if not (np.all(np.isfinite(times)) and np.all(times > 0)):
        raise UseError("times holds a number that is not above 0: a gradient takes time.")
    return workers, updates, times, number("rate", rate, above=True), whole("every", every)


def one_step(workers, batch=4, rate=0.5, seed=0):
    """One step of synchronous SGD in numbers: {"rows": K batches, "gradients": K, "mean", "whole": the gradient over
    all K batches at once, "weights": K, after the step}. Mean and whole are equal, and so are all weights."""
    workers, rate = whole("workers", workers), number("rate", rate, above=True)
    source, weights = batches(whole("batch", batch, most=len(digits()[1]) // workers), seed), np.zeros((65, 10))
    rows = [next(source) for _ in range(workers)]
    gradients = [gradient(weights, part) for part in rows]
    mean = np.mean(gradients, axis=0)
    return {
        "rows": rows,
        "gradients": gradients,
        "mean": mean,
        "whole": gradient(weights, np.concatenate(rows)),
        "weights": [weights - rate * mean for _ in range(workers)],
    }
