r"""Read the logs (.out) that Keras' `fit` leaves: which runs are in it, how long each epoch took, loss, accuracy.

196/196 - 45s - loss: 1.7626 - accuracy: 0.3536 - 45s/epoch - 229ms/step   verbose=2, Keras 2
196/196 - 45s - 229ms/step - accuracy: 0.3536 - loss: 1.7626               verbose=2, Keras 3
196/196 [====...] - 45s 229ms/step - loss: 1.7626 - accuracy: 0.3536       verbose=1, Keras 2
196/196 ━━━━━━━━━ 45s 229ms/step - accuracy: 0.3536 - loss: 1.7626         verbose=1, Keras 3

Lines may have the rank prefixes of horovodrun, mpirun, mpiexec and srun: then the epochs of the lowest rank that has
any are read. A run starts at a header `Model ...`, and where the epoch counter starts after a run that has ended;
`Repeat 2 of 3` is another repeat of it. A training that goes on at a later epoch, as after a requeue, is another run,
with a warm-up epoch of its own. Everything else is refused: an epoch counts where it is clear which line is its own.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from labs.errors import UseError
from labs.results import failures, text
from labs.results.run import Configuration, Epoch, Run

_EPOCH = re.compile(r"Epoch ([1-9]\d{0,8})/(\d{1,9})$")  # also behind what a killed program left of its last line
_REPEAT = re.compile(r"^Repeat \d{1,9} of (\d{1,9})$")
_ENDED = re.compile(r"Invalid loss, terminating|\*\*\* (?:JOB|STEP) .*CANCELLED|: Killed$|^Killed$")
_RESULT = re.compile(r"^(\d{1,9})/\1 (?:(\[=+\] - |━+ )(\d{1,9})s (?=\d)|- (\d{1,9})s - )(.+)$")
_RATE = re.compile(r"^(\d{1,9})(us|ms|s)/(step|epoch)$")
_METRIC = re.compile(r"^([^:]+): (-?\d+\.\d{4}(?:e[+-]\d{2,3})?|-?nan|-?inf)$")
_UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_MODEL = re.compile(r"^Model:?\s+([A-Z][\w.-]*),?\s+([1-9]\d{0,8})\s+(?:GPU|worker|replica|device)s?\b")
_HEADERS = {  # of the course's programs, beside `Model NAME N workers`
    "global_batch": re.compile(r"^Batch_size: ([1-9]\d{0,8})$"),
    "workers": re.compile(r"^N_replicas: ([1-9]\d{0,8})$"),
    "images": re.compile(r"^Images: ([1-9]\d{0,8})$"),
    "strategy": re.compile(r"^Strategy: ([a-z]\w*)$"),
    "learning_rate": re.compile(r"^Learning_rate: (\d+\.\d+(?:e-\d+)?)$"),
}


class LogError(UseError):
    """A log cannot be read or holds no finished epoch. `runs`: those that it names nevertheless, with their failure."""

    def __init__(self, message: str, runs=()):
        super().__init__(message)
        self.runs = list(runs)


def read(path: str | Path, **options: str | int | None) -> list[Run]:
    """Read a Keras log (.out): its runs, in its order, also those that ended before their first epoch.

    options: what the log does not say: model, workers, global_batch (images per step over all workers), images (in
    the data set). Raises LogError if the file cannot be read, holds no finished epoch, or mixes ranks without a
    prefix.
    """
    path = Path(path)
    try:
        lines = list(text.updates(text.content(path)))
    except OSError as error:
        why = f"cannot be read ({error.strerror}). Check its name, and where the job wrote its output."
        raise LogError(f"{path}: {why}") from None
    ranks = {rank for _, rank, line in lines if rank is not None and _EPOCH.search(line)}
    lowest = min(ranks, default=None)
    parts = _parts(path.name, [(number, line) for number, rank, line in lines if rank in (None, lowest)])
    runs = [part.run(path, index, options) for index, part in enumerate(parts, 1)]
    problem = failures.in_files(path.with_suffix(".err"), path)
    unfinished = [run for run in runs if run.truncated]
    if problem and runs and (unfinished or not failures.harmless(problem)):
        (unfinished or runs)[-1].failure = problem
    if not any(run.epochs for run in runs):
        notes = [note for run in runs for note in run.notes] or ["no line of it is known"]
        why = f"the job {failures.sentence(problem)}" if problem else f"{'; '.join(notes)}. Is the job done?"
        raise LogError(f"{path.name}: no finished epoch: {why} Only what Keras' fit prints is read (verbose=2).", runs)
    if len(ranks) > 1:
        runs[0].notes.append(f"{len(ranks)} ranks print epochs into this log: those of rank {lowest} are read")
    return runs


@dataclass
class Result:
    """The line of a finished epoch: its number of steps, and the Epoch; bar: whether a progress bar showed it."""

    steps: int
    epoch: Epoch
    bar: bool


def epoch_of_line(line: str) -> Result | None:
    """The results in a whole line (without rank prefix, colours and control characters), or None for another line.

    A line gives the time in whole seconds, and perhaps per epoch and per step. Of those that agree with the whole
    seconds, within the rounding of both, the finest is taken. Bars give ms/step without the first step, so there only
    whole seconds count.
    """
    match = _RESULT.match(line.strip())
    if not match:
        return None
    steps, bar, seconds, metrics = int(match[1]), bool(match[2]), float(match[3] or match[4]), {}
    times = [(1.0, seconds)]
    for part in match[5].split(" - "):
        if rate := _RATE.match(part):
            width = _UNIT[rate[2]] * (steps if rate[3] == "step" else 1)
            times.append((width, int(rate[1]) * width))
        elif metric := _METRIC.match(part):
            metrics[metric[1]] = float(metric[2])
        else:
            return None
    # Steps that took more than 1.5 s in sum cannot be rounded to 0 s: the bar was full before its epoch was over, and
    # Keras 3 shows the time that is left.
    if not metrics or (bar and seconds == 0 and times[-1][1] > 1.5):
        return None
    agreeing = [(width, time) for width, time in times if abs(time - seconds) <= (width + 1) / 2]
    width, time = times[0] if bar else min(agreeing)
    return Result(steps, Epoch(seconds=time, resolution=width, metrics=metrics), bar)


def header_of_line(line: str) -> dict:
    """What a line says about the run, {field: value}: `Model ResNet50V2 2 GPUs` gives model and workers."""
    if model := _MODEL.match(line):
        return {"model": model[1], "workers": int(model[2])}
    kinds = {"strategy": str, "learning_rate": float}
    return {key: kinds.get(key, int)(match[1]) for key, sign in _HEADERS.items() if (match := sign.match(line))}


@dataclass
class _RunInLog:
    """What a log says of one run."""

    headers: dict = field(default_factory=dict)  # None for what it says in two ways
    repeats: list = field(default_factory=lambda: [[]])  # of each its epochs, as (number, {number of a line: Result})
    planned: int = 0  # epochs of a repeat
    planned_repeats: int = 1
    ended: str | None = None  # the line that ended it early
    notes: list[str] = field(default_factory=list)

    @property
    def number(self):
        """Of the epoch that began last, 0 for none."""
        return self.repeats[-1][-1][0] if self.repeats[-1] else 0

    @property
    def complete(self):
        """Whether the last repeat that began has all its epochs."""
        return bool(self.repeats[-1]) and self.number == self.planned and bool(self.repeats[-1][-1][1])

    @property
    def truncated(self):
        return bool(not self.complete or self.ended or len(self.repeats) < self.planned_repeats)

    def epochs(self):
        """([(number of the repeat, of the epoch, its Result)], a note or None): no epochs where several lines may be
        the result of one. What follows the last epoch of a repeat is evaluate's."""
        earlier = [epoch for repeat in self.repeats for epoch in repeat[:-1]]
        if unclear := [str(number) for number, found in earlier if len(found) > 1]:
            return [], (
                f"epoch {', '.join(unclear)}: several lines of results, as of fit and evaluate, or of ranks, which "
                "cannot be told apart: this run is not used"
            )
        every = [(n, number, found) for n, repeat in enumerate(self.repeats) for number, found in repeat if found]
        return [(n, number, next(iter(found.values()))) for n, number, found in every], None

    def run(self, path, index, options):
        """The Run of which this is what the log at `path` says; index: its number there; options: of `read`."""
        epochs, unclear = self.epochs()
        notes = self.notes + ([unclear] if unclear else [])
        known = {key: value for key, value in self.headers.items() if value is not None}
        for key, value in options.items():
            if value is not None and known.setdefault(key, value) != value:
                notes.append(f"{key} is {known[key]} in the file, {value} in the option: the file is used")
        images, warm_up = known.pop("images", None), {(n, each[0][0]) for n, each in enumerate(self.repeats) if each}
        steps = {one.steps for n, number, one in epochs if (n, number) not in warm_up}
        steps = steps or {one.steps for *_, one in epochs}
        if len(steps) > 1:
            notes.append(f"the number of steps changes within the run: {sorted(steps)}")
        if self.truncated:
            last = f"epoch {self.number} of {self.planned}, repeat {len(self.repeats)} of {self.planned_repeats}"
            notes.append(f"the log ends before the run does, in {last}" + (f" ({self.ended})" if self.ended else ""))
        if any(one.bar for *_, one in epochs):
            notes.append("a log of progress bars: times in whole seconds only (verbose=2 gives finer ones)")
        return Run(
            source=path.name,
            epochs=[one.epoch.model_copy(update={"repeat": n, "epoch": number - 1}) for n, number, one in epochs],
            index=index,
            folder=path.resolve().parent,
            kind="recorded",
            configuration=Configuration(**known),
            dataset_images=images,
            steps=steps.pop() if len(steps) == 1 else None,
            state="failed" if self.truncated else "finished",
            notes=notes,
        )


