"""Answers to the self-checks of 05_resnet50_scaling: right ones, and wrong ones that students give."""

from functools import partial
from itertools import combinations, combinations_with_replacement
from operator import truediv
from statistics import fmean, median

import numpy as np
from making import changed, measured, outside_scope, swapped

from labs.results.intervals import Estimate
from labs.results.run import Epoch, Run

RUN = Run("w1.out", repeats=[[Epoch(8.2), Epoch(5.1), Epoch(5.0), Epoch(5.2)], [Epoch(6.0), Epoch(5.0)]])
STEPPED = Run("w1.out", steps=8, repeats=[[Epoch(s) for s in (8.2, 4.9, 5.6, 5.5, 4.4, 4.0)]])  # the last 2: 4.2
SPREAD = Run("w1.out", steps=8, repeats=[[Epoch(s) for s in (13.0, 7.032, 7.2, 6.856, 7.648, 7.28, 6.816)]])
EVEN = Run("w1.out", repeats=[[Epoch(5.6), Epoch(5.1), Epoch(5.0), Epoch(5.2)]])  # a first epoch like the others
RUNS = [
    measured("ResNet50V2", n, t, 9.1 / t, (8.9 / t, 9.3 / t) if n > 1 else None, images=768, steps=s)
    for n, s, t in ((1, 12, 9.1), (2, 6, 5.6), (4, 3, 5.2))
]
NOISY, SLOWER, SINGLE = (
    changed(RUNS[:2], 1, speedup=Estimate(9.1 / 5.6, interval)) for interval in ((0.9, 1.4), (0.7, 0.9), None)
)
STEPS = {"alone": 0.8, "together": 0.88, "exchange": 1.0, "input": 1.05}
BY_HAND = {"alone": 0.56139, "together": 0.61861, "exchange": 0.6211, "input": 0.63}
NOISY_STEPS = STEPS | {"together": 0.79}
script = partial(swapped, "scripts/ResNet50.py")


LOGITS = "keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
UNITS = ("seconds per epoch", "images per second", "speedup")


def value(name):
    return lambda run: getattr(run, name).value


QUANTITIES = [*map(value, ("epoch_seconds", "images_per_second", "speedup"))]


def figure(runs=RUNS, panels=3, label=True, speedup=QUANTITIES[2]):
    from matplotlib.figure import Figure

    result = Figure()
    for axis, name, quantity in zip(result.subplots(1, panels), UNITS, [*QUANTITIES[:2], speedup], strict=False):
        axis.plot([run.workers for run in runs], [*map(quantity, runs)], "o-")
        if label:
            axis.set(xlabel="workers", ylabel=name)
    return result


def drawn(draw, labels=UNITS, x="workers", workers=(1, 2, 4)):
    """Answer to T6: draw(axis, workers, values) in three plots with these labels."""
    from matplotlib.figure import Figure

    result = Figure()
    for axis, quantity, label in zip(result.subplots(1, 3), QUANTITIES, labels, strict=True):
        draw(axis, workers, [*map(quantity, RUNS)])
        axis.set(xlabel=x, ylabel=label)
    return result, RUNS


def line(axis, workers, values):
    axis.plot(workers, values)


def one_by_one(draw):
    """Answer to T6: draw(axis, number, workers, value) for each run alone."""
    return drawn(lambda axis, x, y: [draw(axis, *each) for each in zip(range(3), x, y, strict=True)])


def out_of_sight(axis, workers, values):
    axis.plot(workers, values)
    axis.set_ylim(0.9, 1.0)


def together(x="number of workers", y=UNITS, over_all=""):
    """Answer to T6: the labels x and over_all belong to the whole figure."""
    result, runs = drawn(line, y, "")
    result.supxlabel(x)
    result.supylabel(over_all)
    return result, runs


def without_plots():
    from matplotlib.figure import Figure

    return Figure(), RUNS


def named_bars(axis, workers, values):
    axis.bar(range(3), values)
    axis.set_xticks(range(3), [f"{each} GPUs" for each in workers])


def kits_figure():
    from labs.show import plots

    return plots.scaling(RUNS)


