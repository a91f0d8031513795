"""What shows that the answers keyed in notebooks 01, 02, 02b and 11 are true, without a network's training."""

from itertools import islice
from math import inf
from statistics import fmean

import numpy as np
import pytest

from labs import recorded
from labs.results import log, metrics
from labs.simulate import reduce
from lessons.averages import sgd, stragglers
from lessons.basic_concepts import laws


def test_only_other_devices_give_a_factor_above_the_growth_in_number():
    rows = {(row["hardware"], row["devices"]): row for row in recorded.imagenet() if row["devices"]}
    first, last = rows["P100", 8], rows["V100", 2048]
    gain = {key: first["minutes"] / row["minutes"] / (row["devices"] / 8) for key, row in rows.items()}
    assert gain["V100", 2048] == pytest.approx(1450 / 256, rel=1e-3)
    assert {key for key in gain if gain[key] > 1} == {key for key in gain if key[0] != "P100"}
    assert abs(first["top1"] - last["top1"]) < 0.3, "both learned nearly the same"


def test_in_a_log_the_first_epoch_is_longer_than_all_others_and_the_shortest_is_shorter_than_their_mean():
    for run in log.read(recorded.CTE_POWER):
        (first, *others) = (epoch.seconds for epoch in run.repeats[0])
        assert first > max(others) and len(others) == 4
        assert fmean([first, *others]) > max(others), "so the mean of all five is longer than any further epoch"
    for path in recorded.laptop():
        (first, *others) = (epoch.seconds for epoch in log.read(path)[0].repeats[0])
        assert first > max(others) and min(others) < fmean(others)


def test_each_gpu_of_the_recorded_study_gets_256_images_in_a_step_and_a_share_of_an_epoch():
    runs = log.read(recorded.CTE_POWER)
    assert [run.workers for run in runs] == [1, 2, 4]
    assert [run.configuration.global_batch / run.workers for run in runs] == [256] * 3
    assert {metrics.scaling(run, runs[0]) for run in runs[1:]} == {"weak"}
    assert [run.steps for run in runs] == [-(-50_000 // (256 * run.workers)) for run in runs], (
        "one pass for all together"
    )


def test_a_batch_16_times_as_large_has_a_quarter_of_the_error_and_a_sixteenth_of_the_updates():
    start, full = np.zeros((65, 10)), sgd.gradient(np.zeros((65, 10)))
    error = {
        size: np.mean([np.linalg.norm(sgd.gradient(start, rows) - full) for rows in islice(sgd.batches(size), 300)])
        for size in (4, 64)
    }
    assert 3.6 < error[4] / error[64] < 4.4 and error[64] > 0.1 * np.linalg.norm(full)
    updates = {size: 1792 // size for size in (4, 64)}
    losses = {n: sgd.synchronous(1, updates[n], np.ones((1, 1)), batch=n, every=updates[n]).losses[-1] for n in updates}
    assert updates[4] == 16 * updates[64] and losses[64] > 1.5 * losses[4], "the same samples are read, once"


def test_among_64_equal_workers_another_one_is_late_in_each_step_and_its_delay_is_all_that_counts():
    times = stragglers.draws(64, steps=2000, spread=0.1)
    slowest, last = times.max(axis=1), times.argmax(axis=1)
    assert slowest.mean() > 1.2, "so the steps do not even out"
    assert abs(times.mean(axis=0) - 1).max() < 0.01, "no worker is slower than the others"
    assert set(last) == set(range(64)) and np.bincount(last).max() < 0.04 * len(times)
    without = np.delete(times, np.bincount(last).argmax(), axis=1)
    assert without.max(axis=1).mean() > 1.2, "nor would it help to leave one out"
    assert 1 + np.maximum(times - 1, 0).sum(axis=1).mean() > 3, "if delays added up, a step would be far longer"


def test_slow_workers_speak_for_asynchronous_sgd_and_large_rates_with_equal_workers_for_synchronous():
    def race(train, updates, slow, rate):
        history = train(8, updates, np.array([[1.0] * 7 + [slow]]), rate=rate)
        return next((s for s, loss in zip(history.seconds, history.losses, strict=True) if loss <= 0.5), inf)

    slows = (1, 8)
    waits = {(slow, rate): race(sgd.synchronous, 100, slow, rate) for slow in slows for rate in (0.5, 4.0)}
    never = {(slow, rate): race(sgd.asynchronous, 500, slow, rate) for slow in slows for rate in (0.5, 4.0)}
    assert never[1, 0.5] < waits[1, 0.5] and never[8, 0.5] < waits[8, 0.5] and never[8, 4.0] < waits[8, 4.0]
    assert waits[1, 4.0] < never[1, 4.0], "asynchronous SGD is not always first"
    assert max(never.values()) < inf, "and it does train"
    for rate in (0.5, 4.0):
        assert waits[8, rate] == 8 * waits[1, rate] and never[8, rate] < 2 * never[1, rate], "one kind waits"


def test_with_256_workers_a_servers_link_limits_94_mb_and_the_rings_messages_limit_4_kb():
    link = {"latency": 10e-6, "bandwidth": 10e9}
    free = {"without latency": {**link, "latency": 0}, "without limit": {**link, "bandwidth": 1e15}}
    server, ring = (
        lambda size, link=link, f=f: f(256, size, **link) for f in (reduce.server_seconds, reduce.ring_seconds)
    )
    assert server(94e6, free["without latency"]) > 0.99 * server(94e6) > 100 * ring(94e6)
    assert ring(4e3, free["without limit"]) > 0.99 * ring(4e3) > 10 * server(4e3)
    assert len(reduce.ring(np.ones((256, 256)))) == 510
    assert reduce.ring_bytes(10_000, 94e6) < 1.02 * reduce.ring_bytes(64, 94e6), "each sends hardly more"
    by_1000 = reduce.server_seconds(256, 94e6, **link, servers=1000)
    assert by_1000 == reduce.server_seconds(256, 94e6, **link, servers=256) > 3 * server(94e6) / 1000


def test_rounds_on_2_workers_exclude_linear_scaling_and_say_little_about_8():
    low, high = 1.62, 1.80  # what the sentences say of 2 workers
    by_amdahl = [laws.amdahl(8, 2 / speedup - 1) for speedup in (low, high)]
    by_gustafson = [laws.gustafson(8, 2 - speedup) for speedup in (low, high)]
    assert [laws.amdahl(2, 2 / low - 1), laws.gustafson(2, 2 - low)] == pytest.approx([low, low]) and high < 2
    assert max(by_amdahl) < min(by_gustafson) < max(by_gustafson) < 4 * 1.71, (
        "both fit 2 workers, and neither gives 6.8"
    )
