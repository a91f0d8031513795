"""Figures with sliders: `explore` shows controls and one picture that follows them.

The picture is an HTML image that is refilled, with its text alternative, so that it can be read by screen readers; the
controls are ipywidgets', which the keyboard moves. Nothing here computes: `draw` does, and should take below 100 ms.
The same `draw` gives the picture that stays where there is no kernel: in a saved notebook, on paper.
"""

import html
import inspect
from collections.abc import Callable
from typing import Any

import ipywidgets

from labs.show.figure import bundle

# JupyterLab takes the arrow keys from a closed drop-down, to walk through the cells, unless the element says so.
_KEYS_STAY = (
    "this.closest('.widget-vbox').querySelectorAll('select')"
    ".forEach(menu => menu.setAttribute('data-lm-suppress-shortcuts', ''))"
)


def control(name: str, values: tuple | list, first: Any = None) -> ipywidgets.ValueWidget:
    """One labelled control. values: (lowest, highest) whole numbers, or (lowest, highest, step), give a slider; a list
    of numbers a slider over these, another list a drop-down.

    The control begins at `first` if that is one of the values, else at the first value.
    """
    look = {"style": {"description_width": "8em"}, "layout": {"width": "34em"}, "description": name.replace("_", " ")}
    if isinstance(values, list):
        numbers = all(isinstance(value, int | float) for value in values) and len(values) > 1
        menu = ipywidgets.SelectionSlider if numbers else ipywidgets.Dropdown
        return menu(options=values, value=first if first in values else values[0], **look)
    low, high, step = (*values, 1)[:3]
    slider = ipywidgets.IntSlider if all(isinstance(value, int) for value in values) else ipywidgets.FloatSlider
    begin = first if isinstance(first, int | float) and low <= first <= high else low
    return slider(min=low, max=high, step=step, value=begin, **look)


class Still(ipywidgets.VBox):
    """Its bundle also holds `still`, what is shown where there are no widgets."""

    still = {}

    def _repr_mimebundle_(self, **options):
        return (super()._repr_mimebundle_(**options) or {}) | self.still

    def __repr__(self):
        return self.still.get("text/plain") or super().__repr__()


def explore(draw: Callable, **controls: tuple | list) -> ipywidgets.VBox:
    """Controls above a picture that follows them.

    Whenever one moves, `draw(**values)` draws the picture again.
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
