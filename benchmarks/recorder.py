"""What the kit's recorder (labs.training.Recorder) costs.

    python benchmarks/recorder.py [--rounds 20] [--json]

Three measurements, all in this process, on one core:

    hooks     the recorder's own code per step: its hook called directly, 20,000 times, plus the report for the
              progress bar, which is written every 0.5 s, so that one step of 5 ms bears 1 % of it
    fit       what a step of `fit` costs more with the recorder, Keras' handling of callbacks included: fits of an
              almost empty model (one weight) of 500 steps with and without it, in turn; median of the differences of
              neighbours (Keras runs hooks in a second thread, which makes whole fits fast or slow, with and without)
    training  images/second of solutions/scripts/ResNet50.py, the file itself, with and without the recorder: its call
              of `fit` is repeated with both in turn after one warm-up, and timed from outside

The record that is written at an epoch's end (with fsync) is inside "training", and listed apart, per epoch.
Intervals are 95 %: Student's t over the rounds, on the logarithms for the ratio; order statistics for the median.
"""

import argparse
import contextlib
import io
import json
import math
import os
import runpy
import statistics
import sys
import tempfile
import time
from pathlib import Path

from import_time import median  # beside this file

import labs  # noqa: F401  (import this first: it sets up TensorFlow)

ROOT = Path(__file__).resolve().parents[1]
STEP = 5e-3  # seconds: the step whose 1 % the recorder may cost
REPORTS = 0.5  # seconds between two reports to the progress bar


def interval(values):
    """(mean, lower, upper) by Student's t; None for the bounds of a single value."""
    from labs.results.intervals import plain

    return statistics.fmean(values), *(plain(values) or (None, None))


def new_recorder(folder, model, images=64, batch=1):
    from labs import training

    settings = {
        "dataset": "none",
        "image_size": 1,
        "images": None,
        "repeats": 10**9,
        "seed": 0,
        "run": "bench",
        "runs": folder,
        "epochs": 1,
        "batch_size": batch,
    }
    return training.Recorder(argparse.Namespace(**settings), model, images=images)


def small_model():
    """One weight: its step costs next to nothing."""
    import keras

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile("sgd", "mse", jit_compile=False)
    return model


