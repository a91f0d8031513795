"""The parts of a step: differences of measured steps, their picture, the observations for the fit; real ranks."""

import json
from types import SimpleNamespace

import pytest

from labs import costs, jobs
from labs.measure import breakdown
from labs.models.networks import ModelError
from labs.report import evidence
from labs.results import intervals

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
        "version": 2,
        "kind": "measured",
        "model": model,
        "ranks": 2,
        "local_batch": 64,
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


def test_a_part_below_0_is_too_noisy_and_told_with_the_measurement(monkeypatch, tmp_path):
    assert breakdown.too_noisy(breakdown.parts(result())) == []
    found = result(adds=(0.05, 0.10, -0.02))
    (said,) = breakdown.too_noisy(breakdown.parts(found))
    assert said.startswith("too noisy to tell 'input'") and "measure again" in said

    class Done:
        state = "finished"

        def wait(self, show):
            (tmp_path / "breakdown_SmallCNN.breakdown.part").write_text(json.dumps(found))

    monkeypatch.setattr(jobs, "start", lambda *_, **__: Done())
    assert breakdown.measure("SmallCNN", runs=tmp_path)["notes"] == [said]
    found["others"] = [0.0, 0.4, 0.5]
    notes = breakdown.measure("SmallCNN", runs=tmp_path)["notes"]
    assert "in 2 of 3 rounds: this is a step on a busy machine" in notes[0] and notes[1] == said
    table = evidence._parts("side_by_side.breakdown.json", found | {"notes": notes})
    assert table.notes == [f"{note[0].upper()}{note[1:]}." for note in notes]


def test_rounds_of_a_busy_machine_are_left_out_as_in_a_study():
    found = result(alone=[*ALONE, [8.0, 8.4]]) | {"others": [0.0, None, 0.1, 0.9]}
    assert breakdown.parts(found) == breakdown.parts(result())
    assert [len(o.seconds) for o in breakdown.observations(found)] == [3, 3, 3, 3]
    assert "in 1 of 4 rounds, which are left out" in breakdown._counted(found)[1]


def test_others_are_what_the_cores_did_beyond_the_processes_of_the_measurement(monkeypatch):
    monkeypatch.setattr(breakdown.devices, "cores", lambda: 2)
    first = [(10.0, 0.0, 1.0), (14.0, 2.0, 2.5), (14.1, 2.1, 2.6), (17.0, 4.1, 4.0)]  # cores busy, clock, own
    other = [(0.0, 0.0, 5.0), (0.0, 2.0, 6.5), (0.0, 2.1, 6.5), (0.0, 4.1, 8.6)]
    assert breakdown.others([first, other]) == [pytest.approx(0.25), None, 0.0]  # the second round is too short
    assert breakdown.others([[(None, *rest) for _, *rest in first], other]) == [None] * 3


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
    found["notes"] = ["oversubscribed: more ranks (4) than cores (2)"]
    assert [o.oversubscribed for o in breakdown.observations(found)] == [False, True, False, True]  # alone is alone


def test_average_over_the_ranks_that_stepped():
    by_rank = [[[1.0, 2.0], None], [None, [5.0, 6.0]]]  # two ranks, each in its turn
    assert breakdown.over_ranks(by_rank) == [[1.0, 2.0], [5.0, 6.0]]
    assert breakdown.over_ranks([[[1.0, 2.0]], [[3.0, 6.0]]]) == [[2.0, 4.0]]


