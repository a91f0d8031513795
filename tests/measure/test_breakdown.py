"""The parts of a step: differences of measured steps, and real steps of both programs."""

import json
from statistics import geometric_mean

import pytest

from labs import jobs
from labs.errors import UseError
from labs.measure import breakdown, breakdown_program, step
from labs.results import intervals

ALONE = [[0.80, 0.84], [0.82, 0.82], [0.79, 0.81]]


def result(alone=ALONE, adds=(0.05, 0.10, 0.01)):
    """Steps of two ranks, of which each kind takes longer than the one before."""
    steps, seconds = {"alone": alone}, alone
    for kind, more in zip(breakdown.KINDS[1:], adds, strict=True):
        seconds = [[step + more for step in of_round] for of_round in seconds]
        steps[kind] = seconds
    few = {
        kind: [[0.3 * step + more for step in of_round] for of_round in alone]
        for kind, more in (("alone", 0.0), ("exchange", adds[0] + adds[1]))
    }
    found = {"version": 2, "kind": "measured", "model": "ResNet50V2", "ranks": 2, "local_batch": 64, "image_size": 32}
    found |= {"seconds": {"64": steps, "16": few}, "notes": [], "machine": {"cpu": "a core", "gpus": []}}
    return json.loads(json.dumps(found))


def test_parts_are_differences_and_the_efficiency_a_ratio_within_rounds():
    found = breakdown.parts(result())
    seconds, interval = found["computation"]
    assert seconds == pytest.approx(0.8133, abs=1e-4) and interval == pytest.approx(intervals.plain([0.82, 0.82, 0.80]))
    for part, added in zip(breakdown.PARTS[1:], (0.05, 0.10, 0.01), strict=True):
        seconds, ends = found[part]  # the rounds differ, their differences do not
        assert [seconds, *ends] == pytest.approx([added] * 3)
    assert list(found) == list(breakdown.PARTS) and breakdown.too_noisy(found) == []
    found = result()  # 0.82, 0.82 and 0.80 s alone, 0.15 s more with exchange
    ratios = [0.82 / 0.97, 0.82 / 0.97, 0.80 / 0.95]
    value, interval = breakdown.efficiency(found)
    assert value == pytest.approx(geometric_mean(ratios)) and interval == pytest.approx(intervals.mean(ratios).interval)
    uneven = result(alone=[[1.0, 1.0], [3.0, 3.0]], adds=(0.0, 1.0, 0.0))
    assert breakdown.efficiency(uneven)[0] == pytest.approx(geometric_mean([1 / 2, 3 / 4])), (
        "and not the arithmetic one"
    )
    assert breakdown.efficiency(found, 16)[0] == pytest.approx(0.246 / 0.396, rel=0.01)
    with pytest.raises(breakdown.BreakdownError, match="Batch 32 was not measured: ask for 64 or 16"):
        breakdown.means(found, 32)


def test_a_part_below_0_and_a_busy_machine_are_told_with_the_measurement(monkeypatch, tmp_path):
    found = result(adds=(0.05, 0.10, -0.02))
    assert breakdown.parts(found)["input"][0] == pytest.approx(-0.02)
    (said,) = breakdown.too_noisy(breakdown.parts(found))
    assert said.startswith("too noisy to tell 'input'") and "measure again" in said

    class Done:
        state = "finished"

        def wait(self, show):
            (tmp_path / "breakdown_SmallCNN.breakdown.json").write_text(json.dumps(found))

    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    monkeypatch.setattr(jobs, "start", lambda *_, **__: Done())
    monkeypatch.setattr(breakdown.devices, "cores", lambda: 2)
    assert breakdown.measure("SmallCNN")["notes"] == [said]
    found["others"] = [0.0, 0.4, 0.5]
    monkeypatch.setattr(breakdown.devices, "cores", lambda: 1)
    crowd, busy, last = breakdown.measure("SmallCNN")["notes"]
    assert crowd == "oversubscribed: more ranks (2) than cores (1)"
    assert "in 2 of 3 rounds: these are numbers of a busy machine" in busy and last == said
    quiet = result(alone=[*ALONE, [8.0, 8.4]]) | {"others": [0.0, None, 0.1, 0.9]}
    assert breakdown.parts(quiet) == breakdown.parts(result())
    assert breakdown.rounds(quiet, 16)["alone"] == result()["seconds"]["16"]["alone"]
    assert "in 1 of 4 rounds, which are left out" in breakdown._undisturbed(quiet)[1]


