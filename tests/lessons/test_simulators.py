"""The simulators against their formulas, over grids of sizes."""

import itertools
import math
import re

import numpy as np
import pytest
from tree import ROOT

from labs.errors import UseError
from lessons import memory, reduce
from lessons.averages_and_rings import sgd, stragglers
from lessons.basic_concepts import pipeline

WORKERS = (1, 2, 3, 4, 5, 8, 13)


def test_ring_gives_every_worker_the_exact_sum_with_the_messages_of_the_formula():
    for workers, size in itertools.product(WORKERS, (0, 1, 2, 3, 7, 16, 100)):
        lengths = [len(part) for part in np.array_split(np.arange(size), workers)]
        vectors = np.random.default_rng(workers * 1000 + size).integers(-999, 999, (workers, size))
        before = vectors.copy()
        steps = reduce.ring(vectors)
        final = steps[-1].vectors if steps else vectors
        assert (vectors == before).all() and final.dtype == vectors.dtype
        assert (final == vectors.sum(axis=0)).all(), (workers, size)
        assert [step.phase for step in steps] == ["reduce-scatter"] * (workers - 1) + ["all-gather"] * (workers - 1)
        sent = np.zeros(workers)
        for step in steps:
            assert [send.sender for send in step.sends] == list(range(workers))  # all at once, one message each
            for send in step.sends:
                assert send.receiver == (send.sender + 1) % workers and send.size == lengths[send.chunk]
                sent[send.sender] += send.size
        if size % workers == 0:
            assert sent == pytest.approx([reduce.ring_bytes(workers, size)] * workers)


def test_costs_are_those_of_the_busiest_link():
    random = np.random.default_rng(2)
    for workers, servers in itertools.product(WORKERS, (1, 3, 8)):
        size, latency, bandwidth = random.uniform(1, 9, 3)
        messages = len(reduce.ring(np.ones((workers, workers))))
        ring = reduce.ring_seconds(workers, size, latency, bandwidth)
        assert ring == pytest.approx(messages * (latency + size / workers / bandwidth))
        busiest = max(size, workers * size / servers)  # a worker's own link, or a server's
        server = reduce.server_seconds(workers, size, latency, bandwidth, servers)
        assert server == pytest.approx(2 * (latency + busiest / bandwidth))


def test_messages_of_a_tree_and_of_a_ring_as_the_text_of_notebook_02_says():
    text = re.sub(r"\n# ?", " ", (ROOT / "solutions/02_averages_and_rings.py").read_text())
    messages = r"takes 2 log2 K successive messages .*?: for (\d+) workers, (\d+) instead of (\d+)"
    workers, tree, ring = map(int, re.search(messages, text).groups())
    assert (tree, ring) == (2 * math.log2(workers), 2 * (workers - 1))


def overlaps(blocks):
    pairs = [pair for pair in itertools.combinations(blocks, 2) if pair[0].device == pair[1].device]
    return any(min(one.end, other.end) - max(one.begin, other.begin) > 1e-9 for one, other in pairs)


def test_pipeline_keeps_the_order_of_layers_and_idles_as_the_bubble_formula_says():
    for devices, parts in itertools.product((1, 2, 3, 4), (1, 2, 3, 8)):
        blocks = pipeline.pipelined(devices, 12, parts)
        assert pipeline.idle(blocks) == pytest.approx((devices - 1) / (parts + devices - 1), abs=1e-12)
        assert not overlaps(blocks) and len(blocks) == 2 * devices * parts
        assert sum(b.end - b.begin for b in blocks) == pytest.approx(12 * 3)  # all layers; backward takes 2
        at = {(block.what, block.device, block.part): block for block in blocks}
        for (what, device, part), block in at.items():
            if what == "backward":
                assert at["forward", device, part].end <= block.begin + 1e-9
            if device:
                above, below = at[what, device - 1, part], block
                first, then = (above, below) if what == "forward" else (below, above)
                assert first.end <= then.begin + 1e-9


