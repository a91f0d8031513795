"""Drift of the machine: in studies whose trainings took turns, intervals hold the truth and no difference is invented.

Simulated: two networks with equal efficiencies on 2 workers, each a pair of trainings in rounds of one epoch each. The
machine's speed changes in seven ways; `labs.results` sees the times only.
"""

import math

import numpy as np
import pytest

from labs.results import metrics, verdict
from labs.results.record import Configuration
from labs.results.run import Epoch, Run

STUDIES, ROUNDS = 600, 6
EPOCHS = {"small": (6.0, 3.4), "large": (14.0, 14.0 / 6.0 * 3.4)}  # s on 1 and on 2 workers: equal speedups
START = 40.0  # s from the start of a pair to its first round
SPEEDUP = 6.0 / 3.4
STEP = 1.0  # s: a disturbance is constant for so long


def none(random, time):
    return np.zeros_like(time)


def linear(random, time):
    """20 % slower at the end of the study than at its begin."""
    return math.log(1.2) * time / time[-1]


def step(random, time):
    return math.log(1.2) * (time > random.uniform(0, time[-1]))


def correlated(seconds):
    """6 % of noise that forgets itself within so many seconds."""

    def disturb(random, time):
        rho = math.exp(-STEP / seconds)
        values = random.normal(0, 0.06 * math.sqrt(1 - rho**2), len(time))
        values[0] = random.normal(0, 0.06)
        for k in range(1, len(values)):
            values[k] += rho * values[k - 1]
        return values

    return disturb


def bursts(random, time):
    """Another user: 35 % slower, for 20 s on the average, in a quarter of the time."""
    found, now = np.zeros_like(time), 0.0
    while (now := now + random.exponential(60.0)) < time[-1]:
        length = random.exponential(20.0)
        found[(time >= now) & (time < now + length)] = math.log(1.35)
        now += length
    return found


def heavy(random, seconds):
    """Noise of an epoch: its steps have a heavy tail."""
    return seconds * math.exp(0.01 * random.standard_t(3))


DISTURBANCES = {
    "none": none,
    "heavy-tailed steps": none,
    "linear slow-down of 20 %": linear,
    "a step of 20 %": step,
    "autocorrelated, 6 %, 60 s": correlated(60.0),
    "autocorrelated, 6 %, 300 s": correlated(300.0),
    "bursts of another user": bursts,
}


def runs(name, random, disturbance, noise, clock, slowness):
    """The two Runs of a network, measured in turns from `clock` on; and the time at the end."""
    found = [[Epoch(99.0, 0.0, 512)] for _ in range(2)]
    clock += START
    for number in range(1, ROUNDS + 1):
        for which in (0, 1) if number % 2 else (1, 0):
            left, begin = noise(random, EPOCHS[name][which]), clock
            while left > 0:  # seconds of work are done at the speed of each moment
                slow = math.exp(slowness[min(int(clock / STEP), len(slowness) - 1)])
                span = min(left * slow, (math.floor(clock / STEP) + 1) * STEP - clock + 1e-9)
                left, clock = left - span / slow, clock + span
            found[which].append(Epoch(clock - begin, 0.0, 512, round=number))
    made = []
    for workers, epochs in zip((1, 2), found, strict=True):
        has = Configuration(model=name, strategy="mirrored", workers=workers, global_batch=64 * workers, local_batch=64)
        made.append(
            Run(f"{name}{workers}", configuration=has, steps=8 // workers, images=512, study=name, repeats=[epochs])
        )
    return made, clock


def study(random, kind):
    noise = heavy if kind.startswith("heavy") else lambda r, seconds: seconds * math.exp(r.normal(0, 0.01))
    length = 2 * (START + 1.5 * ROUNDS * sum(sum(pair) for pair in EPOCHS.values()) / 2)
    slowness = DISTURBANCES[kind](random, np.arange(0, length, STEP))
    clock, all_runs = 0.0, []
    for name in EPOCHS:
        pair, clock = runs(name, random, kind, noise, clock, slowness)
        all_runs += pair
    return all_runs


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_speedups_are_covered_and_no_difference_is_invented(kind):
    random, covered, invented, widths = np.random.default_rng(15), 0, 0, []
    for _ in range(STUDIES):
        one, two, *large = study(random, kind)
        low, high = metrics.speedup(two, one).interval
        covered += low <= SPEEDUP <= high
        widths.append(high / low)
        invented += verdict.compare([one, two, *large], "large", "small", 2).answer == verdict.YES
    covered, invented, width = covered / STUDIES, invented / STUDIES, float(np.median(widths))
    print(f"{kind}: speedup covered {covered:.3f}, false yes {invented:.3f}, median width of the interval x{width:.3f}")
    assert 0.92 <= covered <= 0.98 and invented < 0.07
