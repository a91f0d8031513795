"""The command that starts one program in many processes (ranks) on this machine."""

import importlib.util
import shutil
import sys
from pathlib import Path

from labs import devices
from labs.errors import LabsError

LAUNCHERS = ("horovodrun", "mpiexec")
MEMORY = 320 * 2**20  # bytes that a rank needs for itself alone, at the least (measured: 293 MiB with SmallCNN)

# Stands before a command: Linux ends it when the process that started it dies. PR_SET_PDEATHSIG (prctl(2)) names the
# signal that a process gets when its parent dies; the setting survives exec.
MORTAL = [
    sys.executable,
    "-c",
    "import ctypes, os, signal, sys; PR_SET_PDEATHSIG = 1; "
    "ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM); os.execvp(sys.argv[1], sys.argv[1:])",
]


class LaunchError(LabsError):
    """The ranks cannot be started as asked; the message says why and what to do."""

    code = 2


def command(ranks, launcher=None):
    """What stands before `python SCRIPT ...` to start `ranks` connected processes of it here, as a list of str.

    launcher: "horovodrun" (default; the processes talk over Gloo, also where ranks share cores) or "mpiexec" (over
    MPI, whose waiting ranks keep their cores busy).
    Raises LaunchError: no such launcher, Horovod or launcher not installed, fewer than 1 or too many ranks.
    """
    launcher = launcher or LAUNCHERS[0]
    if launcher not in LAUNCHERS:
        raise LaunchError(f"No launcher is called {launcher!r}, so nothing was started. Use {' or '.join(LAUNCHERS)}.")
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise LaunchError(f"{ranks!r} ranks: a training needs a whole number of processes, at least 1.")
    if not importlib.util.find_spec("horovod"):
        raise LaunchError(
            "Horovod is not installed, so ranks could not find each other and nothing was started. "
            "Install a C++ compiler, then `make horovod`; `labs doctor` says more."
        )
    free = devices.memory()
    if ranks * MEMORY > free:
        raise LaunchError(
            f"{ranks} ranks need {ranks * MEMORY / 2**30:.1f} GiB of memory or more, {free / 2**30:.1f} GiB are free: "
            f"the system would kill some of them. Start at most {max(1, free // MEMORY)}."
        )
    beside = Path(sys.executable).with_name(launcher)
    program = str(beside) if beside.exists() else shutil.which(launcher)
    if not program:
        raise LaunchError(
            f"{launcher} is not installed beside Python nor on the PATH, so nothing was started. "
            "Run `make horovod`, or load the site's module."
        )
    if launcher == "mpiexec":
        prefix = ["-prepend-rank"] if beside.exists() else []  # MPICH's option: each line begins with its rank
        return [program, *prefix, "-n", str(ranks)]
    return [program, "--gloo", "-np", str(ranks), "-H", f"localhost:{ranks}"]
