"""How long `labs results` takes over many run records and over a large log, and `job.explain()` over the large .out of
a failed job.

    python benchmarks/results.py [--records 10000] [--megabytes 200]

Records are of pairs of 1 and 2 workers, each pair a study of its own; a log is one of five kinds: lines of an epoch,
very short lines, progress bars with and without line breaks, lines that all look like errors. Each stands between the
two epochs of a training. Each measurement is a process of its own, and its memory is the most that it held.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LINES = {
    "epochs": b"28/28 - 3s - 107ms/step - accuracy: 0.3536 - loss: 1.7626\n",
    "short lines": b"0.125\n",
    "one line": b"28/28 \x1b[32m" + b"=" * 20 + b" 3s 107ms/step - loss: 1.7626\b\b\b\r",
    "bars": b"10/28 [===>........] - ETA: 3s - loss: 1.2345 - accuracy: 0.1235\n",
    "errors": b"W tensorflow: mean_squared_error: 0.125, memory: 3 GB, no failure\n",
}


def record(path, workers, study):
    """Write a run record of 7 epochs with 28 steps each."""
    epochs = [
        {"repeat": 0, "epoch": n, "round": n or None, "order": 0, "seconds": 3.0 + 0.01 * n / workers, "images": 1792,
         "step_seconds": [0.107] * 28, "metrics": {"loss": 2.0 / (n + 1), "accuracy": 0.1 * n}}
        for n in range(7)
    ]  # fmt: skip
    configuration = {"model": "ResNet50V2", "strategy": "mirrored", "workers": workers, "global_batch": 64 * workers}
    made = {"version": 2, "name": path.stem, "state": "finished", "configuration": configuration, "steps": 28}
    path.write_text(json.dumps(made | {"study": study, "epochs": epochs, "machine": {"cpu": "a CPU"}}))


def measured(code, *arguments):
    """(seconds, most memory in MiB) of a piece of Python in a process of its own, and its last line."""
    end = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code + end, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    *said, memory = done.stdout.splitlines()
    return time.perf_counter() - begin, int(memory), said[-1:]


RESULTS = "import sys; from labs import cli; assert cli.main(['results', sys.argv[1]]) == 0"
BEGIN, END = (f"Epoch {number}/2\n28/28 - 3s - 107ms/step - loss: 1.7626\n".encode() for number in (1, 2))
LOG = "import sys; from labs import cli; cli.main(['results', sys.argv[1]])"
EXPLAIN = """
import sys; from labs.jobs import Job
Job.state, Job._ending = "failed", lambda self: "ended with exit code 1"
print(Job("job", sys.argv[1]).explain()[:100])
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "runs").mkdir()
        for number in range(args.records):
            record(folder / "runs" / f"run_{number:06d}.json", 1 + number % 2, f"study {number // 2}")
        for shown, study in (("pairs in turns", True), ("each on its own", False)):
            if not study:
                for number in range(args.records):
                    record(folder / "runs" / f"run_{number:06d}.json", 1 + number % 2, None)
            seconds, memory, _ = measured(RESULTS, folder / "runs")
            print(f"labs results, {args.records} records, {shown}: {seconds:.1f} s, {memory} MiB", flush=True)
        for kind, line in LINES.items():
            out = folder / "job.out"
            with out.open("wb") as file:
                file.write(BEGIN)
                for _ in range(args.megabytes):
                    file.write(line * (10**6 // len(line)))
                file.write(b"\n" + END)
            (folder / "job.err").write_text("")
            for what, code, path in (("job.explain()", EXPLAIN, folder / "job"), ("labs results", LOG, out)):
                seconds, memory, _ = measured(code, path)
                print(f"{what}, {args.megabytes} MB of {kind}: {seconds:.1f} s, {memory} MiB", flush=True)


if __name__ == "__main__":
    main()
