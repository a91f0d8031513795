"""Figures with sliders: `explore` shows controls and one picture that follows them.

The picture is an HTML image that is refilled, with its text alternative, so that it can be read by screen readers; the
controls are ipywidgets', which the keyboard moves. Nothing here computes: `draw` does, and should take below 100 ms.
"""

import base64
import html


def control(name, values):
    """One labelled control. values: (lowest, highest) or (lowest, highest, step) gives a slider, a list a drop-down.

    Whole numbers give a slider over whole numbers. The control begins at the first value. Raises ValueError for
    anything else; a widget is taken as it is.
    """
    import ipywidgets

    label, look = name.replace("_", " "), {"style": {"description_width": "8em"}, "layout": {"width": "34em"}}
    if isinstance(values, ipywidgets.Widget):
        return values
    if isinstance(values, list) and values:
        return ipywidgets.Dropdown(options=values, value=values[0], description=label, **look)
    if isinstance(values, tuple) and len(values) in (2, 3) and values[0] < values[1]:
        low, high, *step = values
        whole = all(isinstance(value, int) for value in values)
        slider = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
        default = 1 if whole else (high - low) / 20
        return slider(min=low, max=high, step=step[0] if step else default, value=low, description=label, **look)
    raise ValueError(f"{name}={values!r} is no control: give (lowest, highest), (lowest, highest, step) or a list.")


def picture(figure):
    """A matplotlib figure with `.alt` as HTML: one image with its text alternative."""
    from labs import plots

    data, alt = base64.b64encode(plots.png(figure)).decode(), html.escape(figure.alt, quote=True)
    return f'<img alt="{alt}" src="data:image/png;base64,{data}" style="max-width:100%;background:white">'


def explore(draw, **controls):
    """Controls above a picture: whenever one moves, `draw(**values)` draws the picture again.

    draw: function of the controls' values that returns a matplotlib Figure with `.alt`. An error in it is said in the
    picture's place, and the next value tries again. controls: see `control`; a name's underscores become blanks.
    Returns the widget (ipywidgets.VBox); its last child holds the picture. In a saved notebook without a kernel there
    is no widget: put a picture of the decisive cases beside it.
    """
    import ipywidgets

    made = {name: control(name, values) for name, values in controls.items()}
    shown = ipywidgets.HTML()

    def update(_=None):
        try:
            shown.value = picture(draw(**{name: widget.value for name, widget in made.items()}))
        except Exception as problem:  # in a callback a traceback would vanish
            text = html.escape(f"These values cannot be drawn ({type(problem).__name__}: {problem}). Try others.")
            shown.value = f'<p role="alert">{text}</p>'

    for widget in made.values():
        widget.observe(update, names="value")
    update()
    return ipywidgets.VBox([*made.values(), shown])
