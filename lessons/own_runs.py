"""What the course asks of the runs that a student has measured: those of the study, and a figure of them.

The functions that say something yield cases, as a judge does.
"""

import math
import re

import numpy as np

from labs.checks.reading import near
from labs.results.run import Run

NOT_YOURS = "was not measured by you"
CURVES = {"epoch_seconds": "seconds per epoch", "images_per_second": "images per second", "speedup": "speedup"}


def no_runs(runs):
    """Case of something that is not the runs of a study."""
    wrong = not isinstance(runs, list) or not runs or not all(isinstance(run, Run) for run in runs)
    yield wrong, "Give the runs that `results.load(...)` returns."


def not_yours(own, runs):
    """Cases of runs `own` that were not measured here, and of any that did not end."""
    for run in own:
        foreign = f"{run.source} {NOT_YOURS}: give the runs of the jobs that you ran yourself."
        yield run.kind != "measured", foreign
    for run in runs:
        yield run.failure or run.truncated, f"{run.source} did not finish: look into its .err."


def no_plots(figure):
    """Cases of a figure without three plots, or without labels on their axes."""
    axes = list(getattr(figure, "axes", []))[:3]
    yield len(axes) < 3, f"The figure has {len(axes)} of 3 plots: epoch time, images/second and speedup."
    labelled = all(_label(axis, "x") and _label(axis, "y") for axis in axes)
    yield not labelled, "An axis has no label: what is shown, and in which unit?"
    named = [re.search(r"worker|gpu|core|device|replica|process|rank", _label(axis, "x").lower()) for axis in axes]
    yield not all(named), "An x axis does not say that it shows the number of workers."


def _label(axis, which):
    """The label of an axis, "x" or "y": its own one, or else that of its whole figure."""
    return getattr(axis, f"get_{which}label")() or getattr(axis.figure, f"get_sup{which}label")()


def no_curve(figure, runs, whose):
    """Cases of a figure without one of CURVES of these runs over the workers, out of sight, or with another one's label
    or unit.

    Lines, points and bars are curves, also points and bars that were drawn one by one. whose: a word on the runs; if it
    is a network's, its legend must be of the curve.
    """
    workers = sorted(run.workers for run in runs)
    drawn = {axis: list(_points(axis, workers)) for axis in figure.axes}
    for key, what in CURVES.items():
        values = {run.workers: getattr(run, key).value or math.nan for run in runs}
        showing = {axis: shown for axis, points in drawn.items() if (shown := _shown(points, values))}
        if not showing:
            upside = {number: 1 / value for number, value in values.items()}
            turned = key == "speedup" and any(_shown(points, upside) for points in drawn.values())
            yield turned, "The speedup is upside down: a faster run must lie above 1."
            at = ", ".join(map(str, workers))
            yield True, f"No curve shows the {what} of {whose} at {at} on the x axis, ordered by workers."
        spans = [np.multiply(sorted(axis.get_ylim()), (1 - 1e-6, 1 + 1e-6)) for axis in showing]
        both = zip(showing.values(), spans, strict=True)
        hidden = not any(_shown([one for one in all_ if low <= one[1] <= high], values) for all_, (low, high) in both)
        between = f"from {spans[0][0]:.3g} to {spans[0][1]:.3g}"
        yield hidden, f"The y axis {between} leaves {what} of {whose} out of sight."
        labels = [_label(axis, "y") for axis in showing]
        said = f"The axis with the {what} of {whose} says {labels[0]!r}"
        asked = "Name in words what it shows, and its unit (a speedup, a ratio of two times, has none)."
        yield not any(_is_label(label, key) for label in labels), f"{said}. {asked}"
        if whose in {run.model for run in runs}:
            # Also the names of another network that does as well.
            of = [name for shown in showing.values() for *_, name in shown if name]
            yield of and not any(whose in name for name in of), f"The legend gives {whose}'s {what} another name."


_RATE = r"(im[aá]?g|sample)\w*.*(/|\bper\b)\s*s|(im[aá]?g|sample).*s\W{0,3}[-⁻−]|1\s*/\s*s"
_NO_EPOCH = r"\bper s|\bepochs\s*/|1\s*/\s*s|^(?!.*epoch).*(\bstep|(/|\bper)\s*(batch|im|sample))"
_TIME = r"([(\[]\s*(m?s|secs?|seconds?)\s*[)\]]|\bin (m?s|secs?|seconds?)\b(?!\s*/))"
_SAYS = {  # what the label of an axis says, and what it does not say
    "epoch_seconds": (r"(?<![\w^-])(s|secs?|seconds?)(?![\w^])", rf"{_RATE}|{_NO_EPOCH}"),
    "images_per_second": (_RATE, "^$"),
    # "speedup (s)" ends with the only unit in it, "T1 (s) / T2 (s)" is a ratio
    "speedup": (r"speed|s\s*\(p\)|t\s*\(1\)|as fast", rf"{_RATE}|^((?!{_TIME}).)*{_TIME}\s*$"),
}


def _is_label(label, key):
    """Whether an axis' label says that a quantity of CURVES is shown, in its unit."""
    says, other = _SAYS[key]
    name = "_" in label and label.isidentifier()  # in the student's code
    text = label.lower().replace("_", " ")
    return not name and re.search(says, text) is not None and re.search(other, text) is None


def _shown(points, values):
    """Those of the points (x, y, name) that show {x: y}; none where one of these values is not shown."""
    found = [[one for one in points if near(one[0], at) and near(one[1], y, 0.02)] for at, y in values.items()]
    return sum(found, []) if all(found) else []


def _points(axis, workers):
    """(x, y, name in the legend or "") of each point of a line, cloud of points or bar on an axis.

    What stands beside a number of workers counts as being there. A line that goes to and fro shows nothing.
    """
    places = _places(axis) or {number: number for number in workers}
    named = {id(part): each.get_label() for each in axis.containers for part in each if hasattr(part, "get_label")}
    written = [text.get_text() for text in getattr(axis.get_legend(), "texts", ())]
    if not set(written) <= {*named.values(), *(artist.get_label() for artist in (*axis.lines, *axis.collections))}:
        named |= {id(line): text for line, text in zip(axis.lines, written, strict=False)}  # axis.legend([text, ...])
    shown = [(cloud, cloud.get_offsets()) for cloud in axis.collections]
    for line in axis.lines:
        steps = np.diff(line.get_xydata()[:, 0])
        if (steps >= 0).all() or (steps <= 0).all():
            shown.append((line, line.get_xydata()))
    for bar in [bar for each in axis.containers for bar in getattr(each, "patches", ())]:
        shown.append((bar, [(bar.get_x() + bar.get_width() / 2, bar.get_height())]))
    for artist, points in shown:
        name = named.get(id(artist), artist.get_label())
        for x, y in points:
            place = min(places, key=lambda place: abs(place - x))
            yield places[place] if abs(place - x) < 0.5 else x, y, "" if name.startswith("_") else name


def _places(axis):
    """{position: number} of the ticks of an x axis whose labels are given as texts, such as "1", "2 GPUs"."""
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    if not isinstance(axis.xaxis.get_major_formatter(), FixedFormatter | FuncFormatter | StrCategoryFormatter):
        return {}
    ticks = zip(axis.get_xticks(), axis.get_xticklabels(), strict=False)
    texts = [(place, re.search(r"\d+", text.get_text())) for place, text in ticks]
    return {place: int(found[0]) for place, found in texts if found}
