"""Figures that can move: drawn within a blink, with margins in inches instead of a layout engine."""

import contextlib
import io

import numpy as np

from labs.show.figure import light, stamp

DPI = 90


def canvas(
    panels=1, width=5.0, height=3.2, *, left=0.7, right=0.2, bottom=0.6, top=0.45, rows=1, gap=0.75, share=False
):
    """(Figure, axes): `panels` beside each other, or `rows` under each other, each width x height inches.

    The margins, in inches, are those of each panel; `gap` is between rows. share: rows have one time axis.
    """
    from matplotlib.figure import Figure

    wide, high = width * panels, height * rows
    figure = Figure(figsize=(wide, high), dpi=DPI)
    axes = figure.subplots(rows, panels, squeeze=False, sharex=share).ravel()
    inner, tall = width - left - right, (high - bottom - top - gap * (rows - 1)) / rows
    for number, axis in enumerate(axes):
        row, column = divmod(number, panels)
        low = bottom + (rows - 1 - row) * (tall + gap)
        axis.set_position(((column * width + left) / wide, low / high, inner / wide, tall / high))
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
    stamp(figure, kind)
    figure.alt, figure.png = text, lambda: png(figure)
    return figure


_FRAMES = {}  # what _frame_key says of a figure -> its frames as pixels


def png(figure):
    """The figure as PNG bytes, fast where an earlier one had the same frames (spines, ticks, grid, axis labels).

    These take two thirds of the drawing, and mostly stay the same when a control moves: they are drawn once, kept as
    pixels, and put below what changes.
    """
    key = _frame_key(figure)
    if key not in _FRAMES:
        if len(_FRAMES) >= 128:
            _FRAMES.clear()
        _FRAMES[key] = _frames(figure)
    image = figure.figimage(_FRAMES[key], origin="upper", zorder=-1)
    try:
        with _hidden(part for axes in figure.axes for part in _frame(axes)):
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", pil_kwargs={"compress_level": 1})
            return buffer.getvalue()
    finally:
        image.remove()


def _frame(axis):
    return [axis.xaxis, axis.yaxis, axis.patch, *axis.spines.values()]


@contextlib.contextmanager
def _hidden(artists):
    """Meanwhile, these artists are not drawn."""
    visible = [artist for artist in artists if artist.get_visible()]
    try:
        for artist in visible:
            artist.set_visible(False)
        yield
    finally:
        for artist in visible:
            artist.set_visible(True)


def _frame_key(figure):
    """All that the frames of a figure depend on, as made by `canvas`."""
    key = [tuple(figure.get_size_inches()), figure.dpi]
    for axes in figure.axes:
        key.append((axes.get_position().bounds, axes.axison, axes.get_xlim(), axes.get_ylim()))
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            form, text = axis.get_major_formatter(), axis.get_major_ticks(1)[0].label1
            ticks = tuple(axis.get_majorticklocs()), type(form), tuple(getattr(form, "seq", ()))
            look = text.get_visible(), text.get_fontsize(), axis.get_tick_params().get("gridOn")
            key.append((axis.get_scale(), axis.get_label_text(), *ticks, *look))
    return tuple(key)


def _frames(figure):
    """The frames of all axes as pixels (height, width, 4)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    parts = [part for axes in figure.axes for part in axes.get_children() if part not in _frame(axes)]
    with _hidden([*parts, *figure.texts, *figure.legends]):
        drawn = FigureCanvasAgg(figure)
        drawn.draw()
        return np.array(drawn.buffer_rgba())
