"""What every figure of a lesson has."""

import re

from legends import hidden

from labs.show.figure import png


def sound(figure, kind, *words):
    """Assert that a figure can be drawn, has its axes' units, says what it is (kind) and its numbers in words, writes
    numbers as students do, and that a legend hides nothing."""
    assert [word for word in words if word not in figure.alt] == [], figure.alt
    assert figure.get_supxlabel().partition(":")[0] == kind and png(figure).startswith(b"\x89PNG")
    axes = [axis for axis in figure.axes if axis.axison and axis.get_label() != "<colorbar>"]
    assert all(axis.get_xlabel() for axis in axes[-1:])
    assert hidden(figure) == [], "a legend lies over it"
    ticks = [text.get_text() for axis in axes for text in (*axis.get_xticklabels(), *axis.get_yticklabels())]
    assert not [text for text in ticks if re.search(r"\de[+-]?\d", text)]
    return figure


def lengths(axis):
    """The lengths of the bars of an axis."""
    return [bar.get_width() for bar in axis.patches]
