"""Runs as the fit sees them: seconds of a step in each repeat, and how much single steps differ."""

import json
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import fmean, pstdev

from labs.costs.parameter import CostError
from labs.results import log
from labs.results.run import MetricsError, load_record

CLASSES = {"digits": 10, "cifar10": 10}  # of a data set; others: 1000


@dataclass(frozen=True)
class Observation:
    """Steps of one configuration. seconds: mean step of each repeat, without its first epoch; resolution: rounding of
    these (s); spread: standard deviation of single steps / their mean, None where only epochs are known."""

    source: str
    model: str
    workers: int
    local_batch: float
    seconds: tuple
    resolution: float = 0.0
    spread: float | None = None
    steps: int = 1
    nodes: int | None = None
    image_size: int | None = None
    precision: str | None = None
    hardware: str | None = None
    classes: int = 1000
    kind: str = "measured"
    oversubscribed: bool = False


def observations_of(paths, **known):
    """(Observations, notes on what was left out) of records (.json), logs, and folders of them.

    known: what they do not say, as image_size. A log whose record lies beside it is not read. Raises CostError where
    nothing can be read.
    """
    files = []
    for path in map(Path, paths):
        if not path.exists():
            raise CostError(f"{path}: no such file or folder. Give the folder in which your runs left records.")
        try:
            inside = sorted(path.iterdir()) if path.is_dir() else [path]
        except OSError as problem:
            raise CostError(f"{path} cannot be read: {problem.strerror}.") from None
        files += [file for file in inside if file.suffix in (".json", ".out", ".output", ".log")]
    found, skipped = [], []
    for file in files:
        try:
            if file.suffix == ".json":
                record = load_record(file)
                found.append(observe(record, json.loads(file.read_text(encoding="utf-8")), **known))
            elif not file.with_suffix(".json").exists():
                found += [observe(run, None, **known) for run in log.read(file)]
        except (MetricsError, CostError, log.LogError) as problem:
            skipped.append(f"left out: {str(problem).splitlines()[0]}")
    if not found:
        raise CostError("; ".join(skipped) or f"No records or logs in {', '.join(map(str, paths))}.")
    return found, skipped


def observe(run, record=None, **known):
    """Observation of a labs.results.run.Run. record: its run record (dict), for the single steps; known: what the run
    does not say, as model, image_size. Raises CostError with what is missing."""
    model, image_size = run.model or known.get("model"), run.image_size or known.get("image_size")
    workers, local_batch = run.workers, run.local_batch
    if not local_batch and run.global_batch and workers:
        local_batch = run.global_batch / workers
    needed = {"network": model, "number of workers": workers, "batch": local_batch, "number of steps": run.steps}
    for what, value in needed.items():
        if not value:
            raise CostError(
                f"{run.source}, run {run.index}: the {what} is not known, so its steps say nothing. Give "
                "the run record (.json) beside the log, or leave this file out."
            )
    steady = [repeat[1:] for repeat in run.repeats if len(repeat) > 1]
    seconds = tuple(fmean(epoch.seconds for epoch in repeat) / run.steps for repeat in steady)
    if not seconds or not all(isfinite(value) and value > 0 for value in seconds):
        raise CostError(
            f"{run.source}, run {run.index}: no epoch is left after the first one, which is warm-up. "
            "Train 2 epochs or more."
        )
    resolution = fmean(epoch.resolution for repeat in steady for epoch in repeat) / run.steps
    return Observation(
        source=run.source,
        model=model,
        workers=workers,
        local_batch=local_batch,
        seconds=seconds,
        resolution=resolution,
        spread=_spread(record),
        steps=run.steps,
        nodes=run.nodes,
        image_size=image_size,
        precision=run.precision or known.get("precision"),
        hardware=run.hardware,
        classes=CLASSES.get(run.dataset, 1000),
        kind=run.kind,
        oversubscribed=bool(run.oversubscribed),
    )


def _spread(record):
    """Standard deviation of the steps of a record's steady epochs, each divided by its epoch's mean; None: no steps.
    The first step of an epoch is left out: it also starts the epoch."""
    shares = []
    for epoch in (record or {}).get("epochs", []):
        steps = epoch.get("step_seconds", [])[1:]
        if epoch.get("epoch", 0) > 0 and len(steps) > 1:
            shares += [step / fmean(steps) for step in steps]
    return pstdev(shares) if len(shares) > 3 else None
