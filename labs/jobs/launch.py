"""The command that starts one program in many processes (ranks): on this machine, or on the nodes of the job of SLURM's
that this process is in."""

import importlib.util
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from labs import devices
from labs.errors import UseError
from labs.printed import several

LAUNCHERS = ("horovodrun", "mpiexec", "srun")
MEMORY = 320 * 2**20  # bytes that a rank needs for itself alone, at the least (measured: 293 MiB with SmallCNN)

# Stands before a command: Linux ends it when the process that started it dies. PR_SET_PDEATHSIG (prctl(2)) names the
# signal that a process gets when its parent dies; the setting survives exec.
MORTAL = [
    sys.executable,
    "-c",
    "import ctypes, os, signal, sys; PR_SET_PDEATHSIG = 1; "
    "ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM); os.execvp(sys.argv[1], sys.argv[1:])",
]


class LaunchError(UseError):
    """The ranks cannot be started as asked; the message says why and what to do."""


def command(ranks, launcher=None):
    """What stands before `python SCRIPT ...` to start `ranks` connected processes of it, as a list of str.

    launcher: "horovodrun" (default; the processes talk over Gloo, also where ranks share cores), "mpiexec" (over
    MPI, whose waiting ranks keep their cores busy), or "srun": a step of the job of SLURM's that this process is in,
    on as few of its nodes as hold the ranks, beside other steps. Options of its own may follow: "srun --mpi=pmi2".
    In a job of several nodes horovodrun and mpiexec go to others, too, where one does not hold the ranks.
    Raises LaunchError: no such launcher, Horovod or launcher not installed, fewer than 1 or too many ranks, no job.
    """
    launcher, *options = shlex.split(launcher or LAUNCHERS[0])
    if launcher not in LAUNCHERS:
        names = f"{', '.join(LAUNCHERS[:-1])} or {LAUNCHERS[-1]}"
        raise LaunchError(f"No launcher is called {launcher!r}, so nothing was started. Use {names}.")
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise LaunchError(f"{ranks!r} ranks: a training needs a whole number of processes, at least 1.")
    if not importlib.util.find_spec("horovod"):
        raise LaunchError(
            "Horovod is not installed, so ranks could not find each other and nothing was started. "
            "Install a C++ compiler, then `make horovod`; `labs doctor` says more."
        )
    tasks = _tasks()
    if launcher == "srun" and not tasks:
        raise LaunchError(
            "srun starts ranks inside a SLURM job, and this process is not in one, so nothing was started. Submit a "
            "batch script, or use horovodrun or mpiexec."
        )
    if launcher == "srun" and ranks > sum(tasks):
        raise LaunchError(
            f"{ranks} ranks need as many tasks, and this job has {several(sum(tasks), 'task')}: nothing was started. "
            "Ask for more (--nodes, --ntasks-per-node), or start fewer ranks."
        )
    here = min(ranks, tasks[0]) if len(tasks) > 1 or launcher == "srun" else ranks
    free = devices.memory()
    if here * MEMORY > free:
        raise LaunchError(
            f"{here} ranks need {here * MEMORY / 2**30:.1f} GiB of memory or more, {free / 2**30:.1f} GiB are free: "
            f"the system would kill some of them. Start at most {max(1, free // MEMORY)}."
        )
    beside = Path(sys.executable).with_name(launcher)
    program = str(beside) if beside.exists() else shutil.which(launcher)
    if not program:
        raise LaunchError(
            f"{launcher} is neither installed beside Python nor on the PATH, so nothing was started. "
            + ("A container brings none." if launcher == "srun" else "Run `make horovod`, or load the module.")
        )
    if launcher == "srun":
        return [program, *options, *_step(ranks, tasks)]
    spread = len(tasks) > 1 and ranks > tasks[0]
    if launcher == "mpiexec":
        own = ["-prepend-rank"] if beside.exists() else []  # MPICH's options: each line begins with its rank
        if tasks and not spread:  # it would take steps of SLURM's for ranks of one node, too
            own += ["-launcher", "fork", "-hosts", "localhost"] if beside.exists() else []
        # A job of ours does not see whose job of SLURM's it is in, and its srun would queue for another one.
        steps = ["env", f"SLURM_JOB_ID={_job()}", "SLURM_OVERLAP=1"] if spread else []
        return [*steps, program, *options, *own, "-n", str(ranks)]
    hosts = _hosts(tasks) if spread else f"localhost:{ranks}"
    return [program, "--gloo", *options, "-np", str(ranks), "-H", hosts]


def _tasks():
    """Of each node of the job of SLURM's that this process is in, the number of tasks; [] in none.

    SLURM says "2(x3),1" for [2, 2, 2, 1].
    """
    told = re.findall(r"(\d+)(?:\(x(\d+)\))?", os.environ.get("SLURM_TASKS_PER_NODE", ""))
    return [int(tasks) for tasks, nodes in told for _ in range(int(nodes or 1))] if _job() else []


def _job():
    return os.environ.get("SLURM_JOB_ID")


def _step(ranks, tasks):
    """Options of srun for a step beside others. --overlap and --mem=0: it shares cores, GPUs and memory with them."""
    nodes = next(nodes for nodes, hold in enumerate(itertools.accumulate(tasks), 1) if hold >= ranks)
    shares = ["--overlap", "--mem=0", "--export=ALL", "--kill-on-bad-exit=1", "--label"]
    return [f"--jobid={_job()}", *shares, "--relative=0", f"--nodes={nodes}", f"--ntasks={ranks}"]


def _hosts(tasks):
    """The nodes of the job as horovodrun wants them, "node1:2,node2:2". Raises LaunchError."""
    asked = ["scontrol", "show", "hostnames", os.environ.get("SLURM_JOB_NODELIST", "")]
    try:
        names = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=30).stdout.split()
    except (OSError, subprocess.SubprocessError) as problem:
        raise LaunchError(f"SLURM does not say which nodes this job has, so nothing was started: {problem}") from None
    return ",".join(f"{name}:{count}" for name, count in zip(names, tasks, strict=True))
