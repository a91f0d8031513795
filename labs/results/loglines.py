"""From the lines of a log to its runs: the line with which Keras ends an epoch, and where a run begins.

196/196 - 45s - loss: 1.7626 - accuracy: 0.3536                            TensorFlow 2.2 to 2.6
196/196 - 45s - loss: 1.7626 - accuracy: 0.3536 - 45s/epoch - 229ms/step   Keras 2 (TensorFlow 2.7 to 2.15)
196/196 - 45s - 229ms/step - accuracy: 0.3536 - loss: 1.7626               Keras 3
50000/50000 - 45s - loss: 1.7626 - acc: 0.3536                             TensorFlow 1 and 2.0: samples
196/196 [====...] - 45s 229ms/step - loss: 1.7626 - accuracy: 0.3536       verbose=1, Keras 2
196/196 ━━━━━━━━━ 45s 229ms/step - accuracy: 0.3536 - loss: 1.7626         verbose=1, Keras 3
"""

import re
from dataclasses import dataclass, field

from labs.results import headers
from labs.results.failures import split_rank
from labs.results.run import Epoch

_EPOCH = re.compile(r"^Epoch (\d+)/(\d+)\s*$")
_REPEAT = re.compile(r"^Repeat (\d+) of (\d+)\b")
_STOPPED = re.compile(r"^Epoch \d+: early stopping")
_SIZE = re.compile(r"^Train on (\d+) (samples|steps)")
_LINE = re.compile(r"^(?:(\d+)/(\d+) ?)?(\[[=>.\s-]*\]|[━ ]+)? ?(?:- )?(\d+)s(?= |$)(.*)$")
_RATE = re.compile(r"(?<![\w.])(\d+)(us|ms|s)/(step|sample|epoch)(?!\w)")
_METRIC = re.compile(r"- ([A-Za-z_][\w./]*): (-?\d+\.?\d*(?:e[+-]?\d+)?|-?nan|-?inf)(?=\s|$)", re.I)
_WHOLE = re.compile(r"(?:\.\d{4}|e[+-]\d\d|nan|inf|/step|/epoch)$")
_UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_NAMES = {"acc": "accuracy", "sparse_categorical_accuracy": "accuracy", "categorical_accuracy": "accuracy"}
_NAMES |= {f"val_{old}": f"val_{new}" for old, new in _NAMES.items()} | {"lr": "learning_rate"}


class LogError(ValueError):
    """A log cannot be read or holds no finished epoch; the message names the path, what is there, what to do.

    `runs`: the runs that the log names nevertheless (they have no epochs), with their failure.
    """

    def __init__(self, message: str, runs=()):
        super().__init__(message)
        self.runs = list(runs)


@dataclass
class Result:
    """What the line says: `count` steps or samples, whole `seconds`, `rates` as (number, unit, per), `metrics`."""

    count: int | None
    seconds: int
    rates: list
    metrics: dict
    bar: bool
    whole: bool

    def same_form(self, other: "Result") -> bool:
        """Whether both lines hold the same metrics in the same order, and the same units of time."""
        return list(self.metrics) == list(other.metrics) and [r[2] for r in self.rates] == [r[2] for r in other.rates]


def result(line: str) -> Result | None:
    """The results in a line (without rank prefix, colours and control characters), or None for another line."""
    match = _LINE.match(line)
    if not match or match[1] != match[2] or not (match[1] or line.startswith("- ")):
        return None
    metrics = {_NAMES.get(key, key): float(value) for key, value in _METRIC.findall(match[5])}
    rates = [(int(number), unit, per) for number, unit, per in _RATE.findall(match[5])]
    bar = bool(match[3] and match[3].strip())
    count = int(match[1]) if match[1] else None
    return Result(count, int(match[4]), rates, metrics, bar, bool(_WHOLE.search(line))) if metrics else None


def seconds(found: Result, steps: int | None, images: int | None) -> tuple[float, float, str | None]:
    """(seconds of the epoch, width of their rounding, note or None).

    The finest of the whole seconds and the times per epoch, step and image that agrees with the whole seconds within
    the rounding of both. Bars give ms/step without the first step, so there only whole seconds count.
    """
    counts = {"epoch": 1, "step": None if found.bar else steps, "sample": images}
    times = [
        (number * _UNIT[unit] * counts[per], _UNIT[unit] * counts[per])
        for number, unit, per in found.rates
        if number and counts[per]
    ]
    note = None
    for time, resolution in sorted(times, key=lambda pair: pair[1]):
        if resolution >= 1.0:
            break
        if abs(time - found.seconds) <= (1.0 + resolution) / 2 + 1e-9:
            return time, resolution, note
        note = "times per step and whole seconds disagree: the whole seconds are used"
    if found.bar and any(per == "step" for _, _, per in found.rates):
        note = "a log of progress bars: times in whole seconds only (verbose=2 gives finer ones)"
    return float(found.seconds), 1.0, note


