"""The experiments of notebook 22: they compute what they say, and its pictures say what they show."""

import json
import re
import types
from functools import partial

import numpy as np
import pytest
from figures import sound
from tree import ROOT

from labs import jobs
from lessons import connected
from lessons.large_batches import late_workers
from lessons.when_workers_do_not_help import compared, equal_ranks, pictures, small, steps, trials

# Local SGD on real ranks


@pytest.mark.more("real trainings of notebooks 20 to 34")
def test_local_sgd_on_real_ranks_and_on_played_ones(needs_horovod, tmp_path):
    options = {"name": "local_sgd", "ranks": 2, "launcher": "mpiexec", "runs": tmp_path, "show": False}
    job = jobs.run(ROOT / "tests/programs/local_sgd_ranks.py", tmp_path, **options, env={"CUDA_VISIBLE_DEVICES": ""})
    assert job.state == "finished", job.explain()
    ranks = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(2)]
    assert ranks[0]["drawn"] != ranks[1]["drawn"], "the seeds are to differ"
    for rank in ranks:
        for case in ("plain", "momentum"):  # with k = 1 it is synchronous SGD
            found = rank["cases"][case]
            assert found["moved"] > 0.05 and not found["frozen_moved"] and found["identical"]
            assert found["against_averaged_gradients"] < 1e-5 and found["against_one_process"] < 1e-5
        third = rank["cases"]["every 3rd"]
        assert third["against_averaged_gradients"] > 1e-4 and third["identical"] and not third["frozen_moved"]
    world = connected.World(2)
    function = connected.definitions(ROOT / "solutions/scripts/local_sgd.py", world)["local_sgd"]
    with connected.placed(world):
        cases = equal_ranks.CASES
        played = [world.play(lambda: equal_ranks.train(function, world.rank(), **case)) for case in cases]  # noqa: B023
    for real, case in zip(zip(*(rank["check"] for rank in ranks), strict=True), played, strict=True):
        for one, other in zip(real, case, strict=True):
            assert np.allclose(one.pop("weights"), other.pop("weights"), rtol=1e-5, atol=1e-6) and one == other


# The small network


def test_gradient_is_the_slope_of_the_loss():
    train, weights = small.digits("train"), small.begin(0).astype(float)
    part = small.Digits(train.images[:20].astype(float), train.labels[:20])
    way = np.random.default_rng(0).normal(size=small.SIZE)
    slope = (small.loss(weights + 1e-6 * way, part) - small.loss(weights - 1e-6 * way, part)) / 2e-6
    gradient = small.gradient(weights[None], part.images[None], part.labels[None])[0]
    assert gradient @ way == pytest.approx(slope, rel=1e-6)


def test_workers_that_average_at_every_step_are_one_training():
    """k = 1 on 8 workers with 8 images each is one training with the 64 images together."""
    of_workers = trials.shards(8, "shuffled")
    together = [small.batches(8, (0, worker), numbers) for worker, numbers in enumerate(of_workers)]
    weights, train = small.begin(0), small.digits("train")
    for _ in range(40):
        numbers = np.concatenate([next(source) for source in together])
        weights = weights - 0.2 * small.gradient(weights, train.images[numbers], train.labels[numbers])
    accuracy = trials.local_sgd(1, of_workers, steps=40, rate=0.2)
    assert accuracy == pytest.approx(float(small.accuracy(weights, small.digits("test"))), abs=0.005)


def test_squares_of_local_and_mean_gradients_obey_the_formula():
    """At fixed weights (rate 0) noise and signal are those of the gradients of all single images."""
    found = trials.squares(workers=8, batch=16, rate=0.0, steps=400)
    train = small.digits("train")
    weights = np.broadcast_to(small.begin(0), (small.TRAIN, small.SIZE))
    single = small.gradient(weights, train.images[:, None], train.labels[:, None])
    signal, noise = (single.mean(0) ** 2).sum(), ((single - single.mean(0)) ** 2).sum(1).mean()
    assert found["local"].mean() == pytest.approx(signal + noise / 16, rel=0.05)
    assert found["mean"].mean() == pytest.approx(signal + noise / 128, rel=0.05)


def test_a_barrier_waits_and_a_backup_worker_does_not():
    waits = late_workers.train(steps=12, late_ms=40)
    goes_on = late_workers.train(steps=12, late_ms=400, backup=1)
    assert waits["used"] == [12] * 4 and min(waits["seconds"]) >= 0.04
    assert sum(goes_on["used"]) == 12 * 3 and goes_on["used"][3] < min(goes_on["used"][:3])


