"""A sample, trained again: a student's script runs for real in the sandbox, and its speedup and loss are compared with
those that were handed in.

    grades/rerun/007-T5.json   what came of it: lines, and findings

1 worker and the most workers that this machine has cores for train in turns, REPEATS times for EPOCHS epochs, on the
images of the run that was handed in where these are few, else on IMAGES of the digits.

The script writes its record itself, and can write anything. So its times are held against those that are taken outside:
of each turn, as the kit's own process in the sandbox gives it, of the whole sandbox, and of the processors.
"""

import json
import math
import os
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from labs import files, sandbox
from labs.checks import tasks
from labs.errors import LabsError, UseError
from labs.printed import about, grouped
from labs.results import intervals, metrics
from labs.results.run import load
from labs.sandbox.walls import WORK
from teaching.grading import collect, handed, plain, reference, store
from teaching.grading.finding import Finding

EPOCHS, REPEATS, IMAGES, PIXELS = 3, 3, 512, 64
HERE = ("digits", "synthetic")  # data sets that the sandbox has
LIMITS = sandbox.Limits(seconds=1500, memory=6 << 30, processes=600, disk=256 << 20, output=1 << 20)
LATE, AROUND = 0.5, 1.0  # seconds: by which two clocks may differ; around an epoch in its turn
COMPUTING = 0.3  # of its time, at least, for which a training keeps one core busy
TURNS = """
import json, sys
from labs import jobs
class Told(jobs.Turns):
    told = None
    def _give(self):
        super()._give()
        now = [self._turn and self._turn.job.name, self._round, self._place]
        if now != self.told:
            self.told = now
            print(json.dumps(now), flush=True)
with Told(show=False, explain=False) as turns:
    for script, arguments, options in json.loads(sys.argv[1]):
        turns.start(script, *arguments, **options)
"""


def rerun(out, number, task, root=".", report=print):
    """Train the script of a task of one submission again; returns lines that compare it with what was handed in.

    root: of the course, whose scripts the student's is held against; report: called with a line for each epoch.
    Raises UseError: no such submission or task, no study of it whose script was handed in, no sandbox.
    """
    if missing := sandbox.sandbox_missing():
        raise UseError(f"Nothing of the students' is run, since there is no sandbox: {missing}.")
    path, item = collect.submission(out, number), item_of(task)
    with handed.opened(number, path) as submission, tempfile.TemporaryDirectory(prefix="labs-rerun-") as folder:
        sample = _sample(submission, item)
        if not sample:
            raise UseError(f"{number} has no study for {task} of its own on 1 and more workers, with its script.")
        lines, found = _read(submission, sample, root)
        said, doubts = _train(submission, sample, Path(folder), report)
        more = [said] if said else [f"{each}: it is not compared with what was handed in" for each in doubts]
        compared = (more, [Finding("rerun", "look", task, each) for each in more])
        if not more:
            compared = _compared(submission, sample, Path(folder))
        lines, found = lines + compared[0], found + compared[1]
    kept = {"lines": lines, "findings": [asdict(each) for each in found]}
    files.write(Path(out, f"rerun/{number}-{task}.json"), json.dumps(kept, indent=1))
    return lines


def _read(submission, sample, root):
    """(lines, findings) on scripts that do more than compute, so that their records can hold anything."""
    course, lines, found = submission.course, [], []
    for script in dict.fromkeys(course.script_of(course.held[name].run)[0] for name in sample):
        name = f"notebooks/scripts/{script}"
        text = submission.contents[name].decode(errors="replace")
        if why := plain.of_script(text, *reference.scripts(root).get(name, ("", ""))):
            lines.append(f"{script} is not plain: {why}; read it before you believe its record")
            found.append(Finding("rerun", "note", script, lines[-1]))
    return lines, found


def item_of(task):
    """The item with this id. Raises UseError if there is no such item, or if its evidence is not runs of a script."""
    _, item = tasks.items().get(task, (None, None))
    if item is None or not item.evidence.scripts:
        raise UseError(f"{task!r} is no task whose evidence are runs of a script.")
    return item


def findings(out):
    """{number: findings} of all that was trained again."""
    found = ((path.stem.partition("-")[0], store.read(path)) for path in sorted(Path(out, "rerun").glob("*.json")))
    return grouped((number, Finding(**each)) for number, kept in found for each in kept["findings"])


