"""Studies while another process takes a core now and then: do their intervals hold the speedup of the quiet machine?

    python benchmarks/drift.py [--studies 10] [--model SmallCNN] [--image_size 64] [--json]

First quiet studies (in turns) give the speedup of 2 workers over 1 that counts as the truth. Then, while an intruder
computes on one core for 30 s, at random times, each study is made twice: in turns (labs.jobs.Turns), and one training
after the other (3 repeats of 3 epochs each). Both have as many steady epochs. In a study in turns, rounds wait, for up
to a minute in all, until other programs leave the cores; those in which they took them all the same are left out, or
the study says that they were too many; such studies are counted apart.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from statistics import fmean

from labs import jobs
from labs.results import metrics
from labs.results.run import load_record

BURST, GAP = 30.0, 90.0  # seconds: how long the intruder computes, and how long it rests on the average


class Intruder(threading.Thread):
    """A process on one core, for BURST seconds at a time."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.random, self.done = random.Random(seed), threading.Event()

    def run(self):
        while not self.done.wait(self.random.expovariate(1 / GAP)):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.done.wait(BURST)
            busy.kill()
            busy.wait()


def arguments(args, workers, epochs, repeats):
    asked = {"model": args.model, "workers": workers, "batch_size": 64 * workers, "images": args.images}
    asked |= {"image_size": args.image_size}
    asked |= {"epochs": epochs, "repeats": repeats}
    return ["labs.training.program", *(f"--{key}={value}" for key, value in asked.items())]


def measure(args, folder, turns):
    """The speedup of 2 workers of one study, as an Estimate."""
    if turns:
        with jobs.Turns(show=False, explain=False) as together:
            for workers in (1, 2):
                together.start("-m", *arguments(args, workers, 7, 1), name=f"w{workers}", runs=folder)
        done = together.jobs
    else:
        done = [
            jobs.run("-m", *arguments(args, workers, 3, 3), name=f"w{workers}", runs=folder, show=False)
            for workers in (1, 2)
        ]
    one, two = (load_record(job.record) for job in done)
    return metrics.speedup(two, one)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=10, help="studies with the intruder, of each kind (default: 10)")
    parser.add_argument("--quiet", type=int, default=3, help="studies without it (default: 3)")
    parser.add_argument("--model", default="SmallCNN", help="default: SmallCNN")
    parser.add_argument("--images", type=int, default=1792, help="images of an epoch (default: 1792)")
    parser.add_argument("--image_size", type=int, default=64, help="pixels per side (default: 64)")
    parser.add_argument("--json", action="store_true", help="print every study")
    args = parser.parse_args()
    found = {"quiet": [], "in turns": [], "one after the other": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.quiet):
            found["quiet"].append(measure(args, Path(folder, f"quiet{number}"), True))
        truth = math.exp(fmean(math.log(estimate.value) for estimate in found["quiet"]))
        intruder = Intruder(seed=15)
        intruder.start()
        for number in range(args.studies):
            for kind in ("in turns", "one after the other")[:: 1 if number % 2 else -1]:
                estimate = measure(args, Path(folder, f"{kind}{number}"), kind == "in turns")
                found[kind].append(estimate)
                print(
                    f"{kind}: {estimate.value:.3f} [{estimate.interval[0]:.3f}, {estimate.interval[1]:.3f}]", flush=True
                )
        intruder.done.set()
        intruder.join()
    spans = ", ".join("{:.3f} [{:.3f}, {:.3f}]".format(e.value, *e.interval) for e in found["quiet"])
    print(f"speedup of the quiet machine: {truth:.3f}, from {spans}")
    for kind in ("in turns", "one after the other"):
        silent = [e for e in found[kind] if not any("busy machine" in note for note in e.notes)]
        held = sum(low <= truth <= high for low, high in (e.interval for e in silent))
        width = fmean(e.interval[1] / e.interval[0] for e in silent) if silent else math.nan
        busy = f"; {len(found[kind]) - len(silent)} studies say that the machine was busy"
        print(f"{kind}: {held} of {len(silent)} intervals hold it, mean width x{width:.3f}{busy}")
    if args.json:
        print(json.dumps({kind: [(e.value, e.interval) for e in several] for kind, several in found.items()}))


if __name__ == "__main__":
    main()
