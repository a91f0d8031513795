"""The all-reduce of ResNet50V2's whole gradient between 2 ranks that have nothing else to do, over Gloo and over MPI.

    python benchmarks/gradient.py [--rounds 6] [--repeats 10] [--json]

A round starts the ranks over one launcher, then over the other, in an order that changes. Rank 0 times
`horovod.tensorflow.grouped_allreduce` of 174 tensors `--repeats` times, after one that does not count: wall time, and
its own processor time meanwhile, all threads together. Waiting over MPI takes processor time, too, so that is no
time that the network would have free. Medians of a launch; their mean over the rounds with Student's t interval.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAUNCHERS = {"horovodrun": "Gloo", "mpiexec": "MPI"}


def rank_program(args):
    """One rank; rank 0 writes {tensors, bytes, wall: [s, ...], processor: [s, ...]} to args.out."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    from labs import devices, models

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    gradient = [tf.zeros(weight.shape) for weight in models.network("ResNet50V2", 32, 10).trainable_weights]

    @tf.function(jit_compile=False)
    def exchange(tensors):
        return hvd.grouped_allreduce(tensors)

    found = {"tensors": len(gradient), "bytes": 4 * sum(math.prod(each.shape) for each in gradient)}
    found |= {"wall": [], "processor": []}
    for repeat in range(args.repeats + 1):
        hvd.allreduce(tf.zeros(1), name="begin")  # all ranks begin together
        begin = time.perf_counter(), time.process_time()
        exchange(gradient)[-1].numpy()
        if repeat:
            found["wall"].append(time.perf_counter() - begin[0])
            found["processor"].append(time.process_time() - begin[1])
    if hvd.rank() == 0:
        Path(args.out).write_text(json.dumps(found))


def measure(launcher, args):
    """Start 2 ranks; returns what rank 0 wrote."""
    from labs.jobs import launch

    with tempfile.TemporaryDirectory() as folder:
        own = [sys.executable, __file__, "--out", f"{folder}/found.json", "--repeats", str(args.repeats)]
        environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": str(ROOT)}
        command = [*launch.command(2, launcher), *own]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"2 ranks with {launcher} failed:\n{done.stderr}\n{done.stdout}")
        return json.loads(Path(folder, "found.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="launches over each launcher (default: 6)")
    parser.add_argument("--repeats", type=int, default=10, help="all-reduces of a launch (default: 10)")
    parser.add_argument("--json", action="store_true", help="print every measurement")
    parser.add_argument("--out", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.out:
        return rank_program(args)
    if args.rounds < 1 or args.repeats < 1:
        parser.error("--rounds and --repeats must be 1 or more")
    from labs.results.intervals import plain

    found = {launcher: [] for launcher in LAUNCHERS}
    for number in range(args.rounds):
        for launcher in sorted(found, reverse=number % 2 == 1):
            found[launcher].append(measure(launcher, args))
    print("| over | tensors, MB | wall time, ms | rank's own processor time, ms |\n|---|---|---|---|")
    for launcher, launches in found.items():
        size = f"{launches[0]['tensors']}, {launches[0]['bytes'] / 1e6:.0f}"
        cells = []
        for key in ("wall", "processor"):
            values = [1e3 * statistics.median(each[key]) for each in launches]
            reach = plain(values)
            cells.append(f"{statistics.fmean(values):.0f}" + (" ({:.0f} to {:.0f})".format(*reach) if reach else ""))
        print(f"| {LAUNCHERS[launcher]} | {size} | {' | '.join(cells)} |")
    if args.json:
        print(json.dumps(vars(args) | {"load": os.getloadavg()[0], "results": found}, indent=1))


if __name__ == "__main__":
    main()
