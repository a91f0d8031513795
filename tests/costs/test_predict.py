"""Predictions: what they must obey whatever the machine, and questions that they refuse."""

import json
import math
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from simulated_study import facts

from labs.costs import CostError, Parameter, load_machine, predict_from_machine
from labs.costs.anchor import anchored
from labs.costs.chosen import CHOSEN
from labs.costs.computation import roofline
from labs.costs.model import Model
from labs.costs.predict import with_intervals
from labs.data.batching import order
from labs.errors import LabsError
from labs.models import counts

NET = facts("Unmeasured", image_size=224)


def ask(workers=8, local_batch=64, machine="cte-power", network=NET, **options):
    with mock.patch.object(counts, "of", lambda *_: network):
        return predict_from_machine(network.model, network, load_machine(machine), workers, local_batch, **options)


def test_one_worker_has_no_communication():
    found = ask(1)
    parts = found.breakdown
    assert (parts.exposed, parts.all_reduce, parts.stragglers) == (0, 0, 0)
    assert found.speedup.value == found.efficiency.value == 1 and found.speedup.interval == (1, 1)
    assert found.step_seconds.value == parts.computation


def test_more_workers_never_compute_more_slowly_and_never_more_than_share_the_work():
    rows = [ask(workers) for workers in (1, 2, 4, 8, 64, 512, 4096)]
    assert len({row.breakdown.computation for row in rows}) == 1
    for before, after in zip(rows, rows[1:], strict=False):
        assert after.step_seconds.value > before.step_seconds.value
        assert after.efficiency.value < before.efficiency.value
        assert after.speedup.interval[1] <= after.workers and after.efficiency.interval[1] <= 1


