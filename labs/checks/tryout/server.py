"""The fork server: `python -m labs.checks.tryout.server`. A line of JSON in, a line of JSON out, until its input ends.

It imports TensorFlow, computes nothing, and forks a process for each performance.
"""

import contextlib
import ctypes
import faulthandler
import gc
import json
import os
import re
import resource
import signal
import sys
import time
from pathlib import Path

import psutil

from labs.checks.tryout import play
from labs.jobs.guard import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG

_prctl = ctypes.CDLL(None).prctl


def main():
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not be taken for a reply
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    play.prepare()
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(perform(**json.loads(line))), file=replies, flush=True)


def perform(script, plays, folder, cpu_seconds, patience):
    """The facts of all plays of a script, which run at the same time below `folder`; nothing of them stays."""
    started = []
    for number, each in enumerate(plays):
        place = Path(folder, str(number))
        (place / "work").mkdir(parents=True)
        started.append((_fork(script, each, place, cpu_seconds), place))
    limit = time.monotonic() + patience
    facts = [_facts(place, script, _end_of(pid, limit)) for pid, place in started]
    while left := psutil.Process().children(recursive=True):
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=5)
    return facts


def _fork(script, each, place, cpu_seconds):
    parent = os.getpid()
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        for stream, name, mode in ((0, os.devnull, os.O_RDONLY), (1, place / "out", None), (2, place / "err", None)):
            os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY if mode is None else mode, 0o600), stream)
        # At the limit the kernel sends SIGXCPU: Python's position is written down, then its default action ends it.
        faulthandler.register(signal.SIGXCPU, open(place / "where", "w"), all_threads=False, chain=True)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
        os.chdir(place / "work")
        os.environ["LABS_RUNS"] = str(place / "runs")
        play.play(script, place / "facts", **each)
    finally:
        os._exit(1)


def _end_of(pid, limit):
    """How a child ended, as os.waitpid says it; at the time limit it is ended as one that computes for too long."""
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > limit:
            for sign in (signal.SIGXCPU, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sign)
                time.sleep(1)
            ended = os.waitpid(pid, 0)
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(ended[1])


def _facts(place, script, code):
    """What a play has written; of one that was ended, the line that it was at."""
    file = place / "facts"
    facts = json.loads(file.read_text()) if file.exists() else play.nothing()
    facts["log"] = (place / "out").read_text(errors="replace")
    if not facts["ended"]:
        where = (place / "where").read_text() if (place / "where").exists() else ""
        at = re.search(rf'File "{re.escape(script)}", line (\d+)', where)
        facts["stopped"] = code in (-signal.SIGXCPU, -signal.SIGKILL)
        died = f"was ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        says = "does not come to an end, and was stopped" if facts["stopped"] else f"the whole program {died}"
        facts["error"] = play.mistake(script, int(at[1]) if at else None, says)
    return facts


if __name__ == "__main__":
    main()
