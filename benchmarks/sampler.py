"""What watching a training costs (lessons.faster_steps.sampler).

    python benchmarks/sampler.py [--rounds 20] [--every 0.2] [--json]

Two measurements, in this process, on one core:

    sample    the sampler's own code for one sample, called directly 1,000 times in each round
    training  images/second of solutions/scripts/ResNet50.py, the file itself, with a sampler and without: its call of
              `fit` is repeated with both in turn after one warm-up, and timed from outside

Intervals are 95 %: Student's t over the rounds, on the logarithms for the ratio.
"""

import argparse
import contextlib
import io
import json
import os
import runpy
import sys
import tempfile
import time
from pathlib import Path

import labs  # noqa: F401  (import this first: it sets up TensorFlow)
from labs.results import intervals
from lessons.faster_steps.sampler import Sampler

ROOT = Path(__file__).resolve().parents[1]


def sample(folder, rounds, calls=1000):
    """Seconds of one sample, a mean for each round."""
    found, sampler = [], Sampler(Path(folder) / "own.samples", every=3600.0).start()
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            sampler._sample()
        found.append((time.perf_counter() - begin) / calls)
    sampler.stop()
    return found


def training(folder, rounds, images, batch, every):
    """Images/second of the student's script: {with: [...], without: [...]}."""
    import keras

    found, real, used = {"with": [], "without": []}, keras.Model.fit, images // batch * batch

    def measured(model, *arguments, callbacks, **options):
        def once(name):
            watch = Sampler(Path(folder) / "training.samples", every).start() if name == "with" else None
            begin = time.perf_counter()
            real(model, *arguments, callbacks=[], **options)
            seconds = time.perf_counter() - begin
            if watch:
                watch.stop()
            return used / seconds

        once("without")
        for number in range(rounds):
            for name in sorted(found, reverse=number % 2 == 1):
                found[name].append(once(name))

    keras.Model.fit = measured
    script, given = ROOT / "solutions/scripts/ResNet50.py", sys.argv
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
    parser.add_argument("--every", type=float, default=0.2, help="seconds between samples (default: 0.2)")
    parser.add_argument("--images", type=int, default=256, help="images of a fit of ResNet50.py (default: 256)")
    parser.add_argument("--batch", type=int, default=64, help="its batch size (default: 64)")
    parser.add_argument("--json", action="store_true", help="print every measurement")
    args = parser.parse_args()
    if args.rounds < 2 or not 1 <= args.batch <= args.images or args.every <= 0:
        parser.error("--rounds must be 2 or more, --images at least one --batch, --every above 0")
    with tempfile.TemporaryDirectory() as folder:
        rates = training(folder, args.rounds, args.images, args.batch, args.every)  # first: it sets up the worker
        own = sample(folder, args.rounds)
    ratio = intervals.mean([a / b for a, b in zip(rates["with"], rates["without"], strict=True)])
    one = intervals.mean(own)
    if args.json:
        found = {"training": rates, "sample": own, "ratio": [ratio.value, *ratio.interval]}
        print(json.dumps(vars(args) | {"load": os.getloadavg()[0], "results": found}, indent=1))
        return
    print("| cost of the sampler | value | 95 % interval |\n|---|---|---|")
    low, high = (1e6 * bound for bound in one.interval)
    print(f"| one sample | {1e6 * one.value:.1f} µs | {low:.1f} to {high:.1f} µs |")
    mean = {name: sum(values) / len(values) for name, values in rates.items()}
    what = f"images/s of ResNet50.py, {mean['with']:.1f} with / {mean['without']:.1f} without"
    low, high = ratio.interval
    print(f"| {what}, a sample each {args.every:g} s | {ratio.value:.3f} | {low:.3f} to {high:.3f} |")


if __name__ == "__main__":
    main()
