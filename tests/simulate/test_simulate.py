"""The simulators against their formulas, over grids of sizes; wrong arguments are refused with their names."""

import itertools
import math

import numpy as np
import pytest

from labs.simulate import memory, reduce
from labs.simulate.given import SimulationError
from lessons.averages import sgd, stragglers
from lessons.basic_concepts import laws, pipeline

WORKERS = (1, 2, 3, 4, 5, 8, 13)
SIZES = (0, 1, 2, 3, 7, 16, 100)


# laws


def test_laws_at_their_ends():
    for p in (1, 2, 7, 1000):
        assert laws.amdahl(p, 0) == laws.gustafson(p, 0) == p
        assert laws.amdahl(p, 1) == laws.gustafson(p, 1) == 1
    assert laws.amdahl(10**9, 0.05) == pytest.approx(20) and laws.amdahl(4, 0.1) == pytest.approx(1 / 0.325)
    assert laws.gustafson(4, 0.1) == pytest.approx(3.7)


def test_amdahl_is_the_ratio_of_two_times():
    for p, serial in itertools.product(WORKERS, (0, 0.01, 0.3, 1)):
        seconds = 40 * serial + 40 * (1 - serial) / p
        assert laws.amdahl(p, serial) == pytest.approx(40 / seconds)


# ring and servers


def test_ring_gives_every_worker_the_exact_sum():
    for workers, size in itertools.product(WORKERS, SIZES):
        vectors = np.random.default_rng(workers * 1000 + size).integers(-999, 999, (workers, size))
        steps = reduce.ring(vectors)
        final = steps[-1].vectors if steps else vectors
        assert (final == vectors.sum(axis=0)).all() and final.dtype == vectors.dtype, (workers, size)
        assert [step.phase for step in steps] == ["reduce-scatter"] * (workers - 1) + ["all-gather"] * (workers - 1)


def test_ring_sends_the_bytes_of_the_formula():
    for workers in WORKERS:
        size = 60 * workers  # equal chunks
        sent, received = np.zeros(workers), np.zeros(workers)
        for step in reduce.ring(np.ones((workers, size))):
            assert sorted(send.sender for send in step.sends) == sorted(send.receiver for send in step.sends)
            assert sorted(send.sender for send in step.sends) == list(range(workers))  # all at once, one message each
            assert all(send.receiver == (send.sender + 1) % workers for send in step.sends)
            for send in step.sends:
                sent[send.sender] += send.size
                received[send.receiver] += send.size
        assert np.allclose(sent, 2 * (workers - 1) / workers * size) and np.allclose(received, sent)


def test_ring_does_not_change_what_it_is_given():
    vectors = np.arange(6.0).reshape(2, 3)
    reduce.ring(vectors)
    assert (vectors == np.arange(6.0).reshape(2, 3)).all()


def test_chunks_cover_everything_once():
    for workers, size in itertools.product(WORKERS, SIZES):
        parts = reduce.chunks(size, workers)
        assert [n for part in parts for n in range(size)[part]] == list(range(size))
        sizes = [part.stop - part.start for part in parts]
        assert len(parts) == workers and max(sizes) - min(sizes) <= 1, (workers, size)


def test_costs_follow_their_formulas():
    size, latency, bandwidth = 94e6, 1e-5, 1e10
    assert reduce.ring_seconds(4, size, latency, bandwidth) == pytest.approx(6 * (latency + size / 4 / bandwidth))
    assert reduce.server_seconds(4, size, latency, bandwidth) == pytest.approx(2 * (latency + 4 * size / bandwidth))
    few = reduce.server_seconds(2, size, latency, bandwidth, servers=8)  # a worker's own link
    assert few == pytest.approx(2 * (latency + size / bandwidth))
    assert reduce.ring_seconds(1, size, latency, bandwidth) == reduce.server_seconds(1, size, latency, bandwidth) == 0
    many = [reduce.ring_seconds(k, size, 0, bandwidth) for k in (100, 1000, 10_000)]
    assert max(many) < 2 * size / bandwidth  # without latency the ring hardly notices more workers
    assert reduce.server_seconds(10_000, size, 0, bandwidth) == pytest.approx(10_000 * 2 * size / bandwidth)
    assert reduce.server_seconds(10_000, size, 0, bandwidth, servers=10_000) == pytest.approx(2 * size / bandwidth)


