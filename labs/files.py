"""Files that lose nothing: written whole, changed by one process at a time, moved aside instead of deleted.

Also whose code a file is (`installed`), and how the files of a run are called."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

from labs import printed
from labs.errors import LabsError


class WriteError(LabsError, OSError):
    """A file that cannot be written; the message names it and why."""

    def __str__(self):
        cure = "" if self.errno == errno.EAGAIN else " Is the folder yours, and has the disk room?"
        return f"{self.filename} cannot be written: {self.strerror}.{cure}"


def digest(content: bytes) -> str:
    """SHA-256 of bytes, as hex."""
    return hashlib.sha256(content).hexdigest()


def write(path: str | Path, text: str | bytes, lasting: bool = True) -> None:
    """Replace the file `path` by `text` (UTF-8, or bytes), atomically, and make its folder if there is none. All may
    read it (mode 0644).

    Who reads it sees the old text or the new one, also after a kill or on a full disk. Raises WriteError; an older
    file then stays as it was. lasting: it is there after a loss of power, too, for which writing waits for the disk.
    """
    path, partial = Path(path), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except OSError as problem:
        raise WriteError(problem.errno, problem.strerror or str(problem), str(path)) from None
    finally:
        if partial:
            with contextlib.suppress(OSError):
                os.unlink(partial)  # what a success has moved is not there any more


def read(path: str | Path) -> bytes:
    """The bytes of a file. Raises OSError, also for a pipe or a device, which would keep us waiting."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read()


@contextlib.contextmanager
def locked(path: str | Path, patience: float = 10.0, who: str = "another process") -> Iterator[None]:
    """While this holds, no other process that asks for the same lock changes the file `path`.

    The lock is a file beside it, and ends with the process. Raises WriteError: the folder cannot be written, or another
    process, which the error calls `who`, has kept the lock for `patience` seconds. A file system
    without locks gives none.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(path.with_name(f".{path.name}.lock"), "ab")
    except OSError as problem:
        raise WriteError(problem.errno, problem.strerror or str(problem), str(path)) from None
    with lock:
        limit = time.monotonic() + patience
        while not try_lock(lock):
            if time.monotonic() > limit:
                raise WriteError(errno.EAGAIN, f"{who} keeps it locked; try again when that has ended", str(path))
            time.sleep(0.01)
        yield


def try_lock(file: IO) -> bool:
    """Lock an open file, at once; False if another process has it locked.

    The lock holds as long as any process has this file open: also one that was started with it, after our own end.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


@cache
def installed(file: str) -> bool:
    """Whether a file comes with Python, a package or this kit, or was written by TensorFlow's AutoGraph."""
    kit = (str(Path(__file__).parents[1] / package) for package in ("labs", "lessons", "teaching"))
    folders = (*sysconfig.get_paths().values(), *kit)
    written = file.startswith("<frozen") or "__autograph_generated_file" in file
    return written or any(Path(file).is_relative_to(folder) for folder in folders)


# Runs by their names: the run NAME has the files NAME.out, NAME.err, NAME.json and NAME.rankR.samples (a training of a
# batch script NAME_w2.json).


def name_problem(name: object) -> str | None:
    """Why a run cannot be called `name`, as the end of a sentence; None if it can."""
    if not isinstance(name, str):
        return f"is {printed.an(type(name).__name__)}, not a text"
    if not name.strip() or "/" in name or name in (".", "..") or not name.isprintable() or len(name.encode()) > 200:
        return "is no name for a file: a few letters and digits, and no folder"
    if name == "progress":
        return "is that of your progress (progress.json)"
    return None


def newer_names(name: str) -> list[str]:
    """The names that the successor of a run that has moved aside may have: ["a"] of "a.1"; of "a.1_w2", which may be a
    batch script's, ["a", "a_w2"]; of any other name []."""
    match = re.fullmatch(r"(.+)\.[1-9]\d{0,8}(_w\d+)?", name)
    return list(dict.fromkeys([match[1], match[1] + (match[2] or "")])) if match else []


def move_aside(folder: Path, name: str, batch: bool = False) -> str | None:
    """Rename the files of the run `name` in a folder to those of `name`.1, the next time `name`.2, and so on.

    batch: whether it is a batch script's. Returns that name; None where the run has left nothing. Raises OSError.
    """
    if not any(path.stat().st_size for path in _files_of(folder, name, batch)):
        return None
    aside = next_aside(folder, name)
    for path in _files_of(folder, name, batch):
        path.rename(folder / (aside + path.name.removeprefix(name)))
    return aside


def next_aside(folder: Path, name: str) -> str:
    """The next of the names `name`.1, `name`.2, ... that no run in a folder has. Raises OSError."""
    numbers = [re.match(re.escape(name) + r"\.([1-9]\d{0,8})[._]", path.name) for path in folder.iterdir()]
    return f"{name}.{max((int(match[1]) for match in numbers if match), default=0) + 1}"


def _files_of(folder, name, batch):
    endings = r"(?:\.out|\.err|_w\d+\.json)" if batch else r"\.(?:out|err|json|rank\d+\.samples)"
    return [path for path in folder.iterdir() if re.fullmatch(re.escape(name) + endings, path.name)]
