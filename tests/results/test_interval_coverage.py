"""Intervals are honest: over many simulated studies with known truth, 95 % intervals of the kit's metrics hold it."""

import numpy as np
import pytest
from made_runs import run

from labs.results import metrics

# A share of 0.95 in 800 studies has a standard deviation of 0.008: the bounds are 4 of them away. With 1.96 in the
# place of Student's t, intervals of 3 repeats would hold the truth in 0.81 (times) and 0.88 (speedups).
STUDIES = 800
ALONE, TOGETHER = 100.0, 27.0  # seconds of an epoch on 1 and on 4 workers


@pytest.mark.parametrize(
    "repeats, one, four, resolution",
    [(3, 0.03, 0.03, 0), (3, 0.02, 0.05, 0), (10, 0.03, 0.03, 0), (3, 0.01, 0.01, 1.0)],
)
def test_times_and_speedups_are_held_in_95_of_100_studies(repeats, one, four, resolution):
    """one, four: relative standard deviations between repeats. Rounding takes its worst case on top of the interval."""
    random, held = np.random.default_rng(repeats), []
    for _ in range(STUDIES):
        pair = []
        for mean, spread, workers in ((ALONE, one, 1), (TOGETHER, four, 4)):
            logs = random.normal(-(spread**2) / 2, spread, (repeats, 1)) + random.normal(0, 0.01, (repeats, 2))
            times = mean * np.exp(logs)
            times = times.round() if resolution else times
            pair.append(run(workers, [(2 * mean, *repeat) for repeat in times], resolution=resolution))
        found = ((metrics.speedup(*pair[::-1]), ALONE / TOGETHER), (metrics.epoch_seconds(pair[0]), ALONE))
        held.append([each.interval[0] <= truth <= each.interval[1] for each, truth in found])
    shares = np.mean(held, 0)
    assert np.all((shares >= 0.92) & (shares <= 0.98)) if not resolution else shares[0] >= 0.95, shares
