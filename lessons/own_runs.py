"""What the course asks of the runs that a student has measured: those of the study, and a figure of them.

The functions that say something yield cases, as a judge does.
"""

import re

from labs.checks.reading import near
from labs.results.run import Run

CURVES = {"epoch_seconds": "seconds per epoch", "images_per_second": "images per second", "speedup": "speedup"}


def no_runs(runs):
    """Case of something that is not the runs of a study."""
    wrong = not isinstance(runs, list) or not runs or not all(isinstance(run, Run) for run in runs)
    yield wrong, "Give the runs that `results.load(...)` returns."


def not_yours(own, runs):
    """Cases of runs `own` that were not measured here, and of any that did not end."""
    for run in own:
        foreign = f"{run.source} was not measured by you: give the runs of the jobs that you ran yourself."
        yield run.kind != "measured", foreign
    for run in runs:
        yield run.failure or run.truncated, f"{run.source} did not finish: look into its .err."


def no_plots(figure):
    """Cases of a figure without three plots, or without labels on their axes."""
    axes = list(getattr(figure, "axes", []))
    has = {0: "no plot", 1: "1 plot"}.get(len(axes), f"{len(axes)} plots")
    yield len(axes) < 3, f"The figure has {has}. Draw three: epoch time, images/second and speedup."
    labelled = all(_label(axis, "x") and _label(axis, "y") for axis in axes[:3])
    yield not labelled, "An axis has no label: what is shown, and in which unit?"
    named = all(
        re.search(r"worker|gpu|core|device|replica|process|rank", _label(axis, "x").lower()) for axis in axes[:3]
    )
    yield not named, "An x axis does not say that it shows the number of workers."


def _label(axis, which):
    """The label of an axis, "x" or "y": its own one, or else that of its whole figure."""
    return getattr(axis, f"get_{which}label")() or getattr(axis.figure, f"get_sup{which}label")()


def no_curve(figure, runs, whose):
    """Cases of a figure without one of CURVES of these runs over the workers, out of sight, or with another one's label
    or unit.

    Lines, points and bars are curves, also points and bars that were drawn one by one. whose: a word on the runs; if it
    is a network's, its legend must be of the curve.
    """
    runs = sorted(runs, key=lambda run: run.workers)
    workers, networks = [run.workers for run in runs], {run.model for run in runs}
    drawn = [(axis, *curve) for axis in figure.axes for curve in _gathered(_curves(axis, workers))]
    for key, what in CURVES.items():
        values = [getattr(run, key).value for run in runs]
        alike = [(axis, ys, name) for axis, xs, ys, name in drawn if _alike(ys, values) and _alike(xs, workers)]
        if not alike:
            turned = key == "speedup" and any(_alike(ys, [1 / v for v in values if v]) for _, _, ys, _ in drawn)
            yield turned, "The speedup is upside down: a faster run must lie above 1."
            elsewhere = any(_alike(ys, values) for _, _, ys, _ in drawn)
            where = f"{'is' if key == 'speedup' else 'are'} not at {', '.join(map(str, workers))} on the x axis"
            yield elsewhere, f"The {what} of {whose} {where}."
            yield True, f"No curve shows the {what} of {whose}, ordered by workers."
        low, high = sorted(alike[0][0].get_ylim())
        hidden = not any(_holds(axis, ys) for axis, ys, _ in alike)
        yield hidden, f"The y axis from {low:.3g} to {high:.3g} leaves {what} of {whose} out of sight."
        alike = [(_label(axis, "y"), name) for axis, _, name in alike]
        label = alike[0][0]
        if not any(_is_label(other, key) for other, _ in alike):
            yield (_is_name(label), f"The label {label!r} is a name in your code. Say in words what it is, with unit.")
            timed = key == "speedup" and re.search(_SAYS[key], label.lower()) and _in_seconds(label.lower())
            yield timed, f"The label {label!r} gives a unit of time. A speedup is a ratio of two times: it has no unit."
            taken = [CURVES[other] for other in CURVES if _is_label(label, other)]
            yield taken, f"The axis with the {what} of {whose} says {label!r}. Are two labels exchanged?"
            yield True, f"From the label {label!r}, a reader cannot tell that the axis shows {what}."
        if whose in networks:
            names = [name for _, name in alike if name]  # also of another network that does as well
            yield names and not any(whose in name for name in names), f"The legend gives {whose}'s {what} another name."


