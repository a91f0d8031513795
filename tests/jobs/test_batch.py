"""Batch scripts as jobs of this machine, where no SLURM answers: by bash, and nothing of them stays."""

import json
import os
import sys
from pathlib import Path

import pytest
from waiting import TRAINING, alive, begun

from labs import jobs
from labs.errors import LabsError
from labs.jobs.job import Job

HEAD = "#!/bin/bash\n#SBATCH --job-name=some\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\nset -euo pipefail\n"


@pytest.fixture
def start(course, ended, tmp_path, monkeypatch):
    """Start a batch script given as text, from the notebooks' folder of a course, with a SLURM that is down."""
    (course / "notebooks" / "scripts").mkdir(parents=True)
    (course / "train.py").write_text(TRAINING)
    monkeypatch.chdir(course / "notebooks")
    for name in ("sbatch", "scontrol"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'Slurmctld(primary) at n1 is DOWN'\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def start(text, *arguments, script="../job.sh", **options):
        (course / "job.sh").write_text(text)
        ended.append(jobs.start(script, *arguments, **options))
        return ended[-1]

    return start


def states(job):
    return {path.name: json.loads(path.read_text())["state"] for path in job.records}


def test_bash_runs_it_in_the_top_folder_and_says_so(start, course, capsys, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "77")  # in a job of SLURM's it is another one
    monkeypatch.setenv("LABS_JOB", "outer")
    monkeypatch.setenv("LABS_RUN", "outer")  # of one training; here each has a name of its own
    names = "LABS_RUNS LABS_PYTHON SLURM_NTASKS SLURM_NNODES SLURM_JOB_ID LABS_JOB LABS_RUN LABS_DATA MINE SCRIPTS"
    text = HEAD + f'echo "$PWD|$*{"".join(f"|${{{name}:-none}}" for name in names.split())}"\n'
    env = {"MINE": "x", "SCRIPTS": "scripts"}
    job = start(text, "--epochs", 2, "two words", site="cte-power", env=env).wait(show=False)
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "SLURM does not answer on this machine, so bash runs job.sh here" in said
    assert (job.name, job.job_id, job.state, job.err.read_text()) == ("some", None, "finished", "")
    runs = course / "notebooks" / "runs"
    assert job.out == Path("runs/some_local.out") and job.out.resolve() == runs / "some_local.out"  # as given, short
    told = [course, "--epochs 2 two words", runs, sys.executable, 4, 1, "none", "some_local", "none", "/data", "x"]
    assert job.out.read_text().strip().split("|") == [*map(str, told), str(course / "notebooks/scripts")]
    assert job.explain() == f"some finished. Its files: {job.out}, some_local.err."


def test_a_variable_is_set_here_where_slurm_would_set_it(start):
    names = "SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_CPUS_PER_TASK SLURM_TASKS_PER_NODE SLURM_NNODES".split()
    text = "echo " + "|".join(f'"${{{name}:-none}}"' for name in names).replace("|", "'|'")
    for asked, told in (("--nodes=2", "none|none|none|2|1"), ("--ntasks=4 --cpus-per-task=2", "4|none|2|4|1")):
        job = start(f"#!/bin/bash\n#SBATCH --job-name=some {asked}\n{text}\n").wait(show=False)
        assert job.out.read_text().strip() == told


def test_records_progress_and_stop(start):
    """The training that ended keeps its record; the one that is stopped gets its end written."""
    train = '"$LABS_PYTHON" train.py'
    job = begun(start(HEAD + f"{train} 1 0\n{train} 2 120\n", name="other"), 2)
    assert job.state == "running" and job.record == job.records[-1]
    assert job.progress()["workers"] == 2 and job.progress()["fraction"] == 0.375
    job.stem.mkdir()
    (job.stem / "ResNet_w1_b64_beside_w4.progress").write_text('{"workers": 1}')  # of a study in it
    assert job.progress() == {"workers": 1}
    job.stop()
    assert job.state == "stopped" and "other was stopped" in job.explain() and job.progress() == {}
    assert states(job) == {"other_local_w1.json": "finished", "other_local_w2.json": "stopped"}


def test_the_header_of_a_batch_script_is_not_taken_for_what_it_does(tmp_path):
    job = Job("some", tmp_path / "some")
    for printed, says in ("Job 7 on node1\nVersions: {}\n", None), ("Versions: {}\n3 of 8\n", "3 of 8"):
        job.out.write_text(printed)
        assert job._says() == says


def test_a_failure_is_explained_and_records_of_an_older_job_move_aside(start, course):
    runs = course / "notebooks" / "runs"
    runs.mkdir()
    for name in ("some_local_w1.json", "some_local_w2.progress", "some_w1.json", "some_local.maxbatch.json"):
        (runs / name).write_text("{}")
    text = HEAD + '"$LABS_PYTHON" train.py 2 0\nmodule load nosuch\necho never\n'
    job = start(text).wait(show=False)
    assert (job.state, job.out.read_text()) == ("failed", "started 2\n")
    assert states(job) == {"some_local_w2.json": "finished"}
    assert "some ended with exit code 127: missing module" in job.explain() and "line 7: module" in job.explain()
    here = "some_local.out some_local.err some_local_w2.json some_w1.json some_local.maxbatch.json"  # and of others
    moved = "some_local.1.out some_local.1_w1.json"
    assert {path.name for path in runs.iterdir()} == {*here.split(), *moved.split()}


def test_ranks_are_connected_and_the_failure_of_one_ends_all_and_the_job(start, course, needs_horovod):
    """By labs.jobs.local_srun."""
    (course / "rank.py").write_text(
        "import os, sys, time\nrank = os.environ['HOROVOD_RANK']\n"
        "print('Rank', rank, 'of', os.environ['HOROVOD_SIZE'], 'is', os.getpid(), flush=True)\n"
        "open(f'there{rank}', 'w')\nwhile rank == '1' or not os.path.exists('there1'):\n    time.sleep(0.1)\n"
        "sys.exit(5)\n"
    )
    job = start(HEAD + 'srun --label --ntasks=2 "$LABS_PYTHON" "$PWD/rank.py"\necho never\n').wait(show=False)
    assert job.state == "failed" and "ended with exit code 1" in job.explain(), job.err.read_text()
    lines = sorted(line.split(" is ") for line in job.out.read_text().splitlines() if "Rank" in line)
    assert [line for line, _ in lines] == [f"[{rank}]<stdout>:Rank {rank} of 2" for rank in (0, 1)]
    assert not any(alive(int(pid)) for _, pid in lines)


def test_what_cannot_be_started_leaves_nothing(start, course):
    for line, options, says in (
        ("#SBATCH --gres=...", {}, "Not done yet: ../job.sh, line 6 is still blank"),
        ("batch=...  # your code here", {}, "line 6 is still blank"),
        ("", {"runs": course / "train.py/runs"}, "train.py/runs cannot be written: Not a directory"),
        ("", {"launcher": "srun"}, "leave out `ranks` and `launcher`"),
        ("", {"site": "nowhere"}, "No site is called 'nowhere'"),
    ):
        with pytest.raises(LabsError) as caught:
            start(f"{HEAD}{line}\n", **options)
        assert says in str(caught.value) and "\n" not in str(caught.value)
    assert not (course / "notebooks/runs").exists()
