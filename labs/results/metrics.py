"""From runs to epoch time, images/second, speedup and efficiency, each with a 95 % interval.

The rules (Hoefler and Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15):

- Epoch 0 of each repeat is warm-up and is left out. Where trainings took turns (labs.jobs.turns), the round is the
  sample: one epoch of each, and ratios are taken within a round. Else the repeat is, not the epoch or the step: one
  number per repeat, the mean of its steady epochs. Intervals over them: labs.results.intervals.
- Baselines are only looked for within one study. Runs of different studies are shown beside each other.
- A rounded time (`45s`) is uncertain by half a rounding step either way; this widens every interval.
- Speedup is the ratio of images/second. It equals the ratio of epoch times when both runs process equally
  many images per epoch, which they don't when each drops another remainder.
"""

import math
from dataclasses import replace
from statistics import fmean

from labs.results import intervals
from labs.results.intervals import Estimate
from labs.results.run import MetricsError, Run


def epoch_images(run: Run) -> tuple[int | None, str | None]:
    """(images processed in one epoch, None), or (None, why they are not known).

    With N images and a global batch of B, an epoch of ceil(N / B) steps processes all N (the last batch is
    smaller), one of floor(N / B) steps drops the remainder and processes floor(N / B) * B.
    """
    counted = {epoch.images for repeat in run.repeats for epoch in repeat}
    if len(counted) == 1 and None not in counted:
        return counted.pop(), None
    has, images, steps = run.configuration, run.images, run.steps
    batch = has.global_batch
    if images is None:
        return None, "images per epoch not known: give --images"
    if not batch or not steps:
        return None, "global batch or steps not known: images/second would be a guess"
    if steps == math.ceil(images / batch):
        return images, None
    if steps == images // batch:
        return steps * batch, None
    why = f"{steps} steps of {batch} are not one pass over {images} images, so images/second is not known"
    if has.local_batch and has.local_batch < batch and steps == math.ceil(images / has.local_batch):
        why += "; they are one pass of every worker over all images: is the data sharded?"
    return None, why


def _times(run: Run) -> tuple[list[float], float, list[str]]:
    """(seconds per steady epoch of each repeat, width of their rounding, notes)."""
    times, resolution = run.steady_times()
    notes = []
    if short := len(run.repeats) - len(run.steady):
        notes.append(f"{short} repeat(s) with a single epoch: that is warm-up, so no time is left")
    if any(time <= 0 for time in times):
        return [], 0.0, [*notes, "epochs rounded to 0 s: too short for a log in whole seconds"]
    return times, resolution, notes


def epoch_seconds(run: Run) -> Estimate:
    """Seconds per steady epoch: mean over repeats, with interval. The value is None if there is none."""
    times, resolution, notes = _times(run)
    if not times:
        return Estimate(None, None, tuple(notes) or ("no finished epoch",))
    estimate = intervals.mean(times, resolution)
    return replace(estimate, notes=(*notes, *estimate.notes))


def throughput(run: Run) -> Estimate:
    """Images/second of all workers together: images really processed in an epoch / epoch seconds."""
    seconds, (images, why) = epoch_seconds(run), epoch_images(run)
    if images is None or seconds.value is None:
        return Estimate(None, None, (why,) if why else seconds.notes)
    interval = seconds.interval and (images / seconds.interval[1], images / seconds.interval[0])
    low, high = seconds.rounding
    return Estimate(images / seconds.value, interval, seconds.notes, rounding=(1 / high, 1 / low if low else math.inf))


def apart(run: Run, baseline: Run) -> str | None:
    """Why dividing run by baseline would not be scaling, as a reason; None if they may be divided.

    Their configurations must be comparable, and their hardware of one kind, known where they are of different jobs.
    What was measured in turns is one study; runs of different studies, or folders, do not belong together.
    """
    if run.study != baseline.study:
        return "measured in another study"
    if run.kind != baseline.kind:
        return f"it is {baseline.kind}, not {run.kind}"
    if not run.configuration.comparable(baseline.configuration):
        return "trained otherwise: model, strategy, data or precision"
    if run.hardware != baseline.hardware:
        return "on other hardware"
    if together(run, baseline):
        return None
    if run.model is None:
        return "in another file, and neither says its model"
    if run.hardware is None:
        return "in another file, and neither says its hardware"
    if run.folder != baseline.folder:
        return "in another folder, so of another study"
    return None


