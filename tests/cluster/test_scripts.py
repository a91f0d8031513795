"""The scripts of site `local` run to their ends on a real scheduler; their files are those of a run on a laptop."""

import json
import re

import pytest

from labs import jobs as local
from labs import results
from labs.results import log
from labs.results.run import load
from labs.results.text import split_rank
from setup.cluster.practice import ROOT

from .submitted import Job

SMALL = "--images 32 --batch_size 16 --epochs 2 --repeats 1"
SCRIPTS = {  # arguments, and the workers of the trainings, in turn; the longest first
    "ResNet50_horovod_nodes": (SMALL, [4]),
    "ResNet152V2": (SMALL, [1, 2]),
    "ResNet50_horovod": (SMALL, [1, 2]),
    "ResNet50": (SMALL, [1, 2]),
    "maxbatch": ("--model SmallCNN --memory 64MiB", []),
}
# Trains the network of its name, without WARM=1 with all its blocks; the others SmallCNN in its place: seconds.
REAL = "ResNet50"
# Put behind a training script's `import keras`. Everything else in the script stays as it is.
SMALL_NETWORK = """
for name in ("ResNet50V2", "ResNet152V2"):
    setattr(keras.applications, name,
            lambda classes, input_shape, **_: models.network("SmallCNN", input_shape[0], classes))
"""
TRAININGS = [name for name, (_, workers) in SCRIPTS.items() if workers]


@pytest.fixture(scope="module")
def jobs(cluster, tmp_path_factory):
    """All of them, submitted at once; a script's files lie in a folder of its own."""
    folder = tmp_path_factory.mktemp("scripts")
    small = folder / "small"
    small.mkdir()
    for path in (ROOT / "solutions/scripts").glob("ResNet*.py"):
        before, line, after = path.read_text().partition("\nimport keras\n")
        assert line, f"{path.name} imports Keras in another way"
        (small / path.name).write_text(before + line + SMALL_NETWORK + after)
    return {
        name: Job(
            cluster,
            ROOT / f"solutions/slurm/local/{name}.sh",
            *arguments.split(),
            runs=folder / name,
            SCRIPTS="solutions/scripts" if name == REAL else str(small),
            LABS_PRESET="test",
        )
        for name, (arguments, _) in SCRIPTS.items()
    }


def records(job):
    return [load(path) for path in job.records]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_runs_to_its_end(jobs, name):
    job = jobs[name]
    assert job.end() == "COMPLETED", job.said()
    assert job.left() == []
    assert job.err.read_text() == ""
    first, second = job.out.read_text().splitlines()[:2]
    assert re.fullmatch(rf"Job {job.id} on node\S+, GPUs 0(,1)?", first)
    assert all(f"'{package}': '" in second for package in ("python", "tensorflow", "keras", "horovod"))


@pytest.mark.parametrize("name", TRAININGS)
def test_every_training_leaves_a_record_that_results_read(jobs, name):
    job, workers = jobs[name], SCRIPTS[name][1]
    job.end()
    assert [path.name for path in job.records] == [f"{name}_{job.id}_w{count}.json" for count in workers]
    for found, count in zip(records(job), workers, strict=True):
        has = found.configuration
        assert (found.state, has.workers, found.job_id) == ("finished", count, job.id)
        assert has.nodes == (2 if name.endswith("nodes") else 1)
        assert has.learning_rate == pytest.approx(0.01 * count)
        assert len(found.epochs) == 2 and found.steps == 2
    runs = results.load(job.records)
    assert [run.workers for run in runs] == workers
    assert all(run.images_per_second.value > 0 and run.failure is None for run in runs)


@pytest.mark.parametrize("name", TRAININGS)
def test_log_reads_as_on_a_laptop(jobs, name):
    job, workers = jobs[name], SCRIPTS[name][1]
    job.end()
    runs = log.read(job.out)
    assert [(run.workers, run.configuration.global_batch, run.failure, run.truncated) for run in runs] == [
        (count, 16, None, False) for count in workers
    ]
    for run, found in zip(runs, records(job), strict=True):
        assert [epoch.metrics["loss"] for epoch in run.repeats[0]] == pytest.approx(
            [epoch.metrics["loss"] for epoch in found.epochs], rel=1e-3
        )


def test_two_nodes_with_two_ranks_each_end_with_identical_weights(jobs):
    job = jobs["ResNet50_horovod_nodes"]
    job.end()
    (found,) = records(job)
    assert found.weights["identical"] is True and found.weights["ranks"] == 4 and found.configuration.nodes == 2
    assert found.weights["different"] == [] and found.configuration.local_batch == 4
    ranks = {split_rank(line)[0] for line in job.out.read_text().splitlines()}
    assert ranks == {None, 0, 1, 2, 3}  # srun --label
    assert "0: Weights identical on all 4 ranks: True" in job.out.read_text()


def test_largest_batch_is_kept_with_its_evidence(jobs):
    job = jobs["maxbatch"]
    job.end()
    (path,) = job.runs.glob("*.maxbatch.json")
    found = json.loads(path.read_text())
    assert found["model"] == "SmallCNN" and 1 <= found["largest"] < found["fails"]
    assert "OOM when allocating tensor" in found["evidence"]["line"]
    assert f"{found['largest']}" in job.out.read_text()


def test_training_is_the_one_of_a_laptop(cluster, cold, tmp_path, needs_horovod):
    """The same 2 ranks on two nodes under srun, and on this machine under mpiexec."""
    arguments = "--epochs 2 --images 64 --network SmallCNN --seed 3".split()
    script = tmp_path / "same.sh"
    script.write_text(
        '#!/bin/bash\nsrun --mpi=pmi2 --kill-on-bad-exit=1 --label "$LABS_PYTHON" '
        '"$PWD/lessons/horovod_training/experiment.py" "$@"\n'
    )
    options = ["--nodes=2", "--ntasks-per-node=1", "--gres=gpu:1", "--cpus-per-task=2"]
    there = Job(cluster, script, *arguments, runs=tmp_path / "there", options=options)
    assert there.end() == "COMPLETED", there.said()
    here = local.run(
        ROOT / "lessons/horovod_training/experiment.py",
        *arguments,
        name="here",
        runs=tmp_path / "here",
        ranks=2,
        launcher="mpiexec",
        show=False,
        env={"PYTHONPATH": str(ROOT)},
    )
    first, second = records(there)[0], load(here.record)
    assert (first.configuration.nodes, second.configuration.nodes) == (2, 1)
    assert first.configuration == second.configuration.model_copy(update={"nodes": 2})
    assert (first.state, first.steps, first.dataset_images) == (second.state, second.steps, second.dataset_images)
    assert first.weights["identical"] and second.weights["identical"]
    for key in ("loss", "accuracy"):
        assert [epoch.metrics[key] for epoch in first.epochs] == pytest.approx(
            [epoch.metrics[key] for epoch in second.epochs], rel=1e-4
        )
    assert there.err.read_text() == here.err.read_text() == ""
    shapes = [
        sorted(re.sub(r"[\d.]+(e-\d+|m?s/step)?", "#", split_rank(line)[1]) for line in file.read_text().splitlines())
        for file in (there.out, here.out)
    ]
    assert shapes[0] == shapes[1]
