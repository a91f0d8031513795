r"""Read the logs (.out) that Keras' `fit` leaves: which runs are in it, how long each epoch took, loss, accuracy.

196/196 - 45s - loss: 1.7626 - accuracy: 0.3536                            verbose=2, TensorFlow 2.2 to 2.6
196/196 - 45s - loss: 1.7626 - accuracy: 0.3536 - 45s/epoch - 229ms/step   Keras 2 (TensorFlow 2.7 to 2.15)
196/196 - 45s - 229ms/step - accuracy: 0.3536 - loss: 1.7626               Keras 3
196/196 [====...] - 45s 229ms/step - loss: 1.7626 - accuracy: 0.3536       verbose=1, Keras 2
196/196 ━━━━━━━━━ 45s 229ms/step - accuracy: 0.3536 - loss: 1.7626         verbose=1, Keras 3

Lines may have the rank prefixes of horovodrun, mpirun, mpiexec and srun: then the epochs of the lowest rank that has
any are read. Everything else is refused, by its name where it is known. A run starts at a header `Model ...`, or where
the epoch counter starts again; `Repeat 2 of 3` is another repeat of it. A training that goes on at a later epoch, as
after a requeue, is another run, with a warm-up epoch of its own. A line counts where it is whole, and an epoch where it
is clear which line is its own.
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

_MARKS = ("poch ", "repeat ", "model ", "s - ", "/step", "samples", "invalid loss", "cancelled", "killed")
_MAY = re.compile(r"poch|epeat|odel|\d/\d|[:=] *[\w.+-]+$|samples|Invalid loss|CANCELLED|Killed|\ds - ")
MOST = 50  # lines of results, one after the other, and of a bar's counts, that are looked at
_ANSI = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_EPOCH = re.compile(r"Epoch ([1-9]\d{0,8})/(\d{1,9})\s*$")  # also behind what a killed program left of its last line
_REPEAT = re.compile(r"^Repeat (\d{1,9}) of (\d{1,9})\b")
_STOPPED = re.compile(r"^Epoch \d+: early stopping")
_ENDED = re.compile(r"Invalid loss, terminating|\*\*\* (?:JOB|STEP) .*CANCELLED|: Killed$|^Killed$")
_SAMPLES = re.compile(r"^Train on \d+ samples|\d(?:us|ms|s)/sample\b|^ ?- \d+s(?: \d+\w+/\w+)? - loss: ")
_BAR = re.compile(r"(\d{1,9})/(\d{1,9}) ?[\[━]")
_RESULT = re.compile(r"^(\d{1,9})/(\d{1,9}) (?:(\[=+\]|━+) (?:- )?|- )(\d{1,9})s(?: (\d+[um]?s/step))?(?: - (.*))?$")
_RATE = re.compile(r"^(\d{1,9})(us|ms|s)/(step|epoch)$")
_METRIC = re.compile(r"^([^:]+): (-?\d+\.\d{4}(?:e[+-]\d{2,3})?|-?nan|-?inf)$")
_UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

# Headers of the course's programs: `Model NAME N workers`, and "Name: value": (field of a configuration, its type).
_MODEL = re.compile(r"^Model:?\s+([A-Z][\w.-]*),?\s+(\d{1,9})\s+(?:GPU|worker|replica|device)s?\b")
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
    "a program of PyTorch": r"^Epoch 0/\d+$",
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
            raise LogError(_explain(path, events, runs, problem), runs)
    except OSError as error:
        why = f"cannot be read ({error.strerror}). Check its name, and where the job wrote its output."
        raise LogError(f"{path}: {why}") from None
    if len(ranks) > 1:
        runs[0].notes.append(f"{len(ranks)} ranks print epochs into this log: those of rank {min(ranks)} are read")
    return runs


@dataclass
class _Result:
    """The line of a finished epoch: its whole `seconds`, `rates` as (number, unit, per), `metrics`; bar: whether a
    progress bar showed it; line: its number."""

    steps: int
    seconds: int
    rates: list
    metrics: dict
    bar: bool
    line: int = 0

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
    def too_early(self) -> bool:
        """Whether this is a bar that was full before its epoch was over: Keras 3 shows 0 s there, what is left."""
        step = next((number * _UNIT[unit] for number, unit, per in self.rates if per == "step"), 0.0)
        return self.bar and self.seconds == 0 and step * self.steps > 1.5

    def goes_on_in(self, later: "_Result") -> bool:
        """Whether a later line is the same bar again, at its end: on the same line, or behind a bar that shows 0 s."""
        same = {name: later.metrics.get(name) for name in self.metrics} == self.metrics and self.steps == later.steps
        return self.line == later.line or (same and self.bar and self.seconds == 0)


def result(line: str) -> _Result | None:
    """The results in a whole line (without rank prefix, colours and control characters), or None for another line."""
    if bar := _BAR.match(line.lstrip()):  # bars whose carriage returns are lost stand one after the other
        line = line[max(0, line.rfind(f"{bar[2]}/{bar[2]} ")) :]
    match = _RESULT.match(line.strip())
    if not match or match[1] != match[2]:
        return None
    metrics, rates = {}, []
    for part in " - ".join(filter(None, match.group(5, 6))).split(" - "):
        if rate := _RATE.match(part):
            rates.append(rate.groups())
        elif metric := _METRIC.match(part):
            metrics[metric[1]] = float(metric[2])
        else:
            return None
    rates = [(int(number), unit, per) for number, unit, per in rates]
    return _Result(int(match[1]), int(match[4]), rates, metrics, bool(match[3])) if metrics else None


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
    """([(number of the line, what, details)] of a log, ranks with epochs).

    Only what no rank says, and the lowest rank with epochs. Raises LogError where Keras counts samples.
    """
    events, ranks, counts, many = [], set(), [], 0  # counts: what an epoch's bar has counted to; many: results
    for number, line, ended in text.lines(path, _MARKS):
        if not _MAY.search(line):
            continue
        rank, line = text.split_rank(_ANSI.sub("", line))
        line = line.rstrip()
        if len(counts) < MOST:
            counts += [int(done) for done, of in _BAR.findall(line) if int(done) < int(of)]
        if _SAMPLES.search(line) or (len(set(counts)) > 1 and counts[0] > 1 and not any(n % counts[0] for n in counts)):
            raise LogError(
                f"{path.name}, line {number}: counts samples and not steps, as Keras before TensorFlow 2.2, or several "
                "steps at once. Such logs are not read: train with a newer version, and with verbose=2."
            )
        if (match := _EPOCH.search(line)) and int(match[1]) <= int(match[2]):
            event, counts = ("epoch", (int(match[1]), int(match[2]))), []
        elif match := _REPEAT.match(line):
            event = "repeat", (int(match[1]), int(match[2]))
        elif _STOPPED.match(line):
            event = "stopped", None
        elif _ENDED.search(line):
            event = "ended", line.strip()
        elif many < MOST and (ended or line.endswith("/step")) and (outcome := result(line)):
            outcome.line = number
            event = "result", outcome
        elif values := header(line.strip()):
            event = "header", values
        else:
            continue
        many = many + 1 if event[0] == "result" else 0
        if event[0] in ("epoch", "result") and rank is not None:
            ranks.add(rank)
        events.append((rank, number, *event))
    lowest = min(ranks, default=None)
    return [event for rank, *event in events if rank in (None, lowest) or lowest is None], ranks


@dataclass
class _Part:
    """A run, or a part of one between two of its ends, as far as its lines are read."""

    begin: int = 1  # number of its first line
    headers: dict = field(default_factory=dict)  # {field: [values]}
    repeats: list = field(default_factory=lambda: [[]])  # of (number of an epoch, its results)
    repeat: int = 1  # number of the last one
    planned: int = 0  # epochs, as the log says
    planned_repeats: int = 1
    stopped: bool = False
    ended: str | None = None  # the line that ended it
    overlaps: bool = False  # it began while an epoch was open
    failure: Failure | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def number(self):
        """Of the epoch that began last, 0 for none."""
        return self.repeats[-1][-1][0] if self.repeats[-1] else 0

    @property
    def begun(self):
        return any(self.repeats)

    @property
    def open(self):
        """Whether an epoch began and did not end."""
        return bool(self.repeats[-1]) and not self.repeats[-1][-1][1]

    @property
    def truncated(self):
        early = self.number < self.planned and not self.stopped
        return bool(self.open or early or self.ended or self.repeat < self.planned_repeats)

    def _end(self):
        if self.open or (self.number == self.planned and self.ended):
            return f"the log ends before the run does: epoch {self.number} is not finished"
        if 0 < self.number < self.planned:
            return f"the log ends with epoch {self.number} of {self.planned}: stopped early, or cut"
        return f"the log ends with repeat {self.repeat if self.number else self.repeat - 1} of {self.planned_repeats}"

    def epochs(self, name):
        """[(number of the repeat, of the epoch, its own _Result)]: evaluate's lines are left out where that is clear.

        Raises LogError where ranks are mixed.
        """
        every = [(n, number, _own(results)) for n, repeat in enumerate(self.repeats) for number, results in repeat]
        steps = [{one.steps for one in own} for *_, own in every if own]
        common, kept, unclear = set.intersection(*steps) if steps else set(), [], []
        for n, number, own in every:
            fit = own if len(own) < 2 else [one for one in own if one.steps in common]
            if validated := [one for one in fit if any(name.startswith("val_") for name in one.metrics)]:
                fit = validated if len(validated) == 1 and not self.overlaps else fit
            if len(fit) > 1 and len({one.steps for one in fit}) == 1:
                if self.overlaps:
                    raise LogError(_MIXED.format(name=name, number=number))
                if len(every) > 1 and (n, number) == every[-1][:2]:
                    fit = fit[:1]  # of as many steps, evaluate after the training
            kept += [(n, number, fit[0])] if len(fit) == 1 else []
            unclear += [str(number)] if len(fit) > 1 else []
        if unclear:
            self.notes.append(
                f"epoch {', '.join(unclear)}: several lines of results, as of fit and evaluate, or of ranks, which "
                "cannot be told apart: not used"
            )
        return kept

    def run(self, name, index, options):
        known, notes = {}, self.notes
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
        epochs = self.epochs(name)
        steps = {one.steps for n, number, one in epochs if (n, number) != (n, self.repeats[n][0][0])}
        steps = steps or {one.steps for *_, one in epochs}
        if len(steps) > 1:
            notes.append(f"the number of steps changes within the run: {sorted(steps)}")
        if self.truncated:
            notes.append(self._end() + (f" ({self.ended})" if self.ended else ""))
        times = [(n, number, one, one.time()) for n, number, one in epochs]
        notes += dict.fromkeys(note for *_, (_, _, note) in times if note)
        return Run(
            name,
            epochs=[
                Epoch(seconds, resolution, repeat=n, epoch=number - 1, metrics=one.metrics)
                for n, number, one, (seconds, resolution, _) in times
            ],
            index=index,
            kind="recorded",
            configuration=has,
            dataset_images=images,
            steps=steps.pop() if len(steps) == 1 else None,
            state="failed" if self.truncated else "finished",
            failure=self.failure,
            notes=notes,
        )


def _own(results):
    """The results in an epoch that can be its own: a bar that was drawn again counts once, as it ended."""
    own = []
    for one in results:
        if own and own[-1].goes_on_in(one):
            own.pop()
        own.append(one)
    return own


_MIXED = (
    "{name}: epoch {number} begins twice: several ranks print into this log, and their lines cannot be told apart. "
    "Print on rank 0 only (verbose=2 if rank == 0 else 0), or use horovodrun or srun --label."
)


def _parts(events, name):
    """The _Parts in the events. Those that only a header or a started epoch shows are kept: they failed."""
    parts = [_Part()]
    for line, what, details in events:
        part = parts[-1]
        if what == "header":
            _head(parts, line, details)
        elif what == "repeat":
            _repeat(parts, line, *details)
        elif what == "epoch":
            _open(parts, line, name, *details)
        elif what == "result" and part.begun and not part.ended and not details.too_early:
            part.repeats[-1][-1][1].append(details)
        elif what == "stopped":
            part.stopped = True
        elif what == "ended" and (part.open or part.truncated):
            part.ended = details
    return [part for part in parts if part.begun or part.headers.get("model")]


def _head(parts, line, values):
    part, has = parts[-1], parts[-1].headers
    others = "model" in values and any(values[key] not in has.get(key, [values[key]]) for key in values)
    if others or (part.begun and ("model" in values or (not part.truncated and values.keys() != {"learning_rate"}))):
        parts.append(part := _Part(line))
    if not part.begun:
        for key, value in values.items():
            part.headers.setdefault(key, []).append(value)


def _repeat(parts, line, number, planned):
    part = parts[-1]
    if part.begun and number not in (part.repeat, part.repeat + 1):
        parts.append(part := _Part(line))
    elif part.begun and number == part.repeat:
        part.notes.append(f"repeat {number} was cut, and begun again")
        part.repeats[-1] = []
    elif part.begun:
        part.repeats.append([])
    part.repeat, part.planned_repeats, part.stopped, part.ended = number, planned, False, None


def _open(parts, line, name, number, planned):
    part = parts[-1]
    again = number != part.number + 1 or planned != part.planned  # another call of fit, or another process
    if part.repeats[-1] and (again or part.open or part.ended):
        if number == part.number > 1 and planned == part.planned and not (part.open or part.ended):
            raise LogError(_MIXED.format(name=name, number=number))
        after = _Part(line, overlaps=part.open and not part.ended)
        if number > 1:
            why = part.ended or ("the epoch before it did not end" if part.open else "another call of fit")
            after.headers = part.headers
            after.notes.append(f"goes on at epoch {number} ({why}): its first epoch is warm-up again")
        else:
            after.notes.append("this run starts without a header: the epoch counter began again")
        parts.append(part := after)
    part.repeats[-1].append((number, []))
    part.planned = planned


def _blame(runs, problem):
    """Give the failure to the run that did not end. If all went well after a refused request, nothing has failed."""
    unfinished = [run for run in runs if run.truncated]
    if problem and runs and (unfinished or not failures.harmless(problem)):
        run = (unfinished or runs)[-1]
        if not run.failure and not any(other.failure == problem for other in runs):
            run.failure = problem
        if len(unfinished) > 1 and not any(other.failure for other in unfinished[:-1]):
            run.notes.append("several runs did not finish; the failure may belong to another one")


def _explain(path, events, runs, problem):
    """Why a log has no finished epoch, in one line."""
    name, count, empty, strange = path.name, 0, True, set()
    for count, line, _ in text.lines(path):  # noqa: B007
        empty = empty and not line.strip()
        strange |= {who for who, sign in _STRANGERS.items() if re.search(sign, line)}
    if problem:
        return f"{name}: no finished epoch, since the job {failures.sentence(problem)}"
    if empty:
        return f"{name}: the file is empty, so there is nothing to measure. Did the job start? Look at its .err."
    if known := [who for who in _STRANGERS if who in strange]:
        return f"{name}: a log of {known[0]}, which is not read. A log of Keras' fit is needed (verbose=2)."
    if any(what == "epoch" for _, what, _ in events):
        wait = "" if any(what == "ended" for _, what, _ in events) else " Wait until the job is done, or read its .err."
        return f"{name}: no finished epoch: {'; '.join(runs[-1].notes)}.{wait}"
    if any(what == "result" for _, what, _ in events):
        return (
            f"{name}: lines of results without `Epoch 1/2` above them: Keras writes so what evaluate and a fit of one "
            "epoch give, and both times are no measurement. Train for 2 epochs or more."
        )
    return (
        f"{name}: no line that the kit knows in its {several(count, 'line')}. A log of Keras' fit with verbose=2 is "
        "needed: give the .out of the training job, and check that the script calls fit with verbose=2."
    )
