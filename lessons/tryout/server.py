"""The fork server: `python -m lessons.tryout.server`. A line of JSON in, a line of JSON out, until its input ends.

It imports TensorFlow, computes nothing, and forks a process for each performance.
"""

import contextlib
import ctypes
import faulthandler
import gc
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import time
from pathlib import Path

import psutil

from labs.jobs.guard import PR_SET_CHILD_SUBREAPER
from lessons.tryout import play


def main():
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not be taken for a reply
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    play.prepare()
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(perform(**json.loads(line))), file=replies, flush=True)


def perform(script, plays, folder, cpu_seconds, patience):
    """The facts of all plays of a script, which run at the same time below `folder`; nothing of them stays."""
    fork, limit = multiprocessing.get_context("fork"), time.monotonic() + patience
    places = [Path(folder, str(number)) for number in range(len(plays))]
    pairs = zip(plays, places, strict=True)
    processes = [fork.Process(target=_begin, args=(script, one, place, cpu_seconds)) for one, place in pairs]
    for process in processes:
        process.start()
    for process in processes:
        process.join(max(0, limit - time.monotonic()))
        if process.is_alive():  # ended as one that computes for too long
            os.kill(process.pid, signal.SIGXCPU)
            process.join(1)
            process.kill()
            process.join()
    while left := psutil.Process().children(recursive=True):  # what the scripts have started
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=5)
    return [_facts(place, script, process.exitcode) for place, process in zip(places, processes, strict=True)]


def _begin(script, performance, place, cpu_seconds):
    """Give this forked process, which ends with the server (labs/jobs/guard.py), a folder and limits of its own; then
    play."""
    os.setsid()
    (place / "work").mkdir(parents=True)
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(place / name, os.O_CREAT | os.O_WRONLY, 0o600), stream)
    # At the limit the kernel sends SIGXCPU: Python's position is written down, then its default action ends it.
    faulthandler.register(signal.SIGXCPU, open(place / "where", "w"), all_threads=False, chain=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
    os.chdir(place / "work")
    os.environ["LABS_RUNS"] = str(place / "runs")
    play.play(script, place / "facts", **performance)


def _facts(place, script, code):
    """What a play has written; of one that was ended, the line that it was at."""
    if (place / "facts").exists():
        facts = json.loads((place / "facts").read_text())
    else:
        facts = play.nothing() | {"stopped": code in (-signal.SIGXCPU, -signal.SIGKILL)}
        at = re.search(rf'File "{re.escape(script)}", line (\d+)', (place / "where").read_text())
        died = f"was ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        says = "does not come to an end, and was stopped." if facts["stopped"] else f"the whole program {died}."
        facts["error"] = play.mistake(script, int(at[1]) if at else None, says)
    return facts | {"log": (place / "out").read_text(errors="replace")}


if __name__ == "__main__":
    main()
