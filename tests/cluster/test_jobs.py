"""Jobs on a real SLURM that are followed, stopped, interrupted, forgotten and found again, however they end."""

import json
import signal
import subprocess
import sys

import pytest
from waiting import until

from labs import cli, jobs, results
from labs.jobs import queue

from .submitted import ROOT, end_soon

# What a training does, without TensorFlow: its record and progress under the name that SLURM's variables give.
TRAINING = """
import json, os, pathlib, sys, time
workers, seconds = sys.argv[1:3]
name = f"{os.environ['SLURM_JOB_NAME']}_{os.environ['SLURM_JOB_ID']}_w{workers}"
base = pathlib.Path(os.environ["LABS_RUNS"]) / name
has = {"workers": int(workers), "global_batch": 64, "model": "M"}
record = {"version": 2, "name": name, "state": "running", "configuration": has, "epochs": []}
base.with_name(name + ".json").write_text(json.dumps(record))
progress = {"epochs_done": 1, "epochs": 4, "step": 3, "steps": 6, "images_per_second": 90.0, "fraction": 0.375}
base.with_name(name + ".progress").write_text(json.dumps(progress))
print("started", workers, flush=True)
time.sleep(float(seconds))
record |= {"state": "finished", "epochs": [{"repeat": 0, "epoch": 0, "seconds": 2.0 / int(workers), "images": 128}]}
base.with_name(name + ".json").write_text(json.dumps(record))
base.with_name(name + ".progress").unlink()
"""
HEAD = "#!/bin/bash\n#SBATCH --job-name=some\n#SBATCH --ntasks=2\nset -euo pipefail\n"
TRAIN = '"$LABS_PYTHON" "$SCRIPTS/train.py"'


def begun(job, workers):
    assert until(lambda: job.out.exists() and f"started {workers}\n" in job.out.read_text()), job.explain()
    return job


def states(job):
    """State of each record, by the end of its name."""
    return {path.stem.rpartition("_")[2]: json.loads(path.read_text())["state"] for path in job.records}


@pytest.fixture(scope="module", autouse=True)
def limited(cluster, tmp_path_factory):
    """A job that comes to its time limit while the other tests run."""
    folder = tmp_path_factory.mktemp("limited")
    (folder / "train.py").write_text(TRAINING)
    text = HEAD.replace("--ntasks=2", "--time=1").replace("some", "limited")
    (folder / "limited.sh").write_text(f"{text}{TRAIN} 2 300\n")
    job = jobs.start(folder / "limited.sh", env={"SCRIPTS": str(folder)}, runs=folder / "runs")
    end_soon(cluster, begun(job, 2).job_id)
    yield job
    queue.cancel(job.job_id)


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


def test_several_trainings_leave_a_record_each_and_results_read_them(start, tmp_path, capsys):
    ranks = 'srun --label bash -c "echo rank"\n'
    job = start(HEAD + f'echo "$PWD|$*"\n{TRAIN} 1 0\n{TRAIN} 2 0\n{ranks}', "--epochs", "x y")
    assert capsys.readouterr().out == "", "only a job that this machine runs has something to say"
    assert job.state in ("waiting", "running")
    assert job.wait(timeout=300, show=False).state == "finished", job.explain()
    name = f"some_{job.job_id}"
    lines = job.out.read_text().splitlines()
    assert lines[0] == f"{ROOT}|--epochs x y" and sorted(lines[-2:]) == ["0: rank", "1: rank"]
    assert [path.name for path in job.records] == [f"{name}_w1.json", f"{name}_w2.json"]
    files = f"{job.out}, {name}.err, {name}_w1.json, {name}_w2.json"
    assert job.explain() == f"some (job {job.job_id}) finished. Its files: {files}."
    runs = results.load(tmp_path / "runs")
    assert [(run.source, run.workers) for run in runs] == [(f"{name}_w1.json", 1), (f"{name}_w2.json", 2)]


