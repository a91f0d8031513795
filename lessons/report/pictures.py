"""The figure of the flawed report, on its axes and on others."""

from labs.show.figure import COLOURS, finished, new_figure

WORKERS, SPEEDUPS = (1, 2, 4, 8), (1.0, 1.5, 2.1, 2.6)  # made up


def flawed(logarithmic=True):
    """Speedup over workers, with the ideal line, on logarithmic axes or on linear ones."""
    figure, (axis,) = new_figure(width=5.0)
    axis.plot(WORKERS, WORKERS, "--", color="0.5", label="ideal")
    axis.plot(WORKERS, SPEEDUPS, "o-", color=COLOURS[0], label="speedup (made up)")
    if logarithmic:
        axis.set(xscale="log", yscale="log", xlim=(0.5, 1000), ylim=(0.5, 1000))
        scale = "logarithmic axes from 0.5 to 1000"
    else:
        axis.set(ylim=(0, None), xticks=WORKERS)
        scale = "linear axes that begin at 0"
    axis.set(xlabel="workers", ylabel="speedup (times)", title="Figure 1: nearly linear scaling")
    axis.legend(fontsize=8)
    values = ", ".join(f"{s:g} on {n}" for n, s in zip(WORKERS, SPEEDUPS, strict=True))
    alt = f"Speedup over workers and the ideal line, on {scale}: {values}. The numbers are made up."
    return finished(figure, alt, "simulated", note="made up for this exercise")
