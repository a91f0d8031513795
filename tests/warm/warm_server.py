"""The process that has imported TensorFlow, and forks one for each program that a client hands over (warm_client.py).

It computes nothing, since a fork of a used TensorFlow does not work. Nothing of the course is imported: a program may
stand in a copy of it. It ends, with all programs, when the run of the tests has ended, whose number is WARM_OWNER.
"""

import array
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import resource
import runpy
import select
import signal
import socket
import struct
import sys
import types

PR_SET_CHILD_SUBREAPER = 36
IMPORTED = (
    "tensorflow",
    "keras",
    "keras.applications.resnet_v2",
    "tensorflow.keras",
    "tensorflow.keras.applications.resnet_v2",
    "keras._tf_keras.keras.applications.resnet_v2",
    "horovod.tensorflow",
    "sklearn.datasets",
    "sklearn.utils",
    "scipy.stats",
    "scipy.optimize",
    "matplotlib.figure",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipywidgets",
    "pydantic",
    "psutil",
    "tabulate",
    "threadpoolctl",
)


def serve(path, told, surroundings):
    """Answer clients until the tests have ended; returns in a forked process, with the request that it is for."""
    owner = os.pidfd_open(int(os.environ["WARM_OWNER"]))
    listener = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(FileNotFoundError):  # of a server that was killed
        os.unlink(path)
    listener.bind(path)
    listener.listen(64)
    os.close(told)
    poll, connections, programs = select.poll(), {}, {}
    costs = os.path.join(os.path.dirname(path), "costs.jsonl")
    for fd in (owner, listener.fileno()):
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == owner:
                for pid, *_ in programs.values():
                    _end_session(pid)
                os.unlink(path)
                os._exit(0)
            elif fd == listener.fileno():
                connection, _ = listener.accept()
                request, fds = _received(connection)
                if request is None or request["surroundings"] != surroundings:
                    if request:
                        print("cold:", request["words"][:5], _other(request, surroundings), flush=True)
                    connection.close()
                    for each in fds:
                        os.close(each)
                    continue
                pid = os.fork()
                if pid == 0:
                    _begin(request, connection)
                    return request, fds
                for each in fds:
                    os.close(each)
                pidfd = os.pidfd_open(pid)
                test = request["environment"].get("PYTEST_CURRENT_TEST")
                programs[pidfd], connections[connection.fileno()] = (pid, connection, test), (pid, connection)
                poll.register(pidfd, select.POLLIN)
                poll.register(connection.fileno(), select.POLLIN | select.POLLHUP)
            elif fd in programs:  # a program has ended
                pid, connection, test = programs[fd]
                ended, status, used = os.wait4(pid, os.WNOHANG)
                if not ended:  # an event of an earlier program with this number
                    continue
                del programs[fd]
                if test:
                    with open(costs, "a") as file:  # as dearest.py reads it
                        file.write(json.dumps([test.rpartition(" ")[0], 0.0, used.ru_utime + used.ru_stime]) + "\n")
                _end_session(pid)
                poll.unregister(fd)
                os.close(fd)
                if connections.pop(connection.fileno(), None):
                    poll.unregister(connection.fileno())
                with contextlib.suppress(OSError):
                    connection.sendall(f"{status}\n".encode())
                connection.close()
            elif fd in connections and _left(connections[fd][1]):  # its shadow was killed
                pid, _ = connections.pop(fd)
                poll.unregister(fd)
                _end_session(pid)
        with contextlib.suppress(ChildProcessError):  # orphans of programs
            while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None or any(pid == found.si_pid for pid, *_ in programs.values()):
                    break
                os.waitpid(found.si_pid, 0)


def _left(connection):
    """Has the other end gone? An event may be that of an earlier connection with this number."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _other(request, surroundings):
    """What differs, for the log."""
    told, own = request["surroundings"], surroundings
    pairs = [(told, own), (told["early"], own["early"]), (told["spaces"], own["spaces"])]
    return {key: one.get(key) for one, other in pairs for key in one | other if one.get(key) != other.get(key)}


def _begin(request, connection):
    """Join the client's namespaces, in the forked process, and tell the client its number; where they cannot be joined
    end, and let the client start cold."""
    import warm_client

    pid, *_ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    own, libc = warm_client.spaces(warm_client.JOINED), ctypes.CDLL(None, use_errno=True)
    for name, space in request["joined"].items():
        if space != own[name]:
            with open(f"/proc/{pid}/ns/{name}") as file:
                if libc.setns(file.fileno(), 0):
                    print("cold:", request["words"][:5], name, os.strerror(ctypes.get_errno()), flush=True)
                    connection.sendall(b"null\n")
                    os._exit(0)
    connection.sendall(f"{os.getpid()}\n".encode())


def _received(connection):
    """(request, its files) of a client, or (None, files)."""
    fds = array.array("i")
    try:
        head, ancillary, *_ = connection.recvmsg(4, socket.CMSG_SPACE(250 * fds.itemsize))
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        size, text = int.from_bytes(head, "big"), b""
        while len(text) < size:
            if not (part := connection.recv(size - len(text))):
                return None, list(fds)
            text += part
        return json.loads(text) if text else None, list(fds)
    except (OSError, ValueError):
        return None, list(fds)


def _end_session(leader):
    """Kill a program, and what it has started and not given a session of its own."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{name}/stat") as file:
                session = int(file.read().rpartition(")")[2].split()[3])
            if session == leader:
                os.kill(int(name), signal.SIGKILL)