def test_progress_and_stop(start):
    job = begun(start(HEAD + f"{TRAIN} 1 0\n{TRAIN} 2 300\n"), 2)
    assert until(lambda: job.state == "running") and "is running" in job.explain()
    assert (job.progress()["workers"], job.progress()["fraction"]) == (2, 0.375)
    job.stop()
    assert job.state == "stopped" and job.slurm.state == "CANCELLED"
    assert states(job) == {"w1": "finished", "w2": "stopped"} and job.progress() == {}
    assert f"was stopped. What it printed so far is in {job.out}" in job.explain()
    job.stop()  # once more does no harm
    assert job.state == "stopped"


def test_job_that_waits_says_why_and_leaves_no_file_to_wait_for(start):
    job = start(HEAD.replace("--ntasks=2", "--ntasks=2 --begin=now+1hour") + "echo never\n")
    assert until(lambda: job.slurm.reason) == "BeginTime"
    assert job.state == "waiting" and job._says() == "waiting: BeginTime"
    assert job.explain() == f"some (job {job.job_id}) is waiting in SLURM's queue (BeginTime)."
    job.late = 600.0
    job.stop()
    assert job.state == "stopped" and "It left no file" in job.explain()


@pytest.mark.parametrize(
    "body, words",
    [
        ("exit 3\n", "ended with exit code 3 (FAILED). Read the end of"),
        ("module load nosuch\n", "ended with exit code 127 (FAILED): missing module ("),
        ("srun --label python3 -c 'import nosuch'\n", "ended with exit code 1 (FAILED): import error ("),
        (
            "srun --label --kill-on-bad-exit=1 bash -c '[ $SLURM_PROCID = 0 ] && kill -9 $$; sleep 300'\n",
            "(FAILED): killed (",
        ),
        (
            "srun --label --kill-on-bad-exit=1 bash -c '[ $SLURM_PROCID = 0 ] && exit 7; sleep 300'\n",
            "task 0: Exited with exit code 7",
        ),
    ],
)
def test_failures_are_explained(start, body, words):
    job = start(HEAD + f"{TRAIN} 1 0\n{body}").wait(timeout=300, show=False)
    assert (job.state, job.slurm.state) == ("failed", "FAILED")
    assert words in job.explain() and "\n" not in job.explain(), (job.explain(), job.err.read_text())
    assert states(job) == {"w1": "finished"}


def test_cancelled_by_someone_else(start, cluster):
    job = begun(start(HEAD + f"{TRAIN} 2 300\n"), 2)
    cluster.run("scancel", job.job_id)
    assert job.wait(timeout=300, show=False).state == "stopped" and states(job) == {"w2": "stopped"}


def test_refused_job_says_slurms_reason_first(start, tmp_path):
    with pytest.raises(jobs.JobError, match="^invalid partition specified: nowhere; .* so nothing was submitted"):
        start(HEAD.replace("--ntasks=2", "--partition=nowhere"))
    with pytest.raises(jobs.JobError, match="^1 GPU.s. per node need 2..2 .* so nothing was submitted"):
        start(HEAD.replace("--ntasks=2", "--ntasks=1 --gres=gpu:1 --cpus-per-task=1"))
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_foreign_allocation_is_not_taken_for_the_jobs_own(start, monkeypatch):
    """As in a notebook that runs in a job of SLURM's itself."""
    for name in ("SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_MEM_PER_CPU"):
        monkeypatch.setenv(name, "77")
    job = start(HEAD + 'echo "$SLURM_JOB_ID $SLURM_NTASKS"\n').wait(timeout=300, show=False)
    assert job.out.read_text() == f"{job.job_id} 2\n"


PARENT = """
import sys
sys.path.insert(0, {root!r})
from labs import cli, jobs
job = jobs.start("some.sh", env={{"SCRIPTS": "scripts"}}, runs="runs")
print(job.job_id, flush=True)
job.wait(show=False)
print("state", job.state, flush=True)
"""


