"""A straight line through many points, on several ranks: each step averages the gradients. Rank 0 reports the losses."""

import numpy as np

from labs import hvd

STEPS, RATE = 60, 0.3


def share():
    """This rank's part of the points: (x with a column of ones, y)."""
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 240)
    y = 2 * x + 1 + random.normal(0, 0.1, 240)
    mine = slice(hvd.rank(), None, hvd.size())
    return np.stack([x, np.ones(240)], axis=1)[mine], y[mine]


def mean(value):
    """The mean of all ranks' values."""
    return hvd.allreduce(value).numpy()


def fit(x, y):
    """(slope, intercept) of the line, after STEPS steps of gradient descent."""
    line = np.zeros(2)
    for step in range(STEPS):
        error = x @ line - y
        gradient = mean(2 * x.T @ error / len(y))
        line = line - RATE * gradient
        ### BEGIN SOLUTION
        ### GIVEN: if step % 10 == 0 and hvd.rank() == 0:
        ### GIVEN:     losses = hvd.allgather([np.mean(error**2)]).numpy()
        ### GIVEN:     print(f"step {step}: the losses of all ranks are {losses.round(4)}", flush=True)
        if step % 10 == 0:
            losses = hvd.allgather([np.mean(error**2)]).numpy()
            if hvd.rank() == 0:
                print(f"step {step}: the losses of all ranks are {losses.round(4)}", flush=True)
        ### END SOLUTION
    return line


def main():
    hvd.init()
    line = fit(*share())
    if hvd.rank() == 0:
        print(f"slope {line[0]:.3f}, intercept {line[1]:.3f}", flush=True)
    return line


if __name__ == "__main__":
    main()
