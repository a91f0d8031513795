"""Every widget of every student notebook: its keys move its picture, in JupyterLab as `make lab` starts it.

A notebook that starts trainings is run as far as that, and its widgets; the others run from top to bottom. That all of
them run from top to bottom is shown without a browser by tests/notebooks.
"""

import re

import pytest

from . import lab
from .keys import Widget

WIDGETS = lab.widgets()
CASES = [(name, number) for name, calls in WIDGETS.items() for number in calls]


def only(name):
    """Numbers of the cells to run, of a notebook that starts trainings; None for all cells of another."""
    code = {number: text for number, (kind, text) in enumerate(lab.cells(name)) if kind == "code"}
    starts = re.compile(r"\b(jobs\.(run|start)|study\.run|maxbatch\.search|breakdown\.measure)\(")
    first = next((number for number, text in code.items() if starts.search(text)), None)
    if first is None:
        return None
    last = max(WIDGETS[name])
    return [number for number, text in code.items() if number <= last and (number < first or number in WIDGETS[name])]


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


@pytest.mark.parametrize("name", WIDGETS)
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
    problems = []
    for control in widget.controls:
        presses = widget.change(control)
        problems += [presses[-1].problem] if presses[-1].problem else []
        widget.box.screenshot(path=kept / f"{label}_{re.sub(r'[^A-Za-z0-9]+', '-', control.label)}.png")
        times = latency.setdefault(label, {}).setdefault(control.label, [])
        times += [press.seconds for press in presses if press.seconds is not None]
    assert not problems, "\n".join(problems)
    assert notebook.problems() == []


@pytest.mark.parametrize("name", WIDGETS)
def test_no_request_leaves_the_machine(run, name):
    assert run(name).outside == []