def _sample(submission, item):
    """Names of two runs of one study, of 1 and of more workers, that one script of the student's made; or []."""
    course, cores = submission.course, len(os.sched_getaffinity(0))
    mine = {}
    for name in course.matching(item.evidence.runs, course.held):
        run = course.held[name].run
        script, workers = f"notebooks/scripts/{course.script_of(run)[0]}", run.workers or 0
        own = run.kind == "measured" and run.epochs and script in submission.contents
        if own and 1 <= workers <= cores:
            mine.setdefault((metrics.origin(run), script), {}).setdefault(workers, name)
    each = next((of for of in mine.values() if 1 in of and len(of) > 1), None)
    return [each[1], each[max(each)]] if each else []


def _small(run):
    """Options that make a training small, and whether its losses can still be compared."""
    has = run.configuration
    images, pixels = has.images or run.dataset_images or 0, has.image_size or 0
    same = has.dataset in HERE and 0 < images <= IMAGES and 0 < pixels <= PIXELS
    options = {"--epochs": EPOCHS, "--repeats": REPEATS, "--images": images if same else IMAGES}
    if not same:
        options |= {"--dataset": "digits", "--image_size": 32, "--batch_size": 32 * has.workers}
    return [str(word) for pair in options.items() for word in pair], same


class _Clock:
    """Takes the time of each turn: `turns` is {name: [seconds of each of its turns]}."""

    def __init__(self, of, report):
        self.turns, self._rest, self._now, self._of, self._report = defaultdict(list), b"", None, of, report
        self._began = time.monotonic()

    def heard(self, piece):
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:1000]
        for line in lines:
            with suppress(ValueError, TypeError):
                name, _, _ = json.loads(line)
                self.told(name if isinstance(name, str) else None)

    def told(self, name):
        now = time.monotonic()
        if self._now:
            before, since = self._now
            self.turns[before].append(now - since)
            done = sum(map(len, self.turns.values()))
            if done < self._of:
                left = (now - self._began) / done * (self._of - done)
                self._report(f"{done} of {self._of} epochs, time left {about(left)}")
        self._now = (name, now) if name else None


def _train(submission, sample, folder, report):
    """Train into the folder. Returns (None or why it did not train, what is doubtful about the records), sentences."""
    jobs, held = [], submission.course.held
    for name in sample:
        run = held[name].run
        ranks = {"ranks": run.workers} if run.strategy == "horovod" else {}
        script = f"scripts/{submission.course.script_of(run)[0]}"
        jobs.append([script, [*run.command[1:], *_small(run)[0]], {"name": name} | ranks])
    top = "notebooks/"
    given = {n.removeprefix(top): of for n, of in submission.contents.items() if n.startswith(f"{top}scripts/")}
    environment = {"PYTHONPATH": str(Path(sandbox.interpreter()[-1]).parent), "LABS_RUNS": f"{WORK}/runs"}
    environment["LABS_PATIENCE"] = os.environ.get("LABS_PATIENCE", "")
    words = [sys.executable, "-c", TURNS, json.dumps(jobs)]
    clock = _Clock(len(sample) * EPOCHS * REPEATS, report)
    around = {"read_only": sandbox.interpreter(), "env": environment, "limits": LIMITS}
    done = sandbox.run_walled(words, files=given, heard=clock.heard, **around)
    clock.told(None)
    for name, content in done.files.items():
        if name.startswith("runs/"):
            files.write(folder / Path(name).name, content)
    if done.ended:
        return f"it was stopped at its limit of {done.ended}", []
    made = {}
    for name in sample:
        try:
            run = load(folder / f"{name}.json")
            if not run.steady:
                return f"{name} did not train for more than an epoch", []
            made[name] = run.epochs
        except LabsError:
            said = (done.files.get(f"runs/{name}.err", b"") or done.stderr).decode(errors="replace").strip()
            return f"{name} left no record: {(said.splitlines() or ['nothing was said'])[-1][:200]}", []
    return None, list(_doubts(made, clock.turns, done.seconds, done.computed))


