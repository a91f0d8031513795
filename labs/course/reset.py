"""Starting over: a fresh notebook or script, the old one kept in old/."""

import os
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from labs import files
from labs.course import backup, release
from labs.course.release import CourseError


def fresh_files(root: Path) -> dict[str, Callable[[], bytes]]:
    """{path: function that gives its fresh bytes} of all that students fill in: as the release had it; in a clone as it
    was fetched, or without an upstream as the last commit has it.

    root: the course's folder. Raises CourseError where neither says it; so does a function whose copy is damaged.
    """
    if release.is_release(root):
        names = filter(release.filled_in, release.stamp_of(root).files)
        return {name: lambda name=name: release.fresh_copy(root, name) for name in names}
    commit = "HEAD"
    with suppress(CourseError):
        commit = _git(root, "rev-parse", "--verify", "@{upstream}").decode().strip()
    listed = _git(root, "ls-tree", "-r", "-z", "--name-only", commit, "notebooks", "slurm").decode().split("\0")
    names = filter(release.filled_in, listed)
    return {name: lambda name=name: _git(root, "show", f"{commit}:./{name}") for name in names}


def _git(root, *words):
    """What git prints, as bytes. Raises CourseError."""
    try:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        what = f"{root} is neither a release nor a clone whose commits git can read"
        raise CourseError(f"{what}: fetch a fresh copy of the course and take the file from there.") from None


def reset_files(root: Path, names: list[str]) -> list[str]:
    """Make files fresh again, the old ones kept in old/; returns what was done, as lines.

    root: the course's folder
    names: numbers of notebooks, scripts/NAME.py, slurm/SITE/NAME.sh, or paths from where you are

    Raises CourseError, before anything is written, for a name that is not one of these or that means several.
    Raises files.WriteError.
    """
    fresh, lines, renewed = fresh_files(root), [], []
    contents = {path: fresh[path]() for path in [_meant(root, name, fresh) for name in names]}
    with backup.locked(root):
        for path, content in contents.items():
            there = (root / path).is_file()
            if there and (root / path).read_bytes() == content:
                lines.append(f"{path} is fresh already.")
                continue
            kept = f"; the old one is {backup.keep(root, path)}" if there else ""
            files.write(root / path, content)
            lines.append(f"{path} is fresh again{kept}.")
            renewed.append(path)
    if any(path.endswith(".ipynb") for path in renewed):
        lines.append("If one of these notebooks is open in JupyterLab, close it without saving and open it again.")
        lines.append("What was right in your progress stays right.")
    return lines


def _meant(root, name, fresh):
    """The path among `fresh` that is meant. Raises CourseError."""
    here = Path(os.path.relpath(name or ".", root)).as_posix()
    number = re.fullmatch(r"(\d{1,2})([a-z]?)", name)
    begin = f"notebooks/{int(number[1]):02}{number[2]}_" if number else "/"
    end = f"/{name.removeprefix('./')}"
    paths = [here] if here in fresh else [path for path in fresh if path.startswith(begin) or f"/{path}".endswith(end)]
    if len(paths) == 1:
        return paths[0]
    if paths[1:]:
        raise CourseError(f"{name} means several files: {', '.join(sorted(paths))}. Name one of them.")
    example = "name a notebook (05), or a script (scripts/ResNet50.py)."
    raise CourseError(f"{name!r:.80} is not a file that the course gave you to fill in; {example}")
