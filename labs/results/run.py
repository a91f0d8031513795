"""Runs as the metrics see them: what a run record or a log says about one configuration and its repeats."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean

from labs.errors import UseError
from labs.printed import several
from labs.results import record as records
from labs.results.failures import Failure
from labs.results.record import Configuration, Record


class MetricsError(UseError):
    """A number was asked for that the runs do not support; the message says why and what to do."""


@dataclass
class Epoch:
    """One finished epoch: seconds, their rounding step in seconds (0 = not rounded), images processed.

    round: where trainings took turns, the number of the round that it belongs to; None for warm-up. others: the share
    of the cores that other programs took meanwhile.
    """

    seconds: float
    resolution: float = 0.0
    images: int | None = None
    metrics: dict = field(default_factory=dict)
    step_seconds: list = field(default_factory=list)
    round: int | None = None
    others: float | None = None


@dataclass
class Run:
    """One configuration and its repeats (lists of epochs). What is not known is None, never guessed.

    `steps` are steps per epoch, `samples` those that a log counts in their place; `images` the images of the data set
    or, in the kit's own logs, of an epoch; `hardware` the name of what computed; `index` counts the runs of a file from
    1. `study` is what runs have in common that were measured in turns; `job` SLURM's number of a job; `started` when it
    began; `folder` where the file lies. `repeats` must not change
    later: what follows from them is computed once.
    """

    source: str
    index: int = 1
    kind: str = "recorded"
    name: str | None = None
    configuration: Configuration = field(default_factory=Configuration)
    steps: int | None = None
    samples: int | None = None
    images: int | None = None
    hardware: str | None = None
    oversubscribed: bool | None = None
    study: str | None = None
    job: str | None = None
    started: str | None = None
    folder: Path | None = None
    repeats: list[list[Epoch]] = field(default_factory=list)
    failure: Failure | None = None
    truncated: bool = False
    notes: list[str] = field(default_factory=list)

    def __str__(self):
        workers = "?" if self.workers is None else self.workers
        return f"{self.model or 'unknown model'} on {several(workers, 'worker')} ({self.source}, run {self.index})"

    @property
    def model(self) -> str | None:
        return self.configuration.model

    @property
    def workers(self) -> int | None:
        return self.configuration.workers

    @cached_property
    def steady(self) -> list[list[Epoch]]:
        """The repeats without their first epoch, which is warm-up; those that had no other are left out."""
        return [repeat[1:] for repeat in self.repeats if len(repeat) > 1]

    @cached_property
    def rounds(self) -> dict[int, float]:
        """Seconds of the epoch of each round, {number: seconds}, where trainings took turns; else empty."""
        return {e.round: e.seconds for repeat in self.steady for e in repeat if e.round is not None}

    @cached_property
    def others(self) -> dict[int, float]:
        """The share of the cores that other programs took in each round, {number: share}, where it is known."""
        epochs = (e for repeat in self.steady for e in repeat)
        return {e.round: e.others for e in epochs if e.round is not None and e.others is not None}

    def steady_times(self) -> tuple[list[float], float]:
        """(the sample: seconds of an epoch, one for each round or else the mean of each repeat, width of rounding)."""
        return self._sample

    @cached_property  # thousands of runs may be divided by this one
    def _sample(self):
        steady = self.steady
        times = list(self.rounds.values()) or [fmean(epoch.seconds for epoch in repeat) for repeat in steady]
        return times, fmean(epoch.resolution for repeat in steady for epoch in repeat) if steady else 0.0

    def fill(self, values: dict, origin: str | None = None) -> None:
        """Set what is not known yet, {field: value}. With `origin`, a note names the values that are not used for it.

        A field of the configuration is meant, but for `images`: those of the data set.
        """
        for key, value in values.items():
            holder = self.configuration if key in Configuration.model_fields and key != "images" else self
            said = getattr(holder, key)
            if said is None:
                setattr(holder, key, value)
            elif origin and value is not None and value != said:
                self.notes.append(f"{key} is {said} in the file, {value} in {origin}: the file is used")


_SAME = ("kind", "name", "steps", "hardware", "oversubscribed", "study", "started")


def from_record(record: Record, source: str | None = None) -> Run:
    """The run that a record describes; `source` names it."""
    repeats = {}
    for epoch in sorted(record.epochs, key=lambda epoch: (epoch.repeat, epoch.epoch)):
        entry = Epoch(epoch.seconds, 0.0, epoch.images, epoch.metrics, epoch.step_seconds, epoch.round, epoch.others)
        repeats.setdefault(epoch.repeat, []).append(entry)
    images = {epoch.images for epoch in record.epochs}
    run = Run(
        source or record.name or "run record",
        **{key: getattr(record, key) for key in _SAME},
        job=record.job_id,
        configuration=record.configuration.model_copy(),
        images=images.pop() if len(images) == 1 else None,
        repeats=list(repeats.values()),
        truncated=record.state != "finished",
    )
    if run.truncated:
        run.notes.append(f"the record says that this run is {record.state}")
    return run


def load_record(path: str | Path) -> Run:
    """The run that a record file (runs/<name>.json) describes. Raises RecordError, as labs.results.record.load."""
    return of_file(records.load(path), path)


def of_file(record: Record, path: str | Path) -> Run:
    """The run that the record in a file describes."""
    run = from_record(record, Path(path).name)
    run.folder = Path(path).resolve().parent
    return run
