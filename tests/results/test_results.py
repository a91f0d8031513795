"""labs results with files of batch scripts, as copied from a cluster: each run once, failures where they belong."""

import json

import pytest

from labs import cli, recorded, results
from labs.errors import LabsError
from labs.results import tables

SIZES = {1: (256, 196, 45), 2: (512, 98, 24), 4: (1024, 49, 12)}  # workers -> global batch, steps, seconds


def log(workers, epochs=3, loss=2.0, done=True):
    """What a training prints; the last epoch is missing where it is not done."""
    batch, steps, seconds = SIZES[workers]
    lines = [f"Model ResNet50V2 {workers} GPUs", f"Batch_size: {batch}"]
    for epoch in range(1, epochs + 1):
        lines.append(f"Epoch {epoch}/{epochs}")
        if done or epoch < epochs:
            lines.append(f"{steps}/{steps} - {seconds}s - loss: {loss / epoch:.4f} - accuracy: 0.2000")
    return "\n".join(lines) + "\n"


def record(path, workers, epochs=3, loss=2.0, state="finished", seconds=None, **fields):
    batch, steps, usual = SIZES[workers]
    seconds = (usual if seconds is None else seconds - 0.25) + 0.25
    configuration = {"model": "ResNet50V2", "strategy": "mirrored", "workers": workers, "global_batch": batch}
    done = [
        {"repeat": 0, "epoch": e, "seconds": seconds, "images": 50000, "metrics": {"loss": loss / (e + 1)}}
        for e in range(epochs)
    ]
    path.write_text(
        json.dumps(
            {
                "version": 2,
                "name": path.stem,
                "kind": "measured",
                "state": state,
                "configuration": configuration,
                "steps": steps,
                "epochs": done,
            }
            | fields
        )
    )


@pytest.fixture
def job(tmp_path):
    """A job of 1, 2 and 4 workers that has ended, as three kinds of files; its folder."""
    (tmp_path / "ResNet50_812.out").write_text("Job 812 on n1, GPUs 0,1,2,3\n" + "".join(map(log, SIZES)))
    (tmp_path / "ResNet50_812.err").write_text("")
    for workers in SIZES:
        record(tmp_path / f"ResNet50_812_w{workers}.json", workers)
    return tmp_path


def found_in(*paths):
    return [(run.source, run.workers, run.epoch_seconds.value) for run in results.load(paths)]


def test_each_run_appears_once_from_its_record(job):
    expected = [(f"ResNet50_812_w{n}.json", n, SIZES[n][2] + 0.25) for n in SIZES]
    assert found_in(job) == expected
    assert found_in(*sorted(job.iterdir())) == expected
    found = results.load(job)
    assert [run.failure for run in found] == [None] * 3
    assert found[2].speedup.value == pytest.approx(45.25 / 12.25)


def test_run_without_a_record_comes_from_the_log(job):
    (job / "ResNet50_812_w2.json").unlink()
    one, *others = found_in(job)
    assert one == ("ResNet50_812_w1.json", 1, 45.25)
    assert others == [("ResNet50_812.out", 2, 24), ("ResNet50_812_w4.json", 4, 12.25)]


def test_records_of_which_the_log_shows_nothing_stand(job):
    (job / "ResNet50_812.out").write_text(log(2))
    assert [source for source, *_ in found_in(job)] == [f"ResNet50_812_w{n}.json" for n in SIZES]


LIMIT = "slurmstepd: error: *** JOB 812 ON n1 CANCELLED AT 2024-09-30T16:00:24 DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize("state", ["running", "failed"])
def test_failure_belongs_to_the_run_that_did_not_end(job, state):
    (job / "ResNet50_812_w4.json").unlink()
    record(job / "ResNet50_812_w2.json", 2, epochs=2, state=state)
    (job / "ResNet50_812.out").write_text(log(1) + log(2, done=False))
    (job / "ResNet50_812.err").write_text(LIMIT)
    one, two = results.load(job)
    assert one.failure is None and not one.truncated
    assert two.source == "ResNet50_812_w2.json" and two.truncated
    assert (two.failure["kind"], two.failure["file"]) == ("time limit", "ResNet50_812.err")
    (run,) = results.load(job / "ResNet50_812_w2.json")
    assert run.failure["file"] == "ResNet50_812.err", "also for the record alone"


def test_run_that_failed_before_its_first_epoch_and_its_record(job):
    for workers in (2, 4):
        (job / f"ResNet50_812_w{workers}.json").unlink()
    (job / "ResNet50_812.out").write_text(log(1) + "Model ResNet50V2 2 GPUs\nBatch_size: 512\nEpoch 1/3\n")
    (job / "ResNet50_812.err").write_text("MemoryError\n")
    one, two = results.load(job)
    assert one.failure is None and one.epoch_seconds.value == 45.25
    assert (two.workers, two.epoch_seconds.value, two.failure["kind"]) == (2, None, "out of memory")


