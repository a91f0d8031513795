"""Runs as the fit sees them: seconds of a step in each repeat, and how much single steps differ."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, isfinite
from statistics import fmean, pstdev

from labs.costs.parameter import CostError
from labs.results import metrics, tables
from labs.results.run import Run

CLASSES = {"digits": 10, "cifar10": 10}  # of a data set; others: 1000


@dataclass(frozen=True)
class Observation:
    """Steps of one configuration. seconds: mean step of each repeat, without its first epoch; resolution: rounding of
    these (s); spread: standard deviation of single steps / their mean, None where only epochs are known; fed: whether a
    host's input pipeline fed the steps; input: seconds in which it makes an image ready for a node, where that was
    measured, of each repeat."""

    model: str
    workers: int
    local_batch: float
    seconds: tuple
    resolution: float = 0.0
    spread: float | None = None
    steps: int = 1
    image_size: int | None = None
    precision: str | None = None
    hardware: str | None = None
    classes: int = 1000
    oversubscribed: bool = False
    nodes: int = 1
    fed: bool = True
    input: tuple = ()

    @property
    def node_images(self):
        """Images that a step takes from the host of a node."""
        return self.local_batch * ceil(self.workers / self.nodes)


def observations_of(paths: Iterable, **known) -> tuple[list[Observation], list[str]]:
    """(Observations, notes on what was left out) of records (.json), logs, and folders of them.

    paths: as of labs.results.load; known: what they do not say, as image_size. Raises MetricsError for what is
    not there or of no known type, CostError where nothing can be read.
    """
    found, problems = [], []
    for runs, problem in tables.read(paths):
        if problem:
            problems.append(problem)
            continue
        for run in runs:
            try:
                found.append(observe(run, **known))
            except CostError as too_little:
                problems.append(too_little)
    left_out = [f"left out: {str(problem).splitlines()[0]}" for problem in problems]
    if not found:
        raise CostError("; ".join(left_out))
    return found, left_out


def observe(run: Run, **known) -> Observation:
    """The Observation of a run. known: what the run does not say, as model, image_size. Raises CostError with what is
    missing."""
    has = run.configuration
    model, image_size = run.model or known.get("model"), has.image_size or known.get("image_size")
    workers, local_batch, steps = run.workers, has.local_batch, run.steps
    if not local_batch and has.global_batch and workers:
        local_batch = has.global_batch / workers
    if not (model and workers and local_batch and steps):
        needed = {"network": model, "number of workers": workers, "batch": local_batch, "number of steps": steps}
        unknown = next(what for what, value in needed.items() if not value)
        raise CostError(
            f"{run.source}, run {run.index}: the {unknown} is not known, so its steps say nothing. Give "
            "the run record (.json) beside the log, or leave this file out."
        )
    times, resolution = metrics.sample(run)
    seconds = tuple(time / steps for time in times)
    if not seconds or not all(isfinite(value) and value > 0 for value in seconds):
        raise CostError(
            f"{run.source}, run {run.index}: no epoch is left after the first one, which is warm-up. "
            "Train 2 epochs or more."
        )
    return Observation(
        model=model,
        workers=workers,
        local_batch=local_batch,
        seconds=seconds,
        resolution=resolution / steps,
        spread=_spread(run),
        steps=steps,
        image_size=image_size,
        precision=has.precision or known.get("precision"),
        hardware=run.hardware,
        classes=CLASSES.get(has.dataset or "", 1000),
        oversubscribed=bool(run.oversubscribed),
        nodes=has.nodes or 1,
    )


def input_seconds(breakdown: dict) -> tuple[float, ...]:
    """Seconds in which a node's host makes an image ready, in each round of a result of labs.measure.breakdown.

    There all ranks, of one node, read a batch each at the same time. Raises CostError: no batch was read.
    """
    try:
        images = breakdown["ranks"] * breakdown["local_batch"]
        found = tuple(seconds / images for seconds in breakdown["pipeline_seconds"])
    except (KeyError, TypeError, ZeroDivisionError):
        found = ()
    if not found or min(found) <= 0:
        raise CostError(
            "No reading of batches in this breakdown, so the host's seconds for an image are not known: measure all "
            "kinds of steps (labs.measure.breakdown)."
        )
    return found


def _spread(run):
    """Standard deviation of the steps of a run's steady epochs, each divided by its epoch's mean; None: no steps.
    The first step of an epoch is left out: it also starts the epoch."""
    epochs = [epoch.step_seconds[1:] for repeat in run.steady for epoch in repeat]
    shares = [step / fmean(steps) for steps in epochs if len(steps) > 1 for step in steps]
    return pstdev(shares) if len(shares) > 3 else None
