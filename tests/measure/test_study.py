"""labs.measure.study and `labs study`: the whole experiment, what is reused, and how it stops."""

import argparse
import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from labs import cli, devices, presets, recorded, training
from labs.errors import LabsError
from labs.jobs import anywhere
from labs.measure import study
from labs.results import run as records
from labs.results.run import Configuration

TEST = presets.PRESETS["test"]
NAMES = ["SmallCNN_mirrored_w1_b32", "SmallCNN_mirrored_w2_b64"]


@pytest.fixture(scope="module", autouse=True)
def on_the_cpu():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.delenv("LABS_PRESET", raising=False)
        yield


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The folder of a study."""
    out = tmp_path_factory.mktemp("study")
    assert cli.main(["study", "--preset", "test", "--out", str(out)]) == 0
    return out


@pytest.fixture
def copied(measured, tmp_path):
    """Its records and logs, in a folder of one's own."""
    return shutil.copytree(measured, tmp_path / "copied", ignore=shutil.ignore_patterns("*.png", "*.txt"))


@pytest.fixture
def fails(tmp_path_factory, monkeypatch):
    """Whatever is started in turns fails with these words; the names of what was started."""
    program, start, started = tmp_path_factory.mktemp("programs") / "fails.py", anywhere.start, []

    def failing(words):
        program.write_text(words)
        monkeypatch.setattr(
            anywhere, "start", lambda *_, **options: started.append(options["name"]) or start(program, **options)
        )
        return started

    return failing


def test_a_study_leaves_records_a_table_and_pictures_and_is_reused(measured, monkeypatch, capsys):
    for name, workers in zip(NAMES, TEST.workers, strict=True):
        found = records.load_record(measured / f"{name}.json")
        assert (found.state, found.configuration.workers, found.configuration.repeats) == ("finished", workers, 1)
        assert len(found.epochs) == TEST.epochs and all(0 <= epoch.others <= 1 for epoch in found.epochs)
        assert found.oversubscribed == (workers > devices.cores())
        assert f"Model SmallCNN {workers} workers" in (measured / f"{name}.out").read_text()
        assert (measured / f"{name}.err").exists()
    assert all(name in (measured / "table.txt").read_text() for name in NAMES)
    assert {p.stem for p in measured.glob("*.png")} == {"epoch_time", "throughput", "speedup", "learning"}
    for picture in measured.glob("*.png"):
        assert picture.read_bytes().startswith(b"\x89PNG") and "SmallCNN" in picture.with_suffix(".txt").read_text()

    def start(*arguments, name, **_):
        raise LabsError(f"started {name}")

    monkeypatch.setattr(anywhere, "start", start)
    assert cli.main(["study", "--preset", "test", "--out", str(measured)]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in NAMES) and told.count(".png") == 4
    assert told.count("on record, reused") == 1, "both, for they are one study"
    for options in ({"fresh": True}, {"seed": 1}):
        with pytest.raises(LabsError, match=f"started {NAMES[0]}"):
            study.run(TEST, out=measured, show=False, **options)


def test_only_finished_records_of_one_study_of_the_same_configuration_and_versions_are_reused(copied):
    paths = [copied / f"{name}.json" for name in NAMES]
    wanted = [study.configuration(TEST, "SmallCNN", count, "mirrored") for count in (1, 2)]
    good = records.load_record(paths[0])
    others = {"seed": 1, "images": 64, "epochs_per_repeat": 9, "image_size": 64, "repeats": 2, "strategy": "single"}
    for key, value in others.items():
        other = good.configuration.model_copy(update={key: value})
        records.save_record(paths[0], good.model_copy(update={"configuration": other}))
        assert not study.reusable(paths[0], wanted[0]), key
    for change in ({"state": "failed"}, {"versions": {"python": "2.7"}}, {"study": "another"}, {}):
        records.save_record(paths[0], good.model_copy(update=change))  # of another one: they did not take turns
        assert bool(study.reusable(paths[0], wanted[0])) == (not change or "study" in change), change
        assert study._on_record(paths, wanted) == (not change), change
    paths[0].write_text("{")
    assert not study.reusable(paths[0], Configuration()) and not study.reusable(copied / "none.json", Configuration())


def test_failing_run_stops_the_study_with_its_reason_and_the_next_call_goes_on_from_there(copied, fails, capsys):
    started = fails("raise ValueError('less than a batch of 96')")
    words = ["study", "--preset", "test", "--workers", "1", "2", "3", "--out", str(copied)]
    third = ["SmallCNN_mirrored_w1_b32_beside_w3", "SmallCNN_mirrored_w3_b96"]
    for _ in range(2):
        assert cli.main(words) == 1
        said, error = capsys.readouterr()
        assert error.startswith("labs study: ") and error.count("\n") == 1 and "The study stops here" in error
        assert "less than a batch of 96" in error and ".err" in error and "reused" in said
    assert started == third * 2
    assert all((copied / f"{name}.json").exists() for name in NAMES)
    assert not any((copied / f"{name}.json").exists() for name in third)


