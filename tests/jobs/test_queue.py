"""labs.jobs.queue and SLURM's jobs where SLURM refuses, forgets or is silent; tests/cluster has a real one.

Stand-ins for SLURM's commands answer what SLURM 22.05 prints.
"""

import json
import subprocess

import pytest

from labs import jobs
from labs.errors import LabsError
from labs.jobs import queue, slurm_job

GONE = "slurm_load_jobs error: Invalid job id specified", 1
SILENT = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1
RAISED = "0: Traceback (most recent call last):\n0: ValueError: no\n"
SHOW = "JobId=12 JobName=some JobState=%s Reason=%s Dependency=(null) Requeue=1 ExitCode=%s RunTime=00:00:01"


@pytest.fixture
def slurm(monkeypatch):
    """slurm(squeue="text", scontrol=("text", exit code)) sets what commands print, to stderr where they fail.

    slurm.calls: their command lines so far; slurm.environment: that of sbatch.
    """
    answers = {"scontrol": "Slurmctld(primary) at n1 is UP", "sbatch": "12", "squeue": "", "scancel": ""}

    def run(command, env=None, **_):
        slurm.calls.append(command)
        slurm.environment = env or slurm.environment
        given = answers[command[0]]
        text, code = given if isinstance(given, tuple) else (given, 0)
        return subprocess.CompletedProcess(command, code, "" if code else text, text if code else "")

    def slurm(**more):
        answers.update(more)

    slurm.calls, slurm.environment = [], None
    monkeypatch.setattr(queue.subprocess, "run", run)
    monkeypatch.setattr(queue.shutil, "which", lambda name: name)
    return slurm


def test_available(slurm, monkeypatch, tmp_path):
    for answer, expected in (
        ("Slurmctld(primary) at n1 is DOWN\nSlurmctld(backup) at n2 is UP", True),
        ("Slurmctld(primary) at n1 is DOWN", False),
        (("scontrol: fatal: Could not establish a configuration source", 1), False),
    ):
        slurm(scontrol=answer)
        assert queue.available() is expected, answer
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(queue.SlurmError, match="^sbatch is not installed here"):
        queue.submit("a.sh")


def test_submit(slurm):
    for text, job_id in (("12", "12"), ("Welcome\n13;cluster\n", "13")):
        slurm(sbatch=text)
        assert queue.submit("a b.sh", "--epochs", 2, options=["--qos=x"]) == job_id
    assert slurm.calls[0] == ["sbatch", "--parsable", "--qos=x", "a b.sh", "--epochs", "2"]
    slurm(sbatch="Welcome")
    with pytest.raises(queue.NoAnswerError, match="'Welcome', which is not a job id"):
        queue.submit("a.sh")


def test_a_submission_without_an_answer_may_have_gone_through(slurm, course, monkeypatch):
    (course / "job.sh").write_text("#!/bin/bash\n")
    run = queue.subprocess.run

    def late(command, **options):
        if command[0] == "sbatch":
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return run(command, **options)

    monkeypatch.setattr(queue.subprocess, "run", late)
    with pytest.raises(LabsError, match="sbatch did not answer within 60 s. Look with `squeue --me`") as caught:
        jobs.start("job.sh", runs="runs")
    assert "nothing was submitted" not in str(caught.value)


def test_state(slurm):
    for answers, state in (
        ({"scontrol": SHOW % ("PENDING", "Resources", "0:0")}, ("PENDING", "Resources", 0, 0)),
        ({"scontrol": SHOW % ("FAILED", "NonZeroExitCode", "3:0")}, ("FAILED", "NonZeroExitCode", 3, 0)),
        ({"scontrol": SHOW % ("TIMEOUT", "TimeLimit", "0:15")}, ("TIMEOUT", "TimeLimit", 0, 15)),
        ({"scontrol": GONE}, ("UNKNOWN", "", None, None)),
    ):
        slurm(**answers)
        assert queue.state("12") == state


def test_silence_is_no_end_and_no_permission_no_cancellation(slurm):
    slurm(scontrol=SILENT)
    with pytest.raises(queue.SlurmError, match="Unable to contact slurm controller"):
        queue.state("12")
    slurm(scontrol="Welcome\n")
    with pytest.raises(queue.SlurmError, match="scontrol tells no state of job 12: 'Welcome'.*squeue"):
        queue.state("12")
    error = "scancel: error: Kill job error on job id 12: "
    slurm(scancel=(f"{error}Invalid job id specified", 1))
    queue.cancel("12")
    slurm(scancel=(f"{error}Access/permission denied", 1))
    with pytest.raises(queue.SlurmError, match="^Kill job error .*denied"):
        slurm_job.SlurmJob("some", "12", "runs").stop()


# Jobs


