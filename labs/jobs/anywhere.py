"""Run a training program as a job: a process of its own that leaves .out, .err and .json.

A job that crashes, is stopped or is killed takes nothing with it: the kernel that started it goes on,
and the files can be read. A batch script (.sh) is such a job too: SLURM runs it or, without SLURM, this machine.
"""

import os
import sys
from pathlib import Path

from labs import blanks
from labs.jobs import batch, launch, slurm
from labs.jobs.job import Job, JobError, check_name
from labs.jobs.local import not_done, start_here

STARTUP = Path(__file__).parent / "startup"  # what Python does first in each process of a job


def folder() -> Path:
    """The folder of the runs: $LABS_RUNS, or `runs` beside the notebook."""
    return Path(os.environ.get("LABS_RUNS", "runs"))


def start(
    script: str | Path,
    *arguments,
    name: str | None = None,
    runs: str | Path | None = None,
    env: dict[str, str] | None = None,
    ranks: int | None = None,
    launcher: str | None = None,
    site: str | None = None,
) -> Job:
    """Start `python SCRIPT ARGUMENTS`, or a batch script, as a job and return at once.

    script: path of a Python file, or "-m" (then the first argument is a module)
    arguments: of the command line, one each; numbers and paths are turned into text
    name: the job's files are <runs>/<name>.out, .err and .json; those of an earlier run of this name move aside, to
        <name>.1, then <name>.2 ...
    runs: the folder of these files (default: `folder()`)
    env: further environment variables
    ranks: start this many connected processes with a launcher, also for 1
    launcher: how, see labs.jobs.launch.command (default: horovodrun)

    A path that ends in ".sh" is a batch script. Where SLURM answers, it is submitted, in the course's top folder; its
    files are <runs>/<name>_<job id>.out, .err and _w<workers>.json for each of its trainings. It goes on without this
    process: `find` finds it again. Elsewhere bash runs it on this machine, which is said in one printed line; its
    files are then <runs>/<name>_local.out ..., and it ends with this process as other jobs do.
    name: without one, that of the script (--job-name); the training scripts are those of the folder scripts/ here
    site: where account and QOS are looked up if the script names none; see labs.slurm.sites

    Raises JobError: no such script, blanks in it, a bad name or one whose run still goes on, a folder that cannot
    be written, refused by SLURM.
    """
    runs = Path(runs) if runs is not None else folder()
    if str(script).endswith(".sh"):
        if ranks is not None or launcher is not None:
            raise JobError("The batch script itself says how many ranks it starts (--ntasks): leave out `ranks`.")
        return batch.start(Path(script), arguments, name, runs, env or {}, site)
    if name is None:
        raise JobError(f"The job of {script} needs a name for its files. Pass name=...")
    check_name(name)
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
    environment = {"LABS_RUN": name, "LABS_RUNS": str(runs), "LABS_SCRIPT": str(script)}
    environment |= {"PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment |= env or {}
    paths = str(STARTUP), environment.get("PYTHONPATH", os.environ.get("PYTHONPATH"))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if (launcher or "").startswith("mpiexec"):
        environment["PYTHONUNBUFFERED"] = ""  # it forwards pieces of lines as they come, of all ranks in a jumble
    return start_here(name, runs / name, command, environment)


def find(job: str | int, runs: str | Path | None = None) -> Job:
    """A job of SLURM's that was submitted before, also by another process: what `start` returned for it.

    job: its number, or its name (then the newest of this name); runs: where its files are, if SLURM has forgotten it
    (default: `folder()`). Raises JobError: none found.
    """
    return slurm.find(str(job), Path(runs) if runs is not None else folder())


def run(script: str | Path, *arguments, timeout: float | None = None, show: bool = True, **options) -> Job:
    """Start a job as `start` does, follow it to its end, and print how it ended. Returns the Job.

    script, arguments, options: as of `start`, whose errors this raises
    timeout: seconds after which the job is stopped (None for no limit)
    show: a progress bar; without one, only a job that did not finish is told of
    """
    job = start(script, *arguments, **options).wait(timeout, show)
    if show or job.state != "finished":
        print(job.explain())
    return job
