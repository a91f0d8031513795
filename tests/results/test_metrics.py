"""Metrics: times, throughput, speedup, their intervals, and everything that must not be divided."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from epochs import numbered
from made_runs import run
from scipy import stats

from labs import recorded, results
from labs.errors import UseError
from labs.results import intervals, log, metrics, tables
from labs.results.run import Epoch


def ends(test):
    """Of the 95 % interval of one of scipy's t tests on logarithms."""
    return np.exp(test.confidence_interval(0.95))


@pytest.mark.parametrize("repeats, resolution", [(2, 0.0), (3, 0.5), (7, 0.5)])
def test_times_rates_and_ratios_are_those_of_scipy_on_logarithms(repeats, resolution):
    """Warm-up is left out, the repeat is the sample; a ratio in turns is taken within rounds. Rounding comes on top."""
    random = np.random.default_rng(repeats)
    one, two = (seconds * np.exp(random.normal(0, 0.1, (repeats, 2))) for seconds in (12.0, 7.0))
    alone, pair = (run(k, [(99, *row) for row in t], resolution=resolution) for k, t in ((1, one), (2, two)))
    logs, half, other = np.log(one.mean(1)), resolution / 2 / one.mean(), resolution / 2 / two.mean()
    seconds, rate = metrics.epoch_seconds(alone), metrics.throughput(alone)
    low, high = ends(stats.ttest_1samp(logs, 0)) * (1 - half, 1 + half)
    assert seconds.value == pytest.approx(one.mean()) and seconds.interval == pytest.approx((low, high))
    assert rate.value == pytest.approx(1792 / one.mean()) and rate.interval == pytest.approx((1792 / high, 1792 / low))
    assert rate.rounded == (pytest.approx((rate.value / (1 + half), rate.value / (1 - half))) if resolution else None)
    gain, share = metrics.speedup(pair, alone), metrics.measure([alone, pair])[1].efficiency
    expected = ends(stats.ttest_ind(logs, np.log(two.mean(1)), equal_var=False))
    expected *= (1 - half) / (1 + other), (1 + half) / (1 - other)
    assert gain.value == pytest.approx(one.mean() / two.mean()) and gain.interval == pytest.approx(expected)
    assert share.value == gain.value / 2 and share.interval == pytest.approx(expected / 2)
    assert metrics.NOT_PAIRED in gain.notes
    alone, pair = (run(k, rounds=t[:, 0], resolution=resolution, study="s") for k, t in ((1, one), (2, two)))
    logs, half, other = np.log(one / two)[:, 0], resolution / 2 / one[:, 0].mean(), resolution / 2 / two[:, 0].mean()
    gain, widened = metrics.speedup(pair, alone), (1 + half) / (1 - other) - 1
    assert gain.value == pytest.approx(math.exp(logs.mean())) and metrics.NOT_PAIRED not in gain.notes
    assert gain.interval == pytest.approx(ends(stats.ttest_1samp(logs, 0)) * (1 - widened, 1 + widened))
    (found,) = metrics.measure([alone])
    assert found.epoch_seconds.value == pytest.approx(one[:, 0].mean()) and tables.counted(found) == repeats


def test_a_time_without_an_interval():
    for times, resolution, value, rounded, says in (
        ([(14, 12, 12)], 1.0, 12, (11.5, 12.5), "1 run"),
        ([(14, 12, 12)], 0.0, 12, None, "1 run"),
        ([(9,), (8, 4.0)], 0.0, 4, None, "1 repeat with a single epoch, which is warm-up"),
        ([(9,), (8,)], 0.0, None, None, "2 repeats with a single epoch, which is warm-up"),
        ([(1, 0, 0)], 1.0, None, None, "epochs rounded to 0 s"),
        ([], 0.0, None, None, "no finished epoch"),
    ):
        found = metrics.epoch_seconds(run(times=times, resolution=resolution))
        assert (found.value, found.interval) == (value, None) and says in " ".join(found.notes)
        assert found.rounded == (rounded and pytest.approx(rounded))


