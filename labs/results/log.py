"""Read the logs (.out) that Keras' `fit` leaves: which runs are in it, how long each epoch took, loss, accuracy.

Formats: Keras 2 and 3, `verbose=2` (a line per epoch, see labs.results.line) and `verbose=1` (progress bars), also
with the rank prefixes of horovodrun, mpirun, mpiexec and srun: then the epochs of the lowest rank that has any are
read. Keras before TensorFlow 2.2 counts samples in place of steps (`Train on 50000 samples`). Horovod's synthetic
benchmarks print images/s. What a log does not say comes from the run record beside it (`<stem>.json`), else from the
caller, else it is None. Where they disagree with the file, the file wins and a note says so.

A run starts at a header `Model ...`, at an echoed command line, or where the epoch counter starts again;
`Repeat 2 of 3` is another repeat of the same run.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from labs import files
from labs.errors import UseError
from labs.printed import several
from labs.results import line as lines
from labs.results import text
from labs.results.failures import Failure, failure, split_rank
from labs.results.record import Configuration, RecordError
from labs.results.run import Epoch, Run, load_record

_MOST = 100_000  # lines of epochs in a log
_MARKS = (b"epoch ", b"repeat ", b"train on ", b"s - ", b"/step - ")  # where epochs are, in the middle of a large log
_MAY = re.compile("[:=]|poch|epeat|odel|ython|amples", re.I)  # a line without these says nothing
_ANSI = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
_STRANGERS = files.beside(__file__, "strangers.toml")


class LogError(UseError):
    """A log cannot be read or holds no finished epoch; the message names the path, what is there, what to do.

    `runs`: the runs that the log names nevertheless (they have no epochs), with their failure.
    """

    def __init__(self, message: str, runs=()):
        super().__init__(message)
        self.runs = list(runs)


def read(
    path: str | Path,
    *,
    model: str | None = None,
    workers: int | None = None,
    global_batch: int | None = None,
    images: int | None = None,
) -> list[Run]:
    """The runs in a log, in its order: also those that ended before their first epoch.

    The options fill in what the log does not say; global_batch: images per step over all workers; images: in the data
    set. Raises LogError if the file cannot be read, holds no finished epoch, or mixes ranks without a prefix.
    """
    path, name = Path(path), Path(path).name
    try:
        found, ranks = _visible(path)
        found = _sections(found, name)
        problem = problem_in(path.with_suffix(".err")) or problem_in(path)
    except OSError as error:
        why = f"cannot be read ({error.strerror}). Check its name, and where the job wrote its output."
        raise LogError(f"{path}: {why}") from None
    options = {"model": model, "workers": workers, "global_batch": global_batch, "images": images}
    runs = [section.run(name, index) for index, section in enumerate(found, 1)]
    beside = _record(path)
    if beside and len(runs) == 1:
        (run,) = runs
        run.kind, run.name = beside.kind, beside.name
        known = set(Configuration.model_fields) - {"images"}
        run.fill(beside.configuration.model_dump(include=known), "the run record")
        rest = ("images", "hardware", "oversubscribed", "study", "job")
        run.fill({key: getattr(beside, key) for key in rest}, "the run record")
    elif beside and runs:
        runs[0].notes.append(f"the run record beside this log is not used: the log holds {len(runs)} runs")
    for run in runs:
        run.folder = path.resolve().parent
        _count(run, options, bool(ranks))
        run.fill(options, "the option")
        _complete(run)
    _blame(runs, problem)
    if not any(run.repeats for run in runs):
        raise LogError(_explain(path, found, problem), runs)
    return runs


def _visible(path):
    """([(kind, what, whether its line ended with a line break)] of what labs.results.line.read finds in a log, ranks).

    Only what no rank says, and the lowest rank with epochs. ranks: those with epochs. Raises LogError where there are
    too many for a log.
    """
    found, ranks, last = [], set(), False
    for _, line, _ in text.lines(path, _MARKS):
        last = False
        if not _MAY.search(line):
            continue
        rank, rest = split_rank(_ANSI.sub("", line))
        seen = next((part.strip() for part in reversed(re.split(r"[\r\b]+", rest)) if part.strip()), "")
        if said := lines.read(seen):
            if said[0] in ("epoch", "result") and rank is not None:
                ranks.add(rank)
            last = True
            found.append((rank, *said, True))
        if len(found) > _MOST:
            raise LogError(
                f"{path.name}: more than {_MOST} lines of epochs, too many for one job. Give its records (.json), or a "
                "part of the log."
            )
    if last:
        found[-1] = (*found[-1][:-1], False)
    lowest = min(ranks, default=None)
    return [said for rank, *said in found if rank in (None, lowest) or lowest is None], ranks


def problem_in(path: Path | None) -> Failure | None:
    """The failure in a file; None where there is no such file."""
    return failure(path) if path and path.is_file() else None


def _record(path):
    """The run that the record beside a log describes, if there is a usable one."""
    beside = path.with_suffix(".json")
    with suppress(RecordError):
        return load_record(beside) if beside.is_file() else None


def _count(run, options, ranked):
    """Images of an epoch, where the log counts samples. ranked: whether ranks print into it, each with its own."""
    if run.steps and run.steps == options["images"] and options["global_batch"] != 1:  # "steps" of Keras 2.0 to 2.3
        run.samples, run.steps = run.steps, None
    if not run.samples:
        return
    if ranked or run.configuration.strategy == "horovod":
        run.notes.append(f"the log counts the {run.samples} samples of one rank, and not those of the others")
        return
    run.fill({"images": run.samples}, "the log")
    for epoch in (epoch for repeat in run.repeats for epoch in repeat):
        epoch.images = run.samples


def _complete(run):
    """What follows by arithmetic alone: local x workers = global batch; the steps of samples."""
    has = run.configuration
    if has.global_batch is None and has.local_batch and has.workers:
        has.global_batch = has.local_batch * has.workers
    elif has.local_batch is None and has.global_batch and has.workers and has.global_batch % has.workers == 0:
        has.local_batch = has.global_batch // has.workers
    if run.samples and run.images == run.samples and has.global_batch:
        run.steps = -(-run.samples // has.global_batch)


def harmless(problem: Failure) -> bool:
    """Whether a job whose runs have all finished can have gone on after this failure."""
    return "CUDA_ERROR_OUT_OF_MEMORY" in problem["line"] or problem["kind"] in ("missing file", "missing module")


def _blame(runs, problem):
    """Give the failure to the run that did not end. If all went well after a refused request, nothing has failed."""
    unfinished = [run for run in runs if run.truncated]
    if problem and runs and (unfinished or not harmless(problem)):
        run = (unfinished or runs)[-1]
        run.failure = problem
        if len(unfinished) > 1:
            run.notes.append("several runs did not finish; the failure may belong to another one")


def _explain(path, found, problem):
    name, numbered = path.name, list(text.lines(path))
    said = [line for _, line, _ in numbered]
    count = numbered[-1][0] - (not said[-1])
    if problem:
        return (
            f"{name}: no finished epoch, since the job failed: {problem['kind']} (line {problem['line_number']} of "
            f"{problem['file']}: {problem['line'][:160]}). {problem['advice']}"
        )
    if not any(map(str.strip, said)):
        return f"{name}: the file is empty, so there is nothing to measure. Did the job start? Look at its .err."
    if any(section.open for section in found):
        return f"{name}: the first epoch began but did not end. Wait until the job is done, or look at its .err."
    known = (who for who, sign in _STRANGERS.items() if any(map(re.compile(sign).search, said)))
    strange = f" They look like those of {who}, which are not read." if (who := next(known, None)) else ""
    return (
        f"{name}: no epoch in its {several(count, 'line')}.{strange} A log of Keras' fit with verbose=2 is needed "
        "(Horovod's synthetic benchmarks are read, too): give the .out of the training job, and check that the script "
        "calls fit with verbose=2."
    )


class Said:
    """What was said about one run, by whom; `notes` names contradictions once `value` was asked for them.

    What the program printed counts more than the command line; where one of them contradicts itself, nothing is known.
    """

    def __init__(self):
        self.by_field = {}
        self.notes = []

    def add(self, found):
        """Keep what labs.results.line.settings found in a line."""
        for key, value, origin in found:
            self.by_field.setdefault(key, {}).setdefault(origin, []).append(value)

    def differs(self, found) -> bool:
        """Whether a line names another model (with its workers) or command than this run's: another run, then."""
        for key, value, origin in found:
            known = self.by_field.get(key, {}).get(origin, [value])
            if (key == "command" or (origin == "header" and lines.names_model(found))) and value not in known:
                return True
        return False

    def value(self, key):
        """The value of a field, or None if nobody named it or the strongest witness contradicts itself."""
        said = self.by_field.get(key, {})
        witnesses = {
            origin: list(dict.fromkeys(said[origin])) for origin in ("header", "command", "script") if origin in said
        }
        if not witnesses:
            return None
        strongest, values = next(iter(witnesses.items()))
        if len(values) > 1:
            self.notes.append(f"the file names {key} as {' and as '.join(map(str, values))}: not used")
            return None
        chosen, command = values[0], witnesses.get("command", values)
        if strongest == "script":
            self.notes.append("the model is named after the script")
        if chosen not in command:
            self.notes.append(
                f"the program printed {key} {chosen}, the command line says {command[0]}: "
                "what the program printed is used"
            )
        return chosen


