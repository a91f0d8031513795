"""Picture of notebook 05: which intervals hold the true value. The Figure has its text alternative in `figure.alt`."""

from labs.show.figure import COLOURS, finished, new_figure


def coverage(intervals, true):
    """The first 100 of some intervals (mean, low, high) of simulated studies, and the true value of all of them."""
    figure, (axis,) = new_figure(1, width=9.0, height=2.6)
    drawn = list(enumerate(intervals[:100], 1))
    for holds, colour, style in ((True, COLOURS[0], "-"), (False, COLOURS[1], "--")):
        rows = [(number, low, high) for number, (_, low, high) in drawn if (low <= true <= high) is holds]
        numbers, lows, highs = zip(*rows, strict=True) if rows else ((), (), ())
        label = f"{len(rows)} {'hold' if holds else 'miss'} it"
        axis.vlines(numbers, lows, highs, color=colour, linestyles=style, label=label, lw=2)
    axis.axhline(true, color="0.3", lw=1, label="true speedup")
    axis.set(xlabel="simulated study", ylabel="speedup, 95 % interval", xlim=(0, len(drawn) + 1))
    axis.legend(fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    missed = [number for number, (_, low, high) in drawn if not low <= true <= high]
    names = ", ".join(map(str, missed)) or "none"
    alt = f"95 % intervals of {len(drawn)} simulated studies; those that miss the true speedup of {true:g}: {names}."
    return finished(figure, alt, "simulated")
