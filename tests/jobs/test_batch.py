"""Batch scripts as jobs of this machine, where no SLURM answers: by bash, and nothing of them stays."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waiting import alive, begun, until

from labs import jobs
from labs.jobs import queue
from labs.jobs.job import Job

ROOT = Path(__file__).parents[2]

# What a training leaves, without TensorFlow: its record and progress under the name that LABS_JOB gives.
TRAINING = """
import json, os, pathlib, sys, time
workers, state = sys.argv[1], sys.argv[2]
base = pathlib.Path(os.environ["LABS_RUNS"]) / f"{os.environ['LABS_JOB']}_w{workers}"
record = {"version": 2, "state": state, "configuration": {}, "epochs": []}
base.with_name(base.name + ".json").write_text(json.dumps(record))
if state == "running":
    progress = {"epochs_done": 1, "epochs": 4, "step": 3, "steps": 6, "images_per_second": 90.0, "fraction": 0.375}
    base.with_name(base.name + ".progress").write_text(json.dumps(progress))
    print("started", flush=True)
    time.sleep(120)
"""
HEAD = "#!/bin/bash\n#SBATCH --job-name=some\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\nset -euo pipefail\n"
TWO = HEAD + '"$LABS_PYTHON" train.py 1 finished\n"$LABS_PYTHON" train.py 2 running\n'


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course's top folder, with a SLURM that is down; the working directory is its notebooks' folder."""
    root = tmp_path / "course"
    shutil.copytree(ROOT / "slurm" / "sites", root / "slurm" / "sites", ignore=shutil.ignore_patterns("*.local.toml"))
    (root / "notebooks" / "scripts").mkdir(parents=True)
    (root / "train.py").write_text(TRAINING)
    monkeypatch.chdir(root / "notebooks")
    for name in ("sbatch", "scontrol"):
        (tmp_path / "slurm" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "slurm" / name).write_text("#!/bin/sh\necho 'Slurmctld(primary) at n1 is DOWN'\nexit 1\n")
        (tmp_path / "slurm" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'slurm'}{os.pathsep}{os.environ['PATH']}")
    for name in ("LABS_SITE", "LABS_PYTHON", "LABS_RUNS", "SLURM_JOB_ID", "SCRIPTS"):
        monkeypatch.delenv(name, raising=False)
    return root


@pytest.fixture
def start(course):
    """Start a batch script given as text; what it leaves running is ended after the test."""
    started = []

    def start(text, *arguments, **options):
        (course / "job.sh").write_text(text)
        started.append(jobs.start("../job.sh", *arguments, **options))
        return started[-1]

    yield start
    for job in started:
        job.stop(5)


def states(job):
    return {path.name: json.loads(path.read_text())["state"] for path in job.records}


def test_bash_runs_it_in_the_top_folder_and_says_so(start, course, capsys):
    slurm = "$SLURM_NTASKS|$SLURM_NNODES|${SLURM_JOB_ID:-none}"
    text = HEAD + f'echo "$PWD|$*|$LABS_RUNS|$LABS_PYTHON|{slurm}|$MINE|$SCRIPTS"\n'
    job = start(text, "--epochs", 2, "two words", env={"MINE": "x", "SCRIPTS": "scripts"}).wait(show=False)
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "SLURM does not answer on this machine, so bash runs job.sh here" in said
    assert (job.name, job.job_id, job.state, job.err.read_text()) == ("some", None, "finished", "")
    runs = course / "notebooks" / "runs"
    assert job.out == Path("runs/some_local.out") and job.err == Path("runs/some_local.err")  # as given, short to read
    assert job.out.resolve() == runs / "some_local.out"
    assert job.out.read_text().strip().split("|") == [
        str(course),
        "--epochs 2 two words",
        str(runs),
        sys.executable,
        "4",
        "1",
        "none",
        "x",
        str(course / "notebooks/scripts"),
    ]
    assert job.explain() == f"some finished. Its files: {job.out}, some_local.err."


def test_name_and_folder_of_the_runs(start, tmp_path):
    job = start(HEAD + "true", name="other", runs=tmp_path / "a" / "b").wait(show=False)
    assert job.out == tmp_path / "a" / "b" / "other_local.out" and job.state == "finished"
    assert start("#!/bin/bash\n", runs=tmp_path).wait(show=False).out == tmp_path / "job_local.out"


