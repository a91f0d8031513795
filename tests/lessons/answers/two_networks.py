"""Answers to the self-checks of 10_two_networks: right ones, and wrong ones that students give."""

from math import exp, log, sqrt
from statistics import fmean, pvariance, variance

from making import measured

RUNS = [
    measured(model, n, seconds, one / seconds)
    for model, one, two in (("ResNet50V2", 7.0, 4.0), ("ResNet152V2", 14.0, 8.6))
    for n, seconds in ((1, one), (2, two))
]
# Both networks with the same speedup: their curves lie on each other.
ALIKE = [*RUNS[:3], measured("ResNet152V2", 2, 8.001, 14.0 / 8.001)]


def figure(
    panels=3,
    label=True,
    legend=True,
    names=("ResNet50V2", "ResNet152V2"),
    speedup=lambda run: run.speedup.value,
    reverse=False,
    bars=False,
    points=False,
    swap=False,
    labels=("epoch time (s)", "images per second", "speedup"),
    runs=RUNS,
):
    from matplotlib.figure import Figure

    drawn = Figure()
    values = (lambda run: run.epoch_seconds.value, lambda run: run.images_per_second.value, speedup)
    for axis, value, said in zip(drawn.subplots(1, panels, squeeze=False)[0], values, labels[:panels], strict=False):
        for place, name in enumerate(names):
            mine = [run for run in runs if run.model == name][:: -1 if reverse else 1]
            x, y = [run.workers for run in mine], list(map(value, mine))
            shown = names[place - 1] if swap else name
            if bars:
                axis.bar([each + 0.4 * place - 0.2 for each in x], y, width=0.4, label=shown)
            for each in zip(x, y, strict=True) if points else ():
                axis.plot(*each, "o", label=shown)
            if not bars and not points:
                axis.plot(x, y, label=shown)
        if label:
            axis.set(xlabel="workers", ylabel=said)
        if legend:
            axis.legend()
    return drawn


def kits_figure():
    from labs.show import plots

    return plots.scaling(RUNS)


def contrast(
    signs=(-1, 1, 1, -1), error=lambda d: sqrt(sum(variance(x) / len(x) for x in d)), centre=float, paired=True
):
    def function(*times):
        logs = [[log(t) for t in seconds] for seconds in times]
        total = sum(sign * fmean(x) for sign, x in zip(signs, logs, strict=True))
        within = [[a - b for a, b in zip(*pair, strict=True)] for pair in (logs[:2], logs[2:])]
        return centre(total), error(within if paired else logs)

    return (function,)


def of_means(*times):
    """Answer to networks.3: the logarithm of the ratio of mean times."""
    small_1, small_2, large_1, large_2 = map(fmean, times)
    return log(large_1 / large_2 / (small_1 / small_2)), contrast()[0](*times)[1]


def of_mean_ratios(*times):
    """Answer to networks.3: the logarithm of the ratio of mean ratios."""
    small, large = (fmean(a / b for a, b in zip(*pair, strict=True)) for pair in (times[:2], times[2:]))
    return log(large / small), contrast()[0](*times)[1]


def answer(low, high, matters):
    if low > 1 or high < 1:
        return "yes"
    return "no" if low >= 1 / (1 + matters) and high <= 1 + matters else "can't tell"


def carried(expected, one=0.80, other=0.88, known=0.65):
    """Answer to networks.6, and the three efficiencies that it is made of."""
    return expected, {"ResNet50V2": one, "ResNet152V2": other}, {"ResNet50V2": known}


