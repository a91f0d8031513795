"""What notebook 26 reads of others, and what it makes of measured steps: runs, whole steps, predictions."""

import json
import math
import threading
from statistics import variance

import pytest

from labs import jobs, presets
from labs.measure import breakdown
from labs.results import intervals, metrics
from lessons.where_a_step_goes import experiments

NAMES = ("ResNet50V2", "ResNet152V2")


def measured(model="ResNet50V2", factor=1.0, local_batch=64):
    """Steps of 813 ms alone and 963 ms with exchange for 64 images, three rounds, times `factor`; fewer for 16."""
    rounds, ends = (0.99, 1.0, 1.01), (0.8133, 0.8633, 0.9633, 0.9733)
    seconds = {k: [[factor * end * r] * 2 for r in rounds] for k, end in zip(breakdown.KINDS, ends, strict=True)}
    few = {"alone": [[factor * 0.24 * r] * 2 for r in rounds], "exchange": [[factor * 0.37 * r] * 2 for r in rounds]}
    found = {"kind": "measured", "model": model, "ranks": 2, "local_batch": local_batch, "image_size": 32}
    found |= {"classes": 10, "machine": {"cpu": "a core", "gpus": []}, "notes": [], "pipeline_seconds": [0.001] * 3}
    return found | {"seconds": {str(local_batch): seconds, "16": few}}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    found, own = experiments.runs_of_two_networks(presets.choose("laptop"), NAMES)
    assert not own
    return found


def test_recorded_runs_stand_for_those_that_are_missing(runs):
    assert {(run.model, run.workers, run.kind) for run in runs} == {(n, w, "recorded") for n in NAMES for w in (1, 2)}


def test_the_parts_sum_beside_a_whole_step():
    run, parts = [1.00, 1.04, 0.98, 1.02], [0.99 * 0.9733, 0.9733, 1.01 * 0.9733]
    told = experiments.whole_step(measured(), run)
    assert list(told) == list(experiments.WHOLE)
    assert told["sum of the parts"] == (pytest.approx(0.9733), pytest.approx(intervals.plain(parts)))
    assert told["whole step"] == (pytest.approx(1.01), pytest.approx(intervals.plain(run)))
    seconds, (low, high) = told["residual"]
    squares = [variance(values) / len(values) for values in (run, parts)]  # Welch's, by hand
    degrees = sum(squares) ** 2 / (squares[0] ** 2 / 3 + squares[1] ** 2 / 2)
    reach = intervals.t_quantile(degrees) * math.sqrt(sum(squares))
    assert seconds == pytest.approx(1.01 - 0.9733) and (low, high) == pytest.approx((seconds - reach, seconds + reach))
    shorter, (low, high) = experiments.whole_step(measured(), [0.5 * step for step in run])["residual"]
    assert high < 0 and shorter == pytest.approx(0.505 - 0.9733)


def test_a_whole_step_of_one_repeat_has_no_interval_and_none_at_all_is_refused():
    told = experiments.whole_step(measured(), [1.0])
    assert told["sum of the parts"][1] and told["whole step"] == (1.0, None) and told["residual"][1] is None
    with pytest.raises(breakdown.BreakdownError, match="No step of a training"):
        experiments.whole_step(measured(), [])
    few = measured()
    del few["seconds"]["64"]["input"]
    with pytest.raises(breakdown.BreakdownError, match="not measured: input"):
        experiments.whole_step(few, [1.0, 1.1])


def test_the_parts_are_compared_with_a_training_of_the_same_batch_alone(runs, capsys):
    steps = {"ResNet50V2": measured(), "ResNet152V2": measured("ResNet152V2", 2.4, local_batch=32)}
    found = experiments.whole_steps(steps, runs)
    run = next(run for run in runs if (run.model, run.workers) == ("ResNet50V2", 2))
    taken = [epoch / run.steps for epoch in metrics.sample(run)[0]]
    assert list(found) == ["ResNet50V2"] and found["ResNet50V2"]["whole step"][0] == pytest.approx(
        sum(taken) / len(taken)
    )
    assert "ResNet152V2: no run on 2 workers with 32 images each" in capsys.readouterr().out


def test_predicted_steps_are_those_of_the_fit(capsys):
    every = [
        seen for name, f in zip(NAMES, (1.0, 2.4), strict=True) for seen in breakdown.observations(measured(name, f))
    ]
    held_out = [seen for seen in every if seen.workers == 2 and (seen.model, seen.local_batch) != (NAMES[0], 64)]
    fit = experiments.fitted([seen for seen in every if seen not in held_out])
    rows = experiments.predictions(fit, held_out)
    assert [row["name"] for row in rows] == [
        f"{NAMES[0]}, 2 workers x 16",
        *(f"{NAMES[1]}, 2 workers x {b}" for b in (64, 16)),
    ]
    for row in rows:
        for value, (low, high) in (row["predicted"], row["measured"]):
            assert low < value < high
    assert rows[1]["measured"][0] == pytest.approx(2.4 * 0.9633)
    assert experiments.predictions(None, held_out) == [] and experiments.fitted([]) is None
    assert not capsys.readouterr().out


def test_the_largest_batch_is_that_of_the_search_that_is_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    assert experiments.largest_batch("ResNet50V2", 32, 128) == 128
    assert "no search of T8 (notebook 09)" in capsys.readouterr().out
    one, other = (jobs.folder() / f"maxbatch_{name}_32.maxbatch.json" for name in ("ResNet50V2", "ResNet152V2"))
    budget = {"model": "ResNet50V2", "image_size": 32, "memory": 2**30, "device": "CPU under a memory budget"}
    found = json.dumps(budget | {"largest": 512})
    one.write_text(found)
    assert experiments.largest_batch("ResNet50V2", 32, 128) == 128
    assert "and ResNet152V2 (no search) cannot be compared, so 128 images are used" in capsys.readouterr().out
    other.write_text(json.dumps(budget | {"largest": 256}))
    for text, wanted in ((found, 512), (json.dumps({"largest": None}), 128), ("{", 128)):
        one.write_text(text)
        assert experiments.largest_batch("ResNet50V2", 32, 128) == wanted
    one.write_text(found)
    other.write_text(json.dumps(budget | {"largest": 32, "memory": 2**27}))
    assert experiments.largest_batch("ResNet50V2", 32, 128) == 128


def test_networks_are_measured_in_the_background_one_after_the_other(monkeypatch):
    """A stand-in for `measure`: the notebook goes on at once, and `wait` collects in order, or raises."""
    may_go, asked = threading.Event(), []

    def measured(model, **options):
        assert may_go.wait(60)
        asked.append((model, options))
        if model == "VGG16":
            raise breakdown.BreakdownError("The steps were not measured.")
        return {"model": model}

    monkeypatch.setattr(breakdown, "measure", measured)
    measuring = experiments.Measuring(("SmallCNN", "ResNet50V2"), rounds=2)
    assert measuring.state == "running" and "SmallCNN, ResNet50V2: running" in repr(measuring) and not asked
    may_go.set()
    assert measuring.wait() == {name: {"model": name} for name in ("SmallCNN", "ResNet50V2")}
    assert measuring.state == "finished" and asked[0] == ("SmallCNN", {"rounds": 2, "show": False})
    failing = experiments.Measuring(("VGG16", "SmallCNN"))
    with pytest.raises(breakdown.BreakdownError, match="were not measured"):
        failing.wait(show=False)
    assert failing.state == "failed" and len(asked) == 3
