"""Where the seconds of a training step go, measured by differences: one worker alone, all at once, exchanging, reading.

Four kinds of steps on two workers, with the same images per worker:

    alone       one worker steps, the other rests; one batch that lies in memory
    together    both step, each for itself, without exchange
    exchange    both step, and their gradients are averaged (Horovod) or summed (MirroredStrategy)
    input       the same, and each batch comes from the input pipeline
"""

import json
import secrets
from collections.abc import Sequence
from statistics import fmean, geometric_mean
from typing import Any

from labs import devices, files, jobs, models
from labs.errors import LabsError, UseError, whole
from labs.results import intervals, metrics

KINDS = ("alone", "together", "exchange", "input")
EFFICIENCY = ("alone", "exchange")  # the kinds whose ratio it is
PARTS = ("computation", "sharing the machine", "exchange and waiting", "input")  # of a step, as `parts` gives them
WORKERS = 2


class BreakdownError(LabsError):
    """The steps cannot be measured, or the measurement does not hold what is asked; the message says what to do."""


def measure(
    model: str,
    *,
    strategy: str = "horovod",
    local_batch: int = 64,
    further_batches: Sequence[int] = (),
    kinds: Sequence[str] = KINDS,
    image_size: int = 32,
    rounds: int = 4,
    steps: int = 2,
    launcher: str | None = None,
    name: str | None = None,
    show: bool = True,
) -> dict[str, Any]:
    """Time a network's steps alone, together, with exchange, and with input.

    model: one of labs.models.NAMES; image_size: pixels per side
    strategy: "horovod", or "mirrored" for MirroredStrategy, which needs no Horovod; launcher: see labs.jobs.launch
    local_batch: images per worker, of all `kinds`; further_batches: others, with alone and exchange only
    kinds: KINDS, or EFFICIENCY, which is enough for `efficiency`
    rounds: how often each kind has its turn; steps: of each turn
    name: of the job and of the result's file; show: a progress bar

    All kinds take turns in each round, in an order that is drawn (labs.jobs.turns.orders), so that a slow minute of the
    machine is in all of them, and nothing that it repeats is always in the same one.
    Returns a dict, kept as <runs>/<name>.breakdown.json: kind "measured", strategy, model, ranks, local_batch, seconds
    {local batch as text: {kind: [[seconds of a step, ...] of each round]}}, order_seed, pipeline_seconds and
    all_reduce_seconds [of each round] (a batch read alone; one message of the gradient's size), others [of each round]
    (what other programs took of the cores: labs.devices.others), gradient_bytes, image_size, classes, machine,
    versions, notes.
    Raises BreakdownError, UseError for a network, a strategy, a batch or ranks that cannot be.
    """
    models.check_size(model, image_size)
    started = {"horovod": {"ranks": WORKERS, "launcher": launcher}, "mirrored": {}}
    if strategy not in started:
        raise UseError(f"The strategy is {strategy!r}: a step is taken apart with {' or '.join(started)}.")
    sizes = [whole("the local batch", size) for size in (local_batch, *further_batches)]
    name = name or f"breakdown_{model}"
    file = (jobs.folder() / f"{name}.breakdown.json").resolve()
    options = {"file": str(file), "strategy": strategy, "model": model, "image_size": image_size}
    options |= {"local_batches": sizes, "kinds": [kind for kind in KINDS if kind in kinds]}
    options |= {"rounds": whole("rounds", rounds), "steps": whole("steps", steps)}
    options |= {"order_seed": secrets.randbelow(2**31)}  # all workers draw the same orders
    job = jobs.start("-m", "labs.measure.breakdown_program", json.dumps(options), name=name, **started[strategy])
    job.wait(show=show)
    if job.state != "finished":
        raise BreakdownError(f"The steps were not measured. {job.explain()}")
    measured = json.loads(file.read_text(encoding="utf-8"))
    if WORKERS > devices.cores() and not measured["machine"]["gpus"]:
        measured["notes"].append(f"oversubscribed: more ranks ({WORKERS}) than cores ({devices.cores()})")
    measured["notes"] += [note for note in [_undisturbed(measured)[1]] if note]
    measured["notes"] += too_noisy(parts(measured)) if set(kinds) == set(KINDS) else []
    files.write(file, json.dumps(measured, indent=1))
    return measured


def rounds(measured: dict[str, Any], local_batch: int | str | None = None) -> dict[str, list[list[float]]]:
    """{kind: [[seconds of a step, ...] of each round]} at a local batch (default: the one with all KINDS).

    Rounds in which other programs ran are left out as in a study (labs.results.metrics.undisturbed).
    """
    kinds = measured["seconds"].get(str(local_batch or measured["local_batch"]))
    if not kinds:
        raise BreakdownError(f"Batch {local_batch} was not measured: ask for {' or '.join(measured['seconds'])}.")
    numbers, _ = _undisturbed(measured)
    return {kind: [steps[n] for n in numbers] for kind, steps in kinds.items()}


def means(measured: dict[str, Any], local_batch: int | str | None = None) -> dict[str, list[float]]:
    """Mean seconds of a step: {kind: [of each round]}, see `rounds`."""
    return {kind: list(map(fmean, steps)) for kind, steps in rounds(measured, local_batch).items()}


def _undisturbed(measured):
    """(numbers of the rounds that count, a note or None), see labs.results.metrics.undisturbed."""
    count = len(measured["seconds"][str(measured["local_batch"])]["alone"])
    return metrics.undisturbed(dict(enumerate(measured.get("others") or [None] * count)))


def too_noisy(parts: dict[str, tuple]) -> list[str]:
    """A sentence, without its full stop, for each part that came out below 0; parts: {part: (value, interval)}."""
    return [
        f"too noisy to tell {part!r}: it came out below 0, as no part of a step can, so the noise is larger than it; "
        "measure again if the machine was busy"
        for part, (value, _) in parts.items()
        if value < 0
    ]


def parts(measured: dict[str, Any]) -> dict[str, tuple[float, tuple[float, float] | None]]:
    """{part: (seconds of a step, (low, high))} for PARTS: the difference of each kind of step to the one before it.

    The 95 % interval is a t interval over rounds, of differences within a round. A part comes out below 0 where it is
    smaller than the noise; `too_noisy` says so.
    """
    kinds, result = means(measured), {}
    if missing := set(KINDS) - set(kinds):
        raise BreakdownError(f"The parts need all kinds of steps: measure {', '.join(sorted(missing))}, too.")
    before = [0.0] * len(kinds["alone"])
    for kind, part in zip(KINDS, PARTS, strict=True):
        differences = [after - seconds for seconds, after in zip(before, kinds[kind], strict=True)]
        result[part], before = (fmean(differences), intervals.plain(differences)), kinds[kind]
    return result


def efficiency(measured: dict[str, Any], local_batch: int | None = None) -> tuple[float, tuple[float, float] | None]:
    """(step alone / step with exchange, (low, high)) at a local batch: the efficiency of both workers. The geometric
    mean over rounds of the ratio within a round; the 95 % t interval is one of its logarithm."""
    kinds = means(measured, local_batch)
    ratios = [alone / exchange for alone, exchange in zip(*(kinds[kind] for kind in EFFICIENCY), strict=True)]
    return geometric_mean(ratios), intervals.mean(ratios).interval
