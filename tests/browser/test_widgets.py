"""Every widget of every student notebook: its keys move its picture, in JupyterLab as `make lab` starts it.

Of each notebook only the cells run that its widgets need. That all of them run from top to bottom is shown without a
browser by tests/notebooks.
"""

import symtable

import pytest

from . import lab
from .keys import Widget

WIDGETS = lab.widgets()
LATER = pytest.mark.more("widgets of the kinds that notebooks 01, 02, 33 and 34 show, on pages of their own")
LEFT = ("02_averages_and_rings", "26_where_a_step_goes", "31_write_the_schedule", "32_zero_schedules")


def only(name):
    """Numbers of the cells to run: those with widgets, and before them those that import or make what they need."""
    needed, chosen = set(), []
    for number, (kind, text) in reversed([*enumerate(lab.cells(name))]):
        if kind == "code":
            symbols = symtable.symtable(text, name, "exec").get_symbols()
            made = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
            if number in WIDGETS[name] or made & needed:
                chosen.append(number)
                needed = (needed - made) | {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    return chosen[::-1]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=LATER if name in LEFT else ()) for name in WIDGETS] or [None], ids=str
)
def test_every_control_moves_its_picture_by_keyboard_and_no_request_leaves_the_machine(open_notebook, name):
    notebook, problems = open_notebook(name), []
    notebook.run(only(name))
    assert notebook.problems() == [] and notebook.counts == [*range(1, len(notebook.counts) + 1)]
    for number in WIDGETS[name]:
        widget = Widget(notebook, number, f"{name}, cell {number}")
        assert widget.controls
        labels = [control.label for control in widget.controls]
        assert widget.tab() == labels, "Tab goes from control to control, in their order"
        assert widget.box.bounding_box()["height"] < 560, "more than a screen of 768 lines has left"
        problems += [(widget.name, widget.change(control)[-1].problem) for control in widget.controls]
    assert [each for each in problems if each[1]] == [] and notebook.problems() == notebook.outside == []