# timelines


def test_pipeline_idles_as_the_bubble_formula_says():
    for devices, parts, backward in itertools.product((1, 2, 3, 4, 8), (1, 2, 4, 7, 32), (0, 1, 2.0)):
        blocks = pipeline.pipelined(devices, 2 * devices, parts, backward)
        assert pipeline.idle(blocks) == pytest.approx((devices - 1) / (parts + devices - 1), abs=1e-12)


def overlaps(blocks):
    for one, other in itertools.combinations(blocks, 2):
        if one.device == other.device and min(one.end, other.end) - max(one.begin, other.begin) > 1e-9:
            return True
    return False


def test_pipeline_keeps_the_order_of_layers():
    for devices, parts in ((1, 1), (4, 1), (4, 3), (3, 8)):
        blocks = pipeline.pipelined(devices, 12, parts)
        assert not overlaps(blocks) and len(blocks) == 2 * devices * parts
        at = {(block.what, block.device, block.part): block for block in blocks}
        for part, device in itertools.product(range(parts), range(devices)):
            forward, backward = at["forward", device, part], at["backward", device, part]
            assert forward.end <= backward.begin + 1e-9
            if device:
                assert at["forward", device - 1, part].end <= forward.begin + 1e-9
                assert backward.end <= at["backward", device - 1, part].begin + 1e-9
        assert sum(b.end - b.begin for b in blocks) == pytest.approx(12 * 3)  # all layers, forward and backward


def test_data_parallel_shares_the_batch_and_adds_the_all_reduce():
    blocks = pipeline.data_parallel(4, 8, backward=2, reduce=0.5)
    assert not overlaps(blocks) and pipeline.length(blocks) == 8 * 3 / 4 + 0.5 and pipeline.idle(blocks) == 0
    assert pipeline.length(pipeline.data_parallel(1, 8)) == 24


# stragglers