@dataclass
class _Section:
    """One run, as far as its lines are read."""

    said: Said = field(default_factory=Said)
    repeats: list[list[Epoch]] = field(default_factory=lambda: [[]])
    number: int | None = None  # of the epoch that began last
    planned: int | None = None  # epochs, as the log says
    planned_repeats: int = 1
    open: bool = False  # an epoch began and did not end
    stopped: bool = False
    last: lines.EpochLine | None = None
    steps: set = field(default_factory=set)
    samples: int | None = None  # of an epoch, where Keras counts them
    local_batch: int | None = None  # of a worker, in Horovod's benchmarks
    notes: list[str] = field(default_factory=list)

    @property
    def epochs(self):
        return sum(len(repeat) for repeat in self.repeats)

    @property
    def truncated(self):
        early = self.planned and self.number and self.number < self.planned and not self.stopped
        return bool(self.open or early or not self.repeats[-1] or len(self.repeats) < self.planned_repeats)

    def run(self, name, index):
        run = Run(name, index, repeats=[r for r in self.repeats if r], truncated=self.truncated)
        run.fill({key: self.said.value(key) for key in self.said.by_field if key != "command"})
        run.steps = min(self.steps) if len(self.steps) == 1 else None
        if self.samples and self.steps <= {self.samples, None}:
            run.samples, run.steps = self.samples, None
        if self.local_batch:
            run.fill({"strategy": "horovod", "local_batch": self.local_batch})
            run.fill({"images": self.local_batch * (run.workers or 1)})
            run.steps = 1
            run.notes.append("a synthetic benchmark of Horovod: an epoch here is one step, the mean of an iteration")
        run.notes += [*self.said.notes, *self.notes]
        if len(self.steps) > 1:
            run.notes.append(f"the number of steps changes within the run: {sorted(self.steps)}")
        if self.truncated:
            cut = ": the last epoch is not finished" if self.open else ""
            run.notes.append(f"the log ends before the run does{cut}")
        return run