def test_wrong_use_is_refused_before_anything_starts(tmp_path):
    for options, text in (
        ({"ranks": 1}, "1 ranks"),
        ({"local_batch": 0}, "0 images per rank"),
        ({"rounds": 1}, "1 rounds"),
        ({"others": (16, 2.5)}, "2.5 images"),
        ({"kinds": ("alone", "input")}, "alone and exchange"),
        ({"kinds": ("all",)}, "choose of"),
        ({"strategy": "single"}, "Strategy 'single'"),
        ({"images": 100}, "do not fill one step"),
    ):
        with pytest.raises(breakdown.BreakdownError, match=text):
            breakdown.measure("SmallCNN", runs=tmp_path, **options)
    with pytest.raises(ModelError, match="Unknown model"):
        breakdown.measure("ResNet", runs=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(jobs.JobError, match="Cannot write into .*file/runs"):
        breakdown.measure("SmallCNN", runs=tmp_path / "file" / "runs")


def all_rounds_are_there(found):
    """Of batches 16 and 40 each kind of step, 2 rounds of 2 steps."""
    assert {batch: tuple(kinds) for batch, kinds in found["seconds"].items()} == {
        "16": breakdown.KINDS,
        "40": breakdown.EFFICIENCY,
    }
    for kinds in found["seconds"].values():
        for rounds in kinds.values():
            assert [len(steps) for steps in rounds] == [2, 2] and min(map(min, rounds)) > 0


def test_two_real_ranks(cold, tmp_path, needs_horovod):
    """The second batch is larger than the data set."""
    sizes = {"local_batch": 16, "others": (40,), "images": 32, "rounds": 2, "steps": 2}
    found = breakdown.measure("SmallCNN", runs=tmp_path, show=False, **sizes)
    assert json.loads((tmp_path / "breakdown_SmallCNN.breakdown.json").read_text()) == found
    all_rounds_are_there(found)
    assert found["gradient_bytes"] == 4 * 24_346  # trainable weights of SmallCNN with 10 classes
    assert len(found["pipeline_seconds"]) == len(found["all_reduce_seconds"]) == 2
    assert found["kind"] == "measured" and found["ranks"] == 2 and len(found["others"]) == 2
    assert [o.workers for o in breakdown.observations(found)] == [1, 2, 1, 2]
    value, (low, high) = breakdown.efficiency(found, 40)
    assert 0 < low < value < high
    assert (tmp_path / "breakdown_SmallCNN.err").read_text() == ""  # no warning of Python's about how it was started


def test_two_replicas_without_horovod(tmp_path):
    sizes = {"local_batch": 16, "others": (40,), "images": 32, "rounds": 2, "steps": 2}
    found = breakdown.measure("SmallCNN", strategy="mirrored", runs=tmp_path, show=False, **sizes)
    all_rounds_are_there(found)
    assert found["gradient_bytes"] == 4 * 24_346 and found["ranks"] == 2 and found["strategy"] == "mirrored"
    assert len(found["others"]) == 2
    assert len(found["pipeline_seconds"]) == len(found["all_reduce_seconds"]) == 2
    assert list(breakdown.parts(found)) == list(breakdown.PARTS)
    assert [o.workers for o in breakdown.observations(found)] == [1, 2, 1, 2]
    assert (tmp_path / "breakdown_SmallCNN.err").read_text() == ""


def test_a_measurement_that_fails_says_why(monkeypatch, tmp_path):
    (tmp_path / "fails.py").write_text("raise ValueError('digits has 1797 images')")
    start = jobs.start
    monkeypatch.setattr(jobs, "start", lambda *_, name, runs, **__: start(tmp_path / "fails.py", name=name, runs=runs))
    (tmp_path / "breakdown_SmallCNN.breakdown.json").write_text("{}")  # of an earlier measurement: it stays
    with pytest.raises(breakdown.BreakdownError, match="were not measured.*digits has 1797 images"):
        breakdown.measure("SmallCNN", runs=tmp_path, show=False)
    assert (tmp_path / "breakdown_SmallCNN.breakdown.json").read_text() == "{}"


def test_only_a_step_with_input_reads_a_batch():
    read, fixed = iter(["read 1", "read 2"]), {8: "in memory"}
    taken = [breakdown.batch_of(kind, 8, read, fixed) for kind in breakdown.KINDS]
    assert taken.count("in memory") == len(breakdown.KINDS) - 1
    assert taken[breakdown.KINDS.index("input")] == "read 1" and next(read) == "read 2"
