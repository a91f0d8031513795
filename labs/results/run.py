"""Runs as the metrics see them: what a run record or a log says about one configuration and its repeats."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path


class MetricsError(ValueError):
    """A number was asked for that the runs do not support; the message says why and what to do."""


@dataclass
class Epoch:
    """One finished epoch: seconds, their rounding step in seconds (0 = not rounded), images processed."""

    seconds: float
    resolution: float = 0.0
    images: int | None = None
    metrics: dict = field(default_factory=dict)


@dataclass
class Run:
    """One configuration and its repeats (lists of epochs). What is not known is None, never guessed.

    `steps` are steps per epoch; `images` the images of the data set or, in the kit's own logs, of an epoch;
    `hardware` the name of what computed; `index` counts the runs of a file from 1.
    """

    source: str
    index: int = 1
    kind: str = "recorded"
    name: str | None = None
    model: str | None = None
    strategy: str | None = None
    workers: int | None = None
    nodes: int | None = None
    global_batch: int | None = None
    local_batch: int | None = None
    steps: int | None = None
    images: int | None = None
    learning_rate: float | None = None
    dataset: str | None = None
    image_size: int | None = None
    precision: str | None = None
    hardware: str | None = None
    oversubscribed: bool | None = None
    repeats: list[list[Epoch]] = field(default_factory=list)
    failure: dict | None = None
    truncated: bool = False
    notes: list[str] = field(default_factory=list)

    def __str__(self):
        workers = "?" if self.workers is None else self.workers
        return f"{self.model or 'unknown model'} on {workers} worker(s) ({self.source}, run {self.index})"


def from_record(record: dict, source: str | None = None) -> Run:
    """The run that a run record (version 1) describes.

    Errors: MetricsError for an unknown version or a field that cannot be what the record says.
    """
    where = source or record.get("name") or "run record"
    if record.get("version") != 1:
        raise MetricsError(
            f"{where}: run record of version {record.get('version')!r}, this kit reads version 1. "
            "Update the kit, or make the run again."
        )
    repeats = {}
    try:
        for epoch in sorted(record.get("epochs", []), key=lambda e: (e.get("repeat", 0), e.get("epoch", 0))):
            seconds = float(epoch["seconds"])
            if not (math.isfinite(seconds) and seconds > 0):
                raise ValueError(f"an epoch of {seconds} seconds")
            entry = Epoch(seconds, 0.0, epoch.get("images"), dict(epoch.get("metrics") or {}))
            repeats.setdefault(epoch.get("repeat", 0), []).append(entry)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MetricsError(f"{where}: broken run record ({error!r}). Make the run again.") from error
    machine = record.get("machine") or {}
    same = ("name model strategy workers nodes global_batch local_batch steps learning_rate dataset").split()
    run = Run(
        source=where,
        kind=record.get("kind", "measured"),
        **{key: record.get(key) for key in [*same, "image_size", "precision", "oversubscribed"]},
        hardware=", ".join(sorted(set(machine.get("gpus") or []))) or machine.get("cpu"),
        repeats=list(repeats.values()),
        truncated=record.get("state") != "finished",
    )
    images = {epoch.images for repeat in run.repeats for epoch in repeat}
    run.images = images.pop() if len(images) == 1 else None
    if run.truncated:
        run.notes.append(f"the record says that this run is {record.get('state') or 'not finished'}")
    return run


def load_record(path) -> Run:
    """The run that a record file (runs/<name>.json) describes; `source` is the file's name.

    Errors: MetricsError if the file cannot be read, is no JSON, or no run record of a known version.
    """
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MetricsError(f"{path}: cannot be read as a run record ({error}). Make the run again.") from None
    if not isinstance(record, dict) or "epochs" not in record:
        raise MetricsError(f"{path}: not a run record. Give the .json that a training left in the folder of its runs.")
    return from_record(record, path.name)
