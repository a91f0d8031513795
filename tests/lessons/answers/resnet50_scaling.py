"""Answers to the self-checks of 05_resnet50_scaling: right ones, and wrong ones that students give."""

import math
from functools import partial
from itertools import combinations
from operator import truediv
from statistics import fmean, median, pstdev, stdev

import numpy as np
from epochs import numbered
from making import changed, measured, swapped

from labs.results import intervals
from labs.results.intervals import Estimate
from labs.results.run import Epoch, Run
from labs.show import plots

RUN, EVEN, STEPPED, SPREAD = (
    Run(
        source="w1.out",
        steps=steps,
        epochs=numbered([Epoch(seconds=s) for s in seconds], [Epoch(seconds=6.0), Epoch(seconds=5.0)]),
    )
    for steps, *seconds in (
        (None, 8.2, 5.1, 5.0, 5.2),
        (None, 5.6, 5.1, 5.0, 5.2),  # a first epoch like the others
        (8, 8.2, 4.9, 5.6, 5.5, 4.4, 4.0),
        (8, 13.0, 7.032, 7.2, 6.856, 7.648, 7.28, 6.816),
    )
)
RUNS = [
    measured("ResNet50V2", n, t, 9.1 / t, (8.9 / t, 9.3 / t) if n > 1 else None, images=768, steps=s)
    for n, s, t in ((1, 12, 9.1), (2, 6, 5.6), (4, 3, 5.2))
]
NOISY, SLOWER, SINGLE = (
    changed(RUNS[:2], 1, speedup=Estimate(9.1 / 5.6, interval)) for interval in ((0.9, 1.4), (0.7, 0.9), None)
)
STEPS = {"alone": 0.8, "together": 0.88, "exchange": 1.0, "input": 1.05}
BY_HAND = {"alone": 0.56139, "together": 0.61861, "exchange": 0.6211, "input": 0.63}
script = partial(swapped, "scripts/ResNet50.py")
UNITS = ("seconds per epoch", "images per second", "speedup")


def drawn(draw=lambda axis, x, y: axis.plot(x, y), labels=UNITS, x="workers", workers=(1, 2, 4), panels=3, of=None):
    """Answer to T6: draw(axis, workers, values) in plots with these labels; of: what to make of a speedup."""
    from matplotlib.figure import Figure

    result = Figure()
    for axis, key, label in zip(
        result.subplots(1, panels), ("epoch_seconds", "images_per_second", "speedup"), labels, strict=False
    ):
        values = [getattr(run, key).value for run in RUNS]
        draw(axis, workers, [*map(of, workers, values)] if of and key == "speedup" else values)
        axis.set(xlabel=x, ylabel=label)
    return result, RUNS


def labelled(*labels):
    """Answer to T6: with these labels in place of the last ones of UNITS."""
    return drawn(labels=(*UNITS[: 3 - len(labels)], *labels))


def timed(label):
    return drawn(labels=(label, *UNITS[1:]))


def one_by_one(draw):
    """Answer to T6: draw(axis, number, workers, value) for each run alone."""
    return drawn(lambda axis, x, y: [draw(axis, *each) for each in zip(range(3), x, y, strict=True)])


def together():
    """Answer to T6: the label of the x axes belongs to the whole figure."""
    result, runs = drawn(x="")
    result.supxlabel("number of workers")
    return result, runs


def interval(speedups, n=None, share=0.975, freedom=1, spread=stdev, mean=None, root=math.sqrt, factor=None):
    """Answer to resnet50.6; each parameter is a way to get it wrong."""
    logs = [math.log(speedup) for speedup in speedups]
    count = n or len(logs)
    reach = (factor or intervals.t_quantile(count - freedom, share)) * spread(logs) / root(count)
    middle = mean(speedups) if mean else math.exp(fmean(logs))
    return middle, math.exp(fmean(logs) - reach), math.exp(fmean(logs) + reach)


WRONG_INTERVALS = [
    *(("n", 5), ("share", 0.95), ("freedom", 0), ("spread", pstdev), ("mean", fmean)),
    *(("root", lambda n: 1), ("root", float), ("factor", 1.96), ("factor", 1.0)),
]

