"""Run a training program as a job: a process of its own that leaves .out, .err and .json.

A job that crashes, is stopped or is killed takes nothing with it: the kernel that started it goes on,
and the files can be read. A batch script (.sh) is such a job too: SLURM runs it, or this machine where there is none.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from labs import blanks, launch
from labs.job import Job, JobError

__all__ = ["Job", "JobError", "find", "folder", "run", "start"]


def folder():
    """Folder of the runs: $LABS_RUNS, or `runs` beside the notebook."""
    return Path(os.environ.get("LABS_RUNS", "runs"))


class LocalJob(Job):
    """A job of this machine. It ends, with all that it started, when the process that started it ends."""

    def __init__(self, name, stem, command, batch=False):
        super().__init__(name, stem, batch)
        self.command, self.process = command, None

    @property
    def state(self):
        code = self.process.poll()
        if code is None:
            return "running"
        return "stopped" if self.stopped else "finished" if code == 0 else "failed"

    def stop(self, patience=5.0):
        """End the job and all processes that it started; kill them after `patience` seconds."""
        if self.process.poll() is None:
            self.stopped = True
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                if sign == signal.SIGKILL:
                    break
        self._close_records()

    def _ending(self):
        code = self.process.returncode
        if code < 0:
            return f"was killed by signal {signal.Signals(-code).name}"
        return f"ended with exit code {code}"


def start(script, *arguments, name=None, runs=None, env=None, ranks=None, launcher=None, site=None):
    """Start `python SCRIPT ARGUMENTS`, or a batch script, as a job and return at once.

    script: path of a Python file, or "-m" (then the first argument is a module)
    name: the job's files are <runs>/<name>.out, .err and .json
    env: further environment variables, as a dict
    ranks: start this many connected processes with a launcher of Horovod's (see labs.launch), also for 1

    A path that ends in ".sh" is a batch script. Where SLURM answers, it is submitted, in the course's top folder; its
    files are <runs>/<name>_<job id>.out, .err and _w<workers>.json for each of its trainings. It goes on without this
    process: `find` finds it again. Elsewhere bash runs it on this machine, which is said in one printed line; its
    files are then <runs>/<name>_local.out ..., and it ends with this process as other jobs do.
    name: without one, that of the script (--job-name); the training scripts are those of the folder scripts/ here
    site: where account and QOS are looked up if the script names none; see labs.slurm.sites

    Raises JobError: no such script, blanks in it, a folder that cannot be written, refused by SLURM.
    """
    runs = Path(runs) if runs is not None else folder()
    if str(script).endswith(".sh"):
        from labs import batch

        if ranks is not None or launcher is not None:
            raise JobError("A batch script says itself how many ranks it starts (--ntasks): leave out `ranks`.")
        return batch.start(Path(script), arguments, name, runs, env or {}, site)
    if name is None:
        raise JobError(f"The job of {script} needs a name: its files are called after it. Pass name=...")
    if script != "-m":
        if not Path(script).is_file():
            raise JobError(f"There is no script {script}, so nothing was started. Check the path.")
        try:
            open_lines = blanks.blanks(Path(script))
        except blanks.BuildError as problem:
            raise JobError(f"{problem}. Nothing was started.") from None
        not_done(script, open_lines)
    command = [sys.executable, str(script), *map(str, arguments)]
    if ranks is not None:
        command = [*launch.command(ranks, launcher), *launch.MORTAL, *command]
    environment = {
        "LABS_RUN": name, "LABS_RUNS": str(runs), "PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "2", **(env or {}),
    }  # fmt: skip
    if launcher == "mpiexec":
        environment["PYTHONUNBUFFERED"] = ""  # it forwards pieces of lines as they come, of all ranks in a jumble
    return start_here(name, runs / name, command, environment)


def not_done(script, open_lines):
    """Raise JobError for the first blank of a script, if there is one."""
    for line, text in open_lines:
        raise JobError(f"Not done yet: {script}, line {line} is still blank ({text.strip()}). Nothing was started.")


def start_here(name, stem, command, env, batch=False, cwd=None):
    """Start a command on this machine, with output in <stem>.out and .err. Returns the LocalJob; raises JobError."""
    job = LocalJob(name, stem, command, batch)
    try:
        job.out.parent.mkdir(parents=True, exist_ok=True)
        job.remove_old()
        out, err = job.out.open("wb"), job.err.open("wb")
    except OSError as problem:
        raise unwritable(job.out.parent, problem) from None
    # Where this process is itself in a job of SLURM's, the new job is another one.
    outside = {key: value for key, value in os.environ.items() if key not in ("SLURM_JOB_ID", "LABS_JOB")}
    with out, err:
        job.process = subprocess.Popen(
            [*launch.MORTAL, *command],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=outside | env, cwd=cwd, start_new_session=True,
        )  # fmt: skip
    return job


def unwritable(runs, problem):
    """The JobError of a folder for the runs that cannot be written."""
    return JobError(
        f"Cannot write into {runs}: {problem.strerror}. The job would leave no log, so it was not started. "
        "Check that the folder is yours and that the disk has room."
    )


def find(job, runs=None):
    """A job of SLURM's that was submitted before, also by another process: by its number, or the newest of a name.

    runs: where its files are, if SLURM has forgotten it. Returns what `start` returned. Raises JobError: none found.
    """
    from labs.slurm import job as slurm

    return slurm.find(str(job), Path(runs) if runs is not None else folder())


def run(script, *arguments, timeout=None, show=True, **options):
    """start(script, *arguments, **options), follow it to the end, and say how it ended. Returns the Job."""
    job = start(script, *arguments, **options).wait(timeout, show)
    if show or job.state != "finished":
        print(job.explain())
    return job