def together(run: Run, other: Run) -> bool:
    """Whether two runs come from one study, one job, or one file: then equal ones are repeats of each other."""
    if run.study or other.study:
        return run.study == other.study
    if run.job or other.job:
        return run.job == other.job
    return (run.source, run.folder) == (other.source, other.folder)


def scaling(run: Run, baseline: Run) -> str | None:
    """What stays: "weak" the batch per worker, "strong" the global batch, "other" neither; None: unknown."""
    ours, theirs = run.configuration, baseline.configuration
    local = ours.local_batch or (ours.global_batch and ours.workers and ours.global_batch / ours.workers)
    if not (local and theirs.global_batch):
        return None
    if theirs.global_batch == local:
        return "weak"
    return "strong" if theirs.global_batch == ours.global_batch else "other"


def find_baseline(run: Run, runs) -> Run:
    """The 1-worker run among `runs` by which `run` may be divided; equal ones of one study, job or file become one.

    Preferred: the run's own strategy before "single", then weak scaling before strong, then the same job.
    Errors: MetricsError with the reason when there is none, or when several have an equal claim.
    """
    if run.workers == 1:
        return run
    if run.workers is None:
        raise MetricsError(f"{run}: the number of workers is not known, so no speedup. Give --workers.")
    reasons, ones = {}, []
    for other in (other for other in runs if other.workers == 1):
        if reason := apart(run, other):
            reasons.setdefault(reason, []).append(other)
        elif epoch_seconds(other).value is None:
            reasons.setdefault("without a steady epoch", []).append(other)
        else:
            ones.append(other)
    ones = [other for other in ones if other.configuration.strategy == run.configuration.strategy] or ones
    chosen = []
    for wanted in ("weak", "strong", None):
        chosen = chosen or [other for other in ones if scaling(run, other) == wanted]
    if not chosen:
        if ones:
            reasons["its batch is neither the local nor the global one"] = ones
        said = "; ".join(f"{others[0].source}: {reason}" for reason, others in reasons.items())
        raise MetricsError(
            f"{run}: no 1-worker run to divide by ({said or 'none is in the input'}). Measure 1 and {run.workers} "
            "workers in one study (labs study), and pass both."
        )
    chosen = [other for other in chosen if together(run, other)] or chosen
    first = chosen[0]
    if strangers := [other for other in chosen if not together(first, other)]:
        raise MetricsError(
            f"{run}: {first.source} and {strangers[0].source} could both be its 1-worker run, and which of them "
            "belongs to it is not known. Pass only the one that was measured with it."
        )
    equal = [
        other
        for other in chosen
        if other.configuration.same_training(first.configuration)
        and (other.steps, other.images) == (first.steps, first.images)
    ]
    return replace(first, repeats=[repeat for other in equal for repeat in other.repeats])


def in_turns(run: Run, baseline: Run) -> list[int]:
    """The rounds in which both were measured, one after the other; empty where they did not take turns."""
    return sorted(run.rounds.keys() & baseline.rounds.keys()) if run.study and run.study == baseline.study else []


NOT_PAIRED = "not paired: the runs did not take turns, so drift of the machine counts in"


def speedup(run: Run, baseline) -> Estimate:
    """images/second of `run` / images/second of its 1-worker baseline, S(p) = T(1) / T(p) for equal epochs.

    Where they took turns it is the ratio within each round, geometric mean over rounds.
    Args: `baseline` is a 1-worker Run, or a list of runs in which find_baseline looks for one.
    Errors: MetricsError when no baseline may be used, or when `run` has no steady epoch.
    """
    base = find_baseline(run, [baseline] if isinstance(baseline, Run) else baseline)
    (ours, our_step, notes), (theirs, their_step, _) = _times(run), _times(base)
    if not ours:
        raise MetricsError(f"{run}: no speedup, since {'; '.join(notes) or 'it has no finished epoch'}.")
    if base is run:
        return Estimate(1.0, (1.0, 1.0))
    factor, notes = _image_ratio(run, base)
    if run.model is None:
        notes.append("the file does not name the model; taken as the same network within this file")
    if rounds := in_turns(run, base):
        estimate = intervals.paired([base.rounds[n] for n in rounds], [run.rounds[n] for n in rounds])
    else:
        estimate = intervals.product([theirs], [ours], (their_step, our_step))
        notes.append(NOT_PAIRED)
    estimate = estimate.scaled(factor)
    least = (estimate.interval or estimate.rounded or (estimate.value,))[0]
    if least > run.workers:
        notes.append(
            "efficiency above 1: either workers have more cache and memory together, or the baseline does not belong"
        )
    return replace(estimate, notes=(*notes, *estimate.notes))


