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


# What it may use


@pytest.mark.parametrize(
    "bomb",
    [
        ["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60"],
        python("import os\nwhile True:\n try: os.fork()\n except OSError: pass"),
        python("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=[60]).start()"),
    ],
    ids=["pipes", "fork", "threads"],
)
def test_a_fork_bomb_ends_at_the_number_of_processes(run, mark, bomb):
    done = run([*bomb, mark], processes=64)
    assert done.ended == "processes" or b"can't start new thread" in done.stderr


@pytest.mark.parametrize(
    "hog",
    [
        "kept = []\nwhile True: kept.append(bytearray(5 << 20))",
        "import os, time\nfor _ in range(20): os.fork() or (b'x' * (20 << 20), time.sleep(60))\ntime.sleep(60)",
        "import mmap, time\nm = mmap.mmap(-1, 300 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\ntime.sleep(60)",
    ],
    ids=["one", "many", "shared"],
)
def test_memory_of_all_processes_together(run, mark, hog):
    assert run(python(hog, mark), memory=200 * MB).ended == "memory"


def test_shared_pages_count_once(run):
    code = "import os, time\nkept = bytearray(b'x' * (60 << 20))\n"
    code += "for _ in range(8):\n if os.fork() == 0: time.sleep(1); os._exit(0)\n"
    assert run(python(code + "time.sleep(1); print(len(kept))"), memory=200 * MB).stdout == b"%d\n" % (60 * MB)


def test_one_process_cannot_reserve_more_address_space_than_it_may(run):
    done = run(python("import mmap; mmap.mmap(-1, 6 << 30)"), memory=200 * MB)
    assert done.status == 1 and b"Cannot allocate memory" in done.stderr


def test_memory_that_is_nobodys_is_refused(run):
    code = "import os, ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.shmget(0, 1 << 20, 0o1600))\n"
    done = run(python(code + "os.memfd_create('x')"))
    assert done.stdout == b"-1\n" and b"PermissionError" in done.stderr


@pytest.mark.parametrize("folder", [".", "/tmp", "/tmp/home", "/dev/shm"])
def test_a_full_disk_is_its_own(run, folder):
    done = run(["sh", "-c", f"i=0; while true; do i=$((i+1)); head -c 1M /dev/zero >{folder}/$i; done"], disk=20 * MB)
    assert done.ended == "disk" and sum(map(len, done.files.values())) <= 20 * MB


def test_endless_empty_files_and_folders(run):
    assert run(["sh", "-c", "i=0; while true; do i=$((i+1)); mkdir $i; : >$i/x; done"], files=500).ended == "files"


def test_a_file_of_holes_is_not_longer_than_the_disk(run):
    done = run(
        ["sh", "-c", "truncate -s 50G hole; truncate -s 15M a; truncate -s 15M b; stat -c %s hole"], disk=20 * MB
    )
    assert done.stdout == b"0\n" and done.left == {"b": "too large"} and len(done.files["a"]) == 15 * MB


@pytest.mark.parametrize("where", ["", ">&2"])
def test_endless_output(run, mark, where):
    done = run(["sh", "-c", f"while true; do echo {mark}; done {where}"], output=100_000)
    assert done.ended == "output" and len(done.stdout) + len(done.stderr) == 100_000


def test_200_megabytes_of_stderr(run):
    done = run(["sh", "-c", "echo first; head -c 200M /dev/zero >&2"])
    assert (done.ended, done.stdout, len(done.stderr)) == ("output", b"first\n", MB - 6)


