"""A run as the fit sees it: seconds of a step in each repeat, and how much single steps differ."""

from dataclasses import dataclass
from math import isfinite
from statistics import fmean, pstdev

from labs.costs.parameter import ScalingError

CLASSES = {"digits": 10, "cifar10": 10}  # of a data set; others: 1000


@dataclass(frozen=True)
class Observation:
    """Steps of one configuration. seconds: mean step of each repeat, without its first epoch; resolution: rounding of
    these (s); spread: standard deviation of single steps / their mean, None where only epochs are known."""

    source: str
    model: str
    workers: int
    batch: float
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


def observe(run, **known):
    """Observation of a labs.results.run.Run. known: what the run does not say, as model, image_size.
    Raises ScalingError with what is missing."""
    has = run.configuration
    model, image_size = run.model or known.get("model"), has.image_size or known.get("image_size")
    workers, batch = run.workers, has.local_batch
    if not batch and has.global_batch and workers:
        batch = has.global_batch / workers
    needed = {
        "the network": model,
        "the number of workers": workers,
        "the batch": batch,
        "the number of steps": run.steps,
    }
    for what, value in needed.items():
        if not value:
            raise ScalingError(
                f"{run.source}, run {run.index}: {what} is not known, so its steps say nothing. Give "
                "the run record (.json) beside the log, or leave this file out."
            )
    times, resolution = run.steady_times()
    seconds = tuple(time / run.steps for time in times)
    if not seconds or not all(isfinite(value) and value > 0 for value in seconds):
        raise ScalingError(
            f"{run.source}, run {run.index}: no epoch is left after the first one, which is warm-up. "
            "Train 2 epochs or more."
        )
    return Observation(
        run.source,
        model,
        workers,
        batch,
        seconds,
        resolution / run.steps,
        _spread(run),
        run.steps,
        has.nodes,
        image_size,
        has.precision or known.get("precision"),
        run.hardware,
        CLASSES.get(has.dataset, 1000),
        run.kind,
        bool(run.oversubscribed),
    )


def _spread(run):
    """Standard deviation of the steps of a run's steady epochs, each divided by its epoch's mean; None: no steps.
    The first step of an epoch is left out: it also starts the epoch."""
    shares = []
    for epoch in (epoch for repeat in run.steady for epoch in repeat):
        steps = epoch.step_seconds[1:]
        if len(steps) > 1:
            shares += [step / fmean(steps) for step in steps]
    return pstdev(shares) if len(shares) > 3 else None
