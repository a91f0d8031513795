"""Each second, a process of a job writes where its main thread is, for `labs why` (labs.jobs.why).

A thread of its own writes. It can do so wherever the main thread lets Python run: while it computes in Python, and also
while it waits inside of a library, as in a collective. No right to trace a process (ptrace) is needed, which many
machines refuse; ranks on other nodes are seen through the folder that all of them share.
"""

import atexit
import contextlib
import json
import os
import socket
import sys
import threading
import time
import traceback
from collections import deque
from pathlib import Path

import psutil

from labs import files

EVERY, LOOKS = 1.0, 3  # seconds between two looks at the main thread; so many of them are kept
COMPUTES = 0.1  # of one core: a main thread that takes more computes, also where others leave it a part of a core only
RANKS = ("HOROVOD_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")  # as launchers tell a process its own
SIZES = ("HOROVOD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
STACKS_VARIABLE = "LABS_STACKS"  # the file that this process, or the one that started it, writes


def register(stem: str | Path | None = None) -> None:
    """From now on the stack of the main thread is in the file `stem`.rankR.stacks, which is renewed each second.

    stem: by default the run's, where labs.jobs has started this process; else nothing happens
    """
    if stem is None and os.environ.get("LABS_RUN"):
        stem = Path(os.environ["LABS_RUNS"], os.environ["LABS_RUN"])
    if stem is None:
        return
    rank, size = _first(RANKS, 0), _first(SIZES, 1)
    path = os.path.abspath(f"{stem}.rank{rank}.stacks")
    if os.environ.get(STACKS_VARIABLE) == path:
        return
    os.environ[STACKS_VARIABLE] = path
    about = {"rank": rank, "size": size, "pid": os.getpid(), "host": socket.gethostname()}
    over = threading.Event()
    writer = threading.Thread(target=_write, args=(path, about, over), name="stacks", daemon=True)
    writer.start()
    atexit.register(lambda: (over.set(), writer.join()))


def _first(names, otherwise):
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdecimal()), otherwise)


def _write(path, about, over):
    """Write until `over` is set, that is until the program ends; then the file says so.

    looks: of the last LOOKS seconds the main thread's frames, [file, line, function], the innermost first
    cores, thread: of cores, in use by the process and by its main thread in this time; memory: bytes resident
    """
    main, looks = threading.main_thread(), deque(maxlen=LOOKS)
    clock = time.pthread_getcpuclockid(main.ident)
    clocks = deque([(time.monotonic(), time.process_time(), time.clock_gettime(clock))], maxlen=LOOKS)
    while not over.wait(EVERY):
        now = time.monotonic(), time.process_time(), time.clock_gettime(clock)
        seconds, cores, thread = (new - old for new, old in zip(now, clocks[0], strict=True))
        frames = traceback.walk_stack(sys._current_frames()[main.ident])
        looks.append([[frame.f_code.co_filename, line, frame.f_code.co_name] for frame, line in frames])
        about |= {"cores": cores / seconds, "thread": thread / seconds, "looks": [*looks], "time": time.time()}
        about |= {"memory": psutil.Process().memory_info().rss}
        about |= {"state": "running" if about["thread"] > COMPUTES else "sleeping"}
        _replace(path, about)
        clocks.append(now)
    if looks:
        _replace(path, about | {"state": "ended"})


def _replace(path, content):
    with contextlib.suppress(OSError):  # the program goes on in any case
        files.write(path, json.dumps(content), lasting=False)
