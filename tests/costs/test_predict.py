"""The terms of the cost model against formulas and simulators, and what predictions must obey whatever the machine."""

import math

import numpy as np
import pytest
from simulated_study import facts

from labs.costs import CostError, Parameter, load, predict
from labs.costs.communication import Fabric, all_reduce_seconds, buckets, exposed
from labs.costs.computation import roofline, values
from labs.costs.memory import largest_batch
from labs.costs.stragglers import slowest
from labs.errors import LabsError
from labs.simulate import reduce, stragglers

NET = facts("Unmeasured", image_size=224)
MB = 10**6


def ask(workers=8, local_batch=64, machine="cte-power", network=NET, **options):
    return predict(network.model, network, load(machine), workers, local_batch, facts_of=lambda *_: network, **options)


# Stragglers


@pytest.mark.parametrize("workers", [2, 8, 64, 512])
@pytest.mark.parametrize("spread", [0.02, 0.1, 0.5])
def test_slowest_worker_is_that_of_the_simulator(workers, spread):
    drawn = stragglers.barrier(stragglers.draws(workers, 4000, spread=spread, seed=1))
    assert slowest(workers, spread) - 1 == pytest.approx(drawn - 1, rel=0.04)


def test_slowest_of_exponential_times_is_the_harmonic_number():
    for workers in (2, 10, 1000):
        assert slowest(workers, 1.0) == pytest.approx(stragglers.expected_slowest(workers), rel=1e-4)


def test_one_worker_or_no_spread_waits_for_nobody():
    assert slowest(1, 0.5) == slowest(1000, 0.0) == 1.0
    assert 1 < slowest(2, 0.01) < slowest(4096, 0.01) < 1.06


# All-reduce


def test_all_reduce_in_one_node_is_the_simulators_ring():
    fabric = Fabric(8, 1e-5, 40e9, 5e-6, 1e9)
    assert all_reduce_seconds(8, 100 * MB, fabric) == reduce.ring_seconds(8, 100 * MB, 1e-5, 40e9)
    assert all_reduce_seconds(1, 100 * MB, fabric) == 0


def test_two_levels_add_up_and_one_ring_goes_at_the_slowest_link():
    two = Fabric(4, 1e-5, 40e9, 5e-6, 2e9)
    assert all_reduce_seconds(64, 100 * MB, two) == pytest.approx(
        reduce.ring_seconds(4, 100 * MB, 1e-5, 40e9) + reduce.ring_seconds(16, 100 * MB, 5e-6, 2e9)
    )
    ring = Fabric(4, 1e-5, 40e9, 5e-6, 2e9, "ring")
    assert all_reduce_seconds(64, 100 * MB, ring) == reduce.ring_seconds(64, 100 * MB, 1e-5, 2e9)
    tree = Fabric(4, 1e-5, 40e9, 5e-6, 2e9, "tree")
    expected = 2 * 3 * 1e-5 + 2 * 4 * 5e-6 + 2 * 63 / 64 * 100 * MB / 2e9
    assert all_reduce_seconds(64, 100 * MB, tree) == pytest.approx(expected)


def test_a_trees_latency_grows_with_the_logarithm_of_the_nodes():
    small = [all_reduce_seconds(k, 4, Fabric(4, 1e-5, 40e9, 5e-6, 2e9, "tree")) for k in (256, 4096)]
    assert small[1] - small[0] == pytest.approx(2 * 4 * 5e-6, rel=1e-3)


def test_more_bandwidth_or_less_latency_is_never_slower():
    times = [
        all_reduce_seconds(32, 100 * MB, Fabric(4, 1e-5, 40e9, 1e-5, b, a))
        for a in ("two-level", "ring", "tree")
        for b in (1e9, 2e9, 80e9)
    ]
    assert times[0] > times[1] > times[2] and times[3] > times[4] >= times[5] and times[6] > times[7] >= times[8]


def test_unknown_algorithm():
    with pytest.raises(CostError, match="'star' is not known: choose one of two-level, ring, tree"):
        all_reduce_seconds(4, 1, Fabric(2, algorithm="star"))


def test_buckets_are_filled_from_the_last_tensor_on():
    assert buckets([10, 20, 30, 40], 60) == [40, 60]
    assert buckets([10, 20, 30, 40], 100) == [100]
    assert buckets([10, 20, 300, 40], 60) == [40, 300, 30]
    assert buckets([1, 2, 3], 0) == [3, 2, 1]
    assert sum(buckets(NET.tensor_bytes)) == NET.gradient_bytes


def test_exposed_part_lies_between_no_and_full_overlap():
    slow = Fabric(1, 0, 1, 1e-5, 1e9)
    total, none, full = exposed(16, NET.tensor_bytes, slow, 0.2, cycle=0)
    assert total == pytest.approx(sum(all_reduce_seconds(16, size, slow) for size in buckets(NET.tensor_bytes)))
    assert none == pytest.approx(total)
    assert 0 <= full <= none
    # More bytes than backward has time for: what is left over is at least their difference.
    assert full >= total - 0.2 - 1e-9
    # A long backward hides all but the first layer's message.
    assert exposed(16, NET.tensor_bytes, slow, 100.0, cycle=0)[2] < 0.02 * total


