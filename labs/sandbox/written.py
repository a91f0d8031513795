"""The files that a sandbox leaves, read from outside when all its processes are gone."""

import os
import stat

DEEPEST = 40  # folders in folders
_KINDS = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def collect(folder, most_bytes, most_files):
    """({path: bytes} of the regular files below an open folder, {path: why} of what was left there).

    No link is followed. Paths are relative, with `surrogateescape` where they are no UTF-8: they can hold anything.
    """
    found, left = {}, {}
    _collect(folder, "", DEEPEST, [most_bytes, most_files], found, left)
    return found, left


def _collect(folder, above, deepest, room, found, left):
    for name in sorted(os.listdir(folder)):
        path = above + name
        room[1] -= 1
        if room[1] < 0:
            left[path] = "one file too many"
            return
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode) and deepest:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    _collect(inner, path + "/", deepest - 1, room, found, left)
                finally:
                    os.close(inner)
            elif stat.S_ISDIR(status.st_mode):
                left[path] = f"more than {DEEPEST} folders deep"
            elif not stat.S_ISREG(status.st_mode):
                left[path] = _KINDS.get(stat.S_IFMT(status.st_mode), "a device")
            elif status.st_size > room[0]:
                left[path] = "too large"
            else:
                room[0] -= status.st_size
                with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), "rb") as file:
                    found[path] = file.read()
        except OSError as problem:
            left[path] = problem.strerror
