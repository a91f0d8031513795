"""Every widget of every student notebook: its keys move its picture, in JupyterLab as `make lab` starts it.

Of each notebook only the cells run that its widgets need. That all of them run from top to bottom is shown without a
browser by tests/notebooks.
"""

import ast
import re

import pytest

from . import lab
from .keys import Widget

WIDGETS = lab.widgets()
LATER = pytest.mark.more("widgets of the kinds that notebooks 01, 02b, 07, 33 and 34 show, on pages of their own")
LEFT = ("02_averages", "26_where_a_step_goes", "31_write_the_schedule", "32_zero_schedules")
NAMES = [pytest.param(name, marks=LATER) if name in LEFT else name for name in WIDGETS]
CASES = [
    pytest.param(name, number, marks=LATER) if name in LEFT else (name, number)
    for name, calls in WIDGETS.items()
    for number in calls
]


def only(name):
    """Numbers of the cells to run: those with widgets, and before them those that import or make what they need."""
    needed, chosen = set(), []
    for number, (kind, text) in reversed([*enumerate(lab.cells(name))]):
        if kind != "code" or not text.strip():
            continue
        nodes = [*ast.walk(ast.parse(text))]
        used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        made = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        made |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        made |= {(alias.asname or alias.name).partition(".")[0] for node in nodes
                   if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}  # fmt: skip
        if number in WIDGETS[name] or made & needed:
            chosen.append(number)
            needed = (needed - made) | used
    return chosen[::-1]


@pytest.fixture
def run(open_notebook):
    """Function: the notebook of this name, opened and run once; .counts are the execution counts of its code cells."""

    def opened(name):
        notebook = open_notebook(name)
        if notebook.counts is None:
            notebook.run(only(name))
        return notebook

    return opened


def test_there_are_widgets_to_test():
    assert len(CASES) >= 1, "no student notebook calls widgets.explore: nothing would be tested"


@pytest.mark.parametrize("name", NAMES)
def test_it_runs(run, name):
    notebook = run(name)
    assert notebook.problems() == []
    assert notebook.counts == [*range(1, len(notebook.counts) + 1)]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_every_control_moves_the_picture_by_keyboard(run, name, number, kept, latency):
    notebook, label = run(name), lab.label(name, number)
    widget = Widget(notebook, number, label)
    assert widget.controls
    labels = [control.label for control in widget.controls]
    assert widget.tab() == labels, "Tab goes from control to control, in their order"
    widget.box.screenshot(path=kept / f"{label}_start.png")
    assert widget.box.bounding_box()["height"] < 560, "more than a screen of 768 lines has left"
    problems = []
    for control in widget.controls:
        presses = widget.change(control)
        problems += [presses[-1].problem] if presses[-1].problem else []
        widget.box.screenshot(path=kept / f"{label}_{re.sub(r'[^A-Za-z0-9]+', '-', control.label)}.png")
        times = latency.setdefault(label, {}).setdefault(control.label, [])
        times += [press.seconds for press in presses if press.seconds is not None]
    assert not problems, "\n".join(problems)
    assert notebook.problems() == []


@pytest.mark.parametrize("name", NAMES)
def test_no_request_leaves_the_machine(run, name):
    assert run(name).outside == []