_RATE = r"(im[aá]?g|sample)\w*.*(/|\bper\b)\s*s|(im[aá]?g|sample).*s\W{0,3}[-⁻−]|1\s*/\s*s"
_NO_EPOCH = r"\bper s|\bepochs\s*/|1\s*/\s*s|^(?!.*epoch).*(\bstep|(/|\bper)\s*(batch|im|sample))"
_SAYS = {
    "epoch_seconds": r"(?<![\w^-])(s|secs?|seconds?)(?![\w^])",
    "images_per_second": _RATE,
    "speedup": r"speed|s\s*\(p\)|t\s*\(1\)|as fast",
}


def _is_label(label, key):
    """Whether an axis' label says that a quantity of CURVES is shown, in its unit."""
    if _is_name(label):
        return False
    text = label.lower().replace("_", " ")
    is_rate = re.search(_RATE, text) is not None
    if (key == "epoch_seconds" and re.search(_NO_EPOCH, text)) or (key == "speedup" and _in_seconds(text)):
        return False
    return is_rate if key == "images_per_second" else not is_rate and re.search(_SAYS[key], text) is not None


def _in_seconds(text):
    """Whether a label ends with a unit of time: "speedup (s)", but not "T1 (s) / T2 (s)"."""
    units = re.findall(r"[(\[]\s*(?:m?s|secs?|seconds?)\s*[)\]]|\bin (?:m?s|secs?|seconds?)\b(?!\s*/)", text)
    return len(units) == 1 and text.rstrip().endswith(units[0])


def _holds(axis, values):
    """Whether the y axis reaches over all of these values."""
    low, high = sorted(axis.get_ylim())
    return all(low <= value <= high for value in values)


def _is_name(label):
    return "_" in label and label.isidentifier()


def _gathered(curves):
    """The curves, and what was drawn point by point as a curve: all single points, and those of each name."""
    curves = list(curves)
    points = sorted((xs[0], ys[0], name or "") for xs, ys, name in curves if len(xs) == 1)
    names = {name for *_, name in points}
    for chosen in [names, *({name} for name in names)] if points else ():
        xs, ys, of = zip(*(point for point in points if point[2] in chosen), strict=True)
        curves.append((list(xs), list(ys), of[0] if len(chosen) == 1 else None))
    return curves


def _curves(axis, workers):
    """(x, y, name in the legend or None) of each line, cloud of points and group of bars on an axis, by growing x.

    A line that goes to and fro keeps its order. Bars that stand beside a number of workers count as being there.
    """
    places = _places(axis)
    named = {id(part): each.get_label() for each in axis.containers for part in each if hasattr(part, "get_label")}
    written = [text.get_text() for text in getattr(axis.get_legend(), "texts", ())]
    lines = axis.get_lines()
    if not set(written) <= {*named.values(), *(artist.get_label() for artist in (*lines, *axis.collections))}:
        named |= {id(line): text for line, text in zip(lines, written, strict=False)}  # axis.legend([text, ...])

    def curve(points, artist, to_and_fro=False):
        label = named.get(id(artist), artist.get_label())
        points = [(places.get(float(x), float(x)), float(y)) for x, y in points]
        ordered = sorted(points)
        points = points if to_and_fro and points not in (ordered, ordered[::-1]) else ordered
        return *([point[k] for point in points] for k in (0, 1)), None if label.startswith("_") else label

    for line in lines:
        yield curve(zip(line.get_xdata(orig=False), line.get_ydata(orig=False), strict=True), line, to_and_fro=True)
    for cloud in axis.collections:
        yield curve(cloud.get_offsets(), cloud)
    for bars in axis.containers:
        if hasattr(bars, "patches") and len(bars):
            centres = [bar.get_x() + bar.get_width() / 2 for bar in bars]
            at = [min(places or workers, key=lambda place, x=x: abs(place - x)) for x in centres]
            near_ = all(abs(x - place) < 0.5 for x, place in zip(centres, at, strict=True))
            yield curve(zip(at if near_ else centres, (bar.get_height() for bar in bars), strict=True), bars[0])


def _places(axis):
    """{position: number} of the ticks of an x axis whose labels are given as texts, such as "1", "2 GPUs"."""
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    if not isinstance(axis.xaxis.get_major_formatter(), FixedFormatter | FuncFormatter | StrCategoryFormatter):
        return {}
    ticks = zip(axis.get_xticks(), axis.get_xticklabels(), strict=False)
    texts = [(float(place), re.search(r"\d+", text.get_text())) for place, text in ticks]
    return {place: int(found[0]) for place, found in texts if found}


def _alike(line, values):
    return len(line) == len(values) and all(
        v is not None and near(x, v, 0.02) for x, v in zip(line, values, strict=True)
    )
