"""Picture of notebook 05: which intervals hold the true value. The Figure has its text alternative in `figure.alt`."""

import numpy as np

from labs.show.figure import COLOURS, finished, new_figure


def coverage(intervals, true):
    """The first 100 of some intervals (mean, low, high) of simulated studies, and the true value of all of them."""
    _, lows, highs = np.transpose(intervals[:100])
    numbers, holds = np.arange(1, len(lows) + 1), (lows <= true) & (true <= highs)
    figure, (axis,) = new_figure(width=9.0, height=2.6)
    for rows, word, colour, style in ((holds, "hold", COLOURS[0], "-"), (~holds, "miss", COLOURS[1], "--")):
        label = f"{rows.sum()} {word} it"
        axis.vlines(numbers[rows], lows[rows], highs[rows], color=colour, linestyles=style, label=label, lw=2)
    axis.axhline(true, color="0.3", lw=1, label="true speedup")
    axis.set(xlabel="simulated study", ylabel="speedup, 95 % interval", xlim=(0, len(lows) + 1))
    axis.legend(fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    names = ", ".join(map(str, numbers[~holds])) or "none"
    alt = f"95 % intervals of {len(lows)} simulated studies; those that miss the true speedup of {true:g}: {names}."
    return finished(figure, alt, "simulated")
