"""Notebook 27: one model on several engines ends with the same weights, and a missing exchange would be seen."""

import importlib.util

import pytest

from labs import devices, presets
from labs.errors import UseError
from labs.measure import study
from lessons.other_engines import experiments


def test_all_engines_agree_and_a_missing_exchange_exceeds_the_tolerance_tenfold(needs_jax, needs_horovod):
    trained = experiments.trained()
    one = trained["one process"]
    tolerance = 10 * max(experiments.apart(row, one["plain"]) for row in experiments.orders(one)[1:])
    plain, softmax, norm = (
        {row["engine"]: row["apart"] for row in experiments.table(trained, case)} for case in experiments.CASES
    )
    assert set(trained) == set(experiments.ENGINES) and 0 < tolerance and max(plain.values()) < tolerance, plain
    assert experiments.apart(one["half"], one["plain"]) > 10 * tolerance
    # A softmax before the loss: JAX differs, with one device as with two.
    assert max(softmax["MirroredStrategy"], softmax["Horovod"]) < tolerance
    assert min(softmax["JAX, 1 device"], softmax["JAX, 2 devices"]) > 100 * tolerance
    on_jax = {name: of for name, of in trained.items() if "JAX" in name}
    assert experiments.table(on_jax, "softmax", by="JAX, 1 device")[0]["apart"] < tolerance
    # Batch normalisation: JAX takes the mean of the whole batch, the others that of each worker's share.
    assert 100 * norm["JAX, 2 devices"] < min(norm["MirroredStrategy"], norm["Horovod"])


def test_jax_is_refused_where_there_is_none_or_a_gpu_and_keras_must_be_told_before(monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: ["GPU:0"])
    for installed, said in ((object(), "KERAS_BACKEND=jax"), (None, "`make jax`")):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, installed=installed: installed)
        with pytest.raises(UseError, match=said):
            study.check_study(presets.PRESETS["test"], ("SmallCNN",), (1, 2), "jax")
    with pytest.raises(UseError, match="KERAS_BACKEND=jax"):
        devices.workers_on_jax(2)