def _image_ratio(run: Run, base: Run) -> tuple[float, list[str]]:
    """(images per epoch of run / of base, notes); 1 with a note where they are not known but may be equal."""
    (ours, our_why), (theirs, their_why) = epoch_images(run), epoch_images(base)
    if ours and theirs:
        return ours / theirs, []
    for known, why in ((run, our_why), (base, their_why)):
        if why and known.images and known.steps and known.configuration.global_batch:
            raise MetricsError(f"{known}: {why}, nor is the speedup. Check --images and the batch.")
    ours, theirs = run.configuration.global_batch, base.configuration.global_batch
    if run.steps and base.steps and ours and theirs and abs(run.steps * ours - base.steps * theirs) >= ours + theirs:
        raise MetricsError(
            f"{run}: {run.steps} steps of {ours} and {base.steps} of {theirs} "
            "(1 worker) cannot be the same images, so epoch times must not be divided. Give --images."
        )
    return 1.0, ["images per epoch not known: speedup is the ratio of epoch times, as for equal epochs"]


def efficiency(run: Run, baseline) -> Estimate:
    """Speedup / workers, with interval; errors as in `speedup`."""
    return speedup(run, baseline).scaled(1 / (run.workers or 1))


def learning(run: Run, name: str) -> tuple[list[float | None], tuple[float, float] | None]:
    """(metric `name` after each epoch, mean over repeats; interval of the last); not-a-number is None."""
    curve, values = [], []
    for number in range(max((len(repeat) for repeat in run.repeats), default=0)):
        values = [repeat[number].metrics.get(name) for repeat in run.repeats if len(repeat) > number]
        values = [value for value in values if value is not None]
        curve.append(fmean(values) if values and all(map(math.isfinite, values)) else None)
    if all(value is None for value in curve) and not _has(run, name):
        return [], None
    return curve, intervals.plain(values) if curve[-1] is not None else None


def _has(run, name):
    return any(name in epoch.metrics for repeat in run.repeats for epoch in repeat)


def summarise(runs) -> list[dict]:
    """One dict per run, ready for JSON (unknown = None, no NaN): keys say the quantity, times in seconds.

    Baselines are looked for among `runs`; a missing one gives None for speedup and efficiency, and a note says why.
    """
    runs = list(runs)
    return [_row(run, runs) for run in runs]


_OWN = ("kind", "name", "steps", "images", "hardware", "oversubscribed", "failure", "truncated")


def _row(run: Run, pool: list[Run]) -> dict:
    seconds, rate, kind = epoch_seconds(run), throughput(run), None
    notes = [*run.notes, *seconds.notes, *rate.notes]
    try:
        gain = speedup(run, pool)
        kind = scaling(run, find_baseline(run, pool)) if run.workers != 1 else None
    except MetricsError as error:
        gain = Estimate(None, None, (f"no speedup: {error}",) if run.workers != 1 else ())
    row = {
        "source": run.source,
        "run": run.index,
        **run.configuration.model_dump(),
        **{key: getattr(run, key) for key in _OWN},
        "images_per_epoch": epoch_images(run)[0],
        "repeats": len(run.steady),
        "rounds": len(run.rounds) or None,
        "study": run.study,
        "epoch_seconds_resolution": _times(run)[1] if seconds.value is not None else None,
        "images_per_second_per_worker": rate.value / run.workers if rate.value and run.workers else None,
        "scaling": kind,
    }
    share = gain.scaled(1 / (run.workers or 1))
    found = {"epoch_seconds": seconds, "images_per_second": rate, "speedup": gain, "efficiency": share}
    for key in ("loss", "accuracy"):
        row[key], interval = learning(run, key)
        found[f"final_{key}"] = Estimate(row[key][-1] if row[key] else None, interval)
    for key, estimate in found.items():
        row[key], row[f"{key}_interval"] = estimate.value, estimate.interval and list(estimate.interval)
        row[f"{key}_rounded"] = estimate.rounded and list(estimate.rounded)
    if None in (loss := row["loss"]):
        notes.append(f"loss is not a finite number in epoch {loss.index(None) + 1}: the training diverged")
    if _has(run, "val_loss"):
        notes.append("the epochs include validation: epoch times and images/second hold its time too")
    if run.oversubscribed:
        notes.append("oversubscribed: more workers than cores, which says nothing about scaling")
    return row | {"notes": list(dict.fromkeys([*notes, *gain.notes]))}
