"""How long an all-reduce takes here: real Horovod ranks, messages of 1 KiB to 64 MiB, latency and bandwidth.

python -m labs.measure.allreduce FILE REPEATS SEED SIZE...      what each rank runs; rank 0 writes FILE
"""

import json
import math
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from labs import devices, files, jobs
from labs.errors import LabsError, UseError, whole
from labs.jobs import launch
from labs.printed import digits
from labs.results import intervals

SIZES = tuple(2**10 * 4**k for k in range(9))  # bytes: 1 KiB, 4 KiB, ..., 64 MiB
CYCLE = 1e-4  # seconds between Horovod's looks for work, shorter than its default, so that links are measured
BYTES_AT_ONCE = 2**21  # small messages are timed several at a time, up to this many bytes or MESSAGES_AT_ONCE
MESSAGES_AT_ONCE = 40  # so many that it counts little when, within about one message, the last rank begins
TIMEOUT = 300  # seconds: ten times what a measurement takes


def measure(ranks=2, *, sizes=SIZES, repeats=15, launcher=None, runs=None, show=False) -> dict[str, Any]:
    """Time all-reduces among `ranks` processes of this machine, and fit latency and bandwidth. Takes half a minute.

    sizes: of the messages in bytes; repeats: samples of each; launcher: see labs.jobs.launch
    runs: folder that keeps the job's files (default: none); show: a progress bar

    Returns a dict, ready for JSON: kind "measured"; rows [{bytes, seconds (median), interval, samples,
    bytes_per_second}], the last of them what each rank's link carries, 2 (K - 1) / K x bytes / seconds; latency and
    bandwidth, each {value, unit, interval}; ranks, launcher, machine, versions, notes.
    Raises UseError, also for ranks that cannot be started, and LabsError for ranks that did not finish or whose times
    say nothing.
    """
    whole("ranks", ranks, 2)  # one has nobody to exchange with
    for size in sizes:
        whole("the size of a message", size, 4)
    if len(set(sizes)) < 3:
        raise UseError(f"sizes are {tuple(sizes)}: latency and bandwidth need 3 different ones.")
    whole("repeats", repeats, 6)  # a median's 95 % interval needs as many
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(runs if runs is not None else folder)
        file = folder.resolve() / "allreduce_times.json"
        seed = secrets.randbelow(2**31)
        arguments = ["labs.measure.allreduce", str(file), repeats, seed, *sizes]
        env = {"HOROVOD_CYCLE_TIME": str(1e3 * CYCLE)}
        job = jobs.start("-m", *arguments, name="allreduce", runs=folder, ranks=ranks, launcher=launcher, env=env)
        job.wait(timeout=TIMEOUT, show=show)
        if job.state != "finished":
            raise LabsError(f"The all-reduce was not measured. {job.explain()}")
        measured = json.loads(file.read_text(encoding="utf-8"))
    notes = []
    if ranks > devices.cores() and not measured["machine"]["gpus"]:
        notes.append(f"oversubscribed: more ranks ({ranks}) than cores ({devices.cores()}), which wait for each other")
    rows = [row(ranks, int(size), seconds) for size, seconds in measured["seconds"].items()]
    latency, bandwidth, worst = fit(ranks, [r["bytes"] for r in rows], [r["seconds"] for r in rows])
    if worst > 0.5:  # a choice: by less, the two numbers still say what a message costs
        notes.append(
            f"the ring's formula misses a message's time by up to {worst:.0%}: other algorithms for small "
            "messages, or caches, are at work"
        )
    result = {"kind": "measured", "ranks": ranks, "launcher": launcher or launch.SUPPORTED[0], "cycle_seconds": CYCLE}
    result |= {"order_seed": seed, "rows": rows, "latency": latency, "bandwidth": bandwidth}
    return result | {"machine": measured["machine"], "versions": measured["versions"], "notes": notes}


def row(ranks: int, size: int, seconds: Sequence[float]) -> dict[str, Any]:
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


