"""A sample trained again: what was trained agrees with itself; a loss or a speedup that was made up does not."""

import re
from pathlib import Path
from types import SimpleNamespace

import made_class
import numpy as np
import pytest

from labs import files
from labs.errors import UseError
from labs.report.archive import zipped
from labs.results import run as records
from teaching.cli import main
from teaching.grading import handed, rerun

RUNS = made_class.RUNS
TINY = """
    network = keras.Sequential(
        [keras.layers.Flatten(), keras.layers.Dense(64, "relu"), keras.layers.Dense(10, "softmax")]
    )
"""


def tiny(script):
    """ResNet50.py with a network that is trained in a second."""
    changed = re.sub(r"    network = keras\.applications.*?\n    \)\n", TINY, script, flags=re.DOTALL)
    assert changed != script
    return changed


def work(runs, script):
    """The contents of a submission with these {name: Run} and this script."""
    contents = made_class.written(runs) | {"notebooks/scripts/ResNet50.py": script.encode()}
    contents["notebooks/05_resnet50_scaling.ipynb"] = made_class.notebook("05_resnet50_scaling", True).encode()
    return contents


def planned(images=256, batch=32):
    """{name: Run}: what a small study says of itself, with times and losses that nothing has measured."""
    runs = made_class.study(1)
    for record in runs.values():
        workers = record.configuration.workers
        record.configuration.images, record.configuration.global_batch = images, batch * workers
        record.command = ["scripts/ResNet50.py", "--n_gpus", str(workers), "--batch_size", str(batch * workers)]
        record.command += ["--images", str(images), "--epochs", "3"]
    return runs


@pytest.fixture(scope="module")
def trainings(needs_sandbox, tmp_path_factory):
    """Two studies of the script `tiny` that were trained here, one after the other: ({name: Run}, what was told)."""
    made = []
    for number in range(2):
        folder, told = tmp_path_factory.mktemp(f"trained{number}"), []
        with handed.opened("001", kept(folder, work(planned(), tiny(made_class.script())))) as submission:
            sample = rerun._sample(submission, rerun.item_of("T5"))
            assert rerun._train(submission, sample, folder, told.append) == (None, [])
        made.append(({name: records.load(folder / f"{name}.json") for name in sample}, told))
    return made


@pytest.fixture
def trained(trainings, monkeypatch):
    """{name: Run} of the first study; what is trained again is the second one."""
    (found, _), (second, told) = trainings

    def train(submission, sample, folder, report):
        for line in told:
            report(line)
        for name in sample:
            records.save(folder / f"{name}.json", second[name])
        return None, []

    monkeypatch.setattr(rerun, "_train", train)
    found = {name: record.model_copy(deep=True) for name, record in found.items()}
    for name, record in found.items():
        record.command = planned()[name].command
    return found


def kept(folder, contents, number="001"):
    path = Path(folder, f"submissions/{number}.zip")
    files.write(path, zipped(contents))
    return path


def again(folder, runs, script=None):
    """(lines, findings) of one submission of these runs."""
    kept(folder, work(runs, script or tiny(made_class.script())))
    return rerun.rerun(folder, "001", "T5"), rerun.findings(folder).get("001", [])


@pytest.mark.parametrize("handed_in", [1, 3])
def test_an_honest_loss_is_outside_its_interval_1_time_in_20(handed_in):
    """Repeats of one training, its losses spread by 3 %: as many as were handed in, and three trained again."""
    random, agreed = np.random.default_rng(8), []

    def trained(repeats):
        losses = np.exp(random.normal(0.7, 0.03, (repeats, 2))).tolist()
        return SimpleNamespace(repeats=[[SimpleNamespace(metrics={"loss": loss}) for loss in each] for each in losses])

    for _ in range(2000):
        said, _, (low, high) = rerun._losses(trained(handed_in), trained(3))
        agreed.append(low <= said <= high)
    assert 0.93 < np.mean(agreed) < 0.97


def test_what_was_trained_agrees_with_itself(trained, tmp_path):
    (plain, speedup, *losses), found = again(tmp_path, trained)
    assert plain.startswith("ResNet50.py is not plain: ")  # its network is another one
    assert speedup.startswith("ResNet50_w2: its speedup was ")  # whether it agrees is a matter of times
    assert len(losses) == 2 and losses[0].startswith("ResNet50_w1: its loss was ")
    assert all(line.endswith(": it does") for line in losses) and not [each for each in found if "loss" in each.seen]