def hooks(folder, rounds, calls=20_000):
    """Seconds per call: {step: [...], report: [...], epoch: [...]}; report and epoch after `calls` / 100 steps."""
    recorder, found = new_recorder(folder, small_model()), {"step": [], "report": [], "epoch": []}
    for _ in range(rounds):
        recorder.on_epoch_begin(0)
        recorder._reported = math.inf  # no report in between: it is timed apart
        begin = time.perf_counter()
        for step in range(calls):
            recorder.on_train_batch_begin(step)
        found["step"].append((time.perf_counter() - begin) / calls)
        recorder._steps = recorder._steps[: calls // 100]
        recorder.record.epochs.clear()
        begin = time.perf_counter()
        for _ in range(20):
            recorder._report(time.perf_counter())
        found["report"].append((time.perf_counter() - begin) / 20)
        begin = time.perf_counter()
        recorder.on_epoch_end(0, {"loss": 1.0, "accuracy": 0.5})
        found["epoch"].append(time.perf_counter() - begin)
    return found


def fit(folder, rounds, steps=500):
    """Seconds per step of an almost empty `fit`: {with: [...], without: [...]}."""
    import numpy as np

    model = small_model()
    recorder, x = new_recorder(folder, model, steps), np.zeros((steps, 1), "float32")
    # One epoch's end costs as much as many empty steps; it is timed in `hooks`.
    recorder.on_epoch_end = recorder.on_train_end = lambda *_: None

    def once(callbacks):
        begin = time.perf_counter()
        model.fit(x, x, batch_size=1, shuffle=False, verbose=0, callbacks=callbacks)
        return (time.perf_counter() - begin) / steps

    return in_turn(once, recorder, rounds)


def in_turn(once, recorder, rounds):
    """{with: [...], without: [...]} of `once(callbacks)`, the order changing from round to round."""
    once([])
    once([recorder])
    found = {"with": [], "without": []}
    for number in range(rounds):
        for name in sorted(found, reverse=number % 2 == 1):
            found[name].append(once([recorder] if name == "with" else []))
    return found


def training(folder, rounds, images, batch):
    """Images/second of the student's script: {with: [...], without: [...]}."""
    import keras

    found, real, used = {}, keras.Model.fit, images // batch * batch

    def measured(model, *arguments, callbacks, **options):
        def once(chosen):
            begin = time.perf_counter()
            real(model, *arguments, callbacks=chosen, **options)
            return used / (time.perf_counter() - begin)

        found.update(in_turn(once, callbacks[0], rounds))

    keras.Model.fit = measured
    script = ROOT / "solutions/scripts/ResNet50.py"
    given = sys.argv
    sys.argv = [str(script), "--epochs", "1", "--batch_size", str(batch), "--images", str(images), "--runs", folder]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        keras.Model.fit, sys.argv = real, given
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of each measurement (default: 20)")
    parser.add_argument("--images", type=int, default=256, help="images of a fit of ResNet50.py (default: 256)")
    parser.add_argument("--batch", type=int, default=64, help="its batch size (default: 64)")
    parser.add_argument("--json", action="store_true", help="print every measurement")
    args = parser.parse_args()
    if args.rounds < 1 or not 1 <= args.batch <= args.images:
        parser.error("--rounds and --batch must be 1 or more, --images at least one --batch")
    with tempfile.TemporaryDirectory() as folder:
        found = {"training": training(folder, args.rounds, args.images, args.batch)}  # first: it sets up the worker
        found["hooks"], found["fit"] = hooks(folder, args.rounds), fit(folder, 2 * args.rounds)
        logs = [math.log(a / b) for a, b in zip(*(found["training"][k] for k in ("with", "without")), strict=True)]
        pairs = zip(found["hooks"]["step"], found["hooks"]["report"], strict=True)
        per_step = [step + report * STEP / REPORTS for step, report in pairs]
        added = [a - b for a, b in zip(found["fit"]["with"], found["fit"]["without"], strict=True)]
        summary = {
            "step": interval(per_step),
            "fit": median(added),
            "epoch": interval(found["hooks"]["epoch"]),
            "ratio": [None if x is None else math.exp(x) for x in interval(logs)],
        }
        if args.json:
            print(json.dumps(vars(args) | {"load": os.getloadavg()[0], "results": found, "summary": summary}, indent=1))
        else:
            print(*table(summary, found), sep="\n")


def table(summary, found):
    """The summary as Markdown."""

    def row(what, estimate, unit, scale, aim, digits=1):
        middle, low, high = (None if x is None else f"{x * scale:.{digits}f}" for x in estimate)
        span = "-" if low is None else f"{low} to {high}{unit}"
        return f"| {what} | {middle}{unit} | {span} | {aim} |"

    yield "| cost of the recorder | value | 95 % interval | aim |"
    yield "|---|---|---|---|"
    yield row("its own code, per step", summary["step"], " µs", 1e6, "", 2)
    yield row("the same, of a step of 5 ms", summary["step"], " %", 100 / STEP, "under 1 %", 3)
    yield row("a step of an empty `fit`, with - without", summary["fit"], " µs", 1e6, "")
    yield row("the same, of a step of 5 ms", summary["fit"], " %", 100 / STEP, "under 1 %", 2)
    yield row("writing the record, per epoch of 200 steps", summary["epoch"], " ms", 1e3, "")
    rates = {key: statistics.fmean(values) for key, values in found["training"].items()}
    text = f"images/s of ResNet50.py, {rates['with']:.1f} with / {rates['without']:.1f} without"
    yield row(text, summary["ratio"], "", 1, "0.98 or more", 3)


if __name__ == "__main__":
    main()