def lines(text):
    """(visible text, whether it ended with a line break) of each line of no rank and of the lowest with epochs."""
    found = []
    *ended, last = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", text).split("\n")
    for line, whole in [*((line, True) for line in ended), (last, False)]:
        rank, rest = split_rank(line)
        seen = [part.strip() for part in re.split(r"[\r\b]+", rest) if part.strip()]
        found.append((rank, seen[-1] if seen else "", whole))
    ranks = {rank for rank, line, _ in found if rank is not None and (_EPOCH.match(line) or result(line))}
    return [(line, whole) for rank, line, whole in found if rank is None or rank == min(ranks, default=rank)]


@dataclass
class Section:
    """One run, as far as its lines are read."""

    facts: headers.Facts = field(default_factory=headers.Facts)
    repeats: list[list[Epoch]] = field(default_factory=lambda: [[]])
    number: int | None = None  # of the epoch that began last
    planned: int | None = None  # epochs, as the log says
    planned_repeats: int = 1
    open: bool = False  # an epoch began and did not end
    stopped: bool = False
    last: Result | None = None
    steps: set = field(default_factory=set)
    samples: int | None = None  # TensorFlow 1 and 2.0 count samples, not steps
    notes: list[str] = field(default_factory=list)

    @property
    def epochs(self):
        return sum(len(repeat) for repeat in self.repeats)

    @property
    def truncated(self):
        early = self.planned and self.number and self.number < self.planned and not self.stopped
        return bool(self.open or early or not self.repeats[-1] or len(self.repeats) < self.planned_repeats)


def sections(visible, name):
    """The runs in the lines. Runs that only a header or a started epoch shows are kept: they failed."""
    runs = [Section()]
    for line, whole in visible:
        current = runs[-1]
        if found := headers.facts(line):
            if _begins(current, found):
                runs.append(Section())
            if not runs[-1].epochs:
                runs[-1].facts.add(found)
        elif match := _REPEAT.match(line):
            _repeat(runs, int(match[1]), int(match[2]))
        elif match := _EPOCH.match(line):
            _open(runs, int(match[1]), int(match[2]), name)
        elif match := _SIZE.match(line):
            current.samples = int(match[1]) if match[2] == "samples" else None
        elif _STOPPED.match(line):
            current.stopped = True
        elif found := result(line):
            _close(runs, found, whole)
    return [s for s in runs if s.epochs or s.open or s.facts.said.get("model")]


def _begins(section, found):
    if not (section.epochs or section.open):
        return section.facts.differs(found)
    return headers.starts(found) or (not section.truncated and any(f[0] != "learning_rate" for f in found))


def _repeat(runs, number, planned):
    if number == 1:
        if runs[-1].epochs:
            runs.append(Section())
        runs[-1].planned_repeats = planned
        return
    if not runs[-1].epochs and len(runs) > 1 and not runs[-1].facts.said.get("model"):
        runs.pop()  # lines between two repeats that looked like headers
    if runs[-1].epochs:
        runs[-1].repeats.append([])
        runs[-1].number, runs[-1].stopped = None, False
    runs[-1].planned_repeats = planned


def _open(runs, number, planned, name):
    section = runs[-1]
    if section.number is not None and number <= section.number:
        if number == section.number and number > 1:
            raise LogError(
                f"{name}: epoch {number} begins twice: several ranks print into this log, and their lines cannot be "
                "told apart. Print on rank 0 only (verbose=2 if rank == 0 else 0), or use horovodrun or srun --label."
            )
        runs.append(section := Section(samples=section.samples))
        section.notes.append("this run starts without a header: the epoch counter began again")
    elif section.planned is None and section.epochs:
        section.repeats, section.steps = [[]], set()
        section.notes.append("results before the first epoch are left out (evaluate?)")
    section.number, section.planned, section.open = number, planned, True


def _close(runs, found, whole):
    """A line of results ends the open epoch; in a run without `Epoch` lines it is an epoch."""
    section = runs[-1]
    if section.planned is not None and not section.open:
        last = section.last
        if not (found.bar and found.count == last.count and found.seconds > last.seconds == 0):
            return  # `evaluate`, or the same epoch of another rank
        section.repeats[-1].pop()  # a bar that was printed before its epoch was over
    if not whole and not (section.last and found.whole and found.same_form(section.last) and not found.bar):
        section.open = True  # cut in the middle of the line
        return
    if section.planned is None and section.last and section.last.count != found.count:
        runs.append(section := Section())
        section.notes.append("this run starts without a header: the number of steps changed")
    counts_samples = section.samples is not None or any(per == "sample" for _, _, per in found.rates)
    images = (found.count or section.samples) if counts_samples else None
    time, resolution, note = seconds(found, None if counts_samples else found.count, images)
    section.repeats[-1].append(Epoch(time, resolution, images, found.metrics))
    section.steps |= {found.count} if found.count and not counts_samples else set()
    section.last, section.open = found, False
    section.notes += [note] if note and note not in section.notes else []
