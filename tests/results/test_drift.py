"""Drift of the machine: in studies whose trainings took turns, intervals hold the truth and no difference is invented.

Simulated: two networks with equal efficiencies on 2 workers, each a pair of trainings in rounds of one epoch each. The
machine's speed changes in seven ways; `labs.results` sees the times only.
"""

import numpy as np
import pytest
from scipy.signal import lfilter

from labs.results import metrics, verdict
from labs.results.record import Configuration
from labs.results.run import Epoch, Run

STUDIES, ROUNDS = 1500, 6
EPOCHS = {"small": (6.0, 3.4), "large": (14.0, 14.0 / 6.0 * 3.4)}  # s on 1 and on 2 workers: equal speedups
START = 40.0  # s from the start of a pair to its first round
SPEEDUP = 6.0 / 3.4
# s at which the speed of the machine may change: a second apart, for longer than the slowest study takes
TIME = np.arange(0.0, 2 * (START + 1.5 * ROUNDS * sum(sum(pair) for pair in EPOCHS.values()) / 2))
LAST = TIME[-1]
# Which of (1 worker, 2 workers) trains, epoch by epoch: A B, B A, A B, ...
WHICH = np.array([(0, 1), (1, 0)] * (ROUNDS // 2)).ravel()


def none(random):
    return np.zeros((STUDIES, len(TIME)))


def linear(random):
    """20 % slower at the end of the study than at its begin."""
    return none(random) + np.log(1.2) * TIME / LAST


def step(random):
    return np.log(1.2) * (random.uniform(0, LAST, (STUDIES, 1)) < TIME)


def correlated(seconds):
    """6 % of noise that forgets itself within so many seconds."""

    def disturb(random):
        rho = np.exp(-1 / seconds)
        noise = random.normal(0, 0.06 * np.sqrt(1 - rho**2), (STUDIES, len(TIME)))
        noise[:, 0] = random.normal(0, 0.06, STUDIES)
        return lfilter([1], [1, -rho], noise)

    return disturb


def bursts(random):
    """Another user: 35 % slower, for 20 s on the average, in a quarter of the time."""
    found = none(random)
    for slow in found:
        now = 0.0
        while (now := now + random.exponential(60.0)) < LAST:
            length = random.exponential(20.0)
            slow[(now <= TIME) & (now + length > TIME)] = np.log(1.35)
            now += length
    return found


def normal(random, shape):
    return random.normal(0, 0.01, shape)


def heavy(random, shape):
    """Noise of an epoch whose steps have a heavy tail."""
    return 0.01 * random.standard_t(3, shape)


DISTURBANCES = {  # of the machine, of an epoch; both as logarithms
    "none": (none, normal),
    "heavy-tailed steps": (none, heavy),
    "linear slow-down of 20 %": (linear, normal),
    "a step of 20 %": (step, normal),
    "autocorrelated, 6 %, 60 s": (correlated(60.0), normal),
    "autocorrelated, 6 %, 300 s": (correlated(300.0), normal),
    "bursts of another user": (bursts, normal),
}


def measured(work, slowness):
    """Seconds of each epoch of a study, in the order of networks and epochs, shape (networks, epochs).

    work: seconds that they would take on the undisturbed machine, of the same shape. slowness: logarithm of how much
    longer everything takes, for each second of TIME.
    """
    done = np.concatenate([[0.0], np.cumsum(np.exp(-slowness))])  # seconds of work until each moment
    moments, clock, found = np.append(TIME, LAST + 1), 0.0, []
    for epochs in work:
        begin = np.interp(clock + START, moments, done)
        ends = np.interp(begin + np.cumsum(epochs), done, moments)
        found.append(np.diff(ends, prepend=clock + START))
        clock = ends[-1]
    assert clock < LAST, "longer than the machine's speed is simulated"
    return np.array(found)


def runs(name, seconds):
    """The Runs on 1 and on 2 workers of a network with these seconds of its epochs."""
    for workers in (1, 2):
        mine = seconds[workers - 1 == WHICH]
        epochs = [Epoch(99.0, 0.0, 512), *(Epoch(s, 0.0, 512, round=n) for n, s in enumerate(mine.tolist(), 1))]
        has = Configuration(model=name, strategy="mirrored", workers=workers, global_batch=64 * workers, local_batch=64)
        yield Run(name, configuration=has, steps=8 // workers, images=512, study=name, repeats=[epochs])


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_speedups_are_covered_and_no_difference_is_invented(kind):
    (disturb, noise), random = DISTURBANCES[kind], np.random.default_rng(15)
    exact = np.array(list(EPOCHS.values()))[:, WHICH]
    works = exact * np.exp(noise(random, (STUDIES, *exact.shape)))
    covered, invented, widths = 0, 0, []
    for work, slowness in zip(works, disturb(random), strict=True):
        one, two, *large = (run for each in zip(EPOCHS, measured(work, slowness), strict=True) for run in runs(*each))
        low, high = metrics.speedup(two, one).interval
        covered += low <= SPEEDUP <= high
        widths.append(high / low)
        invented += verdict.compare([one, two, *large], "large", "small", 2).answer == verdict.YES
    covered, invented = covered / STUDIES, invented / STUDIES
    tenth, width, most = np.quantile(widths, (0.1, 0.5, 0.9))
    print(
        f"{kind}: {STUDIES} studies, speedup covered {covered:.3f}, false yes {invented:.3f}, "
        f"upper / lower end of the interval: median {width:.3f} (in 8 of 10 {tenth:.3f} to {most:.3f})"
    )
    assert 0.92 <= covered <= 0.98 and invented < 0.07