def test_barrier_of_exponential_times_follows_the_harmonic_sum():
    for workers in (1, 2, 10, 100):
        times = stragglers.draws(workers, 40_000 // workers + 2000, mean=3, kind="exponential", seed=1)
        error = 6 * 3 * math.pi / math.sqrt(6) / math.sqrt(len(times))  # six standard errors
        assert stragglers.barrier(times) == pytest.approx(stragglers.expected_slowest(workers, 3), abs=error)


def test_drawn_times_have_the_mean_and_spread_asked_for():
    for spread in (0, 0.05, 0.5):
        times = stragglers.draws(10, 20_000, mean=2, spread=spread)
        assert times.shape == (20_000, 10) and (times > 0).all()
        assert times.mean() == pytest.approx(2, rel=0.01) and times.std() == pytest.approx(2 * spread, rel=0.02)


def test_barrier_costs_grow_with_workers_and_vanish_without_spread():
    costs = [stragglers.efficiency(stragglers.draws(k, 500, spread=0.2)) for k in (1, 2, 8, 64)]
    assert costs == sorted(costs, reverse=True) and costs[0] == 1
    assert stragglers.efficiency(stragglers.draws(64, 5, spread=0)) == 1


# SGD


EVEN = np.ones((1, 8))


def sequential(updates, batch=32, rate=0.5, seed=0):
    source, weights = sgd.batches(batch, seed), np.zeros((65, 10))
    losses = [sgd.loss(weights)]
    for _ in range(updates):
        weights = weights - rate * sgd.gradient(weights, next(source))
        losses.append(sgd.loss(weights))
    return weights, losses


def test_gradient_is_the_slope_of_the_loss():
    random = np.random.default_rng(0)
    weights, way = random.normal(size=(65, 10)), random.normal(size=(65, 10))
    rows = np.arange(50)
    slope = (sgd.loss(weights + 1e-5 * way, rows) - sgd.loss(weights - 1e-5 * way, rows)) / 2e-5
    assert (sgd.gradient(weights, rows) * way).sum() == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("train", [sgd.synchronous, sgd.asynchronous])
def test_one_worker_is_sequential_sgd(train):
    times = stragglers.draws(1, 50)
    found = train(1, 50, times)
    weights, losses = sequential(50)
    assert (found.weights == weights).all() and list(found.losses) == losses
    assert np.allclose(found.seconds[1:], np.cumsum(times[:, 0])) and losses[-1] < 0.5 * losses[0]
    assert {work.staleness for work in found.work} == {0}


def test_synchronous_is_sequential_with_the_effective_batch():
    for workers in (2, 4, 8):
        found, losses = sgd.synchronous(workers, 20, EVEN, batch=8), sequential(20, batch=8 * workers)[1]
        epoch = len(sgd.digits()[1]) // (8 * workers)
        same = min(20, epoch)  # then the remainders that are left out differ
        assert np.allclose(found.losses[: same + 1], losses[: same + 1], atol=1e-12)


def test_synchronous_waits_for_the_slowest_and_asynchronous_does_not():
    times = np.array([[1.0, 1.0, 1.0, 4.0]])
    waits, goes = sgd.synchronous(4, 5, times), sgd.asynchronous(4, 26, times)
    assert waits.seconds[-1] == 20 and goes.seconds[-1] <= 8
    by_worker = [sum(work.worker == w for work in goes.work) for w in range(4)]
    assert by_worker[3] < by_worker[0] / 3
    slow = [work.staleness for work in goes.work if work.worker == 3]
    assert min(slow) >= 9 and max(work.staleness for work in goes.work if work.worker != 3) <= 4


def test_staleness_of_equally_fast_workers_is_their_number_less_one():
    found = sgd.asynchronous(8, 100, EVEN)
    assert {work.staleness for work in found.work[8:]} == {7}


def test_stale_gradients_can_break_a_training_that_fresh_ones_do_not():
    fresh, stale = (sgd.asynchronous(k, 300, np.ones((1, 32)), rate=3.0).losses for k in (1, 32))
    assert fresh[-1] < 0.3 and max(stale[20:]) > 5 * max(fresh[20:])


def test_one_step_in_numbers():
    found = sgd.one_step(3, batch=4)
    assert len(np.unique(np.concatenate(found["rows"]))) == 12
    assert np.allclose(found["mean"], found["whole"], atol=1e-15)
    assert all((weights == found["weights"][0]).all() for weights in found["weights"])
    assert not np.allclose(found["gradients"][0], found["gradients"][1])


TIMES = np.ones((3, 4))


@pytest.mark.parametrize("train", [sgd.synchronous, sgd.asynchronous])
def test_fewer_losses_are_some_of_all_losses_and_the_last(train):
    full, some = train(2, 17, TIMES), train(2, 17, TIMES, every=5)
    assert list(some.losses) == [full.losses[k] for k in (0, 5, 10, 15, 17)] and (some.weights == full.weights).all()
    assert list(some.seconds) == [full.seconds[k] for k in (0, 5, 10, 15, 17)]


# memory


def test_memory_by_hand():
    gpt3 = memory.step(175e9, 0, 1, slots=0, bytes_per_value=2)
    assert gpt3["weights"] == 350e9 and gpt3["activations"] == 0
    adam = memory.step(10, 100, 3, slots=memory.SLOTS["Adam"])
    assert adam == {"weights": 40, "gradients": 40, "optimizer": 80, "activations": 300}
    assert memory.step(10, 100, 3, slots=2, bytes_per_value=2)["activations"] == 150


def test_sharding_divides_what_it_names_and_nothing_else():
    for sharded in memory.SHARDED:
        one, four = memory.step(10, 100, 3), memory.step(10, 100, 3, devices=4, sharded=sharded)
        assert {part for part in one if four[part] == one[part] / 4} == set(memory.SHARDED[sharded])
        assert all(four[part] == one[part] for part in one if part not in memory.SHARDED[sharded])


# wrong arguments


WRONG = [
    (lambda: laws.amdahl(0, 0.1), "workers"),
    (lambda: laws.amdahl(2, 1.5), "serial"),
    (lambda: laws.gustafson(2, -0.1), "serial"),
    (lambda: laws.gustafson(2.5, 0.1), "workers"),
    (lambda: laws.amdahl(True, 0.1), "workers"),
    (lambda: reduce.ring([]), "vectors"),
    (lambda: reduce.ring([1, 2]), "vectors"),
    (lambda: reduce.ring([[1.0, float("nan")]]), "vectors"),
    (lambda: reduce.ring([["a"]]), "vectors"),
    (lambda: reduce.chunks(-1, 2), "size"),
    (lambda: reduce.chunks(4, 0), "workers"),
    (lambda: reduce.ring_seconds(2, 1, -1, 1), "latency"),
    (lambda: reduce.ring_seconds(2, 1, 0, 0), "bandwidth"),
    (lambda: reduce.server_seconds(2, 1, 0, -1), "bandwidth"),
    (lambda: pipeline.pipelined(0, 4), "devices"),
    (lambda: pipeline.pipelined(4, 6), "6 layers on 4 devices"),
    (lambda: pipeline.pipelined(2, 4, 0), "parts"),
    (lambda: pipeline.pipelined(2, 4, 1, -1), "backward"),
    (lambda: pipeline.data_parallel(2, 0), "layers"),
    (lambda: pipeline.data_parallel(2, 2, reduce=-1), "reduce"),
    (lambda: stragglers.draws(0, 1), "workers"),
    (lambda: stragglers.draws(1, 1, mean=0), "mean"),
    (lambda: stragglers.draws(1, 1, spread=-1), "spread"),
    (lambda: stragglers.draws(1, 1, kind="normal"), "kind"),
    (lambda: stragglers.expected_slowest(0), "workers"),
    (lambda: stragglers.draws(1, 1, seed=-1), "seed"),
    (lambda: sgd.synchronous(0, 1, TIMES), "workers"),
    (lambda: sgd.synchronous(5, 1, TIMES), "times"),
    (lambda: sgd.asynchronous(2, 0, TIMES), "updates"),
    (lambda: sgd.asynchronous(2, 1, -TIMES), "times"),
    (lambda: sgd.asynchronous(2, 1, [1, 2]), "times"),
    (lambda: sgd.asynchronous(2, 1, TIMES, rate=0), "rate"),
    (lambda: sgd.synchronous(2, 1, TIMES, batch=0), "batch"),
    (lambda: sgd.synchronous(2, 1, TIMES, batch=5000), "batch"),
    (lambda: sgd.one_step(1000, 4), "batch"),
    (lambda: sgd.synchronous(2, 1, TIMES, every=0), "every"),
    (lambda: memory.step(-1, 1, 1), "parameters"),
    (lambda: memory.step(1, float("nan"), 1), "activations"),
    (lambda: memory.step(1, 1, 0), "local_batch"),
    (lambda: memory.step(1, 1, 1, slots=-1), "slots"),
    (lambda: memory.step(1, 1, 1, devices=0), "devices"),
    (lambda: memory.step(1, 1, 1, bytes_per_value=0), "bytes_per_value"),
    (lambda: memory.step(1, 1, 1, sharded="weights"), "sharded"),
]


def test_a_wrong_argument_is_named():
    for number, (call, name) in enumerate(WRONG):
        with pytest.raises(SimulationError) as problem:
            call()
        assert str(problem.value).startswith(name) and str(problem.value).endswith("."), (number, name)
        assert problem.value.code == 2
