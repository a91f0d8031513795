"""Wall time of `python -c "import labs"` against `python -c pass`, in turn.

    python benchmarks/import_time.py [--rounds 21] [--json]

The whole process is timed from outside, from its start to its end. Medians over the rounds; their 95 % interval is
that of the binomial order statistics, which supposes nothing about the distribution. "Added" is the median of the
differences of neighbours. The files are in the disk cache: one pair that does not count comes first.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = {"bare": "pass", "labs": "import labs"}
ROOT = Path(__file__).resolve().parents[1]


def seconds(code):
    """Wall time of a Python process that runs `code`."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    return time.perf_counter() - begin


def median(values):
    """(median, lower, upper): the interval holds the true median with at least 95 %; None for less than 6 values."""
    values, n, below = sorted(values), len(values), 0.0
    for rank in range(n // 2):
        below += math.comb(n, rank) / 2**n
        if below > 0.025:
            return (statistics.median(values), *((values[rank - 1], values[-rank]) if rank else (None, None)))
    return statistics.median(values), None, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21, help="pairs of processes (default: 21)")
    parser.add_argument("--json", action="store_true", help="print every measurement")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be 1 or more")
    times = {name: [] for name in PROGRAMS}
    for turn in range(args.rounds + 1):
        for name, code in PROGRAMS.items():
            value = seconds(code)
            if turn:
                times[name].append(value)
    times["added"] = [a - b for a, b in zip(times["labs"], times["bare"], strict=True)]
    if args.json:
        result = {name: {"seconds": values, "median": median(values)} for name, values in times.items()}
        print(json.dumps(vars(args) | {"load": os.getloadavg()[0], "results": result}, indent=1))
        return
    print("| start of Python | median | 95 % interval | aim |\n|---|---|---|---|")
    texts = {
        "bare": ("`python -c pass`", ""),
        "labs": ('`python -c "import labs"`', "under 0.2 s"),
        "added": ("added by `import labs`", ""),
    }
    for name, (text, aim) in texts.items():
        middle, low, high = median(times[name])
        span = "-" if low is None else f"{1e3 * low:.1f} to {1e3 * high:.1f} ms"
        print(f"| {text} | {1e3 * middle:.1f} ms | {span} | {aim} |")


if __name__ == "__main__":
    main()
