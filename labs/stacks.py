"""On a signal, a process of a job writes its stack: where its main thread is, for `labs why` (labs.jobs.standing).

It has two signals. On one of them a handler in Python writes, as soon as Python runs: not while the process waits
inside a library. On the other one Python's faulthandler writes, in C and at once; while Python runs, this can crash the
process (3.11: 16 signals were enough), so it is for one that stands still. Neither needs the right to trace a process
(ptrace), which many machines refuse. Only the standard library is used, since jobs/startup runs this file first.
"""

import atexit
import contextlib
import faulthandler
import json
import os
import signal
import socket

SIGNALS = (signal.SIGURG, signal.SIGRTMAX - 2, signal.SIGRTMAX - 3)  # the first two that the program does not handle
RANKS = ("HOROVOD_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")  # as launchers tell a process its own
SIZES = ("HOROVOD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
VARIABLE = "LABS_STACKS"  # the process that writes the stacks of its rank, and their file


def register(stem: "str | os.PathLike[str]") -> None:
    """From now on two signals make this process write its stack into the file `stem`.rankR.stacks.

    The first line of the file says of the process what a reader needs. Nothing happens where the process that started
    this one writes the stacks of the rank, where the program handles the signals itself, or where the file cannot be
    written: the program goes on in any case.
    """
    rank, size = _told(RANKS, 0), _told(SIZES, 1)
    path, pid = os.path.abspath(f"{stem}.rank{rank}.stacks"), os.getpid()
    owner, _, same = os.environ.get(VARIABLE, "").partition(" ")
    handlers = {each: signal.getsignal(each) for each in SIGNALS}
    free = [int(each) for each, handler in handlers.items() if handler in (signal.SIG_DFL, signal.SIG_IGN)]
    registered = any(getattr(handler, "__name__", "") == "tell" for handler in handlers.values())
    if same == path and (owner != str(pid) or registered) or len(free) < 2:
        return
    about = {"pid": pid, "began": began(pid), "host": socket.gethostname(), "job": os.environ.get("SLURM_JOB_ID")}
    about |= {"rank": rank, "size": size, "signals": free[:2]}
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        file = open(path, "w", encoding="utf-8", buffering=1)
        file.write(json.dumps(about) + "\n")

        def tell(_, frame):
            lines = ["Stack (most recent call first):"]  # as faulthandler writes it
            while frame:
                lines.append(f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}')
                frame = frame.f_back
            os.write(file.fileno(), ("\n".join(lines) + "\n").encode(errors="replace"))

        signal.signal(free[0], tell)
        signal.siginterrupt(free[0], False)
        faulthandler.register(free[1], file, all_threads=False)
        os.environ[VARIABLE] = f"{pid} {path}"
        atexit.register(_end, pid, file)


def began(pid: int) -> int | None:
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
