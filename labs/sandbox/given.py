"""The files that a program finds, written from outside into the sandbox's own memory before the program begins.

Bubblewrap itself takes each file as an open descriptor and as words of its command line, of which it allows 9,000.
Written from outside, there may be as many files as the sandbox's memory holds.
"""

import os
from pathlib import PurePosixPath

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


def place(folder, files):
    """Write {relative path: bytes} below an open folder; what begins with #! is a program. Everybody inside may change
    them. Returns how many files and folders were made. Raises OSError, ValueError for a path that cannot be.
    """
    known, made = set(), len(files)
    for path, content in files.items():
        for above in [*PurePosixPath(path).parents][-2::-1]:
            if above not in known:
                known.add(above)
                made += _made(folder, str(above))
        with open(os.open(path, _NEW, dir_fd=folder), "wb") as file:
            os.fchmod(file.fileno(), 0o777 if content.startswith(b"#!") else 0o666)
            file.write(content)
    return made


def _made(folder, path):
    try:
        os.mkdir(path, dir_fd=folder)
        os.chmod(path, 0o777, dir_fd=folder)
    except FileExistsError:
        return False
    return True
