"""A notebook with a student's work in its newer form: what is carried, and what has no place any more."""

import json

import pytest
from course import notebook

from labs.course.notebooks import carry

GONE = {"lost": ["1"]}


def made(cells):
    """A notebook of "id text | id text"."""
    return notebook(*(cell.split(" ", 1) for cell in cells.split(" | ")))


@pytest.mark.filterwarnings("ignore::nbformat.warnings.DuplicateCellId")
def test_cells():
    for old, mine, new, expected, said in (
        ("a # A", "a # A", "b # B", "# B", {}),  # the course's change of a cell that the student left alone
        ("labs-1 x = ...", "labs-1 x = 2", "labs-1 y = ...", "x = 2", {"both": ["1"]}),  # both changed it
        ("labs-1 x = ...", "labs-1 y = ...", "labs-1 y = ...", "y = ...", {}),  # in the same way
        # a task that is gone, with an answer and without
        ("labs-1 x = ... | labs-2 y = ... | a # A", "labs-1 x = 2 | labs-2 y = ... | a # A", "a # A", "# A", GONE),
        ("a # A\ntext", "a # A\nmine", "b # B", "# B", {"lost": ['"# A"']}),
        (  # own cells stay where they stood, also where what stood before them is gone
            "a # A | b # B | c # C",
            "m0 0 | a # A | m1 1 | b # B | m2 2 | m3 3 | c # C | m4 4",
            "a # A | n # N | c # C",
            "0 | # A | 1 | 2 | 3 | # N | # C | 4",
            {},
        ),
        ("a 1 | b 2", "b 2", "a 1 | b 2", "1 | 2", {}),  # a cell of the course that the student deleted comes back
        ("a 1 | b 2", "b 5 | a 1", "a 1 | b 2", "1 | 5", {}),  # moved ones take the course's order
        ("a 1", "a 1 | a 7", "a 1", "1 | 7", {}),  # two cells with one id, as a merge by git leaves them
    ):
        carried, lost, both = carry(made(old), made(mine), made(new))
        assert " | ".join("".join(cell["source"]) for cell in json.loads(carried)["cells"]) == expected
        assert {key: value for key, value in (("lost", lost), ("both", both)) if value} == said, mine
        for base in (old, new):  # again, as after an interruption
            assert carry(made(base), carried, made(new))[0] == carried, mine


def test_outputs_stay_with_unchanged_cells_and_what_is_dropped_is_said():
    mine = json.loads(notebook(("a", "1"), ("b", "2"), kernelspec={"name": "labs", "display_name": "labs"}))
    for cell in mine["cells"]:
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "out"}]
        cell["metadata"] = {"collapsed": True}
    form = notebook(("a", "1"), ("b", "2"), labs={"version": 2})
    for new, outputs, loses in ((form, [1, 1], []), (notebook(("a", "1"), ("b", "3")), [1, 0], ['"2"'])):
        carried, lost, _ = carry(form, json.dumps(mine).encode(), new)
        made = json.loads(carried)
        assert [len(cell["outputs"]) for cell in made["cells"]] == outputs and lost == loses
        assert made["metadata"]["kernelspec"]["name"] == "labs" and made["cells"][0]["metadata"]["collapsed"]
        assert made["metadata"]["labs"] == json.loads(new)["metadata"]["labs"]


def test_what_is_no_notebook_is_refused():
    form = notebook(("a", "1"))
    for damage in (b"", b"[1]", b"[" * 100_000, b"\xff", b'{"nbformat": 4, "nbformat_minor": 5, "cells": [1]}'):
        with pytest.raises(ValueError, match="it is damaged"):
            carry(form, damage, form)
    with pytest.raises(ValueError, match="older than 4.5"):
        carry(form, form.replace(b'"nbformat_minor": 5', b'"nbformat_minor": 4').replace(b'"id": "a",', b""), form)
