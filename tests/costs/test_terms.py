"""The terms of the cost model against formulas and simulators."""

import itertools

import pytest
from simulated_study import facts

from labs.costs import CostError, Parameter
from labs.costs.communication import Fabric, all_reduce_seconds, buckets, exposed
from labs.costs.computation import roofline, values
from labs.costs.memory import largest_batch
from labs.costs.stragglers import slowest
from labs.simulate import reduce
from lessons.averages import stragglers

NET = facts("Unmeasured", image_size=224)
MB = 10**6


# Stragglers


def test_slowest_worker_is_that_of_the_simulator():
    for workers, spread in itertools.product((2, 8, 64, 512), (0.02, 0.1, 0.5)):
        drawn = stragglers.barrier(stragglers.draws(workers, 4000, spread=spread, seed=1))
        assert slowest(workers, spread) - 1 == pytest.approx(drawn - 1, rel=0.04), (workers, spread)


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
