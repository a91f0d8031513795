"""A notebook with a student's work, merged with its newer form by the ids of its cells."""

import nbformat


def carry(base, mine, new):
    """(the new file as bytes, lost, both) of three files as bytes: the form that the student began with, the student's,
    and the newer form. lost: the student's cells, with text or outputs of theirs, that the newer form has no place for;
    both: the cells that the student and the course changed, where the student's text stands.

    Cells that the student did not change become the newer ones; the student's own stay behind the cell that they stood
    behind; one of the course that the student deleted comes back; outputs stay where the cell's text does. Raises
    ValueError if one of the files is no notebook.
    """
    notebook, newer = _read(mine), _read(new)
    before, theirs, forms = ({cell.id: cell for cell in each.cells} for each in (_read(base), notebook, newer))
    cells, kept, both = {}, set(), []
    for id, cell in forms.items():
        cells[id], yours, was = cell, theirs.get(id), before.get(id)
        if yours and (_content(yours) == _content(cell) or not was or _content(yours) != _content(was)):
            cells[id] = yours | {"metadata": yours.metadata | cell.metadata}
            kept.add(id)
            if was and _content(yours) != _content(cell) != _content(was):
                both.append(_label(cell))
    order, anchor = list(cells), None
    for id, cell in theirs.items():
        if id in cells:
            anchor = id
        elif id not in before:  # the student's own
            order.insert(order.index(anchor) + 1 if anchor else 0, id)
            cells[id], anchor = cell, id
            kept.add(id)
    lost = [cell for id, cell in theirs.items() if id not in kept]
    lost = [_label(cell) for cell in lost if cell.get("outputs") or _content(cell) != _content(before[cell.id])]
    metadata = newer.metadata | notebook.metadata | {"labs": newer.metadata.get("labs", {})}
    whole = nbformat.from_dict(newer | {"metadata": metadata, "cells": [cells[id] for id in order]})
    return nbformat.writes(whole).encode(errors="replace"), lost, both


def _read(content):
    """A notebook of format 4.5, whose cells have ids. Raises ValueError."""
    try:
        notebook = nbformat.v4.reads_json(content.decode())
        nbformat.validate(notebook)  # of two cells with one id the second gets another
    except Exception as problem:  # of nbformat's parts for each kind of damage another one
        raise ValueError(f"it is damaged: {problem}"[:100].splitlines()[0]) from None
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        raise ValueError("its format is older than 4.5")
    return notebook


def _content(cell):
    return cell.cell_type, cell.source


def _label(cell):
    """How a cell is named to a student: its task, or how it begins."""
    begin = cell.source.strip().partition("\n")[0][:50]
    return cell.metadata.get("labs", {}).get("id") or f'"{begin}"'
