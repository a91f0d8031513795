"""What stands between a job of this machine and the process that started it: `python guard.py COMMAND...`.

When the command ends, or this process is told to, nothing of it stays: children in the background, orphans, and what
does not listen to SIGTERM. A second process watches this one, and ends them if it is killed.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time

import psutil

MARK = "LABS_GUARD"  # in the environment of all processes of a job
_PATIENCE = 3.0  # seconds that processes have to end when they are told to
PR_SET_CHILD_SUBREAPER = 36  # prctl: children that lose their parent become this process's


def main(command):
    """Run a command to its end, with its exit code or signal; processes that it leaves, or that outlive a stop, are
    ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    mark = f"{os.getpid()}-{time.time_ns()}"
    watcher, done = _watched(mark)

    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        limit, sign = time.monotonic() + _PATIENCE, signal.SIGTERM
        while left := [child for child in psutil.Process().children(recursive=True) if child.pid != watcher]:
            for child in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.send_signal(sign)
            psutil.wait_procs(left, timeout=max(0.1, limit - time.monotonic()))
            sign = signal.SIGKILL
        os.write(done, b".")  # nothing is left to the watcher
        os.waitpid(watcher, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def stop(*_):
        end()
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    try:
        code = subprocess.Popen(command, env=os.environ | {MARK: mark}, start_new_session=True).wait()
    except OSError as problem:
        print(f"{command[0]}: {problem.strerror}", file=sys.stderr)
        code = 127
    end()
    if code < 0:  # as if it had been the command itself
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if code not in (-signal.SIGKILL, -signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def _watched(mark):
    """(process id of the watcher, descriptor to write to when it is not needed any more)."""
    reading, writing = os.pipe()
    watcher = os.fork()
    if watcher:
        os.close(reading)
        return watcher, writing
    os.setsid()  # what is sent to the job's group does not reach it
    os.close(writing)
    try:
        if not os.read(reading, 1):
            _kill(mark)
    finally:
        os._exit(0)


def _kill(mark):
    """Kill all processes with this mark, until none is left."""
    while True:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        if not found:
            return
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=0.1)


if __name__ == "__main__":
    main(sys.argv[1:])