def test_equal_repeats_and_too_few():
    four, two, one = (intervals.mean(values) for values in ([4.0, 4.0], [2.0, 2.0], [4.0]))
    assert intervals.ratio(four, two).interval == pytest.approx((2.0, 2.0))
    assert intervals.ratio(one, four).value == 1 and intervals.ratio(one, four).interval is None
    assert intervals.ratio(one, intervals.UNKNOWN).value is intervals.ratio(intervals.UNKNOWN, one).value is None
    short = intervals.mean([0.4] * 2, 1.0)
    for ratio in (intervals.ratio(four, short), intervals.paired([4.0] * 2, [0.4] * 2, (0.0, 1.0))):
        assert ratio.interval is None and ratio.notes == (intervals.TOO_SHORT,)
    rate = metrics.throughput(run(times=[(1, 0, 1), (1, 0, 1)], resolution=1.0))
    assert rate.value == 1792 / 0.5 and rate.interval[1] == math.inf


def test_images_of_an_epoch():
    for images, batch, steps, expected, says in (
        (50000, 256, 196, 50000, None),
        (50000, 8192, 7, 50000, None),  # the last batch holds 848 images
        (50000, 8192, 6, 49152, None),  # it was dropped
        (50000, 256, 197, None, "197 steps of 256 are not one pass over 50000 images"),
        (50000, 1024, 196, None, "is the data sharded?"),
        (50000, 256, None, None, "global batch or steps are not known"),
        (None, 256, 196, None, "give --images"),
    ):
        made = run(images=None, dataset_images=images, global_batch=batch, local_batch=256, steps=steps)
        counted, why = metrics.epoch_images(made)
        assert counted == expected and (says in why if says else why is None)


def test_speedup_uses_images_when_epochs_differ():
    """50,000 images: 195 steps of 256 drop 80 images, 48 steps of 1024 drop 848."""
    how = {"images": None, "dataset_images": 50000, "batch": 256}
    one, four = run(1, [(9, 40, 40)], steps=195, **how), run(4, [(9, 10, 10)], steps=48, **how)
    assert metrics.speedup(four, one).value == pytest.approx(4 * (48 * 1024) / (195 * 256))


UNKNOWN = {"images": None, "batch": 256}
ALL = UNKNOWN | {"dataset_images": 50000, "steps": 196}


def test_what_does_not_belong_together_is_not_divided_and_the_reason_is_said():
    for own, others, says in (
        ({}, [], "no 1-worker run to divide by .none is in the input"),
        ({"workers": None}, [{}], "number of workers is not known"),
        ({}, [{"model": "N"}], "trained differently"),
        ({}, [{"strategy": "horovod"}], "trained differently"),
        ({}, [{"batch": 32}], "its batch is neither the local nor the global one"),
        ({}, [{"kind": "recorded"}], "it is recorded, not measured"),
        ({"study": "a"}, [{"study": "b"}], "measured in another study"),
        ({"folder": Path("x")}, [{"folder": Path("y")}], "in another file"),
        ({"source": "b.out", "model": None}, [{"model": None}], "in another file"),
        ({"job_id": "7"}, [{"job_id": "8"}], "in another file"),
        ({"machine": {"cpu": "V100"}}, [{"machine": {"cpu": "A100"}}], "on other hardware"),
        ({}, [{"times": [(9,)]}], "without a steady epoch"),
        ({"times": [(9,)]}, [{}], "no speedup, since 1 repeat with a single epoch"),
        ({"job_id": "7"}, [{"job_id": "7", "source": s} for s in ("x", "y")], r"\(x,.*\(y,.*could both be its 1-w"),
        (ALL | {"workers": 4}, [ALL], "is the data sharded"),
        (UNKNOWN, [UNKNOWN], r"speedup, since the images in the data set are not known .give --images\)\.$"),
        ({"model": None}, [{"model": None}], "trained differently, or not known how"),
        ({}, [{"images": None}], r"speedup, since of M on 1 workers? \(.*\) the images in the data set are not known"),
    ):
        mine, others = run(**{"workers": 2, "times": [(9, 2, 2)]} | own), [run(**other) for other in others]
        with pytest.raises(UseError, match=says):
            metrics.speedup(mine, others)
        *_, found = metrics.measure([*others, mine])
        assert (found.speedup.value, found.efficiency.value, found.speedup.interval) == (None, None, None)
        assert re.search(says, " ".join(found.notes))


