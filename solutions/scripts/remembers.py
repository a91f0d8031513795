"""A straight line through many points, on several ranks. Rank 1 remembers what it has computed, to draw it later."""

import os
import signal

import numpy as np

from labs import hvd

STEPS, RATE = 60, 0.3
MEMORY = 40_000  # bytes: a small machine is played. Where memory is short, Linux kills a program without a warning.


def share():
    """This rank's part of the points: (x with a column of ones, y)."""
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 240)
    y = 2 * x + 1 + random.normal(0, 0.1, 240)
    mine = slice(hvd.rank(), None, hvd.size())
    return np.stack([x, np.ones(240)], axis=1)[mine], y[mine]


def remember(kept, values):
    """Keep these values; the played machine kills this rank when they are more than its memory holds."""
    kept.append(values)
    if sum(each.nbytes for each in kept) > MEMORY:
        os.kill(os.getpid(), signal.SIGKILL)


def fit(x, y):
    """(slope, intercept) of the line, after STEPS steps of gradient descent."""
    line, kept = np.zeros(2), []
    for _ in range(STEPS):
        error = x @ line - y
        line = line - RATE * hvd.allreduce(2 * x.T @ error / len(y)).numpy()
        if hvd.rank() == 1:
            remember(kept, error)
    return line


def main():
    hvd.init()
    line = fit(*share())
    if hvd.rank() == 0:
        print(f"slope {line[0]:.3f}, intercept {line[1]:.3f}", flush=True)
    return line


if __name__ == "__main__":
    main()