def test_all_kinds_take_turns_and_are_averaged_over_the_ranks_that_stepped():
    taken = []

    def take(kind, size, number):
        taken.append((kind, size, number))
        if kind == "moment":
            return [(10.0 * len(taken), float(len(taken)), 0.0)] * 2
        return [[1.0, 2.0], None if kind == "alone" else [3.0, 6.0]]

    found = breakdown_program.take_turns(take, [16, 8], list(breakdown.KINDS), 2, 5, report=lambda *_, **__: None)
    assert found["seconds"][16]["alone"] == [[1.0, 2.0]] * 2 == found["seconds"][8]["alone"]
    assert found["seconds"][16]["input"] == [[2.0, 4.0]] * 2 == found["seconds"][8]["exchange"]
    assert [tuple(kinds) for kinds in found["seconds"].values()] == [breakdown.KINDS, breakdown.EFFICIENCY]
    assert found["pipeline_seconds"] == found["all_reduce_seconds"] == [3.0, 3.0] and len(found["others"]) == 2
    orders = [[each[:2] for each in taken if each[0] in breakdown.KINDS and each[2] == n] for n in (0, 1)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]), "the order is drawn anew in each round"
    assert step.over_ranks([None, [5.0, 6.0]]) == [5.0, 6.0]


def test_only_a_step_with_input_reads_a_batch():
    seen, read = [], iter([f"read {n}" for n in range(20)])
    process = breakdown_program.Process.__new__(breakdown_program.Process)  # without a network
    process.train = lambda kind, batch: seen.append((kind, batch))
    process.memory, process.pipeline, process.steps = {8: "in memory"}, read, 2
    for kind in breakdown.KINDS:
        assert len(process.take(kind, 8)) == 2
    assert {batch for kind, batch in seen if kind != "input"} == {"in memory"}
    assert [batch for kind, batch in seen if kind == "input"] == ["read 0", "read 1"]
    assert len(process.take("read", 8)) == 2 and next(read) == "read 7", "those that lay ready count for nothing"


def test_wrong_use_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    for options, text in (
        ({"further_batches": (16, 2.5)}, "the local batch is 2.5"),
        ({"model": "ResNet"}, "Unknown model"),
        ({"strategy": "single"}, "The strategy is 'single'.*horovod or mirrored"),
        ({"rounds": 0}, "rounds is 0"),
    ):
        with pytest.raises(UseError, match=text):
            breakdown.measure(**{"model": "SmallCNN"} | options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.more("real replicas; notebook 26 measures with real ranks")
def test_real_steps(tmp_path, monkeypatch):
    """What is found by steps of two workers. The second batch is larger than the data set."""
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")  # as tree.NO_GREETING
    sizes = {"local_batch": 16, "further_batches": (1800,), "image_size": 8, "rounds": 2, "steps": 1}
    found = breakdown.measure("SmallCNN", strategy="mirrored", show=False, **sizes)
    assert json.loads((tmp_path / "breakdown_SmallCNN.breakdown.json").read_text()) == found
    assert [tuple(kinds) for kinds in found["seconds"].values()] == [breakdown.KINDS, breakdown.EFFICIENCY]
    for of_rounds in (of_rounds for kinds in found["seconds"].values() for of_rounds in kinds.values()):
        assert [len(steps) for steps in of_rounds] == [1, 1] and min(map(min, of_rounds)) > 0
    assert found["gradient_bytes"] == 4 * 24_346  # trainable weights of SmallCNN with 10 classes
    assert [len(found[name]) for name in ("pipeline_seconds", "all_reduce_seconds", "others")] == [2, 2, 2]
    assert (found["kind"], found["ranks"], found["strategy"]) == ("measured", 2, "mirrored")
    assert (tmp_path / "breakdown_SmallCNN.err").read_text() == ""


def test_a_measurement_that_fails_says_why(monkeypatch, tmp_path):
    (tmp_path / "fails.py").write_text("raise ValueError('digits has 1797 images')")
    start = jobs.start
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    monkeypatch.setattr(jobs, "start", lambda *_, name, **__: start(tmp_path / "fails.py", name=name))
    (tmp_path / "breakdown_SmallCNN.breakdown.json").write_text("{}")  # of an earlier measurement: it stays
    with pytest.raises(breakdown.BreakdownError, match="were not measured.*digits has 1797 images"):
        breakdown.measure("SmallCNN", show=False)
    assert (tmp_path / "breakdown_SmallCNN.breakdown.json").read_text() == "{}"