ANSWERS = {
    "resnet50.3": dict(
        right=[script()],
        wrong=[
            script(("tf.distribute.MirroredStrategy(devices=workers)", "tf.distribute.get_strategy()")),
            script((", callbacks=[recorder]", "")),
        ],
        secret=r"0\.03\b|devices=workers",
    ),
    "resnet50.4": dict(
        right=[
            (seconds, run)  # exact, rounded, or of the whole seconds
            for run, given in ((RUN, (5.1, 5)), (STEPPED, (4.88, 4.9, 25 / 5)), (SPREAD, (7, 7.1, 43 / 6)))
            for seconds in given
        ],
        wrong=[
            (23.5 / 4, RUN),
            (20.9 / 4, EVEN),
            (0.61, STEPPED),
            *((seconds, SPREAD) for seconds in (7.032, (7.28 + 6.816) / 2)),
        ],
        secret=r"\b5\.1",
    ),
    "resnet50.5": dict(
        right=[
            (lambda one, p: [a / b for a, b in zip(one, p, strict=True)],),
            (lambda one, p: tuple(map(truediv, one, p)),),
        ],
        wrong=[
            (lambda one, p: [one.pop() / p[0] for _ in p],),
            (lambda one, p: [max(a / b, 1) for a, b in zip(one, p, strict=True)],),
            (lambda one, p: map(truediv, one, p),),
            (lambda one, p: [round(a / b, 1) for a, b in zip(one, p, strict=True)],),
        ],
        secret=r"1\.6|\b2\.0",
    ),
    "resnet50.6": dict(
        right=[(interval,), (lambda speedups: np.array(interval(speedups)),)],
        wrong=[
            (lambda speedups: interval(speedups)[0],),
            (lambda speedups: [math.log(end) for end in interval(speedups)],),
            (lambda speedups: interval(speedups)[::2] + interval(speedups)[1:2],),
            (lambda speedups: (*(found := interval(speedups))[:2], 2 * found[0] - found[1]),),  # symmetric
            (lambda speedups: ((found := interval(speedups))[0], 2 * found[0] - found[2], found[2]),),
            *((partial(interval, **{name: value}),) for name, value in WRONG_INTERVALS),
        ],
        secret=r"stdev\(logs|sqrt\(len",
    ),
    "resnet50.13": dict(
        right=[
            (lambda epochs: median([s for epoch in epochs[1:] for s in epoch]),),
            (lambda epochs: np.median(sum(epochs[1:], [])),),
        ],
        wrong=[
            (lambda epochs: [median(epoch) for epoch in epochs[1:]],),
            (lambda epochs: epochs.pop(0)[0],),
            (lambda epochs: sorted(s for epoch in epochs[1:] for s in epoch)[len(sum(epochs[1:], [])) // 2],),
        ],
        secret=r"\b1\.2\b",
    ),
    "resnet50.14": dict(
        right=[
            (lambda steps: fmean(max(a, b) for a in steps for b in steps),),
            (lambda steps: sum((2 * n + 1) * s for n, s in enumerate(sorted(steps))) / len(steps) ** 2,),
        ],
        wrong=[
            (lambda steps: fmean(max(pair) for pair in combinations(steps, 2)),),
            (lambda steps: [max(pair) for pair in combinations(steps, 2)],),
        ],
        secret=r"\b1\.5\b",
    ),
    "resnet50.8": dict(
        right=[
            ("faster", RUNS),
            ("can't tell", NOISY),
            ("can\N{RIGHT SINGLE QUOTATION MARK}t tell", SINGLE),
            ("Slower ", SLOWER),
            ("Cannot tell", NOISY),
        ],
        wrong=[
            ("faster", RUNS[1:]),
            ("faster", changed(RUNS, 1, state="failed")),
            ("faster", "runs/w1.out"),
            ("faster", changed(RUNS, 1, kind="recorded")),
            ("faster", NOISY),
            ("can't tell", RUNS),
            ("faster", SINGLE),
        ],
        secret=r"\b(faster|slower)\b.*\b(is|are) right",
    ),
    "resnet50.10": dict(
        # As computed, rounded, by hand from what is printed, and from noise.
        right=[(2 * 0.8 / 0.88, STEPS), ("1.8", STEPS), (1.81, BY_HAND), (2.03, STEPS | {"together": 0.79})],
        wrong=[(0.8 / 0.88, STEPS), (2 * 0.56139 / 0.6211, BY_HAND)],
        secret=r"1\.8",
    ),
    "resnet50.12": dict(
        right=[(12, 6, RUNS)], wrong=[(12, 12, RUNS), (6, 12, RUNS), (768, 384, RUNS)], secret=r"\b(12|6)\b"
    ),
    "T6": dict(
        right=[
            (plots.scaling(RUNS), RUNS),
            drawn(lambda axis, x, y: axis.errorbar(x[::-1], y[::-1], yerr=[0.1] * 3)),
            drawn(lambda axis, x, y: axis.bar(["1", "2", "4"], y)),
            one_by_one(lambda axis, n, x, y: axis.plot(x, y, "os^"[n], label=f"{x} workers")),
            together(),
            labelled("epoch time (s)", "throughput (images/s)", "speedup T(1)/T(p)"),
            labelled("s per epoch (12 steps)", "training speed (img/s)", "S(p)"),
            labelled("speedup T(1) (s) / T(p) (s)"),
        ],
        wrong=[
            drawn(panels=2),
            drawn(lambda axis, x, y: axis.plot([2, 1, 4], [y[1], y[0], y[2]])),
            drawn(of=lambda workers, speedup: 1 / speedup),
            drawn(of=lambda workers, speedup: speedup / workers),
            drawn(x="run"),
            drawn(workers=range(3)),
            drawn(lambda axis, x, y: (axis.plot(x, y), axis.set_ylim(0, 6))),
            (drawn()[0], changed(RUNS, 1, kind="recorded")),
            labelled("speedup (s)"),
            timed("time (ms)"),
            timed("epochs/s"),
            timed("s/step"),
            ("no figure", RUNS),
        ],
    ),
}
