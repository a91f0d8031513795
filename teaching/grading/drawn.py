"""A matplotlib figure as data, as far as a judge looks at it: and a figure made anew from such data."""

import numpy as np

MOST = 200  # curves of an axis, points of a curve, texts


def described(figure):
    """Axes with labels, limits of y, lines, clouds, bars, ticks with texts, legend; as what JSON can hold."""
    return [_axis(axis) for axis in list(figure.axes)[:12]]


def _axis(axis):
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    labels = (axis.get_xlabel() or axis.figure.get_supxlabel(), axis.get_ylabel() or axis.figure.get_supylabel())
    formatted = isinstance(axis.xaxis.get_major_formatter(), FixedFormatter | FuncFormatter | StrCategoryFormatter)
    bars = [each for each in axis.containers if hasattr(each, "patches") and len(each)][:MOST]
    clouds = [each for each in axis.collections[:MOST] if len(each.get_offsets())]
    ticks = zip(axis.get_xticks(), axis.get_xticklabels(), strict=False) if formatted else ()

    def of_bars(each):
        middles = [bar.get_x() + bar.get_width() / 2 for bar in each]
        heights, widths = zip(*((bar.get_height(), bar.get_width()) for bar in each), strict=True)
        return [*map(_numbers, (middles, heights, widths)), str(each.get_label())]

    return {
        "labels": [str(label)[:MOST] for label in labels],
        "ylim": _numbers(axis.get_ylim()),
        "lines": [[*map(_numbers, each.get_data()), str(each.get_label())] for each in axis.get_lines()[:MOST]],
        "clouds": [[*map(_numbers, zip(*each.get_offsets(), strict=True)), str(each.get_label())] for each in clouds],
        "bars": list(map(of_bars, bars)),
        "ticks": [[float(place), text.get_text()] for place, text in ticks][:MOST],
        "legend": [text.get_text() for text in legend.texts][:MOST] if (legend := axis.get_legend()) else None,
    }


def _numbers(values):
    return [float(value) for value in np.asarray(list(values), float)[:MOST]]


def figure(axes):
    """The Figure that `described` described. Raises ValueError, TypeError, KeyError for data that describe none."""
    from matplotlib.figure import Figure

    made = Figure()
    for axis, said in zip(made.subplots(1, max(1, len(axes[:12])), squeeze=False)[0], axes, strict=False):
        axis.set(xlabel=str(said["labels"][0]), ylabel=str(said["labels"][1]), ylim=_numbers(said["ylim"]))
        for draw, curves in ((axis.plot, said["lines"]), (axis.scatter, said["clouds"])):
            for x, y, label in curves:
                draw(_numbers(x), _numbers(y), label=str(label))
        for x, y, width, label in said["bars"]:
            axis.bar(_numbers(x), _numbers(y), _numbers(width), label=str(label))
        if said["ticks"]:
            places, texts = zip(*said["ticks"], strict=True)
            axis.set_xticks(_numbers(places), [str(text) for text in texts])
        if said["legend"] is not None:
            axis.legend([str(text) for text in said["legend"]])
    return made if axes else Figure()
