"""Time from a key to the changed picture of every widget in the student notebooks, in JupyterLab in a real browser.

    python benchmarks/widgets_latency.py [--keys 12] [--notebooks 01 02 06] [--json]

The notebooks are run up to their last widget. Each slider and each drop-down then gets `--keys` arrow keys, to and fro
through its values, after one that does not count; each waits for the picture of the one before, for an idle kernel, and
0.1 s. Timed in the page: from the browser's keydown event to the frame that draws the new, decoded picture. So it holds
the way to the kernel, the drawing there, the way back and up to 17 ms of waiting for a frame. Keys that leave the
picture as it is (a value can be without effect beside others) are counted apart. Intervals as in import_time.py. It
needs what tests/browser needs, and says so in one line where that is missing.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from import_time import median  # beside this file

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))


def processor():
    """(all, stolen) time of all cores since the start of the machine, in ticks: "cpu" of /proc/stat."""
    ticks = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks), ticks[7]


def measure(widget, notebook, keys):
    """({control: [seconds, ...]}, number of keys that left the picture as it was)."""
    times, without = {}, 0
    for control in widget.controls:
        if widget.change(control)[-1].seconds is None:  # it also moves other controls until this one matters
            without += 1
            continue
        times[control.label] = []
        for _ in range(keys):
            notebook.idle()
            widget.page.wait_for_timeout(100)
            seconds = control.press().seconds
            times[control.label] += [seconds] if seconds is not None else []
            without += seconds is None
    return times, without


def run(names, keys, report):
    """{widget: {"seconds": {control: [...]}, "without": number}} of the notebooks `names`."""
    from browser import lab
    from browser.keys import Widget

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        lab.copy_course(folder)
        with lab.server(folder) as url, lab.browser() as chromium:
            for name in names:
                calls = lab.widgets()[name]
                notebook = lab.Notebook(chromium, url, name)
                notebook.run()
                if notebook.problems():
                    sys.exit(f"{name}: {notebook.problems()[0]}")
                for number in calls:
                    label = f"{name}, cell {number}"
                    report(label)
                    times, without = measure(Widget(notebook, number, label), notebook, keys)
                    found[label] = {"seconds": times, "without": without}
                notebook.page.close()
    return found


def table(found):
    """The measurements as Markdown."""
    yield "| widget | keys | key to picture, median | 95 % interval | 90th percentile | aim |"
    yield "|---|---|---|---|---|---|"
    every = []
    for name, values in [*found.items(), ("all", None)]:
        times = every if values is None else [one for control in values["seconds"].values() for one in control]
        every = every if values is None else every + times
        if len(times) < 2:
            yield f"| {name} | {len(times)} | - | - | - | under 100 ms |"
            continue
        middle, low, high = median(times)
        span = "-" if low is None else f"{1e3 * low:.0f} to {1e3 * high:.0f} ms"
        last = statistics.quantiles(times, n=10, method="inclusive")[-1]
        yield f"| {name} | {len(times)} | {1e3 * middle:.0f} ms | {span} | {1e3 * last:.0f} ms | under 100 ms |"


def main():
    from browser import lab

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=12, help="keys for each control (default: 12)")
    parser.add_argument("--notebooks", nargs="+", metavar="NN", help="such as 01 06 (default: all that have widgets)")
    parser.add_argument("--json", action="store_true", help="print every measurement")
    args = parser.parse_args()
    names = [name for name in lab.widgets() if not args.notebooks or name[:2] in args.notebooks]
    if args.keys < 1 or not names:
        parser.error("--keys must be 1 or more, and --notebooks must name notebooks that have widgets")
    if lab.missing():
        print(f"not measured: {lab.missing()}")
        return
    before = processor()
    found = run(names, args.keys, lambda label: print(label, file=sys.stderr))
    ticks, stolen = (b - a for a, b in zip(before, processor(), strict=True))
    if args.json:
        machine = {"load": os.getloadavg()[0], "stolen": stolen / ticks}
        print(json.dumps(vars(args) | machine | {"results": found}, indent=1))
    else:
        print(*table(found), sep="\n")
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {stolen / ticks:.1%} of their time stolen;",
            f"{sum(each['without'] for each in found.values())} keys left the picture as it was",
        )


if __name__ == "__main__":
    main()
