"""What hostile code tries in the sandbox, as root and as an ordinary user: it gains nothing and leaves nothing."""

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest
from tree import ROOT
from waiting import until

from labs import sandbox

MB = 1 << 20


@pytest.fixture
def mark():
    """A word for a command line; no process with it is left at the end."""
    word = f"red-team-{uuid.uuid4()}"
    yield word
    assert living(word) == []


def living(word):
    """Processes with this word in their command line."""
    return [one.pid for one in psutil.process_iter(["cmdline"]) if word in " ".join(one.info["cmdline"] or [])]


def python(text, *words):
    return ["python", "-c", text, *words]


def sh(text):
    return ["sh", "-c", text]


# What it may use

FILLS = "i=0; while true; do i=$((i+1)); head -c 1M /dev/zero >{}/$i; done"
FORKS = "import os, time\nfor _ in range(20): os.fork() or (b'x' * (20 << 20), time.sleep(60))\ntime.sleep(60)"
SHARES = "import mmap, time\nm = mmap.mmap(-1, 300 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\ntime.sleep(60)"
ENDLESS = {  # name: (attack, the limit that ends it, its size)
    "bomb of pipes": (["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60"], "processes", 64),
    "bomb of forks": (python("import os\nwhile True:\n try: os.fork()\n except OSError: pass"), "processes", 64),
    "memory of one": (python("kept = []\nwhile True: kept.append(bytearray(5 << 20))"), "memory", 200 * MB),
    "memory of many": (python(FORKS), "memory", 200 * MB),
    "memory that is shared": (python(SHARES), "memory", 200 * MB),
    "disk": (sh(FILLS.format(".")), "disk", 20 * MB),
    "disk in /tmp": (sh(FILLS.format("/tmp")), "disk", 20 * MB),
    "disk in its home": (sh(FILLS.format("/tmp/home")), "disk", 20 * MB),
    "disk in /dev/shm": (sh(FILLS.format("/dev/shm")), "disk", 20 * MB),
    "files": (sh("i=0; while true; do i=$((i+1)); mkdir $i; : >$i/x; done"), "files", 500),
    "stdout": (["yes"], "output", 100_000),
    "stderr": (sh("echo first; head -c 200M /dev/zero >&2"), "output", 100_000),
    "loop": (sh("while :; do :; done"), "seconds", 1),
    "no signals": (["bash", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"], "seconds", 1),
    "no exceptions": (python("while True:\n try:\n  while True: pass\n except BaseException: pass"), "seconds", 1),
}


@pytest.mark.parametrize(("attack", "limit", "most"), ENDLESS.values(), ids=ENDLESS)
def test_what_is_endless_ends_at_its_limit(run, mark, attack, limit, most):
    done = run([*attack, mark], **{limit: most})
    assert (done.ended, done.status) == ("time" if limit == "seconds" else limit, None)
    if limit == "output":
        assert len(done.stdout) + len(done.stderr) == most
    if limit == "disk":
        assert sum(map(len, done.files.values())) <= most


def test_threads_count_as_processes(run, mark):
    code = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=[60]).start()"
    done = run(python(code, mark), processes=64)
    assert done.ended == "processes" or b"can't start new thread" in done.stderr


def test_shared_pages_count_once(run):
    code = "import os, time\nkept = bytearray(b'x' * (60 << 20))\n"
    code += "for _ in range(8):\n if os.fork() == 0: time.sleep(1); os._exit(0)\n"
    assert run(python(code + "time.sleep(1); print(len(kept))"), memory=200 * MB).stdout == b"%d\n" % (60 * MB)


def test_a_file_of_holes_is_not_longer_than_the_disk(run):
    attack = sh("truncate -s 50G hole; truncate -s 15M a; truncate -s 15M b; stat -c %s hole")
    done = run(attack, disk=20 * MB)
    assert done.stdout == b"0\n" and set(done.files) == {"a", "hole"} and len(done.files["a"]) == 15 * MB


def test_nobody_raises_its_own_limits(run):
    code = "import resource as r\nfor name in ('NPROC', 'AS', 'FSIZE', 'NOFILE', 'CORE'):\n"
    code += " limit = getattr(r, 'RLIMIT_' + name)\n"
    code += " try: r.setrlimit(limit, (r.RLIM_INFINITY,) * 2); print('raised', name)\n"
    code += " except (ValueError, OSError): print(name, r.getrlimit(limit)[1])"
    done = run(python(code), disk=20 * MB)
    assert b"raised" not in done.stdout and b"FSIZE %d\n" % (20 * MB) in done.stdout and b"CORE 0" in done.stdout


# What it can reach

MEMORY = "import os, ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.shmget(0, 1 << 20, 0o1600))\n"
TTY = "import fcntl, os, termios; fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'x')"
CLONE = "import ctypes, os\nmade = ctypes.CDLL(None).syscall(56, 0x10000011, 0, 0, 0, 0)  # CLONE_NEWUSER | SIGCHLD\n"
REFUSED = {  # name: (attack, standard output, part of standard error)
    "more address space": (python("import mmap; mmap.mmap(-1, 6 << 30)"), b"", b"Cannot allocate memory"),
    "memory that is nobody's": (python(MEMORY + "os.memfd_create('x')"), b"-1\n", b"PermissionError"),
    "a user's namespace": (python(CLONE + "os._exit(made == -1)"), b"", b""),
    "terminal": (python(TTY), b"", b"/dev/tty"),
} | {
    space: (sh(f"unshare {space} echo made"), b"", b"unshare")
    for space in ("--user", "--mount", "--net", "--user --map-root-user --mount")
}


@pytest.mark.parametrize(("attack", "out", "err"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(run, attack, out, err):
    done = run(attack, memory=200 * MB)
    assert done.status and done.stdout == out and err in done.stderr


def test_it_is_nobody_and_can_become_nobody_else(run):
    told = run(sh("id -u; grep -E 'Cap|NoNew' /proc/self/status; su root -c id; mount -t tmpfs x /tmp"))
    user, *lines = told.stdout.decode().splitlines()
    held = dict(line.split(":\t") for line in lines)
    assert int(user) != 0 and held.pop("NoNewPrivs") == "1" and b"uid=" not in told.stdout
    assert {held[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Amb")} == {"0" * 16}
    assert b"must be superuser" in told.stderr


def test_the_home_the_kit_and_other_folders_are_not_there(run, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("the answer")
    places = [secret, ROOT / "solutions", ROOT / "tests", ROOT / "README.md", Path.home() / ".bashrc", "/etc/shadow"]
    shown = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "proc", "dev", "sys", "tmp"}
    shown |= {Path(folder).parts[1] for folder in sandbox.interpreter()}  # the way to Python and to the kit
    places += [f"/{name}" for name in sorted(set(os.listdir("/")) - shown)]
    places += ["/proc/1/root/etc/shadow"]
    code = "import os, sys\nfor path in sys.argv[1:]:\n"
    code += " try: print('reached', path, (os.listdir if os.path.isdir(path) else open)(path))\n"
    code += " except OSError: pass\nprint(sorted(os.listdir('/')), os.listdir('/tmp'))"
    told = run(python(code, *map(str, places))).stdout.decode()
    assert "reached" not in told and "'home', 'work']" in told


def test_nothing_outside_its_folders_is_written(run):
    code = "import os, sys\nfor path in sys.argv[1:]:\n"
    code += " try: open(path + '/x', 'w'); print('wrote', path)\n except OSError: pass\n"
    code += " try: os.chmod(path, 0o777); print('changed', path)\n except OSError: pass\nopen('own', 'w')"
    places = [str(ROOT / "labs"), sys.prefix, sys.base_prefix]
    done = run(python(code, *places, "/usr", "/usr/bin", "/etc", "/dev", "/", "/proc/sys/kernel"))
    assert done.stdout == b"" and done.files == {"own": b""} and not (ROOT / "labs/x").exists()


def test_what_everybody_may_change_outside_is_read_only_inside(tmp_path):
    """The kit of an instructor, shown to a student's code that runs as the same user."""
    kit = tmp_path / "kit/judge.py"
    kit.parent.mkdir()
    kit.write_text("strict")
    for path in (kit, kit.parent):
        path.chmod(0o777)
    attack = sh(f"cat {kit}; echo mild >{kit}; echo >{kit.parent}/x")
    done = sandbox.run_walled(attack, read_only=[str(kit.parent)])
    assert done.stdout == b"strict" and done.stderr.count(b"Read-only file system") == 2
    assert [path.read_text() for path in kit.parent.iterdir()] == ["strict"]


def test_the_environment_of_the_caller_is_not_seen(monkeypatch):
    monkeypatch.setenv("LABS_SECRET", "the answer")
    done = sandbox.run_walled(sh("env; cat /proc/*/environ"), env={"GIVEN": "1"})
    assert b"the answer" not in done.stdout and b"GIVEN=1" in done.stdout


def test_no_network_but_loopback(run):
    code = """
import socket, sys, threading
outside = [(socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))), (socket.AF_UNIX, sys.argv[2].replace("@", "\\0"))]
outside += [(socket.AF_INET, ("192.0.2.1", 80)), (socket.AF_UNIX, "/run/dbus/system_bus_socket")]
for family, address in outside:
    try: socket.socket(family).connect(address); print("reached", address)
    except OSError as problem: print(problem.strerror)
server = socket.create_server(("localhost", 0))
client = socket.create_connection(("localhost", server.getsockname()[1]))
server.accept()[0].sendall(b"hello inside")
print(client.recv(99))
"""
    name = f"red-team-{uuid.uuid4()}"
    with socket.create_server(("127.0.0.1", 0)) as outside, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        done = run(python(code, str(outside.getsockname()[1]), f"@{name}"))
    assert b"reached" not in done.stdout and b"hello inside" in done.stdout, done


def test_processes_outside_are_not_seen_and_not_touched(run):
    code = """
import ctypes, os, sys
number, libc = int(sys.argv[1]), ctypes.CDLL(None)
print(len([name for name in os.listdir("/proc") if name.isdecimal()]))
print(os.path.exists(f"/proc/{number}/mem"), libc.ptrace(16, number, 0, 0))
for attack in (lambda: os.pidfd_open(number), lambda: os.kill(number, 9), lambda: os.kill(os.getppid(), 9)):
    try: attack()
    except OSError as problem: print(problem.strerror)
"""
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            done = run(python(code, str(other.pid)))
            assert other.poll() is None
        finally:
            other.kill()
    seen, reached, *_ = done.stdout.decode().splitlines()
    assert int(seen) <= 3 and reached == "False -1", done


@pytest.mark.parametrize("who", ["$PPID", "1", "-1", "0"])
def test_whom_it_kills(run, who):
    done = run(sh(f"echo before; kill -9 {who}; sleep 600; echo after"), seconds=4)
    assert done.stdout == b"before\n" and (done.status, done.ended) in ((137, None), (None, "time"))


# What it leaves


def test_a_daemon_ends_with_its_program(run, mark):
    code = "import os, sys, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n"
    code += "  for n in (0, 1, 2): os.close(n)\n  time.sleep(600)\n os._exit(0)\nos.wait()"
    done = run(python(code, mark))
    assert (done.status, done.ended) == (0, None)


def test_kill_9_of_the_caller_ends_it(mark):
    code = f"from labs import sandbox; sandbox.run_walled(['sh', '-c', 'echo >/dev/null; sleep 600', {mark!r}])"
    with subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}) as caller:
        while len(living(mark)) < 4:  # the caller, bwrap twice, the program
            time.sleep(0.05)
        caller.send_signal(signal.SIGKILL)
    assert until(lambda: not living(mark))


STAYS = """
import os, psutil
from labs import sandbox

def here():
    children = [one.pid for one in psutil.Process().children(recursive=True)]
    return children, sorted(os.listdir("/proc/self/fd")), open("/proc/self/mounts").read()

before = here()
for argv in (["sh", "-c", "sleep 600 & echo >/tmp/x; echo >/dev/shm/x"], ["no-such-program"], ["yes"]):
    sandbox.run_walled(argv)
try:
    sandbox.run_walled(["true"], read_only=["/no/such/folder"])
except sandbox.SandboxError as problem:
    print(problem)
after = here()
print("as before" if after == before else (before, after))
"""


def test_nothing_of_it_stays():
    command = [sys.executable, "-c", STAYS]  # a process of its own: other tests have left nothing in it that could end
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    said, *rest = done.stdout.splitlines()
    assert "/no/such/folder" in said and rest == ["as before"], done


def test_files_that_are_odd_deep_or_none_come_back_as_what_they_are(run):
    code = """
import os, socket
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
for link, to in (("link", "/etc/passwd"), ("folder", "/"), ("loop", "loop")): os.symlink(to, link)
try: os.mknod("device", 0o60666, os.makedev(8, 0))
except OSError: print("no device")
for name in (b"new\\nline", b"\\xff\\xfe", b" ", b"-rf", b"\\x1b[31m"): open(name, "w").write("kept")
for depth, part in ((20, "x" * 198), (60, "y")):
    os.chdir("/tmp/work")
    for _ in range(depth): os.mkdir(part); os.chdir(part)
    open("end", "w").write("deep")
os.chdir("/tmp/work")
open("closed", "w").write("deep")
os.mkdir("shut")
for name in ("closed", "shut"): os.chmod(name, 0)
"""
    done, long = run(python(code)), "/".join(["x" * 198] * 20 + ["end"])
    assert done.stdout == b"no device\n" and len(long) > 3900 and done.files.pop(long) == b"deep"
    names = dict.fromkeys(("new\nline", "\udcff\udcfe", " ", "-rf", "\x1b[31m"), b"kept")
    assert done.files in (names | {"closed": b"deep"}, names)  # as root, and as somebody else
