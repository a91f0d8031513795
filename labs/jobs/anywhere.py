"""Run a training program as a job: a process of its own that leaves .out, .err and .json.

A job that crashes, is stopped or is killed takes nothing with it: the kernel that started it goes on,
and the files can be read. A batch script (.sh) is such a job too: SLURM runs it or, without SLURM, this machine.
"""

import os
import shutil
import sys
from pathlib import Path

from labs import blanks
from labs.errors import LabsError
from labs.jobs import launch, queue, slurm_job
from labs.jobs.job import Job, check_name
from labs.jobs.local import start_here
from labs.slurm import directives, sites, variables

_SRUN = '() { "$LABS_PYTHON_HERE" -m labs.jobs.local_srun "$@"; }'  # a function of bash, handed on in its environment


def folder() -> Path:
    """The folder of the runs: $LABS_RUNS, or `runs` beside the notebook."""
    return Path(os.environ.get("LABS_RUNS") or "runs")


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
        <name>.1, then <name>.2 ... Of a batch script by default its --job-name, or its file's name
    runs: the folder of these files (default: `folder()`)
    env: further environment variables
    ranks: start this many connected processes with a launcher, also for 1
    launcher: how, see labs.jobs.launch.command (default: horovodrun)

    A path that ends in ".sh" is a batch script. Where SLURM answers, it is submitted, in the course's top folder; its
    files are <runs>/<name>_<job id>.out, .err and _w<workers>.json for each of its trainings. It goes on without this
    process. Elsewhere bash runs it on this machine, which is said in one printed line; its files are then
    <runs>/<name>_local.out ..., and it ends with this process as other jobs do.
    Its training scripts are those of the folder scripts/ here.
    site: where account and QOS are looked up if the script names none; see labs.slurm.sites

    Raises LabsError: no such script, blanks in it, a bad name or one whose run still goes on, a folder that cannot
    be written, refused by SLURM, a script that is no Python, no such site.
    """
    runs = Path(runs) if runs is not None else folder()
    if script != "-m" and not Path(script).is_file():
        raise LabsError(f"There is no script {script}, so nothing was started. Check the path.")
    if str(script).endswith(".sh"):
        if ranks is not None or launcher is not None:
            raise LabsError("A batch script itself starts its ranks (--ntasks): leave out `ranks` and `launcher`.")
        return _start_batch(Path(script), arguments, name, runs, env or {}, site)
    if name is None:
        raise LabsError(f"The job of {script} needs a name for its files. Pass name=...")
    check_name(name)
    if script != "-m":
        _not_done(script, blanks.blanks(Path(script)))
    command = [sys.executable, str(script), *map(str, arguments)]
    if ranks is not None:
        command = [*launch.command(ranks, launcher), *launch.MORTAL, *command]
    elif launcher is not None:
        raise LabsError(f"{launcher} starts ranks: say how many (ranks=2), or leave out `launcher`.")
    environment = {"LABS_RUN": name, "LABS_RUNS": str(runs), "PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    if launch.words_of(launcher)[0] == "mpiexec":
        environment["PYTHONUNBUFFERED"] = ""  # it forwards pieces of lines as they come, of all ranks in a jumble
    return start_here(name, runs / name, command, environment | (env or {}))


def _not_done(script, open_lines):
    """Raise LabsError for the first blank of a script, if there is one."""
    for line, text in open_lines[:1]:
        raise LabsError(f"Not done yet: {script}, line {line} is still blank ({text.strip()}). Nothing was started.")


def _start_batch(script, arguments, name, runs, env, site):
    """Submit a batch script to SLURM where it answers, else let bash run it on this machine, in the course's folder."""
    text = script.read_text(encoding="utf-8", errors="replace")
    _not_done(script, blanks.blanks_of_batch(text))
    asked = directives.read(text)
    name = name if name is not None else asked.value("job-name") or script.stem
    check_name(name)
    root, script = sites.find_root(), script.resolve()
    personal = sites.load(site or sites.default(), root).personal
    # LABS_RUN names one training; those of a batch script get names of their own, also where a job submits it.
    ours = {"LABS_RUNS": str(runs.resolve()), "LABS_PYTHON": sys.executable, "LABS_RUN": ""}
    env = ours | {sites.PERSONAL[key]: value for key, value in personal.items() if key not in slurm_job.OPTIONS} | env
    scripts = Path(env.get("SCRIPTS", "scripts"))  # without the variable those beside the notebook
    if scripts.is_dir():  # the job starts in another folder
        env["SCRIPTS"] = str(scripts.resolve())
    if queue.available():
        own = [f"--{key}={personal[key]}" for key in slurm_job.OPTIONS if personal.get(key) and not asked.value(key)]
        return slurm_job.submit(script, arguments, name, runs, env, root, own)
    why = "does not answer" if shutil.which("sbatch") else "is not installed"
    print(f"SLURM {why} on this machine, so bash runs {script.name} here; its files are {runs / name}_local.*")
    tasks, in_slurm = str(asked.resources()["tasks"]), variables.of_job(asked, script.name, root)
    here = dict.fromkeys(("NTASKS", "TASKS_PER_NODE", "NTASKS_PER_NODE"), tasks)  # all on this one node
    here |= {"NNODES": "1", "JOB_NUM_NODES": "1", "CPUS_PER_TASK": asked.value("cpus-per-task")}
    here = {f"SLURM_{key}": value for key, value in here.items() if f"SLURM_{key}" in in_slurm}
    env = here | {"LABS_JOB": f"{name}_local", "LABS_PYTHON_HERE": sys.executable, "BASH_FUNC_srun%%": _SRUN} | env
    # <name>_local, not <name>: its <name>_w1.json may be the record of another job
    return start_here(name, runs / f"{name}_local", ["bash", script, *map(str, arguments)], env, batch=True, cwd=root)


def run(script: str | Path, *arguments, timeout: float | None = None, show: bool = True, **options) -> Job:
    """Start a job, follow it to its end, and print how it ended. Returns the Job.

    script, arguments, options: as of `start`, whose errors this raises
    timeout: seconds after which the job is stopped (None for no limit)
    show: a progress bar; without one, only a job that did not finish is told of
    """
    job = start(script, *arguments, **options).wait(timeout, show)
    if show or job.state != "finished":
        print(job.explain())
    return job
