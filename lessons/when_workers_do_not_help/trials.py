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
    labels = small.digits().train.labels
    numbers = np.arange(len(labels)) if order == "shuffled" else np.argsort(labels, kind="stable")
    return np.array_split(numbers, workers)


@small.one_thread
def local_sgd(k, of_workers, *, steps, local_batch=8, rate=0.1, seed=0):
    """Test accuracy of the mean of all workers' weights, who take their mean after every k-th step.

    of_workers: for each worker the numbers of its images (`shards`). All begin with the same weights.
    """
    train, test = small.digits().train, small.digits().test
    weights = np.tile(small.begin(seed), (len(of_workers), 1))
    sources = [small.batches(local_batch, (seed, worker), numbers) for worker, numbers in enumerate(of_workers)]
    for step in range(1, steps + 1):
        numbers = np.array([next(source) for source in sources])
        weights -= rate * small.gradient(weights, train.images[numbers], train.labels[numbers])
        if step % k == 0:
            weights[:] = weights.mean(0)
    return float(small.accuracy(weights.mean(0), test))


@small.one_thread
def train(batch, rate, *, epochs=None, steps=None, seed=0):
    """One training run: {seconds (measured), steps, validation, test (accuracies), loss (at the end, of all training
    images, in nats)}. Give epochs or steps."""
    data, weights, source = small.digits(), small.begin(seed), small.batches(batch, seed)
    steps = steps or epochs * (small.TRAIN // batch)
    begin = time.perf_counter()
    for _ in range(steps):
        numbers = next(source)
        weights -= rate * small.gradient(weights, data.train.images[numbers], data.train.labels[numbers])
    seconds = time.perf_counter() - begin
    found = {name: float(small.accuracy(weights, getattr(data, name))) for name in ("validation", "test")}
    return {"seconds": seconds, "steps": steps, "loss": float(small.loss(weights, data.train))} | found


def tuned(batch, rates, *, steps, seeds):
    """A list of runs, one for each seed, at the rate with the best mean validation accuracy; each has its "rate"."""
    tried = [[train(batch, rate, steps=steps, seed=seed) | {"rate": rate} for seed in seeds] for rate in rates]
    return max(tried, key=lambda runs: np.mean([each["validation"] for each in runs]))


@small.one_thread
def steps_to(batch, rates, *, seeds, most, target=TARGET):
    """(best rate, [steps of each seed]): until the validation accuracy reaches the target, at the rate that needs
    fewest on average; (None, []) where none of them has reached it with all seeds within `most` steps.

    All rates and seeds train side by side, and end at twice the steps after which the first rate is there.
    """
    data = small.digits()
    weights = np.repeat([[small.begin(seed) for seed in seeds]], len(rates), 0)
    steps, number = np.full(weights.shape[:2], np.inf), 0
    factor = np.array(rates, np.float32)[:, None, None]
    sources = [small.batches(batch, seed) for seed in seeds]
    while number < most:
        number += 1
        drawn = np.array([next(source) for source in sources])
        with np.errstate(all="ignore"):  # a rate that is too high ends in nan, and never arrives
            weights -= factor * small.gradient(weights, *(part[drawn][None] for part in data.train))
            arrived = small.accuracy(weights, data.validation) >= target
        steps[arrived & np.isinf(steps)] = number
        whole = np.isfinite(steps).all(1)
        if whole.any():
            most = min(most, 2 * number)
    if not whole.any():
        return None, []
    best = int(np.argmin(np.where(whole, steps.mean(1), np.inf)))
    return rates[best], [int(count) for count in steps[best]]


@small.one_thread
def squares(*, workers, batch, rate, steps, seed=0):
    """A run of several workers, step by step: arrays {local, mean, loss} of `steps` numbers.

    local: mean over the workers of |g|^2 of each one's own gradient, of `batch` images; mean: |g|^2 of the average of
    their gradients; loss: of all training images, before every 8th step (nan in between).
    """
    data, weights, source = small.digits(), small.begin(seed), small.batches(workers * batch, seed)
    found = {name: np.full(steps, np.nan) for name in ("local", "mean", "loss")}
    for step in range(steps):
        numbers = next(source).reshape(workers, batch)
        same = np.broadcast_to(weights, (workers, small.SIZE))
        local = small.gradient(same, data.train.images[numbers], data.train.labels[numbers])
        mean = local.mean(0)
        found["local"][step], found["mean"][step] = (local**2).sum(1).mean(), (mean**2).sum()
        if step % 8 == 0:
            found["loss"][step] = small.loss(weights, data.train)
        weights = weights - rate * mean
    return found


@small.one_thread
def search(rates, rungs, *, batch=32, seed=0):
    """A search for a rate that stops bad runs early: (best validation accuracy, epochs of all runs together).

    rungs: the numbers of epochs after which runs are compared, such as (1, 3, 9, 27). At each rung but the last the
    best third goes on. (27,) alone stops none. Successive halving, by thirds: K. Jamieson and A. Talwalkar, 1502.07943.
    """
    data, before, spent, weights = small.digits(), 0, 0, [small.begin(seed) for _ in rates]
    sources = [small.batches(batch, seed) for _ in rates]
    going = list(range(len(rates)))
    for number, rung in enumerate(rungs):
        for each in going:
            for _ in range((rung - before) * (small.TRAIN // batch)):
                drawn = next(sources[each])
                with np.errstate(all="ignore"):
                    step = small.gradient(weights[each], data.train.images[drawn], data.train.labels[drawn])
                weights[each] = weights[each] - rates[each] * step
        spent += len(going) * (rung - before)
        before = rung
        with np.errstate(all="ignore"):
            known = {each: float(small.accuracy(weights[each], data.validation)) for each in going}
        if number < len(rungs) - 1:
            going = sorted(going, key=known.get, reverse=True)[: max(1, len(going) // 3)]
    return max(known.values()), spent
