"""Starting over: a fresh notebook or script, the old one kept in old/."""

import os
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from labs import files
from labs.checks import kept, tasks
from labs.course import aside, release
from labs.course.release import CourseError

FreshFiles = dict[str, Callable[[], bytes]]


def fresh_files(root: Path) -> FreshFiles:
    """{path: function that gives its fresh bytes} of all that students fill in, in a course made by a release.

    root: the course's folder. Raises CourseError where no release made it; so does a function whose copy is damaged.
    """
    names = sorted(filter(release.filled_in, release.stamp_of(root).files))
    return {name: lambda name=name: release.fresh_copy(root, name) for name in names}


def committed_files(root: Path) -> FreshFiles:
    """`fresh_files` of a clone of the course, as they were fetched; without an upstream, as the last commit has them.

    Raises CourseError where git cannot say.
    """
    commit = "HEAD"
    with suppress(CourseError):
        commit = _git(root, "rev-parse", "--verify", "@{upstream}").decode().strip()
    names = _git(root, "ls-tree", "-r", "-z", "--name-only", commit, "notebooks", "slurm").decode().split("\0")
    names = filter(release.filled_in, names)
    return {name: lambda name=name: _git(root, "show", f"{commit}:./{name}") for name in names}


def _git(root, *words):
    """What git prints, as bytes. Raises CourseError."""
    try:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        told = (getattr(problem, "stderr", None) or str(problem).encode()).decode(errors="replace")
        reason = told.strip().splitlines()[-1]
        what = f"{root} is neither a release nor a clone whose commits git can read ({reason})"
        raise CourseError(f"{what}: fetch a fresh copy of the course and take the file from there.") from None


def reset_files(root: Path, names: list[str], fresh: FreshFiles, progress: bool = False) -> list[str]:
    """Make files fresh again, the old ones kept aside; returns what was done, as lines.

    root: the course's folder
    names: numbers of notebooks, scripts/NAME.py, slurm/SITE/NAME.sh, or paths from where you are
    fresh: as `fresh_files` gives it
    progress: also forget what progress.json says of the notebooks' items

    Raises CourseError, before anything is written, for a name that is not one of these or that means several.
    Raises files.WriteError.
    """
    root = Path(root)
    chosen = list(dict.fromkeys(_meant(root, name, fresh) for name in names))
    notebooks = [name for name in chosen if name.endswith(".ipynb")]
    if progress and not notebooks:
        raise CourseError("--progress forgets the checks of notebooks, and no notebook is named.")
    with aside.alone(root):
        return _fresh_again(root, {name: fresh[name]() for name in chosen}, notebooks if progress else [])


def _fresh_again(root, contents, forgotten):
    """Write contents, {path: bytes}; and forget the items of some notebooks. Returns what was done, as lines."""
    progress = Path(os.environ.get("LABS_RUNS") or Path(root, "notebooks", "runs")) / "progress.json"
    if forgotten:
        try:
            kept.read(progress)
        except OSError as problem:
            raise CourseError(f"{progress} cannot be read ({problem.strerror}), so nothing is forgotten.") from None
    said, opened = [], False
    for name, content in contents.items():
        path = root / name
        old = path.read_bytes() if path.is_file() else None
        if old == content:
            said.append(f"{name} is fresh already.")
            continue
        place = old is not None and aside.place(root, name, old)
        if place:
            aside.keep(root, place, old)
        files.write(path, content)
        opened |= name.endswith(".ipynb")
        said.append(f"{name} is fresh again" + (f"; the old one is {place}." if place else "."))
    if forgotten:
        said.append(_forget(root, progress, forgotten))
    elif opened:
        said.append("What was right in your progress stays right; `labs reset --progress` forgets that, too.")
    if opened:
        said.append("If one of these notebooks is open in JupyterLab, close it without saving and open it again.")
    return said


def _meant(root, name, fresh):
    """The path among `fresh` that is meant. Raises CourseError."""
    here = Path(os.path.relpath(Path(name).absolute(), root)).as_posix()
    plain = name.removeprefix("./")
    number = re.fullmatch(r"(\d{1,2})([a-z]?)", name)
    numbered = f"notebooks/{int(number[1]):02}{number[2]}_" if number else "/"
    found = [path for path in fresh if path in (here, plain)]
    found = found or [path for path in fresh if path.startswith(numbered)]
    found = found or [path for path in fresh if plain and path.endswith((f"/{plain}", f"/{plain}.ipynb"))]
    if len(found) == 1:
        return found[0]
    if found:
        raise CourseError(f"{name} means several files: {', '.join(sorted(found))}. Name one of them.")
    near = get_close_matches(here, fresh, 1, 0.7) or get_close_matches(f"notebooks/{name}", fresh, 1, 0.7)
    hint = f"did you mean {near[0]}?" if near else "name a notebook (05), or a script (scripts/ResNet50.py)."
    raise CourseError(f"{name!r:.80} is not a file that the course gave you to fill in; {hint}")


def _forget(root, path, notebooks):
    """Forget what progress.json says of notebooks; returns what was done, as a line. Raises files.WriteError."""
    places, stems = [], {Path(name).stem for name in notebooks}

    def keep(old):
        places.append(aside.place(root, "notebooks/runs/progress.json", old))
        aside.keep(root, places[0], old)

    ids = {id for id, (lesson, _) in tasks.items().items() if lesson.notebook in stems}
    forgotten = kept.forget(path, ids, keep)
    if not forgotten:
        return "Your progress holds nothing from it: there is nothing to forget."
    return f"Your progress has forgotten {forgotten} items; {places[0]} holds it as it was."
