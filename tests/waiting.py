"""What tests of jobs share: waiting for something to become true, and asking whether a process lives."""

import time

import psutil


def until(condition, seconds=300):
    """Wait for a condition; its last value. The limit is for what never comes, also on a busy machine."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return value


def alive(pid):
    """Whether a process with this number runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def begun(job):
    """The job, once it has printed `started`."""
    assert until(lambda: "started" in job.out.read_text()), job.err.read_text()
    return job
