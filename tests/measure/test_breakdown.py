"""The parts of a step: differences of measured steps, their picture, the observations for the fit; real ranks."""

import json
from types import SimpleNamespace

import pytest

from labs import costs
from labs.measure import breakdown
from labs.measure.breakdown_steps import over_ranks, timed
from labs.models.networks import ModelError
from labs.results import intervals
from labs.show import plots

ALONE = [[0.80, 0.84], [0.82, 0.82], [0.79, 0.81]]


def result(model="ResNet50V2", factor=1.0, alone=ALONE, adds=(0.05, 0.10, 0.01)):
    steps, rounds = {"alone": alone}, alone
    for kind, more in zip(breakdown.KINDS[1:], adds, strict=True):
        rounds = [[step + more for step in round_] for round_ in rounds]
        steps[kind] = rounds
    few = {
        kind: [[0.3 * step + more for step in round_] for round_ in alone]
        for kind, more in (("alone", 0.0), ("exchange", adds[0] + adds[1]))
    }
    found = {
        "version": 1,
        "kind": "measured",
        "model": model,
        "ranks": 2,
        "batch": 64,
        "image_size": 32,
        "classes": 10,
        "gradient_bytes": 94_159_400,
        "seconds": {"64": steps, "16": few},
        "pipeline_seconds": [0.001] * 3,
        "all_reduce_seconds": [0.1] * 3,
        "machine": {"cpu": "a core", "gpus": []},
        "versions": {},
        "notes": [],
    }
    return json.loads(json.dumps(found), parse_float=lambda text: factor * float(text))


def test_parts_are_differences_with_intervals_over_rounds():
    found = breakdown.parts(result())
    assert list(found) == list(breakdown.PARTS)
    seconds, interval = found["computation"]
    assert seconds == pytest.approx(0.8133, abs=1e-4) and interval == pytest.approx(intervals.plain([0.82, 0.82, 0.80]))
    for part, added in zip(breakdown.PARTS[1:], (0.05, 0.10, 0.01), strict=True):
        seconds, (low, high) = found[part]  # the rounds differ, their differences do not
        assert seconds == pytest.approx(added) and low == pytest.approx(added) and high == pytest.approx(added)
    assert sum(seconds for seconds, _ in found.values()) == pytest.approx(0.8133 + 0.16, abs=1e-4)


def test_a_part_below_0_stays_below_0():
    found = breakdown.parts(result(adds=(0.05, 0.10, -0.02)))
    assert found["input"][0] == pytest.approx(-0.02)


def test_efficiency_is_the_mean_ratio_within_rounds():
    found = result()  # 0.82, 0.82 and 0.80 s alone, 0.15 s more with exchange
    ratios = [0.82 / 0.97, 0.82 / 0.97, 0.80 / 0.95]
    value, interval = breakdown.efficiency(found)
    assert value == pytest.approx(sum(ratios) / 3) and interval == pytest.approx(intervals.mean(ratios).interval)
    assert breakdown.efficiency(found, 16)[0] == pytest.approx(0.246 / 0.396, rel=0.01)


def test_parts_need_all_kinds():
    found = result()
    found["seconds"]["64"] = {kind: found["seconds"]["64"][kind] for kind in breakdown.EFFICIENCY}
    assert breakdown.efficiency(found)[0] == breakdown.efficiency(result())[0]
    with pytest.raises(breakdown.BreakdownError, match="not measured: input, together"):
        breakdown.parts(found)


def test_means_of_the_other_batch():
    found = breakdown.means(result(), 16)
    assert list(found) == ["alone", "exchange"] and found["alone"] == pytest.approx([0.246, 0.246, 0.24])
    with pytest.raises(breakdown.BreakdownError, match="Batch 32 was not measured, only 64, 16"):
        breakdown.means(result(), 32)


def test_observations_are_what_the_fit_takes():
    seen = [
        o
        for model, factor in (("ResNet50V2", 1.0), ("ResNet152V2", 2.4))
        for o in breakdown.observations(result(model, factor))
    ]
    assert [(o.model, o.workers, o.local_batch) for o in seen[:4]] == [
        ("ResNet50V2", 1, 64),
        ("ResNet50V2", 2, 64),
        ("ResNet50V2", 1, 16),
        ("ResNet50V2", 2, 16),
    ]
    assert seen[1].seconds == pytest.approx((0.97, 0.97, 0.95)) and seen[0].hardware == "a core"
    assert 0 < seen[0].spread < 0.05
    sizes = {"ResNet50V2": 94e6, "ResNet152V2": 233e6}
    fitted = costs.fit(
        seen,
        facts_of=lambda model, size, classes: SimpleNamespace(
            tensor_bytes=(sizes[model],), multiply_adds=sizes[model], image_size=size
        ),
    )
    told = costs.predict_from_fit(fitted, "ResNet50V2", 2, 64)
    assert told.step_seconds.value == pytest.approx(0.963, rel=0.02)


def test_shared_cores_are_told_to_the_fit():
    found = result()
    found["notes"] = ["oversubscribed: 4 ranks share 2 core(s)"]
    assert [o.oversubscribed for o in breakdown.observations(found)] == [False, True, False, True]  # alone is alone


