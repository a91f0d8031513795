"""The mean error of each point over many lines: 25 points, dealt out among the ranks, and an average over all ranks."""

import numpy as np

from labs import hvd

STEPS, RATE = 60, 0.3


def share():
    """This rank's part of the 25 points: (x with a column of ones, y)."""
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 25)
    y = 2 * x + 1 + random.normal(0, 0.1, 25)
    mine = slice(hvd.rank(), None, hvd.size())
    return np.stack([x, np.ones(25)], axis=1)[mine], y[mine]


def fit(x, y):
    """(the line after STEPS steps, the mean square error of all ranks' points)."""
    line = np.zeros(2)
    for _ in range(STEPS):
        gradient = 2 * x.T @ (x @ line - y) / len(y)
        line = line - RATE * hvd.allreduce(gradient).numpy()
    errors = (x @ line - y) ** 2
    ### BEGIN SOLUTION
    ### GIVEN: return line, float(np.mean(hvd.allreduce(errors)))
    return line, float(np.mean(hvd.allgather(errors)))
    ### END SOLUTION


def main():
    hvd.init()
    line, error = fit(*share())
    if hvd.rank() == 0:
        print(f"slope {line[0]:.3f}, intercept {line[1]:.3f}, mean square error {error:.4f}", flush=True)
    return np.array([*line, error])


if __name__ == "__main__":
    main()
