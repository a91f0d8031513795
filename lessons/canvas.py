"""Figures that can move: drawn within a blink, with margins in inches instead of a layout engine."""

from labs.show.figure import finished, plain_look

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
        plain_look(axis)
        axis.set_axisbelow(True)
    return figure, axes


def boxes(spans, colour, **look):
    """Boxes of timelines, as one artist: spans are (begin, end, row), each 0.84 high; colour: one, or one for each."""
    from matplotlib.collections import PolyCollection

    corners = [[(x, row - 0.42), (x, row + 0.42), (z, row + 0.42), (z, row - 0.42)] for x, z, row in spans]
    return PolyCollection(corners, **{"facecolor": colour, "edgecolor": "white"} | look)


def done(figure, text, kind="simulated"):
    """Stamp the figure with its kind, and give it its text alternative."""
    return finished(figure, text, kind)
