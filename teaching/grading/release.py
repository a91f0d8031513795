"""course.zip: what students get of the course, in one file that `labs update` reads, too."""

import re

from labs import files
from labs.checks import tasks
from labs.errors import LabsError, UseError
from labs.report.archive import zipped
from teaching.author import hidden, sources, students

TOP = "course/"  # the folder that the zip unpacks to
_NOTEBOOK = re.compile(r"notebooks/([^/]+)\.ipynb")


class LeakError(LabsError):
    """A release would give a solution away; the text says what and where."""


def release(root, out, notebooks=None):
    """Write the zip `out` with what students get of the course at `root`; returns the names of its notebooks.

    notebooks: their names (default: all). The same commit gives the same bytes. Raises LeakError, BuildError.
    """
    notebooks = tuple(sources.sources(root)) if notebooks is None else notebooks
    others = {folder for folder, lesson in tasks.lessons().items() if lesson.notebook not in notebooks}

    def keeps(name):
        if of_lesson := _NOTEBOOK.fullmatch(name):
            return of_lesson[1] in notebooks
        of_other = name.startswith("lessons/") and name.split("/")[1] in others
        return not (of_other and name.endswith(("/tasks.toml", "/questions.py")))  # its modules may serve others

    contents = students.contents(root, keeps)
    if found := list(hidden.leaks(contents, hidden.secrets(root))):
        raise LeakError(f"This release would give solutions away: not written. {found[0]} ({len(found)} in all)")
    files.write(out, zipped({TOP + name: content for name, content in contents.items()}))
    return [lesson[1] for name in contents if (lesson := _NOTEBOOK.fullmatch(name))]


def chosen(path=None, notebooks=None):
    """The names of the notebooks on a path, as practical, or that "00-05,11" means, in order; None where neither is
    given. Raises UseError."""
    if path is not None and notebooks is not None:
        raise UseError("--path and --notebooks both say which notebooks: give one of them.")
    if path is not None:
        return tuple(lesson.notebook for lesson in tasks.on_path(path))
    if notebooks is None:
        return None
    numbers = {lesson.notebook: lesson.notebook.partition("_")[0] for lesson in tasks.lessons().values()}
    named = set()
    for part in notebooks.split(","):
        ends = re.fullmatch(r"\s*(\d\d[a-z]?)(?:-(\d\d[a-z]?))?\s*", part)
        these = {name for name, number in numbers.items() if ends and ends[1] <= number <= (ends[2] or ends[1])}
        if not these:
            there = ", ".join(numbers.values())
            raise UseError(f"--notebooks: {part!r} names no notebook; there are {there}: as 00-05,11.")
        named |= these
    return tuple(name for name in numbers if name in named)
