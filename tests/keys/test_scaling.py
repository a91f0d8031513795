"""The keyed answers of notebooks 09 to 23 are true: each test computes what its name states."""

import re

import numpy as np
import pytest
from tree import ROOT

from labs.results import intervals
from lessons import counts
from lessons.resnet152_scaling.experiments import LARGE, LARGEST, SMALL
from lessons.when_workers_do_not_help import trials


def test_the_larger_network_exchanges_more_per_multiply_add_only_at_its_own_largest_batch():
    """resnet152.5: bytes and tensors. At equal batches, both grow by less than the multiply-adds."""
    facts = {name: counts.of(name, image_size=32, classes=10) for name in (SMALL, LARGE)}
    for exchanged in ("gradient_bytes", "tensors"):
        each = {name: getattr(of, exchanged) / of.multiply_adds for name, of in facts.items()}
        assert each[LARGE] < each[SMALL]
        assert each[LARGE] / LARGEST[LARGE, 32] > each[SMALL] / LARGEST[SMALL, 32]


@pytest.mark.parametrize("epochs", [1, 300])
def test_an_epoch_that_keras_calls_12_s_took_11_5_to_12_5_s_however_many_do(monkeypatch, epochs):
    """networks.8."""
    from keras.src.utils import progbar

    def shown(seconds):
        said, times = [], iter([0.0] + [seconds] * 9)
        monkeypatch.setattr(progbar.time, "time", lambda: next(times))
        monkeypatch.setattr(progbar.io_utils, "print_msg", lambda text, **_: said.append(text))
        progbar.Progbar(8, verbose=2).update(8, finalize=True)
        return re.search(r"- (\d+s)", "".join(said))[1]

    assert [shown(seconds) for seconds in (11.4, 11.6, 12.4, 12.6)] == ["11s", "12s", "12s", "13s"]
    assert intervals.mean([12.0] * epochs, 1.0).rounded == pytest.approx((11.5, 12.5))


def test_a_second_rank_saves_the_smallest_network_less_than_the_exchange_adds():
    """workers.4: by the parts of a step on 2 ranks that the notebook measured. The largest network saves more."""
    text = (ROOT / "solutions/22_when_workers_do_not_help.ipynb").read_text()

    def parts(filters):
        names = "start of operations", "computing", "sharing the machine", "exchange and waiting"
        said = ", ".join(rf"{name} (-?\d+)%[^,]*" for name in names)
        return map(int, re.search(rf"{filters} filters on 2 ranks over MPI: {said}", text).groups())

    _, saved, shared, exchanged = parts(2)  # half of the images takes as long as the other half, which is saved
    assert saved < shared + exchanged
    _, saved, shared, exchanged = parts(64)
    assert saved > shared + exchanged


def test_between_exchanges_a_worker_with_a_sorted_shard_learns_only_its_own_digits():
    """workers.9: with as many images and steps."""
    shuffled, ordered = (trials.shards(8, order) for order in ("shuffled", "sorted"))

    def accuracy(k, workers, steps=512):
        return trials.local_sgd(k, workers, steps=steps, rate=0.2)

    assert accuracy(128, shuffled[:1], 128) > 0.75 > 0.35 > accuracy(128, ordered[:1], 128)  # one worker alone
    assert accuracy(128, shuffled) > 0.95 and accuracy(1, ordered) > 0.95 and accuracy(128, ordered) < 0.7


def test_with_equal_steps_and_tuned_rates_batch_512_is_as_accurate_as_batch_8():
    """batches.3: 1600 steps, at the rates that notebook 23 finds, on the same test images."""
    small_batch, large_batch = (
        np.array([trials.train(batch, rate, steps=1600, seed=seed)["test"] for seed in range(4)])
        for batch, rate in ((8, 0.1), (512, 1.6))
    )
    _, high = intervals.plain(large_batch - small_batch)
    assert high > 0 and np.mean(large_batch) > np.mean(small_batch) - 0.01


def test_the_noise_scale_grows_during_training_and_with_it_the_batch_that_saves_steps():
    """batches.14."""
    found = trials.squares(workers=8, batch=16, rate=0.4, steps=200)
    noise = []
    for part in (slice(0, 50), slice(150, 200)):
        local, mean = found["local"][part].mean(), found["mean"][part].mean()
        noise.append((local - mean) / (1 / 16 - 1 / 128) / ((128 * mean - 16 * local) / 112))
    assert noise[1] > 2 * noise[0] > 0
