"""How long an all-reduce takes here: real Horovod ranks, messages of 1 KiB to 64 MiB, latency and bandwidth.

python -m labs.measure.allreduce FILE REPEATS SEED SIZE...      what each rank runs; rank 0 writes FILE
"""

import json
import secrets
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from labs import devices, files, jobs
from labs.errors import LabsError, UseError
from labs.jobs import launch
from labs.printed import as_json

SIZES = tuple(2**10 * 4**k for k in range(9))  # bytes: 1 KiB, 4 KiB, ..., 64 MiB
CYCLE = 1e-4  # seconds between Horovod's looks for work, shorter than its default, so that links are measured
BATCH = 2**21  # bytes: small messages are timed several at a time, up to this many bytes or MOST messages
MOST = 40


class AllReduceError(UseError):
    """The measurement cannot be made as asked; the message says why and what to do."""


class NotMeasuredError(LabsError):
    """The ranks did not finish, or their times say nothing; the message says why."""


def measure(ranks=2, *, sizes=SIZES, repeats=15, launcher=None, runs=None, show=False, timeout=300):
    """Time all-reduces among `ranks` processes of this machine, and fit latency and bandwidth. Takes half a minute.

    Returns a dict, ready for JSON: kind "measured"; rows [{bytes, seconds (median), interval, samples,
    bytes_per_second}], the last of them what each rank's link carries, 2 (K - 1) / K x bytes / seconds; latency and
    bandwidth, each {value, unit, interval, error, source}; ranks, launcher, machine, versions, notes.
    runs: folder that keeps the job's files (default: none); launcher: see labs.jobs.launch; show: a progress bar.
    Raises AllReduceError for wrong use, NotMeasuredError, labs.jobs.launch.LaunchError: ranks that cannot be started.
    """
    from labs.costs.parameter import CostError

    sizes = tuple(sizes)
    if ranks == 1:
        raise AllReduceError("1 rank has nobody to exchange with: measure 2 or more.")
    if len(set(sizes)) < 3 or not all(isinstance(size, int) and size >= 4 for size in sizes):
        raise AllReduceError(
            f"sizes are {sizes}: latency and bandwidth need 3 different whole numbers of bytes, each 4 or more."
        )
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 6:
        raise AllReduceError(f"repeats is {repeats!r}: a median's 95 % interval needs 6 or more.")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(runs if runs is not None else folder)
        file = folder.resolve() / "allreduce_times.json"
        seed = secrets.randbelow(2**31)
        arguments = ["labs.measure.allreduce", str(file), repeats, seed, *sizes]
        env = {"HOROVOD_CYCLE_TIME": str(1e3 * CYCLE)}
        job = jobs.start("-m", *arguments, name="allreduce", runs=folder, ranks=ranks, launcher=launcher, env=env)
        job.wait(timeout, show)
        if job.state != "finished" or not file.is_file():
            raise NotMeasuredError(f"The all-reduce was not measured. {job.explain()}")
        found = json.loads(file.read_text(encoding="utf-8"))
    notes = []
    if ranks > devices.cores() and not found["machine"]["gpus"]:
        notes.append(f"oversubscribed: more ranks ({ranks}) than cores ({devices.cores()}), which wait for each other")
    rows = [row(ranks, int(size), seconds) for size, seconds in found["seconds"].items()]
    try:
        latency, bandwidth, worst = fit(ranks, [r["bytes"] for r in rows], [r["seconds"] for r in rows])
    except CostError:
        raise NotMeasuredError(
            "Large messages took no longer than small ones, so latency and bandwidth cannot be told apart. Measure "
            "again on an idle machine, with sizes that differ more."
        ) from None
    if worst > 0.5:
        notes.append(
            f"the ring's formula misses a message's time by up to {worst:.0%}: other algorithms for small "
            "messages, or caches, are at work"
        )
    result = {"kind": "measured", "ranks": ranks, "launcher": launcher or launch.LAUNCHERS[0], "cycle_seconds": CYCLE}
    result |= {"order_seed": seed, "rows": rows}
    for name, fitted in (("latency", latency), ("bandwidth", bandwidth)):
        result[name] = asdict(fitted) | {"interval": fitted.interval and list(fitted.interval)}  # as JSON has it
    return result | {"machine": found["machine"], "versions": found["versions"], "notes": notes}


def row(ranks, size, seconds):
    """One row of the result for the samples of one size. The interval of the median is between two order statistics,
    whose ranks follow from the binomial distribution (T. Hoefler and R. Belli, SC15, section 3.1.3)."""
    from scipy.stats import binom

    ordered = sorted(seconds)
    below = int(binom.ppf(0.025, len(ordered), 0.5))
    centre = median(ordered)
    return {
        "bytes": size,
        "seconds": centre,
        "interval": [ordered[max(0, below - 1)], ordered[-max(1, below)]],
        "samples": len(ordered),
        "bytes_per_second": 2 * (ranks - 1) / ranks * size / centre,
    }


