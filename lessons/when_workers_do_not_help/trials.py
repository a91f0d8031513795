"""Experiments with the small network (lessons.when_workers_do_not_help.small): each trains for real.

Workers are rows of one array here, one process does the work of all: what they learn is real, how long they would take
is not.
"""

import time

import numpy as np

from lessons.when_workers_do_not_help import small

TARGET = 0.95  # share of the validation images


def shards(workers, order):
    """Numbers of the training images of each worker, the shares as equal as possible; order: "shuffled" or "sorted"."""
    labels = small.digits("train").labels
    numbers = np.arange(len(labels)) if order == "shuffled" else np.argsort(labels, kind="stable")
    return np.array_split(numbers, workers)


def local_sgd(k, of_workers, *, steps, local_batch=8, rate=0.1, seed=0):
    """Test accuracy of the mean of all workers' weights, who take their mean after every k-th step.

    of_workers: for each worker the numbers of its images (`shards`). All begin with the same weights.
    """
    train = small.digits("train")
    weights = np.tile(small.begin(seed), (len(of_workers), 1))
    sources = [small.batches(local_batch, (seed, worker), numbers) for worker, numbers in enumerate(of_workers)]
    for step in range(1, steps + 1):
        numbers = np.array([next(source) for source in sources])
        weights -= rate * small.gradient(weights, train.images[numbers], train.labels[numbers])
        if step % k == 0:
            weights[:] = weights.mean(0)
    return float(small.accuracy(weights.mean(0), small.digits("test")))


def train(batch, rate, *, epochs=None, steps=None, seed=0):
    """One training run: {seconds (measured), steps, validation, test (accuracies), loss (at the end, of all training
    images, in nats)}. Give epochs or steps."""
    data, weights, source = small.digits("train"), small.begin(seed), small.batches(batch, seed)
    steps = steps or epochs * (small.TRAIN // batch)
    begin = time.perf_counter()
    for _ in range(steps):
        numbers = next(source)
        weights -= rate * small.gradient(weights, data.images[numbers], data.labels[numbers])
    found = {"seconds": time.perf_counter() - begin, "steps": steps, "loss": float(small.loss(weights, data))}
    return found | {part: float(small.accuracy(weights, small.digits(part))) for part in ("validation", "test")}


def tuned(batch, rates, *, steps, seeds):
    """A list of runs, one for each seed, at the rate with the best mean validation accuracy; each has its "rate"."""
    tried = [[train(batch, rate, steps=steps, seed=seed) | {"rate": rate} for seed in seeds] for rate in rates]
    return max(tried, key=lambda runs: np.mean([each["validation"] for each in runs]))


def steps_to(batch, rates, *, seeds, most):
    """(best rate, [steps of each seed]): until the validation accuracy reaches TARGET, at the rate that needs fewest on
    average. One rate must reach it with all seeds within `most` steps.

    All rates and seeds train side by side, and end at twice the steps after which the first rate is there.
    """
    data, weights = small.digits("train"), np.tile([small.begin(seed) for seed in seeds], (len(rates), 1, 1))
    steps, sources = np.full(weights.shape[:2], np.inf), [small.batches(batch, seed) for seed in seeds]
    factors = np.array(rates, np.float32)[:, None, None]
    for number in range(1, most + 1):
        numbers = np.array([next(source) for source in sources])
        with np.errstate(all="ignore"):  # a rate that is too high ends in nan, and never arrives
            weights -= factors * small.gradient(weights, data.images[numbers], data.labels[numbers])
            arrived = small.accuracy(weights, small.digits("validation")) >= TARGET
        steps[arrived & np.isinf(steps)] = number
        if number >= 2 * steps.max(1).min():
            break
    best = int(np.argmin(steps.mean(1)))
    return rates[best], [int(count) for count in steps[best]]


def squares(*, workers, batch, rate, steps, seed=0):
    """A run of several workers, step by step: arrays {local, mean, loss} of `steps` numbers.

    local: mean over the workers of |g|^2 of each one's own gradient, of `batch` images; mean: |g|^2 of the average of
    their gradients; loss: of all training images, before every 8th step (nan in between).
    """
    data, source = small.digits("train"), small.batches(workers * batch, seed)
    weights, found = np.tile(small.begin(seed), (workers, 1)), np.full((3, steps), np.nan)
    for step in range(steps):
        numbers = next(source).reshape(workers, batch)
        local = small.gradient(weights, data.images[numbers], data.labels[numbers])
        mean = local.mean(0)
        found[:2, step] = (local**2).sum(1).mean(), (mean**2).sum()
        if step % 8 == 0:
            found[2, step] = small.loss(weights[0], data)
        weights -= rate * mean
    return dict(zip(("local", "mean", "loss"), found, strict=True))
