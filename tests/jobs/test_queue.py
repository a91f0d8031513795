"""labs.jobs.queue and SLURM's jobs where SLURM refuses, forgets or is silent; tests/cluster has a real one.

Stand-ins for SLURM's commands print what SLURM 22.05 prints.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from labs import jobs
from labs.jobs import queue
from labs.jobs import slurm as slurm_job

ROOT = Path(__file__).parents[2]
GONE = "slurm_load_jobs error: Invalid job id specified"
SILENT = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
NO_ACCOUNTS = "Slurm accounting storage is disabled"


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Stand-ins: slurm(squeue=("text", exit code), ...) sets what a command prints, to stderr where it fails.

    slurm.calls(): command lines so far.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    calls = tmp_path / "calls"
    program = (
        f"#!{sys.executable}\nimport json, os, sys, pathlib\nhere = pathlib.Path(sys.argv[0])\n"
        f"with open({str(calls)!r}, 'a') as file: print(json.dumps([here.name, *sys.argv[1:]]), file=file)\n"
        "texts = json.loads(here.with_suffix('.json').read_text())\n"
        "text, code = texts[' -c ' in ' '.join(sys.argv)]\n"
        "print(text, file=sys.stderr if code else sys.stdout)\nsys.exit(code)\n"
    )

    def answer(**answers):
        for name, given in answers.items():
            completion = name == "sacct_completion"
            name = "sacct" if completion else name
            path = folder / f"{name}.json"
            texts = json.loads(path.read_text()) if path.exists() else [["", 0], ["", 0]]
            texts[completion] = given if isinstance(given, tuple) else (given, 0)
            path.write_text(json.dumps(texts))
            (folder / name).write_text(program)
            (folder / name).chmod(0o755)

    answer.calls = lambda: [json.loads(line) for line in calls.read_text().splitlines()]
    answer(scontrol="Slurmctld(primary) at n1 is UP", sbatch="12", squeue="RUNNING|None", scancel="", sacct="")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return answer


def test_available(slurm):
    for text, expected in (
        ("Slurmctld(primary) at n1 is UP", True),
        ("Slurmctld(primary) at n1 is DOWN\nSlurmctld(backup) at n2 is UP", True),
        ("Slurmctld(primary) at n1 is DOWN", False),
        (("scontrol: fatal: Could not establish a configuration source", 1), False),
    ):
        slurm(scontrol=text)
        assert queue.available() is expected, text


def test_not_available_where_it_does_not_answer_in_time(slurm, tmp_path):
    (tmp_path / "bin" / "scontrol").write_text("#!/bin/sh\nexec sleep 30\n")
    assert queue.available(seconds=0.2) is False


def test_not_available_without_sbatch(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not queue.available()
    with pytest.raises(queue.SlurmError, match="^sbatch is not installed here"):
        queue.submit("a.sh")


def test_submit(slurm):
    for text, job_id in (("12", "12"), ("13;cluster", "13")):
        slurm(sbatch=text)
        assert queue.submit("a b.sh", "--epochs", 2, options=["--qos=x"]) == job_id
    assert slurm.calls()[0] == ["sbatch", "--parsable", "--qos=x", "a b.sh", "--epochs", "2"]


def test_refused(slurm):
    slurm(
        sbatch=(
            "sbatch: error: 1 GPU(s) per node need 2..2 cores per node, this job asks 1\n"
            "sbatch: error: Batch job submission failed: Unspecified error",
            1,
        )
    )
    with pytest.raises(queue.SlurmError, match=r"^1 GPU\(s\) per node need 2..2 cores .*; Batch job submission failed"):
        queue.submit("a.sh")
    slurm(sbatch="Welcome")
    with pytest.raises(queue.SlurmError, match="'Welcome', which is not a job id"):
        queue.submit("a.sh")


SHOW = "JobId=12 JobName=some JobState=%s Reason=%s Dependency=(null) Requeue=1 ExitCode=%s RunTime=00:00:01"


@pytest.mark.parametrize(
    "answers, state",
    [
        ({"squeue": "PENDING|Resources"}, ("PENDING", "Resources", None, None)),
        ({"squeue": "RUNNING|None"}, ("RUNNING", "", None, None)),
        ({"squeue": "", "scontrol": SHOW % ("FAILED", "NonZeroExitCode", "3:0")}, ("FAILED", "NonZeroExitCode", 3, 0)),
        (
            {"squeue": "TIMEOUT|TimeLimit", "scontrol": SHOW % ("TIMEOUT", "TimeLimit", "0:15")},
            ("TIMEOUT", "TimeLimit", 0, 15),
        ),
        ({"squeue": "", "scontrol": SHOW % ("COMPLETING", "None", "0:0")}, ("COMPLETING", "", 0, 0)),
        ({"squeue": (SILENT, 1), "scontrol": SHOW % ("RUNNING", "None", "0:0")}, ("RUNNING", "", 0, 0)),
        (
            {"squeue": (GONE, 1), "scontrol": (GONE, 1), "sacct": "NODE_FAIL|0:0\nCANCELLED by 1000|0:9"},
            ("CANCELLED", "", 0, 9),
        ),
        (
            {"squeue": (GONE, 1), "scontrol": (GONE, 1), "sacct": (NO_ACCOUNTS, 1), "sacct_completion": "COMPLETED"},
            ("COMPLETED", "", None, None),
        ),
        (
            {
                "squeue": (GONE, 1),
                "scontrol": (GONE, 1),
                "sacct": (NO_ACCOUNTS, 1),
                "sacct_completion": (NO_ACCOUNTS, 1),
            },
            ("UNKNOWN", "", None, None),
        ),
        (
            {"squeue": (GONE, 1), "scontrol": (GONE, 1), "sacct": "", "sacct_completion": ""},
            ("UNKNOWN", "", None, None),
        ),
    ],
)
def test_state(slurm, answers, state):
    slurm(**answers)
    assert queue.state("12") == state


def test_silence_is_no_end(slurm):
    slurm(squeue=(SILENT, 1), scontrol=(SILENT, 1), sacct=(NO_ACCOUNTS, 1), sacct_completion=(NO_ACCOUNTS, 1))
    with pytest.raises(queue.SlurmError, match="Unable to contact slurm controller"):
        queue.state("12")


def test_cancel(slurm):
    slurm(scancel=("scancel: error: Kill job error on job id 12: Invalid job id specified", 1))
    queue.cancel("12")
    slurm(scancel=("scancel: error: Kill job error on job id 12: Access/permission denied", 1))
    with pytest.raises(queue.SlurmError, match="permission denied"):
        queue.cancel("12")
    with pytest.raises(jobs.JobError, match="permission denied.*Job 12 is not cancelled: try `scancel 12`"):
        slurm_job.SlurmJob("some", "12", "runs").stop()


def test_describe(slurm):
    files = "StdErr=/a b/x.err StdIn=/dev/null StdOut=/a b/x.out"
    slurm(scontrol=f"JobId=12 JobName=a name UserId=me(1) TRES=cpu=2,node=1 Comment= {files} Power=")
    found = queue.describe("12")
    assert (found["JobName"], found["StdErr"], found["StdOut"]) == ("a name", "/a b/x.err", "/a b/x.out")
    slurm(scontrol=(GONE, 1))
    assert queue.describe("12") == {}


# Jobs


@pytest.fixture
def course(slurm, tmp_path, monkeypatch):
    root = tmp_path / "course"
    shutil.copytree(ROOT / "slurm" / "sites", root / "slurm" / "sites", ignore=shutil.ignore_patterns("*.local.toml"))
    (root / "job.sh").write_text("#!/bin/bash\n#SBATCH --job-name=some\n#SBATCH --account=mine\n")
    monkeypatch.chdir(root)
    for name in ("SBATCH_ACCOUNT", "SBATCH_QOS", "LABS_SITE"):
        monkeypatch.delenv(name, raising=False)
    return root


def test_options_of_a_job_and_its_files(slurm, course, tmp_path):
    (course / "slurm/sites/cte-power.local.toml").write_text('account = "other"\nqos = "training"\n')
    runs = tmp_path / "50%" / "runs"
    job = jobs.start("job.sh", "--epochs", 2, runs=runs, site="cte-power")
    (call,) = [call for call in slurm.calls() if call[0] == "sbatch"]
    output = str(runs).replace("%", "%%") + "/%x_%j"
    assert call[1:] == [
        "--parsable",
        "--job-name=some",
        f"--output={output}.out",
        f"--error={output}.err",
        "--export=ALL",
        "--qos=training",
        str(course / "job.sh"),
        "--epochs",
        "2",
    ]
    assert (job.job_id, job.name, job.out, job.err) == ("12", "some", runs / "some_12.out", runs / "some_12.err")
    assert runs.is_dir() and job.record == runs / "some_12.json" and job.records == []


def test_refused_job_is_an_error_of_the_job(slurm, course):
    slurm(
        sbatch=(
            "sbatch: error: invalid partition specified: gpu\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified",
            1,
        )
    )
    with pytest.raises(jobs.JobError) as caught:
        jobs.start("job.sh", runs="runs")
    text = str(caught.value)
    assert text.startswith("invalid partition specified: gpu; Batch job submission failed: Invalid partition name")
    assert "nothing was submitted" in text and "`labs slurm check" in text and "\n" not in text


def test_folder_that_cannot_be_written_is_refused_before_sbatch_loses_the_output(slurm, course, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(jobs.JobError, match="Cannot write into"):
        jobs.start("job.sh", runs=tmp_path / "file" / "runs")
    assert not [call for call in slurm.calls() if call[0] == "sbatch"]


@pytest.fixture
def job(slurm, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_job.SlurmJob, "pause", 0.0)
    monkeypatch.setattr(slurm_job.SlurmJob, "late", 0.0)
    (tmp_path / "runs").mkdir()
    job = slurm_job.SlurmJob("some", "12", tmp_path / "runs")
    job.out.write_text("first line\nhalf")
    job.err.write_text("")
    return job


def test_what_is_shown_while_it_waits_and_runs(slurm, job):
    slurm(squeue="PENDING|Resources")
    assert job.state == "waiting" and job._says() == "waiting: Resources"
    assert job.explain() == "some (job 12) is waiting in SLURM's queue (Resources)."
    slurm(squeue="RUNNING|None")
    assert job.state == "running" and job._says() == "first line"
    slurm(squeue=(SILENT, 1), scontrol=(SILENT, 1), sacct=(NO_ACCOUNTS, 1), sacct_completion=(NO_ACCOUNTS, 1))
    assert job.state == "running" and job._says() == "SLURM does not answer"


def test_slurm_is_not_asked_more_often_than_every_pause(slurm, job, monkeypatch):
    monkeypatch.setattr(slurm_job.SlurmJob, "pause", 60.0)
    assert [job.state for _ in range(5)] == ["running"] * 5
    assert len([call for call in slurm.calls() if call[0] == "squeue"]) == 1


ENDS = [  # state, exit code, .err, Job.state, words of explain
    ("COMPLETED", "0:0", "", "finished", "some (job 12) finished. Its files: "),
    ("TIMEOUT", "0:15", "", "failed", "some (job 12) was ended at its time limit (TIMEOUT). Ask for more time"),
    ("OUT_OF_MEMORY", "0:125", "", "failed", "used more memory than it may (OUT_OF_MEMORY). Halve the batch size"),
    ("NODE_FAIL", "1:0", "", "failed", "lost a node (NODE_FAIL). The script is not to blame"),
    ("FAILED", "3:0", "", "failed", "some (job 12) ended with exit code 3 (FAILED). Read the end of "),
    ("FAILED", "0:9", "", "failed", "was killed by signal SIGKILL (FAILED)"),
    ("FAILED", "0:53", "", "failed", "could not write its output into "),
    (
        "FAILED",
        "1:0",
        "Traceback (most recent call last):\nValueError: no\n",
        "failed",
        'ended with exit code 1 (FAILED): python error ({err}, line 2: "ValueError: no"). Read the traceback',
    ),
    (
        "TIMEOUT",
        "0:15",
        "0: Traceback (most recent call last):\n0: ValueError: no\n",
        "failed",
        "was ended at its time limit (TIMEOUT): python error ({err}, line 2:",
    ),
    (
        "CANCELLED",
        "0:15",
        "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-09-30T16:00:24 ***\n",
        "stopped",
        "some (job 12) was stopped. What it printed so far is in ",
    ),
    ("CANCELLED", "0:15", "MemoryError\n", "stopped", "was stopped, after this: out of memory ({err}, line 1:"),
    ("SOMETHING_NEW", "0:0", "", "failed", "ended with exit code 0 (SOMETHING_NEW)"),
]


@pytest.mark.parametrize("state, code, err, expected, words", ENDS)
def test_ends(slurm, job, state, code, err, expected, words):
    slurm(squeue="", scontrol=SHOW % (state, "None", code))
    job.err.write_text(err)
    record = job.stem.with_name("some_12_w2.json")
    record.write_text('{"version": 2, "state": "running", "configuration": {}, "epochs": []}')
    assert job.wait(show=False).state == expected
    text = job.explain()
    assert words.format(err=job.err) in text and "\n" not in text
    assert json.loads(record.read_text())["state"] == ("failed" if expected == "finished" else expected)


def test_job_that_slurm_has_forgotten(slurm, job):
    slurm(squeue=(GONE, 1), scontrol=(GONE, 1), sacct=(NO_ACCOUNTS, 1), sacct_completion=(NO_ACCOUNTS, 1))
    assert job.wait(show=False).state == "unknown"
    assert "some (job 12) is not known to SLURM any more. SLURM forgets jobs" in job.explain()


def test_cancelled_before_it_began_leaves_no_files_and_nobody_waits_for_them(slurm, job, monkeypatch):
    monkeypatch.setattr(slurm_job.SlurmJob, "late", 600.0)
    job.out.unlink()
    job.err.unlink()
    slurm(squeue="", scontrol=SHOW % ("CANCELLED", "None", "0:0"))
    assert job.wait(show=False).state == "stopped"
    assert job.explain() == f"some (job 12) was cancelled (CANCELLED). It left no file in {job.out.parent}."


def test_find(slurm, job):
    runs = job.out.parent
    (runs / "some_9.out").write_text("")
    slurm(squeue="", scontrol=(GONE, 1))
    for asked, expected in (("12", "12"), (9, "9"), ("some", "12")):
        found = jobs.find(asked, runs)
        assert (found.job_id, found.name, found.out) == (expected, "some", runs / f"some_{expected}.out")
    slurm(squeue="14\n13")
    slurm(scontrol=f"JobId=14 JobName=some JobState=PENDING StdErr={runs}/some_14.err StdOut={runs}/some_14.out")
    assert jobs.find("some", "elsewhere").out == runs / "some_14.out"
    slurm(squeue="", scontrol=(GONE, 1))
    for asked in ("77", "other"):
        with pytest.raises(jobs.JobError, match=asked):
            jobs.find(asked, runs)
