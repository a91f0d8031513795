"""Synchronous and asynchronous SGD on a real problem, over simulated time: softmax regression on the bundled digits.

The gradients are really computed, but the times are given: `times[i, w]` is how long worker w takes for its i-th
gradient (lessons.averages_and_rings.stragglers.draws; used again from the start when they are over).
"""

import heapq
from collections import namedtuple
from functools import cache
from itertools import count, cycle, islice

import numpy as np
from scipy.special import softmax

from labs.errors import whole
from lessons.when_workers_do_not_help import small

START = np.zeros((65, 10))  # the weights before the first step


# One gradient: worker, seconds of its begin and end, and how many updates came from others in between.
Work = namedtuple("Work", "worker begin end staleness")

# A training run: arrays of the seconds after each update and of the loss then (both begin before the first one), the
# last weights, shape (65, 10), and a list of the Work of all workers. With `every` above 1, only every `every`-th
# update and the last one are kept.
History = namedtuple("History", "seconds losses weights work")


@cache
def digits():
    """(images, labels): the 1797 digits as rows of 64 numbers from 0 to 1 and a 1, shape (1797, 65); labels 0 to 9."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = np.hstack([found.data / 16, np.ones((len(found.data), 1))])
    images.setflags(write=False)
    return images, found.target


def loss(weights):
    """Mean cross entropy of softmax regression with `weights`, shape (65, 10), over all digits."""
    images, labels = digits()
    scores = weights.T @ images.T
    scores -= scores.max(axis=0)
    return float((np.log(np.exp(scores).sum(axis=0)) - scores[labels, np.arange(len(labels))]).mean())


def gradient(weights, rows):
    """Gradient of the mean cross entropy over these rows of the digits, shape (65, 10)."""
    images, labels = digits()
    of_scores = softmax(images[rows] @ weights, axis=1) - np.eye(10)[labels[rows]]
    return images[rows].T @ of_scores / len(of_scores)


def batches(size, seed=0):
    """Row numbers of one batch after another, without end; each epoch has a new order and drops a partial batch."""
    samples = len(digits()[1])
    yield from small.batches(whole("batch", size, most=samples), seed, samples)  # else it would search for ever


def synchronous(workers, updates, times, batch=32, rate=0.5, seed=0, every=1, until=0.0):
    """K workers, a batch each; every update takes the mean of K gradients and waits for the slowest. A History, with
    the loss after every `every` updates (it is what takes longest to compute). until: the loss at which it ends."""

    def steps():
        source, weights, now = batches(batch, seed), START, 0.0
        for taken in cycle(times[:, :workers]):
            weights = weights - rate * np.mean([gradient(weights, next(source)) for _ in range(workers)], axis=0)
            work = [Work(worker, now, now + seconds, 0) for worker, seconds in enumerate(taken)]
            now += float(taken.max())
            yield now, weights, work

    return _history(steps(), updates, every, until)


def asynchronous(workers, updates, times, batch=32, rate=0.5, seed=0, every=1, until=0.0):
    """K workers that never wait: each takes the newest weights, computes, and its gradient is applied when it is done,
    to weights that others have changed since. With one worker this is sequential SGD. A History; `every`
    and `until` as above.

    Source: J. Dean and others, Large scale distributed deep networks, NIPS 2012 (Downpour SGD).
    """

    def steps():
        source, weights, now = batches(batch, seed), START, 0.0
        own, running = [cycle(times[:, worker]) for worker in range(workers)], []
        beginning = range(workers)
        for done in count():
            for worker in beginning:
                end = now + float(next(own[worker]))
                heapq.heappush(running, (end, worker, now, done, gradient(weights, next(source))))
            now, worker, begin, known, found = heapq.heappop(running)
            weights = weights - rate * found
            yield now, weights, [Work(worker, begin, now, done - known)]
            beginning = [worker]

    return _history(steps(), updates, every, until)


def _history(steps, updates, every, until):
    """The History of so many steps, each (seconds, weights, the Work in its update)."""
    seconds, losses, work, weights = [0.0], [loss(START)], [], START
    for update, (now, weights, more) in enumerate(islice(steps, updates), 1):
        work += more
        if update % every == 0 or update == updates:
            seconds.append(now)
            losses.append(loss(weights))
            if losses[-1] <= until:
                break
    return History(np.array(seconds), np.array(losses), weights, work)


def one_step(workers, batch=4):
    """The gradients of one step of synchronous SGD: {"rows": K batches, "gradients": K, "mean", "whole": the gradient
    over all K batches at once}. Mean and whole are equal."""
    rows = list(islice(batches(batch), workers))
    gradients = [gradient(START, part) for part in rows]
    whole_batch = gradient(START, np.concatenate(rows))
    return {"rows": rows, "gradients": gradients, "mean": np.mean(gradients, axis=0), "whole": whole_batch}
