"""What is not found is never 0 points: a cell is found whatever became of it, or a person looks."""

import json

from made_grading import notebook

from labs.checks import kept
from teaching.grading import shown
from teaching.grading.handed import ROOT

NAME = "01_basic_concepts"
# (kind of the cell, id, source)
CELLS = [
    ("code", "a", "from labs.checks import check"),
    ("markdown", "labs-concepts-5", 'check("concepts.5", "a")'),
    ("raw", "b", "check('concepts.1', 2)"),
    ("code", "labs-concepts-14", "enough = 27"),  # split in two
    ("code", "labs-concepts-14", "check('''concepts.14''', enough)"),
    ("code", "labs-concepts-8", 'check("concepts.8", 1 / 0, 2)'),
    ("code", "c", 'check("slurm.1", 3)'),  # of another notebook
    ("code", "labs-concepts-15", 'check("concepts.15", "a")'),  # and a copy of it
    ("code", "labs-concepts-15", 'check("concepts.15", ...)'),
    ("code", "labs-concepts-13", "# check('concepts.13', 1)"),
    ("markdown", "x", "### T1: your answer\nThe ring is slow"),
    ("markdown", "labs-T1", "because of the links."),
]


def of_cells(*made):
    made = [{"cell_type": kind, "id": id, "source": source, "metadata": {}} for kind, id, source in made]
    return json.dumps({"cells": made}).encode()


def test_what_is_not_found_is_never_no_points(run):
    others = {f"notebooks/{NAME}.ipynb": of_cells(*CELLS), "others/Mine.ipynb": notebook('check("concepts.2", 5)')}
    found, told = run(NAME, **others)
    how = {id: (each.state, each.how) for id, each in found.items()}
    assert how["concepts.14"] == ("right", "outside")
    assert how["concepts.15"][0] != "open", "the last call that is filled in counts"
    for id, why in {
        "concepts.5": "turned into a markdown cell",
        "concepts.1": "turned into a raw cell",
        "concepts.8": "did not get to its check (ZeroDivisionError",
        "concepts.13": "nothing in it calls it",
        "concepts.2": "Mine.ipynb holds it",
    }.items():
        assert how[id] == ("open", "person") and why in found[id].text, (id, found[id])
    assert how["concepts.6"] == ("open", "outside") and "not in the notebook" in found["concepts.6"].text
    assert "concepts.15 is called in 2 cells: the last one that is filled in counts" in told
    for name, content in {"05.html": b"<html>check(&quot;concepts.6&quot;, 1)", "mine.docx": b"PK\0"}.items():
        found, _ = run(NAME, **{f"notebooks/{NAME}.ipynb": of_cells(), f"others/{name}": content})
        assert found["concepts.6"].how == "person"


def test_a_written_answer_is_found_by_its_mark_or_heading_or_a_person_reads_what_there_is(tmp_path):
    (path := tmp_path / "n.ipynb").write_bytes(of_cells(*CELLS))
    assert kept.answers(path)["T1"].startswith("### T1: your answer\nThe ring is slow")
    given = {f"notebooks/{NAME}.ipynb": of_cells(("markdown", "labs-T1", f"### T1: your answer\n{kept.PLACEHOLDER}"))}
    gone = {f"notebooks/{NAME}.ipynb": of_cells(("markdown", "y", "My answer to the first task."))}
    assert "T1" not in shown.misplaced(given, {}, ROOT) and "My answer" in shown.misplaced(gone, {}, ROOT)["T1"]
    assert shown.misplaced(given | {"others/n.docx": b"\0"}, {}, ROOT).keys() >= {"T2"}
