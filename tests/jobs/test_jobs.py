"""labs.jobs: a job leaves its files and a clear sentence, however it ends; nothing is left running."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waiting import FINISH, START, alive, begun, until

from labs import jobs
from labs.errors import LabsError
from labs.jobs import local
from labs.jobs.job import Job

ROOT = Path(__file__).parents[2]

SLEEP = START + "time.sleep(120)\n"


@pytest.fixture
def start(tmp_path, ended):
    """Start a program given as text; what it leaves running is ended after the test."""

    def start(text, *arguments, name="job.1", **kwargs):
        (tmp_path / f"{name}.py").write_text(text)
        ended.append(jobs.start(tmp_path / f"{name}.py", *arguments, name=name, runs=tmp_path / "runs", **kwargs))
        return ended[-1]

    return start


def state(job):
    return json.loads(job.record.read_text())["state"]


def test_a_finished_job_leaves_three_files(start, tmp_path, monkeypatch):
    text = START + FINISH + "print(sys.argv[1:], os.environ['MINE'])"
    job = start(text, 2, "--epochs", 3, env={"MINE": "5"}).wait(show=False)
    assert job.out.read_text() == "started 2\n['2', '--epochs', '3'] 5\n" and job.err.read_text() == ""
    job.stop()  # changes nothing
    assert job.state == state(job) == "finished" and job.progress() == {}
    assert job.explain() == f"job.1 finished. Its files: {job.out}, job.1.err, job.1.json."
    assert job.out == tmp_path / "runs/job.1.out" and not psutil.pid_exists(job.process.pid), "a zombie is left"
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    job = jobs.start("-m", "timeit", "-n", "1", "-r", "1", "pass", name="m").wait(show=False)
    assert job.out == tmp_path / "m.out" and "loop" in job.out.read_text()


ENDS = [
    ("1/0", '{err}, line 5: "ZeroDivisionError: division by zero"'),
    ("sys.exit(7)", "ended with exit code 7. Read the end of {err}."),
    ("os.kill(os.getpid(), 9)", "was killed by signal SIGKILL"),
]


@pytest.mark.parametrize("end, says", ENDS)
def test_a_failure_is_explained_by_the_line_of_its_err(tmp_path, capsys, end, says):
    (tmp_path / "a.py").write_text(START + end)
    job = jobs.run(tmp_path / "a.py", name="a", runs=tmp_path, show=False)
    assert job.state == state(job) == "failed" and json.loads(job.record.read_text())["kept"] == "as it was"
    told = capsys.readouterr().out
    assert told.count("\n") == 1 and told.startswith("a ") and says.format(err=job.err) in told
    assert job.out.read_text() == "started 1\n" and not (tmp_path / "a.progress").exists()


def test_progress_and_stop(start):
    job = begun(start(SLEEP))
    assert job.state == "running" and "job.1 is running." in job.explain()
    there = {"epochs_done": 1, "epochs": 4, "step": 3, "steps": 6, "images_per_second": 90.0, "fraction": 0.375}
    assert job.progress() == there | {"workers": 1}
    job.record.with_suffix(".progress").write_text('{"frac')  # caught in the middle of a write
    assert job.progress() == {}
    job.stop()
    assert job.state == state(job) == "stopped" and job.explain().startswith("job.1 was stopped. What it printed")
    job = start(SLEEP, name="limited").wait(timeout=0.2, show=False)
    assert job.state == "stopped" and not alive(job.process.pid)


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background processes ignore
from labs import jobs
job = jobs.start(sys.argv[1], name="child", runs=sys.argv[2])
print(job.process.pid, flush=True)
print(job.wait(show=False).explain(), flush=True)
"""


@pytest.mark.parametrize("sign, ending", [(signal.SIGKILL, "failed"), (signal.SIGINT, "stopped")])
def test_a_job_ends_with_its_parent_and_an_interrupt_of_waiting_ends_the_job_alone(tmp_path, sign, ending):
    (tmp_path / "sleep.py").write_text(SLEEP)
    command = [sys.executable, "-c", PARENT, tmp_path / "sleep.py", tmp_path]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        pid = int(parent.stdout.readline())
        assert until(lambda: "started" in (tmp_path / "child.out").read_text())
        parent.send_signal(sign)
        told = parent.stdout.read()
    assert (parent.returncode, "child was stopped." in told) == ((0, True) if ending == "stopped" else (-sign, False))
    assert until(lambda: not alive(pid) and state(Job("", tmp_path / "child")) == ending)


