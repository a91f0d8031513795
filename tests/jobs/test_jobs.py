"""labs.jobs: a job leaves its files and a clear sentence, however it ends; nothing is left running."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from waiting import alive, begun, until

from labs import blanks, jobs
from labs.jobs import local
from teaching.author import regions

ROOT = Path(__file__).parents[2]

# What a training does, without TensorFlow: a record that says "running", a progress file, lines in .out.
START = """
import json, os, pathlib, sys, time
base = pathlib.Path(os.environ["LABS_RUNS"]) / os.environ["LABS_RUN"]
record = {"version": 2, "state": "running", "configuration": {}, "epochs": [], "kept": "as it was"}
base.with_name(base.name + ".json").write_text(json.dumps(record))
progress = {"epochs_done": 1, "epochs": 4, "step": 3, "steps": 6, "images_per_second": 90.0, "fraction": 0.375}
base.with_name(base.name + ".progress").write_text(json.dumps(progress))
print("started", flush=True)
"""
SLEEP = START + "time.sleep(120)\n"


@pytest.fixture
def start(tmp_path):
    """Start a program given as text; what it leaves running is ended after the test."""
    started = []

    def start(text, *arguments, name="job.1", **kwargs):
        script = tmp_path / f"{name}.py"
        script.write_text(textwrap.dedent(text))
        job = jobs.start(script, *arguments, name=name, runs=tmp_path / "runs", **kwargs)
        started.append(job)
        return job

    yield start
    for job in started:
        job.stop(0.1)


def one_line(text):
    assert text and "\n" not in text
    return text


def test_finished_job_leaves_three_files(start):
    job = start(
        START + "record['state'] = 'finished'\nbase.with_name(base.name + '.json').write_text("
        "json.dumps(record))\nprint(sys.argv[1:])",
        "--epochs",
        3,
    ).wait(show=False)
    assert job.state == "finished"
    assert job.out.read_text() == "started\n['--epochs', '3']\n" and job.err.read_text() == ""
    assert json.loads(job.record.read_text())["state"] == "finished"
    assert [f.name for f in (job.out, job.err, job.record)] == ["job.1.out", "job.1.err", "job.1.json"]
    text = one_line(job.explain())
    assert "finished" in text and all(f.name in text for f in (job.out, job.err, job.record))
    assert job.progress() == {}  # no progress of a job that is over


def test_environment_and_module(tmp_path):
    job = jobs.start("-m", "timeit", "-n", "1", "-r", "1", "pass", name="m", runs=tmp_path).wait(show=False)
    assert job.state == "finished" and "loop" in job.out.read_text()
    (tmp_path / "e.py").write_text("import os; print(os.environ['MINE'], os.environ['LABS_RUN'])")
    job = jobs.start(tmp_path / "e.py", name="e", runs=tmp_path, env={"MINE": "5"}).wait(show=False)
    assert job.out.read_text() == "5 e\n"


def test_crash_is_explained_by_the_line_of_its_err(start):
    job = start(START + "def train():\n    raise RuntimeError('the rate is not a number')\ntrain()\n").wait(show=False)
    assert job.state == "failed"
    err = job.err.read_text().splitlines()
    number = err.index("RuntimeError: the rate is not a number") + 1
    assert err[0].startswith("Traceback")
    text = one_line(job.explain())
    assert f'{job.err}, line {number}: "RuntimeError: the rate is not a number"' in text and "exit code 1" in text
    record = json.loads(job.record.read_text())
    assert record["state"] == "failed" and record["kept"] == "as it was"


def test_exit_code_without_a_reason(start):
    job = start("import sys; sys.exit(7)").wait(show=False)
    text = one_line(job.explain())
    assert job.state == "failed" and "exit code 7" in text and str(job.err) in text


def test_reason_of_a_job_that_ran_out_of_memory(start):
    job = start("raise SystemExit('MemoryError: no room')").wait(show=False)
    assert "out of memory" in one_line(job.explain())


def test_kill_leaves_readable_files_and_a_clear_sentence(start):
    job = begun(start(SLEEP))
    os.kill(job.process.pid, signal.SIGKILL)
    job.wait(show=False)
    assert job.state == "failed" and "was killed by signal SIGKILL" in one_line(job.explain())
    assert json.loads(job.record.read_text())["state"] == "failed"
    assert job.out.read_text() == "started\n"
    assert not job.record.with_suffix(".progress").exists()


def test_stop(start):
    job = begun(start(SLEEP))
    assert job.state == "running" and "is running" in job.explain()
    job.stop()
    assert job.state == "stopped" and "was stopped" in one_line(job.explain())
    assert json.loads(job.record.read_text())["state"] == "stopped"
    job.stop()  # once more does no harm
    assert job.state == "stopped"


def test_stop_of_a_finished_job_changes_nothing(start):
    job = start("print(1)").wait(show=False)
    job.stop()
    assert job.state == "finished"


FAMILY = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
print("started", child.pid, flush=True)
time.sleep(120)
"""


