"""Every widget of every student notebook: its keys move its picture, in JupyterLab as `make lab` starts it.

A notebook that imports TensorFlow runs up to its last widget only; the others run from top to bottom.
"""

import re

import pytest

from . import lab
from .keys import Widget

WIDGETS = lab.widgets()
CASES = [(name, number) for name, calls in WIDGETS.items() for number in calls]


def only_to_the_last_widget(name):
    heavy = any(kind == "code" and re.search(r"\bimport tensorflow\b", text) for kind, text in lab.cells(name))
    return max(WIDGETS[name]) if heavy else None


@pytest.fixture
def run(open_notebook):
    """Function: the notebook of this name, opened and run once; .counts are the execution counts of its code cells."""

    def opened(name):
        notebook = open_notebook(name)
        if notebook.counts is None:
            notebook.run(only_to_the_last_widget(name))
        return notebook

    return opened


def test_there_are_widgets_to_test():
    assert len(CASES) >= 1, "no student notebook calls widgets.explore: nothing would be tested"


@pytest.mark.parametrize("name", WIDGETS)
def test_it_runs_from_top_to_bottom(run, name):
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
