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

from labs import devices, files
from labs.errors import UseError
from labs.printed import several

LAUNCHERS = ("horovodrun", "mpiexec", "srun")
_SAYS = files.beside(__file__)
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


def _refusal(name, **gaps):
    """The LaunchError that launch.toml has under this name."""
    return LaunchError(_SAYS[name].format(**gaps))


def command(ranks: int, launcher: str | None = None) -> list[str]:
    """What stands before `python SCRIPT ...` to start `ranks` connected processes of it.

    launcher: "horovodrun" (default; the processes talk over Gloo, also where ranks share cores), "mpiexec" (over
    MPI, where ranks that wait take processor time), or "srun": a step of the job of SLURM's that this process is in,
    on as few of its nodes as hold the ranks, beside other steps. Options of its own may follow: "srun --mpi=pmi2".
    In a job of several nodes horovodrun and mpiexec go to others, too, where one does not hold the ranks.
    Raises LaunchError: no such launcher, Horovod or launcher not installed, fewer than 1 or too many ranks, no job.
    """
    launcher, *options = shlex.split(launcher or LAUNCHERS[0])
    if launcher not in LAUNCHERS:
        raise _refusal("unknown", launcher=launcher)
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise _refusal("no_number", ranks=ranks)
    if not importlib.util.find_spec("horovod"):
        raise _refusal("no_horovod")
    tasks = _tasks()
    if launcher == "srun" and not tasks:
        raise _refusal("no_job")
    if launcher == "srun" and ranks > sum(tasks):
        raise _refusal("too_few_tasks", ranks=ranks, tasks=several(sum(tasks), "task"))
    here = min(ranks, tasks[0]) if len(tasks) > 1 or launcher == "srun" else ranks
    free = devices.memory()
    if here * MEMORY > free:
        need, have = here * MEMORY / 2**30, free / 2**30
        raise _refusal("too_little_memory", ranks=here, need=need, have=have, most=max(1, free // MEMORY))
    beside = Path(sys.executable).with_name(launcher)
    program = str(beside) if beside.exists() else shutil.which(launcher)
    if not program:
        raise _refusal("no_srun" if launcher == "srun" else "no_launcher", launcher=launcher)
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