def test_failure_after_all_runs_that_began_have_ended_is_a_row_of_its_own(job):
    (job / "ResNet50_812_w4.json").unlink()
    (job / "ResNet50_812.out").write_text(log(1) + log(2))
    (job / "ResNet50_812.err").write_text(LIMIT)
    found = results.load(job)
    assert [run.failure and run.failure["kind"] for run in found] == [None, None, "time limit"]
    assert found[2].source == "ResNet50_812.err" and "after the runs above" in found[2].notes[0]
    (job / "ResNet50_812.err").write_text("x.sh: line 3: module: command not found\n")
    assert len(results.load(job)) == 2, "the script went on without it"


def test_log_without_any_epoch_beside_a_record(job):
    (job / "ResNet50_812.out").write_text("nothing\n")
    assert [source for source, *_ in found_in(job)] == [f"ResNet50_812_w{n}.json" for n in SIZES]


def test_options_fill_runs_of_a_batch_script(job):
    (job / "ResNet50_812_w2.json").unlink()
    found = results.load(job, images=50000)
    assert found[1].images_per_second.value == pytest.approx(50000 / 24)


def test_jobs_of_the_cluster_and_of_this_machine_in_one_folder(job, capsys):
    """Beside files that are no results."""
    record(job / "ResNet50_local_w1.json", 1)
    (job / "ResNet50_local.out").write_text(log(1))
    record(job / "ResNet50_w2.json", 2)  # a job of its own: it has its own log
    (job / "ResNet50_w2.out").write_text(log(2))
    record(job / "ResNet50_w4.json", 4)
    (job / "maxbatch_SmallCNN_32.maxbatch.json").write_text('{"version": 1, "trials": []}')
    (job / "maxbatch_SmallCNN_32.err").write_text("MemoryError\n")
    (job / "maxbatch_SmallCNN_32_bisect1.err").write_text("MemoryError\n")
    evidence = "  OOM when allocating tensor with shape[64,64]\n"
    (job / "maxbatch_813.out").write_text("SmallCNN at 32x32\nlargest batch that fits: 64\n" + evidence)
    (job / "maxbatch_813.err").write_text("")
    (job / "progress.json").write_text("{}")
    (job / "table.txt").write_text("run model\n")
    sources = [f"ResNet50_{run}.json" for run in ("812_w1", "812_w2", "812_w4", "local_w1", "w2", "w4")]
    assert [source for source, *_ in found_in(job)] == sources
    assert cli.main(["results", str(job)]) == 0
    text = capsys.readouterr().out
    lines = text.split("\n\n")[0].splitlines()[2:]
    assert [line.split()[1] for line in lines] == sources and "FAILED" not in text
    assert "in another file, and no study or job says" in text


# Files of several studies beside each other


def test_recorded_studies_beside_each_other_keep_their_own_baselines():
    folders = [find()[0].parent for find in (recorded.laptop_two_networks, recorded.laptop_two_networks_horovod)]
    alone = [run for folder in folders for run in results.load([folder])]
    together = results.load(folders)
    assert [run.speedup.value for run in together] == [run.speedup.value for run in alone]
    assert [len(run.steady) for run in together] == [len(run.steady) for run in alone]
    assert all(run.speedup.value for run in together)


LOGS = {"cpu": (1, 900), "one_gpu": (1, 45), "two_gpus": (2, 24)}


def test_logs_of_a_cpu_and_of_gpus_in_files_of_their_own_are_not_divided(tmp_path):
    for name, (workers, seconds) in LOGS.items():
        lines = "".join(f"Epoch {e}/2\n196/196 - {seconds}s - loss: 2.0000\n" for e in (1, 2))
        (tmp_path / f"{name}.out").write_text(f"Model ResNet50V2 {workers} GPUs\n{lines}")
    two = next(run for run in results.load([tmp_path]) if run.workers == 2)
    assert two.speedup.value is None and two.efficiency.value is None
    assert "in another file" in " ".join(two.notes)


def test_what_notebook_05_and_a_study_leave_in_one_folder(tmp_path):
    """Two studies of the same training, each with a baseline of its own, and an old run that took no turns."""
    for study, seconds in (("first", (60, 32)), ("second", (30, 20)), (None, (45, 25))):
        for workers, each in zip((1, 2), seconds, strict=True):
            name = f"{study}_{workers}.json"
            record(tmp_path / name, workers, seconds=each, study=study, machine={"cpu": "a CPU", "gpus": []})
    found = {run.source: run.speedup.value for run in results.load([tmp_path])}
    assert found["first_2.json"] == pytest.approx(60 / 32)
    assert found["second_2.json"] == pytest.approx(30 / 20)
    assert found["None_2.json"] is None


