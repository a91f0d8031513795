"""Answers to the self-checks of 10_two_networks: right ones, and wrong ones that students give."""

from making import figure, measured, one_by_one, plotted

from labs.show import plots

RUNS = [
    measured(model, n, seconds, one / seconds)
    for model, one, two in (("ResNet50V2", 7.0, 4.0), ("ResNet152V2", 14.0, 8.6))
    for n, seconds in ((1, one), (2, two))
]
# Both networks with the same speedup: their curves lie on each other.
ALIKE = [*RUNS[:3], measured("ResNet152V2", 2, 8.001, 14.0 / 8.001)]
NAMES = ("ResNet50V2", "ResNet152V2")


def both(draw=plotted, names=NAMES, legend=NAMES, runs=RUNS):
    """Answer to networks.1; legend: what it calls the networks."""
    return figure(runs, draw, names=names, legend=legend)


def bars(axis, x, y, label, place):
    axis.bar([each + 0.4 * place - 0.2 for each in x], y, width=0.4, label=label)


RIGHT = [
    ("networks.1", (plots.scaling(RUNS), RUNS)),
    ("networks.1", both()),
    ("networks.1", both(bars)),
    ("networks.1", both(runs=ALIKE)),
    ("networks.1", both(one_by_one)),
]
WRONG = [
    ("networks.1", both(lambda a, x, y, _, n: (a.plot(x, y, label=NAMES[n]), n or a.legend()), legend=("", ""))),
    ("networks.1", both(names=NAMES[1:], legend=NAMES[1:])),
    ("networks.1", both(legend=NAMES[::-1])),
    ("networks.1", both(one_by_one, legend=NAMES[::-1], runs=ALIKE)),
]
SAMPLES = {"networks.2": [(RUNS,)]}
