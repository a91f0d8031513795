"""A job of this machine: a process of its own that leaves .out, .err and .json."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from labs import files
from labs.errors import LabsError
from labs.jobs import why
from labs.jobs.job import Job

# -P: the folder of guard.py is not searched for modules
GUARD = [sys.executable, "-P", str(Path(__file__).with_name("guard.py"))]
ENDING = 5.0  # seconds that what is left of a run that was killed may take to end: more than PATIENCE of guard.py


class LocalJob(Job):
    """A job of this machine. It ends, with all that it started, when the process that started it ends (guard.py)."""

    process = None  # subprocess.Popen; None before it is started

    @property
    def state(self) -> str:
        if self.process is None:
            return "waiting"
        code = self.process.poll()
        if code is None:
            return "running"
        return "stopped" if self.stopped else "finished" if code == 0 else "failed"

    def stop(self) -> None:
        """End the job and all processes that it started, which are killed after PATIENCE seconds (guard.py)."""
        if self.process.poll() is None:
            self.stopped = True
            self.process.terminate()
        self.process.wait()
        self.close_records()

    def _ending(self):
        code = self.process.returncode
        if code < 0:
            return f"was killed by signal {signal.Signals(-code).name}"
        return f"ended with exit code {code}"


def start_here(name, stem, command, env, batch=False, cwd=None):
    """Start a command on this machine, with output in <stem>.out and .err. Returns the LocalJob; raises LabsError.

    An earlier run of this name moves aside; where it still goes on, nothing is started.
    """
    job = LocalJob(name, stem, batch)
    try:
        out = _new_out(job)
        err = job.err.open("wb")
    except OSError as problem:
        raise files.WriteError(problem.errno, problem.strerror, str(job.out.parent)) from None
    # Where this process is itself in a job of SLURM's, the new job is another one, within that one.
    outside = {key: value for key, value in os.environ.items() if key not in ("SLURM_JOB_ID", "LABS_JOB")}
    if job_id := os.environ.get("SLURM_JOB_ID"):
        outside["LABS_WITHIN"] = job_id
    with out, err:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
        command = [*GUARD, "--batch" if batch else "--script", str(Path(stem).absolute()), *command]
        job.process = subprocess.Popen(command, env=outside | env, cwd=cwd, start_new_session=True, **pipes)
    return job


def _new_out(job):
    """The job's new .out, open and locked: the lock lasts as long as the job, since its processes have this file open.

    What an earlier run of the name has left is moved aside. Raises LabsError if that run still goes on, and OSError.
    """
    job.out.parent.mkdir(parents=True, exist_ok=True)
    with job.out.open("ab") as earlier:
        _lock(job, earlier)
        moved = files.move_aside(job.stem.parent, job.stem.name, job.batch)
        for left in (*job.records, *job.files_of_trainings(".progress"), *why.stack_files(job.stem)):
            left.unlink(missing_ok=True)
        if not moved:
            return os.fdopen(os.dup(earlier.fileno()), "ab")
        new = job.out.open("ab")  # the earlier one is locked until the new one is
        _lock(job, new)
        return new


def _lock(job, out):
    """Lock the .out of a job that is to start. Raises LabsError if another run has it, and is not just ending."""
    limit = time.monotonic() + ENDING
    while not files.try_lock(out):
        if time.monotonic() > limit:
            raise LabsError(
                f"A run called {job.stem.name} goes on already and writes into {job.out}. A second one would write "
                "over it, so it was not started. Wait for the end of the first, stop it, or choose another name."
            )
        time.sleep(0.05)