def test_the_study_of_a_batch_script_stands_for_it(tmp_path):
    """Its log says nothing that its records do not say, unless there are none."""
    folder = tmp_path / "study_7"
    folder.mkdir()
    (tmp_path / "study_7.out").write_text("Job 7 on node1\n")
    (tmp_path / "study_7.err").write_text("slurmstepd: error: *** JOB 7 CANCELLED AT 12:00 DUE TO TIME LIMIT ***\n")
    with pytest.raises(LabsError, match="study_7.out: no finished epoch.*time limit"):
        results.load([tmp_path])
    for workers, seconds in ((1, 60), (2, 40)):
        record(folder / f"w{workers}.json", workers, seconds=seconds, study="s")
    record(tmp_path / "alone.json", 1, seconds=10)
    found = {(run.source, run.workers): run for run in results.load([tmp_path])}
    assert len(found) == 2 + 1 and found["w2.json", 2].speedup.value == pytest.approx(60 / 40)


def test_an_earlier_run_is_shown_only_where_the_later_one_is_not(tmp_path):
    both = {"name": "a", "study": "one", "machine": {"cpu": "a CPU"}}
    for name, seconds in (("a", 40), ("a.1", 50), ("a.2", 60)):
        record(tmp_path / f"{name}.json", 1, seconds=seconds, **both)
        (tmp_path / f"{name}.out").write_text(log(1))
    record(tmp_path / "b0.1.json", 2, seconds=20, name="b0.1", study="one", machine={"cpu": "a CPU"})
    record(tmp_path / "b0.json", 2, seconds=10, name="b0", study="two")
    assert [source for source, *_ in found_in(tmp_path)] == ["a.json", "b0.1.json", "b0.json"]
    found = {run.source: run for run in results.load([tmp_path])}
    assert found["b0.1.json"].speedup.value == pytest.approx(2) and len(found["a.json"].steady) == 1
    assert [source for source, *_ in found_in(tmp_path / "a.2.json")] == ["a.2.json"]


# Records that cannot be


NAN = float("nan")
BROKEN = {
    "machine": {"machine": "x"},
    "gpus": {"machine": {"gpus": 5}},
    "cpu": {"machine": {"cpu": ["x"]}},
    "workers as text": {"configuration": {"workers": "2"}},
    "no workers": {"configuration": {"workers": -2}},
    "workers with 400 digits": {"configuration": {"workers": 10**400}},
    "model of half a letter": {"configuration": {"model": "\ud800"}},
    "no epochs": {"epochs": {}},
    "refused": {"epochs": [], "state": "failed"},
    "loss": {"epochs": [{"seconds": 1.0, "metrics": {"loss": "x"}}]},
    "version": {"version": 9},
    **{f"{value:.0e} s": {"epochs": [{"seconds": value}] * 3} for value in (-1.0, 0.0, 1e308, 1e-320, NAN)},
    "a time of 400 digits": {"epochs": [{"seconds": 10**400}] * 3},
}
DIVERGED = [{"epoch": e, "seconds": 20.0, "metrics": {"loss": (-1) ** e * 1e308}} for e in range(3)]
STRANGE = {
    "loss that diverges": {"epochs": DIVERGED + [epoch | {"repeat": 1} for epoch in DIVERGED]},
    "not a number": {"epochs": [{"epoch": e, "seconds": 20.0, "metrics": {"loss": NAN}} for e in range(3)]},
    "fields of another kit": {"version": 2, "configuration": {"workers": 2, "source": 5, "rate": NAN}},
    "escapes": {"name": "\x1b[31m", "configuration": {"model": "\x1b]0;x\x07"}},
}
TEXTS = {"deep": b'{"epochs":' + b"[" * 200_000, "empty": b"", "half": b'{"version": 1, "epochs"', "binary": b"\0\xff"}


