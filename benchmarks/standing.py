"""What the jobs of notebook 21 do under each launcher, time after time: a table, and what `labs why` said of each.

python benchmarks/standing.py [--times 5] [--busy 2] [SCRIPT ...]

--busy: so many programs beside it that keep a core busy each. A job hangs if two looks, APART seconds apart, find the
same ranks waiting at the same lines for ranks that do not come.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections import Counter
from pathlib import Path

from labs import devices
from labs.jobs import why
from lessons.standing_still import following
from teaching.author import regions

SCRIPTS = Path(__file__).parents[1] / "solutions" / "scripts"
NAMES = (
    *("reports_loss", "keeps_best", "own_share", "smallest_first", "prepares_once"),
    *("every_error", "remembers", "two_means", "tries_many"),
)
APART = 5.0
WORDS = {"h": "hangs", "m": "ends with a message", "w": "goes on wrong", "s": "is slow", "right": "right"}


def burn():
    while True:
        pass


def observed(script, launcher, folder):
    """(what the job does, what was seen, seconds) of one run."""
    begin = time.monotonic()
    job = following.start(script, script.stem, runs=folder, launcher=launcher)
    try:
        following.follow(job, seconds=20.0, apart=APART)
        letter = following.letter(job)
        goes_on = job.state == "running" and why.stack_files(job.stem)
        said = " ".join(why.sentences(why.ranks(job.stem))) if goes_on else job.explain()
    finally:
        job.stop()
    said += job.out.read_text() if job.state == "finished" else ""
    return WORDS[letter], said, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", default=NAMES)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--launchers", nargs="+", default=["horovodrun", "mpiexec"])
    args = parser.parse_args()
    busy = [multiprocessing.Process(target=burn, daemon=True) for _ in range(args.busy)]
    for each in busy:
        each.start()
    with tempfile.TemporaryDirectory() as folder:
        for name in args.scripts:
            script = Path(folder, f"{name}.py")
            script.write_text(regions.blank((SCRIPTS / script.name).read_text()))
            for launcher in args.launchers:
                spent = devices.busy(), time.monotonic()
                found = [observed(script, launcher, Path(folder, "runs")) for _ in range(args.times)]
                load = (devices.busy() - spent[0]) / (time.monotonic() - spent[1]) / devices.cores()
                outcomes = ", ".join(f"{what} {n} of {args.times}" for what, n in Counter(f[0] for f in found).items())
                seconds = " ".join(f"{each[2]:.0f}" for each in found)
                print(f"{name} | {launcher} | {outcomes} | {seconds} s | cores {load:.0%} busy", flush=True)
                for said, n in Counter(each[1] for each in found).items():
                    print(f"    {n} x {said}", flush=True)


if __name__ == "__main__":
    main()
