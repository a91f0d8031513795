"""A sample trained again: what was trained agrees with itself; a loss or a speedup that was made up does not."""

import re
from pathlib import Path

import made_class
import pytest

from labs import files
from labs.cli import main
from labs.errors import UseError
from labs.grading import handed, rerun
from labs.report.archive import zipped
from labs.results import record as records

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
    """The contents of a submission with these {name: Record} and this script."""
    contents = made_class.written(runs) | {"notebooks/scripts/ResNet50.py": script.encode()}
    contents["notebooks/05_resnet50_scaling.ipynb"] = made_class.notebook("05_resnet50_scaling", True).encode()
    return contents


def planned(images=256, batch=32):
    """{name: Record}: what a small study says of itself, with times and losses that nothing has measured."""
    runs = made_class.study(1)
    for record in runs.values():
        workers = record.configuration.workers
        record.configuration.images, record.configuration.global_batch = images, batch * workers
        record.command = ["scripts/ResNet50.py", "--n_gpus", str(workers), "--batch_size", str(batch * workers)]
        record.command += ["--images", str(images), "--epochs", "3"]
    return runs


@pytest.fixture(scope="module")
def trained(needs_sandbox, tmp_path_factory):
    """{name: Record} of a study that was trained here, of the script `tiny`."""
    folder = tmp_path_factory.mktemp("trained")
    with handed.opened("001", kept(folder, work(planned(), tiny(made_class.script())))) as submission:
        sample = rerun._sample(submission, rerun.item_of("T5"))
        assert rerun._train(submission, sample, folder) is None
    found = {name: records.load(folder / f"{name}.json") for name in sample}
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


def test_what_was_trained_agrees_with_itself(trained, tmp_path):
    (speedup, *losses), found = again(tmp_path, trained)
    assert speedup.startswith("ResNet50_w2: its speedup was ")  # whether it agrees is a matter of times
    assert len(losses) == 2 and losses[0].startswith("ResNet50_w1: its loss was ")
    assert all(line.endswith(": it does") for line in losses) and not [each for each in found if "loss" in each.seen]


def test_a_loss_and_a_speedup_that_were_made_up_are_told(trained, tmp_path, capsys):
    runs = {name: record.model_copy(deep=True) for name, record in trained.items()}
    for epoch in runs["ResNet50_w2"].epochs:
        epoch.metrics["loss"] *= 0.1
        epoch.seconds *= 0.001  # so much that no disturbed round explains it
    kept(tmp_path, work(runs, tiny(made_class.script())))
    assert main(["grade", "rerun", "001", "T5", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("IT DOES NOT") == 2
    found = rerun.findings(tmp_path)["001"]
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
    assert said in lines[0] and [(each.kind, each.severity) for each in found] == [("rerun", "look")]


def test_what_a_script_says_last_is_no_command_to_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr(rerun, "rerun", lambda *_: ["ResNet50_w1 left no record: \x1b]0;x\x07"])
    assert main(["grade", "rerun", "001", "T5"]) == 0
    assert capsys.readouterr().out == "ResNet50_w1 left no record: \\x1b]0;x\\x07\n"


def test_what_cannot_be_trained_again_is_refused(needs_sandbox, tmp_path):
    kept(tmp_path, work({}, made_class.script()))
    for number, task, says in (("009", "T5", "no submission 009"), ("001", "T1", "no task"), ("001", "T5", "no runs")):
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
