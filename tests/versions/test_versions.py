"""The parts without Horovod, short enough to be run with several versions of TensorFlow (`make test-versions`)."""

import json

import numpy as np
import pytest
from tree import NO_GREETING

from labs import jobs, models, recorded, results
from labs.results import log, tables
from labs.results import run as records
from lessons import counts

# Multiply-adds of one image, as TensorFlow's profiler counts them (tests/lessons/test_counts.py).
MULTIPLY_ADDS = {"ResNet50V2": 3_482_255_360, "ResNet152V2": 10_906_697_728}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """{workers: Job} of a small training on 1 and on 2 replicas, with the same global batch."""
    runs, done = tmp_path_factory.mktemp("runs"), {}
    for workers in (1, 2):
        options = ["--model", "SmallCNN", "--workers", workers, "--batch_size", 64, "--images", 512, "--epochs", 3]
        name, program = f"on_{workers}", "labs.training.program"
        options += ["--run", name]
        done[workers] = jobs.run("-m", program, *options, name=name, runs=runs, show=False, env=NO_GREETING)
    return done


def test_the_versions_are_shown(capsys):
    import keras
    import tensorflow as tf

    with capsys.disabled():
        print(f"\nTensorFlow {tf.__version__}, Keras {keras.__version__}, NumPy {np.__version__}")
    assert tf.config.list_logical_devices("CPU")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_training_leaves_a_log_a_record_and_no_error(trained, workers):
    job = trained[workers]
    assert job.state == "finished" and job.err.read_text() == ""
    found = records.load_record(job.record)
    assert found.configuration.workers == workers and len(found.epochs) == 3
    assert all(len(epoch.step_seconds) == 8 and epoch.seconds > 0 for epoch in found.epochs)
    (run,) = log.read(job.out)
    assert run.configuration.workers == workers and len(run.repeats[0]) == 3
    (run,) = results.load([job.out])
    assert run.images_per_second.value > 0 and run.failure is None


def test_two_replicas_compute_what_one_computes(trained):
    """The first step sees the same images and weights; batch normalisation over half a batch changes what follows."""
    losses = [[epoch.metrics["loss"] for epoch in records.load_record(job.record).epochs] for job in trained.values()]
    assert losses[0][-1] < losses[0][0] and losses[0] == pytest.approx(losses[1], rel=0.2)


@pytest.mark.parametrize("name", MULTIPLY_ADDS)
def test_counts_of_networks(name):
    found = counts.of(name, 224, 1000)
    assert found.multiply_adds == MULTIPLY_ADDS[name]
    assert found.parameters == models.network(name, 224, 1000).count_params()


def test_recorded_runs_are_read():
    runs = results.load(recorded.laptop())
    assert {run.workers for run in runs} >= {1, 2} and json.dumps([tables.row(run) for run in runs])