def test_an_earlier_record_is_kept_beside_one_that_fails(copied, fails):
    before = {path.stem: path.read_bytes() for path in copied.glob("*.json")}
    fails("raise ValueError('not this time')")
    with pytest.raises(LabsError, match="not this time") as caught:
        study.run(TEST, out=copied, fresh=True, show=False, report=str)
    after = {path.stem.removesuffix(".1"): path.read_bytes() for path in copied.glob("*.json")}
    assert after == before, "at its place or as NAME.1"
    assert Path(re.search(r"\((\S+\.err), line", str(caught.value))[1]).exists(), "what is named is there"


def test_what_takes_turns_has_names_of_its_own():
    found = list(study.groups(TEST, ["A", "B"], [1, 2, 4], "mirrored"))
    assert len(found) == 4 and len({name for _, pair in found for name in pair}) == 8
    assert found[0] == ("A", {"A_mirrored_w1_b32": 1, "A_mirrored_w2_b64": 2})
    assert found[3] == ("B", {"B_mirrored_w1_b32_beside_w4": 1, "B_mirrored_w4_b128": 4})
    for counts, pairs in (([1], [[1]]), ([2, 4], [[2], [4]]), ([1, 2], [[1, 2]])):
        assert [list(pair.values()) for _, pair in study.groups(TEST, ["A"], counts, "mirrored")] == pairs


def test_more_workers_than_cores_and_a_rest_that_would_leave_one_empty(tmp_path):
    """One more worker than cores, and a last batch of 2 images: the rest is left out, the run says what it is."""
    count = devices.cores() + 1
    plan = dataclasses.replace(TEST, images=8 * count + 2, local_batch=8, epochs=1, repeats=1)
    said = []
    (path,) = study.run(plan, workers=[count], out=tmp_path, show=False, report=said.append)
    found = records.load_record(path)
    has = found.configuration
    assert found.oversubscribed is True and "oversubscribed" in said[0]
    assert (found.steps, found.epochs[0].images, found.machine["cores"]) == (1, 8 * count, count - 1)
    assert (has.global_batch, has.local_batch, has.workers) == (8 * count, 8, count)


def test_wrong_use_is_refused_before_anything_runs(tmp_path, capsys, monkeypatch):
    for arguments, says in (
        ("--preset big", "Unknown preset 'big'"),
        ("--models SmallCNN ResNet50V2 --image_size 16", "32x32"),
        ("--workers 1 -2", "-2 is not a whole number from 1"),
        ("--strategy single --workers 1 2", "single is for 1 worker, not 2"),
        ("--dataset nope", "No dataset is called 'nope'"),
        ("--images 40", "more than the 40 images"),
    ):
        monkeypatch.setattr(anywhere, "start", lambda *_, **__: pytest.fail("a job was started"))
        try:
            code = cli.main(["study", "--preset", "test", "--out", str(tmp_path / "runs"), *arguments.split()])
        except SystemExit as end:
            code = end.code
        assert code == 2
        error = capsys.readouterr().err
        assert says in error and error.count("\n") == 1 and not list(tmp_path.iterdir())


def test_presets(monkeypatch):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int)
    training.arguments(parser)
    for plan in presets.PRESETS.values():
        assert plan.epochs >= 4 and 1 in plan.workers  # warm-up, rounds for an interval, a baseline
        args = vars(parser.parse_args(plan.arguments()))
        assert all(args[name] == getattr(plan, name) for name in "dataset images image_size epochs repeats".split())
    for gpus, name in (([], "laptop"), (["GPU:0"], "course")):
        monkeypatch.setattr(devices, "gpus", lambda gpus=gpus: gpus)
        assert presets.choose().name == name
    monkeypatch.setenv("LABS_PRESET", "test")
    assert presets.choose() is TEST and presets.choose("laptop").name == "laptop"


def test_verdict_on_the_difference_of_two_networks(tmp_path):
    """The recorded runs on 1 and 2 workers, and as Other the same, on 2 workers twice as long."""
    runs = []
    for name in ("ResNet50V2", "Other"):
        for log in recorded.laptop():
            made = records.load_record(log.with_suffix(".json"))
            made.configuration.model = name
            for epoch in made.epochs:
                epoch.seconds *= made.configuration.workers if name == "Other" else 1
            runs.append(made)
    ((workers, told),) = study.verdicts(runs)
    assert workers == 2 and told.names == ("Other", "ResNet50V2")
    assert told.ratio == pytest.approx(0.5, rel=1e-6) and told.answer == "yes"
    assert study.verdicts(runs[2:]) == study.verdicts(runs[1::2]) == []
