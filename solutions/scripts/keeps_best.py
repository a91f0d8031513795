"""A straight line through many points, on several ranks. Now and then rank 0 tests it, and keeps the best one so far."""

import numpy as np

from labs import hvd

STEPS, RATE = 60, 0.3


def share(count, seed):
    """This rank's part of `count` points: (x with a column of ones, y)."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, count)
    y = 2 * x + 1 + random.normal(0, 0.1, count)
    mine = slice(hvd.rank(), None, hvd.size())
    return np.stack([x, np.ones(count)], axis=1)[mine], y[mine]


def mean(value):
    """The mean of all ranks' values."""
    return hvd.allreduce(value).numpy()


def loss(line, x, y):
    """The mean square error of a line on the points of all ranks."""
    return float(np.mean(hvd.allgather((x @ line - y) ** 2)))


def fit(train, test):
    """The line with the lowest loss on the test points, among those after every 10th step."""
    (x, y), line = train, np.zeros(2)
    best, lowest = line, np.inf
    for step in range(1, STEPS + 1):
        gradient = mean(2 * x.T @ (x @ line - y) / len(y))
        line = line - RATE * gradient
        ### BEGIN SOLUTION
        ### GIVEN: if step % 10 == 0 and hvd.rank() == 0:
        ### GIVEN:     tested = loss(line, *test)
        ### GIVEN:     if tested < lowest:
        ### GIVEN:         best, lowest = line, tested
        if step % 10 == 0:
            tested = loss(line, *test)
            if tested < lowest:
                best, lowest = line, tested
        ### END SOLUTION
    return best


def main():
    hvd.init()
    line = hvd.broadcast(fit(share(240, seed=7), share(60, seed=8)), root_rank=0).numpy()
    if hvd.rank() == 0:
        print(f"slope {line[0]:.3f}, intercept {line[1]:.3f}", flush=True)
    return line


if __name__ == "__main__":
    main()
