"""What the pictures of several lessons share: logarithmic axes, a word beside a point, bars of parts of a step."""

from labs.printed import digits
from labs.show.figure import COLOURS

HATCHES = ("", "//", "..", "xx")
VALID = "intervals, valid only for these minutes"


def logarithmic(axis, x=None, y=None):
    """Logarithmic scales with these ticks alone: {number: its label}, or numbers that are their own label."""
    for ticks, scale, mark in ((x, axis.set_xscale, axis.set_xticks), (y, axis.set_yscale, axis.set_yticks)):
        if ticks is not None:
            scale("log")
            mark(list(ticks), list(ticks.values()) if isinstance(ticks, dict) else [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()


def beside(axis, text, point, shift, **look):
    """A text `shift` points away from a point of the axis; look: as of matplotlib's annotate."""
    axis.annotate(text, point, xytext=shift, textcoords="offset points", **look)


def in_words(seconds, interval=None):
    """Milliseconds, with their interval where there is one."""
    between = interval and f" [{', '.join(digits(1e3 * end) for end in interval)}]"
    return f"{digits(1e3 * seconds)} ms{between or ''}"


def bars(axis, groups, title, unit="milliseconds", scale=1e3, without=None):
    """A bar for each part of each group, {name: {part: (value, (low, high) or None)}}, from 0 to either side, the first
    one at the top; none for the part `without`. The axis has values times `scale`."""
    names = []
    for name, parts in groups.items():
        for (part, (value, interval)), colour, hatch in zip(parts.items(), COLOURS, HATCHES, strict=False):
            if part != without:
                whiskers = interval and [[scale * abs(value - bound)] for bound in interval]
                look = {"color": colour, "hatch": hatch, "ecolor": "black", "capsize": 3, "edgecolor": "white"}
                axis.barh(len(names), scale * value, 0.7, xerr=whiskers, **look)
            names.append(f"{name}: {part}")
    axis.axvline(0, color="black", lw=1)
    axis.set_yticks(range(len(names)), names)
    axis.set(ylim=(len(names) - 0.4, -0.6), xlabel=unit, title=title)
    axis.xaxis.set_major_formatter(lambda value, _: digits(value))


def said(groups):
    """The bars in words, where values are seconds."""
    parts = {name: ", ".join(f"{part} {in_words(*told)}" for part, told in of.items()) for name, of in groups.items()}
    return " ".join(f"{name}: {told}." for name, told in parts.items())
