"""Batch scripts as jobs: submitted to SLURM where it answers, else run by bash on this machine.

python -m labs.jobs.batch SCRIPT ARGUMENTS...    runs one here; when it ends or is told to, nothing of it stays
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from labs import blanks
from labs.jobs import local, queue, slurm
from labs.jobs.job import JobError
from labs.slurm import directives, sites

# On this machine the ranks of `srun` are those of labs.jobs.launch; of srun's options only their number has a meaning here.
_SRUN = """() {
    local ranks="${SLURM_NTASKS:-1}"
    while [ $# -gt 0 ]; do
        case "$1" in
            --ntasks=*) ranks="${1#*=}"; shift ;;
            -n?*) ranks="${1#-n}"; shift ;;
            -n | --ntasks) ranks="$2"; shift 2 ;;
            --*=* | --label | --unbuffered | --kill-on-bad-exit | --exclusive | --exact | --overlap) shift ;;
            --verbose | --quiet | --preserve-env | -[lukKvQEX] | -[!-]?*) shift ;;
            -*) shift 2 ;;
            *) break ;;
        esac
    done
    "$LABS_PYTHON_HERE" -m labs.jobs.launch "$ranks" "$@"
}"""
_PATIENCE = 3.0  # seconds that processes have to end when they are told to


def start(script, arguments, name, runs, env, site):
    """Start a batch script; see labs.jobs.start, which is where to call it. runs: a Path; env: a dict."""
    try:
        text = script.read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise JobError(f"There is no script {script}, so nothing was started. Check the path.") from None
    local.not_done(script, blanks.blanks_of_batch(text))
    asked = directives.read(text)
    name = name or asked.value("job-name") or script.stem
    try:
        root = sites.find_root()
        place = sites.load(site or sites.default(), root)
    except sites.SiteError as problem:
        raise JobError(f"{problem} Nothing was started.") from None
    script = script.resolve()
    env = {"LABS_RUNS": str(runs.resolve()), "LABS_PYTHON": sys.executable} | _personal(place) | env
    scripts = Path(env.get("SCRIPTS", "scripts"))  # without the variable those beside the notebook
    if scripts.is_dir():  # the job starts in another folder
        env["SCRIPTS"] = str(scripts.resolve())
    if queue.available():
        return slurm.submit(script, arguments, name, runs, env, root, asked, place)
    why = "does not answer" if shutil.which("sbatch") else "is not installed"
    print(f"SLURM {why} on this machine, so bash runs {script.name} here; its files are {runs / name}_local.*")
    return start_here(script, arguments, name, runs, env, root, asked.resources())


def _personal(place):
    """Environment variables of a site's personal settings; account and QOS are options of sbatch."""
    return {sites.PERSONAL[key]: value for key, value in place.personal.items() if key not in ("account", "qos")}


def start_here(script, arguments, name, runs, env, root, resources):
    """Let bash run a batch script on this machine, in the folder `root`. Returns the LocalJob; raises JobError."""
    stem = runs / f"{name}_local"  # not <name>: its <name>_w1.json may be the record of another job
    tasks = resources["tasks"] or 1
    here = {
        "SLURM_NTASKS": tasks,
        "SLURM_TASKS_PER_NODE": tasks,
        "SLURM_NTASKS_PER_NODE": tasks,
        "SLURM_NNODES": 1,
        "SLURM_JOB_NUM_NODES": 1,
        "SLURM_CPUS_PER_TASK": resources["cpus_per_task"] or 1,
    }
    env = {key: str(value) for key, value in here.items()} | {
        "LABS_JOB": stem.name,
        "LABS_PYTHON_HERE": sys.executable,
        "BASH_FUNC_srun%%": _SRUN,
        **env,
    }
    command = [sys.executable, "-m", "labs.jobs.batch", str(script), *map(str, arguments)]
    return local.start_here(name, stem, command, env, batch=True, cwd=root)


def main(arguments):
    """Run bash to its end, as SLURM would: processes that it leaves, or that outlive a stop, are ended."""
    import psutil

    ctypes.CDLL(None).prctl(36, 1)  # children that lose their parent become this process's

    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        limit = time.monotonic() + _PATIENCE
        sign = "terminate"
        while left := psutil.Process().children(recursive=True):
            for child in left:
                try:
                    getattr(child, sign)()
                except psutil.NoSuchProcess:
                    pass
            psutil.wait_procs(left, timeout=max(0.1, limit - time.monotonic()))
            sign = "kill"
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def stop(*_):
        end()
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    code = subprocess.Popen(["bash", *arguments]).wait()
    end()
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(sys.argv[1:])
