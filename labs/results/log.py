r"""Read the logs (.out) that Keras' `fit` leaves: which runs are in it, how long each epoch took, loss, accuracy.

196/196 - 45s - loss: 1.7626 - accuracy: 0.3536                            verbose=2, TensorFlow 2.2 to 2.6
196/196 - 45s - loss: 1.7626 - accuracy: 0.3536 - 45s/epoch - 229ms/step   Keras 2 (TensorFlow 2.7 to 2.15)
196/196 - 45s - 229ms/step - accuracy: 0.3536 - loss: 1.7626               Keras 3
196/196 [====...] - 45s 229ms/step - loss: 1.7626 - accuracy: 0.3536       verbose=1, Keras 2
196/196 ━━━━━━━━━ 45s 229ms/step - accuracy: 0.3536 - loss: 1.7626         verbose=1, Keras 3

Lines may have the rank prefixes of horovodrun, mpirun, mpiexec and srun: then the epochs of the lowest rank that has
any are read. Everything else is refused, by its name where it is known. A run starts at a header `Model ...`, or where
the epoch counter starts again; `Repeat 2 of 3` is another repeat of it. A training that was cut and goes on at the
epoch where it stopped, as after a requeue, is two runs, each with a warm-up epoch of its own.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from labs.errors import UseError
from labs.printed import several
from labs.results import failures, text
from labs.results.failures import Failure
from labs.results.record import Configuration
from labs.results.run import Epoch, Run

_MAY = re.compile(r"poch|epeat|odel|\d/\d|[:=] *[\w.+-]+$|samples|Invalid loss|CANCELLED|Killed")
_ANSI = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
_EPOCH = re.compile(r"^Epoch (\d{1,9})/(\d{1,9})\s*$")
_REPEAT = re.compile(r"^Repeat (\d{1,9}) of (\d{1,9})\b")
_STOPPED = re.compile(r"^Epoch \d+: early stopping")
_ENDED = re.compile(r"Invalid loss, terminating|\*\*\* (?:JOB|STEP) .*CANCELLED|: Killed$|^Killed$")
_SAMPLES = re.compile(r"^Train on \d+ samples|\d(?:us|ms|s)/sample\b|^ ?- \d+s(?: \d+\w+/\w+)? - loss: ")
_BEGUN = re.compile(r"^ *(\d{1,9})/(\d{1,9}) ?[\[━]")
_RESULT = re.compile(r"^(\d{1,9})/(\d{1,9}) (?:(\[[=>.]+\]|━+) (?:- )?|- )(\d{1,9})s(?= |$)(.*)$")
_RATE = re.compile(r"(?<![\w.])(\d{1,12})(us|ms|s)/(step|epoch)(?!\w)")
_METRIC = re.compile(r"- ([A-Za-z_][\w./]*): (-?\d+\.?\d*(?:e[+-]?\d+)?|-?nan|-?inf)(?=\s|$)", re.I)
_WHOLE = re.compile(r"(?:\.\d{4}|e[+-]\d\d|nan|inf|/step|/epoch)$")
_UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

# Headers of the course's programs: `Model NAME N workers`, and "Name: value": (field of a configuration, its type).
_MODEL = re.compile(r"^Model:?\s+([\w.-]+),?\s+(\d{1,9})\s+(?:GPU|worker|replica|device)s?\b", re.I)
_HEADER = re.compile(r"^([A-Z][a-z_]+): ([\w.+-]+)$")
_FIELDS = {
    "Batch_size": ("global_batch", int),
    "Local_batch": ("local_batch", int),
    "N_replicas": ("workers", int),
    "Images": ("images", int),
    "Strategy": ("strategy", str),
    "Learning_rate": ("learning_rate", float),
}

# Programs whose logs are not read, and a line by which each is known. The first that fits is named.
_STRANGERS = {
    "Horovod's synthetic benchmarks": r"^Img/sec per \w+: |^Iter #\d+: [\d.]+ img/sec",
    "tf_cnn_benchmarks": r"images/sec: [\d.]+",
    "PyTorch Lightning": r"^Epoch \d+: +\d+%\||^GPU available: |pytorch_lightning",
    "Hugging Face's Trainer": r"'epoch': '?[\d.]+'?\}|train_samples_per_second|\*\*\*\*\* Running training",
    "YOLO": r"^ *Epoch +(?:GPU_mem|gpu_mem) ",
    "DeepSpeed": r"\[deepspeed|steps: \d+ loss: .*iter time",
    "PyTorch's ImageNet example": r"Epoch: ?\[\d+\] ?\[ *\d+/\d+\]",
    "MXNet": r"Epoch ?\[\d+\].*(?:Speed|Batch|Time cost)",
    "a TensorFlow Estimator": r"global_step/sec: ",
    "tqdm": r"\d+%\|.*\| *\d+/\d+ \[",
}


class LogError(UseError):
    """A log cannot be read or holds no finished epoch; the message names the path, what is there, what to do.

    `runs`: the runs that the log names nevertheless (they have no epochs), with their failure.
    """

    def __init__(self, message: str, runs=()):
        super().__init__(message)
        self.runs = list(runs)


def read(path: str | Path, **options: str | int | None) -> list[Run]:
    """The runs in a log, in its order: also those that ended before their first epoch.

    options: what the log does not say: model, workers, global_batch (images per step over all workers), images (in
    the data set). Raises LogError if the file cannot be read, holds no finished epoch, mixes ranks without a prefix,
    or counts samples, as Keras before TensorFlow 2.2 did.
    """
    path, name = Path(path), Path(path).name
    try:
        events, ranks = _events(path)
        parts = _parts(events, name)
        for part, after in pairwise(parts):
            if part.truncated:
                within = ((n, line, True) for n, line, _ in text.lines(path) if part.begin <= n < after.begin)
                part.failure = failures.first_cause(within, name)
        problem = failures.in_files(path.with_suffix(".err"), path)
        runs = [part.run(name, index, options) for index, part in enumerate(parts, 1)]
        _blame(runs, problem)
        for run in runs:
            run.folder = path.resolve().parent
        if not any(run.epochs for run in runs):
            raise LogError(_explain(path, parts, problem), runs)
    except OSError as error:
        why = f"cannot be read ({error.strerror}). Check its name, and where the job wrote its output."
        raise LogError(f"{path}: {why}") from None
    if len(ranks) > 1:
        runs[0].notes.append(f"{len(ranks)} ranks print epochs into this log: those of rank {min(ranks)} are read")
    return runs


@dataclass
class _Result:
    """The line of a finished epoch: its whole `seconds`, `rates` as (number, unit, per), `metrics`.

    bar: whether a progress bar showed it; whole: whether the line is complete.
    """

    steps: int
    seconds: int
    rates: list
    metrics: dict
    bar: bool
    whole: bool

    def time(self) -> tuple[float, float, str | None]:
        """(seconds of the epoch, width of their rounding, note or None).

        The finest of the whole seconds and the times per epoch and step that agrees with the whole seconds within the
        rounding of both. Bars give ms/step without the first step, so there only whole seconds count.
        """
        counts = {"epoch": 1, "step": self.steps}
        times = [(n * _UNIT[unit] * counts[per], _UNIT[unit] * counts[per]) for n, unit, per in self.rates]
        if self.bar:
            note = "a log of progress bars: times in whole seconds only (verbose=2 gives finer ones)"
            return float(self.seconds), 1.0, note
        fine = [(time, width) for time, width in times if abs(time - self.seconds) <= (width + 1) / 2 and width < 1]
        if fine:
            return *min(fine, key=lambda pair: pair[1]), None
        apart = any(abs(time - self.seconds) > (width + 1) / 2 for time, width in times)
        note = "the times of a line disagree: whole seconds are used" if apart else None
        return float(self.seconds), 1.0, note

    @property
    def form(self) -> tuple:
        """The metrics in their order, and the units of the times."""
        return *self.metrics, *(per for *_, per in self.rates)

    @property
    def open_bar(self) -> bool:
        """Whether this is a bar that was full before its epoch was over: Keras 3 shows 0 s there, what is left."""
        step = next((number * _UNIT[unit] for number, unit, per in self.rates if per == "step"), 0.0)
        return self.bar and self.seconds == 0 and step * self.steps > 1.5


def result(line: str) -> _Result | None:
    """The results in a line (without rank prefix, colours and control characters), or None for another line."""
    if begun := _BEGUN.match(line):  # bars whose carriage returns are lost stand one after the other
        line = line[max(0, line.rfind(f"{begun[2]}/{begun[2]} ")) :]
    match = _RESULT.match(line.strip())
    if not match or match[1] != match[2]:
        return None
    metrics = {key: float(value) for key, value in _METRIC.findall(match[5])}
    rates = [(int(number), unit, per) for number, unit, per in _RATE.findall(match[5])]
    whole = bool(_WHOLE.search(line.rstrip()))
    return _Result(int(match[1]), int(match[4]), rates, metrics, bool(match[3]), whole) if metrics else None


def header(line: str) -> dict:
    """What a line says about the run, {field: value}: `Model ResNet50V2 2 GPUs` gives model and workers."""
    if model := _MODEL.match(line):
        return {"model": model[1], "workers": int(model[2])}
    match = _HEADER.match(line)
    if not match or match[1] not in _FIELDS:
        return {}
    field, kind = _FIELDS[match[1]]
    with suppress(ValueError):
        if kind is str or 0 < (value := kind(match[2])) < 10**9:
            return {field: match[2] if kind is str else value}
    return {}


def _events(path):
    """([(number of the line, what, details, whether the line has ended)] of a log, ranks with epochs).

    Only what no rank says, and the lowest rank with epochs. Raises LogError where Keras counts samples.
    """
    events, ranks, updates = [], set(), []  # updates: of an epoch's bar, what it counts
    for number, line, ended in text.lines(path):
        if not _MAY.search(line):
            continue
        rank, line = text.split_rank(_ANSI.sub("", line))
        line = line.rstrip()
        if bar := _BEGUN.match(line):
            updates.append(int(bar[1]))
        if _SAMPLES.search(line) or (len(updates) == 2 and updates[1] == 2 * updates[0] > 2):  # two batches
            raise LogError(
                f"{path.name}, line {number}: counts samples and not steps, as Keras before TensorFlow 2.2 did. "
                "Such logs are not read: train with a newer version."
            )
        if match := _EPOCH.match(line):
            event, updates = ("epoch", tuple(map(int, match.groups()))), []
        elif match := _REPEAT.match(line):
            event = "repeat", tuple(map(int, match.groups()))
        elif _STOPPED.match(line):
            event = "stopped", None
        elif _ENDED.search(line):
            event = "ended", line.strip()
        elif outcome := result(line):
            event = "result", outcome
        elif values := header(line.strip()):
            event = "header", values
        else:
            continue
        if event[0] in ("epoch", "result") and rank is not None:
            ranks.add(rank)
        events.append((rank, number, *event, ended))
    lowest = min(ranks, default=None)
    return [event for rank, *event in events if rank in (None, lowest) or lowest is None], ranks


@dataclass
class _Part:
    """A run, or a part of one between two of its ends, as far as its lines are read."""

    begin: int = 1  # number of its first line
    headers: dict = field(default_factory=dict)  # {field: [values]}
    repeats: list = field(default_factory=lambda: [[]])  # of (Epoch, steps)
    number: int = 0  # of the epoch that began last
    planned: int = 0  # epochs, as the log says
    planned_repeats: int = 1
    open: bool = False  # an epoch began and did not end
    stopped: bool = False
    ended: str | None = None  # the line that ended it
    last: _Result | None = None
    overlaps: bool = False  # it began while an epoch was open
    failure: Failure | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def epochs(self):
        return sum(map(len, self.repeats))

    @property
    def truncated(self):
        early = self.number < self.planned and not self.stopped
        return bool(self.open or early or not self.repeats[-1] or len(self.repeats) < self.planned_repeats)

    def _end(self):
        if self.open:
            return f"the log ends before the run does: epoch {self.number} is not finished"
        if 0 < self.number < self.planned:
            return f"the log ends with epoch {self.number} of {self.planned}: stopped early, or cut"
        return f"the log ends with repeat {len([r for r in self.repeats if r])} of {self.planned_repeats}"

    def run(self, name, index, options):
        known, notes = {}, list(self.notes)
        for key, values in self.headers.items():
            known[key] = values[0] if len(set(values)) == 1 else None
            if known[key] is None:
                notes.append(f"the file names {key} as {' and as '.join(map(str, dict.fromkeys(values)))}: not used")
        for key, value in options.items():
            if value is not None and known.setdefault(key, value) not in (value, None):
                notes.append(f"{key} is {known[key]} in the file, {value} in the option: the file is used")
        images = known.pop("images", None)
        has = Configuration(**known)
        if has.global_batch is None and has.local_batch and has.workers:
            has.global_batch = has.local_batch * has.workers
        elif has.local_batch is None and has.global_batch and has.workers and has.global_batch % has.workers == 0:
            has.local_batch = has.global_batch // has.workers
        repeats = [repeat for repeat in self.repeats if repeat]
        steady = {steps for repeat in repeats for _, steps in repeat[1:]}
        steps = steady or {steps for repeat in repeats for _, steps in repeat}
        if len(steps) > 1:
            notes.append(f"the number of steps changes within the run: {sorted(steps)}")
        if self.truncated:
            notes.append(self._end() + (f" ({self.ended})" if self.ended else ""))
        return Run(
            name,
            [[epoch for epoch, _ in repeat] for repeat in repeats],
            index=index,
            kind="recorded",
            configuration=has,
            dataset_images=images,
            steps=steps.pop() if len(steps) == 1 else None,
            state="failed" if self.truncated else "finished",
            failure=self.failure,
            notes=notes,
        )


def _parts(events, name):
    """The _Parts in the events. Those that only a header or a started epoch shows are kept: they failed."""
    parts = [_Part()]
    for number, what, details, whole in events:
        part = parts[-1]
        if what == "header":
            _head(parts, number, details)
        elif what == "repeat":
            _repeat(parts, number, *details)
        elif what == "epoch":
            _open(parts, number, name, *details)
        elif what == "result":
            _close(part, details, whole, name)
        elif what == "stopped":
            part.stopped = True
        elif part.open or part.truncated:
            part.ended = details
    return [part for part in parts if part.epochs or part.open or part.headers.get("model")]


def _head(parts, number, values):
    part, has = parts[-1], parts[-1].headers
    others = "model" in values and any(values[key] not in has.get(key, [values[key]]) for key in values)
    begun = part.epochs or part.open
    if others or (begun and ("model" in values or (not part.truncated and values.keys() != {"learning_rate"}))):
        parts.append(part := _Part(number))
    if not part.epochs:
        for key, value in values.items():
            part.headers.setdefault(key, []).append(value)


def _repeat(parts, line, number, planned):
    if number == 1 and parts[-1].epochs:
        parts.append(_Part(line))
    elif number > 1 and not parts[-1].epochs and len(parts) > 1 and not parts[-1].headers.get("model"):
        parts.pop()  # lines between two repeats that looked like headers
    part = parts[-1]
    if number > 1 and part.epochs:
        part.repeats.append([])
        part.number, part.stopped = 0, False
    part.planned_repeats = planned


def _open(parts, line, name, number, planned):
    part = parts[-1]
    again = number <= part.number or planned != part.planned  # another call of fit
    if (part.epochs and part.number and (again or part.ended)) or part.open:
        if number == part.number > 1 and not (part.open or part.ended):
            raise LogError(_MIXED.format(name=name, number=number))
        after = _Part(line, overlaps=part.open and not part.ended)
        if number > 1:
            why = f" ({part.ended})" if part.ended else ""
            after.headers = part.headers
            after.notes.append(f"goes on at epoch {number} after an end{why}: its first epoch is warm-up again")
        else:
            after.notes.append("this run starts without a header: the epoch counter began again")
        parts.append(part := after)
    part.number, part.planned, part.open = number, planned, True


_MIXED = (
    "{name}: epoch {number} begins twice: several ranks print into this log, and their lines cannot be told apart. "
    "Print on rank 0 only (verbose=2 if rank == 0 else 0), or use horovodrun or srun --label."
)


def _close(part, outcome, whole, name):
    """A line of results ends the open epoch."""
    last = part.last
    if outcome.open_bar or part.ended:
        return  # full before the validation; or what Keras printed after the training had been ended
    if not part.open:
        if part.overlaps and last and outcome.steps == last.steps and outcome.form == last.form:
            raise LogError(_MIXED.format(name=name, number=part.number))
        if not (last and outcome.bar and outcome.steps == last.steps and outcome.seconds > last.seconds == 0):
            return  # `evaluate`, or the same epoch of another rank
        part.repeats[-1].pop()  # a bar that was printed before its epoch was over
    same = last is not None and outcome.form == last.form
    if not whole and not (outcome.whole and same and not outcome.bar):
        part.open = True  # cut in the middle of the line
        return
    time, resolution, note = outcome.time()
    part.repeats[-1].append((Epoch(time, resolution, None, metrics=outcome.metrics), outcome.steps))
    part.last, part.open = outcome, False
    part.notes += [note] if note and note not in part.notes else []


def _blame(runs, problem):
    """Give the failure to the run that did not end. If all went well after a refused request, nothing has failed."""
    unfinished = [run for run in runs if run.truncated]
    if problem and runs and (unfinished or not failures.harmless(problem)):
        run = (unfinished or runs)[-1]
        if not run.failure and not any(other.failure == problem for other in runs):
            run.failure = problem
        if len(unfinished) > 1 and not any(other.failure for other in unfinished[:-1]):
            run.notes.append("several runs did not finish; the failure may belong to another one")


def _explain(path, parts, problem):
    name, count, empty, strange = path.name, 0, True, set()
    for count, line, _ in text.lines(path):  # noqa: B007
        empty = empty and not line.strip()
        strange |= {who for who, sign in _STRANGERS.items() if re.search(sign, line)}
    if problem:
        return f"{name}: no finished epoch, since the job {failures.sentence(problem)}"
    if empty:
        return f"{name}: the file is empty, so there is nothing to measure. Did the job start? Look at its .err."
    if any(part.open for part in parts):
        return f"{name}: the first epoch began but did not end. Wait until the job is done, or look at its .err."
    if known := [who for who in _STRANGERS if who in strange]:
        return f"{name}: a log of {known[0]}, which is not read. A log of Keras' fit is needed (verbose=2)."
    return (
        f"{name}: no line that the kit knows in its {several(count, 'line')}. A log of Keras' fit with verbose=2 is "
        "needed: give the .out of the training job, and check that the script calls fit with verbose=2."
    )