def test_a_loss_and_a_speedup_that_were_made_up_are_told(trained, tmp_path, capsys):
    runs = {name: record.model_copy(deep=True) for name, record in trained.items()}
    for epoch in runs["ResNet50_w2"].epochs:
        epoch.metrics["loss"] *= 0.1
        epoch.seconds *= 0.001  # so much that no disturbed round explains it
    kept(tmp_path, work(runs, tiny(made_class.script())))
    assert main(["rerun", "001", "T5", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.count("IT DOES NOT") == 2
    assert "\n1 of 18 epochs, time left about " in f"\n{said}" and "17 of 18 epochs" in said
    _, *found = rerun.findings(tmp_path)["001"]
    assert [(each.kind, each.severity, each.where) for each in found] == [("rerun", "look", "ResNet50_w2")] * 2
    assert all(each.honest and " would agree" in each.seen for each in found)


FAILS = {
    "raises": ("raise SystemExit(3)", "left no record"),
    "writes no record": ("import os; os._exit(0)", "left no record"),
    "reads the solutions": (
        f"open({str(made_class.ROOT / 'solutions/05_resnet50_scaling.py')!r})",
        "FileNotFoundError",
    ),
}


@pytest.mark.parametrize("what", FAILS)
def test_a_script_that_does_not_train_is_told(what, needs_sandbox, tmp_path):
    code, said = FAILS[what]
    lines, found = again(tmp_path, planned(), code + "\n" + made_class.script())
    assert said in lines[-1] and [(each.kind, each.severity) for each in found if each.severity != "note"] == [
        ("rerun", "look")
    ]


INVENTED = """
import json, os, sys
workers = sys.argv[sys.argv.index("--n_gpus") + 1]
record = json.loads(RECORDS[workers])
open(f"{os.environ['LABS_RUNS']}/ResNet50_w{workers}.json", "w").write(json.dumps(record))
os._exit(0)
"""


def test_a_record_that_no_training_wrote_is_not_compared(needs_sandbox, tmp_path, capsys):
    runs = planned()
    for record in runs.values():
        record.epochs = [
            epoch.model_copy(update={"repeat": repeat, "epoch": n})
            for repeat in range(3)
            for n, epoch in enumerate(record.epochs[:3])
        ]
    written = {str(record.configuration.workers): record.model_dump_json() for record in runs.values()}
    kept(tmp_path, work(runs, INVENTED.replace("RECORDS", repr(written)) + made_class.script()))
    assert main(["rerun", "001", "T5", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ResNet50.py is not plain: ") and not any("it does" in line for line in lines)
    assert lines[1] == "the record of ResNet50_w1 tells of 9 epochs, and it took 0 turns for them: " + DOUBTED
    assert {each.severity for each in rerun.findings(tmp_path)["001"]} == {"note", "look"}


DOUBTED = "it is not compared with what was handed in"


@pytest.mark.parametrize(
    ("turn", "seconds", "computed", "said"),
    [
        (1.1, 30, 25, []),
        (0.6, 30, 25, ["the record of a says 6 s for all epochs but the first, and 3.6 s passed outside"]),
        (3.0, 30, 25, ["the record of a says 6 s for all epochs but the first, and 18 s passed outside"]),
        (1.1, 8, 25, ["the records tell of 9 s in turns, and 8 s passed outside"]),
        (1.1, 30, 2, ["the records tell of 9 s of training, and the processors worked for 2 s"]),
    ],
)
def test_a_record_is_held_against_the_clock_outside(turn, seconds, computed, said):
    epochs = [records.Epoch(repeat=repeat, epoch=n, seconds=1.0) for repeat in range(3) for n in range(3)]
    assert list(rerun._doubts({"a": epochs}, {"a": [turn] * 9}, seconds, computed)) == said


def test_a_script_that_only_computes_is_believed(tmp_path):
    with handed.opened("001", kept(tmp_path, work(planned(), made_class.script()))) as submission:
        assert rerun._read(submission, ["ResNet50_w1"], made_class.ROOT) == ([], [])


def test_what_a_script_says_last_is_no_command_to_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr(rerun, "rerun", lambda *_, **__: ["ResNet50_w1 left no record: \x1b]0;x\x07"])
    assert main(["rerun", "001", "T5"]) == 0
    assert capsys.readouterr().out == "ResNet50_w1 left no record: \\x1b]0;x\\x07\n"


def test_what_cannot_be_trained_again_is_refused(needs_sandbox, tmp_path):
    kept(tmp_path, work({}, made_class.script()))
    for number, task, says in (("009", "T5", "no submission 009"), ("001", "T1", "no task"), ("001", "T5", "no study")):
        with pytest.raises(UseError, match=says):
            rerun.rerun(tmp_path, number, task)
    assert not (tmp_path / "rerun").exists()


def test_a_large_run_is_trained_small_and_its_loss_is_not_compared():
    record = planned()["ResNet50_w2"]
    assert rerun._small(record) == (["--epochs", "3", "--repeats", "3", "--images", "256"], True)
    for field, value in (("dataset", "cifar10"), ("images", 50_000), ("image_size", 224)):
        large = record.model_copy(deep=True)
        setattr(large.configuration, field, value)
        options, same = rerun._small(large)
        assert not same and options[-6:] == ["--dataset", "digits", "--image_size", "32", "--batch_size", "64"]