def become(request, fds):
    """Make of this process the one that the client would have become; returns what it is to run."""
    os.setsid()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            if number in request["ignored"]:
                signal.signal(number, signal.SIG_IGN)
            elif number == signal.SIGINT:
                signal.signal(number, signal.default_int_handler)
            elif signal.getsignal(number) not in (signal.SIG_DFL, None) or number == signal.SIGCHLD:
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, request["blocked"])
    with contextlib.suppress(OSError):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # The files under their own numbers, and nothing else.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    above = max([*request["fds"], *fds, 2]) + 1
    high = [os.dup2(fd, above + place, inheritable=False) for place, fd in enumerate(fds)]
    os.closerange(0, above)
    for fd, number in zip(high, request["fds"], strict=True):
        os.dup2(fd, number, inheritable=True)
    os.closerange(above, above + len(high) + 64)
    for name, limits in request["limits"].items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, name), limits)
    os.sched_setaffinity(0, request["cores"])
    os.nice(max(0, request["nice"] - os.nice(0)))
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    kind, what, arguments, safe = request["program"]
    sys.orig_argv, sys.argv = request["words"], list(arguments)
    own = os.path.dirname(os.path.abspath(__file__))
    named = [os.path.abspath(part) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    first = {"script": os.path.dirname(os.path.realpath(what)), "module": os.getcwd(), "command": ""}[kind]
    rest = [place for place in sys.path if place != own and place not in named]
    sys.path[:] = [*([] if safe else [first]), *dict.fromkeys(named), *rest]
    if os.environ.get("PYTHONUNBUFFERED") or "-u" in request["words"][1:3]:
        raw, told = open(1, "wb", 0, closefd=False), sys.stdout
        sys.stdout = sys.__stdout__ = io.TextIOWrapper(raw, told.encoding, told.errors, write_through=True)
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE")) or "-B" in request["words"][1:4]
    for name in ("warm_client", "__mp_main__"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    import matplotlib
    import numpy
    import threadpoolctl

    numpy.random.seed()
    if threads := next(filter(None, map(os.environ.get, ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"))), None):
        threadpoolctl.threadpool_limits(int(threads))
    backend = os.environ.get("MPLBACKEND")
    matplotlib.rcParams["backend"] = backend or matplotlib.rcsetup._auto_backend_sentinel
    measures = kind == "script" or kind == "module" and what.startswith("labs.measure.")
    if os.environ.get("LABS_PRESET") == "test" and measures and os.environ.get("BLOCKS") != "all":
        _fewer_blocks()
    return kind, what


def _fewer_blocks():
    """Let the course's two networks have a ninth of their blocks, and no last stack, which holds two thirds of the
    weights: to trace ResNet152V2 takes a minute on 2 workers. To rewrite their graphs costs more than it saves then.

    With BLOCKS=all they have all (notebook_cells.py).
    """
    import tensorflow as tf
    from keras.src.applications import resnet

    stack = resnet.stack_residual_blocks_v2

    def shorter(x, filters, blocks, **options):
        return x if filters == 512 else stack(x, filters, max(2, blocks // 9), **options)

    resnet.stack_residual_blocks_v2 = shorter
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def run(kind, what):
    """Run a program as Python does."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    if kind == "module":
        return runpy._run_module_as_main(what)
    if kind == "script":
        what = os.path.join(os.getcwd(), what)
        main.__file__, main.__cached__ = what, None
        with open(what, "rb") as file:
            code = compile(file.read(), what, "exec")
    else:
        code = compile(what, "<string>", "exec")
    exec(code, vars(main))


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import warm_client

    _surroundings = warm_client.surroundings()  # TensorFlow sets variables of its own
    for _name in IMPORTED:
        with contextlib.suppress(ImportError):  # Horovod may be missing
            importlib.import_module(_name)
    gc.collect()
    gc.freeze()
    _todo = become(*serve(sys.argv[1], int(sys.argv[2]), _surroundings))
    _serve = serve.__code__.co_filename
    try:
        run(*_todo)
    except SystemExit:
        raise
    except BaseException as _problem:
        # as Python would tell it: without the frames of this file
        _trace = _problem.__traceback__
        while _trace and _trace.tb_frame.f_code.co_filename == _serve:
            _trace = _trace.tb_next
        if isinstance(_problem, KeyboardInterrupt):
            sys.excepthook(type(_problem), _problem.with_traceback(_trace), _trace)
            sys.stdout.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        sys.excepthook(type(_problem), _problem.with_traceback(_trace), _trace)
        sys.exit(1)
