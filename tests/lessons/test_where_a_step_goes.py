"""The model of a step in notebook 26, formula by formula; what the notebook makes of measured steps."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from making import broken_down

from labs import presets
from lessons import step_model
from lessons.averages_and_rings import stragglers
from lessons.reduce import ring_seconds
from lessons.step_model import Quantity
from lessons.where_a_step_goes import experiments, fitted, what_if

SMALL, LARGE = NAMES = ("ResNet50V2", "ResNet152V2")


# The terms of a step


def test_line_recovers_its_truth_and_its_intervals_cover_it():
    for fixed, slope in itertools.product((0.0, 0.01, 0.2), (1e-4, 1e-3, 2e-2)):
        found = step_model.fitted_line([8, 16, 32, 64], [fixed + slope * b for b in (8, 16, 32, 64)])
        assert found.slope.value == pytest.approx(slope) and found.seconds(128) == pytest.approx(fixed + slope * 128)
    random, hits = np.random.default_rng(3), np.zeros(2)
    for _ in range(600):
        batches = np.repeat([16, 32, 64, 128], 2)
        found = step_model.fitted_line(batches, (0.05 + 2e-3 * batches) * np.exp(random.normal(0, 0.03, 8)))
        truths = (found.slope, 2e-3), (found.level, 0.05 + 2e-3 * found.centre)
        hits += [quantity.low <= truth <= quantity.high for quantity, truth in truths]
    assert np.all((hits / 600 > 0.92) & (hits / 600 < 0.98)), hits / 600


def test_the_slowest_worker():
    for workers, spread in itertools.product((2, 8, 64, 512), (0.02, 0.1, 0.5)):
        simulated = stragglers.barrier(stragglers.draws(workers, 4000, spread=spread, seed=1))
        assert step_model.slowest(workers, spread) - 1 == pytest.approx(simulated - 1, rel=0.04), (workers, spread)
    assert step_model.slowest(1, 0.5) == step_model.slowest(1000, 0.0) == 1.0


def test_an_all_reduce_on_two_levels_is_a_ring_in_each_node_and_one_over_the_nodes():
    inside, between = (1e-6, 1e11), (3e-5, 1e9)
    rings = ring_seconds(8, 1e6, *inside) + ring_seconds(3, 1e6, *between)
    assert step_model.two_rings(20, 1e6, 8, inside, between) == pytest.approx(rings)


def test_what_backward_does_not_hide_of_the_all_reduce():
    assert [size for *_, size in step_model.fused([(0, size) for size in (40, 300, 20, 10)], 309)] == [40, 300, 30]
    random = np.random.default_rng(0)
    for number in range(200):
        sizes, latency = random.integers(1e3, 1e8, number % 9 + 1), 10 ** random.uniform(-7, -3)
        backward, threshold = 10 ** random.uniform(-4, 1), (0, 1e7, 1e9)[number // 3 % 3]
        asked = sizes, lambda size, latency=latency: latency + size / 1e9, backward, threshold
        none, half, full = (step_model.exposed(*asked, overlap) for overlap in (0.0, 0.5, 1.0))
        sent = sum(sizes) / 1e9 + 2 * step_model.CYCLE  # without the latencies of 1 to len(sizes) messages
        assert sent + latency <= none + 1e-12 and none <= sent + len(sizes) * latency + 1e-12
        assert half == pytest.approx((none + full) / 2) and max(0.0, none - backward) <= full + 1e-12 <= none + 2e-12
        if not threshold:  # one message after the other, each when its gradient is ready and the link is free
            end = 0.0
            for place, size in enumerate(sizes[::-1], 1):
                end = max(end, backward * place / len(sizes) + 2 * step_model.CYCLE) + asked[1](size)
            assert full == pytest.approx(min(none, max(0.0, end - backward)), abs=1e-12)


def test_ranges_of_inputs_add_in_quadrature_on_logarithms():
    inputs = {"a": Quantity(2.0, 1.0, 4.0), "b": Quantity(3.0, 1.5, 3.0), "c": Quantity(5.0, 5.0, 5.0)}
    value, (low, high) = step_model.ranged(lambda values: values["a"] / values["b"] * values["c"], inputs)
    both = math.exp(math.log(2) * 2**0.5)  # the upper end of a, the lower one of b
    assert (value, low, high) == pytest.approx((10 / 3, 10 / 3 / 2, 10 / 3 * both))


# The fit


def study(fixed, spread, exposed, noise, seed=0):
    """Results of a breakdown of two networks, drawn from known parameters."""
    random, made = np.random.default_rng(seed), []
    for model, gradient_bytes, image in (("Small", 1e8, 4e-3), ("Large", 2.4e8, 1e-2)):
        seconds = {}
        for batch in (16, 64):
            alone = fixed + image * batch
            together = alone * step_model.slowest(2, spread) + exposed * gradient_bytes
            taken = {"alone": alone, "exchange": together}
            seconds[str(batch)] = {
                kind: (mean * np.exp(random.normal(0, noise, (4, 1)) + random.normal(0, spread, (4, 2)))).tolist()
                for kind, mean in taken.items()
            }
        found = {"model": model, "ranks": 2, "local_batch": 64, "seconds": seconds}
        made += fitted.measured_steps(found | {"gradient_bytes": gradient_bytes})
    return made


def test_a_fit_recovers_known_parameters_and_predicts_what_it_has_not_seen():
    found = fitted.Fit(study(0.02, 1e-6, 4e-10, 0.0))
    for model, image in (("Small", 4e-3), ("Large", 1e-2)):
        alone, exchange = 0.02 + 128 * image, 4e-10 * {"Small": 1e8, "Large": 2.4e8}[model]
        assert found.step(model, 2, 128)[0] == pytest.approx(alone + exchange, rel=1e-4)
        assert found.efficiency(model, 2, 128)[0] == pytest.approx(alone / (alone + exchange), rel=1e-4)
    hits, seeds = np.zeros(2), 60
    for seed in range(seeds):
        every = study(0.02, 0.02, 4e-10, 0.02, seed)
        kept = [each for each in every if each.workers == 1 or (each.model, each.local_batch) == ("Small", 64)]
        found = fitted.Fit(kept)
        ends = found.step("Large", 2, 64)[1], found.efficiency("Large", 2, 64)[1]
        step = (0.02 + 0.64) * step_model.slowest(2, 0.02) + 4e-10 * 2.4e8
        hits += [low <= truth <= high for (low, high), truth in zip(ends, (step, 0.66 / step), strict=True)]
    assert np.all(hits / seeds > 0.9), hits / seeds


def test_where_steps_do_not_get_longer_with_the_batch_nothing_is_predicted(capsys):
    busy = {"16": {kind: [[0.3]] * 3 for kind in ("alone", "exchange")}, "64": broken_down()["seconds"]["16"]}
    assert experiments.fitted(fitted.measured_steps(broken_down() | {"seconds": busy})) is None
    assert "There is no fit, so nothing is predicted: Steps do not get longer" in capsys.readouterr().out
    assert experiments.fitted([]) is None


# Up to 4096 workers


def test_up_to_4096_workers_it_is_the_model_with_the_inputs_of_the_table():
    for name, rate in (("ResNet50V2", 383), ("ResNet152V2", 155)):
        one, four, half = (what_if.steps(name, **more) for more in ({}, {"accumulation": 4}, {"precision": "float16"}))
        assert one[1] == (pytest.approx(64 / rate), 0, 0) and sum(half[1]) == pytest.approx(64 / rate / what_if.HALF)
        for workers in (2, 64, 4096):
            links = {"inside": (6e-6, 100e9), "between": (30e-6, 0.7 * 25e9 / 8)}
            sizes = what_if.networks()[name].tensor_bytes
            rings = partial(step_model.two_rings, workers, devices=8, **links)
            lost = step_model.exposed(sizes, rings, 2 / 3 * 64 / rate, 128 * 2**20, 1.0)
            waiting = 64 / rate * (step_model.slowest(workers, what_if.INPUTS["spread"].value) - 1)
            assert one[workers] == pytest.approx((64 / rate, waiting, lost))
            assert four[workers] == pytest.approx((4 * 64 / rate, 4 * waiting, lost))


# Whole steps, and what is read of others


def test_the_parts_are_compared_with_a_training_of_the_same_batch_alone(capsys):
    runs, own = experiments.runs_of_two_networks(presets.choose("laptop"), NAMES)  # recorded ones, as there are no own
    assert not own
    found = experiments.whole_steps({SMALL: broken_down(), LARGE: broken_down(LARGE, 2.4, local_batch=32)}, runs)
    run = next(run for run in runs if (run.model, run.workers) == (SMALL, 2))
    (row,) = found
    assert row["network"] == SMALL and row["sum of the parts (ms)"].startswith("973.3 [9")
    whole, ratio = (float(row[key].split()[0].replace(",", "")) for key in ("whole step (ms)", "whole / sum"))
    assert whole == pytest.approx(1e3 * run.epoch_seconds.value / run.steps, abs=0.1)
    assert ratio == pytest.approx(whole / 973.3, rel=0.01)
    assert "ResNet152V2: no run on 2 workers with 32 images each" in capsys.readouterr().out
