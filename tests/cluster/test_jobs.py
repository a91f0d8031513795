"""Jobs on a real SLURM that are followed, stopped, interrupted, forgotten and found again, however they end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import TRAINING, begun, until

from labs import cli, jobs, results
from labs.jobs import queue, why
from labs.jobs.slurm_job import SlurmJob
from setup.cluster.practice import ROOT

HEAD = "#!/bin/bash\n#SBATCH --job-name=some\n#SBATCH --ntasks=2\nset -euo pipefail\n"
TRAIN = '"$LABS_PYTHON" "$SCRIPTS/train.py"'


def states(job):
    """State of each record, by the end of its name."""
    return {path.stem.rpartition("_")[2]: json.loads(path.read_text())["state"] for path in job.records}


@pytest.fixture
def start(cluster, tmp_path, monkeypatch):
    """Submit a batch script given as text; what is left of it is cancelled after the test."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "train.py").write_text(TRAINING)
    started = []

    def start(text, *arguments):
        (tmp_path / "some.sh").write_text(text)
        started.append(jobs.start("some.sh", *arguments, env={"SCRIPTS": "scripts"}, runs="runs"))
        return started[-1]

    yield start
    for job in started:
        queue.cancel(job.job_id)
    for job in started:
        assert until(lambda job=job: not cluster.processes(job.job_id)), f"processes of {job} stay behind"


def test_several_trainings_leave_a_record_each_and_results_read_them(start, tmp_path, capsys, monkeypatch):
    for name in ("SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_MEM_PER_CPU"):  # as in a notebook that runs in a job itself
        monkeypatch.setenv(name, "77")
    text = HEAD + f'echo "$PWD|$*|$SLURM_JOB_ID|$SLURM_NTASKS"\n{TRAIN} 1 0\n{TRAIN} 2 0\nsrun --label echo rank\n'
    job = start(text, "--epochs", "x y")
    assert capsys.readouterr().out == "", "only a job that this machine runs has something to say"
    assert job.state in ("waiting", "running")
    assert job.wait(timeout=300, show=False).state == "finished", job.explain()
    name = f"some_{job.job_id}"
    lines = job.out.read_text().splitlines()
    assert lines[0] == f"{ROOT}|--epochs x y|{job.job_id}|2" and sorted(lines[-2:]) == ["0: rank", "1: rank"]
    files = f"{job.out}, {name}.err, {name}_w1.json, {name}_w2.json"
    assert job.explain() == f"some (job {job.job_id}) finished. Its files: {files}."
    runs = results.load(tmp_path / "runs")
    assert [(run.source, run.workers) for run in runs] == [(f"{name}_w1.json", 1), (f"{name}_w2.json", 2)]


def test_progress_and_stop(start):
    job = begun(start(HEAD + f"(setsid sleep 300 &)\n{TRAIN} 1 0\n{TRAIN} 2 300\n"), 2)
    assert until(lambda: job.state == "running") and "is running" in job.explain()
    assert (job.progress()["workers"], job.progress()["fraction"]) == (2, 0.375)
    job.stop()
    assert job.state == "stopped" and job.in_queue.state == "CANCELLED"
    assert states(job) == {"w1": "finished", "w2": "stopped"} and job.progress() == {}


def test_a_failure_is_explained_and_without_accounts_a_job_is_forgotten(start):
    fails = "srun --label --kill-on-bad-exit=1 bash -c '[ $SLURM_PROCID = 0 ] && exit 7; sleep 300'\n"
    job = start(HEAD + f"{TRAIN} 1 0\n{fails}").wait(timeout=300, show=False)
    assert (job.state, job.in_queue.state, states(job)) == ("failed", "FAILED", {"w1": "finished"})
    assert "task 0: Exited with exit code 7" in job.explain() and "\n" not in job.explain(), job.err.read_text()
    assert queue.state("999999").state == queue.UNKNOWN


PARENT = """
from labs import jobs
job = jobs.start("some.sh", env={"SCRIPTS": "scripts"}, runs="runs")
print(job.job_id, flush=True)
job.wait(show=False)
print("state", job.state, flush=True)
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_interrupt_while_waiting_cancels_the_job_which_outlives_its_parent(start, tmp_path, sign):
    (tmp_path / "some.sh").write_text(HEAD + f"{TRAIN} 1 300\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        job = begun(SlurmJob("some", parent.stdout.readline().strip(), tmp_path / "runs"), 1)
        try:
            parent.send_signal(sign)
            if not until(lambda: parent.poll() is not None, 120):  # Python drops an interrupt in its own clean-up
                parent.send_signal(sign)
            told = parent.stdout.read()
            if sign == signal.SIGKILL:
                assert job.state == "running"
                job.stop()
            else:
                assert told == "state stopped\n" and parent.wait() == 0
            assert until(lambda: job.state == "stopped") and states(job) == {"w1": "stopped"}
        finally:
            queue.cancel(job.job_id)


def test_labs_why_asks_the_ranks_on_all_nodes_of_a_job(start, tmp_path, capsys):
    """One of them has a part of a job's ranks; their files lie in the folder of all nodes."""
    (tmp_path / "scripts/stands.py").write_text(
        "import os, time\nfrom labs import stacks\nstacks.register(os.environ['STEM'])\n"
        "print('there', flush=True)\ntime.sleep(300)\n"
    )
    head = HEAD.replace("--ntasks=2", "--nodes=2\n#SBATCH --ntasks-per-node=1")
    named = 'export STEM="$LABS_RUNS/${SLURM_JOB_NAME}_$SLURM_JOB_ID"\n'
    job = start(f'{head}{named}srun "$LABS_PYTHON" "$SCRIPTS/stands.py"\n')
    assert until(lambda: job.out.exists() and job.out.read_text().count("there") == 2), job.explain()
    assert until(lambda: len(why.stack_files(job.stem)) == 2), "no rank has written where it is"
    assert cli.main(["why", job.job_id, "--runs", "runs"]) == 0
    ranks = why.ranks(why.stem(job.job_id, Path("runs")))
    assert [list(rank["looks"][-1][0][1:]) for rank in ranks] == [[5, "<module>"]] * 2
    assert len({rank["host"] for rank in ranks}) == 2 and job.state == "running"
    assert until(lambda: "Rank 1 sleeps (stands.py, line 5)" in job.explain()), job.explain()
    job.stop()
    assert not list((tmp_path / "runs").glob("*.stacks"))
