"""Metrics: times, throughput, speedup, their intervals, and everything that must not be divided."""

import json
import math
import random
from pathlib import Path

import pytest

from labs import recorded, results
from labs.errors import LabsError
from labs.results import intervals, log, metrics, tables
from labs.results import run as records
from labs.results.metrics import MetricsError
from labs.results.run import Epoch, Run

RECORDED = recorded.CTE_POWER
LOGS = Path(__file__).parents[1] / "data" / "logs"


def run(workers=1, times=((9.0, 4.0, 4.0),), batch=64, images=1792, resolution=0.0, **fields):
    """A weak scaling run: `batch` images per worker; `times` are the epochs of each repeat in seconds."""
    repeats = [[Epoch(t, resolution, images, metrics={"loss": 1.0 / n}) for n, t in enumerate(r, 1)] for r in times]
    known = {
        "model": "M",
        "strategy": "mirrored",
        "workers": workers,
        "global_batch": batch * workers,
        "local_batch": batch,
    }
    steps = -(-1792 // (batch * workers))
    return but(Run("a.json", steps=steps, repeats=repeats), **known | fields)


def but(run, repeats=None, hardware=None, **fields):
    """The run with other values of some fields, of its own or of its configuration."""
    if repeats is not None:
        fields["epochs"] = Run(repeats=repeats).epochs
    if hardware:
        fields["machine"] = {"cpu": hardware}
    inside = {key: fields.pop(key) for key in list(fields) if key in type(run.configuration).model_fields}
    return run.model_copy(update=fields | {"configuration": run.configuration.model_copy(update=inside)})


def record(**fields):
    epochs = [
        {
            "repeat": r,
            "epoch": e,
            "seconds": 8.0 - e,
            "images": 1792,
            "step_seconds": [0.1],
            "metrics": {"loss": 2.0 - e, "accuracy": 0.1 * e},
        }
        for r in range(2)
        for e in range(3)
    ]
    return {
        "version": 2,
        "name": "a",
        "kind": "measured",
        "state": "finished",
        "configuration": {
            "model": "ResNet50V2",
            "strategy": "mirrored",
            "workers": 2,
            "nodes": 1,
            "global_batch": 128,
            "local_batch": 64,
            "dataset": "digits",
            "image_size": 32,
            "precision": "float32",
            "repeats": 2,
        },
        "steps": 14,
        "oversubscribed": False,
        "epochs": epochs,
        "machine": {"cpu": "Some CPU", "gpus": []},
        "something_new": 1,
    } | fields


# Epoch time


def test_warm_up_is_left_out_and_the_repeat_is_the_sample():
    estimate = metrics.epoch_seconds(run(times=[(99, 4, 6), (50, 5, 7), (70, 6, 8)]))
    assert estimate.value == pytest.approx(6.0)
    logs_ = [math.log(x) for x in (5, 6, 7)]
    centre = sum(logs_) / 3
    error = math.sqrt(sum((x - centre) ** 2 for x in logs_) / 2 / 3)
    reach = 4.302653 * error
    assert estimate.interval == pytest.approx((math.exp(centre - reach), math.exp(centre + reach)))


@pytest.mark.parametrize("resolution, expected", [(1.0, (11.5, 12.5)), (0.05, (11.975, 12.025)), (0.0, None)])
def test_one_repeat_has_no_interval_but_what_rounding_leaves_open(resolution, expected):
    estimate = metrics.epoch_seconds(run(times=[(14, 12, 12)], resolution=resolution))
    assert estimate.interval is None
    assert estimate.rounded == (pytest.approx(expected) if expected else None)
    assert any("1 run" in note for note in estimate.notes)


def test_rounding_widens_the_interval_of_repeats():
    times = [(14, 11.9), (14, 12.0), (14, 12.1)]
    fine, coarse = (metrics.epoch_seconds(run(times=times, resolution=step)).interval for step in (0.0, 1.0))
    assert coarse[0] == pytest.approx(fine[0] * 11.5 / 12) and coarse[1] == pytest.approx(fine[1] * 12.5 / 12)


def test_single_epochs_give_null_and_say_so():
    estimate = metrics.epoch_seconds(run(times=[(9,), (8,)]))
    assert estimate.value is None and "warm-up" in estimate.notes[0]
    assert metrics.epoch_seconds(run(times=[(9,), (8, 4.0)])).value == 4.0
    with pytest.raises(MetricsError, match="no speedup"):
        metrics.speedup(run(2, times=[(9,)]), run())


def test_epochs_of_zero_whole_seconds_give_null():
    assert metrics.epoch_seconds(run(times=[(1, 0, 0)], resolution=1.0)).value is None


# Images per second


@pytest.mark.parametrize(
    "images, batch, steps, expected",
    [
        (50000, 256, 196, 50000),
        (50000, 8192, 7, 50000),  # the last batch holds 848 images
        (50000, 8192, 6, 49152),  # it was dropped
        (1792, 128, 14, 1792),
        (50000, 256, 197, None),
        (50000, None, 196, None),
        (None, 256, 196, None),
    ],
)
def test_images_of_an_epoch(images, batch, steps, expected):
    counted, why = metrics.epoch_images(but(run(images=None), dataset_images=images, global_batch=batch, steps=steps))
    assert counted == expected and (why is None) == (expected is not None)


def test_data_that_nobody_sharded_is_named():
    unsharded = but(run(4, images=None), dataset_images=50000, global_batch=1024, local_batch=256, steps=196)
    assert "sharded" in metrics.epoch_images(unsharded)[1]
    with pytest.raises(MetricsError, match="sharded"):
        metrics.speedup(unsharded, but(run(images=None), dataset_images=50000, global_batch=256, steps=196))


def test_a_rate_without_an_upper_bound_is_no_crash():
    """Times of one second or none: what rounding leaves open begins at 0."""
    rate = metrics.throughput(run(times=[(1, 0, 1), (1, 0, 1)], resolution=1.0))
    assert rate.value == 1792 / 0.5 and rate.interval[1] == math.inf


def test_throughput_is_images_over_seconds():
    estimate = metrics.throughput(run(times=[(9, 4, 4)], resolution=1.0))
    assert estimate.value == 448 and estimate.interval is None
    assert estimate.rounded == pytest.approx((1792 / 4.5, 1792 / 3.5))
    (found,) = metrics.measure([run(2, times=[(9, 4, 4)])])
    assert found.images_per_second.value == 448 and found.images_per_second_per_worker == 224


# Speedup


def test_cte_power():
    runs = metrics.measure(log.read(RECORDED, images=50000))
    assert [run.epoch_seconds.value for run in runs] == [45, 24, 12]
    assert [run.epoch_seconds.interval for run in runs] == [None] * 3
    assert [run.epoch_seconds.rounded for run in runs] == [(44.5, 45.5), (23.5, 24.5), (11.5, 12.5)]
    assert [run.speedup.value for run in runs] == pytest.approx([1, 1.875, 3.75])
    assert [run.efficiency.value for run in runs] == pytest.approx([1, 0.9375, 0.9375])
    assert runs[2].speedup.rounded == pytest.approx([44.5 / 12.5, 45.5 / 11.5])
    assert [run.images_per_second.value for run in runs] == pytest.approx([50000 / 45, 50000 / 24, 50000 / 12])
    assert {run.kind for run in runs} == {"recorded"} and [run.scaling for run in runs] == [None, "weak", "weak"]
    assert runs[0].final_loss.value == 1.3539 and runs[2].final_accuracy.value == 0.5010
    without = metrics.measure(log.read(RECORDED))
    assert without[2].images_per_second.value is None and without[2].speedup.value == pytest.approx(3.75)


def test_speedup_uses_images_when_epochs_differ():
    """50,000 images: 195 steps of 256 drop 80 images, 48 steps of 1024 drop 848."""
    one = but(run(1, [(9, 40, 40)], images=None), dataset_images=50000, global_batch=256, local_batch=256, steps=195)
    four = but(run(4, [(9, 10, 10)], images=None), dataset_images=50000, global_batch=1024, local_batch=256, steps=48)
    assert metrics.speedup(four, one).value == pytest.approx(4 * (48 * 1024) / (195 * 256))


def test_welch_on_logarithms():
    one, two = run(1, [(9, t) for t in (4.0, 4.1, 4.3)]), run(2, [(9, t) for t in (2.2, 2.1, 2.5)])
    from scipy import stats

    a, b = [math.log(t) for t in (4.0, 4.1, 4.3)], [math.log(t) for t in (2.2, 2.1, 2.5)]
    low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    estimate = metrics.speedup(two, one)
    assert estimate.interval == pytest.approx((math.exp(low), math.exp(high)))
    assert estimate.value == pytest.approx((12.4 / 3) / (6.8 / 3))
    share = metrics.speedup(two, one).scaled(1 / 2)
    assert share.value == estimate.value / 2
    assert share.interval == pytest.approx((math.exp(low) / 2, math.exp(high) / 2))


@pytest.mark.parametrize("repeats", [3, 5, 10])
def test_the_interval_of_a_ratio_covers_what_it_promises(repeats):
    """3 % noise; a percentile bootstrap covers 81 % with 3 repeats."""
    random.seed(7)
    hits, trials = 0, 3000
    for _ in range(trials):
        one, two = ([t * math.exp(random.gauss(0, 0.03)) for _ in range(repeats)] for t in (40, 22))
        low, high = intervals.product([one], [two]).interval
        hits += low <= 40 / 22 <= high
    assert 0.93 <= hits / trials <= 0.97


def test_the_interval_of_a_mean_covers_what_it_promises():
    random.seed(8)
    hits = 0
    for _ in range(3000):
        low, high = intervals.mean([40 * math.exp(random.gauss(0, 0.03)) for _ in range(3)]).interval
        hits += low <= 40 <= high
    assert 0.93 <= hits / 3000 <= 0.97


def test_rounded_logs_still_cover_the_truth():
    random.seed(9)
    for _ in range(300):
        one, two = 40 + random.random(), 11 + random.random()
        rounded = intervals.product([[round(one)]], [[round(two)]], (1.0, 1.0)).rounded
        assert rounded[0] <= one / two <= rounded[1]


def test_equal_repeats_and_one_sided_repeats():
    assert intervals.product([[4.0, 4.0]], [[2.0, 2.0]]).interval == pytest.approx((2.0, 2.0))
    assert intervals.product([[4.0, 4.1]], [[2.0]]).interval is None
    assert intervals.product([[4.0]], [[0.4]], (0.0, 1.0)).interval is None, "shorter than its rounding"


def test_missing_baseline_is_an_error_when_asked_and_null_with_a_note_in_the_table():
    two = run(2)
    with pytest.raises(MetricsError, match="no 1-worker run to divide by .none is in the input"):
        metrics.speedup(two, [two])
    (found,) = metrics.measure([two])
    assert (found.speedup.value, found.efficiency.value, found.speedup.interval) == (None, None, None)
    assert any("no 1-worker run" in note for note in found.notes)
    with pytest.raises(MetricsError, match="number of workers is not known"):
        metrics.speedup(but(run(2), workers=None), [run()])


@pytest.mark.parametrize(
    "field, value",
    [
        ("model", "N"),
        ("dataset", "cifar10"),
        ("image_size", 128),
        ("precision", "mixed_float16"),
        ("hardware", "V100"),
        ("kind", "recorded"),
        ("strategy", "horovod"),
        ("workers", 2),
    ],
)
def test_never_divided(field, value):
    with pytest.raises(MetricsError):
        metrics.speedup(run(4, times=[(9, 1, 1)]), [but(run(), **{field: value})])


def test_single_is_a_baseline_for_every_strategy_but_its_own_strategy_comes_first():
    single, mirrored = run(strategy="single"), run(times=[(9, 5, 5)])
    two = run(2, times=[(9, 2, 2)])
    assert metrics.speedup(two, [single]).value == 2
    assert metrics.speedup(two, [single, mirrored]).value == 2.5
    assert metrics.speedup(but(two, strategy="horovod"), [single, mirrored]).value == 2


def test_weak_before_strong_scaling_and_no_third():
    weak, strong = run(batch=64), run(batch=128, times=[(9, 3, 3)])
    two = run(2, times=[(9, 2, 2)])
    runs = metrics.measure([strong, weak, two])
    assert (runs[2].speedup.value, runs[2].scaling) == (2, "weak")
    runs = metrics.measure([strong, two])
    assert (runs[1].speedup.value, runs[1].scaling) == (1.5, "strong")
    with pytest.raises(MetricsError, match="neither the local nor the global"):
        metrics.speedup(two, run(batch=32))


def test_two_baselines_of_one_job_are_not_pooled_and_other_jobs_do_not_count():
    two = run(2, times=[(9, 2, 2)], source="b.json", job_id="7")
    first, second = (run(times=[(9, t, t)], source=f"{t}.json", job_id="7") for t in (4.0, 4.4))
    assert metrics.speedup(two, [first]).value == 2
    assert metrics.speedup(two, [first, but(second, job_id=None)]).value == 2, "of no job: it does not belong to it"
    with pytest.raises(MetricsError, match="4.0.json.*4.4.json.*could both be its 1-worker run"):
        metrics.speedup(two, [first, second])


@pytest.mark.parametrize("images, batches, fits", [(None, (64, 128), False), (None, (None, None), False),
                                                   (None, (64, 64), True), (1792, (64, 128), True)])  # fmt: skip
def test_equal_numbers_of_steps_are_equal_work_only_where_the_batch_was(images, batches, fits):
    """Every worker has trained on all images: nobody sharded them. Images that were counted tell more."""
    one, two = (
        run(k, times=[(9, 4, 4)], images=images and k * images, steps=28, global_batch=batch, local_batch=None)
        for k, batch in zip((1, 2), batches, strict=True)
    )
    if fits:
        assert metrics.speedup(two, one).value == (2 if images else 1)
    else:
        with pytest.raises(MetricsError, match="as many steps .28. as on 1 worker. Is the data sharded"):
            metrics.speedup(two, one)


# Studies whose trainings took turns


def turns(workers, seconds, study="s", first=1, **fields):
    """A run with a warm-up epoch and one epoch in each round from `first` on."""
    epochs = [Epoch(99.0, 0.0, 1792), *(Epoch(s, 0.0, 1792, round=n) for n, s in enumerate(seconds, first))]
    return run(workers, repeats=[epochs], study=study, **fields)


def test_ratios_are_taken_within_a_round_so_drift_cancels():
    one, two = turns(1, [4.0, 8.0, 6.0, 4.0]), turns(2, [2.0, 4.04, 3.0, 1.98])
    estimate = metrics.speedup(two, one)
    from scipy import stats

    logs = [math.log(a / b) for a, b in zip((4, 8, 6, 4), (2, 4.04, 3, 1.98), strict=True)]
    low, high = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert estimate.value == pytest.approx(math.exp(sum(logs) / 4))
    assert estimate.interval == pytest.approx((math.exp(low), math.exp(high))) and high - low < 0.03
    assert not any("not paired" in note for note in estimate.notes)
    unpaired = metrics.speedup(*(but(each, study=None) for each in (two, one)))
    assert unpaired.interval[1] / unpaired.interval[0] > 2 and metrics.NOT_PAIRED in unpaired.notes


def test_only_common_rounds_count_and_one_round_has_no_interval():
    one, two = turns(1, [4.0, 8.0, 6.0]), turns(2, [4.0, 3.0], first=2)
    assert metrics.speedup(two, one).value == pytest.approx(2)
    assert metrics.speedup(turns(2, [3.0], first=3), one).interval is None


def with_others(run, shares):
    """A run of `turns` in whose rounds other programs took these shares of the cores."""
    for epoch, share in zip(run.repeats[0][1:], shares, strict=True):
        epoch.others = share
    return run


def test_rounds_in_which_other_programs_took_the_cores_are_left_out():
    one = with_others(turns(1, [4.0, 4.1, 4.0, 4.2, 4.0]), [0.0, 0.1, 0.02, 0.5, 0.0])
    two = with_others(turns(2, [2.0, 2.1, 2.0, 2.0, 4.0]), [0.01, 0.0, 0.05, None, 0.4])
    estimate = metrics.speedup(two, one)
    assert estimate.value == pytest.approx(metrics.speedup(turns(2, [2.0, 2.1, 2.0]), turns(1, [4.0, 4.1, 4.0])).value)
    assert any("in 2 of 5 rounds, which are left out" in note for note in estimate.notes)
    assert metrics.in_turns(two, one) == [1, 2, 3, 4, 5]


def test_a_run_counts_the_rounds_that_its_times_and_its_speedup_are_computed_from():
    one = with_others(turns(1, [4.0, 4.1, 4.0, 9.0, 4.0]), [0.0, 0.1, 0.02, 0.5, 0.0])
    two = with_others(turns(2, [2.0, 2.1, 2.0, 2.0, 4.0]), [0.01, 0.0, 0.05, None, 0.4])
    runs = metrics.measure([one, two])
    assert [(tables.counted(run), run.epoch_seconds.value) for run in runs] == [
        (4, pytest.approx(4.025)),
        (3, pytest.approx(6.1 / 3)),
    ]
    assert ["in 1 of 5 rounds, which are left out" in " ".join(run.notes) for run in runs] == [True, False]
    assert "in 2 of 5 rounds, which are left out" in " ".join(runs[1].notes)


def test_where_too_few_quiet_rounds_are_left_all_count_and_a_note_says_so():
    one = with_others(turns(1, [4.0, 4.1, 4.0]), [0.0, 0.3, 0.0])
    two = with_others(turns(2, [2.0, 2.1, 4.0]), [0.0, 0.0, 0.0])
    estimate = metrics.speedup(two, one)
    assert estimate.value == pytest.approx(metrics.speedup(turns(2, [2.0, 2.1, 4.0]), turns(1, [4.0, 4.1, 4.0])).value)
    assert any("in 1 of 3 rounds: this is the speedup on a busy machine" in note for note in estimate.notes)


def test_rounds_are_the_sample_of_a_time():
    (found,) = metrics.measure([turns(1, [4.0, 4.2, 4.4])])
    assert (len(found.steady), tables.counted(found), found.epoch_seconds.value) == (1, 3, pytest.approx(4.2))
    assert found.epoch_seconds.interval[0] < 4.1 < 4.3 < found.epoch_seconds.interval[1]


@pytest.mark.parametrize(
    "own, other, reason",
    [
        ({"study": "a"}, {"study": "b"}, "another study"),
        ({"study": "a"}, {}, "another study"),
        ({}, {"study": "b"}, "another study"),
        ({"folder": Path("x")}, {"folder": Path("y")}, "another file"),
        ({"source": "b.out"}, {}, "another file"),
        ({"source": "b.out", "model": None}, {"model": None}, "another file"),
        ({"hardware": "V100"}, {"hardware": "A100"}, "other hardware"),
        ({"hardware": "V100"}, {"hardware": None}, "other hardware"),
        ({}, {"kind": "recorded"}, "recorded, not measured"),
        ({}, {"image_size": 64}, "trained differently"),
    ],
)
def test_runs_that_do_not_belong_together_are_not_divided_and_the_reason_is_said(own, other, reason):
    with pytest.raises(MetricsError, match=reason):
        metrics.speedup(run(2, times=[(9, 2, 2)], **own), run(**other))


def test_efficiency_above_one_always_gets_a_note():
    said = [
        any("above 1" in note for note in metrics.speedup(run(2, times=times), run(times=alone)).notes)
        for times, alone in (
            ([(9, 1.5, 1.5)], [(9, 4, 4)]),
            ([(9, 1.5), (9, 1.52), (9, 1.48)], [(9, 4), (9, 4.1), (9, 3.9)]),
            ([(9, 1.5), (9, 2.5), (9, 1.9)], [(9, 4), (9, 4.1), (9, 3.9)]),
            ([(9, 2.1, 2.1)], [(9, 4, 4)]),
        )
    ]
    assert said == [True, True, False, False]


def test_unknown_models_are_divided_within_one_file_only():
    two, one = run(2, model=None), run(model=None)
    assert any("does not name the model" in note for note in metrics.speedup(two, one).notes)
    with pytest.raises(MetricsError):
        metrics.speedup(two, but(one, source="other.out"))


def test_epoch_times_of_different_data_are_not_divided():
    one = run(images=None, steps=196, global_batch=256, local_batch=256)
    two = run(2, images=None, steps=30, global_batch=512, local_batch=256)
    with pytest.raises(MetricsError, match="cannot be the same images"):
        metrics.speedup(two, one)
    assert "ratio of epoch times" in metrics.speedup(but(two, steps=97), one).notes[0]


# Loss and accuracy, runs


def test_learning_curves_are_means_over_repeats():
    first, second = ([Epoch(4.0, 0.0, 9, metrics={"loss": x}) for x in losses] for losses in ((2.0, 1.0), (3.0, 1.2)))
    (found,) = metrics.measure([run(repeats=[first, second])])
    assert found.loss == pytest.approx([2.5, 1.1]) and found.final_loss.value == pytest.approx(1.1)
    assert found.final_loss.interval == pytest.approx([1.1 - 12.7062 * 0.1, 1.1 + 12.7062 * 0.1], rel=1e-4)
    assert found.accuracy == [] and found.final_accuracy.value is None


def test_rows_are_json_without_nan_and_say_so():
    (found,) = metrics.measure(log.read(LOGS / "crlf_latin1.out"))
    assert found.loss == [2.0408, None, None] and found.final_loss.value is None
    assert any("diverged" in note for note in found.notes)
    row = tables.row(found)
    json.dumps(row, allow_nan=False)
    expected = (
        "source run kind model strategy workers global_batch local_batch steps images repeats epoch_seconds "
        "epoch_seconds_interval images_per_second images_per_second_interval "
        "images_per_second_per_worker speedup speedup_interval efficiency efficiency_interval loss accuracy final_loss "
        "final_accuracy oversubscribed failure truncated notes"
    )
    assert set(expected.split()) <= set(row)


def test_validation_and_oversubscription_are_noted():
    notes = " ".join(metrics.measure(log.read(LOGS / "keras3_bars.out"))[0].notes)
    assert "include validation" in notes
    assert "oversubscribed" in " ".join(metrics.measure([run(oversubscribed=True)])[0].notes)


# Run records


def test_from_record():
    found = records.read(record(), "a.json")
    assert (found.workers, metrics.epoch_images(found)[0], found.hardware, found.truncated) == (
        2,
        1792,
        "Some CPU",
        False,
    )
    assert [[e.seconds for e in repeat] for repeat in found.repeats] == [[8, 7, 6], [8, 7, 6]]
    (found,) = metrics.measure([found])
    assert (
        found.epoch_seconds.value == 6.5
        and tables.counted(found) == 2
        and found.final_accuracy.value == pytest.approx(0.2)
    )
    gpus = records.read(record(machine={"cpu": "c", "gpus": ["V100", "V100"]}), "a.json")
    assert gpus.hardware == "V100"
    assert records.read(record(state="failed"), "a.json").truncated


# Files


def test_record_is_preferred_to_the_log_of_the_same_stem(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(record()))
    (tmp_path / "a.out").write_text("Epoch 1/1\n14/14 - 9s - loss: 2.0000\n")
    (tmp_path / "progress.json").write_text("{}")
    for paths in ([tmp_path], [tmp_path / "a.out", tmp_path / "a.json"], tmp_path):
        (run,) = results.load(paths)
        assert (run.source, run.epoch_seconds.value) == ("a.json", 6.5)


def test_logs_in_different_files_that_do_not_say_their_hardware_are_not_divided(tmp_path):
    for workers, seconds in ((1, 45), (2, 24)):
        lines = "".join(f"Epoch {e}/2\n196/196 - {seconds}s - loss: 2.0000\n" for e in (1, 2))
        (tmp_path / f"w{workers}.out").write_text(f"Model ResNet50V2 {workers} GPUs\n{lines}")
    one, two = results.load([tmp_path])
    assert (one.speedup.value, two.speedup.value) == (1, None)
    assert "in another file" in " ".join(two.notes)


def test_failed_job_is_a_run_beside_others_and_an_error_alone(tmp_path):
    runs = results.load([RECORDED, LOGS / "oom.out", LOGS / "oom.err"], images=50000)
    assert runs[3].failure["kind"] == "out of memory" and runs[3].speedup.value is None
    assert (runs[3].model, runs[3].global_batch) == ("ResNet152V2", 512)
    with pytest.raises(log.LogError, match="out of memory"):
        results.load([LOGS / "oom.out"])
    (tmp_path / "b.err").write_text("MemoryError\n")
    assert results.load([tmp_path / "b.err"])[0].failure["kind"] == "out of memory"


def test_failed_record_takes_the_line_of_its_err(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(record(state="failed")))
    (tmp_path / "a.err").write_text("MemoryError\n")
    (run,) = results.load([tmp_path / "a.json"])
    assert run.truncated and run.failure["line_number"] == 1 and run.failure["file"] == "a.err"


def test_wrong_files_are_named(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "a.pdf").touch()
    wrong = {"a.pdf": "type .pdf is not read", "no.out": "no such file", "a.json": "not a run record", ".": "no res"}
    for path, message in wrong.items():
        with pytest.raises(LabsError, match=message):
            results.load([tmp_path / path])


def test_table_shows_values_intervals_units_and_notes():
    text = results.table(results.load([RECORDED, LOGS / "oom.out"], images=50000))
    lines = text.splitlines()
    assert "epoch (s)" in lines[0] and "images/s per worker" in lines[0]
    assert "12 (1 run, 11.5 to 12.5)" in lines[4] and "3.75 (1 run, 3.56 to 3.96)" in lines[4]
    assert (
        "FAILED" in lines[5]
        and "Run 1, 2, 3: 1 run" in text
        and "Run 2, 3: not paired" in text
        and "failed: out of memory" in text
    )
    assert "(no runs)" in results.table([])


@pytest.mark.parametrize(
    "values", [[0.01, 0.02, 0.3], [0.0, 0.0, 0.5], [0.99, 1.0, 0.9], [0.5, 0.5], [1.0, 1.0], [0, 1]]
)
def test_the_interval_of_an_accuracy_holds_the_mean_and_is_within_0_and_1(values):
    low, high = intervals.shares(values)
    assert 0 <= low <= sum(values) / len(values) <= high <= 1
    assert (low < high) == (len(set(values)) > 1)


def test_where_accuracies_hardly_differ_their_interval_is_that_of_the_mean():
    values = [0.60, 0.61, 0.62]
    assert intervals.shares(values) == pytest.approx(intervals.plain(values), abs=1e-3)
    assert intervals.shares([0.6]) is None
