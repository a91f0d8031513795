"""Trainings that do not end well on a real scheduler: each leaves its reason, a closed record, and no process."""

import json

import pytest

from labs.jobs.slurm_job import SlurmJob
from labs.results.failures import failure

from .submitted import Job, end_soon

# rank 0 pauses in each step, so that waiting for its end costs little
LONG = "--epochs 100000 --slow 0 200 --images 64"
# The memory of a batch of 128 images of 256 x 256 pixels is more than the job asks for.
LARGE = "--model SmallCNN --image_size 256 --images 256 --batch_size 128"
SCRIPT = """#!/bin/bash
set -euo pipefail
srun --mpi=pmi2 --label --kill-on-bad-exit=1 "$LABS_PYTHON" -m lessons.horovod_training.experiment {arguments}
"""
# name: options of sbatch, of the training, SLURM's state, the failure's kind, words of the line that proves it
# (of memory: "Exceeded job memory limit" or "step exceeded memory limit", whichever part of SLURM notices first)
JOBS = {
    "time": ("--ntasks=2", LONG, "TIMEOUT", "time limit", "DUE TO TIME LIMIT"),
    "cancel": ("--ntasks=2", LONG, "CANCELLED", "cancelled", "CANCELLED AT"),
    "kill": ("--nodes=2 --ntasks=2", LONG, "FAILED", "killed", "task 1: Killed"),
    "memory": ("--ntasks=1 --mem=1000", LARGE, "FAILED", "out of memory", "memory limit"),
}


def records(paths):
    return [json.loads(path.read_text()) for path in paths]


def kill(job):
    """Rank 1."""
    ranks = [one for one in job.cluster.processes(job.id) if "lessons.horovod_training.experiment" in one.cmdline()]
    next(one for one in ranks if one.environ().get("SLURM_PROCID") == "1").kill()


END = {
    "time": lambda job: end_soon(job.cluster, job.id),
    "cancel": lambda job: job.cluster.run("scancel", job.id),
    "kill": kill,
}


@pytest.fixture(scope="module")
def jobs(cluster, tmp_path_factory):
    """The jobs of JOBS, in their last moments or over; those that are ended have finished an epoch before."""
    folder, found = tmp_path_factory.mktemp("failures"), {}
    for name, (options, arguments, *_) in JOBS.items():
        script = folder / f"{name}.sh"
        script.write_text(SCRIPT.format(arguments=arguments))
        # SLURM counts the memory of its own processes, and kills them: none of these is forked elsewhere
        found[name] = Job(cluster, script, runs=folder, options=options.split(), WARM_SERVER="")
    for name, end in END.items():
        found[name].until(lambda job=found[name]: any(each["epochs"] for each in records(job.records)))
        end(found[name])
    return found


@pytest.mark.parametrize("name", JOBS)
def test_a_failure_is_named_by_its_line_and_every_record_is_closed(jobs, name):
    state, kind, words = JOBS[name][2:]
    job = jobs[name]
    assert job.end() == state, job.said()
    assert job.left() == []
    found = failure(job.err)
    assert found and found["kind"] == kind and words in found["line"], (found, job.said())
    # Of the others SLURM kills the rank that has the record, or that rank waits in an all-reduce for the one that is
    # dead, where no Python runs: there labs.jobs closes the record.
    if name in ("time", "cancel"):
        (record,) = records(job.records)
        assert record["state"] == "failed" and record["finished"] and record["epochs"]
    ending = "stopped" if name == "cancel" else "failed"
    seen = SlurmJob(job.name, job.id, job.runs).wait(show=False)
    assert seen.state == ending and ("was stopped" if name == "cancel" else kind) in seen.explain()
    assert [record["state"] for record in records(seen.records)] == [ending]
    assert not list(job.runs.glob(f"*_{job.id}_*.progress"))
