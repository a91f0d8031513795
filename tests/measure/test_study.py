"""labs.measure.study and `labs study`: the whole experiment, what is reused, and how it stops."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labs import cli, devices, jobs, models, presets, printed, recorded, results
from labs.jobs import anywhere
from labs.measure import study
from labs.results import run as records
from labs.results import tables
from labs.results.intervals import UNKNOWN, Estimate
from labs.results.record import Configuration

ROOT = Path(__file__).parents[2]
TEST = presets.PRESETS["test"]
NAMES = ["SmallCNN_mirrored_w1_b32", "SmallCNN_mirrored_w2_b64"]


@pytest.fixture(scope="module", autouse=True)
def on_the_cpu():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.delenv("LABS_PRESET", raising=False)
        yield


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """`labs study --preset test` from the shell: (what it left, its folder)."""
    out = tmp_path_factory.mktemp("study")
    command = [sys.executable, "-m", "labs", "study", "--preset", "test", "--out", str(out)]
    cold = os.environ | {"WARM_SERVER": ""}  # as it is for a student
    return subprocess.run(command, cwd=ROOT, env=cold, capture_output=True, text=True), out


def png_size(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return len(data)


def test_the_whole_study_from_the_shell(shell):
    done, out = shell
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for name, workers in zip(NAMES, TEST.workers, strict=True):
        found = records.load(out / f"{name}.json")
        has = found.configuration
        assert (found.state, has.workers, has.repeats) == ("finished", workers, TEST.repeats)
        assert len(found.epochs) == TEST.repeats * TEST.epochs
        assert found.oversubscribed == (workers > devices.cores())
        assert all(0 <= epoch.others <= 1 for epoch in found.epochs)
        assert f"Model SmallCNN {workers} workers" in (out / f"{name}.out").read_text()
        assert (out / f"{name}.err").exists()


@pytest.mark.more("a study over Horovod leaves the same records as one over MirroredStrategy")
def test_study_with_horovod_leaves_the_same_records(shell, tmp_path, needs_horovod):
    (path,) = study.run(TEST, workers=[2], strategy="horovod", out=tmp_path, show=False)
    mirrored, horovod = records.load(shell[1] / f"{NAMES[1]}.json"), records.load(path)
    assert path.name == "SmallCNN_horovod_w2_b64.json"
    assert horovod.weights["identical"] and horovod.weights["ranks"] == 2
    assert horovod.configuration == mirrored.configuration.model_copy(update={"strategy": "horovod"})
    own = {"name", "configuration", "epochs", "weights", "command", "started", "finished", "study", "order_seed"}
    assert horovod.model_dump(exclude=own) == mirrored.model_dump(exclude=own)
    assert [(e.repeat, e.epoch, e.images, len(e.step_seconds)) for e in horovod.epochs] == [
        (e.repeat, e.epoch, e.images, len(e.step_seconds)) for e in mirrored.epochs
    ]
    assert path.with_suffix(".err").read_text() == ""


def test_table_has_time_speed_and_learning_of_each_number_of_workers(shell):
    done, out = shell
    table = (out / "table.txt").read_text()
    assert table in done.stdout
    head, _, *lines = table.splitlines()
    for column in ("epoch (s)", "images/s", "speedup", "efficiency", "loss", "accuracy", "kind"):
        assert column in head
    for line, name in zip(lines, NAMES, strict=False):
        assert name in line and "measured" in line and re.search(r"\[[\d.e+-]+, [\d.e+-]+\]", line)


def test_plots_have_their_text_alternatives(shell):
    _, out = shell
    assert {p.stem for p in out.glob("*.png")} == {"epoch_time", "throughput", "speedup", "learning"}
    for picture in out.glob("*.png"):
        assert png_size(picture) > 5000
        assert re.search(r"SmallCNN.*: \d", picture.with_suffix(".txt").read_text())


def test_second_call_reuses_the_records(shell, monkeypatch, capsys):
    done, out = shell
    assert done.returncode == 0
    monkeypatch.setattr(anywhere, "start", lambda *_, **__: pytest.fail("a job was started"))
    assert cli.main(["study", "--preset", "test", "--out", str(out), "--json"]) == 0
    said, told = capsys.readouterr()
    result = json.loads(said)
    assert [Path(p).stem for p in result["records"]] == NAMES and len(result["plots"]) == 4
    assert [row["workers"] for row in result["runs"]] == [1, 2] and result["runs"][1]["speedup"] > 0
    assert told.count("on record, reused") == 1, "both, for they are one study"


def test_fresh_measures_again(shell, monkeypatch):
    _, out = shell

    def start(*arguments, name, **_):
        raise jobs.JobError(f"started {name}")

    monkeypatch.setattr(anywhere, "start", start)
    with pytest.raises(jobs.JobError, match=f"started {NAMES[0]}"):
        study.run(TEST, out=out, fresh=True, show=False)
    with pytest.raises(jobs.JobError, match=f"started {NAMES[0]}"):
        study.run(TEST, out=out, seed=1, show=False)  # another seed is another configuration


@pytest.mark.parametrize(
    "change",
    [
        {"state": "failed"},
        {"state": "running"},
        {"seed": 1},
        {"images": 64},
        {"epochs_per_repeat": 9},
        {"repeats": 2},
        {"image_size": 64},
        {"strategy": "single"},
        {"versions": {"python": "2.7"}},
    ],
)
def test_only_a_finished_record_of_the_same_configuration_and_versions_is_reused(shell, tmp_path, change):
    found = records.load(shell[1] / f"{NAMES[0]}.json")
    wanted = study.configuration(TEST, "SmallCNN", 1, "mirrored")
    path = tmp_path / "record.json"
    records.save(path, found)
    assert study.reusable(path, wanted)
    place = found if set(change) <= {"state", "versions"} else found.configuration
    for key, value in change.items():
        setattr(place, key, value)
    records.save(path, found)
    assert not study.reusable(path, wanted)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", "3"])
def test_what_is_no_record_is_not_reused(tmp_path, text):
    path = tmp_path / "record.json"
    if text is not None:
        path.write_text(text)
    assert not study.reusable(path, Configuration())


def test_failing_run_stops_the_study_with_its_reason_and_the_next_call_goes_on_from_there(shell, tmp_path, monkeypatch):
    for name in NAMES:
        shutil.copy(shell[1] / f"{name}.json", tmp_path)
    (tmp_path / "fails.py").write_text("raise ValueError('less than a batch of 96')")
    start, started, said = jobs.start, [], []

    def fails(*_, name, env, runs):
        started.append(name)
        return start(tmp_path / "fails.py", name=name, runs=runs, env=env)

    monkeypatch.setattr(anywhere, "start", fails)
    for _ in range(2):
        with pytest.raises(study.RunError) as caught:
            study.run(TEST, workers=[1, 2, 3], out=tmp_path, show=False, report=said.append)
        text = str(caught.value)
        assert "\n" not in text and "The study stops here" in text
        assert "less than a batch of 96" in text and ".err" in text
    third = ["SmallCNN_mirrored_w1_b32_beside_w3", "SmallCNN_mirrored_w3_b96"]
    assert started == third * 2 and "reused" in said[-2]
    assert all((tmp_path / f"{name}.json").exists() for name in NAMES)
    assert not any((tmp_path / f"{name}.json").exists() for name in third)


def test_a_finished_record_is_replaced_by_a_finished_one_only(shell, tmp_path, monkeypatch):
    for name in NAMES:
        for ending in (".json", ".out", ".err"):
            shutil.copy(shell[1] / f"{name}{ending}", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "fails.py").write_text("raise ValueError('not this time')")
    start = jobs.start
    monkeypatch.setattr(anywhere, "start", lambda *_, **options: start(tmp_path / "fails.py", **options))
    with pytest.raises(study.RunError, match="not this time") as caught:
        study.run(TEST, out=tmp_path, fresh=True, show=False, report=str)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert Path(re.search(r"\((\S+\.err), line", str(caught.value))[1]).exists(), "what is named is there"
    assert study.run(TEST, out=tmp_path, show=False) == [tmp_path / f"{name}.json" for name in NAMES]


def test_trainings_that_do_not_fit_beside_each_other_are_started_anew_in_each_round(tmp_path, monkeypatch):
    """As on a GPU with room for one: the first attempt, together, runs out of memory."""
    (tmp_path / "full.py").write_text(
        "import sys; sys.exit('RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[2]')"
    )
    start, together = anywhere.start, []

    def no_room(*arguments, env=None, **options):
        if env:  # in turns
            together.append(options["name"])
            arguments = (tmp_path / "full.py",)
        return start(*arguments, env=env, **options)

    monkeypatch.setattr(anywhere, "start", no_room)
    monkeypatch.setattr(devices, "gpus", lambda: ["GPU:0"])
    monkeypatch.setattr(study.secrets, "randbelow", lambda _: 3)  # its orders differ from round to round
    plan, said = dataclasses.replace(TEST, epochs=3, images=64), []
    paths = study.run(plan, out=tmp_path / "runs", show=False, report=said.append)
    assert together == NAMES and "each round starts them anew" in said[-1]
    found = [records.load(path) for path in paths]
    assert {each.sharing for each in found} == {"started anew in each round"} and len(
        {each.study for each in found}
    ) == 1
    (seed,) = {each.order_seed for each in found}
    drawn = [order for _, order in zip(range(2), jobs.orders(seed, 2), strict=False)]
    assert drawn[0] != drawn[1]
    assert [[(e.epoch, e.round, e.order) for e in each.epochs[1:]] for each in found] == [
        [(1, 1, drawn[0].index(place)), (2, 2, drawn[1].index(place))] for place in (0, 1)
    ]
    assert study._on_record(paths, [study.configuration(plan, "SmallCNN", count, "mirrored") for count in (1, 2)])
    assert sorted((tmp_path / "runs").glob("*.json")) == sorted(paths), "no file of a round is left"
    two = next(run for run in results.load(paths) if run.workers == 2)
    assert tables.counted(two) == 2 and two.speedup.interval


def test_what_takes_turns_has_names_of_its_own():
    found = list(study.groups(TEST, ["A", "B"], [1, 2, 4], "mirrored", twice=True))
    assert [(name, list(pair.values())) for name, pair in found] == [
        *((name, counts) for name in "AB" for counts in ([1, 2], [1, 4])),
        ("A", [1, 1]),
    ]
    names = [name for _, pair in found for name in pair]
    assert len(set(names)) == len(names) == 10 and found[0][1] == {"A_mirrored_w1_b32": 1, "A_mirrored_w2_b64": 2}
    assert found[1][1] == {"A_mirrored_w1_b32_beside_w4": 1, "A_mirrored_w4_b128": 4}
    assert found[-1][1] == {"A_mirrored_w1_b32_once": 1, "A_mirrored_w1_b32_again": 1}
    alone = list(study.groups(TEST, ["A"], [2, 4], "horovod"))
    assert alone == [("A", {"A_horovod_w2_b64": 2}), ("A", {"A_horovod_w4_b128": 4})]


def test_one_configuration_against_itself_is_what_differences_must_exceed(tmp_path):
    def write(name, seconds):
        made = records.load(recorded.laptop_two_networks()[0])
        epochs = [made.epochs[0].model_copy(update={"epoch": n, "round": n or None, "seconds": s})
                  for n, s in enumerate([9.0, *seconds])]  # fmt: skip
        records.save(tmp_path / f"{name}.json", made.model_copy(update={"study": "s", "epochs": epochs}))
        return tmp_path / f"{name}.json"

    paths = write("once", [4.0, 4.4, 4.0, 4.2]), write("again", [4.0, 4.3, 4.1, 4.2])
    ratio, floor = found = study.itself(paths)
    assert ratio.value == pytest.approx((4.4 / 4.3 * 4.0 / 4.1) ** 0.25)
    assert 1 + floor == max(ratio.interval[1], 1 / ratio.interval[0]) and 0.01 < floor < 0.05
    runs = [
        records.Run(f"{gain}", configuration={"workers": n}, speedup=Estimate(gain), efficiency=Estimate(gain / n))
        for n, gain in ((1, 1.0), (2, 1.005), (2, 1.99), (2, 1.5))
    ]
    runs.append(records.Run("unknown", configuration={"workers": 2}, speedup=UNKNOWN, efficiency=UNKNOWN))
    first, *others = study.believed(runs, found)
    assert f"Believe no difference below {floor:.1%}" in first
    assert [line.split(" differs")[0] for line in others] == [
        "1.005: its speedup of 1.005", "1.99: its efficiency of 0.995",
    ]  # fmt: skip
    few = study.itself([write(name, [4.0]) for name in ("once", "again")])
    assert few[1] is None and "without an interval" in study.believed(runs, few)[0]


def test_one_worker_is_measured_beside_each_other_number():
    assert study.pairs([4, 1, 2, 2]) == [(1, 2), (1, 4)]
    assert study.pairs([1]) == [(1,)] and study.pairs([2, 4]) == [(2,), (4,)]


def test_records_of_different_studies_are_measured_again(shell, tmp_path):
    """Both are there, but they did not take turns with each other."""
    paths = [tmp_path / f"{name}.json" for name in NAMES]
    for path in paths:
        shutil.copy(shell[1] / path.name, path)
    wanted = [study.configuration(TEST, "SmallCNN", count, "mirrored") for count in (1, 2)]
    assert study._on_record(paths, wanted)
    found = records.load(paths[1])
    found.study = "another"
    records.save(paths[1], found)
    assert not study._on_record(paths, wanted)


def test_failing_study_is_exit_code_1_and_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "fails.py").write_text("raise ValueError('nothing to train on')")
    start = jobs.start
    monkeypatch.setattr(anywhere, "start", lambda *_, **k: start(tmp_path / "fails.py", **k))
    assert cli.main(["study", "--preset", "test", "--out", str(tmp_path / "runs")]) == 1
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and "nothing to train on" in error[0] and error[0].startswith("labs study: ")


def test_more_workers_than_cores_and_a_rest_that_would_leave_one_empty(tmp_path):
    """One more worker than cores, and a last batch of 2 images: the rest is left out, the run says what it is."""
    count = devices.cores() + 1
    plan = dataclasses.replace(TEST, images=8 * count + 2, local_batch=8, epochs=1, repeats=1)
    said = []
    (path,) = study.run(plan, workers=[count], out=tmp_path, show=False, report=said.append)
    found = records.load(path)
    has = found.configuration
    assert found.oversubscribed is True and "oversubscribed" in said[0]
    assert (found.steps, found.epochs[0].images) == (1, 8 * count)
    assert (has.global_batch, has.local_batch, has.workers) == (8 * count, 8, count)
    assert found.machine["cores"] == count - 1
    assert f"{count} workers on {printed.several(count - 1, 'core')}" in path.with_suffix(".err").read_text()

    assert f"{count}*" in results.table(results.load(path))


# A study that cannot be run


def test_wrong_use_is_refused_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(anywhere, "start", lambda *_, **__: pytest.fail("a job was started"))
    out = tmp_path / "runs"
    for arguments, says in (
        ("--preset big", "Unknown preset 'big'"),
        ("--models ResNet51", "Unknown model 'ResNet51'"),
        ("--models SmallCNN ResNet50V2 --image_size 16", "32x32"),
        ("--workers 0", "0 workers"),
        ("--workers 1 -2", "-2 workers"),
        ("--repeats 0", "0 repeats"),
        ("--epochs 0", "0 epochs"),
        ("--local_batch 0", "0 batch"),
        ("--local_batch -32", "-32 batch"),
        ("--strategy single --workers 1 2", "single is for 1 worker, not 2"),
        ("--dataset nope", "No dataset is called 'nope'"),
        ("--dataset folder:/nope", "/nope is not a folder"),
        ("--images -1", "-1 images"),
        ("--images 40", "more than the 40 images"),
        ("--images 1798", "more than the 1797"),
        ("--dataset synthetic:99999999999999999999", "do not fit into memory"),
        ("--workers 1000000000000", "at most 1000000000"),
        ("--local_batch 1000", "more than the 128 images"),
        ("--seed -1", "Seed -1"),
    ):
        assert cli.main(["study", "--preset", "test", "--out", str(out), *arguments.split()]) == 2, arguments
        error = capsys.readouterr().err
        assert says in error and error.count("\n") == 1 and not out.exists()


def test_unwritable_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["study", "--preset", "test", "--out", str(tmp_path / "file" / "runs")]) == 1
    error = capsys.readouterr().err
    assert "Cannot write into" in error and error.count("\n") == 1


def test_pictures_that_cannot_be_written(shell, tmp_path, capsys):
    for name in NAMES:
        shutil.copy(shell[1] / f"{name}.json", tmp_path)
    (tmp_path / "throughput.png").mkdir()
    assert cli.main(["study", "--preset", "test", "--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "Cannot write" in error and "throughput.png" in error and error.count("\n") == 1


# Presets


def test_presets(monkeypatch):
    assert set(presets.PRESETS) == {"test", "laptop", "course"}
    for plan in presets.PRESETS.values():
        assert plan.epochs >= 4 and 1 in plan.workers  # warm-up, rounds for an interval, a baseline
        assert all(models.check_size(name, plan.image_size) is None for name in plan.models)
    course = presets.PRESETS["course"]
    assert (course.dataset, course.image_size, course.local_batch, course.epochs) == ("cifar10", 128, 256, 7)
    monkeypatch.setattr(devices, "gpus", lambda: [])
    assert presets.choose().name == "laptop" and presets.choose("test") is TEST
    monkeypatch.setattr(devices, "gpus", lambda: ["GPU:0"])
    assert presets.choose().name == "course"
    monkeypatch.setenv("LABS_PRESET", "test")
    assert presets.choose() is TEST


def test_arguments_are_those_of_the_training_scripts():
    import argparse

    from labs import training

    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int)
    training.arguments(parser)
    for plan in presets.PRESETS.values():
        args = parser.parse_args(plan.arguments())
        assert (args.dataset, args.images, args.image_size) == (plan.dataset, plan.images, plan.image_size)
        assert (args.epochs, args.repeats) == (plan.epochs, plan.repeats)


def test_environment_is_not_changed():
    assert "LABS_RUN" not in os.environ  # jobs get it, the caller does not


def slower(folder, factors):
    """The recorded runs on 1 and 2 workers, and as Other the same, `factors` {workers: factor} times as long."""
    paths = []
    for log in recorded.laptop():
        for name in ("ResNet50V2", "Other"):
            made = records.load(log.with_suffix(".json"))
            workers, made.configuration.model = made.configuration.workers, name
            for epoch in made.epochs:
                epoch.seconds *= factors[workers] if name == "Other" else 1.0
            paths.append(folder / f"{name}_{workers}.json")
            records.save(paths[-1], made)
    return paths


@pytest.mark.parametrize(("factors", "ratio"), [({1: 3.0, 2: 3.0}, 1.0), ({1: 3.0, 2: 6.0}, 0.5)])
def test_verdict_on_the_difference_of_two_networks(tmp_path, factors, ratio):
    (told,) = study.verdicts(results.load(slower(tmp_path, factors)))
    assert told["workers"] == 2 and told["verdict"].names == ("Other", "ResNet50V2")
    assert told["verdict"].ratio == pytest.approx(ratio, rel=1e-6)
    assert (told["verdict"].answer == "yes") == (ratio == 0.5)


def test_no_verdict_without_a_second_network_or_a_baseline(tmp_path):
    runs = results.load(slower(tmp_path, {1: 1.0, 2: 1.0}))
    assert study.verdicts([run for run in runs if run.model == "Other"]) == []
    assert study.verdicts([run for run in runs if run.workers == 2]) == []