def fit(ranks, sizes, seconds):
    """(latency in s, bandwidth in bytes/s, largest relative residual) of the ring's formula, as Parameters.

    seconds = 2 (K - 1) (latency + size / K / bandwidth), see labs.simulate.reduce.ring_seconds, by least squares with
    weights 1 / seconds^2, so that small and large messages count alike. Raises CostError.
    """
    from labs.costs.least_squares import line
    from labs.costs.parameter import CostError, Parameter

    found, fixed, _ = line(sizes, seconds)
    if fixed is None:
        raise CostError("Messages of one size cannot tell latency and bandwidth apart: give 3 sizes or more.")
    messages, source = 2 * (ranks - 1), f"least squares over {len(sizes)} message sizes on {ranks} ranks"
    value, slope = fixed.value / messages, found.slope
    ends = [end and messages / ranks / end for end in reversed(slope.interval or ())]
    bandwidth = messages / ranks / slope.value
    ends = (ends[0], ends[1] or 1e3 * bandwidth) if ends else None  # a slope down to 0: no upper end from these sizes
    span = fixed.interval and tuple(end / messages for end in fixed.interval)
    relative = [abs(fixed.value + slope.value * size - t) / t for size, t in zip(sizes, seconds, strict=True)]
    return (Parameter(value, "s", span, source), Parameter(bandwidth, "bytes/s", ends, source), max(relative))


def table(result: dict[str, Any]) -> str:
    """The result of `measure` as plain text."""
    lines = [f"All-reduce among {result['ranks']} ranks ({result['launcher']}), {result['kind']}", ""]
    lines.append("     bytes     median (ms)  [in these minutes]     link (MB/s)")
    for r in result["rows"]:
        low, high = (1e3 * end for end in r["interval"])
        times = f"{r['bytes']:>10}  {1e3 * r['seconds']:>12.4g}  [{low:.4g}, {high:.4g}]"
        lines.append(f"{times:<52}{r['bytes_per_second'] / 1e6:>10.4g}")
    lines.append("")
    for name, factor, unit in (("latency", 1e6, "us a message"), ("bandwidth", 1e-6, "MB/s of each rank's link")):
        p = result[name]
        span = f" [{p['interval'][0] * factor:.4g}, {p['interval'][1] * factor:.4g}]" if p["interval"] else ""
        lines.append(f"{name}: {p['value'] * factor:.4g}{span} {unit}")
    lines.append("Fitted: 2 (K - 1) messages of bytes / K each, one after the other.")
    return "\n".join([*lines, *(f"Note: {note}." for note in result["notes"])])


def run(args):
    """Measure and print; returns the exit code 0. Raises as `measure`."""
    result = measure(args.ranks, repeats=args.repeats, launcher=args.launcher, runs=args.out, show=not args.json)
    print(as_json(result) if args.json else table(result))
    return 0


def _rank(file, repeats, seed, *sizes):
    """Time the all-reduces in this rank, one of several; rank 0 writes {seconds: {size: [...]}, machine, versions}."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    if hvd.size() == 1:
        sys.exit("This rank is alone: Horovod and the launcher are of different MPIs.")

    def sums(size):
        return tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name=f"bytes_{size}", ignore_name_scope=True))

    every = {size: (sums(size), tf.ones([max(1, size // 4)])) for size in map(int, sizes)}
    seconds = {size: [] for size in every}
    for once, values in every.values():
        for _ in range(3):
            once(values).numpy()
    # All sizes in each round, in an order that all ranks draw alike: what else the machine does meets each of them.
    for _, order in zip(range(int(repeats)), jobs.orders(int(seed), len(every)), strict=False):
        for size, (once, values) in (list(every.items())[number] for number in order):
            count = max(1, min(MOST, BATCH // size))
            hvd.allreduce(tf.ones([]), name="together")  # all ranks start from here
            begin = time.perf_counter()
            for _ in range(count):
                result = once(values)
            result.numpy()
            seconds[size].append((time.perf_counter() - begin) / count)
            if float(result[0]) != hvd.size():
                sys.exit(f"The all-reduce of ones on {hvd.size()} ranks gave {float(result[0])}: this sum is wrong.")
    if hvd.rank() == 0:
        found = {"seconds": seconds, "machine": devices.machine(), "versions": devices.versions()}
        files.write(Path(file), json.dumps(found))


if __name__ == "__main__":
    _rank(*sys.argv[1:])
