"""Trainings that do not end well on a real scheduler: each leaves its reason, a closed record, and no process."""

import json
import os
import signal

import pytest

from labs import jobs as labs_jobs
from labs.results.failures import failure

from .submitted import Job, end_soon

# rank 0 pauses in each step, so that waiting for its end costs little
LONG = "--epochs 100000 --slow 0 200 --images 64"
# The memory of a batch of 128 images of 256 x 256 pixels is more than the job asks for.
LARGE = "--network SmallCNN --image_size 256 --images 256 --batch_size 128"
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
    "kill0": ("--nodes=2 --ntasks=2", LONG, "FAILED", "killed", "task 0: Killed"),
    "memory": ("--ntasks=1 --mem=1000", LARGE, "FAILED", "out of memory", "memory limit"),
}


def begun(job):
    """Whether the training has finished an epoch, so that something would be lost."""
    return any(json.loads(path.read_text())["epochs"] for path in job.records)


def kill(job, rank):
    for process in job.cluster.processes(job.id):
        if (
            process.environ().get("SLURM_PROCID") == str(rank)
            and "lessons.horovod_training.experiment" in process.cmdline()
        ):
            os.kill(process.pid, signal.SIGKILL)
            return
    raise AssertionError(f"no rank {rank} among {job.cluster.processes(job.id)}")


END = {
    "time": lambda job: end_soon(job.cluster, job.id),
    "cancel": lambda job: job.cluster.run("scancel", job.id),
    "kill": lambda job: kill(job, 1),
    "kill0": lambda job: kill(job, 0),
}


@pytest.fixture(scope="module")
def jobs(cluster, tmp_path_factory):
    """The jobs of JOBS, in their last moments or over."""
    folder, found = tmp_path_factory.mktemp("failures"), {}
    for name, (options, arguments, *_) in JOBS.items():
        script = folder / f"{name}.sh"
        script.write_text(SCRIPT.format(arguments=arguments))
        # SLURM counts the memory of its own processes, and kills them: none of these is forked elsewhere
        found[name] = Job(cluster, script, runs=folder, options=options.split(), WARM_SERVER="")
    for name, end in END.items():
        found[name].until(lambda name=name: begun(found[name]))
        end(found[name])
    return found


@pytest.mark.parametrize("name", JOBS)
def test_failure_is_named_by_its_line(jobs, name):
    state, kind, words = JOBS[name][2:]
    job = jobs[name]
    assert job.end() == state, job.said()
    assert job.left() == []
    found = failure(job.err)
    assert found and found["kind"] == kind and words in found["line"], (found, job.said())


# Of the others SLURM kills the rank that has the record, or that rank waits in an all-reduce for the one that is dead,
# where no Python runs: there labs.jobs closes the record (next test).
@pytest.mark.parametrize("name", ["time", "cancel"])
def test_record_of_a_training_that_had_begun_is_closed(jobs, name):
    jobs[name].end()
    assert jobs[name].left() == []
    (record,) = (json.loads(path.read_text()) for path in jobs[name].records)
    assert record["state"] == "failed" and record["finished"] and record["epochs"]
    assert not list(jobs[name].runs.glob(f"*_{jobs[name].id}_*.progress"))


@pytest.mark.parametrize("name", JOBS)
def test_labs_jobs_explains_the_end_and_closes_every_record(jobs, name):
    jobs[name].end()
    assert jobs[name].left() == []
    job = labs_jobs.find(jobs[name].id, jobs[name].runs).wait(show=False)
    ending = "stopped" if name == "cancel" else "failed"
    assert job.state == ending
    assert ("was stopped" if name == "cancel" else JOBS[name][3]) in job.explain()
    assert [json.loads(path.read_text())["state"] for path in job.records] == [ending]
    assert not list(job.stem.parent.glob(f"*_{job.job_id}_*.progress"))