def test_a_gradient_of_earlier_weights_is_thrown_away(monkeypatch):
    work = late_workers._work

    def labelled(pipe, numbers, pause, seed):
        """The last worker's gradients are of the weights of a step before."""
        send = lambda said: pipe.send((said[0] - (seed[1] == 3), said[1]))  # noqa: E731
        work(types.SimpleNamespace(recv=pipe.recv, send=send), numbers, pause, seed)

    monkeypatch.setattr(late_workers, "_work", labelled)
    assert late_workers.train(steps=40, late_ms=0, backup=1)["used"] == [40] * 3 + [0]


# Steps of ranks

SMALL = [0.004, 0.0042], [0.003] * 2, [0.0032] * 2, [0.006, 0.0061]
LARGE = [0.06] * 2, [0.034] * 2, [0.036] * 2, [0.04, 0.041]


def measured(large=LARGE, oversubscribed=False):
    """What steps.measure gives: seconds of each round with 32 images, half of them, both at once, with exchange."""
    kinds = "alone 32", "alone 16", "together", "exchange"
    seconds = {filters: dict(zip(kinds, of, strict=True)) for filters, of in ((2, SMALL), (64, large))}
    return {"oversubscribed": oversubscribed, "seconds": seconds}


NOISY = measured(large=(*LARGE[:2], [0.030, 0.031], LARGE[3]))  # ranks together are quicker than one alone


def speedup(start, per_image, exchange, ranks):
    return (start + 32 * per_image) / (start + 32 * per_image / ranks + exchange)


def test_parts_of_a_step_add_up_to_it_in_each_round_and_shares_are_means_over_rounds():
    parts = steps.parts(measured())[64]
    assert [sum(each) for each in zip(*parts.values(), strict=True)] == pytest.approx([0.04, 0.041])
    assert list(parts.values())[:2] == [pytest.approx([0.008] * 2), pytest.approx([0.026] * 2)]
    shares = steps.shares(measured())[64]
    share, (low, high) = shares["exchange and waiting"]
    assert share == pytest.approx((0.004 / 0.04 + 0.005 / 0.041) / 2) and low < share < high


def test_speedups_have_their_interval_and_what_cannot_be_is_too_noisy():
    value, low, high = map(float, re.findall(r"[\d.]+", steps.speedups(measured(), speedup, 8)[64]))
    assert low < value < high and value == pytest.approx(0.06 / 0.021, rel=0.01)
    assert steps.speedups(NOISY, speedup, 8)[64] == steps.NOISY == "too noisy: measure again"


# Tables


def test_tables_pair_the_repeats_of_each_k_and_name_the_most_accurate_batch(tmp_path):
    rest, log = '"means": 1, "accuracy": 0.9, "identical": true}', tmp_path / "log"
    pairs = (1, 0.02), (4, 0.01), (1, 0.05), (4, 0.02)
    log.write_text("Rank 0 of 2" + "".join(f'\nrank 0: {{"k": {k}, "step_seconds": {s}, {rest}' for k, s in pairs))
    gains = compared.by_k(log)
    assert list(gains) == [4] and gains[4].value == pytest.approx((2 * 2.5) ** 0.5)
    trained = {k: [{"seconds": 1.0, "steps": 20, "loss": 0.5, "test": test}] * 3 for k, test in ((8, 0.978), (32, 0.9))}
    assert compared.by_batch(trained) == 8


# Pictures

BY = {"shuffled": {1: [0.97, 0.96, 0.97], 128: [0.96] * 3}, "sorted": {1: [0.9, 0.91, 0.9], 128: [0.6, 0.5, 0.7]}}
ROWS = [{"batch": 2, "steps": [340, 350]}, {"batch": 128, "steps": [30, 28]}, {"batch": 512, "steps": [26, 27]}]
NOISE = [25, 75], [1.2, 0.1], [[80, 90, 70], [300, -1, 400]], 24


LOCAL = partial(pictures.accuracy_by, xlabel="k", title="local SGD", note=pictures.ONE_PROCESS)


def test_pictures_of_why_scaling_fails_have_their_stamp_and_numbers_in_words():
    for kind, draw, given, *words in (
        ("measured", pictures.pays, (measured(),), "MPI: 1.48 ("),
        ("measured", pictures.step_parts, (measured(),), "MPI: start of operations 20% ("),
        ("measured", pictures.step_parts, (measured(oversubscribed=True),), "MPI, oversubs"),
        ("measured", pictures.step_parts, (NOISY,), "MPI: start of", "too noisy to tell 'sharing"),
        ("simulated", LOCAL, (BY,), "sorted: 0.903", "0.600", "3 seeds"),
        ("measured", pictures.critical, (ROWS, (27.0, 24.0)), "345", "B_crit 24 images"),
        ("measured", pictures.critical, (ROWS, None), "345"),
        ("simulated", pictures.noise, NOISE, "from 1.2 to 0.1", "80 (", "350 (", "fit: 24"),
    ):
        sound(draw(*given), kind, *words)
