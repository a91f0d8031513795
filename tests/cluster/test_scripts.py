"""The scripts of site `local` run to their ends on a real scheduler; their files are those of a run on a laptop."""

import json
import re

import pytest

from labs import results
from labs.results import log
from labs.results.run import load_record
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


@pytest.fixture(scope="module")
def jobs(cluster, tmp_path_factory):
    """All of them, submitted at once; a script's files lie in a folder of its own."""
    folder, started = tmp_path_factory.mktemp("scripts"), {}
    (folder / "small").mkdir()
    for path in (ROOT / "solutions/scripts").glob("ResNet*.py"):
        before, line, after = path.read_text().partition("\nimport keras\n")
        assert line, f"{path.name} imports Keras in another way"
        (folder / "small" / path.name).write_text(before + line + SMALL_NETWORK + after)
    for name, (arguments, _) in SCRIPTS.items():
        env = {"SCRIPTS": "solutions/scripts" if name == REAL else str(folder / "small"), "LABS_PRESET": "test"}
        script = ROOT / f"solutions/slurm/local/{name}.sh"
        started[name] = Job(cluster, script, *arguments.split(), runs=folder / name, **env)
    return started


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_to_its_end_and_leaves_what_a_laptop_leaves(jobs, name):
    job, workers = jobs[name], SCRIPTS[name][1]
    assert job.end() == "COMPLETED", job.said()
    assert job.left() == [] and job.err.read_text() == ""
    text = job.out.read_text()
    assert re.match(rf"Job {job.id} on node\S+, GPUs 0(,1)?\nVersions: ", text)
    assert [path.name for path in job.records] == [f"{name}_{job.id}_w{count}.json" for count in workers]
    logged = log.read(job.out) if workers else []
    for run, path, count in zip(logged, job.records, workers, strict=True):
        found = load_record(path)
        has = found.configuration
        assert (found.state, has.workers, found.job_id) == ("finished", count, job.id)
        assert has.nodes == (2 if name.endswith("nodes") else 1) and has.learning_rate == pytest.approx(0.01 * count)
        assert len(found.epochs) == 2 and found.steps == 2
        assert (run.workers, run.configuration.global_batch, run.failure, run.truncated) == (count, 16, None, False)
        losses = [[epoch.metrics["loss"] for epoch in each] for each in (run.repeats[0], found.epochs)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    runs = results.load(job.records)
    assert [run.workers for run in runs] == workers
    assert all(run.images_per_second.value > 0 and run.failure is None for run in runs)
    if name == "ResNet50_horovod_nodes":
        assert found.weights == found.weights | {"identical": True, "ranks": 4, "different": []}
        assert has.local_batch == 4
        assert "0: Weights identical on all 4 ranks: True" in text
    elif name == "maxbatch":
        (path,) = job.runs.glob("*.maxbatch.json")
        found = json.loads(path.read_text())
        assert found["model"] == "SmallCNN" and 1 <= found["largest"] < found["fails"]
        assert "OOM when allocating tensor" in found["evidence"]["line"] and f"{found['largest']}" in text
