"""Of a job of this machine nothing stays, however it ends."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
from waiting import until

from labs.jobs import launch, local

# What a job starts: a child in the background with a child of its own, one without environment, one in a session of
# its own, and none of them ends by SIGTERM.
DEAF = "trap '' TERM; sleep 1000 & while :; do sleep 1000; done"
FAMILY = f"""
bash -c "{DEAF}" & setsid bash -c "{DEAF}" & env -i "$(command -v sleep)" 1000 &
(setsid bash -c "{DEAF}" & exit) ; echo started > "$1"
"""
ENDINGS = {
    "finished": "exit 0",
    "failed": "exit 3",
    "deaf": "trap '' TERM; while :; do sleep 1000; done",
    "sleeping": "sleep 1000",
}


def family(mark):
    """Processes with this text in their environment or command line, or below one that has it."""
    found = set()
    for process in psutil.process_iter():
        try:
            if mark in process.cmdline() or process.environ().get("FAMILY") == mark:
                found |= {process, *process.children(recursive=True)}
        except psutil.Error:
            continue
    return zombies_aside(found)


@pytest.fixture
def job(tmp_path):
    """A function that starts a job with a family, which then does what ENDINGS says; returns the process and what
    tells who is left of it."""
    known, processes = set(), []

    def start(ending, before=()):
        mark = str(tmp_path / "started")
        script = tmp_path / "job.sh"
        script.write_text(FAMILY + ENDINGS[ending])
        command = [*before, *launch.MORTAL, *local.GUARD, "bash", str(script), mark]
        process = subprocess.Popen(command, env=os.environ | {"FAMILY": mark}, start_new_session=True)
        processes.append(process)
        assert until(lambda: os.path.exists(mark))
        known.update(family(mark))
        return process, lambda: family(mark) | {one for one in known if one.is_running()} - {psutil.Process()}

    yield start
    for one in known:
        try:
            one.kill()
        except psutil.Error:
            continue
    for process in processes:
        process.wait()


def zombies_aside(left):
    found = set()
    for one in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            found |= {one} if one.is_running() and one.status() != psutil.STATUS_ZOMBIE else set()
    return found


@pytest.mark.parametrize(("ending", "code"), [("finished", 0), ("failed", 3)])
def test_children_in_the_background_end_with_the_job(job, ending, code):
    process, left = job(ending)
    assert process.wait(300) == code and not zombies_aside(left())


@pytest.mark.parametrize("ending", ["deaf", "sleeping"])
def test_what_does_not_listen_to_sigterm_is_killed(job, ending):
    process, left = job(ending)
    process.terminate()
    assert process.wait(300) == -signal.SIGTERM and not zombies_aside(left())


def test_grandchildren_end_when_the_process_that_started_the_job_is_killed(job):
    code = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    process, left = job("deaf", before=[sys.executable, "-c", code])
    process.kill()
    assert until(lambda: not zombies_aside(left()))


@pytest.mark.parametrize("which", ["outer", "inner"])
def test_nothing_stays_when_one_of_the_guards_is_killed(job, which):
    process, left = job("deaf")
    outer = psutil.Process(process.pid)
    (outer if which == "outer" else outer.children()[0]).kill()
    assert process.wait(300) == -signal.SIGKILL
    assert until(lambda: not zombies_aside(left()))


def test_the_command_ends_also_when_both_guards_are_killed_at_once(job):
    process, _ = job("deaf")
    outer = psutil.Process(process.pid)
    (inner,) = outer.children()
    (command,) = (child for child in inner.children() if child.name() == "bash" and "job.sh" in child.cmdline()[1])
    for sign in (signal.SIGSTOP, signal.SIGKILL):  # stopped, neither sees the other one's end
        for guard in (outer, inner):
            guard.send_signal(sign)
    assert process.wait(300) == -signal.SIGKILL
    assert until(lambda: not zombies_aside({command} if command.is_running() else set()))


def test_a_job_that_is_not_started_can_be_shown(tmp_path):
    assert repr(local.LocalJob("a", tmp_path / "a")) == "<a: waiting>"


RECORD = """
import os, signal, sys, time
from labs import devices
from labs.results.record import Configuration
from labs.results.run import Run, save
path, end = sys.argv[1:]
has = {"machine": {"cpu": "c", "gpus": []}, "versions": {}, "started": "2026-01-01T00:00:00+00:00", "command": ["a"]}
asked = Configuration(epochs_per_repeat=1, repeats=1)
told = Run(name="a", state="running", configuration=asked, epochs=[], dataset_images=1, **has)
save(path, told)
open(path.replace(".json", ".progress"), "w").write("{}")
open(path + ".there", "w").close()
if end == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
while end == "waits":
    time.sleep(1)
