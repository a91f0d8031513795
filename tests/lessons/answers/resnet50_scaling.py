"""Answers to the checks of 05_resnet50_scaling that have a judge of their own, and steps and runs for the others."""

from functools import partial

from epochs import numbered
from making import changed, measured, swapped

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


def one_by_one(axis, x, y):
    for marker, each in zip("os^", zip(x, y, strict=True), strict=True):
        axis.plot(*each, marker, label=f"{each[0]} workers")


def together():
    """Answer to T6: the label of the x axes belongs to the whole figure."""
    result, runs = drawn(x="")
    result.supxlabel("number of workers")
    return result, runs


SAMPLES = {
    "resnet50.10": [(STEPS,), (BY_HAND,), (STEPS | {"together": 0.79},)],
    "resnet50.12": [(RUNS,), (changed(RUNS[:2], 1, steps=7),)],
}
ANSWERS = {
    "resnet50.3": dict(
        right=[script()],
        wrong=[
            script(("tf.distribute.MirroredStrategy(devices=workers)", "tf.distribute.get_strategy()")),
            script((", callbacks=[recorder]", "")),
        ],
        secret=r"0\.03\b|devices=workers",
    ),
    "resnet50.4": dict(  # exact, rounded, or of the whole seconds
        right=[(5.1, RUN), (5, RUN), (5, EVEN), (4.88, STEPPED), (4.9, STEPPED), (5, STEPPED)]
        + [(seconds, SPREAD) for seconds in (7, 7.1, 43 / 6)],
        wrong=[(23.5 / 4, RUN), (20.9 / 4, EVEN), (0.61, STEPPED), (7.032, SPREAD), (7.048, SPREAD)],
        secret=r"\b5\.1",
    ),
    "resnet50.8": dict(
        right=[
            ("faster", RUNS),
            ("can't tell", NOISY),
            ("can\N{RIGHT SINGLE QUOTATION MARK}t tell", SINGLE),
            ("Slower ", SLOWER),
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
    "resnet50.10": dict(right=[(1.81, BY_HAND)]),  # of what is printed, rounded in between
    "T6": dict(
        right=[
            (plots.scaling(RUNS), RUNS),
            drawn(lambda axis, x, y: axis.errorbar(x[::-1], y[::-1], yerr=[0.1] * 3)),
            drawn(lambda axis, x, y: axis.bar(["1", "2", "4"], y)),
            drawn(one_by_one),
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
            *(labelled(label, *UNITS[1:]) for label in ("time (ms)", "epochs/s", "s/step")),
            ("no figure", RUNS),
        ],
    ),
}
