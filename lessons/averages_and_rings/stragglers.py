"""What a barrier costs: at each step all workers wait for the slowest."""

import numpy as np

from labs.errors import number, whole


def draws(workers, steps, mean=1.0, spread=0.1, seed=0):
    """Step times in seconds of all workers, shape (steps, workers): independent, with this mean and spread.

    spread: standard deviation divided by the mean. They follow a gamma distribution: never negative, with a long tail.
    Raises UseError.
    """
    workers, steps = whole("workers", workers), whole("steps", steps)
    mean, spread = number("mean", mean, above=True), number("spread", spread)
    random = np.random.default_rng(whole("seed", seed, 0))
    if spread == 0:
        return np.full((steps, workers), mean)
    shape = 1 / spread**2
    return random.standard_gamma(shape, (steps, workers)) * (mean / shape)


def barrier(times):
    """Mean seconds of a step with a barrier: the mean over steps of the slowest worker's time."""
    return float(np.max(times, axis=1).mean())


def efficiency(times):
    """Share of the workers' time in which they compute, with a barrier at each step: mean time / mean slowest time."""
    return float(np.mean(times) / barrier(times))
