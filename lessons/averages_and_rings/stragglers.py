"""What a barrier costs: at each step all workers wait for the slowest."""

import numpy as np


def draws(workers, steps, spread=0.1, seed=0):
    """Step times in seconds of all workers, shape (steps, workers): independent, with mean 1 and this spread.

    spread: their standard deviation. They follow a gamma distribution: never negative, with a long tail.
    """
    if spread == 0:
        return np.ones((steps, workers))
    shape = 1 / spread**2
    return np.random.default_rng(seed).gamma(shape, 1 / shape, (steps, workers))


def barrier(times):
    """Mean seconds of a step with a barrier: the mean over steps of the slowest worker's time."""
    return float(np.max(times, axis=1).mean())


def efficiency(times):
    """Share of the workers' time in which they compute, with a barrier at each step: mean time / mean slowest time."""
    return float(np.mean(times) / barrier(times))
