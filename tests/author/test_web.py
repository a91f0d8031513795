"""The course as web pages: those for students give nothing away, those for instructors show what was executed."""

import json

import pytest
from tree import ROOT

from labs.blanks import BuildError
from teaching.author import hidden, web


def test_students_see_blank_notebooks_and_instructors_the_executed_solutions_as_their_sources_stand():
    pages = web.pages(ROOT, "students", every=(every := web.pairs(ROOT)))
    texts = {name: text.encode() for name, text in pages.items() if isinstance(text, str)}
    assert len(texts) > 20 and list(hidden.leaks(texts, hidden.secrets(ROOT))) == []
    cells = [cell for name in pages if name.endswith(".ipynb") for cell in json.loads(pages[name])["cells"]]
    assert len(cells) > 300 and not any(cell.get("outputs") for cell in cells)
    assert {"docs/students/runs.md", "docs/jupyterlab.png"} <= pages.keys() and "nstructors" not in pages["index.md"]
    assert not [name for name in pages if "nstructors" in name or "CONTRIBUTING" in name]
    start, name = "notebooks/00_start_here.ipynb", "00_start_here"
    pages = web.pages(ROOT, "instructors", {name: every[name]})
    code = [cell for cell in json.loads(pages[start])["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in code if "check(" in "".join(cell["source"]))
    assert "docs/instructors/grading.md" in pages and "CONTRIBUTING.md" in pages
    every[name][0].cells[-1].source += " "
    with pytest.raises(BuildError, match=f"{name}.ipynb: is not what its source gives"):
        web.pages(ROOT, "instructors", {name: every[name]})
