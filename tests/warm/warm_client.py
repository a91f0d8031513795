"""A Python program of the tests that would import TensorFlow lets a process run it that has done so already.

To import it takes 6 s of processor time, a training of the tests about 1 s more. So a program that begins asks the
server of this run of the tests (warm_server.py): it forks a process that gets the program's command line, folder,
environment, open files, limits and cores, and runs it. This process stays as its shadow: it passes signals on, and ends
as the program ends. A program starts cold, as ever, where one of these differs from the server's: the environment's
folder, a variable that is read by an import, Linux' namespaces (a sandbox, a node that is played), options of Python.

WARM_SERVER names the socket. Without it, or with another preset than `test`, everything starts cold.
"""

import array
import contextlib
import fcntl
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys

# Modules that import TensorFlow, or what is as dear: kernels, and what jobs start with -m. What measures the memory of
# its own process starts cold.
MODULES = re.compile(r"ipykernel_launcher$|labs\.(measure|training)\b|lessons\.(?!faster_steps\.recompute)")
# Texts behind -c: the one of labs.models, and those of tests that say so in their first line.
COMMANDS = re.compile(r"import json, sys; from labs\.models import counts; counts\.answer\(|\n?# warm\n")
IMPORTS = re.compile(
    r"(?m)^\s*(?:import|from)\s+(?:tensorflow|keras|horovod|labs\.(?:training|hvd|models|measure))\b"
    r"|^\s*from labs import .*\b(?:training|hvd|models|measure)\b"
)
# Read while TensorFlow, Keras, NumPy or Python itself is loaded.
EARLY = re.compile(
    r"(TF_(?!NUM_INT)|KERAS_|XLA_|MKL_|MALLOC_|LD_|GLIBC_|ABSL_|"
    r"PYTHON(?!PATH$|UNBUFFERED$|DONTWRITEBYTECODE$))"
)
OF_A_PROGRAM = re.compile(
    r"WARM_SERVER$|PYTHON(PATH|UNBUFFERED)$|PYTEST_|LABS_|SLURM|SBATCH|SRUN|PMI|MPI|HYDRA|HOROVOD|OMP_|JPY|JUPYTER|IPYTHON"
)
# What labs and TensorFlow set themselves.
DEFAULTS = {"KERAS_BACKEND": "tensorflow", "TF2_BEHAVIOR": "1", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
NAMESPACES = ("pid", "net", "user", "ipc")
JOINED = ("mnt", "uts")  # a node that is played has its own
PASSED_ON = [number for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}]


def program(words):
    """("script", path), ("module", name) or ("command", text) of a Python command line, with the arguments behind it
    and whether its folder is searched; None if it is to start cold."""
    safe, rest = bool(os.environ.get("PYTHONSAFEPATH")), list(words[1:])
    while rest and rest[0] in ("-P", "-u", "-B", "-s"):
        safe |= rest.pop(0) == "-P"
    if len(rest) > 1 and rest[0] == "-m" and MODULES.match(rest[1]):
        return "module", rest[1], rest[1:], safe
    if len(rest) > 1 and rest[0] == "-c" and COMMANDS.match(rest[1]):
        return "command", rest[1], ["-c", *rest[2:]], safe
    if rest and os.path.basename(rest[0]) == "horovodrun":
        return "script", rest[0], rest, safe
    if rest and not rest[0].startswith("-") and rest[0].endswith(".py"):
        with contextlib.suppress(OSError, UnicodeDecodeError), open(rest[0], encoding="utf-8") as file:
            if IMPORTS.search(file.read(1 << 20)):
                return "script", rest[0], rest, safe
    return None


def surroundings():
    """What must be the same here as in the server."""
    early = {name: value for name, value in os.environ.items() if EARLY.match(name) and DEFAULTS.get(name) != value}
    if early.get("TF_CPP_MIN_LOG_LEVEL") == "3":
        early["TF_CPP_MIN_LOG_LEVEL"] = "2"  # the server has this one: errors are seen
    return {"prefix": sys.prefix, "early": early, "spaces": spaces(NAMESPACES)}


def spaces(names):
    """Linux' namespaces of this process, by name."""
    return {name: os.readlink(f"/proc/self/ns/{name}") for name in names}


def hand_over():
    """Let the server run this process's program, and end as it ends; returns where it is to start cold."""
    if os.environ.get("LABS_PRESET", "test") != "test" or sys.flags.isolated or sys.flags.no_site:
        return
    found = program(sys.orig_argv)
    if found is None:
        return
    connection = _connected(os.environ["WARM_SERVER"])
    if connection is None:
        return
    fds = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    fds = [fd for fd in fds if fd != connection.fileno() and _open(fd)]
    request = {
        "program": found,
        "words": sys.orig_argv,
        "surroundings": surroundings(),
        "joined": spaces(JOINED),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "umask": os.umask(0o22),
        "fds": fds,
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if "RLIMIT_" in name},
        "cores": sorted(os.sched_getaffinity(0)),
        "nice": os.nice(0),
        "ignored": [number for number in PASSED_ON if signal.getsignal(number) == signal.SIG_IGN],
        "blocked": list(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
    }
    os.umask(request["umask"])
    text = json.dumps(request).encode()
    waiting = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until there is a process to pass them on to
    try:
        connection.sendmsg(
            [len(text).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        )
        connection.sendall(text)
        answer = connection.makefile("r")
        pid = json.loads(answer.readline() or "null")
    except (OSError, ValueError):
        pid = None
    if not pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
        return
    for fd in fds:  # who reads what this program writes waits for its end, not for its shadow's
        os.close(fd)
    for number in PASSED_ON:
        with contextlib.suppress(OSError, ValueError):
            if number not in request["ignored"]:
                signal.signal(number, lambda number, _: _send(pid, number))
    signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
    status = answer.readline()
    _end(os.waitstatus_to_exitcode(int(status)) if status else -signal.SIGKILL)


def _send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _open(fd):
    """Is a file open and inherited? Python's own are closed at a start."""
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False


def _connected(path):
    """A connection to the server, which is started where there is none; None if it cannot be reached."""
    connection = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(OSError):
        connection.connect(path)
        return connection
    try:
        with open(f"{path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):
                connection.connect(path)
                return connection
            _start(path)
            connection.connect(path)
            return connection
    except OSError:
        return None


def _start(path):
    """Start the server, and wait until it listens."""
    here = os.path.dirname(os.path.abspath(__file__))
    # Nothing of the first program's own stays: by such variables tests find what is left of a job or a browser.
    environment = {name: value for name, value in os.environ.items() if not OF_A_PROGRAM.match(name)}
    ready, done = os.pipe()
    with open(f"{path}.log", "ab") as log:
        subprocess.Popen(
            [sys.executable, "-P", os.path.join(here, "warm_server.py"), path, str(done)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[done], start_new_session=True,
            cwd="/", env=environment, preexec_fn=_unlimited,
        )  # fmt: skip
    os.close(done)
    os.read(ready, 1)
    os.close(ready)


def _unlimited():
    """The first program may have limits; the server is to have none but the hard ones."""
    os.sched_setaffinity(0, range(os.cpu_count()))


def _end(code):
    """End as the program did."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        os.kill(os.getpid(), -code)
    os._exit(code)