FASTER = {"times": [(9, 3, 3)]}
REPEATED = {"times": [(9, 4), (9, 4.1), (9, 3.9)]}


def test_by_which_run_is_divided():
    for own, others, value, scaling, says in (
        ({}, [{"strategy": "single"}], 2, "weak", ""),
        ({}, [{"strategy": "single"}, FASTER], 1.5, "weak", ""),  # its own strategy comes first
        ({}, [FASTER | {"batch": 128}, {}], 2, "weak", ""),  # before strong scaling
        ({}, [FASTER | {"batch": 128}], 1.5, "strong", ""),
        ({"global_batch": None, "local_batch": None}, [{}], 2, None, ""),
        ({"job_id": "7", "source": "b.json"}, [{"job_id": "7"}, FASTER], 2, "weak", ""),  # the other is of no job
        # counted images tell more than steps
        ({"images": 3584, "steps": 28, "times": [(9, 5, 5)]}, [{"steps": 28}], 1.6, "weak", ""),
        ({"times": [(9, 1.5), (9, 1.52), (9, 1.48)]}, [REPEATED], 4 / 1.5, "weak", "efficiency above 1"),
        ({"times": [(9, 1.5), (9, 2.5), (9, 1.9)]}, [REPEATED], 12 / 5.9, "weak", ""),
    ):
        mine, others = run(**{"workers": 2, "times": [(9, 2, 2)]} | own), [run(**other) for other in others]
        *_, found = metrics.measure([*others, mine])
        notes = " ".join(found.notes)
        assert (found.speedup.value, found.scaling) == (pytest.approx(value), scaling)
        assert says in notes and ("above 1" in notes) == ("above 1" in says)


# Studies whose trainings took turns


def test_only_common_rounds_count_and_one_round_has_no_interval():
    one, two = run(rounds=[4.0, 8.0, 6.0], study="s"), run(2, rounds=[4.0, 3.0], first=2, study="s")
    assert metrics.speedup(two, one).value == pytest.approx(2)
    assert metrics.speedup(run(2, rounds=[3.0], first=3, study="s"), one).interval is None


def test_rounds_in_which_other_programs_took_the_cores_are_left_out_unless_too_few_are_left():
    one = run(rounds=[4.0, 4.1, 4.0, 9.0, 4.0], others=[0.0, 0.2, 0.02, 0.5, 0.0], study="s")
    two = run(2, rounds=[2.0, 2.1, 2.0, 2.0, 4.0], others=[0.01, 0.0, 0.05, None, 0.4], study="s")
    runs = metrics.measure([one, two])
    assert metrics.in_turns(two, one) == [1, 2, 3, 4, 5]
    assert runs[1].speedup.value == pytest.approx((4 / 2 * 4.1 / 2.1 * 4 / 2) ** (1 / 3))
    counted = [(tables.counted(run), run.epoch_seconds.value) for run in runs]
    assert counted == [(4, pytest.approx(16.1 / 4)), (3, pytest.approx(6.1 / 3))]
    for found, left_out in zip(runs, (1, 2), strict=True):
        (note,) = [note for note in found.notes if "of the cores" in note]
        assert f"over 20% of the cores in {left_out} of 5 rounds, which are left out" in note
    one = run(rounds=[4.0, 4.1, 4.0], others=[0.0, 0.3, 0.0], study="s")
    estimate = metrics.speedup(run(2, rounds=[2.0, 2.1, 4.0], others=[0.0] * 3, study="s"), one)
    assert estimate.value == pytest.approx((4 / 2 * 4.1 / 2.1 * 4 / 4) ** (1 / 3))
    assert any("in 1 of 3 rounds: these are numbers of a busy machine" in note for note in estimate.notes)


# Loss and accuracy, and runs as a whole


def losses(*repeats):
    return run(
        epochs=numbered(*([Epoch(seconds=4.0, images=9, metrics={"loss": x}) for x in values] for values in repeats))
    )