def test_figure_names_every_part_and_marks_own_runs():
    results = [result(), result("ResNet152V2", 2.4)]
    rows = [
        {"model": "ResNet50V2", "workers": 2, "local_batch": 64, "epoch_seconds": 4.0, "steps": 4},
        {"model": "ResNet50V2", "workers": 2, "local_batch": 32, "epoch_seconds": 9.9, "steps": 4},
    ]
    drawn = breakdown.figure(results, rows)
    axis = drawn.axes[0]
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert labels == [*breakdown.PARTS, "step of your runs (T9)"]
    assert [text.get_text() for text in axis.get_yticklabels()] == [
        "ResNet50V2, 1 worker",
        "ResNet50V2, 2 workers",
        "ResNet152V2, 1 worker",
        "ResNet152V2, 2 workers",
    ]
    ends = [bar.get_x() + bar.get_width() for bar in axis.patches]
    assert max(ends[:5]) == pytest.approx(973.3, abs=0.1) and max(ends) == pytest.approx(2.4 * 973.3, abs=0.3)
    marks = [line.get_xdata()[0] for line in axis.get_lines() if len(line.get_xdata())]
    assert marks == [1000.0]  # the other row has another batch
    assert "Step of the run of ResNet50V2, 2 workers: 1e+03 ms" in drawn.alt
    assert "exchange and waiting 100 ms" in drawn.alt
    assert plots.png(drawn)[:4] == b"\x89PNG"
    plain = [text.get_text() for text in breakdown.figure(results).axes[0].get_legend().get_texts()]
    assert plain == list(breakdown.PARTS)


def test_average_over_the_ranks_that_stepped():
    by_rank = [[[1.0, 2.0], None], [None, [5.0, 6.0]]]  # two ranks, each in its turn
    assert over_ranks(by_rank) == [[1.0, 2.0], [5.0, 6.0]]
    assert over_ranks([[[1.0, 2.0]], [[3.0, 6.0]]]) == [[2.0, 4.0]]


def test_timed_calls_as_often_as_asked():
    calls = []
    assert len(timed(lambda: calls.append(1), 3)) == 3 and calls == [1, 1, 1]


def test_wrong_use_is_refused_before_anything_starts(tmp_path):
    for options, text in (
        ({"ranks": 1}, "1 ranks"),
        ({"batch": 0}, "0 images per rank"),
        ({"rounds": 1}, "1 rounds"),
        ({"others": (16, 2.5)}, "2.5 images"),
        ({"kinds": ("alone", "input")}, "alone and exchange"),
        ({"kinds": ("all",)}, "choose of"),
        ({"images": 100}, "less than one step"),
    ):
        with pytest.raises(breakdown.BreakdownError, match=text):
            breakdown.measure("SmallCNN", runs=tmp_path, **options)
    with pytest.raises(ModelError, match="Unknown model"):
        breakdown.measure("ResNet", runs=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"batch": 8, "seconds": {"16": {}}}'])
def test_a_file_without_a_breakdown(tmp_path, text):
    path = tmp_path / "x.breakdown.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(breakdown.BreakdownError, match="holds no breakdown"):
        breakdown.load(path)


def test_two_real_ranks(tmp_path, needs_horovod):
    sizes = {"batch": 16, "others": (4,), "images": 64, "rounds": 3, "steps": 2}
    found = breakdown.measure("SmallCNN", runs=tmp_path, show=False, **sizes)
    assert breakdown.load(tmp_path / "breakdown_SmallCNN.breakdown.json") == found
    assert set(found["seconds"]) == {"16", "4"} and list(found["seconds"]["16"]) == list(breakdown.KINDS)
    for kinds in found["seconds"].values():
        for rounds in kinds.values():
            assert [len(steps) for steps in rounds] == [2, 2, 2] and min(map(min, rounds)) > 0
    assert found["gradient_bytes"] == 4 * 24_346  # trainable weights of SmallCNN with 10 classes
    assert len(found["pipeline_seconds"]) == len(found["all_reduce_seconds"]) == 3
    assert found["kind"] == "measured" and found["ranks"] == 2
    assert [o.workers for o in breakdown.observations(found)] == [1, 2, 1, 2]


def test_a_measurement_that_fails_says_why(tmp_path, needs_horovod):
    with pytest.raises(breakdown.BreakdownError, match="were not measured"):
        breakdown.measure("SmallCNN", batch=1, images=5000, rounds=2, steps=1, runs=tmp_path, show=False)  # 1797 digits


def test_two_kinds_at_a_batch_larger_than_the_data_set(tmp_path, needs_horovod):
    sizes = {"batch": 600, "kinds": ("exchange", "alone"), "images": 64, "rounds": 2, "steps": 1}
    found = breakdown.measure("SmallCNN", runs=tmp_path, show=False, **sizes)
    assert list(found["seconds"]["600"]) == ["alone", "exchange"] and found["pipeline_seconds"] == []
    value, (low, high) = breakdown.efficiency(found)
    assert 0 < low < value < high
