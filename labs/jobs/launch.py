"""The command that starts one program in many processes (ranks): on this machine, or as a step of the job of SLURM's
that this process is in."""

import importlib.util
import itertools
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from labs import devices
from labs.errors import UseError, whole
from labs.printed import several
from labs.slurm.directives import SUPPORTED

RANK_MEMORY = 320 * 2**20  # bytes that a rank needs for itself alone, at the least (measured: 293 MiB with SmallCNN)

# Stands before a command: Linux ends it when the process that started it dies. PR_SET_PDEATHSIG (prctl(2)) names the
# signal that a process gets when its parent dies; the setting survives exec.
MORTAL = [
    sys.executable,
    "-c",
    "import ctypes, os, signal, sys; PR_SET_PDEATHSIG = 1; "
    "ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM); os.execvp(sys.argv[1], sys.argv[1:])",
]


def words_of(launcher: str | None) -> list[str]:
    """The name of a launcher, by default horovodrun, and its options."""
    return shlex.split(launcher or SUPPORTED[0])


def check(ranks: int, launcher: str | None = None) -> None:
    """Raise UseError for ranks that `command` cannot start: no such launcher, Horovod or launcher not installed, fewer
    than 1 or too many ranks, no job."""
    launcher = words_of(launcher)[0]
    if launcher not in SUPPORTED:
        raise UseError(f"No launcher is called {launcher!r}, so nothing was started. Use horovodrun, mpiexec or srun.")
    whole("ranks", ranks)
    if not importlib.util.find_spec("horovod"):
        raise UseError(
            "Horovod is not installed, so ranks could not find each other and nothing was started. Install a C++ "
            "compiler, then `make horovod`; `labs doctor` says more."
        )
    tasks = _tasks_of_nodes()
    if launcher == "srun" and not tasks:
        raise UseError(
            "srun starts ranks inside a SLURM job, and this process is not in one, so nothing was started. Submit a "
            "batch script, or use horovodrun or mpiexec."
        )
    if launcher == "srun" and ranks > sum(tasks):
        raise UseError(
            f"{ranks} ranks need as many tasks, and this job has {several(sum(tasks), 'task')}: nothing was started. "
            "Ask for more (--nodes, --ntasks-per-node), or start fewer ranks."
        )
    if launcher != "srun" and len(tasks) > 1 and ranks > tasks[0]:
        raise UseError(f"{launcher} starts ranks on one node, which has {several(tasks[0], 'task')}: use srun.")
    here = min(ranks, tasks[0]) if launcher == "srun" else ranks
    free = devices.memory()
    if here * RANK_MEMORY > free:
        raise UseError(
            f"{here} ranks need {here * RANK_MEMORY / 2**30:.1f} GiB of memory or more, {free / 2**30:.1f} GiB are "
            f"free: the system would kill some of them. Start at most {max(1, free // RANK_MEMORY)}."
        )
    if not _program(launcher):
        cure = "A container brings none." if launcher == "srun" else "Run `make horovod`, or load the module."
        raise UseError(f"{launcher} is neither installed beside Python nor on the PATH: nothing was started. {cure}")


def command(ranks: int, launcher: str | None = None) -> list[str]:
    """What stands before `python SCRIPT ...` to start `ranks` connected processes of it.

    launcher: "horovodrun" (default; the processes talk over Gloo, also where ranks share cores), "mpiexec" (over
    MPI, where ranks that wait take processor time), or "srun": a step of the job of SLURM's that this process is in,
    on as few of its nodes as hold the ranks, beside other steps. Options of its own may follow: "srun --mpi=pmi2".
    Only srun starts ranks on other nodes. Raises UseError, see `check`.
    """
    check(ranks, launcher)
    launcher, *options = words_of(launcher)
    tasks, program = _tasks_of_nodes(), _program(launcher)
    if launcher == "srun":
        nodes = 1 + sum(hold < ranks for hold in itertools.accumulate(tasks))
        # --overlap and --mem=0: the step shares cores, GPUs and memory with others.
        shares = ["--overlap", "--mem=0", "--export=ALL", "--kill-on-bad-exit=1", "--label", "--relative=0"]
        job = f"--jobid={os.environ['SLURM_JOB_ID']}"
        return [program, *options, job, *shares, f"--nodes={nodes}", f"--ntasks={ranks}"]
    if launcher == "horovodrun":
        return [program, "--gloo", *options, "-np", str(ranks), "-H", f"localhost:{ranks}"]
    # MPICH's options: each line begins with its rank; in a job, ranks of this node are no steps of SLURM's.
    own = ["-prepend-rank", *(["-launcher", "fork", "-hosts", "localhost"] if tasks else [])]
    installed = Path(program).parent == Path(sys.executable).parent  # with the kit: MPICH's
    return [program, *options, *(own if installed else []), "-n", str(ranks)]


def _program(launcher):
    """Path of the launcher, beside Python or on the PATH; "" without any."""
    beside = Path(sys.executable).with_name(launcher)
    return str(beside) if beside.exists() else shutil.which(launcher) or ""


def _tasks_of_nodes():
    """Of each node of the job of SLURM's that this process is in, the number of tasks; [] in none.

    SLURM says "2(x3),1" for [2, 2, 2, 1].
    """
    text = os.environ.get("SLURM_TASKS_PER_NODE", "") if os.environ.get("SLURM_JOB_ID") else ""
    counts = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(tasks) for tasks, nodes in counts for _ in range(int(nodes or 1))]
