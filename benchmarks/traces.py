"""The recorded runs of notebook 24: six watched trainings, each limited by something else, and a training made faster.

    python benchmarks/traces.py [--seconds 6] [--out build/recorded] [--only traces|faster]

Writes traces/CASE.rankR.samples (lessons.faster_steps.limited says what each case is) and faster/NUMBER.json, with the
changes in faster/names.json, anew. `--out labs/recorded`, on a machine that is otherwise quiet, makes those of the kit.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from labs import files, jobs
from labs.results import run as records
from lessons.faster_steps import limited, samples

RUNGS = {  # the change: script and options, as in the notebook
    "as given": ("slow.py",),
    "input fixed, nothing fetched": ("faster.py",),
    "batch 32": ("faster.py", "--batch_size", 32),
}


def traces(runs, out, seconds):
    """Run the six cases and keep the samples of each rank."""
    for case in limited.SETTINGS:
        job = limited.start(case, runs=runs, name=case, seconds=seconds).wait()
        if job.state != "finished":
            sys.exit(job.explain())
        for rank in samples.ranks(runs / case):
            name = f"{case}.rank{rank.rank}.samples"
            head = {"version": 1, "kind": "recorded", "rank": rank.rank, "about": rank.about}
            files.write(out / name, "".join(json.dumps(line) + "\n" for line in (head, *rank.samples)))
            print(f"{case}: {rank.about['limit']}, rank {rank.rank}: {rank.images_per_second:.1f} images/s", flush=True)


def faster(runs, out):
    """Run the training of the closing task after each of the model solution's changes."""
    for number, (script, *options) in enumerate(RUNGS.values()):
        job = jobs.run(ROOT / "solutions/scripts" / script, *options, name=f"{number}", runs=runs)
        if job.state != "finished":
            sys.exit(1)
        found = records.load_record(job.record)
        found.kind, found.command = "recorded", [f"scripts/{script}", *map(str, options)]
        records.save_record(out / f"{number}.json", found)
    files.write(out / "names.json", json.dumps(list(RUNGS), indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each training (default: 6)")
    parser.add_argument("--out", type=Path, default=ROOT / "build/recorded", help="folder (default: build/recorded)")
    parser.add_argument("--only", choices=("traces", "faster"))
    args = parser.parse_args()
    parts = {"traces": lambda *to: traces(*to, args.seconds), "faster": faster}
    for name in [args.only] if args.only else parts:
        with tempfile.TemporaryDirectory() as folder:
            runs, out = Path(folder, "runs"), Path(folder, name)
            runs.mkdir()
            out.mkdir()
            parts[name](runs, out)
            shutil.rmtree(args.out / name, ignore_errors=True)  # now that all of the new ones are there
            shutil.copytree(out, args.out / name)


if __name__ == "__main__":
    main()
