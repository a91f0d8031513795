"""What the pictures of several lessons share: logarithmic axes, and a word beside a point."""


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
