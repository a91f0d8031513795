"""The course as web pages: which outputs students may see, and that their pages give nothing away."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from tree import ROOT

from labs.blanks import BuildError
from teaching.author import hidden, web

BLANK = "...  # your code here"


def seen(*cells):
    """{number: whether open} of the cells of a notebook that students see; each is a code, or (solved, blank)."""
    both = [(cell, cell) if isinstance(cell, str) else cell for cell in cells]
    made = [
        new_notebook(cells=[new_code_cell(texts[form], id=str(number)) for number, texts in enumerate(both)])
        for form in (0, 1)
    ]
    return {int(number): open for number, open in web.shown(*made).items()}


SEEN = [
    (["plots.show(figure)"], {0: True}),
    ([("x = 3", f"x = {BLANK}"), "print(2)", "print(x)"], {1: True}),
    ([("x = 3", f"x = {BLANK}"), "y = x + 1", "print(y)"], {}),
    ([("def f():\n    return 1", f"def f():\n    {BLANK}"), "print(f())"], {}),
    ([("mend()", "broken()\nx = 2"), "print(x)"], {}),
    ([("n = 3\nrows = read()", f"n = {BLANK}\nrows = read()"), "tables.show(rows)"], {1: True}),
    ([("script = 'scripts/a.py'", f"script = {BLANK}"), "show(run(script))"], {1: True}),
    (["check('1', x)", "reflect('T1')", "if answered('1'):\n    print(3)"], {}),
    (["predict('1', x)", "show(a)", "outcome('1', value)", "show(value)", "show(b)"], {1: False, 3: False, 4: True}),
    (["rows = 1", "predict('1', x)", "outcome('1', plots.f(rows))", "tables.show(rows)"], {0: True, 3: False}),
    (["from labs import report", "made = report.make()", "tables.show(made.tasks)"], {0: True}),
]


@pytest.mark.parametrize(("cells", "expected"), SEEN)
def test_students_see_the_outputs_that_no_blank_and_no_prediction_is_behind(cells, expected):
    assert seen(*cells) == expected


@pytest.fixture(scope="module")
def every():
    return web.pairs(ROOT)


@pytest.fixture(scope="module")
def pages(every):
    return web.pages(ROOT, "students", every=every)


def told(name, content):
    """The lines of a page as a reader sees them, with the outputs of a notebook."""
    if not name.endswith(".ipynb"):
        return list(map(hidden.normal, content.split("\n"))) if isinstance(content, str) else []
    cells = json.loads(content)["cells"]
    shown = [line for cell in cells for output in cell.get("outputs", ()) for line in web.lines(whole(output))]
    return [*map(hidden.normal, hidden.told(name, content.encode()).split("\n")), *shown]


def whole(output):
    """An output with its texts in one piece."""
    parts = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    return {"text": "".join(output.get("text", "")), "data": parts}


def test_no_page_for_students_shows_a_solution_or_what_a_good_answer_holds(pages):
    secret = hidden.secrets(ROOT) | web.criteria()
    assert len(secret) > 700
    assert [
        (name, secret[line]) for name, content in pages.items() for line in told(name, content) if line in secret
    ] == []


def test_the_pages_hold_figures_and_folded_ones(pages):
    cells = [cell for name in pages if name.endswith(".ipynb") for cell in json.loads(pages[name])["cells"]]
    given = [cell for cell in cells if cell.get("outputs")]
    assert len(given) > 100 and len([cell for cell in given if cell["metadata"].get("tags") == ["hide-output"]]) > 20
    text = json.dumps([cell["source"] for cell in given])
    assert "predict(" not in text and "outcome(" not in text and "your code here" not in text


def test_students_get_no_page_for_instructors(pages):
    assert {name for name in pages if name.startswith("docs/")} >= {"docs/students/report.md", "docs/jupyterlab.png"}
    assert not [name for name in pages if "nstructors" in name or "CONTRIBUTING" in name]
    assert "nstructors" not in pages["index.md"]


def test_instructors_get_all_solutions(every):
    pages = web.pages(ROOT, "instructors", lambda name: name == "notebooks/00_start_here.ipynb", every)
    cells = json.loads(pages["notebooks/00_start_here.ipynb"])["cells"]
    assert all(cell["outputs"] for cell in cells if "check(" in "".join(cell["source"]) and cell["cell_type"] == "code")
    assert [name for name in pages if name.endswith(".ipynb")] == ["notebooks/00_start_here.ipynb"]
    assert "docs/instructors/grading.md" in pages and "CONTRIBUTING.md" in pages


def test_an_output_with_a_line_of_a_solution_is_found():
    table = new_output("display_data", {"text/html": "<table><tr><td>+</td><td>a &lt; b</td></tr></table>"})
    assert "a < b" in web.lines(table)
    assert web.lines(new_output("stream", text="x\n    y = 3")) == ["x", "y = 3"]


def test_a_solution_that_was_not_executed_as_it_stands_is_refused(tmp_path):
    (tmp_path / "solutions").mkdir()
    ran = new_notebook(cells=[new_markdown_cell("# A", id="a"), new_code_cell("x = 1", id="b")])
    nbformat.write(ran, tmp_path / "solutions/01_a.ipynb")
    assert web.outputs(tmp_path, "01_a", ran) == {"b": []}
    ran.cells[1].source = "x = 2"
    with pytest.raises(BuildError, match="01_a.ipynb was not executed as its source stands"):
        web.outputs(tmp_path, "01_a", ran)