def _sections(visible, name):
    """The runs in the lines. Runs that only a header or a started epoch shows are kept: they failed."""
    runs, local_batch = [_Section()], 1
    for kind, found, whole in visible:
        if kind == "settings":
            if _begins(runs[-1], found):
                runs.append(_Section())
            if not runs[-1].epochs:
                runs[-1].said.add(found)
        elif kind == "repeat":
            _repeat(runs, *found)
        elif kind == "epoch":
            _open(runs, name, *found)
        elif kind == "stopped":
            runs[-1].stopped = True
        elif kind == "samples":
            if runs[-1].epochs and runs[-1].repeats[-1]:
                runs.append(_Section())
            (runs[-1].samples,) = found
        elif kind == "result":
            _close(runs[-1], found, whole)
        else:
            local_batch = _iterate(runs[-1], local_batch, kind, *found)
    return [s for s in runs if s.epochs or s.open or s.said.by_field.get("model")]


def _iterate(section, local_batch, what, number):
    """A line of Horovod's benchmarks: an iteration is an epoch of one step. Returns the batch of a worker."""
    if what == "batch":
        return number
    section.open = what == "iteration"
    if 1e-3 <= number <= 1e9 and (section.open or not section.epochs):
        found = Epoch(local_batch / number, 0.1 * local_batch / number**2)
        section.repeats[-1] += [found] * (1 if section.epochs else 2)  # Horovod times no warm-up; here the first is one
        section.local_batch = local_batch
    return local_batch


def _begins(section, found):
    if not (section.epochs or section.open):
        return section.said.differs(found)
    return lines.begins_run(found) or (not section.truncated and any(f[0] != "learning_rate" for f in found))


def _repeat(runs, number, planned):
    if number == 1:
        if runs[-1].epochs:
            runs.append(_Section())
        runs[-1].planned_repeats = planned
        return
    if not runs[-1].epochs and len(runs) > 1 and not runs[-1].said.by_field.get("model"):
        runs.pop()  # lines between two repeats that looked like headers
    if runs[-1].epochs:
        runs[-1].repeats.append([])
        runs[-1].number, runs[-1].stopped = None, False
    runs[-1].planned_repeats = planned


def _open(runs, name, number, planned):
    section = runs[-1]
    if section.number is not None and number <= section.number:
        if number == section.number and number > 1:
            raise LogError(
                f"{name}: epoch {number} begins twice: several ranks print into this log, and their lines cannot be "
                "told apart. Print on rank 0 only (verbose=2 if rank == 0 else 0), or use horovodrun or srun --label."
            )
        runs.append(section := _Section())
        section.notes.append("this run starts without a header: the epoch counter began again")
    section.number, section.planned, section.open = number, planned, True


def _close(section, found, whole):
    """A line of results ends the open epoch."""
    last = section.last
    if found.per_sample and not section.samples:
        section.samples = found.steps
    if section.samples and found.steps not in (None, section.samples):
        return  # the bar of the validation
    if not section.open:
        if not (last and found.bar and found.steps == last.steps and found.seconds > last.seconds == 0):
            return  # `evaluate`, or the same epoch of another rank
        section.repeats[-1].pop()  # a bar that was printed before its epoch was over
    if not whole and not (last and found.whole and found.same_form(last) and not found.bar):
        section.open = True  # cut in the middle of the line
        return
    time, resolution, note = found.time()
    section.repeats[-1].append(Epoch(time, resolution, None, found.metrics))
    section.steps.add(found.steps)
    section.last, section.open = found, False
    section.notes += [note] if note and note not in section.notes else []
