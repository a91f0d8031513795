"""What is replaced is kept first: PATH as old/PATH with a number, where neither `labs` nor a lesson looks.

Only one command at a time may replace anything in a course, the one inside of `alone`.
"""

from itertools import count
from pathlib import Path, PurePosixPath

from labs import files
from labs.course.release import STAMP

FOLDER = "old"


def alone(root):
    """Context in which no other `labs update` or `labs reset` changes the course at `root`.

    Another one is waited for; raises files.WriteError where it goes on for more than 10 seconds.
    """
    return files.locked(Path(root, STAMP), who="another `labs update` or `labs reset`")


def place(root, name, content, taken=()):
    """Path below `root` for the old `content` of the file `name`: the first number that is free, or that holds just
    this content already. taken: paths that are given away.
    """
    path = PurePosixPath(FOLDER, name)
    for number in count(1):
        kept = path.with_name(f"{path.stem}_old-{number}{path.suffix}")
        there = Path(root, kept)
        if kept.as_posix() not in taken and (not there.exists() or (there.is_file() and there.read_bytes() == content)):
            return kept.as_posix()


def keep(root, kept, content):
    """Write old content to the path that `place` gave. Raises files.WriteError; nothing is ever overwritten."""
    path = Path(root, kept)
    if path.is_file() and path.read_bytes() == content:
        return
    part = path.with_name(f".{path.name}.part")
    files.write(part, content)
    try:
        path.hardlink_to(part)  # fails where the name is taken, which a rename does not
    except FileExistsError as problem:
        raise files.WriteError(problem.errno, f"{problem.strerror}; try again", str(path)) from None
    except OSError:  # a file system without hard links
        if not path.exists():
            part.rename(path)
    finally:
        part.unlink(missing_ok=True)