@pytest.mark.parametrize("kind", [*BROKEN, *STRANGE, *TEXTS])
def test_a_bad_record_is_a_row_and_the_others_stand(tmp_path, capsys, kind):
    for workers in (1, 2):
        record(tmp_path / f"good_{workers}.json", workers, study="good")
    if kind in TEXTS:
        (tmp_path / "bad.json").write_bytes(TEXTS[kind])
    else:
        record(tmp_path / "bad.json", 2)
        made = json.loads((tmp_path / "bad.json").read_text()) | (BROKEN | STRANGE)[kind]
        (tmp_path / "bad.json").write_text(json.dumps(made))
    assert cli.main(["results", "--json", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    found = {row["source"]: row for row in json.loads(text, parse_constant=pytest.fail)["runs"]}
    assert set(found) == {"bad.json", "good_1.json", "good_2.json"}
    assert found["good_2.json"]["speedup"] == pytest.approx(45.25 / 24.25)
    assert kind in STRANGE or (found["bad.json"]["notes"] and found["bad.json"]["epoch_seconds"] is None)
    assert cli.main(["results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "good_2.json" in out and "\x1b" not in out


def test_a_row_of_json_says_what_the_run_says(tmp_path):
    (tmp_path / "b.out").write_text(log(2, done=False))
    (tmp_path / "b.err").write_text("MemoryError\n")
    (tmp_path / "c.json").write_text("{")
    runs = [*results.load([*recorded.laptop(), *recorded.laptop_two_networks()]), *results.load([tmp_path])]
    rows = [tables.row(run) for run in runs]
    assert len({frozenset(row) for row in rows}) == 1 and json.dumps(rows, allow_nan=False)
    for row, run in zip(rows, runs, strict=True):
        assert (row["speedup"], row["workers"], row["notes"]) == (run.speedup.value, run.workers, run.notes)
        assert row["speedup_interval"] == (run.speedup.interval and list(run.speedup.interval))
        assert row["baseline"] == (run.baseline and run.baseline.source)
    assert any(row["speedup_interval"] for row in rows) and any(row["final_loss"] for row in rows)
    assert [row["failure"]["kind"] for row in rows if row["failure"]] == ["out of memory"]


def test_the_table_names_the_baseline_the_scaling_and_what_to_do(tmp_path):
    for workers, network, batch in ((1, "A", 256), (2, "A", 512), (1, "B", 256), (2, "B", 256)):
        record(tmp_path / f"{network}{workers}.json", workers, study=network)
        made = json.loads((tmp_path / f"{network}{workers}.json").read_text())
        made["configuration"] |= {"model": network, "global_batch": batch}
        (tmp_path / f"{network}{workers}.json").write_text(json.dumps(made))
    (tmp_path / "c.out").write_text(log(1, done=False))
    (tmp_path / "c.err").write_text("MemoryError\n")
    text = results.table(results.load(tmp_path))
    lines = text.splitlines()
    assert ["weak, by run 1" in lines[3], "strong, by run 3" in lines[5]] == [True, True]
    assert "by run" not in lines[2] + lines[4] and "MemoryError). Halve the batch size" in text


VALIDATED = {"loss": 1.0, "val_loss": 1.0}


def test_validation_counts_in_the_epoch_and_not_in_the_steps(tmp_path):
    """The record's steps hold no validation: 4 s of each epoch."""
    epochs = [
        {"epoch": e, "seconds": 14.0, "images": 100, "step_seconds": [2.0] * 5, "metrics": VALIDATED} for e in (0, 1)
    ]
    record(tmp_path / "a.json", 1, epochs=2)
    made = json.loads((tmp_path / "a.json").read_text()) | {"epochs": epochs, "steps": 5}
    (tmp_path / "a.json").write_text(json.dumps(made))
    (run,) = results.load(tmp_path)
    assert (run.epoch_seconds.value, run.step_time.value) == (14, 2)
    assert run.images_per_second.value == pytest.approx(100 / 14)
    assert run.training_images_per_second.value == pytest.approx(100 / 10)
    assert "images/s without validation" in results.table([run])
    made["epochs"] = [epoch | {"metrics": {"loss": 1.0}} for epoch in epochs]
    (tmp_path / "a.json").write_text(json.dumps(made))
    assert "without validation" not in results.table(results.load(tmp_path))


@pytest.mark.parametrize(
    ("losses", "says"), [([2.303, 2.302, 2.304], True), ([2.303, 2.1, 1.9], False), ([2.3], False)]
)
def test_a_run_that_learns_nothing_says_so(tmp_path, losses, says):
    record(tmp_path / "a.json", 1)
    made = json.loads((tmp_path / "a.json").read_text())
    made["epochs"] = [{"epoch": e, "seconds": 4.0, "metrics": {"loss": loss}} for e, loss in enumerate(losses)]
    (tmp_path / "a.json").write_text(json.dumps(made))
    (run,) = results.load(tmp_path)
    assert any("has not fallen since the first epoch (2.303, then 2.304)" in note for note in run.notes) == says


def test_a_bad_record_of_a_batch_script_costs_its_own_row_only(job):
    (job / "ResNet50_812_w2.json").write_text("{")
    sources = ["ResNet50_812_w1.json", "ResNet50_812.out", "ResNet50_812_w4.json", "ResNet50_812_w2.json"]
    assert [source for source, *_ in found_in(job)] == sources
