"""Who reads what: labs.data.shares, counted; lessons.horovod_sharding.pictures."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from legends import hidden

from labs.data import shares as sharding
from labs.show import plots
from lessons.horovod_sharding import pictures
from teaching.author.regions import blank

ROOT = Path(__file__).resolve().parents[2]
OWN = "shuffle with own seeds, shard, batch"
LABELS = np.repeat(np.arange(10), 48)  # sorted by class, as an image folder is


# ---- shares -------------------------------------------------------------------------------------------


def test_shares_are_disjoint_complete_and_differ_by_one_at_most():
    orders = [order for order in sharding.ORDERS if order != OWN]
    for order, workers, epoch in itertools.product(orders, (1, 2, 3, 7), range(3)):
        shares = sharding.shares(100, workers, order, seed=5, epoch=epoch)
        lengths = [len(share) for share in shares]
        assert sharding.coverage(shares, 100).right, (order, workers, epoch)
        assert len(shares) == workers and max(lengths) - min(lengths) <= 1


def test_shares_of_one_to_hundred_are_those_of_pythons_slices():
    for workers in (2, 3):
        for worker, share in enumerate(sharding.shares(100, workers, "shard, batch")):
            assert share.tolist() == list(range(100))[worker::workers]
    assert [len(share) for share in sharding.shares(100, 3, "shard, batch")] == [34, 33, 33]


def test_shuffled_shares_differ_between_epochs_and_seeds_and_repeat_with_the_same():
    for order in sharding.ORDERS[2:]:
        first = sharding.shares(50, 2, order)[0].tolist()
        assert first == sharding.shares(50, 2, order)[0].tolist()
        assert first != sharding.shares(50, 2, order, epoch=1)[0].tolist()
        assert first != sharding.shares(50, 2, order, seed=1)[0].tolist()
    members = [set(sharding.shares(50, 2, "shard, shuffle, batch", epoch=epoch)[0].tolist()) for epoch in range(2)]
    assert members[0] == members[1]  # the share stays, its order changes


def test_shares_with_tf_data_cover_the_same(monkeypatch):
    """Numbers that tf.data's own shuffle and shard give have the coverage that the NumPy version promises."""
    import tensorflow as tf

    def reads(seeds):
        made = (
            tf.data.Dataset.range(2000).shuffle(2000, seed=seed).shard(2, worker) for worker, seed in enumerate(seeds)
        )
        return sharding.coverage([list(numbers.as_numpy_iterator()) for numbers in made], 2000)

    assert reads((4, 4)).right
    assert abs(len(reads((4, 5)).unseen) / 2000 - sharding.expected_unseen(2)) < 0.04


def test_own_seeds_leave_the_share_unseen_that_the_formula_says():
    n = 5000
    for workers in (2, 3, 4, 8, 16):
        unseen = [len(sharding.coverage(sharding.shares(n, workers, OWN, epoch=e), n).unseen) / n for e in range(10)]
        assert abs(np.mean(unseen) - sharding.expected_unseen(workers)) < 0.01


def test_expected_unseen_begins_at_a_quarter_and_tends_to_one_over_e():
    assert sharding.expected_unseen(1) == 0 and sharding.expected_unseen(2) == 0.25
    assert sharding.expected_unseen(10**6) == pytest.approx(np.exp(-1), abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((10, 2, "shard"), "No order of operations is called 'shard'"),
        ((10, 0, "shard, batch"), "0 workers read nothing"),
    ],
)
def test_impossible_shares_are_refused_in_one_line(arguments, words):
    with pytest.raises(sharding.ShardError, match=words) as caught:
        sharding.shares(*arguments)
    assert "\n" not in str(caught.value)


def test_coverage_names_unseen_repeated_and_foreign_numbers():
    found = sharding.coverage([[0, 1, 1], [2, 7, -1]], 5)
    assert found.seen.tolist() == [0, 1, 2] and found.unseen.tolist() == [3, 4]
    assert found.repeated.tolist() == [1] and found.foreign.tolist() == [-1, 7] and not found.right
    text = sharding.sentence(found, 5)
    assert "1 of 5 samples are read more than once (1)" in text and "2 of 5 samples are never read (3, 4)" in text
    assert "-1, 7 is no sample" in text
    assert sharding.sentence(sharding.coverage([[1, 0], [2]], 3), 3) == "All 3 samples are read, each once."
    assert sharding.coverage([], 2).unseen.tolist() == [0, 1]
    assert sharding.some(range(9)) == "0, 1, 2, 3, ..." and sharding.some([4]) == "4"


# ---- class balance ------------------------------------------------------------------------------------


def test_class_counts_hold_every_sample_once_also_in_a_smaller_last_batch():
    shares = [np.arange(0, 480, 2), np.arange(1, 479, 2)]
    counts = sharding.class_counts(shares, LABELS, 32, 10)
    assert counts.shape == (2, 8, 10) and counts.sum((1, 2)).tolist() == [240, 239]
    assert counts[0, -1].sum() == 16 and counts[1, -1].sum() == 15
    assert counts[0, 0].tolist() == [24, 8] + [0] * 8
    assert sharding.class_counts([[], [3]], LABELS, 4, 10)[:, 0].sum(1).tolist() == [0, 1]