def test_the_last_message_waits_two_cycles():
    fast = Fabric(8, 0, 1e15)
    assert exposed(8, NET.tensor_bytes, fast, 1.0, cycle=0.005)[2] == pytest.approx(0.01, rel=1e-3)


def test_without_fusion_every_tensor_pays_the_latency():
    fabric = Fabric(1, 0, 1, 1e-3, 1e12)
    fused, single = (exposed(4, NET.tensor_bytes, fabric, 0.0, threshold)[0] for threshold in (2**27, 0))
    assert single / fused == pytest.approx(len(NET.tensor_bytes), rel=0.05)


# Computation


def test_roofline_of_parts():
    device = {"peak": 1e13, "share": 0.5, "memory_bandwidth": 1e12, "passes": 10, "overhead": 1e-4}
    device = {name: Parameter(value, "") for name, value in device.items()}
    line = roofline(NET, device)
    expected = 160 * 1e-4 + 32 * (6 * 4e9 / 5e12 + 80e6 * 10 / 1e12)
    assert line.seconds(32, values(line.parameters)) == pytest.approx(expected)
    half = roofline(NET, device, "float16")
    assert half.activation_bytes == line.activation_bytes / 2


def test_largest_batch_fills_the_memory():
    found = largest_batch(NET, 16e9, slots=1)
    assert found.value == int((0.92 * 16e9 - 4 * 3 * 25e6) / 80e6)
    assert found.interval[0] < found.value < found.interval[1]
    assert largest_batch(NET, 16e9, "float16").value > 1.9 * found.value
    assert largest_batch(NET, 16e9, slots=2).value < found.value
    assert largest_batch(NET, 16e9, workers=2).value < found.value
    assert largest_batch(NET, 1e8).value == 0


# Predictions


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
    assert found.epoch_seconds.value == pytest.approx(math.ceil(50_000 / images) * step)
    parts = found.breakdown
    assert step == pytest.approx(parts.computation + parts.stragglers + parts.exposed)
    assert parts.with_full_overlap <= parts.exposed <= parts.without_overlap
    for name, quantity in found.quantities.items():
        assert quantity.interval[0] < quantity.value < quantity.interval[1], name


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
    assert any("between no overlap" in note and "85%" in note for note in found.notes)


def test_a_rate_that_you_know_is_kept():
    found = ask(1, 64, rate=300)
    assert found.images_per_second.value == pytest.approx(300)
    assert found.images_per_second.interval[1] < 310


def test_a_batch_that_does_not_fit_is_said():
    assert any("does not fit" in note for note in ask(4, 1000).notes)
    assert any("may not fit" in note for note in ask(4, 160).notes)
    assert not any("fit into" in note for note in ask(4, 32).notes)


def test_json_has_numbers_with_intervals_and_no_nan():
    import json

    row = json.loads(json.dumps(ask(8).as_dict(), allow_nan=False))
    assert row["kind"] == "predicted" and row["global_batch"] == 512
    assert row["speedup_interval"][0] <= row["speedup"] <= row["speedup_interval"][1]
    assert row["parameters"]["bandwidth_between"]["unit"] == "bytes/s" and row["parameters"]["share"]["source"]


@pytest.mark.parametrize(
    "change, says",
    [
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
    ],
)
def test_wrong_questions(change, says):
    with pytest.raises(LabsError) as caught:
        ask(**change)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_unknown_parameter_and_impossible_interval():
    from labs.costs.model import Model

    line = roofline(NET, load("cte-power").computes("float32"))
    with pytest.raises(CostError, match="speed is no parameter of this model; they are "):
        Model(line, NET.tensor_bytes, {}).values(speed=1)
    with pytest.raises(CostError, match="is not within its interval"):
        Parameter(1.0, "s", (2.0, 3.0))


def test_each_parameter_widens_the_interval():
    """Without its range the interval of what it enters is narrower; ratios lose what cancels in them."""
    from labs.costs.anchor import anchored
    from labs.costs.model import Model
    from labs.costs.predict import with_intervals

    machine = load("v100-ethernet25")
    line, _ = anchored("Unmeasured", NET, machine, "float32", 64, 224, None)
    whole = with_intervals(Model(line, NET.tensor_bytes, machine.parameters, 8), 64, 64)
    for name in ("bandwidth_between", "overlap", "spread"):
        fixed = {k: Parameter(p.value, p.unit) if k == name else p for k, p in machine.parameters.items()}
        without = with_intervals(Model(line, NET.tensor_bytes, fixed, 8), 64, 64)
        assert np.ptp(without["step_seconds"].interval) < np.ptp(whole["step_seconds"].interval), name
    relative = {key: np.ptp(whole[key].interval) / whole[key].value for key in ("step_seconds", "efficiency")}
    assert relative["efficiency"] < relative["step_seconds"]