"""


def state(path):
    return json.loads(path.read_text())["state"]


@pytest.mark.parametrize("kind, name", [("script", "a.json"), ("batch", "a_w2.json"), ("batch", "a/w2.json")])
@pytest.mark.parametrize("end", ["killed", "forgets"])
def test_a_record_does_not_say_running_when_the_training_has_ended(tmp_path, kind, name, end):
    path, other = tmp_path / name, tmp_path / "ab.json"
    path.parent.mkdir(exist_ok=True)
    training = [sys.executable, "-c", RECORD, str(path), end]
    subprocess.run([sys.executable, "-c", RECORD, str(other), end])
    done = subprocess.run([*local.GUARD, f"--{kind}", str(tmp_path / "a"), *training], cwd="/")
    assert done.returncode == (-signal.SIGKILL if end == "killed" else 0)
    assert state(path) == "failed" and not path.with_suffix(".progress").exists()
    assert state(other) == "running"  # another run's


@pytest.mark.parametrize("which", ["caller", "outer", "inner"])
def test_a_record_is_closed_when_the_process_that_started_the_job_is_killed(tmp_path, which):
    path = tmp_path / "a.json"
    code = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    training = [sys.executable, "-c", RECORD, str(path), "waits"]
    command = [*launch.MORTAL, *local.GUARD, "--script", str(tmp_path / "a"), *training]
    caller = subprocess.Popen([sys.executable, "-c", code, *command])
    assert until(lambda: os.path.exists(f"{path}.there"))
    (outer,) = psutil.Process(caller.pid).children()
    {"caller": caller, "outer": outer, "inner": outer.children()[0]}[which].kill()
    assert until(lambda: state(path) == "failed")
    caller.wait()


def test_the_exit_code_is_told_also_where_a_record_cannot_be_closed(tmp_path):
    (tmp_path / "a.json").mkdir()
    (tmp_path / "a.progress").mkdir()
    done = subprocess.run([*local.GUARD, "--script", str(tmp_path / "a"), "bash", "-c", "exit 3"], capture_output=True)
    assert (done.returncode, done.stderr) == (3, b"")


def test_the_signal_that_ends_the_command_is_told():
    for sign in (signal.SIGKILL, signal.SIGSEGV, signal.SIGINT):
        done = subprocess.run([*local.GUARD, "bash", "-c", f"kill -{int(sign)} $$"], capture_output=True)
        assert done.returncode == -sign
    assert subprocess.run([*local.GUARD, "/nonexistent"], capture_output=True).returncode == 127


def test_what_is_told_to_end_has_time_to_save(tmp_path):
    """A second, as a training takes that writes its weights when SLURM or a student ends it."""
    save = f"sleep 1; echo saved > {tmp_path}/saved; exit 0"
    script = f"trap '{save}' TERM; echo started > {tmp_path}/started; while :; do sleep 0.1; done"
    with subprocess.Popen([*local.GUARD, "bash", "-c", script], start_new_session=True) as process:
        assert until(lambda: (tmp_path / "started").exists())
        process.terminate()
        process.wait(30)
    assert (tmp_path / "saved").exists()