def _doubts(made, turns, seconds, computed):
    """What in records does not agree with the clock outside, as sentences.

    made: {name: its Epochs}; turns: {name: seconds of each of its turns}; seconds: that the sandbox stood; computed: of
    the processors' time in it. An epoch fills its turn but for what is done around it: half of it, and AROUND. The
    first of a training compiles, the last one ends its process or begins another training.
    """
    for name, epochs in made.items():
        took = turns.get(name, [])
        if len(took) < len(epochs):
            yield f"the record of {name} tells of {len(epochs)} epochs, and it took {len(took)} turns for them"
            continue
        pairs = [(epoch, turn) for epoch, turn in zip(epochs, took, strict=False) if epoch.epoch]
        said, passed = sum(epoch.seconds for epoch, _ in pairs), sum(turn for _, turn in pairs)
        inner = [turn - 1.5 * epoch.seconds for epoch, turn in pairs if epoch.epoch == 1]
        if said > passed + LATE or inner and fmean(inner) > AROUND:
            told = f"says {said:.3g} s for all epochs but the first, and {passed:.3g} s passed outside"
            yield f"the record of {name} {told}"
    total = sum(epoch.seconds for epochs in made.values() for epoch in epochs)
    if total > seconds:
        yield f"the records tell of {total:.3g} s in turns, and {seconds:.3g} s passed outside"
    elif computed < COMPUTING * total:
        yield f"the records tell of {total:.3g} s of training, and the processors worked for {computed:.3g} s"


def _compared(submission, sample, folder):
    """(lines, findings) of what was handed in against what was trained again."""
    before = [submission.course.held[name].run for name in sample]
    after = [load(folder / f"{name}.json") for name in sample]
    elsewhere = before[0].hardware != after[0].hardware
    lines = [f"handed in: {before[0].hardware}; trained again: {after[0].hardware}"] if elsewhere else []
    compared = [(sample[1], "speedup", *_speedups(before, after))]
    for name, one, other in zip(sample, before, after, strict=True):
        if _small(one)[1]:
            compared.append((name, "loss", *_losses(one, other)))
    found = []
    for name, what, handed_in, again, interval in compared:
        said = f"its {what} was {handed_in:.3g}, and trained again it is {again:.3g}"
        if interval is None:
            lines.append(f"{name}: {said}: too few rounds for an interval")
            continue
        low, high = interval
        agrees = low <= handed_in <= high
        said += f", where {low:.3g} to {high:.3g} would agree"
        lines.append(f"{name}: {said}: {'it does' if agrees else 'IT DOES NOT'}")
        if not agrees:
            severity = "note" if elsewhere and what == "speedup" else "look"
            found.append(Finding("rerun", severity, name, said))
    return lines, found


def _speedups(before, after) -> tuple[Any, Any, tuple[float, float] | None]:
    """(speedup handed in, trained again, 95 % interval of what would agree, or None)."""
    one, other = metrics.speedup(before[1], before), metrics.speedup(after[1], after)
    # Welch and Satterthwaite, on logarithms
    parts = [(each.error**2, each.degrees) for each in (one, other) if each.error is not None and each.degrees]
    again: Any = other.value
    if len(parts) < 2:
        return one.value, again, None
    error = sum(square for square, _ in parts)
    degrees = error**2 / sum(square**2 / n for square, n in parts) if error else 1.0
    reach = math.exp(intervals.t_quantile(degrees) * math.sqrt(error))
    return one.value, again, (again / reach, again * reach)


def _losses(before, after) -> tuple[float, float, tuple[float, float] | None]:
    """(loss handed in, trained again, 95 % prediction interval of a training like these) after as many epochs."""
    epochs = min(len(repeat) for repeat in (range(EPOCHS), *before.repeats, *after.repeats))
    theirs, ours = (
        [repeat[epochs - 1].metrics.get("loss", math.nan) for repeat in each.repeats] for each in (before, after)
    )
    if len(ours) < 2 or not all(0 < loss < math.inf for loss in theirs + ours):
        return fmean(theirs), fmean(ours), None
    logs = [math.log(loss) for loss in ours]
    reach = intervals.t_quantile(len(logs) - 1) * stdev(logs) * math.sqrt(1 / len(ours) + 1 / len(theirs))
    again = math.exp(fmean(logs))
    return fmean(theirs), again, (again / math.exp(reach), again * math.exp(reach))