@pytest.fixture
def parent(start, tmp_path):
    """A Python process that submits a job and waits for it; (process, the job as this process finds it)."""
    (tmp_path / "some.sh").write_text(HEAD + f"{TRAIN} 1 300\n")
    process = subprocess.Popen([sys.executable, "-c", PARENT.format(root=str(ROOT))], stdout=subprocess.PIPE, text=True)
    job = jobs.find(process.stdout.readline().strip(), "runs")
    try:
        yield process, begun(job, 1)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        queue.cancel(job.job_id)


def test_interrupt_while_waiting_cancels_the_job_and_not_the_kernel(parent):
    process, job = parent
    process.send_signal(signal.SIGINT)
    if not until(lambda: process.poll() is not None, 120):  # Python drops an interrupt that falls into its own clean-up
        process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "state stopped\n" and process.wait() == 0
    assert until(lambda: job.state == "stopped") and states(job) == {"w1": "stopped"}


def test_job_goes_on_without_the_process_that_submitted_it_and_is_found_again(parent, tmp_path):
    process, job = parent
    process.kill()
    process.wait()
    again = jobs.find("some", "runs")
    assert again.job_id == job.job_id and again.out == job.out == tmp_path / "runs" / f"some_{job.job_id}.out"
    assert again.state == "running"
    again.stop()
    assert again.state == "stopped" and states(again) == {"w1": "stopped"}


def test_accounts_tell_the_end_of_a_job_that_is_forgotten(start, monkeypatch):
    """Where the controller has forgotten it and there is no database, the list of ended jobs is asked (sacct -c)."""
    job = start(HEAD + "exit 3\n").wait(timeout=300, show=False)
    monkeypatch.setattr(queue, "_squeue", lambda job_id: None)
    monkeypatch.setattr(queue, "_scontrol", lambda job_id: None)
    assert until(lambda: queue.state(job.job_id).state == "FAILED"), queue.state(job.job_id)


def test_time_limit(limited):
    job = limited.wait(timeout=400, show=False)
    assert (job.state, job.slurm.state, states(job)) == ("failed", "TIMEOUT", {"w2": "failed"})
    assert "was ended at its time limit (TIMEOUT): time limit (" in job.explain()
    assert "DUE TO TIME LIMIT" in job.explain() and "--time" in job.explain()


def test_labs_why_asks_the_ranks_on_all_nodes_of_a_job(cluster, tmp_path, capsys):
    """One of them has a part of a job's ranks; `srun --overlap` asks beside the step that hangs."""
    (tmp_path / "stands.py").write_text(
        "import os, time\nfrom labs import stacks\nstacks.register(os.environ['STEM'])\n"
        "print('there', flush=True)\ntime.sleep(300)\n"
    )
    head = "#!/bin/bash\n#SBATCH --job-name=stands\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n"
    named = 'export STEM="$LABS_RUNS/${SLURM_JOB_NAME}_$SLURM_JOB_ID"\n'
    (tmp_path / "stands.sh").write_text(f'{head}{named}srun "$LABS_PYTHON" "$SCRIPTS/stands.py"\n')
    job = jobs.start(tmp_path / "stands.sh", env={"SCRIPTS": str(tmp_path)}, runs=tmp_path / "runs")
    try:
        assert until(lambda: job.out.exists() and job.out.read_text().count("there") == 2), job.explain()
        assert cli.main(["why", job.job_id, "--json", "--runs", str(tmp_path / "runs")]) == 0
        ranks = json.loads(capsys.readouterr().out)
        assert [rank["looks"][0][0][1:] for rank in ranks] == [[5, "<module>"]] * 2
        assert len({rank["host"] for rank in ranks}) == 2 and job.state == "running"
        assert "Rank 1 sleeps (stands.py, line 5)" in job.explain()
    finally:
        job.stop()
    assert not list((tmp_path / "runs").glob("*.stacks"))
