"""What shows that the answers keyed in notebooks 01, 02 and 11 are true, without a network's training."""

from itertools import islice
from math import inf
from statistics import fmean

import numpy as np
import pytest

from labs import recorded
from labs.results import log
from lessons import reduce
from lessons.averages_and_rings import sgd, stragglers
from lessons.basic_concepts import laws


def test_only_other_devices_give_a_factor_above_the_growth_in_number():
    rows = {(row["hardware"], row["devices"]): row for row in recorded.imagenet() if row["devices"]}
    first = rows["P100", 8]
    gain = {key: first["minutes"] / row["minutes"] / (row["devices"] / 8) for key, row in rows.items()}
    assert gain["V100", 2048] == pytest.approx(1450 / 256, rel=1e-3)
    assert {key for key in gain if gain[key] > 1} == {key for key in gain if key[0] != "P100"}


def test_in_a_log_the_first_epoch_is_longer_than_all_others_and_the_shortest_is_shorter_than_their_mean():
    for run in log.read(recorded.CTE_POWER):
        first, *others = (epoch.seconds for epoch in run.repeats[0])
        assert fmean([first, *others]) > max(others), "so the mean of all is longer than any further epoch"
    for path in recorded.laptop():
        first, *others = (epoch.seconds for epoch in log.read(path)[0].repeats[0])
        assert first > max(others) and min(others) < fmean(others)


def test_each_gpu_of_the_recorded_study_gets_256_images_in_a_step_and_a_share_of_an_epoch():
    runs = log.read(recorded.CTE_POWER)
    assert [run.configuration.global_batch / run.workers for run in runs] == [256] * 3
    assert [run.steps for run in runs] == [-(-50_000 // (256 * run.workers)) for run in runs]  # one pass for all


def test_among_64_equal_workers_another_one_is_late_in_each_step_and_its_delay_is_all_that_counts():
    times = stragglers.draws(64, steps=2000, spread=0.1)
    last = times.argmax(axis=1)
    assert abs(times.mean(axis=0) - 1).max() < 0.01, "no worker is slower than the others"
    assert set(last) == set(range(64)) and np.bincount(last).max() < 0.04 * len(times)
    assert 1 + np.maximum(times - 1, 0).sum(axis=1).mean() > 3, "if delays added up, a step would be far longer"


def test_averaged_weights_are_those_of_the_averaged_gradient_after_one_step_and_not_after_ten():
    batches = [list(islice(sgd.batches(8, seed), 10)) for seed in range(4)]
    for steps, same in ((1, True), (10, False)):
        together, alone = sgd.START, [sgd.START] * 4
        for step in range(steps):
            rows = [own[step] for own in batches]
            together = together - 0.5 * np.mean([sgd.gradient(together, each) for each in rows], axis=0)
            alone = [own - 0.5 * sgd.gradient(own, each) for own, each in zip(alone, rows, strict=True)]
        assert (np.abs(np.mean(alone, axis=0) - together).max() < 1e-9) == same


def test_slow_workers_speak_for_asynchronous_sgd_and_large_rates_with_equal_workers_for_synchronous():
    def race(train, updates, slow, rate):
        history = train(8, updates, np.array([[1.0] * 7 + [slow]]), rate=rate)
        return next((s for s, loss in zip(history.seconds, history.losses, strict=True) if loss <= 0.5), inf)

    cases = [(slow, rate) for slow in (1, 8) for rate in (0.5, 4.0)]
    waits = {case: race(sgd.synchronous, 100, *case) for case in cases}
    never = {case: race(sgd.asynchronous, 500, *case) for case in cases}
    assert {case for case in cases if never[case] > waits[case]} == {(1, 4.0)} and max(never.values()) < inf


def test_with_256_workers_a_servers_link_limits_94_mb_and_the_rings_messages_limit_4_kb():
    def server(size, latency=10e-6, bandwidth=10e9):
        return reduce.server_seconds(256, size, latency, bandwidth, 1)

    def ring(size, latency=10e-6, bandwidth=10e9):
        return reduce.ring_seconds(256, size, latency, bandwidth)

    assert server(94e6, latency=0) > 0.99 * server(94e6) > 100 * ring(94e6)
    assert ring(4e3, bandwidth=1e15) > 0.99 * ring(4e3) > 10 * server(4e3)


def test_rounds_on_2_workers_exclude_linear_scaling_and_say_little_about_8():
    low, high = 1.62, 1.80  # what the sentences say of 2 workers
    by_amdahl = [laws.amdahl(8, 2 / speedup - 1) for speedup in (low, high)]
    by_gustafson = [laws.gustafson(8, 2 - speedup) for speedup in (low, high)]
    # Both fit 2 workers, and neither gives 6.8.
    assert max(by_amdahl) < min(by_gustafson) < max(by_gustafson) < 4 * 1.71
