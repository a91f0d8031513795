"""Answers to the checks of 05_resnet50_scaling that have a judge of their own, and steps and runs for the others."""

from epochs import numbered
from making import UNITS, changed, figure, measured, one_by_one

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


def of_speedups(change):
    """Answer to T6: a figure in which each speedup is change(workers, speedup)."""
    others = [run.model_copy(update={"speedup": Estimate(change(run.workers, run.speedup.value))}) for run in RUNS]
    return figure(others)[0], RUNS


def labelled(*labels):
    """Answer to T6: with these labels in place of the last ones of UNITS."""
    return figure(RUNS, labels=(*UNITS[: 3 - len(labels)], *labels))


def after(change, **options):
    """Answer to T6: a figure after change(figure)."""
    drawn, runs = figure(RUNS, **options)
    change(drawn)
    return drawn, runs


SAMPLES = {
    "resnet50.10": [(STEPS,), (BY_HAND,), (STEPS | {"together": 0.79},)],
    "resnet50.12": [(RUNS,), (changed(RUNS[:2], 1, steps=7),)],
}
RIGHT = [  # of resnet50.4: exact, rounded, or of the whole seconds
    *(("resnet50.4", (seconds, RUN)) for seconds in (5.1, 5)),
    ("resnet50.4", (5, EVEN)),
    *(("resnet50.4", (seconds, STEPPED)) for seconds in (4.88, 4.9, 5)),
    *(("resnet50.4", (seconds, SPREAD)) for seconds in (7, 7.1, 43 / 6)),
    ("resnet50.8", ("faster", RUNS)),
    ("resnet50.8", ("can't tell", NOISY)),
    ("resnet50.8", ("Cannot tell", SINGLE)),
    ("resnet50.8", ("slower", SLOWER)),
    ("resnet50.10", (1.81, BY_HAND)),  # of what is printed, rounded in between
    ("T6", (plots.scaling(RUNS), RUNS)),
    ("T6", figure(RUNS, lambda axis, x, y, *_: axis.errorbar(x[::-1], y[::-1], yerr=[0.1] * 3))),
    ("T6", figure(RUNS, lambda axis, x, y, *_: axis.bar(["1", "2", "4"], y))),
    ("T6", figure(RUNS, one_by_one)),
    ("T6", figure(RUNS, lambda axis, x, y, *_: (axis.plot(x, [round(each, 2) for each in y]), axis.margins(0)))),
    ("T6", after(lambda drawn: drawn.supxlabel("number of workers"), x="")),
    ("T6", labelled("s per epoch (12 steps)", "throughput (img/s)", "speedup T(1) (s) / T(p) (s)")),
]
WRONG = [
    ("resnet50.4", (23.5 / 4, RUN)),
    ("resnet50.4", (20.9 / 4, EVEN)),
    ("resnet50.4", (0.61, STEPPED)),
    ("resnet50.4", (7.032, SPREAD)),
    ("resnet50.4", (7.048, SPREAD)),
    ("resnet50.8", ("faster", RUNS[1:])),
    ("resnet50.8", ("faster", changed(RUNS, 1, state="failed"))),
    ("resnet50.8", ("faster", "runs/w1.out")),
    ("resnet50.8", ("faster", changed(RUNS, 1, kind="recorded"))),
    ("resnet50.8", ("faster", NOISY)),
    ("resnet50.8", ("can't tell", RUNS)),
    ("resnet50.8", ("faster", SINGLE)),
    ("T6", after(lambda drawn: drawn.axes[2].remove())),
    ("T6", figure(RUNS, lambda axis, x, y, *_: axis.plot([2, 1, 4], [y[1], y[0], y[2]]))),
    ("T6", of_speedups(lambda workers, speedup: 1 / speedup)),
    ("T6", of_speedups(lambda workers, speedup: speedup / workers)),
    ("T6", figure(RUNS, x="run")),
    ("T6", figure(RUNS, lambda axis, x, y, *_: axis.plot(range(3), y))),
    ("T6", after(lambda drawn: [axis.set_ylim(0, 6) for axis in drawn.axes])),
    ("T6", (figure(RUNS)[0], changed(RUNS, 1, kind="recorded"))),
    ("T6", labelled("speedup (s)")),
    *(("T6", labelled(label, *UNITS[1:])) for label in ("time (ms)", "epochs/s", "s/step")),
    ("T6", ("no figure", RUNS)),
]
STYLES = [
    ("resnet50.3", "import keras\n", "import keras\nfrom keras.applications.resnet_v2 import ResNet50V2 as Net\n")
    + ("keras.applications.ResNet50V2(", "Net(classifier_activation=None, ", 'loss="sparse_categorical_crossentropy"')
    + ("loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)",)
]
MISTAKES = [
    ("resnet50.3", "tf.distribute.MirroredStrategy(devices=workers)", "tf.distribute.get_strategy()"),
    ("resnet50.3", ", callbacks=[recorder]", ""),
]
