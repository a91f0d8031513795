"""The cells of a notebook as it was handed in: found by what they say, whatever became of the file and of their kind.

A cell belongs to an item of the course by its id (labs-LESSON-5), by its mark (metadata.labs.id), by its call
`check("LESSON.5", ...)`, in any quotes, or by the heading of a written answer. What was handed in and cannot be run,
or does not count, lies in a submission's folder others/; of what could not be read an empty file lies there.
"""

import html
import json
import re
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from labs.checks import kept, tasks
from teaching.grading import magics

FEW = 8  # lines that say the same of several: all are shown in the feedback
OTHERS = "others/"
_CALLED = re.compile(r"""\b(?:check|predict)\(\s*(?:id\s*=\s*)?[a-zA-Z]{0,2}(?:'''|\"{3}|['"])([\w.]+)""")
_BLANK = re.compile(r"=\s*\.\.\.|^\s*\.\.\.\s*(?:#.*)?$", re.M)


class Cell(NamedTuple):
    """kind: code, markdown or raw; source: its text; items: ids of all items that it is about."""

    kind: str
    source: str
    items: frozenset

    @property
    def filled(self):
        """Whether no blank is left open in it."""
        return bool(self.source.strip()) and kept.PLACEHOLDER not in self.source and not _BLANK.search(self.source)


@cache
def _lessons():
    """{id: name of its notebook} of all items."""
    return {id: lesson.notebook for id, (lesson, _) in tasks.items().items()}


def notebooks():
    """The names of the course's notebooks that have items."""
    return {*_lessons().values()}


def _named(text):
    """The ids of the items whose check a text calls, or whose heading of a written answer it holds."""
    return {id for id in (*_CALLED.findall(text), *kept.HEADING.findall(text)) if id in _lessons()}


def items(content):
    """The ids of the items that a file names as cells do: a notebook, damaged or not, or what it was exported to."""
    text = content.decode(errors="replace")
    if "<html" in text[:1000].lower():
        text = html.unescape(re.sub(r"<[^>]*>", lambda tag: f" {tag[0]} " if "labs-" in tag[0] else "", text))
    return _named(text.replace('\\"', '"')) | {id for id in _lessons() if f'labs-{id.replace(".", "-")}"' in text}


def lesson(content):
    """The name of the notebook to which most of the items belong that a file names; None if it names none."""
    found = [_lessons()[id] for id in items(content)]
    return max(sorted(set(found)), key=found.count, default=None)


def read(content):
    """(the Cells of a notebook as bytes, why it cannot be read or "")."""
    cells = []
    try:
        for cell in (cell for cell in json.loads(content)["cells"] if isinstance(cell, dict)):
            source, marks = cell.get("source", ""), cell.get("metadata")
            source = "".join(map(str, source)) if isinstance(source, list) else str(source)
            mark = marks.get("labs") if isinstance(marks, dict) else None
            marked = {str(mark.get("id")) if isinstance(mark, dict) else "", _by_id().get(str(cell.get("id")), "")}
            about = _named(source) | marked & _lessons().keys()
            cells.append(Cell(str(cell.get("cell_type")), source, frozenset(about)))
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        return [], f"the notebook cannot be read ({type(problem).__name__})"
    return cells, ""


@cache
def _by_id():
    return {f"labs-{id.replace('.', '-')}": id for id in _lessons()}


def filled(content):
    """How many items have a cell in a notebook that is filled in."""
    return len({id for cell in read(content)[0] if cell.filled for id in cell.items})


def runnable(content):
    """(sources of the code cells of a notebook as bytes, as they are run; lines on what is odd): all in their order,
    also both halves of a cell that was split, and both copies of one."""
    cells, damage = read(content)
    if damage:
        return [], [damage]
    code = [cell for cell in cells if cell.kind == "code"]
    called = [id for cell in code for id in set(_CALLED.findall(cell.source)) & _lessons().keys()]
    twice = [id for id in dict.fromkeys(called) if called.count(id) > 1]
    told = [f"{id} is called in {called.count(id)} cells: the last one that is filled in counts" for id in twice[:FEW]]
    told += [f"{len(twice) - FEW} more checks are called in several cells"] * (len(twice) > FEW)
    return [magics.without(cell.source) for cell in code], told


def about(content, names, bound):
    """{id: sources of the cells that are about the check, or bind one of the names that it is called with} of a
    notebook as bytes. names: {id: those names}; bound: function that gives the names that a syntax tree binds."""
    found = {id: [] for id in names}
    for cell in read(content)[0]:
        binds = set()
        if cell.kind == "code":
            with suppress(*magics.UNFIT):
                binds = set(bound(magics.tree(magics.without(cell.source))))
        for id, called_with in names.items():
            if id in cell.items or f'"{id}"' in cell.source or binds & called_with:
                found[id].append(cell.source)
    return found


def elsewhere(contents, notebook, id=None, blank=False):
    """Where the work on an item of a notebook (None: on all of it) could be besides the notebook that counts, as a
    sentence; "" if nowhere. contents: {path: bytes} of a submission; blank: its cell is there, and blank, so that only
    a notebook in which it is filled in can hold it."""
    for path, content in sorted(contents.items()):
        if path.startswith(OTHERS):
            name, notebook_cells = path.removeprefix(OTHERS), read(content)[0]
            unknown = not items(content) if notebook_cells else unreadable(content)
            if unknown and not blank:
                return f"{name} could hold it: nothing that can be read in it says what it is"
            named = {item for cell in notebook_cells if cell.filled for item in cell.items}
            named = named if notebook_cells or blank else items(content)
            if id in named or (id is None and notebook in {_lessons()[item] for item in named}):
                return f"{name} holds it, and was not run: look at it in others/ of the submission's zip"
    return ""


def unreadable(content):
    """Whether a file holds nothing that can be searched for a cell: it is lost, or no text."""
    return not content or b"\0" in content[:4096] or content.startswith(b"%PDF")


def beside(contents):
    """The names of the notebooks that a submission holds, or whose work could be in another of its files."""
    names = {path.removeprefix("notebooks/").removesuffix(".ipynb") for path in contents if path.endswith(".ipynb")}
    return sorted(n for n in notebooks() if n in names or elsewhere(contents, n))
