"""What the simulators of notebooks 01 and 02 take for many workers: seconds, median of several runs.

python benchmarks/simulators.py [--runs 7]
"""

import argparse
import time
from statistics import median

from lessons import reduce
from lessons.averages_and_rings import stragglers

WORKERS, STEPS = 10_000, 1000


def costs():
    """Time of a ring and of parameter servers for 94 MB."""
    reduce.ring_seconds(WORKERS, 94e6, 1e-5, 1e10)
    reduce.server_seconds(WORKERS, 94e6, 1e-5, 1e10)
    reduce.server_seconds(WORKERS, 94e6, 1e-5, 1e10, servers=16)


def barrier():
    """Step times of all workers, and what a barrier costs them."""
    stragglers.efficiency(stragglers.draws(WORKERS, STEPS))


def seconds(function, runs):
    """(median, lowest, highest) of the wall time."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return median(times), min(times), max(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=7, help="runs of each")
    runs = parser.parse_args().runs
    for name, function in (
        (f"cost of an all-reduce of {WORKERS:,} workers, ring and servers", costs),
        (f"stragglers: {WORKERS:,} workers x {STEPS:,} steps with a barrier", barrier),
    ):
        middle, low, high = seconds(function, runs)
        print(f"{name}: {middle:.3g} s ({low:.3g} to {high:.3g}, {runs} runs)")


if __name__ == "__main__":
    main()