def _parts(name, lines):
    """The _RunInLogs in the lines (number, text) of one rank. Those that only a header shows are kept: they failed."""
    parts = [_RunInLog()]
    for number, line in lines:
        part = parts[-1]
        if epoch := _EPOCH.search(line):
            _begin(parts, name, int(epoch[1]), int(epoch[2]))
        elif repeat := _REPEAT.match(line):
            part.planned_repeats = int(repeat[1])
            if part.complete:
                part.repeats.append([])
            part.repeats[-1] = []  # also of one that was cut, and is begun again
        elif _ENDED.search(line):
            part.ended = part.ended or (line.strip() if part.truncated else None)
        elif outcome := epoch_of_line(line):
            if part.repeats[-1] and not part.ended:
                part.repeats[-1][-1][1][number] = outcome  # of a bar, the last update in its line
        elif values := header_of_line(line.strip()):
            begun = any(part.repeats)
            if "model" in values and (begun or part.headers.get("model", values["model"]) != values["model"]):
                parts.append(part := _RunInLog())
            if "model" in values or not begun:
                for key, value in values.items():
                    part.headers[key] = value if part.headers.get(key, value) == value else None
    return [part for part in parts if any(part.repeats) or part.headers.get("model")]


def _begin(parts, name, number, planned):
    """An epoch begins: the next of its run, or the first of another one after a run that has ended."""
    part = parts[-1]
    if part.repeats[-1] and (part.complete or part.ended):
        notes = ["this run starts without a header: the epoch counter began again"]
        if number > 1:
            why = part.ended or "another call of fit"
            notes = [f"goes on at epoch {number} ({why}): its first epoch is warm-up again"]
        parts.append(part := _RunInLog(headers=part.headers if number > 1 else {}, notes=notes))
    if part.repeats[-1] and (number, planned) != (part.number + 1, part.planned):
        raise LogError(
            f"{name}: epoch {number} of {planned} begins after epoch {part.number} of {part.planned}, and no line says "
            "that another training began: several ranks print into this log, and their lines cannot be told apart. "
            "Print on rank 0 only (verbose=2 if rank == 0 else 0), or use horovodrun or srun --label."
        )
    part.repeats[-1].append((number, {}))
    part.planned = planned
