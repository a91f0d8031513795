"""Figures that can move: drawn within a blink, with margins in inches instead of a layout engine."""

import io

import numpy as np

from labs.show.figure import finished, light

DPI = 90


def canvas(
    panels=1, width=5.0, height=3.2, *, left=0.7, right=0.2, bottom=0.6, top=0.45, rows=1, gap=0.75, share=False
):
    """(Figure, axes): `panels` beside each other, or `rows` under each other, each width x height inches.

    The margins, in inches, are those of each panel; `gap` is between rows. share: rows have one time axis.
    """
    from matplotlib.figure import Figure

    wide, high = width * panels, height * rows
    inner, tall = width - left - right, (high - bottom - top - gap * (rows - 1)) / rows
    margins = {"left": left / wide, "right": 1 - right / wide, "wspace": (left + right) / inner}
    margins |= {"bottom": bottom / high, "top": 1 - top / high, "hspace": gap / tall}
    figure = Figure(figsize=(wide, high), dpi=DPI)
    axes = figure.subplots(rows, panels, squeeze=False, sharex=share, gridspec_kw=margins).ravel()
    for axis in axes:
        axis.xaxis.set_label_coords(0.5, -(bottom - 0.3) / tall)  # given, they need not be measured at each drawing
        axis.yaxis.set_label_coords(-(left - 0.27) / inner, 0.5)
        light(axis)
        axis.set_axisbelow(True)
    return figure, axes


def boxes(spans, colour, **look):
    """Boxes of timelines, as one artist: spans are (begin, end, row), each 0.84 high; colour: one, or one for each."""
    from matplotlib.collections import PolyCollection

    corners = [[(x, row - 0.42), (x, row + 0.42), (z, row + 0.42), (z, row - 0.42)] for x, z, row in spans]
    return PolyCollection(corners, **{"facecolor": colour, "edgecolor": "white"} | look)


def done(figure, text, kind="simulated"):
    """Stamp the figure with its kind, and give it its text alternative."""
    figure.png = lambda: png(figure)
    return finished(figure, text, kind)


_FRAMES = {}  # what _frame_key says of a figure -> its frames as pixels


def png(figure):
    """The figure as PNG bytes, fast where an earlier one had the same frames (spines, ticks, grid, axis labels).

    These take two thirds of the drawing, and mostly stay the same when a control moves: they are drawn once, kept as
    pixels, and put below what changes.
    """
    framed = [axes for axes in figure.axes if axes.axison]
    key = _frame_key(figure, framed)
    if key not in _FRAMES:
        if len(_FRAMES) >= 128:
            _FRAMES.clear()
        _FRAMES[key] = _frames(figure, framed)
    image = figure.figimage(_FRAMES[key], origin="upper", zorder=-1)
    for axes in framed:
        axes.set_axis_off()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", pil_kwargs={"compress_level": 1})
    for axes in framed:
        axes.set_axis_on()
    image.remove()
    return buffer.getvalue()


def _frame_key(figure, framed):
    """All that the frames of a figure depend on, as made by `canvas`."""
    key = [*figure.get_size_inches()]
    for axes in framed:
        key += axes.get_position().bounds
        for axis in (axes.xaxis, axes.yaxis):
            key += [
                axis.get_scale(),
                axis.get_label_text(),
                *axis.get_view_interval(),
                axis.get_tick_params().get("gridOn"),
            ]
            ticks = axis.get_majorticklocs()
            key += [*ticks, *axis.get_major_formatter().format_ticks(ticks)]
    return tuple(key)


def _frames(figure, framed):
    """The frames of these axes as pixels (height, width, 4)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn = FigureCanvasAgg(figure)
    figure.patch.draw(drawn.get_renderer())
    for axes in framed:
        for part in (axes.patch, axes.xaxis, axes.yaxis, *axes.spines.values()):
            part.draw(drawn.get_renderer())
    return np.array(drawn.buffer_rgba())
