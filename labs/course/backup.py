"""What the student has changed and is replaced is kept first: PATH as old/PATH with a number, where neither `labs` nor
a lesson looks.

Only one command at a time may replace anything in a course, the one inside of `locked`.
"""

from itertools import count
from pathlib import Path, PurePosixPath

from labs import files
from labs.course.release import STAMP


def locked(root):
    """Context in which no other `labs update` or `labs reset` changes the course at `root`.

    Another one is waited for; raises files.WriteError where it goes on for more than 10 seconds.
    """
    return files.locked(Path(root, STAMP), who="another `labs update` or `labs reset`")


def place(root, name):
    """Path below `root` of the backup of the file `name`: with the first number that is free, or whose backup holds
    just this already."""
    path, content = PurePosixPath("old", name), Path(root, name).read_bytes()
    for number in count(1):
        backup = path.with_name(f"{path.stem}_old-{number}{path.suffix}").as_posix()
        if not Path(root, backup).exists() or Path(root, backup).read_bytes() == content:
            return backup


def keep(root, name):
    """Write the backup of a file that is about to be replaced; returns its path. Raises files.WriteError."""
    backup = place(root, name)
    files.write(Path(root, backup), Path(root, name).read_bytes())
    return backup
