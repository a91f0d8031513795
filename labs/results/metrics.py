"""From runs to epoch time, images/second, speedup and efficiency, each with an interval.

The rules (Hoefler and Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15):

- Epoch 0 of each repeat is warm-up and is left out. Where trainings took turns (labs.jobs.turns), the round is the
  sample: one epoch of each, and ratios are taken within a round. Else the repeat is, not the epoch or the step: one
  number per repeat, the mean of its steady epochs. Intervals over them: labs.results.intervals.
- The baseline is the 1-worker run of the same study; without one, of the same SLURM job or log. Runs of different
  studies are shown beside each other.
- 95 % of the intervals hold the value where it is a ratio within rounds. A mean time is one of these minutes: on a
  machine that drifts by 10 %, its interval holds the long-run mean in a third of the studies.
- A rounded time (`45s`) is uncertain by half a rounding step either way; this widens every interval.
- Speedup is the ratio of images/second. It equals the ratio of epoch times when both runs process equally
  many images per epoch, which they don't when each drops another remainder.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from statistics import fmean

from labs.errors import UseError
from labs.printed import several
from labs.results import intervals
from labs.results.intervals import UNKNOWN, Estimate
from labs.results.run import Run

SHORTEST_EPOCH = 1e-9  # seconds: shorter times are of nothing that was measured
# Share of all cores, 0 to 1: in a round in which other programs took more, they were measured as well. Where the bound
# lies is a choice: on 2 cores this is 40 % of the core of one of 2 workers.
DISTURBED = 0.2
FEWEST_ROUNDS = 3  # that must be left for an interval
NOT_PAIRED = (
    "not paired: the runs did not take turns, so drift of the machine is in the ratio (an interval would not be a 95 % "
    "one); measure them in turns (labs study, or jobs.Turns)"
)
LEARNT = 0.01  # by so much the loss falls, at least, where something is learnt


def epoch_images(run: Run) -> tuple[int | None, str | None]:
    """(images processed in one epoch, None), or (None, why they are not known).

    As the record has counted them. Else, as of a log: with N images and a global batch of B, an epoch of ceil(N / B)
    steps processes all N (the last batch is smaller), one of floor(N / B) steps drops the remainder and processes
    floor(N / B) * B.
    """
    counted = {epoch.images for epoch in run.epochs}
    if len(counted) == 1 and None not in counted:
        return counted.pop(), None
    images, steps, batch = run.dataset_images, run.steps, run.global_batch
    if images is None:
        return None, "the images in the data set are not known (give --images)"
    if not batch or not steps:
        return None, "global batch or steps are not known: images/second would be a guess (give --global_batch)"
    if steps == math.ceil(images / batch):
        return images, None
    if steps == images // batch:
        return steps * batch, None
    why = f"{steps} steps of {batch} are not one pass over {images} images, so images/second is not known"
    local = run.configuration.local_batch
    if local and local < batch and steps == math.ceil(images / local):
        why += "; they are one pass of every worker over all images: is the data sharded?"
    return None, why


def sample(run: Run) -> tuple[list[float], float]:
    """(seconds of the steady epochs, one for each round or else the mean of each repeat; width of their rounding)."""
    epochs = [epoch for repeat in run.steady for epoch in repeat]
    times = list(run.rounds.values()) or [fmean(epoch.seconds for epoch in repeat) for repeat in run.steady]
    return times, fmean(epoch.resolution for epoch in epochs) if epochs else 0.0


def _times(run):
    """(seconds as of `sample`, width of their rounding, notes); no seconds where one is rounded to 0."""
    times, resolution = sample(run)
    notes = []
    if short := len(run.repeats) - len(run.steady):
        notes.append(f"{several(short, 'repeat')} with a single epoch, which is warm-up: no time is left")
    if any(time < SHORTEST_EPOCH for time in times):
        return [], 0.0, [*notes, "epochs rounded to 0 s: too short for a log in whole seconds"]
    return times, resolution, notes


def epoch_seconds(run: Run) -> Estimate:
    """Seconds per steady epoch: mean over rounds, else over repeats (`sample`), with interval. The value is None
    without a steady epoch."""
    times, resolution, notes = _times(run)
    if not times:
        return Estimate(None, None, tuple(notes) or ("no finished epoch",))
    estimate = intervals.mean(times, resolution)
    return replace(estimate, notes=(*notes, *estimate.notes))


def throughput(run: Run) -> Estimate:
    """Images/second of all workers together: images really processed in an epoch / epoch seconds."""
    (images, why), seconds = epoch_images(run), epoch_seconds(run)
    if images is None or seconds.value is None:
        return Estimate(None, None, (why,) if why else seconds.notes)
    shortest, longest = seconds.interval or (1.0, 1.0)
    interval = seconds.interval and (images / longest, images / shortest if shortest else math.inf)
    low, high = seconds.rounding
    return Estimate(images / seconds.value, interval, seconds.notes, rounding=(1 / high, 1 / low if low else math.inf))


def why_not_divided(run: Run, baseline: Run) -> str | None:
    """Why dividing run by baseline would not be scaling, as a reason; None if they may be divided."""
    if run.study != baseline.study:
        return "measured in another study"
    job, other = (one.job_id or (one.source, one.folder) for one in (run, baseline))  # or the file, without a job
    if not run.study and job != other:
        return "in another file, and no study or job says that they belong together"
    if run.kind != baseline.kind:
        return f"it is {baseline.kind}, not {run.kind}"
    if not (run.model and run.configuration.comparable(baseline.configuration)):
        return "trained differently, or not known how: model, strategy, data or precision"
    if run.hardware != baseline.hardware:
        return "on other hardware"
    return None if _times(baseline)[0] else "without a steady epoch"


def kind_of_scaling(run: Run, baseline: Run) -> str | None:
    """What stays: "weak" the batch per worker, "strong" the global batch, "other" neither; None if unknown."""
    ours, batch = run.configuration, baseline.global_batch
    local = ours.local_batch or (ours.global_batch and ours.workers and ours.global_batch / ours.workers)
    if not (local and batch):
        return None
    return "weak" if batch == local else "strong" if batch == ours.global_batch else "other"


def find_baseline(run: Run, runs: Iterable[Run]) -> Run:
    """The 1-worker run among `runs` by which `run` may be divided: of the same study, or without one of the same job or
    log (`why_not_divided`). Itself on 1 worker.

    Preferred: the run's own strategy before "single", then weak scaling before strong.
    Raises UseError with the reason when there is none, or when several have an equal claim.
    """
    if run.workers == 1:
        return run
    if run.workers is None:
        raise UseError(f"{run}: the number of workers is not known, so no speedup. Give --workers.")
    ones = [one for one in runs if one.workers == 1]
    fit = [one for one in ones if not why_not_divided(run, one)]
    fit = [one for one in fit if one.strategy == run.strategy] or fit
    for kind in ("weak", "strong", None):
        if chosen := [one for one in fit if kind_of_scaling(run, one) == kind]:
            break
    if not chosen:
        other = "its batch is neither the local nor the global one"
        reasons = {why_not_divided(run, one) or other: one.source for one in ones}
        said = "; ".join(f"{source}: {reason}" for reason, source in reasons.items())
        raise UseError(
            f"{run}: no 1-worker run to divide by ({said or 'none is in the input'}). Measure 1 and {run.workers} "
            "workers in one study (labs study), and pass both."
        )
    if len(chosen) > 1:
        raise UseError(
            f"{run}: {chosen[0]} and {chosen[1]} could both be its 1-worker run, and which of them belongs to it is "
            "not known. Pass only the one that was measured with it."
        )
    return chosen[0]


def in_turns(run: Run, baseline: Run) -> list[int]:
    """The rounds in which both were measured, one after the other; empty where they did not take turns."""
    return sorted(run.rounds.keys() & baseline.rounds.keys()) if run.study and run.study == baseline.study else []


def undisturbed_rounds(run: Run, baseline: Run) -> tuple[list[int], str | None]:
    """(the rounds of `in_turns` without those in which other programs ran, a note on these or None).

    See `undisturbed`. For a run's own times, the run is its baseline.
    """
    ours, theirs = run.others, baseline.others
    return undisturbed({n: max(ours.get(n, 0), theirs.get(n, 0)) for n in in_turns(run, baseline)})


def undisturbed(others: dict[int, float | None]) -> tuple[list[int], str | None]:
    """(the rounds that count, a note or None): without those in which other programs took more than DISTURBED.

    They are chosen by what others took of the cores, never by the times; a round of which this is not known counts as
    undisturbed. Where fewer than FEWEST_ROUNDS would be left, all count.

    others: {number of the round: share of the cores that other programs took, None if unknown}
    """
    rounds, left = list(others), [n for n, share in others.items() if (share or 0) <= DISTURBED]
    if len(left) == len(rounds):
        return rounds, None
    said = f"other programs took over {DISTURBED:.0%} of the cores in {len(rounds) - len(left)} of {len(rounds)} rounds"
    if len(left) < FEWEST_ROUNDS:
        return rounds, f"{said}: these are numbers of a busy machine; measure again when it is quiet"
    return left, f"{said}, which are left out"


def speedup(run: Run, baseline: Run | Iterable[Run]) -> Estimate:
    """images/second of `run` / images/second of its 1-worker baseline, S(p) = T(1) / T(p) for equal epochs.

    Where they took turns it is the ratio within each round, geometric mean over rounds, with its 95 % interval.
    baseline: a 1-worker Run, or a list of runs in which find_baseline looks for one
    Raises UseError when no baseline may be used, when `run` has no steady epoch, or when the images of an epoch of one
    of the two are not known (`epoch_images`).
    """
    base = find_baseline(run, [baseline] if isinstance(baseline, Run) else baseline)
    (ours, our_step, notes), (theirs, their_step, _) = _times(run), _times(base)
    if not ours:
        raise UseError(f"{run}: no speedup, since {'; '.join(notes) or 'it has no finished epoch'}.")
    if base is run:
        return Estimate(1.0, (1.0, 1.0))
    (images, why), (base_images, base_why) = epoch_images(run), epoch_images(base)
    if not (images and base_images):
        reason = why or f"of {base} {base_why}"
        raise UseError(f"{run}: no speedup, since {reason}.")
    notes = []
    rounds, busy = undisturbed_rounds(run, base)
    if rounds:
        own, of_base = run.rounds, base.rounds
        estimate = intervals.paired([of_base[n] for n in rounds], [own[n] for n in rounds], (their_step, our_step))
        notes += [busy] if busy else []
    else:
        estimate = intervals.ratio(intervals.mean(theirs, their_step), intervals.mean(ours, our_step))
        notes.append(NOT_PAIRED)
    estimate = estimate.scaled(images / base_images)
    least = (estimate.interval or estimate.rounded or (estimate.value,))[0]
    if least and run.workers and least > run.workers:
        notes.append(
            "efficiency above 1: either the workers together have more cache and memory, or this is the wrong baseline"
        )
    return replace(estimate, notes=(*notes, *estimate.notes))


def learning(run: Run, name: str) -> tuple[list[float | None], Estimate]:
    """(metric `name` after each epoch, mean over repeats; the last with its interval); not-a-number is None,
    and so is what is too large to be computed with."""
    curve, values = [], []
    for epochs in itertools.zip_longest(*run.repeats):
        values = [epoch.metrics[name] for epoch in epochs if epoch and name in epoch.metrics]
        curve.append(fmean(values) if values and all(abs(value) < 1e300 for value in values) else None)
    if not curve or curve[-1] is None:
        return curve if any(name in epoch.metrics for epoch in run.epochs) else [], UNKNOWN
    share = name.endswith("accuracy") and all(0 <= value <= 1 for value in values)
    return curve, Estimate(curve[-1], intervals.shares(values) if share else intervals.plain(values))


def _warnings(run, loss):
    """Notes on a run that learnt nothing, whose epochs hold more than training, or whose workers shared cores."""
    if None in loss:
        number = run.repeats[0][0].epoch + loss.index(None) + 1
        yield (
            f"loss is not a finite number in epoch {number}: the training diverged, and its accuracy "
            "says nothing. Is the learning rate too high, or the last batch empty on a replica (drop_remainder)?"
        )
    elif len(loss) > 1 and loss[-1] > (1 - LEARNT) * loss[0]:
        curve = f"{loss[0]:.4g}, then {loss[-1]:.4g}"
        yield f"the loss has not fallen since the first epoch ({curve}): nothing, or nothing more, is learnt"
    if any("val_loss" in epoch.metrics for epoch in run.epochs):
        yield "the epochs include validation: epoch times and images/second hold its time too"
    if run.oversubscribed:
        yield "oversubscribed: more workers than cores, which says nothing about scaling"


def measure(runs: Iterable[Run]) -> list[Run]:
    """The runs with their measures, for which baselines are looked for among them; a missing one is a note."""
    runs = list(runs)
    return [_measured(run, runs) for run in runs]


def _measured(run, runs):
    base, missing = None, []
    try:
        base = find_baseline(run, runs)
        gain = speedup(run, base)
    except UseError as error:
        gain, missing = UNKNOWN, [f"no speedup: {error}"] if run.workers != 1 else []
    rounds, busy = undisturbed_rounds(run, base or run)
    used = run.of_rounds(rounds) if rounds else run
    seconds, rate = epoch_seconds(used), throughput(used)
    (loss, final_loss), (accuracy, final_accuracy) = (learning(run, name) for name in ("loss", "accuracy"))
    notes = [*run.notes, *seconds.notes]
    if run.epochs:
        notes += [*rate.notes, *([busy] if busy and base in (run, None) else []), *_warnings(run, loss)]
        notes += [*missing, *gain.notes]
    measures = {
        "baseline": base,
        "scaling": kind_of_scaling(run, base) if base not in (run, None) else None,
        "epoch_seconds": seconds,
        "images_per_second": rate,
        "speedup": gain,
        "efficiency": gain.scaled(1 / (run.workers or 1)),
        "loss": loss,
        "final_loss": final_loss,
        "accuracy": accuracy,
        "final_accuracy": final_accuracy if None not in loss else UNKNOWN,
        "notes": list(dict.fromkeys(notes)),
    }
    return run.model_copy(update=measures)