def test_data_parallel_shares_the_batch_and_adds_the_all_reduce():
    blocks = pipeline.data_parallel(4, 8)
    assert not overlaps(blocks) and pipeline.length(blocks) == 8 * 3 / 4 + 0.5 and pipeline.idle(blocks) == 0
    assert pipeline.length(pipeline.data_parallel(1, 8)) == 24


def test_drawn_times_have_their_mean_and_spread_and_the_slowest_sets_the_pace():
    for spread in (0, 0.5):
        times = stragglers.draws(10, 20_000, spread=spread)
        assert times.shape == (20_000, 10) and (times > 0).all()
        assert times.mean() == pytest.approx(1, rel=0.01) and times.std() == pytest.approx(spread, rel=0.02)
    times = np.array([[1.0, 3.0], [2.0, 2.0]])
    assert stragglers.barrier(times) == 2.5 and stragglers.efficiency(times) == 2 / 2.5


# SGD


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
    rows = np.arange(len(sgd.digits()[1]))
    slope = (sgd.loss(weights + 1e-5 * way) - sgd.loss(weights - 1e-5 * way)) / 2e-5
    assert (sgd.gradient(weights, rows) * way).sum() == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("train", [sgd.synchronous, sgd.asynchronous])
def test_one_worker_is_sequential_sgd_and_fewer_losses_are_some_of_all_and_the_last(train):
    times = stragglers.draws(1, 50)
    found, some = train(1, 50, times), train(1, 50, times, every=15)
    weights, losses = sequential(50)
    assert (found.weights == weights).all() and list(found.losses) == losses
    assert np.allclose(found.seconds[1:], np.cumsum(times[:, 0])) and losses[-1] < 0.5 * losses[0]
    assert {work.staleness for work in found.work} == {0}
    kept = [0, 15, 30, 45, 50]
    assert list(some.losses) == [losses[k] for k in kept] and list(some.seconds) == [found.seconds[k] for k in kept]


def test_synchronous_is_sequential_with_the_effective_batch():
    for workers in (2, 4, 8):
        found, losses = sgd.synchronous(workers, 20, np.ones((1, 8)), batch=8), sequential(20, batch=8 * workers)[1]
        assert np.allclose(found.losses, losses, atol=1e-12)  # within one epoch, before what is left out differs
    one = sgd.one_step(3, batch=4)
    assert len(np.unique(np.concatenate(one["rows"]))) == 12 and np.allclose(one["mean"], one["whole"], atol=1e-15)


def test_synchronous_waits_for_the_slowest_and_asynchronous_does_not():
    times = np.array([[1.0, 1.0, 1.0, 4.0]])
    waits, goes = sgd.synchronous(4, 5, times), sgd.asynchronous(4, 26, times)
    assert waits.seconds[-1] == 20 and goes.seconds[-1] <= 8
    slow = [work.staleness for work in goes.work if work.worker == 3]
    assert min(slow) >= 9 and max(work.staleness for work in goes.work if work.worker != 3) <= 4
    assert {work.staleness for work in sgd.asynchronous(8, 100, np.ones((1, 8))).work[8:]} == {7}


# memory


def test_memory_by_hand():
    adam = memory.step(10, 100, 3, slots=memory.SLOTS["Adam"])
    assert adam == {"weights": 40, "gradients": 40, "optimizer": 80, "activations": 300}
    assert memory.step(10, 100, 3, slots=2, bytes_per_value=2)["activations"] == 150
    for sharded, parts in memory.SHARDED.items():
        one, four = memory.step(10, 100, 3), memory.step(10, 100, 3, devices=4, sharded=sharded)
        assert four == {part: size / 4 if part in parts else size for part, size in one.items()}


def test_a_batch_is_not_larger_than_an_epoch():
    with pytest.raises(UseError, match="^batch "):
        next(sgd.batches(5000))
