"""labs.results.steps: single steps in time, their distribution, and the slowest of several of them."""

import numpy as np
import pytest
from epochs import numbered

from labs.results import steps
from labs.results.run import Epoch, Run


def run_of(*epochs, turns=False):
    made = [
        Epoch(seconds=sum(e), step_seconds=list(e), round=(n or None) if turns else None) for n, e in enumerate(epochs)
    ]
    return Run(source="a", epochs=numbered(made))


def test_steps_lie_in_time_at_their_epoch_or_round_and_no_extreme_is_lost():
    place, low, middle, high = steps.over_time(run_of([9.0, 1.0], [2.0, 4.0], turns=True))
    assert place.tolist() == [0.25, 0.75, 1.25, 1.75] and middle.tolist() == [9, 1, 2, 4]
    assert (low == middle).all() and (high == middle).all()
    many = [20.0, *[1.0] * 5000]  # thousands are put together
    place, low, middle, high = steps.over_time(run_of(many, many), most=60)
    assert len(place) == 120 and high.max() == 20 and low.min() == 1 and np.median(middle) == 1
    assert (np.diff(place) > 0).all()


def test_distribution_is_that_of_the_steady_steps():
    seconds, shares = steps.distribution(run_of([50.0, 60.0], [1.0, 4.0], [2.0, 3.0]))
    assert seconds.tolist() == [1, 2, 3, 4] and shares == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert steps.quantile(seconds, shares) == 2.5  # as any median of 1, 2, 3, 4
    assert steps.quantile(seconds, shares, 0.4) == 2 and steps.quantile(seconds, shares, 1.0) == 4


def test_the_slowest_of_several_is_what_drawing_them_gives():
    drawn = np.random.default_rng(0)
    epochs = [drawn.lognormal(0.0, 0.2, 40), 3 * drawn.lognormal(0.0, 0.2, 40)]  # the second one is a slow round
    seconds, shares = steps.distribution(run_of([9.0], *epochs), workers=3)
    slowest = np.concatenate([drawn.choice(e, (20_000, 3)).max(axis=1) for e in epochs])
    for share in (0.1, 0.4, 0.9):
        assert steps.quantile(seconds, shares, share) == pytest.approx(np.quantile(slowest, share), rel=0.02)
    assert shares[-1] == pytest.approx(1.0)
