"""A job of this notebook, followed until it has ended or its ranks have stopped making progress."""

import re
import threading
import time
from pathlib import Path

from labs import jobs
from labs.jobs import why

LIMIT = 300.0  # seconds after which a job ends that nobody has stopped
PATIENCE = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "200"}  # on a busy machine, one rank may begin a minute after the other
APART = 3.0  # seconds in which ranks that wait for each other must not move


def start(script, name, env=None, **options):
    """Start a script on 2 ranks; after LIMIT seconds it is stopped, whatever becomes of the notebook's cells."""
    given = Path("../notebooks", script)  # beside the authors' notebook is the script that is mended already
    env = PATIENCE | (env or {})
    job = jobs.start(given if given.exists() else script, name=name, ranks=2, env=env, **options)
    end = threading.Timer(LIMIT, lambda: job.state == "running" and job.stop())
    end.daemon = True
    end.start()
    return job


def follow(job, seconds=20.0, apart=APART):
    """Wait until the job has ended, until its ranks wait for each other at the same lines for `apart` seconds, or for
    so many seconds after one of them has begun to wait. An interrupt stops it. Returns the job."""
    begin, before, since = None, None, 0.0
    try:
        while job.state == "running" and (begin is None or time.monotonic() - begin < seconds):
            time.sleep(0.5)
            try:
                ranks = why.ranks(job.stem)
            except why.WhyError:  # no rank has begun
                continue
            if all(rank["state"] in ("ended", "killed") for rank in ranks):
                begin = None  # the launcher is about to end the job
            elif begin is None and any(why.waits(rank) for rank in ranks):
                begin = time.monotonic()
            said = why.sentences(ranks) if why.stuck(ranks) else None
            if said is None or said != before:
                before, since = said, time.monotonic()
            elif time.monotonic() - since > apart:
                break
    except KeyboardInterrupt:
        job.stop()
    return job


def stall_message(job, seconds=60.0):
    """What Horovod says of tensors that some ranks have not announced, as soon as it names two ranks, which its first
    message may not do; or that it has not yet."""
    limit, found = time.monotonic() + seconds, []
    while job.state == "running" and time.monotonic() < limit:
        said = re.sub(r"(?m)^\[\d+\] |\[\d+\] (?=$)", "", job.err.read_text())
        found = re.findall(r"One or more tensors.*\nMissing ranks:\s*\n(?:\d+: .*\n)+", said)
        if found and len(re.findall(r"(?m)^\d+: ", found[-1])) > 1:
            break
        time.sleep(0.5)
    return found[-1] if found else "No stall message yet: run the cell again."


def letter(job):
    """What was observed of a job: h (it hangs), m (it ended with a message), s (it is slow), w (its line is wrong), or
    "right"."""
    if job.state == "failed":
        return "m"
    if job.state == "finished":
        slope = re.search(r"slope (-?[\d.]+)", job.out.read_text())
        return "right" if slope and abs(float(slope[1]) - 2) < 0.1 else "w"
    return "h" if why.stack_files(job.stem) and why.stuck(why.ranks(job.stem)) else "s"


def known(found, *names):
    """The letters of these jobs, as an outcome; None as long as one is missing, or was mended before it ran."""
    letters = [found.get(name, "right") for name in names]
    return None if "right" in letters else letters
