"""How long `teach in` takes: over the evidence of many submissions, and over the notebooks of a few, in replay.

    python benchmarks/grading.py [--submissions 100] [--replayed 4] [--runs solutions/runs]

The submissions are those of the tests' made class, each with runs of its own. The notebooks are the solutions, with the
runs that executing them has left in --runs; without these, replay is not measured.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from labs import files, sandbox
from labs.checks import tasks
from labs.report.archive import zipped
from teaching import cli
from teaching.grading import check

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/grading"))


def timed(*words):
    """Seconds of a command of `teach`, which must end well."""
    begin = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        code = cli.main([*map(str, words)])
    if code:
        sys.exit(f"teach {' '.join(map(str, words))}: exit code {code}")
    return time.perf_counter() - begin


def packed(seed):
    """A submission.zip with a study of its own."""
    import made_class

    return made_class.packed(made_class.work(made_class.study(1000 + seed)))


def evidence(folder, count):
    """Evidence and reports of many submissions, and all that comes out."""
    with ProcessPoolExecutor() as pool:
        for number, content in enumerate(pool.map(packed, range(count))):
            files.write(folder / f"in/student{number:03d}.zip", content)
    out = folder / "grades"
    took = timed("in", folder / "in", "--path", "practical", "--no-run", "--out", out)
    print(f"{count} submissions collected, their evidence and reports: {took:.3g} s")
    print(f"the same again, nothing to do: {timed('in', '--no-run', '--out', out):.3g} s")
    print(f"points, sheet, {count} feedback PDFs: {timed('out', '--out', out):.3g} s")


def replay(folder, runs, count):
    """The practical as several submissions: its solutions with these runs, executed in replay."""
    import made_class

    from teaching.author import render, sources

    names = [lesson.notebook for lesson in tasks.on_path("practical")]
    work = {f"notebooks/scripts/{name}": made_class.script(name).encode() for name in sources.scripts(ROOT)}
    work |= {f"notebooks/runs/{path.name}": path.read_bytes() for path in runs.iterdir() if path.is_file()}
    slurm = {name.partition("solutions/")[2]: text for name, text in render.scripts(ROOT).items()}
    work |= {name: text.encode() for name, text in slurm.items() if name.startswith("slurm/local/")}
    for number in range(count):
        texts = {name: made_class.own_words(made_class.notebook(name, True), str(number)) for name in names}
        content = zipped(work | {f"notebooks/{name}.ipynb": text.encode() for name, text in texts.items()})
        files.write(folder / f"replayed/student{number}.zip", content)
    out = folder / "replayed_graded"
    took = timed("in", folder / "replayed", "--path", "practical", "--out", out)
    every = check.results(out).values()
    states = [each["state"] for found in every for checks in found["checks"].values() for each in checks.values()]
    right = f"{sum(state == 'right' for state in states)} of {len(states)} checks right"
    print(f"{len(names)} notebooks of {count} submissions in replay: {took / count:.3g} s a submission; {right}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--submissions", type=int, default=100, help="default: 100; 0: none")
    parser.add_argument("--replayed", type=int, default=4, help="submissions whose notebooks are run; default: 4")
    parser.add_argument("--runs", type=Path, default=ROOT / "solutions/runs", help="default: solutions/runs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="labs-benchmark-") as folder:
        if args.submissions:
            evidence(Path(folder), args.submissions)
        if missing := sandbox.sandbox_missing() or (None if args.runs.is_dir() else f"there is no {args.runs}"):
            print(f"replay is not measured: {missing}")
        else:
            replay(Path(folder), args.runs, args.replayed)


if __name__ == "__main__":
    main()
