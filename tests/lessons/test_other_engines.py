"""Notebook 27: one model on several engines ends with the same weights, and a missing exchange would be seen."""

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from labs import devices, presets
from labs.errors import UseError
from labs.measure import study
from labs.results.run import load
from lessons.other_engines import experiments

# The training program as on a machine where TensorFlow is not installed.
WITHOUT_TENSORFLOW = """
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "tensorflow" else real(name, *rest)
class Missing:
    def find_spec(name, *_):
        if name == "tensorflow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing)
from labs.training import program
program.main(sys.argv[1:])
"""


@pytest.mark.more("the same 20 steps on five engines: five programs that compile")
@pytest.mark.slow
def test_all_engines_agree_and_a_missing_exchange_exceeds_the_tolerance_tenfold(
    tmp_path, monkeypatch, needs_jax, needs_horovod
):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    trained = experiments.trained()
    assert set(trained) == set(experiments.ENGINES)
    one = trained["one process"]
    tolerance = 10 * max(experiments.apart(row, one["plain"]) for row in experiments.orders(one)[1:])
    plain = {row["engine"]: row["apart"] for row in experiments.table(trained, "plain")}
    assert 0 < tolerance and max(plain.values()) < tolerance, (plain, tolerance)
    assert experiments.apart(one["half"], one["plain"]) > 10 * tolerance
    # A softmax before the loss: JAX differs, with one device as with two.
    softmax = {row["engine"]: row["apart"] for row in experiments.table(trained, "softmax")}
    assert max(softmax["MirroredStrategy"], softmax["Horovod"]) < tolerance
    assert min(softmax["JAX, 1 device"], softmax["JAX, 2 devices"]) > 100 * tolerance
    on_jax = {name: of for name, of in trained.items() if "JAX" in name}
    assert experiments.table(on_jax, "softmax", by="JAX, 1 device")[0]["apart"] < tolerance
    # Batch normalisation: JAX takes the mean of the whole batch, the others that of each worker's share.
    norm = {row["engine"]: row["apart"] for row in experiments.table(trained, "batch_norm")}
    assert 100 * norm["JAX, 2 devices"] < min(norm["MirroredStrategy"], norm["Horovod"])


@pytest.mark.more("a study on JAX: two programs that compile")
@pytest.mark.slow
def test_a_study_on_jax_leaves_records_of_this_strategy_and_is_reused(tmp_path, needs_jax):
    plan = presets.PRESETS["test"]
    paths = study.run(plan, workers=[1, 2], strategy="jax", out=tmp_path, show=False)
    runs = [load(path) for path in paths]
    assert [(run.strategy, run.workers) for run in runs] == [("jax", 1), ("jax", 2)]
    assert all(run.versions["jax"] and run.steps == len(run.epochs[0].step_seconds) for run in runs)
    said = []
    assert study.run(plan, workers=[1, 2], strategy="jax", out=tmp_path, report=said.append) == paths
    assert "reused" in said[0]


@pytest.mark.more("a training that compiles on JAX")
@pytest.mark.slow
def test_without_tensorflow_keras_trains_on_jax(tmp_path, needs_jax):
    asked = ["--strategy=jax", "--model=SmallCNN", "--batch_size=32", "--epochs=2", "--dataset=synthetic:64"]
    env = os.environ | {"KERAS_BACKEND": "jax"}
    subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, *asked, "--run=own", f"--runs={tmp_path}"], env=env, check=True
    )
    found = load(tmp_path / "own.json")
    assert found.state == "finished" and [epoch.images for epoch in found.epochs] == [64, 64]


def test_a_study_on_jax_is_refused_where_there_is_no_jax_or_a_gpu(monkeypatch):
    plan = presets.PRESETS["test"]
    monkeypatch.setattr(devices, "gpus", lambda: ["GPU:0"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace())
    with pytest.raises(study.StudyError, match="KERAS_BACKEND=jax"):
        study.check(plan, ("SmallCNN",), (1, 2), "jax", 0, {})
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(study.StudyError, match="`make jax`"):
        study.check(plan, ("SmallCNN",), (1, 2), "jax", 0, {})


def test_keras_must_be_told_of_jax_before_it_is_imported():
    with pytest.raises(devices.DeviceError, match="KERAS_BACKEND=jax"):
        devices.of_jax(2)


def test_engines_that_are_not_installed_are_named_and_left_out(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert experiments.here("single", "mirrored", "horovod", "jax") == ["single", "mirrored"]
    assert experiments.trained(["Horovod", "JAX, 2 devices"]) == {}
    said = capsys.readouterr().out
    assert "needs Horovod" in said and "needs JAX, which is not installed (`make jax`" in said
    assert experiments.table({}, "plain") == []


def test_the_script_needs_equal_shares(needs_jax, monkeypatch, capsys):
    from lessons.other_engines import small

    for asked in ("0", "3", "4"):
        monkeypatch.setattr(sys, "argv", ["jax_by_hand.py", "--devices", asked])
        with pytest.raises(SystemExit):
            small.main(None, None, None)
        assert "do not divide into so many equal shares. Use 2." in capsys.readouterr().err


def test_without_jax_the_script_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "lessons.other_engines.small", raising=False)
    with pytest.raises(UseError, match="`make jax`"):
        importlib.import_module("lessons.other_engines.small")
