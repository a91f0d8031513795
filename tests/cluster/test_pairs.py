"""What is counted of a job, as a real scheduler has it."""

import pytest

from labs.slurm import directives, sites, variables
from setup.cluster.practice import ROOT, Cluster

from .submitted import Job

SIZES = [  # directives of a job whose tasks, GPUs and variables are compared with what is counted here
    "--nodes=1 --gres=gpu:2 --ntasks-per-gpu=1",
    "--nodes=2 --gpus-per-node=2 --ntasks-per-gpu=1",
    "--nodes=1 --ntasks=1 --ntasks-per-node=2 --gres=gpu:2",
    "--ntasks=4 --ntasks-per-node=2",
    "--nodes=1 --ntasks=4 --ntasks-per-gpu=2",
    "--gpus=2 --gpus-per-task=1",
    "--nodes=2 --gres=gpu",
]
NAMES = [f"SLURM_{name}" for name in "NTASKS NTASKS_PER_NODE NNODES GPUS_ON_NODE CPUS_PER_TASK EXPORT_ENV".split()]


@pytest.fixture(scope="module")
def lenient(needs_slurm):
    """A cluster whose site leaves the number of cores free."""
    running = Cluster.start(sites.load("juwels-booster", ROOT))
    yield running
    running.stop()


def test_a_job_has_the_tasks_and_variables_that_are_counted_here(lenient, tmp_path):
    jobs, body = [], f"srun echo task | wc -l\nfor name in {' '.join(NAMES)}; do echo ${{!name-none}}; done\n"
    for number, size in enumerate(SIZES):
        path = tmp_path / f"size{number}.sh"
        path.write_text(f"#!/bin/bash\n#SBATCH --account=course --time=5 {size}\n{body}")
        jobs.append(Job(lenient, path, runs=tmp_path / "runs"))
    for job in jobs:
        assert job.end() == "COMPLETED", job.said()
        tasks, *values = job.out.read_text().split()
        script = directives.read(job.script.read_text())
        env = variables.of_job(script, job.script.name, "")
        assert int(tasks) == script.resources()["tasks"], job.script.read_text()
        assert values == [env.get(name, "none") for name in NAMES], job.script.read_text()
