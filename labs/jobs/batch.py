"""Batch scripts as jobs: submitted to SLURM where it answers, else run by bash on this machine."""

import shutil
import sys
from pathlib import Path

from labs import blanks
from labs.jobs import local, queue, slurm
from labs.jobs.job import JobError, check_name
from labs.slurm import directives, sites

_SRUN = '() { "$LABS_PYTHON_HERE" -m labs.jobs.srun "$@"; }'  # a function of bash, handed on in its environment


def start(script, arguments, name, runs, env, site):
    """Start a batch script; see labs.jobs.start, which is where to call it. runs: a Path; env: a dict."""
    try:
        text = script.read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise JobError(f"There is no script {script}, so nothing was started. Check the path.") from None
    local.not_done(script, blanks.blanks_of_batch(text))
    asked = directives.read(text)
    name = name if name is not None else asked.value("job-name") or script.stem
    check_name(name)
    try:
        root = sites.find_root()
        place = sites.load(site or sites.default(), root)
    except sites.SiteError as problem:
        raise JobError(f"{problem} Nothing was started.") from None
    script = script.resolve()
    # Of the personal settings account and QOS are options of sbatch.
    personal = {sites.PERSONAL[key]: value for key, value in place.personal.items() if key not in ("account", "qos")}
    # LABS_RUN names one training; those of a batch script get names of their own, also where a job submits it.
    env = {"LABS_RUNS": str(runs.resolve()), "LABS_PYTHON": sys.executable, "LABS_RUN": ""} | personal | env
    scripts = Path(env.get("SCRIPTS", "scripts"))  # without the variable those beside the notebook
    if scripts.is_dir():  # the job starts in another folder
        env["SCRIPTS"] = str(scripts.resolve())
    if queue.available():
        return slurm.submit(script, arguments, name, runs, env, root, asked, place)
    why = "does not answer" if shutil.which("sbatch") else "is not installed"
    print(f"SLURM {why} on this machine, so bash runs {script.name} here; its files are {runs / name}_local.*")
    return start_here(script, arguments, name, runs, env, root, asked.resources())


def start_here(script, arguments, name, runs, env, root, resources):
    """Let bash run a batch script on this machine, in the folder `root`. Returns the LocalJob; raises JobError."""
    stem = runs / f"{name}_local"  # not <name>: its <name>_w1.json may be the record of another job
    here = dict.fromkeys(("NTASKS", "TASKS_PER_NODE", "NTASKS_PER_NODE"), resources["tasks"] or 1)
    here |= {"NNODES": 1, "JOB_NUM_NODES": 1, "CPUS_PER_TASK": resources["cpus_per_task"] or 1}
    ours = {"LABS_JOB": stem.name, "LABS_PYTHON_HERE": sys.executable, "BASH_FUNC_srun%%": _SRUN}
    env = {f"SLURM_{key}": str(value) for key, value in here.items()} | ours | env
    command = ["bash", str(script), *map(str, arguments)]
    return local.start_here(name, stem, command, env, batch=True, cwd=root)
