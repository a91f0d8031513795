"""What stands between a job of this machine and the process that started it: `python guard.py COMMAND...`.

When the command ends, or this process is told to, nothing of it stays: children in the background, orphans, and what
does not listen to SIGTERM. There are two such processes; each ends the whole job if the other one is killed.

`--script STEM` or `--batch STEM` before the command names the path that the files of a run begin with. When it has
ended, the records of its trainings do not say "running" any more, also where the process that started it is gone.

Not covered: SIGKILL to both at the same time. Linux then kills the command itself, but not what the command has
started, such as the programs of a batch script. While they run they keep the job's .out locked, so no second run of its
name starts beside them (labs/jobs/local.py).
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

_PATIENCE = 3.0  # seconds that processes have to end when they are told to
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl: a signal when the parent dies; adopt orphans


def main(command):
    """Run a command to its end, with its exit code or signal; processes that it leaves, or that outlive a stop, are
    ended, and the records of its trainings closed."""
    run = []
    if command[0] in ("--script", "--batch"):
        run, command = command[:2], command[2:]
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    outer = os.getpid()
    inner = os.fork()
    if inner:

        def stop(*_):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with contextlib.suppress(ProcessLookupError):
                os.kill(inner, signal.SIGTERM)  # it ends the job, and is waited for below

        signal.signal(signal.SIGTERM, stop)
        code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
        _end(signal.SIGKILL)  # of the inner one's, where that was killed
        _close(run, code)
        return _leave(code)

    os.setsid()  # what is sent to the outer one's group does not reach it

    def stop_all(*_):
        _end(signal.SIGTERM)
        if os.getppid() != outer:  # the outer process, which closes the records, is gone
            _close(run, -signal.SIGTERM)
        _leave(-signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop_all)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # a fork does not inherit it
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != outer:
        return _leave(-signal.SIGTERM)
    try:
        mine = os.getpid()
        code = subprocess.Popen(command, preexec_fn=lambda: _mortal(prctl, mine)).wait()
    except OSError as problem:
        print(f"{command[0]}: {problem.strerror}", file=sys.stderr)
        code = 127
    _end(signal.SIGTERM)
    return _leave(code)


def _mortal(prctl, parent):
    """Let Linux kill this process, which is to become the command, when its parent dies."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _end(sign):
    """End all processes below this one: with a signal, and after a while with SIGKILL."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    limit = time.monotonic() + _PATIENCE
    while left := psutil.Process().children(recursive=True):
        for child in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.send_signal(sign)
        psutil.wait_procs(left, timeout=max(0.1, limit - time.monotonic()))
        sign = signal.SIGKILL


def _close(run, code):
    """A training that was killed could not say so: its record says it now."""
    if not run:
        return
    sys.path.insert(0, str(Path(__file__).parents[2]))  # this labs, whatever else is called so
    with contextlib.suppress(Exception):  # the exit code of the command is told in any case
        from labs.jobs.job import Job

        Job("", run[1], run[0] == "--batch").close_records("failed" if code else "finished")


def _leave(code):
    """End as the command did: with its exit code, or by its signal."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
