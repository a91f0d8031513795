"""Answers to the self-checks of 10_two_networks: right ones, and wrong ones that students give."""

from making import measured

from labs.show import plots

RUNS = [
    measured(model, n, seconds, one / seconds)
    for model, one, two in (("ResNet50V2", 7.0, 4.0), ("ResNet152V2", 14.0, 8.6))
    for n, seconds in ((1, one), (2, two))
]
# Both networks with the same speedup: their curves lie on each other.
ALIKE = [*RUNS[:3], measured("ResNet152V2", 2, 8.001, 14.0 / 8.001)]
NAMES = ("ResNet50V2", "ResNet152V2")


def figure(draw="plot", names=NAMES, legend=NAMES, runs=RUNS):
    """Answer to networks.1. draw: "plot", "bar", or "points", one by one; legend: what it calls the networks."""
    from matplotlib.figure import Figure

    drawn = Figure()
    labels = {"epoch_seconds": "epoch time (s)", "images_per_second": "images per second", "speedup": "speedup"}
    for axis, (key, label) in zip(drawn.subplots(1, 3), labels.items(), strict=True):
        for place, (name, shown) in enumerate(zip(names, legend, strict=False)):
            x, y = zip(*[(run.workers, getattr(run, key).value) for run in runs if run.model == name], strict=True)
            if draw == "bar":
                axis.bar([each + 0.4 * place - 0.2 for each in x], y, width=0.4, label=shown)
            for each in zip(x, y, strict=True) if draw == "points" else [(x, y)] if draw == "plot" else ():
                axis.plot(*each, "o-", label=shown)
        axis.set(xlabel="workers", ylabel=label)
        if legend[0]:
            axis.legend()
    return drawn, runs


ANSWERS = {
    "networks.1": dict(
        right=[(plots.scaling(RUNS), RUNS), figure(), figure("bar"), figure(runs=ALIKE), figure("points")],
        wrong=[
            figure(legend=("", "")),
            figure(names=NAMES[1:], legend=NAMES[1:]),
            figure(legend=NAMES[::-1]),
            figure("points", legend=NAMES[::-1], runs=ALIKE),
        ],
    )
}
SAMPLES = {"networks.2": [(RUNS,)]}
