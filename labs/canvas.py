"""Figures that can move: drawn within a blink, with margins in inches instead of a layout engine."""

from labs import plots

DPI = 90


def canvas(panels=1, width=5.0, height=3.2, *, left=0.7, right=0.2, bottom=0.6, top=0.45, rows=1, gap=0.75,
           share=False):  # fmt: skip
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
        axis.grid(alpha=0.3)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def done(figure, text, kind="simulated"):
    """Stamp the figure with its kind, and give it its text alternative."""
    plots._stamp(figure, [{"kind": kind}])
    figure.alt = text
    return figure
