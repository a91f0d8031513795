"""A notebook with a student's work in its newer form: what is carried, joined, or has no place any more."""

import json

import nbformat
import pytest
from course import notebook

from labs.course.notebooks import carry, same

TASK = 'first = 1\nspeedup = ...  # your code here\n\ncheck("01.1", speedup)'


def carried(old, mine, new):
    """(texts of the cells in order, what is said) of notebooks given as lists of (id, text)."""
    result = carry(notebook(*old), notebook(*mine), notebook(*new))
    texts = ["".join(cell["source"]) for cell in json.loads(result.text)["cells"]]
    return texts, {key: getattr(result, key) for key in ("gone", "both", "joined", "lossy") if getattr(result, key)}


@pytest.mark.parametrize(
    ("old", "mine", "new", "expected", "said"),
    [
        # the course's change of a cell that the student left alone
        ([("a", "# A")], [("a", "# A")], [("b", "# B")], ["# B"], {}),
        # both changed other lines of a task
        (
            [("labs-1", TASK)],
            [("labs-1", TASK.replace("...  # your code here", "2\nspeedup += 1"))],
            [("labs-1", TASK.replace("first = 1", "first = 7").replace("speedup)", "speedup, first)"))],
            ['first = 7\nspeedup = 2\nspeedup += 1\n\ncheck("01.1", speedup, first)'],
            {"joined": ["1"], "lossy": True},
        ),
        # both changed the same line
        ([("labs-1", "x = ...")], [("labs-1", "x = 2")], [("labs-1", "y = ...")], ["x = 2"], {"both": ["1"]}),
        # joined it would be no Python
        (
            [("labs-1", "a = 1\nb = 2\nc = 3")],
            [("labs-1", "a = (1,\nb = 2\nc = 3)".replace("b = 2", "2,").replace("c = 3)", "3)"))],
            [("labs-1", "a = 1\nb = 2\nc = 4")],
            ["a = (1,\n2,\n3)"],
            {"both": ["1"]},
        ),
        # a task that is gone, with an answer and without
        (
            [("labs-1", "x = ..."), ("labs-2", "y = ..."), ("a", "# A")],
            [("labs-1", "x = 2"), ("labs-2", "y = ..."), ("a", "# A")],
            [("a", "# A")],
            ["# A"],
            {"gone": ["1"], "lossy": True},
        ),
        # an edited text that is gone is named by its beginning
        ([("a", "# A\ntext")], [("a", "# A\nmine")], [("b", "# B")], ["# B"], {"gone": ['"# A"'], "lossy": True}),
        # own cells stay where they stood, also where what stood before them is gone
        (
            [("a", "# A"), ("b", "# B"), ("c", "# C")],
            [("m0", "0"), ("a", "# A"), ("m1", "1"), ("b", "# B"), ("m2", "2"), ("m3", "3"), ("c", "# C"), ("m4", "4")],
            [("a", "# A"), ("n", "# N"), ("c", "# C")],
            ["0", "# A", "1", "2", "3", "# N", "# C", "4"],
            {},
        ),
        # a cell of the course that the student deleted comes back; moved ones take the course's order
        ([("a", "1"), ("b", "2")], [("b", "2")], [("a", "1"), ("b", "2")], ["1", "2"], {}),
        ([("a", "1"), ("b", "2")], [("b", "5"), ("a", "1")], [("a", "1"), ("b", "2")], ["1", "5"], {}),
        # the same cell pasted twice
        ([("a", "1")], [("a", "1"), ("a", "7")], [("a", "1")], ["1", "7"], {}),
    ],
)
def test_cells(old, mine, new, expected, said):
    assert carried(old, mine, new) == (expected, said)


def test_a_notebook_saved_without_ids_keeps_its_answers():
    old, new = [("a", "# A"), ("labs-1", "x = ..."), ("b", "1")], [("z", "# Z"), ("labs-1", "x = ..."), ("b", "1")]
    mine = json.loads(notebook(("a", "# A"), ("labs-1", "x = 2"), ("m", "own"), ("b", "1")))
    for cell in mine["cells"]:
        del cell["id"]
        cell["source"] = "".join(cell["source"])
    mine["nbformat_minor"] = 2
    result = carry(notebook(*old), json.dumps(mine).encode(), notebook(*new))
    made = json.loads(result.text)
    nbformat.validate(made)
    assert [cell["source"] for cell in made["cells"]] == [["# Z"], "x = 2", "own", "1"]
    ids = [cell["id"] for cell in made["cells"]]
    assert ids[:2] + ids[3:] == ["z", "labs-1", "b"] and ids[2] and made["nbformat_minor"] == 5
    assert carry(notebook(*new), result.text, notebook(*new)).text == result.text


def test_outputs_stay_with_unchanged_cells_and_what_is_dropped_is_said():
    mine = json.loads(notebook(("a", "1"), ("b", "2"), kernelspec={"name": "labs"}))
    for cell in mine["cells"]:
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "out"}]
        cell["metadata"] = {"collapsed": True}
    form = notebook(("a", "1"), ("b", "2"))
    for new, outputs, lossy in ((form, [1, 1], False), (notebook(("a", "1"), ("b", "3")), [1, 0], True)):
        result = carry(form, json.dumps(mine).encode(), new)
        made = json.loads(result.text)
        assert [len(cell["outputs"]) for cell in made["cells"]] == outputs and result.lossy == lossy
        assert made["metadata"]["kernelspec"] == {"name": "labs"} and made["cells"][0]["metadata"]["collapsed"]


def test_the_newer_metadata_come_in_and_carrying_again_changes_nothing():
    old, new = notebook(("labs-T1", "# T1")), notebook(("labs-T1", "# T1"), labs={"version": 2})
    mine = notebook(("labs-T1", "# T1\nmine \ud83d".replace("\ud83d", "\N{GRINNING FACE}")))
    once = carry(old, mine, new).text
    assert json.loads(once)["metadata"]["labs"] == {"version": 2} and "\N{GRINNING FACE}".encode() in once
    assert carry(old, once, new).text == once == carry(new, once, new).text
    assert carry(old, mine.replace("\N{GRINNING FACE}".encode(), b"\\ud83d"), new).text.count(b"\\ud83d") <= 1


@pytest.mark.parametrize(
    "cells",
    ["[1]", '[{"cell_type": "x"}]', '[{"cell_type": "raw", "source": 1}]', '[{"cell_type": "raw", "metadata": 1}]'],
)
def test_what_is_no_notebook_is_refused(cells):
    form = notebook(("a", "1"))
    bad = f'{{"nbformat": 4, "cells": {cells}}}'.encode()
    with pytest.raises(ValueError):
        carry(form, bad, form)
    assert not same(form, bad) and same(form, form)
