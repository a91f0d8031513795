"""Figures with sliders: `explore` shows controls and one picture that follows them. And lines to tick: `checklist`.

The picture is an HTML image that is refilled, with its text alternative, so that it can be read by screen readers; the
controls are ipywidgets', which the keyboard moves. Nothing here computes: `draw` does, and should take below 100 ms.
The same `draw` gives the picture that stays where there is no kernel: in a saved notebook, on paper.
"""

import contextlib
import html
import inspect
import io
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import ipywidgets

from labs.show.figure import bundle

# JupyterLab takes the arrow keys from a closed drop-down, to walk through the cells, unless the element says so.
_KEYS_STAY = (
    "this.closest('.widget-vbox').querySelectorAll('select')"
    ".forEach(menu => menu.setAttribute('data-lm-suppress-shortcuts', ''))"
)


def control(name: str, values: tuple | list, first: Any = None) -> ipywidgets.ValueWidget:
    """One labelled control. values: (lowest, highest) or (lowest, highest, step) gives a slider; a list of numbers a
    slider over these, another list a drop-down.

    Whole numbers give a slider over whole numbers. The control begins at `first` if that is one of the values, else at
    the first value. Raises ValueError for anything else.
    """
    label, look = name.replace("_", " "), {"style": {"description_width": "8em"}, "layout": {"width": "34em"}}
    if isinstance(values, list) and values:
        begin = first if first in values else values[0]
        numbers = all(isinstance(value, int | float) for value in values) and len(values) > 1
        menu = ipywidgets.SelectionSlider if numbers else ipywidgets.Dropdown
        return menu(options=values, value=begin, description=label, **look)
    if isinstance(values, tuple) and len(values) in (2, 3) and values[0] < values[1]:
        low, high, *step = values
        whole = all(isinstance(value, int) for value in values)
        slider = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
        (step,) = step or [1 if whole else (high - low) / 20]
        begin = first if isinstance(first, int | float) and low <= first <= high else low
        return slider(min=low, max=high, step=step, value=begin, description=label, **look)
    raise ValueError(f"{name}={values!r} is no control: give (lowest, highest), (lowest, highest, step) or a list.")


class Still(ipywidgets.VBox):
    """Its bundle also holds `still`, what is shown where there are no widgets."""

    still = {}

    def _repr_mimebundle_(self, **options):
        return (super()._repr_mimebundle_(**options) or {}) | self.still

    def __repr__(self):
        return self.still.get("text/plain") or super().__repr__()


def explore(draw: Callable, **controls: tuple | list) -> ipywidgets.VBox:
    """Controls in two columns above a picture: whenever one moves, `draw(**values)` draws the picture again.

    draw: function of the controls' values that returns a matplotlib Figure with `.alt`; a control begins at the default
    value of its parameter. An error in it is said in the picture's place, and the next value tries again. controls: see
    `control`; a name's underscores become blanks. Returns the widget (an ipywidgets.VBox); its last child holds the
    picture. A saved notebook keeps the picture that was there when the cell was run.
    """
    defaults = {name: parameter.default for name, parameter in inspect.signature(draw).parameters.items()}
    made = {name: control(name, values, defaults.get(name)) for name, values in controls.items()}
    shown = ipywidgets.HTML(layout={"width": "100%"})

    def update(_=None):
        try:
            box.still = bundle(draw(**{name: widget.value for name, widget in made.items()}))
            shown.value = box.still["text/html"][:-1] + f' onload="{_KEYS_STAY}">'
        except Exception as problem:  # in a callback a traceback would vanish
            text = html.escape(f"These values cannot be drawn ({type(problem).__name__}: {problem}). Try others.")
            shown.value = f'<p role="alert">{text}</p>'

    for widget in made.values():
        widget.observe(update, names="value")
    box = Still([*made.values(), shown], layout={"flex_flow": "row wrap"})
    update()
    return box


_WRAP = "<style>.labs-checklist .widget-label-basic {white-space: normal; line-height: 1.4}</style>"


def checklist(
    title: str, lines: Sequence[str], ticked: Collection[str], keep: Callable[[str, bool], object], note: str
) -> ipywidgets.VBox:
    """Lines to tick below a title. Returns the widget.

    ticked: those of the lines that are ticked already
    keep: is called with a line, and whether it is ticked now, at each tick; what it prints is shown below the lines
    note: a sentence below them

    Text in backticks is code. A saved notebook keeps the list as it was when the cell was run.
    """
    said = ipywidgets.HTML()
    boxes = []
    for line in lines:
        look = {"indent": False, "layout": {"width": "auto", "height": "auto"}, "description_allow_html": True}
        boxes.append(ipywidgets.Checkbox(value=line in ticked, description=_coded(line), **look))

        def changed(change, line=line):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                keep(line, change["new"])
            said.value = f'<p role="alert">{html.escape(text)}</p>' if (text := printed.getvalue()) else ""

        boxes[-1].observe(changed, names="value")
    head, foot = ipywidgets.HTML(f"{_WRAP}<b>{html.escape(title)}</b>"), ipywidgets.HTML(html.escape(note))
    box = Still([head, *boxes, foot, said])
    box.add_class("labs-checklist")
    marks = [f"[{'x' if line in ticked else ' '}]" for line in lines]
    items = "".join(f"<li>{mark} {_coded(line)}</li>" for mark, line in zip(marks, lines, strict=True))
    plain = [title, *(f"{mark} {line}" for mark, line in zip(marks, lines, strict=True)), note]
    box.still = {"text/html": f"<b>{html.escape(title)}</b><ul>{items}</ul>{html.escape(note)}"}
    box.still["text/plain"] = "\n".join(plain)
    return box


def _coded(line):
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(line))