def test_a_sorted_source_gives_fair_workers_or_fair_batches_only_where_it_should():
    def far(order):
        counts = sharding.class_counts(sharding.shares(480, 2, order), LABELS, 16, 10)
        return sharding.distance(counts.sum(1), LABELS).mean(), sharding.distance(counts, LABELS).mean()

    blocks, shard, after, before = (far(order) for order in sharding.ORDERS[:4])
    assert blocks == pytest.approx((0.5, 0.9))  # half of the classes, one class in each batch
    assert shard[0] == pytest.approx(0) and shard[1] > 0.8
    assert after[0] == pytest.approx(0) and after[1] < 0.4
    assert before[0] < 0.15 and before[1] < 0.4


def test_distance_is_the_share_of_samples_to_exchange():
    labels = [0, 0, 1, 1]
    assert sharding.distance([[2, 2], [4, 0], [3, 1]], labels).tolist() == [0, 0.5, 0.25]
    assert np.isnan(sharding.distance([0, 0], labels))


# ---- pictures -----------------------------------------------------------------------------------------


def test_balance_says_in_words_what_it_shows():
    cases = {order: sharding.shares(480, 2, order) for order in sharding.ORDERS[:3]}
    figure = pictures.balance(LABELS, cases, batch=16)
    assert "block of each worker, batch: classes seen by each worker 5, 5; 1.0 classes in a batch" in figure.alt
    assert "shard, batch: classes seen by each worker 10, 10; 1.3 classes" in figure.alt
    shown = [axis for axis in figure.axes if axis.get_visible() and axis.get_ylabel() == "class"]
    assert len(shown) == 3 and "batches of 16" in shown[0].get_xlabel()
    image = shown[0].images[0].get_array()
    assert image.shape == (10, 2 * 15 + 1) and image[:, 15].mask.all()  # two workers with a gap
    assert image[0, 0] == 16 and image[9, -1] == 16
    assert plots.png(figure).startswith(b"\x89PNG") and "simulated" in figure._supxlabel.get_text()


def test_explorer_draws_again_into_one_figure():
    draw = pictures.explorer(LABELS)
    first = draw(2, 16, sharding.ORDERS[0], "sorted by class")
    words, picture = first.alt, plots.png(first)
    second = draw(3, 40, OWN, "shuffled once")
    assert second is first and plots.png(second) != picture
    assert "classes seen by each worker 5, 5" in words and "each once" in words
    assert "10, 10, 10" in second.alt and "never read" in second.alt
    assert second.axes[0].images[0].get_array().shape == (10, 3 * 4 + 2)
    assert plots.png(draw(2, 16, sharding.ORDERS[0], "sorted by class")) == picture


def test_unseen_and_epoch_times_name_their_numbers():
    from labs.results.record import Configuration
    from labs.results.run import Epoch, Run

    figure = pictures.unseen({2: [0.24, 0.26], 4: [0.31]})
    assert "0.250 for 2, 0.310 for 4" in figure.alt and "workers K" in figure.axes[0].get_xlabel()
    assert hidden(figure) == []

    def run(workers, *seconds):
        return Run(repeats=[list(map(Epoch, seconds))], configuration=Configuration(workers=workers))

    runs = {"one": [run(1, 9, 2, 4), run(2, 9, 3)], "two": [run(1, 9, 2, 4), run(2, 9, 1.5)]}
    figure = pictures.epoch_times(runs)
    assert "Seconds per epoch of one: 3.00 on 1, 3.00 on 2." in figure.alt and "two: 3.00 on 1, 1.50" in figure.alt
    ideal = next(line for line in figure.axes[0].lines if line.get_label().startswith("ideal"))
    assert list(ideal.get_ydata()) == [3, 1.5] and "seconds" in figure.axes[0].get_ylabel()
    assert hidden(figure) == []


def test_repaired_script_is_given_as_the_colleagues():
    scripts = ROOT / "solutions/scripts"
    assert blank((scripts / "repaired.py").read_text()) == (scripts / "colleague.py").read_text()


def test_a_share_by_filter_prints_no_warnings_in_the_notebook(monkeypatch, capsys):
    from tensorflow.python.autograph.utils import ag_logging

    from labs import checks

    for name in ("echo_log_to_stdout", "verbosity_level"):
        monkeypatch.setattr(ag_logging, name, True if name[0] == "e" else None)  # as in a kernel
    monkeypatch.delenv("AUTOGRAPH_VERBOSITY", raising=False)
    cell = (ROOT / "solutions/07_horovod_sharding.py").read_text().partition("\n# %%\n")[2].partition("\n# %%")[0]
    exec(cell, {})
    right = checks.judge(
        "sharding.2", lambda d, r, k: d.enumerate().filter(lambda i, x: i % k == r).map(lambda i, x: x)
    )
    assert right[0] == "right" and not capsys.readouterr().out


def test_sharding_needs_numpy_only():
    code = "import sys, labs.data.shares; print([m for m in ('tensorflow', 'matplotlib', 'keras') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
