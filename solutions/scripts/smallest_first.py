"""A straight line through many points, on several ranks. They average gradients and collect the points that are far off."""

import numpy as np

from labs import hvd

STEPS, RATE, FAR = 60, 0.3, 0.25


def share():
    """This rank's part of the points: (x with a column of ones, y)."""
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 240)
    y = 2 * x + 1 + random.normal(0, 0.1, 240)
    mine = slice(hvd.rank(), None, hvd.size())
    return np.stack([x, np.ones(240)], axis=1)[mine], y[mine]


def exchange(gradient, far):
    """(mean of all ranks' gradients, the far points of all ranks). What is small is sent first: it is there sooner."""
    sent = {hvd.allreduce: gradient, hvd.allgather: far}
    got = {}
    ### BEGIN SOLUTION
    ### GIVEN: for collective in sorted(sent, key=lambda collective: sent[collective].size):
    ### GIVEN:     got[collective] = collective(sent[collective]).numpy()
    for collective in sent:
        got[collective] = collective(sent[collective]).numpy()
    ### END SOLUTION
    return got[hvd.allreduce], got[hvd.allgather]


def fit(x, y):
    """((slope, intercept) of the line after STEPS steps of gradient descent, the points that are far from it)."""
    line = np.zeros(2)
    for _ in range(STEPS):
        error = x @ line - y
        gradient, far = exchange(2 * x.T @ error / len(y), x[np.abs(error) > FAR, 0])
        line = line - RATE * gradient
    return line, far


def main():
    hvd.init()
    line, far = fit(*share())
    if hvd.rank() == 0:
        print(f"slope {line[0]:.3f}, intercept {line[1]:.3f}, {len(far)} points far off", flush=True)
    return line


if __name__ == "__main__":
    main()
