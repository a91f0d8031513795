"""Answers to the self-checks of 10_two_networks: right ones, and wrong ones that students give."""

from functools import partial
from math import log, sqrt
from statistics import fmean, pvariance, variance

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


def contrast(error=lambda d: sqrt(sum(variance(x) / len(x) for x in d)), paired=True):
    def function(*times):
        logs = [[log(t) for t in seconds] for seconds in times]
        within = [[a - b for a, b in zip(*pair, strict=True)] for pair in (logs[:2], logs[2:])]
        return fmean(within[1]) - fmean(within[0]), error(within if paired else logs)

    return (function,)


def of_means(*times):
    """Answer to networks.3: the logarithm of the ratio of mean times."""
    small_1, small_2, large_1, large_2 = map(fmean, times)
    return log(large_1 / large_2 / (small_1 / small_2)), contrast()[0](*times)[1]


def answer(low, high, matters):
    if low > 1 or high < 1:
        return "yes"
    return "no" if low >= 1 / (1 + matters) and high <= 1 + matters else "can't tell"


def exchange(tensors, size, K, latency, bandwidth, messages=None, moved=None):
    """Answer to networks.6; the last two: other terms."""
    latencies = 2 * (K - 1) * tensors * latency if messages is None else messages(tensors, K) * latency
    return latencies + (2 * (K - 1) / K if moved is None else moved(tensors, K)) * size / bandwidth


ANSWERS = {
    "networks.1": dict(
        right=[(plots.scaling(RUNS), RUNS), figure(), figure("bar"), figure(runs=ALIKE), figure("points")],
        wrong=[
            figure(legend=("", "")),
            figure(names=NAMES[1:], legend=NAMES[1:]),
            figure(legend=NAMES[::-1]),
            figure("points", legend=NAMES[::-1], runs=ALIKE),
        ],
    ),
    "networks.2": dict(right=[(2.0, RUNS), ("2", RUNS)], wrong=[(0.5, RUNS), (8.6 / 7.0, RUNS)], secret=r"\b2\.0"),
    "networks.3": dict(
        right=[contrast()],
        wrong=[
            (of_means,),
            contrast(paired=False),
            contrast(error=lambda d: sqrt(sum(pvariance(x) / len(x) for x in d))),
            contrast(error=lambda d: sqrt(sum(map(variance, d)) / len(d[0]))),  # one number of rounds for both
        ],
    ),
    "networks.4": dict(
        right=[(answer,), (lambda *given: answer(*given).replace("'", "\N{RIGHT SINGLE QUOTATION MARK}"),)],
        wrong=[
            (lambda low, high, m: "can't tell" if high < 1 else answer(low, high, m),),
            (lambda low, high, m: "no" if low < 1 < high <= 1 + m else answer(low, high, m),),
            (lambda low, high, m: "no" if 1 < low < high <= 1 + m else answer(low, high, m),),
            (lambda low, high, m: "no" if 1 - m <= low < 1 < high <= 1 + m else answer(low, high, m),),
        ],
    ),
    "networks.6": dict(
        right=[(exchange,), (lambda n, size, k, *link: f"{exchange(n, size, k, *link)}",)],
        wrong=[
            *((partial(exchange, messages=of),) for of in (lambda n, k: 0, lambda n, k: n, lambda n, k: 2 * (k - 1))),
            *((partial(exchange, moved=of),) for of in (lambda n, k: 0, lambda n, k: 2 * (k - 1), lambda n, k: n)),
            (lambda *given: exchange(*given) / 2,),
        ],
        secret=r"/ workers",
    ),
}
