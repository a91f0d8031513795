"""A notebook with a student's work, merged with its newer form by the ids of its cells."""

import nbformat


def carry(base, students, newer):
    """(the new file as bytes, lost, both) of three files as bytes: the form that the student began with, the student's,
    and the newer form. lost: the student's cells, with text or outputs of theirs, that the newer form has no place for;
    both: the cells that the student and the course changed, where the student's text stands.

    Cells that the student did not change become the newer ones; the student's own stay behind the cell that they stood
    behind; one of the course that the student deleted comes back; outputs stay where the cell's text does. Raises
    ValueError if one of the files is no notebook.
    """
    work, form = _read(students), _read(newer)
    base_cells, work_cells, form_cells = ({cell.id: cell for cell in each.cells} for each in (_read(base), work, form))
    cells, kept, both = {}, set(), []
    for id, new in form_cells.items():
        cells[id], own, old = new, work_cells.get(id), base_cells.get(id)
        if own and (_content(own) == _content(new) or not old or _content(own) != _content(old)):
            cells[id] = own | {"metadata": own.metadata | new.metadata}
            kept.add(id)
            if old and _content(own) != _content(new) != _content(old):
                both.append(_label(new))
    order, anchor = list(cells), None
    for id, cell in work_cells.items():
        if id in cells:
            anchor = id
        elif id not in base_cells:  # one that the student has added
            order.insert(order.index(anchor) + 1 if anchor else 0, id)
            cells[id], anchor = cell, id
            kept.add(id)
    lost = [cell for id, cell in work_cells.items() if id not in kept]
    lost = [_label(cell) for cell in lost if cell.get("outputs") or _content(cell) != _content(base_cells[cell.id])]
    metadata = form.metadata | work.metadata | {"labs": form.metadata.get("labs", {})}
    whole = nbformat.from_dict(form | {"metadata": metadata, "cells": [cells[id] for id in order]})
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