ANSWERS = {
    "resnet50.3": dict(
        right=[
            script(),
            script(("0.01 * args.n_gpus", "0.01 * strategy.num_replicas_in_sync")),
            script(("0.01 * args.n_gpus", "args.n_gpus / 100")),
        ],
        wrong=[
            script(("tf.distribute.MirroredStrategy(devices=workers)", "tf.distribute.get_strategy()")),
            script(("MirroredStrategy(devices=workers)", "MirroredStrategy()")),
            script(("0.01 * args.n_gpus", "0.01")),
            script(("0.01 * args.n_gpus", "0.01 * args.n_gpus ** 0.5")),
            script(("0.01 * args.n_gpus", "0.1 * args.n_gpus")),
            outside_scope("scripts/ResNet50.py"),
            script((", callbacks=[recorder]", "")),
            script(("verbose=2", "verbose=1")),
            script(("keras.applications.ResNet50V2(", "keras.applications.ResNet50(")),
            script(("model.fit(", "model.evaluate(")),
            script(("args.image_size, args.image_size, 3)", "args.image_size, args.image_size)")),
            script(("args.image_size, args.image_size, 3)", "3, args.image_size, args.image_size)")),
            script(("args.image_size, args.image_size, 3)", "224, 224, 3)")),
            script(("MirroredStrategy(devices=workers)", 'MirroredStrategy(["GPU:0", "GPU:1"])')),
            script(("devices=workers", '[f"GPU:{n}" for n in range(args.n_gpus)]')),
            script(("MirroredStrategy(devices=workers)", "MirroredStrategy")),
            script(("args.image_size, 3)\n", "args.image_size, 3), classifier_activation=None\n")),
            script(('loss="sparse_categorical_crossentropy"', f"loss={LOGITS}")),
        ],
        secret=r"0\.03\b|devices=workers",
    ),
    "resnet50.4": dict(
        right=[
            *((5.1, RUN), (5, RUN), (15.3 / 3, RUN), (4.88, STEPPED), (4.9, STEPPED), (25 / 5, STEPPED)),
            *((7, SPREAD), (7.1, SPREAD), (7.14, SPREAD), (43 / 6, SPREAD)),  # rounded; of the whole seconds
        ],
        wrong=[
            (23.5 / 4, RUN),
            (8.2, RUN),
            (15.3, RUN),
            (2.0, RUN),
            (20.9 / 4, EVEN),
            (4.2, STEPPED),
            (0.61, STEPPED),
            (4880, STEPPED),
            (610, STEPPED),
            (8 * 0.852, SPREAD),
            (6.8, SPREAD),
            (7.032, SPREAD),
            ((7.28 + 6.816) / 2, SPREAD),
        ],
        secret=r"\b5\.1",
        same=[(0, 4), (9, 10), (9, 11), (10, 11), (5, 12)],
    ),
    "resnet50.5": dict(
        right=[
            (lambda one, p: [a / b for a, b in zip(one, p, strict=True)],),
            (lambda one, p: np.array(one) / np.array(p),),
            (lambda one, p: tuple(map(truediv, one, p)),),
            (lambda one, p: list(a / b for a, b in zip(one, p, strict=True)),),  # noqa: C400
        ],
        wrong=[
            (lambda one, p: [b / a for a, b in zip(one, p, strict=True)],),
            (lambda one, p: [a - b for a, b in zip(one, p, strict=True)],),
            (lambda one, p: [a // b for a, b in zip(one, p, strict=True)],),
            (lambda one, p: [a / b for a, b in zip(one[1:], p[1:], strict=True)],),
            (lambda one, p: sum(one) / sum(p),),
            (lambda one, p: [sum(one) / sum(p)] * len(p),),
            (lambda one, p: [a / min(p) for a in one],),
            (lambda one, p: [one.pop() / p[0] for _ in p],),
            (lambda one, p: [one[n] / p[n] for n in range(3)],),
            (lambda one, p: [max(a / b, 1) for a, b in zip(one, p, strict=True)],),
            (lambda one, p: (a / b for a, b in zip(one, p, strict=True)),),
            (lambda one, p: map(truediv, one, p),),
            (lambda one, p: [round(a / b, 1) for a, b in zip(one, p, strict=True)],),
            (lambda one, p: [round(a / b) for a, b in zip(one, p, strict=True)],),
        ],
        secret=r"1\.6|\b2\.0",
        same=[(3, 8), (12, 13)],  # a list of another length; rounded
    ),
    "resnet50.11": dict(
        right=[
            (lambda epochs: median([s for epoch in epochs[1:] for s in epoch]),),
            (lambda epochs: np.median(sum(epochs[1:], [])),),
        ],
        wrong=[
            (lambda epochs: median(sum(epochs, [])),),
            (lambda epochs: fmean(sum(epochs[1:], [])),),
            (lambda epochs: fmean(sum(epochs, [])),),
            (lambda epochs: median(map(median, epochs[1:])),),
            (lambda epochs: sum(epochs[1:], [])[3],),
            (lambda epochs: [median(epoch) for epoch in epochs[1:]],),
            (lambda epochs: min(sum(epochs[1:], [9])) * 1.1,),
            (lambda epochs: epochs.pop(0)[0],),
            (lambda epochs: median(s for epoch in epochs[1:] for s in epoch[1:]),),
            (lambda epochs: median(s for epoch in epochs for s in epoch[1:]),),
            (lambda epochs: sorted(s for epoch in epochs[1:] for s in epoch)[len(sum(epochs[1:], [])) // 2],),
        ],
        secret=r"\b1\.2\b",
    ),
    "resnet50.12": dict(
        right=[
            (lambda steps: fmean(max(a, b) for a in steps for b in steps),),
            (lambda steps: np.maximum.outer(steps, steps).mean(),),
            (lambda steps: sum((2 * n + 1) * s for n, s in enumerate(sorted(steps))) / len(steps) ** 2,),
        ],
        wrong=[
            (max,),
            (fmean,),
            (lambda steps: fmean(max(pair) for pair in combinations(steps, 2)),),
            (lambda steps: fmean(max(pair) for pair in combinations_with_replacement(steps, 2)),),
            (lambda steps: fmean(min(a, b) for a in steps for b in steps),),
            (lambda steps: fmean(a + b for a in steps for b in steps),),
            (lambda steps: [max(pair) for pair in combinations(steps, 2)],),
            (lambda steps: fmean(map(max, steps, steps[1:])),),
        ],
        secret=r"\b1\.5\b",
    ),
    "resnet50.6": dict(
        right=[
            ("faster", RUNS),
            ("Faster ", RUNS[:2]),
            ("can't tell", NOISY),
            ("can\N{RIGHT SINGLE QUOTATION MARK}t tell", SINGLE),
            ("slower", SLOWER),
            ("Cannot tell", NOISY),
            ("can not  tell", NOISY),
            ("cant tell", NOISY),
        ],
        wrong=[
            ("faster", RUNS[1:]),
            ("faster", RUNS[:1]),
            ("faster", changed(RUNS, 1, state="failed")),
            ("faster", "runs/w1.out"),
            ("faster", changed(RUNS, 1, kind="recorded")),
            ("faster", NOISY),
            ("slower", RUNS),
            ("can't tell", RUNS),
            ("can't tell", SLOWER),
            ("faster", SINGLE),
            ("yes", RUNS),
        ],
        secret=r"\b(faster|slower)\b.*\b(is|are) right",
    ),
    "resnet50.8": dict(
        right=[
            (2 * 0.8 / 0.88, STEPS),
            (1.818, STEPS),
            (1.82, STEPS),
            ("1.8", STEPS),
            (1.81, BY_HAND),  # printed: 0.561 and 0.619
            (1.8126, BY_HAND),
            (2 * 0.8 / 0.79, NOISY_STEPS),  # noise, but the formula is right
            (2.03, NOISY_STEPS),
        ],
        wrong=[
            (0.8 / 0.88, STEPS),
            (0.88 / 0.8, STEPS),
            (2 * 0.88 / 0.8, STEPS),
            (1.6, STEPS),
            (0.8, STEPS),
            (2.0, STEPS),
            (2 * BY_HAND["alone"] / BY_HAND["exchange"], BY_HAND),  # 0.4 % from the right one
            (0.8 / 0.79, NOISY_STEPS),
        ],
        secret=r"1\.8",
        same=[(3, 6), (0, 7)],  # the exchange; the efficiency, also where the numbers are noisy
    ),
    "resnet50.10": dict(
        right=[(12, 6, RUNS)], wrong=[(12, 12, RUNS), (6, 12, RUNS), (768, 384, RUNS)], secret=r"\b(12|6)\b"
    ),
    "T6": dict(
        right=[
            (figure(), RUNS),
            (kits_figure(), RUNS),
            (figure(RUNS[::-1]), RUNS),  # the same line, drawn from its other end
            drawn(lambda axis, x, y: axis.scatter(x, y)),
            drawn(lambda axis, x, y: axis.bar(x, y)),
            drawn(lambda axis, x, y: axis.bar(["1", "2", "4"], y)),
            drawn(named_bars, x="GPUs"),
            drawn(lambda axis, x, y: axis.errorbar(x, y, yerr=[0.1] * 3)),
            drawn(lambda axis, x, y: axis.semilogx(x, y, base=2)),
            drawn(line, ("epoch time (s)", "throughput (images/s)", "speedup T(1)/T(p)")),
            drawn(line, ("epoch_seconds (s)", "$r$ (images/s)", "$T_1/T_p$: speedup")),
            drawn(line, ("time per epoch / s", "training speed (img/s)", "S(p)"), "number of devices"),
            drawn(line, ("s per epoch (12 steps)", *UNITS[1:])),
            drawn(line, ("time (s)", *UNITS[1:])),
            together(),
            one_by_one(lambda axis, n, x, y: axis.plot(x, y, "o")),
            one_by_one(lambda axis, n, x, y: axis.plot(x, y, "os^"[n], label=f"{x} workers")),
            one_by_one(lambda axis, n, x, y: axis.bar(x, y)),
            one_by_one(lambda axis, n, x, y: axis.scatter([x], [y])),
            drawn(lambda axis, x, y: (axis.plot(x, [round(v, 2) for v in y], "o"), axis.margins(0))),
            drawn(line, (*UNITS[:2], "speedup T(1) (s) / T(p) (s)")),
            drawn(line, (*UNITS[:2], "speedup in seconds/seconds")),
        ],
        wrong=[
            (figure(panels=2), RUNS),
            (figure(label=False), RUNS),
            (figure([RUNS[1], RUNS[0], RUNS[2]]), RUNS),
            (figure(speedup=lambda run: 1 / run.speedup.value), RUNS),
            (figure(speedup=lambda run: run.speedup.value / run.workers), RUNS),
            drawn(line, (UNITS[1], UNITS[0], UNITS[2])),
            drawn(line, (UNITS[0], UNITS[2], UNITS[1])),
            drawn(line, ("epoch time", *UNITS[1:])),
            drawn(line, ("time (ms)", *UNITS[1:])),
            drawn(line, (UNITS[0], "throughput", UNITS[2])),
            drawn(line, ("epoch_seconds", *UNITS[1:])),
            drawn(line, (UNITS[0], "images_per_second", UNITS[2])),
            drawn(line, x="run"),
            drawn(line, workers=range(3)),
            drawn(lambda axis, x, y: axis.bar(range(3), y)),
            (figure(), changed(RUNS, 1, kind="recorded")),
            *(drawn(line, (label, *UNITS[1:])) for label in ("epochs per second", "epochs/s", "seconds per step")),
            *(drawn(line, (label, *UNITS[1:])) for label in ("s/step", "seconds per image")),
            together(x="run"),
            together(y=["", "", ""], over_all=UNITS[0]),
            *(drawn(line, (*UNITS[:2], label)) for label in ("speedup (s)", "speedup in seconds", "efficiency")),
            drawn(out_of_sight),
            one_by_one(lambda axis, n, x, y: axis.plot(n, y, "o")),
            one_by_one(lambda axis, n, x, y: axis.plot(x, y * 2, "o")),
            without_plots(),
        ],
        secret=None,
        same=[(2, 28), (12, 21), (13, 14), (13, 27), (14, 27)],
    ),
}
