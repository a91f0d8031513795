"""Pictures of notebook 27. Every function returns a matplotlib Figure with its text alternative in `figure.alt`."""

from labs.show.figure import COLOURS, finished, new_figure


def apart(differences, tolerance, alone):
    """How far the weights of each engine are from those of one process, beside the tolerance and a worker on its own.

    differences: {name: largest difference}; tolerance, alone: the same for other orders of summation, and for a worker
    that hears nothing of the other one.
    """
    figure, (axis,) = new_figure(width=7.4, height=0.45 * len(differences) + 1.9)
    rows = {**differences, "without the exchange": alone}
    for row, (name, value) in enumerate(rows.items()):
        colour, marker = (COLOURS[1], "X") if name not in differences else (COLOURS[0], "o")
        axis.plot([value], [row], marker, color=colour, ms=9)
        axis.annotate(f"{value:.1e}", (value, row), (9, -3), textcoords="offset points", fontsize=9)
    axis.axvline(tolerance, color="0.35", ls="--", lw=1.5)
    axis.axvspan(tolerance / 1e4, tolerance, color=COLOURS[2], alpha=0.12)
    axis.annotate(f"tolerance {tolerance:.1e}", (tolerance, -0.75), (4, 0), textcoords="offset points", fontsize=9)
    axis.set_xscale("log")
    known = [value for value in (*rows.values(), tolerance) if value]
    axis.set(xlim=(min(known) / 4, 30 * max(known)), ylim=(len(rows) - 0.5, -1.1))
    axis.set_yticks(range(len(rows)), list(rows))
    axis.set(xlabel="largest difference of a weight from one process", title="the same 20 steps on each engine")
    said = ", ".join(f"{name} {value:.1e}" for name, value in differences.items())
    alt = (
        f"Largest difference of a weight from one process after 20 steps, logarithmic. {said}. The tolerance, "
        f"from other orders of summation in one process, is {tolerance:.1e}. A worker without the exchange differs by "
        f"{alone:.1e}, {alone / tolerance:.0f} times as much."
    )
    return finished(figure, alt, "measured", note="float32, without dropout; equal batches and first weights")