ANSWERS = {
    "networks.1": dict(
        right=[
            (figure(), RUNS),
            (kits_figure(), RUNS),
            (figure(bars=True), RUNS),
            (figure(reverse=True), RUNS),
            (figure(runs=ALIKE), ALIKE),
            (figure(points=True), RUNS),
        ],
        wrong=[
            (figure(panels=2), RUNS),
            (figure(label=False), RUNS),
            (figure(legend=False), RUNS),
            (figure(names=("ResNet152V2",)), RUNS),
            (figure(speedup=lambda run: 1 / run.speedup.value), RUNS),
            (figure(speedup=lambda run: run.speedup.value / run.workers), RUNS),
            (figure(swap=True), RUNS),
            (figure(swap=True, runs=ALIKE), ALIKE),
            (figure(labels=("images per second", "seconds per epoch", "speedup")), RUNS),
            (figure(labels=("epoch time", "images per second", "speedup")), RUNS),
            (figure(points=True, swap=True), RUNS),
        ],
        secret=None,
        same=[(2, 3), (6, 7), (6, 10), (7, 10)],  # no legend, or none for one of the networks; exchanged
    ),
    "networks.2": dict(
        right=[(2.0, RUNS), (14.0 / 7.0, RUNS), ("2", RUNS)],
        wrong=[(0.5, RUNS), (7.0, RUNS), (8.6 / 7.0, RUNS), (14 / 8.6, RUNS), (3.13, RUNS)],
        secret=r"\b2\.0",
        same=[(2, 3)],  # both hold a run on 2 workers
    ),
    "networks.3": dict(
        right=[contrast()],
        wrong=[
            (of_means,),
            (of_mean_ratios,),
            contrast((1, -1, -1, 1)),
            contrast((1, -1, 1, -1)),
            contrast((-1, -1, 1, 1)),
            contrast(centre=exp),
            contrast((1, 1, 1, 1)),
            contrast(error=lambda d: sum(variance(x) / len(x) for x in d)),
            contrast(error=lambda d: sqrt(sum(map(variance, d)))),
            contrast(error=lambda d: sum(sqrt(variance(x) / len(x)) for x in d)),
            contrast(error=lambda d: sqrt(abs(variance(d[1]) / len(d[1]) - variance(d[0]) / len(d[0])))),
            contrast(paired=False),
            contrast(error=lambda d: sqrt(sum(pvariance(x) / len(x) for x in d))),
            contrast(error=lambda d: 1.0),
            contrast(error=lambda d: sqrt(sum(map(variance, d)) / len(d[0]))),
            contrast(error=lambda d: sqrt(sum(map(variance, d)) / len(d[1]))),
        ],
        secret=None,
        same=[(14, 15)],  # one number of rounds for both networks
    ),
    "networks.4": dict(
        right=[(answer,), (lambda *given: answer(*given).replace("'", "\N{RIGHT SINGLE QUOTATION MARK}"),)],
        wrong=[
            (lambda low, high, m: "yes" if low > 1 or high < 1 else "no",),
            (lambda low, high, m: "yes" if low > 1 or high < 1 else "can't tell",),
            (lambda low, high, m: "can't tell" if high < 1 else answer(low, high, m),),
            (lambda low, high, m: answer(low, high, 0.05),),
            (lambda low, high, m: "no" if low < 1 < high <= 1 + m else answer(low, high, m),),
            (lambda low, high, m: "no" if 1 < low < high <= 1 + m else answer(low, high, m),),
            (lambda low, high, m: answer(low, high, m) == "yes",),
            (lambda low, high, m: "no" if 1 - m <= low < 1 < high <= 1 + m else answer(low, high, m),),
        ],
        secret=None,
    ),
    "networks.6": dict(
        right=[
            carried(0.65 * 0.88 / 0.80),
            carried(0.65 / 0.80 * 0.88),
            carried(0.715),
            carried(0.71, known=0.6452),  # rounded
            carried("0.715"),
            carried(0.65, other=0.80),  # no difference with MirroredStrategy either
        ],
        wrong=[
            carried(0.88),
            carried(0.65),
            carried(0.65 * 0.80 / 0.88),
            carried(0.88 * 0.80 / 0.65),
            carried(0.65 + 0.88 - 0.80),
            carried(0.88 / 0.80),
            carried(0.65 / 0.80),
            carried(2 * 0.715),
            carried(71.5),
            carried(0.5),
            carried(0.65, other=0.801),  # nearly no difference, and still a number that was taken over
        ],
        secret=r"0\.71",
        same=[(1, 10)],
    ),
    "networks.7": dict(right=[("b",)], wrong=[("a",), ("c",), ("d",)], secret=r"11\.5|12\.5"),
}
