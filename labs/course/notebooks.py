"""A notebook with a student's work, carried into its newer form by the ids of its cells."""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import product

from labs.blanks import parse
from labs.printed import grouped


@dataclass
class Carried:
    """A student's notebook in its newer form.

    text: of the new file
    lossy: does it lack anything that the student's notebook held?
    gone: cells with the student's work that the newer form has no place for
    both: cells that the student and the course changed, where the student's text stands unchanged
    joined: such cells that hold both changes now
    """

    text: bytes
    lossy: bool = False
    gone: list[str] = field(default_factory=list)
    both: list[str] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)


def carry(base, mine, new):
    """`Carried` of three files as bytes: the form that the student began with, the student's, and the newer form.

    Cells that the student did not change become the newer ones; the student's own stay behind the cell that they stood
    behind; outputs stay where the cell's text does. Raises ValueError if the student's file is no notebook.
    """
    old, new_form = _read(base)["cells"], _read(new)
    notebook = _read(mine)
    theirs = _keyed(notebook["cells"], old, new_form["cells"])
    before = {cell["id"]: cell for cell in old}
    result, kept, cells = Carried(b""), set(), {}
    for cell in new_form["cells"]:
        id, cells[cell["id"]] = cell["id"], cell
        yours, was = theirs.get(id), before.get(id)
        if yours is None or (was and _content(yours) == _content(was) != _content(cell)):
            continue
        text = _text(yours)
        if yours.get("cell_type") == cell["cell_type"] and was and _text(was) != _text(cell) != text:
            joined = _joined(_text(was), text, _text(cell), cell["cell_type"])
            (result.both if joined is None else result.joined).append(label(cell))
            text = text if joined is None else joined
        cells[id] = cell | {"source": text.splitlines(keepends=True)}
        if text == _text(yours):
            cells[id] = yours | {"id": id, "metadata": yours.get("metadata", {}) | cell["metadata"]}
            kept.add(id)
    order = list(cells)
    anchor = None
    for id, cell in theirs.items():
        if id in cells:
            anchor = id
        elif id not in before:  # the student's own
            order.insert(order.index(anchor) + 1 if anchor else 0, id)
            cells[id], anchor = cell | {"id": id}, id
            kept.add(id)
        elif _content(cell) != _content(before[id]):
            result.gone.append(label(cell))
    left = [cell for id, cell in theirs.items() if id not in kept]
    result.lossy = any(cell.get("outputs") or _content(cell) != _content(before.get(cell["id"])) for cell in left)
    metadata = notebook.get("metadata")
    metadata = (metadata if isinstance(metadata, dict) else {}) | {"labs": new_form["metadata"].get("labs", {})}
    whole = new_form | {"metadata": new_form["metadata"] | metadata, "cells": [cells[id] for id in order]}
    text = json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    try:
        result.text = text.encode()
    except UnicodeEncodeError:  # half a character, which JSON can hold and UTF-8 cannot
        result.text = (json.dumps(whole, indent=1, sort_keys=True) + "\n").encode()
    return result


def same(one, other):
    """Do two notebooks, as bytes, hold the same cells, whatever their outputs? False if one is no notebook."""
    with suppress(ValueError):
        return [_content(cell) for cell in _read(one)["cells"]] == [_content(cell) for cell in _read(other)["cells"]]
    return False


def label(cell):
    """How a cell is named to a student: its task, or how it begins."""
    id = cell.get("metadata", {}).get("labs", {}).get("id")
    first = next((line.strip() for line in _text(cell).splitlines() if line.strip()), "an empty cell")
    return str(id) if id else f'"{first[:50]}"'


def _read(content):
    """A notebook of format 4 as a dict whose cells are of the form that this module counts on. Raises ValueError."""
    try:
        notebook = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(notebook, dict) or notebook.get("nbformat") != 4 or not isinstance(notebook.get("cells"), list):
        raise ValueError("no notebook of format 4")
    for cell in notebook["cells"]:
        if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
            raise ValueError("a cell of no known kind")
        metadata = cell.setdefault("metadata", {})
        source = cell.get("source", "")
        sound = isinstance(metadata, dict) and isinstance(metadata.get("labs", {}), dict)
        if not (sound and all(isinstance(line, str) for line in (source if isinstance(source, list) else [source]))):
            raise ValueError("a cell that cannot be read")
    return notebook


def _text(cell):
    return "".join(cell.get("source", ""))  # a text, or its lines


def _content(cell):
    return cell and (cell.get("cell_type"), _text(cell))


def _keyed(cells, *forms):
    """{id: cell} of a student's cells, in order. A cell without an id of the course (an older program saved it, or a
    copy) has that of its task or of the course's cell with the same text, as long as no other cell has it."""
    known = {cell["id"]: cell for form in forms for cell in form}
    texts = grouped((_content(cell), id) for id, cell in known.items())
    taken = {id for cell in cells if isinstance(id := cell.get("id"), str) and id in known}
    keyed = {}
    for cell in cells:
        id = cell.get("id")
        if not isinstance(id, str) or id in keyed:
            task = f"labs-{str(cell['metadata'].get('labs', {}).get('id')).replace('.', '-')}"
            same = [task] * (task in known) + texts.get(_content(cell), [])
            new = hashlib.sha256(f"{len(keyed)} {_text(cell)}".encode(errors="replace")).hexdigest()[:12]
            id = next((other for other in same if other not in taken), new)
            taken.add(id)
        keyed[id] = cell | {"id": id}
    return keyed


def _joined(base, mine, new, kind):
    """The text with both changes of a base, or None where they touch the same lines or the code does not hold."""
    lines = base.split("\n")
    edits = []
    for other in (mine.split("\n"), new.split("\n")):
        codes = SequenceMatcher(None, lines, other, autojunk=False).get_opcodes()
        edits.append([(i, j, tuple(other[k:m])) for tag, i, j, k, m in codes if tag != "equal"])
    for (i, j, one), (k, m, two) in product(*edits):
        touch = (i < m and k < j) or i == k or (i == j or k == m) and i <= m and k <= j
        if touch and (i, j, one) != (k, m, two):
            return None
    merged, position = [], 0
    for i, j, text in sorted({*edits[0], *edits[1]}):
        merged += [*lines[position:i], *text]
        position = j
    text = "\n".join(merged + lines[position:])
    return None if kind == "code" and _parses(mine) and not _parses(text) else text


def _parses(text):
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        parse(text)
        return True
    return False
