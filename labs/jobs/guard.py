"""What stands between a job of this machine and the process that started it.

    python guard.py [--script STEM | --batch STEM] COMMAND...

When the command ends, when this process is told to end (SIGTERM), or when the process that started it dies, as a
notebook's kernel, all that the command has started is ended: children in the background, orphans, what waits for its
turn, and what does not listen to SIGTERM.

STEM is the path that the files of a run begin with, a program's or a batch script's. When the command has ended, the
records of its trainings do not say "running" any more, also where the process that started it is gone.

Not covered: SIGKILL to this process. Linux then kills the command itself, but not what the command has started, such as
the programs of a batch script. While they run they keep the job's .out locked, so no second run of its name starts
beside them (labs/jobs/local.py).
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

PATIENCE = 3.0  # seconds that processes have to end when they are told to; less than ENDING of local.py
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2): a signal when the parent dies; adopt orphans
_prctl = ctypes.CDLL(None).prctl


def main(command):
    """Run a command to its end, with its exit code or signal; then end what it has left, and close its records."""
    run = []
    if command[0] in ("--script", "--batch"):
        run, command = command[:2], command[2:]
    signal.signal(signal.SIGTERM, _stop)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        code = subprocess.Popen(command, preexec_fn=_mortal).wait()
    except SystemExit:  # this process is told to end
        code = -signal.SIGTERM
    except OSError as problem:
        print(f"{command[0]}: {problem.strerror}", file=sys.stderr)
        code = 127
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_all()
    if run:
        _close_records(Path(run[1]), run[0] == "--batch", "failed" if code else "finished")
    _end_as(code)


def _stop(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit()


def _mortal():
    """Let Linux kill this process, which is to become the command, when the guard is killed."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_all():
    """End all processes below this one: with SIGTERM, and after PATIENCE seconds with SIGKILL."""
    sign, limit = signal.SIGTERM, time.monotonic() + PATIENCE
    while left := psutil.Process().children(recursive=True):
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(sign)
                process.send_signal(signal.SIGCONT)  # one that waits for its turn is stopped
        psutil.wait_procs(left, timeout=max(0.1, limit - time.monotonic()))
        sign = signal.SIGKILL


def _close_records(stem, batch, state):
    """A training that was killed could not say so: its record says it now."""
    sys.path.insert(0, str(Path(__file__).parents[2]))  # this labs, whatever else is called so
    with contextlib.suppress(Exception):  # the exit code of the command is told in any case
        from labs.jobs.job import Job

        Job("", stem, batch).close_records(state)


def _end_as(code):
    """End as the command did: with its exit code, or by its signal."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