def fit(ranks: int, sizes: Sequence[int], seconds: Sequence[float]) -> tuple[dict, dict, float]:
    """(latency, bandwidth, largest relative residual) of the ring's formula; the first two are {value, unit, interval}.

    seconds = 2 (K - 1) (latency + size / K / bandwidth), since so many steps of a ring pass on a K-th each, by least
    squares with weights 1 / seconds^2, so that small and large messages count alike. Their 95 % intervals come from the
    residuals, with Student's t of n - 2 degrees of freedom (N. Draper and H. Smith, Applied Regression Analysis,
    section 1.4).
    Raises LabsError if large messages took no longer than small ones.
    """
    import numpy as np

    size, time_of = np.array(sizes, float), np.array(seconds, float)
    (slope, fixed), covariance = np.polyfit(size, time_of, 1, w=1 / time_of, cov=True)
    if slope <= 0:
        raise LabsError(
            "Large messages took no longer than small ones, so latency and bandwidth cannot be told apart. Measure "
            "again on an idle machine, with sizes that differ more."
        )
    of_slope, of_fixed = intervals.t_quantile(len(sizes) - 2) * np.sqrt(np.diag(covariance))
    messages = 2 * (ranks - 1)
    low, value, high = (float(max(0.0, end)) / messages for end in (fixed - of_fixed, fixed, fixed + of_fixed))
    latency = {"value": value, "unit": "s", "interval": [low, high]}
    rate = messages / ranks / float(slope)
    reach = math.exp(of_slope / slope)  # on a logarithmic scale: no link carries less than nothing
    bandwidth = {"value": rate, "unit": "bytes/s", "interval": [rate / reach, rate * reach]}
    residuals = np.abs(fixed + slope * size - time_of) / time_of
    return latency, bandwidth, float(residuals.max())


def table(result: dict[str, Any]) -> str:
    """The result of `measure` as plain text."""
    lines = [f"All-reduce among {result['ranks']} ranks ({result['launcher']}), {result['kind']}", ""]
    lines.append("     bytes     median (ms)  [in these minutes]     link (MB/s)")
    for r in result["rows"]:
        low, high = (1e3 * end for end in r["interval"])
        times = f"{r['bytes']:>10}  {digits(1e3 * r['seconds'], 4):>12}  [{digits(low, 4)}, {digits(high, 4)}]"
        lines.append(f"{times:<52}{digits(r['bytes_per_second'] / 1e6, 4):>10}")
    lines.append("")
    for name, factor, unit in (("latency", 1e6, "us a message"), ("bandwidth", 1e-6, "MB/s of each rank's link")):
        value, low, high = (factor * each for each in (result[name]["value"], *result[name]["interval"]))
        lines.append(f"{name}: {digits(value, 4)} [{digits(low, 4)}, {digits(high, 4)}] {unit}")
    lines.append("Fitted: 2 (K - 1) messages of bytes / K each, one after the other.")
    return "\n".join([*lines, *(f"Note: {note}." for note in result["notes"])])


def _rank(file, repeats, seed, *sizes):
    """Time the all-reduces in this rank, one of several; rank 0 writes {seconds: {size: [...]}, machine, versions}."""
    import tensorflow as tf

    from labs import hvd

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())

    def sums(size):
        return tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name=f"bytes_{size}"))

    every = {size: (sums(size), tf.ones([max(1, size // 4)])) for size in map(int, sizes)}
    seconds = {size: [] for size in every}
    for once, values in every.values():
        for _ in range(3):
            once(values).numpy()
    # All sizes in each round, in an order that all ranks draw alike: what else the machine does meets each of them.
    for _, order in zip(range(int(repeats)), jobs.orders(int(seed), len(every)), strict=False):
        for size, (once, values) in (list(every.items())[number] for number in order):
            count = max(1, min(MESSAGES_AT_ONCE, BYTES_AT_ONCE // size))
            hvd.allreduce(tf.ones([]), name="together")  # all ranks start from here
            begin = time.perf_counter()
            for _ in range(count):
                result = once(values)
            result.numpy()
            seconds[size].append((time.perf_counter() - begin) / count)
            if float(result[0]) != hvd.size():
                sys.exit(f"The sum of {hvd.size()} ones came out as {float(result[0])}: try the other --launcher.")
    if hvd.rank() == 0:
        found = {"seconds": seconds, "machine": devices.machine(), "versions": devices.versions()}
        files.write(Path(file), json.dumps(found))


if __name__ == "__main__":
    _rank(*sys.argv[1:])
