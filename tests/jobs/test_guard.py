"""Of a job of this machine nothing stays, however it ends."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from waiting import until

from labs.jobs import local
from labs.results import run as records

# What a job starts: a child in the background with a child of its own, one without environment, one in a session of
# its own, and none of them ends by SIGTERM.
DEAF = "trap '' TERM; sleep 1000 & while :; do sleep 1000; done"
FAMILY = f"""
bash -c "{DEAF}" & setsid bash -c "{DEAF}" & env -i "$(command -v sleep)" 1000 &
(setsid bash -c "{DEAF}" & exit) ; echo started > "$1"
"""


def living(processes):
    found = set()
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found |= {one} if one.is_running() and one.status() != psutil.STATUS_ZOMBIE else set()
    return found


def family(mark):
    """Processes with this text in their environment or command line, or below one that has it."""
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if mark in process.cmdline() or process.environ().get("FAMILY") == mark:
                found |= {process, *process.children(recursive=True)}
    return living(found)


ENDS = [
    ("exit 3", None, 3),
    (DEAF, signal.SIGTERM, -signal.SIGTERM),
    (f"kill -STOP $(jobs -p) $$; {DEAF}", signal.SIGTERM, -signal.SIGTERM),  # it waits for its turn
    (DEAF, signal.SIGKILL, -signal.SIGKILL),  # Linux ends the command itself, and not what it has started
]


@pytest.mark.parametrize("ending, sign, code", ENDS)
def test_nothing_of_a_job_stays(tmp_path, ending, sign, code):
    mark, script = str(tmp_path / "started"), str(tmp_path / "job.sh")
    Path(script).write_text(FAMILY + ending)
    path, known = record(tmp_path / "a.json"), set()
    command = [*local.GUARD, "--script", str(tmp_path / "a"), "bash", script, mark]
    process = subprocess.Popen(command, env=os.environ | {"FAMILY": mark}, start_new_session=True)
    try:
        assert until(lambda: os.path.exists(mark))
        known |= family(mark)
        # The oldest: a shell of the family that has not begun its program yet has this command line, too.
        of_guard = (one for one in psutil.Process(process.pid).children() if script in one.cmdline()) if sign else ()
        job = {*sorted(of_guard, key=psutil.Process.create_time)[:1]}
        if sign:
            process.send_signal(sign)
        assert process.wait(300) == code
        killed = sign == signal.SIGKILL
        assert until(lambda: not (living(job) if killed else living(known) | family(mark)), 60)
        assert killed or records.load_record(path).state == "failed"
    finally:
        for one in living(known | family(mark)):
            one.kill()


def record(path):
    """The path of a record that says "running", with a progress file beside it."""
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"version": 2, "state": "running", "configuration": {}, "epochs": []}')
    path.with_suffix(".progress").write_text("{}")
    return path


def test_a_record_does_not_say_running_when_the_training_has_ended(tmp_path):
    for kind, name in (("script", "a.json"), ("batch", "a_w2.json"), ("batch", "a/w2.json")):  # the last of a study
        path, other = record(tmp_path / name), record(tmp_path / "ab.json")
        end = [*local.GUARD, f"--{kind}", str(tmp_path / "a"), "bash", "-c", "kill -9 $$"]
        assert subprocess.run(end, cwd="/").returncode == -signal.SIGKILL
        assert records.load_record(path).state == "failed" and not path.with_suffix(".progress").exists(), name
        assert records.load_record(other).state == "running", "another run's"


def test_the_end_of_the_command_is_told():
    assert subprocess.run([*local.GUARD, "bash", "-c", "kill -SEGV $$"]).returncode == -signal.SIGSEGV
    assert subprocess.run([*local.GUARD, "/nonexistent"], stderr=subprocess.DEVNULL).returncode == 127


def test_what_is_told_to_end_has_time_to_save(tmp_path):
    """A second, as a training takes that writes its weights when SLURM or a student ends it."""
    save = f"sleep 1; echo saved > {tmp_path}/saved; exit 0"
    script = f"trap '{save}' TERM; echo started > {tmp_path}/started; while :; do sleep 0.1; done"
    with subprocess.Popen([*local.GUARD, "bash", "-c", script], start_new_session=True) as process:
        assert until(lambda: (tmp_path / "started").exists())
        process.terminate()
    assert (tmp_path / "saved").exists()