def test_learning_curves_are_means_over_repeats():
    (found,) = metrics.measure([losses((2.0, 1.0), (3.0, 1.2))])
    assert found.loss == pytest.approx([2.5, 1.1]) and found.final_loss.value == pytest.approx(1.1)
    assert found.final_loss.interval == pytest.approx([1.1 - 12.7062 * 0.1, 1.1 + 12.7062 * 0.1], rel=1e-4)
    assert found.accuracy == [] and found.final_accuracy.value is None
    (found,) = metrics.measure([losses((2.0, math.nan), (3.0,))])
    assert found.loss == [2.5, None] and found.final_loss.value is None


def test_what_a_run_says_of_itself():
    for made, says in (
        (losses([2.303, 2.302, 2.304]), "has not fallen since the first epoch (2.303, then 2.304)"),
        (losses([2.0, 1.99, 1.981]), "has not fallen"),
        (losses([2.0, 1.99, 1.979]), ""),
        (losses([2.3]), ""),
        (losses([2.0, math.nan, math.nan]), "not a finite number in epoch 2: the training diverged"),
        (run(oversubscribed=True), "oversubscribed"),
        (run(epochs=numbered([Epoch(seconds=4.0, metrics={"val_loss": 1.0})] * 2)), "include validation"),
    ):
        (found,) = metrics.measure([made])
        notes = [note for note in found.notes if re.search("fallen|diverged|oversubscribed|validation", note)]
        assert len(notes) == bool(says) and says in " ".join(notes)


def test_the_interval_of_an_accuracy_holds_the_mean_and_is_within_0_and_1():
    random = np.random.default_rng(0)
    drawn = [random.beta(*kind, n).tolist() for kind in ((1, 1), (0.1, 5), (9, 0.2)) for n in (2, 3, 10)]
    for values in [*drawn, [0.0, 0.0, 0.5], [0.99, 1.0, 0.9], [0.5, 0.5], [1.0, 1.0], [0, 1]]:
        low, high = intervals.shares(values)
        mean = sum(values) / len(values)
        assert 0 <= low <= mean + 1e-12 and mean - 1e-12 <= high <= 1 and (low < high) == (len(set(values)) > 1)
    values = [0.60, 0.61, 0.62]  # which hardly differ
    assert intervals.shares(values) == pytest.approx(intervals.plain(values), abs=1e-3)
    assert intervals.shares([0.6]) is None


def test_the_recorded_runs_of_cte_power():
    """Of 50,000 images, on 1, 2 and 4 GPUs: as the last row of JSON, and as a table."""
    runs = metrics.measure(log.read(recorded.CTE_POWER, images=50000))
    assert [run.speedup.value for run in runs] == pytest.approx([1, 1.875, 3.75])
    row = json.loads(json.dumps(tables.row(runs[2]), allow_nan=False))
    measures = "epoch_seconds images_per_second speedup efficiency final_loss final_accuracy".split()
    names = [f"{name}{end}" for name in measures for end in ("", "_interval", "_rounded")]
    assert set(row) > {*"source run kind model workers global_batch steps hardware study failure notes".split(), *names}
    assert (row["run"], row["repeats"], row["rounds"], row["images_per_epoch"]) == (3, 1, None, 50000)
    assert row["images_per_second"] == pytest.approx(50000 / 12) and row["baseline"] == runs[0].source
    assert row["speedup_rounded"] == pytest.approx([44.5 / 12.5, 45.5 / 11.5]) and row["speedup_interval"] is None
    assert row["accuracy"] == [0.2409, 0.3577, 0.418, 0.4625, 0.501] and row["final_accuracy"] == 0.501
    head, *_, last = map(re.compile("  +").split, results.table(runs).splitlines()[:5])
    assert dict(zip(head, last, strict=True)) == {
        **{"run": "3 cte-power-resnet50v2.out", "model": "ResNet50V2", "workers": "4", "batch (global)": "1024"},
        **{"steps": "49", "rounds or repeats": "1", "epoch (s)": "12 (1 run, 11.5 to 12.5)", "loss": "1.3689"},
        **{"images/s": "4167 (1 run, 4000 to 4348)", "speedup": "3.75 (1 run, 3.56 to 3.96)", "accuracy": "0.5010"},
        **{"efficiency": "0.938 (1 run, 0.89 to 0.989)", "scaling": "weak", "kind": "recorded"},
    }
