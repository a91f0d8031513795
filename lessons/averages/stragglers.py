"""What a barrier costs: at each step all workers wait for the slowest."""

import numpy as np

from labs.simulate.given import SimulationError, number, whole


def draws(workers, steps, mean=1.0, spread=0.1, kind="gamma", seed=0):
    """Step times in seconds of all workers, shape (steps, workers): independent, with this mean and spread.

    spread: standard deviation divided by the mean. kind: "gamma" (never negative, a long tail), or "exponential" (its
    spread is 1). Raises SimulationError.
    """
    workers, steps = whole("workers", workers), whole("steps", steps)
    mean, spread = number("mean", mean, above=True), number("spread", spread)
    random = np.random.default_rng(whole("seed", seed, 0))
    if kind == "exponential":
        return random.exponential(mean, (steps, workers))
    if kind != "gamma":
        raise SimulationError(f"kind is {kind!r}: it must be 'gamma' or 'exponential'.")
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


def expected_slowest(workers, mean=1.0):
    """Expected time of the slowest of K workers whose times are exponential: mean x (1 + 1/2 + ... + 1/K).

    Source: A. Renyi, 1953 (order statistics).
    """
    return number("mean", mean, above=True) * float(np.sum(1 / np.arange(1, whole("workers", workers) + 1)))
