"""The files that a sandbox leaves, read from outside when all its processes are gone."""

import contextlib
import os
import stat

DEEPEST = 40  # folders in folders: a walk ends, however deep a program has made them


def collect(folder: int, most_bytes: int, most_files: int) -> dict[str, bytes]:
    """{path: bytes} of the regular files below an open folder, as far as they are not deeper, larger, more.

    No link is followed. Paths are relative, with `surrogateescape` where they are no UTF-8: they can hold anything.
    """
    found = {}
    for above, folders, names, handle in os.fwalk(".", dir_fd=folder):
        if above.count("/") >= DEEPEST:
            folders.clear()
        for name in sorted(names):
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_size <= most_bytes and len(found) < most_files:
                    most_bytes -= status.st_size
                    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=handle), "rb") as file:
                        found[os.path.normpath(os.path.join(above, name))] = file.read()
    return found