# Jobs that cannot be started


def test_what_cannot_be_started_leaves_nothing(tmp_path):
    for name, text in (("blank", "x = ...  # your code here\n"), ("half", "x = 1\nmodel.fit(\n"), ("a", "")):
        (tmp_path / f"{name}.py").write_text(text)
    there = sorted(tmp_path.iterdir())
    for script, options, says in (
        ("no", {}, "no script {path}, so nothing was started"),
        ("blank", {}, "Not done yet: {path}, line 1 is still blank"),
        ("half", {}, "half.py:2"),
        ("a", {"name": None}, "The job of {path} needs a name"),
        ("a", {"launcher": "mpiexec"}, "mpiexec starts ranks: say how many"),
        ("a", {"runs": tmp_path / "a.py/runs"}, "a.py/runs cannot be written: Not a directory"),
        *(("a", {"name": name}, "choose another") for name in ("../up", " ", "a\nb", "a" * 300, "progress", 3)),
    ):
        path = tmp_path / f"{script}.py"
        with pytest.raises(LabsError) as caught:
            jobs.start(path, **{"name": "a", "runs": tmp_path / "runs"} | options)
        assert says.format(path=path) in str(caught.value) and "\n" not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == there


# Runs of one name


@pytest.mark.parametrize("earlier", (0, 1))  # runs that have ended, whose files are moved aside
def test_a_second_run_of_one_name_is_refused_while_the_first_goes_on(start, tmp_path, monkeypatch, earlier):
    monkeypatch.setattr(local, "ENDING", 0.2)
    for _ in range(earlier):
        start(START).wait(show=False)
    first = begun(start(SLEEP))
    code = "import sys; from labs import jobs; jobs.start(sys.argv[1], name='job.1', runs=sys.argv[2])"
    other = [sys.executable, "-c", code, tmp_path / "job.1.py", tmp_path / "runs"]  # another kernel
    assert "goes on already" in subprocess.run(other, capture_output=True, text=True).stderr
    assert first.state == "running" and first.record.exists() and "started" in first.out.read_text()
    first.stop()


def test_an_earlier_run_moves_aside_and_is_not_taken_for_another_one(start):
    for number in range(3):
        job = start(START + f"print('number {number}')").wait(show=False)
    folder = job.out.parent
    for name, number in (("job.1", 2), ("job.1.1", 0), ("job.1.2", 1)):
        assert f"number {number}" in (folder / f"{name}.out").read_text() and (folder / f"{name}.json").exists()
    assert job.records == [folder / "job.1.json"]
    for left in ("progress", "rank0.stacks"):  # of a run that was killed with all that looked after it
        (folder / f"job.1.{left}").write_text('{"fraction": 1}')
    again = start("raise SystemExit('fails before it writes a record')")
    assert again.progress() == {} and not list(folder.glob("*.stacks"))
    assert again.wait(show=False).state == "failed" and again.records == []


def test_a_record_says_how_the_job_ended(tmp_path):
    for before, ending, after in (
        ("running", "failed", "failed"),
        ("running", "finished", "failed"),
        ("running", "stopped", "stopped"),
        ("failed", "stopped", "stopped"),  # it was told to end
        ("finished", "failed", "finished"),
        ("running", "running", "running"),
    ):
        record = {"version": 2, "state": before, "configuration": {}, "epochs": []}
        (tmp_path / "a.json").write_text(json.dumps(record))
        Job("a", tmp_path / "a").close_records(ending)
        assert json.loads((tmp_path / "a.json").read_text())["state"] == after


def test_a_training_that_had_failed_before_its_script_was_stopped_stays_failed(tmp_path):
    for name, state, study in (("w1", "failed", None), ("w2", "failed", "s"), ("w4", "failed", "s")):
        record = {"version": 2, "state": state, "study": study, "configuration": {}, "epochs": []}
        (tmp_path / f"a_{name}.json").write_text(json.dumps(record))
        os.utime(tmp_path / f"a_{name}.json", (1e9, 1e9 + int(name[1:])))
    job = Job("a", tmp_path / "a", batch=True)
    job.close_records("stopped")
    states = {path.name: json.loads(path.read_text())["state"] for path in job.records}
    assert states == {"a_w1.json": "failed", "a_w2.json": "stopped", "a_w4.json": "stopped"}  # the last took turns