def test_quantities_agree_with_each_other():
    found = ask(16, 32, accumulation=2, images=50_000)
    step, images = found.step_seconds.value, 16 * 32 * 2
    assert found.images_per_second.value == pytest.approx(images / step)
    assert found.images_per_second_per_worker.value == pytest.approx(images / step / 16)
    assert found.efficiency.value == pytest.approx(found.speedup.value / 16)
    assert found.epoch_seconds.value == pytest.approx(50_000 // images * step)
    parts = found.breakdown
    assert step == pytest.approx(parts.computation + parts.stragglers + parts.exposed) and parts.input == 0
    assert parts.with_full_overlap <= parts.exposed <= parts.without_overlap
    for name, quantity in found.quantities.items():
        assert quantity.interval[0] < quantity.value < quantity.interval[1], name


@pytest.mark.parametrize("images", [1797, 2048, 50_000])
def test_the_speedup_is_the_ratio_of_the_predicted_epochs(images):
    """In images/s: the last images of an epoch that fill no batch are dropped, as in the pipeline."""
    rates = {}
    for workers in (1, 4, 8):
        found = ask(workers, images=images)
        row, labels = found.as_dict(), SimpleNamespace(labels=range(images))
        steps = int(order(labels, workers * 64).cardinality()) // (workers * 64)
        assert (row["steps_per_epoch"], row["images_per_epoch"]) == (steps, steps * workers * 64)
        assert row["epoch_seconds"] == pytest.approx(steps * row["step_seconds"])
        rates[workers] = row["images_per_epoch"] / row["epoch_seconds"]
        assert row["speedup"] == pytest.approx(rates[workers] / rates[1])


def test_an_epoch_of_less_than_a_step_is_refused():
    with pytest.raises(CostError, match="511 images do not fill one step of 512.*fewer workers or a smaller batch"):
        ask(8, images=511)
    assert ask(8, images=512).epoch_seconds.value == ask(8).step_seconds.value


def test_accumulation_pays_the_all_reduce_once():
    one, four = ask(64, 16, machine="v100-ethernet25"), ask(64, 16, machine="v100-ethernet25", accumulation=4)
    assert four.breakdown.exposed == one.breakdown.exposed
    assert four.breakdown.computation == 4 * one.breakdown.computation
    assert four.efficiency.value > one.efficiency.value


def test_compression_halves_the_bytes_and_precision_alone_does_not():
    plain, half, mixed = (
        ask(64, machine="v100-ethernet25", **options)
        for options in ({}, {"compression": "float16"}, {"precision": "float16"})
    )
    assert half.breakdown.all_reduce == pytest.approx(plain.breakdown.all_reduce / 2, rel=0.1)
    assert mixed.breakdown.all_reduce == plain.breakdown.all_reduce
    assert mixed.breakdown.computation < plain.breakdown.computation / 2


def test_overlap_makes_the_interval_and_says_so():
    found = ask(64, machine="v100-ethernet25")
    parts = found.breakdown
    low, high = found.step_seconds.interval
    base = parts.computation + parts.stragglers
    assert high - found.step_seconds.value >= parts.without_overlap - parts.exposed
    assert low <= base + parts.with_full_overlap
    assert any("between no overlap" in note and f"{CHOSEN.overlap:.0%}" in note for note in found.notes)


def test_a_rate_that_you_know_is_kept():
    found = ask(1, 64, rate=300)
    assert found.images_per_second.value == pytest.approx(300)
    assert found.images_per_second.interval[1] < 310


def test_a_batch_that_does_not_fit_is_said():
    assert any("does not fit" in note for note in ask(4, 1000).notes)
    assert any("may not fit" in note for note in ask(4, 160).notes)
    assert not any("fit into" in note for note in ask(4, 32).notes)


def test_json_has_numbers_with_intervals_and_no_nan():
    row = json.loads(json.dumps(ask(8).as_dict(), allow_nan=False))
    assert row["kind"] == "predicted" and row["global_batch"] == 512
    assert row["speedup_interval"][0] <= row["speedup"] <= row["speedup_interval"][1]
    assert row["parameters"]["bandwidth_between"]["unit"] == "bytes/s" and row["parameters"]["share"]["source"]


WRONG = [
    ({"workers": 0}, "workers is 0: it must be a whole number, at least 1"),
    ({"workers": -2}, "workers is -2"),
    ({"workers": 2.5}, "workers is 2.5"),
    ({"workers": True}, "workers is True"),
    ({"local_batch": -1}, "local_batch is -1: it must be a number above 0"),
    ({"local_batch": 0}, "local_batch is 0"),
    ({"local_batch": math.nan}, "local_batch is nan"),
    ({"local_batch": math.inf}, "local_batch is inf"),
    ({"local_batch": "64"}, "local_batch is '64'"),
    ({"accumulation": 0}, "accumulation is 0"),
    ({"images": 0}, "images is 0"),
    ({"rate": math.nan}, "nan"),
    ({"slots": -1}, "slots is -1"),
    ({"compression": "zip"}, "compression is 'zip': it must be None or 'float16'"),
    ({"precision": "float64"}, "has no float64: its file describes float32, float16"),
]


def test_wrong_questions():
    for change, says in WRONG:
        with pytest.raises(LabsError) as caught:
            ask(**change)
        assert says in str(caught.value) and "\n" not in str(caught.value), change
        assert caught.value.code == 2


def test_the_model_error_grows_beyond_what_it_was_seen_on():
    near, far = (CHOSEN.unmodelled(workers).interval[1] for workers in (2, 4 * CHOSEN.model_workers))
    assert near == CHOSEN.unmodelled(CHOSEN.model_workers).interval[1] and far == pytest.approx(near ** (3**0.5))
    assert CHOSEN.unmodelled(4, measured=4) is None and CHOSEN.unmodelled(8, measured=4).interval[1] == near
    assert any("compared with up to" in note for note in ask(4 * CHOSEN.model_workers).notes)


def test_unknown_parameter_and_impossible_interval():
    line = roofline(NET, load_machine("cte-power").computes("float32"))
    with pytest.raises(CostError, match="speed is no parameter of this model; they are "):
        Model(line, NET.tensor_bytes, {}).values(speed=1)
    with pytest.raises(CostError, match="is not within its interval"):
        Parameter(1.0, "s", (2.0, 3.0))


def test_each_parameter_widens_the_interval():
    """Without its range the interval of what it enters is narrower; ratios lose what cancels in them."""
    machine = load_machine("v100-ethernet25")
    line, _ = anchored("Unmeasured", NET, machine, "float32", 64, 224, None)
    parameters = machine.parameters | {"unmodelled": CHOSEN.unmodelled(64)}
    whole = with_intervals(Model(line, NET.tensor_bytes, parameters, 8), 64, 64)
    for name in ("bandwidth_between", "overlap", "spread", "unmodelled"):
        fixed = {k: Parameter(p.value, p.unit) if k == name else p for k, p in parameters.items()}
        without = with_intervals(Model(line, NET.tensor_bytes, fixed, 8), 64, 64)
        assert np.ptp(without["step_seconds"].interval) < np.ptp(whole["step_seconds"].interval), name
    relative = {key: np.ptp(whole[key].interval) / whole[key].value for key in ("step_seconds", "efficiency")}
    assert relative["efficiency"] < relative["step_seconds"]
