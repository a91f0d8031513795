"""The list behind a written answer, driven by keyboard in a real JupyterLab: ticks are kept, and there again."""

import json

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, writes_json
from waiting import until

from labs.checks import tasks

NAME = "04_batch_and_rate"


@pytest.fixture(scope="module")
def notebook(course, open_notebook):
    """A notebook that holds an answer to T4 and the cell behind it."""
    mark = {"labs": {"id": "T4", "kind": "answer"}}
    cells = [
        new_markdown_cell("### T4: your answer\nBecause.", metadata=mark),
        new_code_cell('from labs.checks import reflect\n\nreflect("T4")'),
    ]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    text = writes_json(new_notebook(cells=cells, metadata={"kernelspec": kernel}))
    (course / f"notebooks/{NAME}.ipynb").write_text(text)
    opened = open_notebook(NAME)
    opened.run()
    return opened


def test_lines_are_ticked_by_keyboard_and_kept(course, notebook, kept):
    lines = tasks.task("T4").holds
    file = course / "notebooks/runs/progress.json"

    def ticked():
        return file.is_file() and json.loads(file.read_text())["items"].get("T4", {}).get("ticked")

    boxes = notebook.cell(1).get_by_role("checkbox")
    boxes.first.wait_for()
    assert boxes.count() == len(lines)
    assert [boxes.nth(n).is_checked() for n in range(len(lines))] == [False] * len(lines)
    boxes.first.focus()
    notebook.page.keyboard.press("Space")
    assert until(lambda: ticked() == lines[:1])
    notebook.page.keyboard.press("Tab")
    notebook.page.keyboard.press("Space")
    assert until(lambda: ticked() == lines[:2])
    notebook.cell(1).screenshot(path=kept / "04_checklist.png")
    notebook.page.set_viewport_size({"width": 700, "height": 1000})
    labels = notebook.cell(1).locator(".widget-checkbox label.widget-label-basic")
    cut = labels.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)")
    assert labels.count() == len(lines) and cut == [], "lines that are cut off"
    notebook.run([1])
    boxes.first.wait_for()
    assert [boxes.nth(n).is_checked() for n in range(len(lines))] == [n < 2 for n in range(len(lines))]
    assert notebook.problems() == [] and notebook.outside == []
