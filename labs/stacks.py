"""On a signal, a process of a job writes where each of its threads is: its stacks, for `labs why` (labs.jobs.standing).

Python's faulthandler writes them, in C: also while the process waits inside a library, and without the right to trace
it, which many machines refuse (ptrace). Only the standard library is used, since jobs/startup runs this file first.
"""

import atexit
import contextlib
import faulthandler
import json
import os
import signal
import socket
import threading

# Linux ignores the first one in a process that does not handle it; the other is for a program that uses the first.
SIGNALS = (signal.SIGURG, signal.SIGRTMAX - 2)
RANKS = ("HOROVOD_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")  # as launchers tell a process its own
SIZES = ("HOROVOD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
VARIABLE = "LABS_STACKS"  # the process that writes the stacks of its rank, and their file


def register(stem):
    """From now on a signal makes this process write its stacks into the file `stem`.rankR.stacks.

    The first line of the file says of the process what a reader needs. Nothing happens where the process that started
    this one writes the stacks of the rank, where a handler of the program's own has both signals, or where the file
    cannot be written: the program goes on in any case.
    """
    rank, size = _told(RANKS, 0), _told(SIZES, 1)
    path, pid = os.path.abspath(f"{stem}.rank{rank}.stacks"), os.getpid()
    owner, _, same = os.environ.get(VARIABLE, "").partition(" ")
    free = [each for each in SIGNALS if signal.getsignal(each) in (signal.SIG_DFL, signal.SIG_IGN)]
    if same == path and owner != str(pid) or not free:
        return
    about = {"pid": pid, "began": began(pid), "host": socket.gethostname(), "job": os.environ.get("SLURM_JOB_ID")}
    about |= {"rank": rank, "size": size, "signal": int(free[0]), "main": threading.main_thread().ident}
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        file = open(path, "w", encoding="utf-8", buffering=1)
        file.write(json.dumps(about) + "\n")
        faulthandler.register(free[0], file)
        os.environ[VARIABLE] = f"{pid} {path}"
        atexit.register(_end, pid, file)


def began(pid):
    """When a process began, in ticks since the machine's start; None if there is none of this number, or a dead one.

    Together with the number this names one process: numbers are used again (proc(5), /proc/PID/stat).
    """
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        state, *rest = file.read().rpartition(") ")[2].split()
        return None if state in "ZX" else int(rest[18])
    return None


def _told(names, otherwise):
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdecimal()), otherwise)


def _end(pid, file):
    """The program ends: no more stacks; the file says so."""
    if os.getpid() == pid:
        with contextlib.suppress(OSError, ValueError):
            file.write("ended\n")
