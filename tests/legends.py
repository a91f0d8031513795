"""What a legend hides: the curves, points and bars of a figure that lie below it."""

import numpy as np

from labs.show.figure import png


def hidden(figure):
    """[(title of the axis, what a curve, point or bar below its legend is called)], as the figure is drawn."""
    png(figure)
    found = []
    for axis in figure.axes:
        if legend := axis.get_legend():
            below = legend.get_window_extent()
            found += [(axis.get_title(), label) for label, places in _drawn(axis) if below.count_contains(places)]
    return found


def _drawn(axis):
    """(What shows data is called, places in pixels that it goes through). A line across the whole axis is seen beside
    any legend."""
    for line in axis.lines:
        if line.get_transform() == axis.transData:
            places = line.get_transform().transform(line.get_xydata())
            yield line.get_label(), places if line.get_linestyle() == "None" else _between(places)
    for patch in axis.patches:
        yield patch.get_label(), patch.get_window_extent().corners()
    for collection in axis.collections:
        yield collection.get_label(), axis.transData.transform(collection.get_offsets())


def _between(places, steps=50):
    share = np.linspace(0, 1, steps)[:, None]
    pairs = zip(places[:-1], places[1:], strict=True)
    return np.concatenate([places[:1], *(begin + share * (end - begin) for begin, end in pairs)])
