"""A straight line through 250 points, on several ranks: they deal out the 25 batches among them."""

import numpy as np

from labs import hvd

EPOCHS, BATCH, RATE = 3, 10, 0.3


def points():
    """All points: (x with a column of ones, y)."""
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 250)
    return np.stack([x, np.ones(250)], axis=1), 2 * x + 1 + random.normal(0, 0.1, 250)


def mean(value):
    """The mean of all ranks' values."""
    return hvd.allreduce(value).numpy()


def own_batches(count):
    """The numbers of this rank's batches, of `count` in all: every rank gets equally many."""
    ### BEGIN SOLUTION
    ### GIVEN: return range(hvd.rank(), count, hvd.size())
    return range(hvd.rank(), count // hvd.size() * hvd.size(), hvd.size())
    ### END SOLUTION


def epoch(line, x, y):
    """The line after a step with each of this rank's batches."""
    for number in own_batches(len(y) // BATCH):
        batch = slice(number * BATCH, (number + 1) * BATCH)
        error = x[batch] @ line - y[batch]
        line = line - RATE * mean(2 * x[batch].T @ error / BATCH)
    return line


def main():
    hvd.init()
    x, y = points()
    line = np.zeros(2)
    for number in range(EPOCHS):
        line = epoch(line, x, y)
        slopes = hvd.allgather(line[:1]).numpy()
        if hvd.rank() == 0:
            print(f"epoch {number + 1}: the slopes of all ranks are {slopes.round(3)}", flush=True)
    return line


if __name__ == "__main__":
    main()