@pytest.mark.parametrize(
    "loop",
    [
        ["sh", "-c", "while :; do :; done"],
        ["bash", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"],
        python("while True:\n try:\n  while True: pass\n except BaseException: pass"),
    ],
    ids=["loop", "no signals", "no exceptions"],
)
def test_an_endless_loop_ends_at_its_time(run, mark, loop):
    done = run([*loop, mark], seconds=1)
    assert (done.ended, done.status) == ("time", None)


def test_nobody_raises_its_own_limits(run):
    code = "import resource as r\nfor name in ('NPROC', 'AS', 'FSIZE', 'NOFILE', 'CORE'):\n"
    code += " limit = getattr(r, 'RLIMIT_' + name)\n"
    code += " try: r.setrlimit(limit, (r.RLIM_INFINITY,) * 2); print('raised', name)\n"
    code += " except (ValueError, OSError): print(name, r.getrlimit(limit)[1])"
    done = run(python(code), disk=20 * MB)
    assert b"raised" not in done.stdout and b"FSIZE %d\n" % (20 * MB) in done.stdout and b"CORE 0" in done.stdout


# What it can reach


def test_it_is_nobody_and_can_become_nobody_else(run):
    told = run(["sh", "-c", "id -u; grep -E 'Cap|NoNew' /proc/self/status; su root -c id; mount -t tmpfs x /tmp"])
    lines = told.stdout.decode().split()
    assert int(lines[0]) != 0 and lines[1:] == ["CapInh:", "0" * 16, "CapPrm:", "0" * 16, "CapEff:", "0" * 16,
        "CapBnd:", lines[8], "CapAmb:", "0" * 16, "NoNewPrivs:", "1"]  # fmt: skip
    assert b"uid=" not in told.stdout and b"must be superuser" in told.stderr


@pytest.mark.parametrize("space", ["--user", "--mount", "--net", "--user --map-root-user --mount"])
def test_no_namespaces_of_its_own(run, space):
    done = run(["sh", "-c", f"unshare {space} echo made"])
    assert done.status and b"made" not in done.stdout


def test_the_home_the_kit_and_other_folders_are_not_there(run, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("the answer")
    places = [secret, ROOT / "solutions", ROOT / "tests", ROOT / "README.md", Path.home() / ".bashrc", "/etc/shadow"]
    shown = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "proc", "dev", "sys", "tmp"}
    shown |= {Path(folder).parts[1] for folder in sandbox.interpreter()}  # the way to Python and to the kit
    places += [f"/{name}" for name in sorted(set(os.listdir("/")) - shown)]
    places += ["/proc/1/root/etc/shadow", "/proc/1/environ"]
    code = "import os, sys\nfor path in sys.argv[1:]:\n"
    code += " try: print('reached', path, (os.listdir if os.path.isdir(path) else open)(path))\n"
    code += " except OSError: pass\nprint(sorted(os.listdir('/')), os.listdir('/tmp'))"
    told = run(python(code, *map(str, places))).stdout.decode()
    assert "reached" not in told.replace("reached /proc/1/environ", "") and "'home', 'work']" in told


def test_nothing_outside_its_folders_is_written(run):
    code = "import os, sys\nfor path in sys.argv[1:]:\n"
    code += " try: open(path + '/x', 'w'); print('wrote', path)\n except OSError: pass\n"
    code += " try: os.chmod(path, 0o777); print('changed', path)\n except OSError: pass\nopen('own', 'w')"
    places = [
        str(ROOT / "labs"),
        sys.prefix,
        sys.base_prefix,
        "/usr",
        "/usr/bin",
        "/etc",
        "/dev",
        "/",
        "/proc/sys/kernel",
    ]
    done = run(python(code, *places))
    assert done.stdout == b"" and done.files == {"own": b""}
    assert not (ROOT / "labs/x").exists()


def test_what_everybody_may_change_outside_is_read_only_inside(tmp_path):
    """The kit of an instructor, shown to a student's code that runs as the same user."""
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit/judge.py").write_text("strict")
    for path in (tmp_path / "kit", tmp_path / "kit/judge.py"):
        path.chmod(0o777)
    kit = str(tmp_path / "kit")
    done = sandbox.run_walled(
        ["sh", "-c", f"cat {kit}/judge.py; echo mild >{kit}/judge.py; echo >{kit}/x"], read_only=[kit]
    )
    assert done.stdout == b"strict" and done.stderr.count(b"Read-only file system") == 2
    assert [path.name for path in (tmp_path / "kit").iterdir()] == ["judge.py"]
    assert (tmp_path / "kit/judge.py").read_text() == "strict"


def test_the_environment_of_the_caller_is_not_seen(monkeypatch):
    monkeypatch.setenv("LABS_SECRET", "the answer")
    done = sandbox.run_walled(["sh", "-c", "env; cat /proc/*/environ"], env={"GIVEN": "1"})
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
    with subprocess.Popen(["sleep", "600"]) as other:
        code = """
import ctypes, os, sys
number, libc = int(sys.argv[1]), ctypes.CDLL(None)
print(sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()))
print(os.path.exists(f"/proc/{number}/mem"), libc.ptrace(16, number, 0, 0))
for one in {number, os.getppid(), 1, -1}:
    try: os.kill(one, 9)
    except OSError as problem: print(problem.strerror)
try: os.pidfd_open(number)
except OSError as problem: print(problem.strerror)
"""
        try:
            done = run(python(code.replace("1, -1", "1"), str(other.pid)))
            assert other.poll() is None
        finally:
            other.kill()
    numbers, seen, *_ = done.stdout.decode().splitlines()
    assert len(numbers.split(",")) <= 3 and seen == "False -1", done


@pytest.mark.parametrize("who", ["$PPID", "1", "-1", "0"])
def test_whom_it_kills(run, who):
    done = run(["sh", "-c", f"echo before; kill -9 {who}; sleep 600; echo after"], seconds=4)
    assert done.stdout == b"before\n" and (done.status, done.ended) in ((137, None), (None, "time"))


def test_it_has_no_terminal(run):
    done = run(python("import fcntl, os, termios; fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'x')"))
    assert done.status == 1 and b"/dev/tty" in done.stderr


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
except sandbox.SandboxError:
    print("refused")
after = here()
print("as before" if after == before else (before, after))
"""


def test_nothing_of_it_stays():
    command = [sys.executable, "-c", STAYS]  # a process of its own: other tests have left nothing in it that could end
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.stdout == "refused\nas before\n", done


def test_what_is_no_file_stays_there(run):
    code = "import os, socket\nos.mkfifo('pipe')\nsocket.socket(socket.AF_UNIX).bind('socket')\n"
    code += "os.symlink('/etc/passwd', 'link')\nos.symlink('/', 'folder')\nos.symlink('loop', 'loop')\n"
    code += "open('plain', 'w').write('kept')\n"
    code += "try: os.mknod('device', 0o60666, os.makedev(8, 0))\nexcept OSError: print('no device')"
    done = run(python(code))
    links = dict.fromkeys(("folder", "link", "loop"), "a symbolic link")
    assert done.left == links | {"pipe": "a pipe", "socket": "a socket"}
    assert (done.files, done.stdout) == ({"plain": b"kept"}, b"no device\n")


def test_odd_names_and_long_paths(run):
    code = "import os\nfor name in (b'new\\nline', b'\\xff\\xfe', b' ', b'-rf', b'\\x1b[31m'):\n"
    code += " open(name, 'w').write('kept')\n"
    code += "for depth, part in ((20, 'x' * 198), (60, 'y')):\n os.chdir('/tmp/work')\n"
    code += " for _ in range(depth): os.mkdir(part); os.chdir(part)\n open('end', 'w').write('deep')"
    done = run(python(code))
    long = "/".join(["x" * 198] * 20 + ["end"])
    assert len(long) > 3900 and done.files.pop(long) == b"deep"
    assert set(done.files) == {"new\nline", "\udcff\udcfe", " ", "-rf", "\x1b[31m"}
    assert list(done.left.values()) == ["more than 40 folders deep"]


def test_files_that_even_we_may_not_read(run):
    done = run(["sh", "-c", "echo x >x; mkdir y; chmod 0 x y"])
    assert done.files == {"x": b"x\n"} or done.left == dict.fromkeys("xy", "Permission denied")
