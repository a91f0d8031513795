"""Runs as the fit sees them: steady steps, their spread, and runs that say too little."""

import numpy as np
import pytest

from labs.costs import CostError
from labs.costs.observe import observations_of, observe
from labs.results.metrics import MetricsError
from labs.results.record import Configuration
from labs.results.run import Epoch, Run, save


def run_of(**changes):
    epochs = [Epoch(9.0), Epoch(5.0), Epoch(5.2)]
    own = dict(steps=10, repeats=[epochs, [Epoch(9.0), Epoch(4.0)]])
    own |= {key: changes.pop(key) for key in list(changes) if key in own}
    known = dict(model="ResNet50V2", workers=2, global_batch=128) | changes
    return Run("a.json", configuration=Configuration(**known), **own)


def test_steps_of_a_run_leave_warm_up_out():
    found = observe(run_of())
    assert found.seconds == pytest.approx((0.51, 0.4)) and found.local_batch == 64 and found.spread is None
    assert observe(run_of(local_batch=32)).local_batch == 32


def test_a_run_that_says_too_little():
    named = {"model": "network", "workers": "number of workers", "global_batch": "batch", "steps": "number of steps"}
    for missing, says in named.items():
        with pytest.raises(CostError, match=f"the {says} is not known"):
            observe(run_of(**{missing: None}))


def test_a_run_of_one_epoch_is_warm_up_alone():
    with pytest.raises(CostError, match="no epoch is left after the first one"):
        observe(run_of(repeats=[[Epoch(5.0)]]))


def test_spread_is_that_of_single_steps_within_an_epoch():
    steps = [[9.0, 1.0, 1.2, 0.8], [5.0, 2.0, 2.4, 1.6]]  # two epochs of other length, spread alike
    epochs = [Epoch(sum(seconds), images=8, step_seconds=seconds) for seconds in ([9.0] * 4, *steps)]
    assert observe(run_of(steps=4, repeats=[epochs])).spread == pytest.approx(np.std([1, 1.2, 0.8]))


def test_nothing_to_read(tmp_path):
    with pytest.raises(MetricsError, match="no results"):
        observations_of([tmp_path])
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(CostError, match="left out: .*not a run record"):
        observations_of([tmp_path / "a.json"])
    (tmp_path / "b.out").write_text("Epoch 1/2\n")
    with pytest.raises(CostError, match="left out: .*not a run record.*; left out: b.out: .*epoch 1 is not finished"):
        observations_of([tmp_path / "a.json", tmp_path])


def test_the_trainings_of_a_batch_script_are_read_as_labs_results_reads_them(tmp_path):
    for name in ("job_7.out", "job_7.err"):
        (tmp_path / name).write_text("Model M 1 GPUs\nstarting\n")
    for workers in (1, 2):
        has = Configuration(model="M", workers=workers, global_batch=64 * workers)
        save(
            tmp_path / f"job_7_w{workers}.json", Run(repeats=[3 * [Epoch(5.0)]], name="m", configuration=has, steps=10)
        )
    assert [(each.workers, each.seconds) for each in observations_of([tmp_path])[0]] == [(1, (0.5,)), (2, (0.5,))]


def test_an_earlier_run_is_not_measured_together_with_the_later_one(tmp_path):
    for name, own in (("a", "a"), ("a.1", "a"), ("a.2", "a.2")):  # the last was called so when it was made
        has = Configuration(model="M", workers=1, global_batch=64)
        save(tmp_path / f"{name}.json", Run(repeats=[3 * [Epoch(5.0)]], name=own, configuration=has, steps=10))
    assert len(observations_of([tmp_path])[0]) == 2
    assert len(observations_of([tmp_path / "a.1.json"])[0]) == 1
