"""Bubblewrap's options: what is seen in the sandbox, and as which user.

The system's programs and what `read_only` names can be read and not written; /tmp and /dev/shm are memory of its own;
processes, network (loopback alone), System V IPC, host name and terminal are its own. There is no home, no /etc but a
few files, no /run, no /var.

Nobody is root inside. As root bubblewrap needs no user namespace, so it can show a folder below one that nobody else
may enter (a Python below /root), and the program starts as a user that owns nothing. Ordinary users stay what they are,
in a user namespace.
"""

import os
import secrets
import sys
from pathlib import Path

import psutil

WRITTEN = "/tmp"  # what lies below it can be written
WORK = f"{WRITTEN}/work"  # where it starts
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp/home",
    "TMPDIR": "/tmp",
    "USER": "student",
    "LOGNAME": "student",
    "LANG": "C.UTF-8",
    "UCX_TLS": "self,posix,cma",  # MPICH: shared memory as files, which are counted, and no look at network devices
}
_SHOWN = [f"/etc/{name}" for name in ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")]
_SHOWN += ["/sys/devices/system"]  # how many cores there are
# The users that systemd lends to a service for as long as it runs (systemd.io/UIDS-GIDS), so nobody's.
_LENT = range(61184, 65520)


def interpreter(*more: str | Path) -> list[str]:
    """What this Python needs to see: its own folder, its environment's, the links over which the environment's Python
    is found (a `python3` in a folder of its user's), and of the kit `more` and the package `labs`, which is last."""
    needed, path = [sys.base_prefix, sys.prefix], sys.executable
    while os.path.islink(path):
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        if not any(Path(path).is_relative_to(folder) for folder in needed):
            needed.append(path)
    return list(dict.fromkeys([*needed, *map(str, more), str(Path(__file__).parents[1])]))


def user():
    """Number of the user inside: an ordinary user's own."""
    return os.getuid() if os.geteuid() else _LENT[secrets.randbelow(len(_LENT))]


def others(user):
    """How many processes and threads this user has outside."""
    if not os.geteuid():
        return 0
    here = psutil.process_iter(["uids", "num_threads"])
    return sum(one.info["num_threads"] or 0 for one in here if one.info["uids"] and one.info["uids"].real == user)


def become(user):
    """The words in front of a program's that make it run as this user, without any capability, and end with its
    parent, which becoming somebody else would undo."""
    if os.geteuid():
        return []
    nothing = ["--pdeathsig=KILL", "--clear-groups", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
    return ["setpriv", f"--reuid={user}", f"--regid={user}", *nothing, "--"]


def options(given, read_only, size):
    """Bubblewrap's options.

    given: {path inside, not below WRITTEN: descriptor of its contents}. read_only: paths.
    size: bytes of each folder that can be written.
    """
    words = ["--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--hostname", "sandbox"]
    if os.geteuid():
        words += ["--unshare-user", "--disable-userns"]
    else:  # what setpriv needs
        words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    words += [*_system(), "--proc", "/proc", "--dev", "/dev"]
    for folder, mode in ((WRITTEN, "0777"), ("/dev/shm", "1777")):
        words += ["--size", str(size), "--perms", mode, "--tmpfs", folder]
    for folder in (WORK, ENVIRONMENT["HOME"]):
        words += ["--perms", "0777", "--dir", folder]
    for path in map(str, read_only):
        words += [*_way(path), "--ro-bind", path, path]
    for path, handle in given.items():
        words += [*_way(path), "--perms", "0666", "--file", str(handle), path]
    return [*words, "--chdir", WORK, "--remount-ro", "/dev", "--remount-ro", "/"]


def etc(user):
    """{path: text} of the files below /etc that are made for the sandbox."""
    return {
        "/etc/passwd": f"student:x:{user}:{user}:student:{ENVIRONMENT['HOME']}:/bin/sh\n",
        "/etc/group": f"student:x:{user}:\n",
        "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }


def _system():
    """The system's own programs, read only."""
    words = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    words += [*_way("/sys/class/net/-")]  # MPI looks there for devices: none
    for path in _SHOWN:
        words += [*_way(path), "--ro-bind-try", path, path]
    return words


def _way(path):
    """The options that make the folders above a path, open to all: bubblewrap's own would be closed to an ordinary
    user."""
    folders = [str(folder) for folder in reversed(Path(path).parents) if str(folder) not in ("/", "/tmp", "/usr")]
    return [word for folder in folders for word in ("--perms", "0755", "--dir", folder)]