def test_where_slurm_is_not_installed(start, capsys, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to(shutil.which("bash"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert start("#!/bin/bash\n").wait(show=False).state == "finished"
    assert "SLURM is not installed on this machine" in capsys.readouterr().out


def test_records_progress_and_stop(start):
    """The training that ended keeps its record; the one that is stopped gets its end written."""
    job = begun(start(TWO))
    assert job.state == "running"
    assert [path.name for path in job.records] == ["some_local_w1.json", "some_local_w2.json"]
    assert job.record == job.records[-1]
    assert job.progress()["workers"] == 2 and job.progress()["fraction"] == 0.375
    job.stop()
    assert job.state == "stopped" and "some was stopped" in job.explain()
    assert states(job) == {"some_local_w1.json": "finished", "some_local_w2.json": "stopped"}
    assert job.progress() == {}


def test_the_header_of_a_batch_script_is_not_taken_for_what_it_does(tmp_path):
    job = Job("some", tmp_path / "some")
    for printed, says in ("Job 7 on node1, GPUs 0\nVersions: {}\n", None), ("Versions: {}\n3 of 8\n", "3 of 8"):
        job.out.write_text(printed)
        assert job._says() == says


def test_records_of_an_older_job_move_aside_and_no_others(start, course):
    runs = course / "notebooks" / "runs"
    runs.mkdir()
    for name in ("some_local_w1.json", "some_local_w2.progress", "some_w1.json", "some_local.maxbatch.json"):
        (runs / name).write_text("{}")
    job = start(HEAD + "exit 3").wait(show=False)
    assert job.records == [] and "ended with exit code 3" in job.explain()
    assert {path.name for path in runs.iterdir()} == {
        "some_w1.json",
        "some_local.maxbatch.json",
        "some_local.out",
        "some_local.err",
        "some_local.1.out",
        "some_local.1_w1.json",
    }


def test_failure_in_the_script_is_explained(start):
    job = start(HEAD + '"$LABS_PYTHON" train.py 1 finished\nmodule load nosuch\necho never\n').wait(show=False)
    assert job.state == "failed" and job.out.read_text() == ""
    assert "some ended with exit code 127: missing module" in job.explain() and "line 7: module" in job.explain()
    assert states(job) == {"some_local_w1.json": "finished"}


def test_killed_training_is_closed_and_named(start):
    job = start(HEAD + '"$LABS_PYTHON" train.py 2 running & wait $!\n')
    begun(job)
    (training,) = [p for p in psutil.Process(job.process.pid).children(recursive=True) if "train.py" in p.cmdline()]
    training.kill()
    job.wait(show=False)
    assert job.state == "failed" and "ended with exit code 137" in job.explain()
    assert states(job) == {"some_local_w2.json": "failed"}


STUBBORN = (
    HEAD
    + """
bash -c 'trap "" TERM; echo child $$; sleep 100 & echo child $!; setsid sleep 100 & echo child $!; echo started; wait'
"""
)


def pids(job):
    return [int(line.split()[1]) for line in job.out.read_text().splitlines() if line.startswith("child")]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_nothing_stays_behind(start, end):
    """Not a process that refuses to end, nor one in a session of its own."""
    job = begun(start(STUBBORN))
    children = pids(job)
    assert len(children) == 3 and all(map(alive, children))
    if end == "stop":
        job.stop(patience=20)
    else:
        os.kill(job.process.pid, signal.SIGTERM)
        job.wait(show=False)
    assert until(lambda: not any(map(alive, children))), children
    assert job.state == ("stopped" if end == "stop" else "failed")


def test_what_the_script_leaves_running_ends_with_it(start):
    job = start(HEAD + "sleep 100 & echo child $!\nsetsid sleep 100 & echo child $!\n").wait(show=False)
    assert job.state == "finished" and not any(map(alive, pids(job))) and len(pids(job)) == 2


def test_job_ends_when_the_process_that_started_it_is_killed(course):
    (course / "job.sh").write_text(TWO.replace("finished", "finished; echo child $$"))
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from labs import jobs; jobs.start('../job.sh').wait()"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    out = course / "notebooks/runs/some_local.out"
    try:
        assert until(lambda: out.exists() and "started" in out.read_text())
        (bash,) = [int(line.split()[1]) for line in out.read_text().splitlines() if line.startswith("child")]
        family = [bash, *(child.pid for child in psutil.Process(bash).children(recursive=True))]
        assert len(family) > 1
    finally:
        parent.kill()
        parent.wait()
    assert until(lambda: not any(map(alive, family))), family


def test_a_job_inside_a_job_of_slurms_is_another_job(start, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("LABS_JOB", "outer")
    job = start(HEAD + 'echo "${SLURM_JOB_ID:-none} $LABS_JOB"').wait(show=False)
    assert job.out.read_text() == "none some_local\n"


# Ranks, by the stand-in for srun (see test_srun)


def test_ranks_are_connected_processes_and_their_failure_is_the_jobs(start, course, needs_horovod):
    (course / "rank.py").write_text(
        "import os, sys\nprint('Rank', os.environ['HOROVOD_RANK'], 'of', os.environ['HOROVOD_SIZE'])\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    text = 'srun --label --ntasks=2 "$LABS_PYTHON" rank.py 0\nsrun -n 2 "$LABS_PYTHON" rank.py 5\necho never\n'
    job = start(HEAD + text.replace("rank.py", '"$PWD/rank.py"')).wait(show=False)
    assert job.state == "failed" and "ended with exit code" in job.explain()
    lines = job.out.read_text().splitlines()
    assert sorted(lines[:2]) == [f"[{rank}]<stdout>:Rank {rank} of 2" for rank in (0, 1)], job.err.read_text()
    assert "never" not in lines


def test_ranks_end_with_the_job(start, course, needs_horovod):
    (course / "rank.py").write_text("import os, time\nprint('child', os.getpid(), flush=True)\ntime.sleep(120)\n")
    job = start(HEAD + 'srun --ntasks=2 "$LABS_PYTHON" rank.py\n')
    assert until(lambda: job.out.read_text().count("child") == 2), job.err.read_text()
    ranks = [int(line.split()[1]) for line in job.out.read_text().splitlines()]
    job.stop(20)
    assert job.state == "stopped" and until(lambda: not any(map(alive, ranks)))


# Scripts that cannot be started


def refused(*arguments, **options):
    with pytest.raises(jobs.JobError) as caught:
        jobs.start(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_missing_script(course):
    assert "There is no script no.sh, so nothing was started" in refused("no.sh")
    assert not (course / "notebooks/runs").exists()


def test_script_with_blanks(course):
    for line in ("#SBATCH --gres=...", "batch=...  # your code here"):
        (course / "job.sh").write_text(f"{HEAD}{line}\n")
        text = refused(course / "job.sh")
        assert "Not done yet" in text and "line 6 is still blank" in text
    assert not (course / "notebooks/runs").exists()


def test_unwritable_folder(course, tmp_path):
    (course / "job.sh").write_text(HEAD)
    (tmp_path / "file").write_text("")
    text = refused(course / "job.sh", runs=tmp_path / "file" / "runs")
    assert "file/runs" in text and "not started" in text


def test_ranks_are_the_scripts_own_business(course):
    (course / "job.sh").write_text(HEAD)
    for options in ({"ranks": 2}, {"launcher": "mpiexec"}):
        assert "leave out `ranks`" in refused(course / "job.sh", **options)


def test_unknown_site(course):
    (course / "job.sh").write_text(HEAD)
    assert "No site is called 'nowhere'" in refused(course / "job.sh", site="nowhere")


def test_python_script_needs_a_name(course):
    assert "Pass name=" in refused(course / "train.py")


def test_personal_settings_of_the_site_reach_the_script(start, course):
    (course / "slurm/sites/cte-power.local.toml").write_text('data = "/some/data"\naccount = "abc"\n')
    job = start(HEAD + 'echo "$LABS_DATA"', site="cte-power").wait(show=False)
    assert job.out.read_text() == "/some/data\n"


def test_no_slurm_answers_here(course):
    assert not queue.available()
