"""Intervals are honest: over many simulated studies with known truth, 95 % intervals of the kit's metrics hold it."""

from math import exp

import numpy as np
import pytest

from labs.results import metrics
from labs.results.record import Configuration
from labs.results.run import Epoch, Run

STUDIES = 2500
IMAGES, BATCH, WORKERS = 6400, 64, 4
ALONE, TOGETHER = 100.0, 27.0  # seconds of an epoch on 1 and on 4 workers
TRUTH = {"speedup": ALONE / TOGETHER, "efficiency": ALONE / TOGETHER / WORKERS}


def make(times, workers, resolution=0.0):
    """The Run of repeats with these epoch seconds, shape (repeats, epochs); a slow first epoch comes before them."""

    def epoch(seconds):
        shown = round(seconds / resolution) * resolution if resolution else seconds
        return Epoch(float(shown), resolution, IMAGES)

    repeats = [[epoch(2 * repeat[0]), *map(epoch, repeat)] for repeat in times]
    return Run(
        "study",
        configuration=Configuration(model="Net", workers=workers, global_batch=BATCH * workers, local_batch=BATCH),
        steps=IMAGES // BATCH // workers,
        images=IMAGES,
        repeats=repeats,
    )


def studies(repeats, spreads, resolution=0.0, seed=0, count=STUDIES):
    """Pairs of Runs on 1 and 4 workers. spreads: relative standard deviations between repeats on 1 and on 4 workers;
    epochs of a repeat share its deviation, and differ by 1 % among themselves."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        pair = []
        for mean, spread, workers in ((ALONE, spreads[0], 1), (TOGETHER, spreads[1], WORKERS)):
            logs = random.normal(-(spread**2) / 2, spread, (repeats, 1)) + random.normal(0, 0.01, (repeats, 2))
            pair.append(make(mean * np.exp(logs), workers, resolution))
        yield pair


def share(name, pairs):
    """Share of the studies whose interval of metrics.<name> holds the truth."""
    hits = []
    for alone, together in pairs:
        low, high = getattr(metrics, name)(together, alone).interval
        hits.append(low <= TRUTH[name] <= high)
    return float(np.mean(hits))


@pytest.mark.parametrize("repeats", [3, 5, 10])
@pytest.mark.parametrize("spreads", [(0.03, 0.03), (0.02, 0.05), (0.06, 0.03)])
def test_speedup(repeats, spreads):
    found = share("speedup", studies(repeats, spreads, seed=repeats))
    print(f"{repeats} repeats, spread {spreads}: {found:.3f}")
    assert 0.92 <= found <= 0.98


@pytest.mark.parametrize("repeats", [3, 10])
def test_efficiency(repeats):
    assert 0.92 <= share("efficiency", studies(repeats, (0.03, 0.04), seed=7)) <= 0.98


@pytest.mark.parametrize("repeats", [3, 5, 10])
def test_epoch_time_and_throughput(repeats):
    held = np.zeros(2)
    for alone, _ in studies(repeats, (0.04, 0.04), seed=11):
        for k, (name, truth) in enumerate((("epoch_seconds", ALONE), ("throughput", IMAGES / ALONE))):
            low, high = getattr(metrics, name)(alone).interval
            held[k] += low <= truth <= high
    print(f"{repeats} repeats: {held / STUDIES}")
    assert np.all((held / STUDIES >= 0.92) & (held / STUDIES <= 0.98))


def test_whole_seconds_widen_the_interval_and_never_lose_the_truth_more_often():
    """Rounding takes its worst case on top, so intervals of a rounded log hold the truth at least as often."""
    found = share("speedup", studies(3, (0.01, 0.01), resolution=1.0, seed=5, count=1000))
    print(f"whole seconds: {found:.3f}")
    assert found >= 0.95


def test_an_interval_without_students_t_would_fail():
    """The test can fail: with 1.96 in the place of t, 3 repeats hold the truth in far fewer than 92 %."""
    hits = []
    for alone, together in studies(3, (0.03, 0.03), seed=3, count=1500):
        logs = [np.log([np.mean([e.seconds for e in r[1:]]) for r in run.repeats]) for run in (alone, together)]
        error = np.sqrt(sum(np.var(sample, ddof=1) / 3 for sample in logs))
        centre = logs[0].mean() - logs[1].mean()
        hits.append(exp(centre - 1.96 * error) <= TRUTH["speedup"] <= exp(centre + 1.96 * error))
    assert np.mean(hits) < 0.91