def test_options_of_a_job_and_its_files(slurm, course, tmp_path, monkeypatch):
    (course / "job.sh").write_text("#!/bin/bash\n#SBATCH --job-name=some\n#SBATCH --account=mine\n")
    runs = tmp_path / "50%" / "runs"
    monkeypatch.setenv("SLURM_NTASKS", "77")  # of the job around
    job = jobs.start("job.sh", "--epochs", 2, runs=runs, site="cte-power")
    (call,) = [call for call in slurm.calls if call[0] == "sbatch"]
    output = str(runs).replace("%", "%%") + "/%x_%j"
    own = ["--parsable", "--job-name=some", f"--output={output}.out", f"--error={output}.err", "--export=ALL"]
    assert call[1:] == [*own, "--qos=training", str(course / "job.sh"), "--epochs", "2"]
    assert (job.job_id, job.name, job.out, job.err) == ("12", "some", runs / "some_12.out", runs / "some_12.err")
    assert "SLURM_NTASKS" not in slurm.environment and slurm.environment["LABS_RUNS"] == str(runs)
    assert runs.is_dir() and job.record == runs / "some_12.json" and job.records == []
    slurm.calls.clear()
    with pytest.raises(LabsError, match="runs cannot be written: Not a directory"):
        jobs.start("job.sh", runs=course / "job.sh" / "runs")
    assert [call for call in slurm.calls if call[0] == "sbatch"] == [], "SLURM would lose the output"
    slurm(sbatch=("sbatch: error: 1 GPU(s) per node need 2..2 cores\nsbatch: error: Batch job submission failed", 1))
    with pytest.raises(LabsError, match="^1 GPU.s. per node need 2..2 cores; Batch .*nothing was submitted"):
        jobs.start("job.sh", runs="runs")


@pytest.fixture
def job(slurm, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_job.SlurmJob, "pause", 0.0)
    monkeypatch.setattr(slurm_job.SlurmJob, "late", 0.0)
    job = slurm_job.SlurmJob("some", "12", tmp_path)
    job.out.write_text("first line\nhalf")
    job.err.write_text("")
    return job


def test_what_is_shown_while_it_waits_and_runs(slurm, job, monkeypatch):
    slurm(scontrol=SHOW % ("PENDING", "Resources", "0:0"))
    assert job.state == "waiting" and job.explain() == "some (job 12) is waiting in SLURM's queue (Resources)."
    slurm(scontrol=SHOW % ("RUNNING", "None", "0:0"))
    assert job.state == "running" and job._says() == "first line"
    for state in ("SUSPENDED", "COMPLETING"):  # COMPLETING: it has ended, and SLURM does not say yet how
        slurm(scontrol=SHOW % (state, "None", "0:0"))
        assert job.state == "running"
    slurm(scontrol=SILENT)
    assert job.state == "running" and job._says() == "SLURM does not answer"
    monkeypatch.setattr(slurm_job.SlurmJob, "pause", 60.0)
    slurm.calls.clear()
    assert [job.state for _ in range(5)] == ["running"] * 5 and slurm.calls == [], "asked more often than every pause"


ENDS = [
    ("COMPLETED", "0:0", "", "finished", "some (job 12) finished. Its files: "),
    ("TIMEOUT", "0:15", "", "failed", "was ended at its time limit (TIMEOUT). Read the end of "),
    ("FAILED", "3:0", "", "failed", "some (job 12) ended with exit code 3 (FAILED). Read the end of "),
    ("FAILED", "0:9", "", "failed", "was killed by signal SIGKILL (FAILED)"),
    ("TIMEOUT", "0:15", RAISED, "failed", '(TIMEOUT): python error ({err}, line 2: "0: ValueError'),
    ("CANCELLED", "0:15", "MemoryError\n", "stopped", "was stopped, after this: out of memory ({err}, line 1:"),
]


@pytest.mark.parametrize("state, code, err, expected, words", ENDS)
def test_ends(slurm, job, state, code, err, expected, words):
    slurm(scontrol=SHOW % (state, "None", code))
    job.err.write_text(err)
    record = job.stem.with_name("some_12_w2.json")
    record.write_text('{"version": 2, "state": "running", "configuration": {}, "epochs": []}')
    assert job.wait(60, show=False).state == expected
    assert words.format(err=job.err) in job.explain() and "\n" not in job.explain()
    assert json.loads(record.read_text())["state"] == ("failed" if expected == "finished" else expected)


def test_a_job_that_is_forgotten_or_never_began(slurm, job, monkeypatch):
    slurm(scontrol=GONE)
    assert job.wait(60, show=False).state == "unknown"
    assert "some (job 12) is not known to SLURM any more, which forgets jobs after a while" in job.explain()
    monkeypatch.setattr(slurm_job.SlurmJob, "late", 600.0)
    slurm(scontrol=SHOW % ("CANCELLED", "None", "0:0"))
    never = slurm_job.SlurmJob("other", "13", job.out.parent)
    assert never.wait(60, show=False).state == "stopped"  # and nobody waits for its files
    assert never.explain() == f"other (job 13) was cancelled (CANCELLED). It left no file in {job.out.parent}."