def test_stop_ends_a_job_that_will_not_and_all_that_it_started(start):
    job = begun(start(FAMILY))
    child = int(job.out.read_text().split()[1])
    job.stop(patience=0.3)
    assert job.state == "stopped" and job.process.returncode == -signal.SIGKILL
    assert until(lambda: not alive(child))


def test_grandchild_that_ignores_the_request_ends_too(start):
    text = FAMILY.replace('"import time; ', '"import signal, time; signal.signal(15, signal.SIG_IGN); print(1); ')
    job = begun(start(text.replace("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n", "")))
    child = int(job.out.read_text().split()[1])
    job.stop(patience=5)
    assert job.state == "stopped" and until(lambda: not alive(child))


def test_no_zombie_is_left(start):
    pids = []
    for text in ("pass", "raise SystemExit(3)", SLEEP):
        job = start(text)
        pids.append(job.process.pid)
        if text == SLEEP:
            begun(job).stop()
        else:
            job.wait(show=False)
    assert not {child.pid for child in psutil.Process().children()} & set(pids)


def test_timeout_stops_the_job(start):
    job = start(SLEEP).wait(timeout=0.2, show=False)
    assert job.state == "stopped" and not alive(job.process.pid)


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background processes ignore
sys.path.insert(0, {root!r})
from labs import jobs
job = jobs.start({script!r}, name="child", runs={runs!r})
print(job.process.pid, flush=True)
job.wait(show=False)
print("state", job.state, flush=True)
print(job.explain(), flush=True)
"""


@pytest.fixture
def parent(tmp_path):
    """A Python process that starts a job and waits for it; (parent, pid of the job, its record)."""
    (tmp_path / "sleep.py").write_text(SLEEP)
    code = PARENT.format(root=str(ROOT), script=str(tmp_path / "sleep.py"), runs=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(process.stdout.readline())
    assert until(lambda: (tmp_path / "child.out").read_text() == "started\n")
    yield process, pid, tmp_path / "child.json"
    process.kill()
    process.wait()
    process.stdout.close()


def test_job_ends_when_the_process_that_started_it_is_killed(parent):
    process, pid, _ = parent
    assert alive(pid)
    process.kill()
    process.wait()
    assert until(lambda: not alive(pid))


def test_interrupt_while_waiting_stops_the_job_and_not_the_kernel(parent):
    process, pid, record = parent
    process.send_signal(signal.SIGINT)
    out = process.stdout.read()
    assert process.wait() == 0 and "state stopped" in out and "was stopped" in out
    assert not alive(pid) and json.loads(record.read_text())["state"] == "stopped"


# Jobs that cannot be started


def refused(*arguments, **kwargs):
    with pytest.raises(jobs.JobError) as caught:
        jobs.start(*arguments, **kwargs)
    return one_line(str(caught.value))


def test_missing_script(tmp_path):
    text = refused(tmp_path / "no.py", name="a", runs=tmp_path / "runs")
    assert "no.py" in text and "nothing was started" in text
    assert not (tmp_path / "runs").exists()


def test_script_with_blanks(tmp_path):
    script = tmp_path / "ResNet50.py"
    script.write_text(regions.blank((ROOT / "solutions/scripts/ResNet50.py").read_text()))
    line = blanks.blanks(script)[0][0]
    text = refused(script, name="a", runs=tmp_path / "runs")
    assert f"line {line}" in text and "Not done yet" in text and not (tmp_path / "runs").exists()


def test_script_that_python_cannot_read(tmp_path):
    (tmp_path / "half.py").write_text("x = 1\nmodel.fit(\n")
    assert "half.py:2" in refused(tmp_path / "half.py", name="a", runs=tmp_path)


def test_unwritable_folder(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "a.py").write_text("")
    for folder in ("file/runs", "/proc/runs"):
        text = refused(tmp_path / "a.py", name="a", runs=tmp_path / folder)
        assert folder in text and "not started" in text


NAMES = ["../up", "/up", "a/b", "", " ", ".", "..", "a\0b", "a\nb", "\x1b[31m", "\ud800", "a" * 300, "progress"]


@pytest.mark.parametrize("name", [*NAMES, 3, 3.5, True, b"a", ["a"]], ids=range(18))
def test_a_name_that_no_run_can_have(tmp_path, name):
    (tmp_path / "a.py").write_text("")
    (tmp_path / "a.sh").write_text("#!/bin/bash\n")
    assert "choose another" in refused(tmp_path / "a.py", name=name, runs=tmp_path / "runs")
    assert "choose another" in refused(tmp_path / "a.sh", name=name, runs=tmp_path / "runs")
    assert {path.name for path in tmp_path.iterdir()} == {"a.py", "a.sh"}


# Runs of one name


def test_a_second_run_of_one_name_is_refused_while_the_first_goes_on(start, tmp_path, monkeypatch):
    first = begun(start(SLEEP))
    assert "goes on already" in refused(tmp_path / "job.1.py", name="job.1", runs=tmp_path / "runs")
    code = "import sys; from labs import jobs; jobs.start(sys.argv[1], name='job.1', runs=sys.argv[2])"
    other = [sys.executable, "-c", code, tmp_path / "job.1.py", tmp_path / "runs"]  # another kernel
    assert "goes on already" in subprocess.run(other, capture_output=True, text=True).stderr
    assert first.state == "running" and first.record.exists() and "started" in first.out.read_text()
    first.stop(0.1)
    monkeypatch.setattr(local, "ENDING", 300.0)
    assert start("print('second')").wait(show=False).state == "finished"


def test_an_earlier_run_moves_aside_and_is_not_taken_for_another_one(start):
    for number in range(3):
        job = start(START + f"print('number {number}')").wait(show=False)
        assert job.moved == (f"job.1.{number}" if number else None)
    assert "number 2" in job.out.read_text()
    folder = job.out.parent
    for number in (1, 2):
        assert f"number {number - 1}" in (folder / f"job.1.{number}.out").read_text()
        assert (folder / f"job.1.{number}.json").exists()
    assert job.records == [folder / "job.1.json"]
    job.give_way()
    assert "number 2" in job.out.read_text() and job.out.name == "job.1.3.out"
    assert "number 1" in (folder / "job.1.out").read_text()


# Progress and records


def test_progress_while_it_runs(start):
    job = begun(start(SLEEP))
    assert job.progress() == {
        "epochs_done": 1,
        "epochs": 4,
        "step": 3,
        "steps": 6,
        "images_per_second": 90.0,
        "fraction": 0.375,
    }
    job.record.with_suffix(".progress").write_text('{"frac')  # caught in the middle of a write
    assert job.progress() == {}


def test_older_record_is_not_taken_for_the_new_runs(start, monkeypatch):
    job = begun(start(SLEEP))
    (inner,) = psutil.Process(job.process.pid).children()
    inner.suspend()  # it would take the progress away
    os.kill(job.process.pid, signal.SIGKILL)  # nobody waits for it: record and progress stay behind
    job.process.wait()
    assert job.record.exists() and job.progress()
    inner.resume()
    monkeypatch.setattr(local, "ENDING", 300.0)
    again = start("raise SystemExit('fails before it writes a record')")
    assert again.progress() == {}
    again.wait(show=False)
    assert again.state == "failed" and not again.record.exists() and "started" not in again.out.read_text()


@pytest.mark.parametrize("text", ["[1, 2]", '{"mine": 1}', '{"state'])
def test_json_that_is_no_record_is_left_alone(start, text):
    job = start(f"import os, pathlib\npathlib.Path(os.environ['LABS_RUNS'], 'job.1.json').write_text({text!r})\n1/0")
    job.wait(show=False)
    assert job.state == "failed" and job.record.read_text() == text


def test_run_says_how_it_ended(tmp_path, capsys):
    (tmp_path / "a.py").write_text("raise ValueError('no')")
    job = jobs.run(tmp_path / "a.py", name="a", runs=tmp_path, show=False)
    assert job.state == "failed" and "ValueError: no" in capsys.readouterr().out


def test_folder_of_the_runs(monkeypatch, tmp_path):
    monkeypatch.delenv("LABS_RUNS", raising=False)
    assert jobs.folder() == Path("runs")
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    assert jobs.folder() == tmp_path
