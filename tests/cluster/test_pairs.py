"""The table of options that exclude each other, and what is counted of a job, as a real scheduler has it."""

import pytest

from labs.slurm import directives, sites, variables
from setup.cluster.practice import ROOT, Cluster

from .submitted import Job

VALUES = {"mem": "2G", "mem-per-cpu": "100M", "mem-per-gpu": "1G", "gres": "gpu:2"}
PAIRS = [(*pair, kind == "refused") for kind in ("refused", "refused_later") for pair in directives.PAIRS[kind]]
SIZES = [  # directives of a job whose tasks, GPUs and variables are compared with what is counted here
    "--nodes=1 --gres=gpu:2 --ntasks-per-gpu=1",
    "--nodes=2 --gpus-per-node=2 --ntasks-per-gpu=1",
    "--nodes=1 --ntasks=1 --ntasks-per-node=2 --gres=gpu:2",
    "--ntasks=4 --ntasks-per-node=2",
    "--nodes=1 --ntasks=4 --ntasks-per-gpu=2",
    "--gpus=2 --gpus-per-task=1",
    "--nodes=2 --gres=gpu",
]
NAMES = (
    "SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_NNODES SLURM_GPUS_ON_NODE SLURM_CPUS_PER_TASK SLURM_EXPORT_ENV".split()
)


@pytest.fixture(scope="module")
def lenient(needs_slurm):
    """A cluster whose site leaves the number of cores free."""
    running = Cluster.start(sites.load("juwels-booster", ROOT))
    yield running
    running.stop()


def test_pairs_are_refused_as_the_table_says(lenient):
    for one, other, refused in PAIRS:
        options = {"nodes": "1", "gres": "gpu:2", one: VALUES.get(one, "1"), other: VALUES.get(other, "1")}
        options |= {"ntasks": "2"} if "gpus-per-task" in options else {}
        words = [f"--{name}={value}" for name, value in options.items()]
        done = lenient.run("sbatch", "--test-only", "--account=course", *words, "--wrap=true", cwd=ROOT)
        assert (done.returncode != 0) == refused, (one, other, done.stderr)
        assert not refused or "mutually exclusive" in done.stderr
    for option, others in directives.PAIRS["needs"].items():
        for more in ("", *others):
            words = [f"--{option}=1", *([f"--{more}={VALUES.get(more, '1')}"] if more else [])]
            done = lenient.run("sbatch", "--test-only", "--account=course", *words, "--wrap=true", cwd=ROOT)
            assert (done.returncode != 0) == (not more), (words, done.stderr)


def test_a_job_has_the_tasks_and_variables_that_are_counted_here(lenient, tmp_path):
    jobs = {}
    for number, size in enumerate(SIZES):
        path = tmp_path / f"size{number}.sh"
        head = f"#!/bin/bash\n#SBATCH --account=course --time=5 {size}\n"
        path.write_text(
            f"{head}echo $(srun echo task | wc -l)\nfor name in {' '.join(NAMES)}; do echo ${{!name-none}}; done\n"
        )
        jobs[size] = path, Job(lenient, path, runs=tmp_path / "runs")
    for size, (path, job) in jobs.items():
        assert job.end() == "COMPLETED", job.said()
        tasks, *values = job.out.read_text().split()
        script = directives.read(path.read_text())
        env = variables.of_job(script, path.name, "")
        assert int(tasks) == script.resources()["tasks"], size
        assert values == [env.get(name, "none") for name in NAMES], size
