"""From runs to epoch time, images/second, speedup and efficiency, each with an interval.

The rules (Hoefler and Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15):

- Epoch 0 of each repeat is warm-up and is left out. Where trainings took turns (labs.jobs.turns), the round is the
  sample: one epoch of each, and ratios are taken within a round. Else the repeat is, not the epoch or the step: one
  number per repeat, the mean of its steady epochs. Intervals over them: labs.results.intervals.
- Baselines are only looked for within one study. Runs of different studies are shown beside each other.
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
from typing import TypedDict

from labs.printed import finite, several
from labs.results import intervals
from labs.results.failures import Failure
from labs.results.intervals import Estimate
from labs.results.record import Configuration
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
        notes.append(f"{several(short, 'repeat')} with a single epoch, which is warm-up: no time is left")
    if any(time <= 0 for time in times):
        return [], 0.0, [*notes, "epochs rounded to 0 s: too short for a log in whole seconds"]
    return times, resolution, notes


def epoch_seconds(run: Run) -> Estimate:
    """Seconds per steady epoch: mean over repeats, with interval. The value is None without a steady epoch."""
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
        return "trained differently: model, strategy, data or precision"
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
    return origin(run) == origin(other)


def origin(run: Run) -> tuple:
    """What only runs have in common that are `together`: their study, else their job, else their file."""
    if run.study:
        return "study", run.study
    return ("job", run.job) if run.job else ("file", run.source, run.folder)


def scaling(run: Run, baseline: Run) -> str | None:
    """What stays: "weak" the batch per worker, "strong" the global batch, "other" neither; None if unknown."""
    return _scaling(run, baseline.configuration.global_batch)


def _scaling(run, global_batch):
    ours = run.configuration
    local = ours.local_batch or (ours.global_batch and ours.workers and ours.global_batch / ours.workers)
    if not (local and global_batch):
        return None
    if global_batch == local:
        return "weak"
    return "strong" if global_batch == ours.global_batch else "other"


class Baselines:
    """The 1-worker runs among many, by what decides whether another run may be divided by them (`apart`)."""

    REASONS = 100  # kinds of runs that are looked at for the reasons of an error

    def __init__(self, runs):
        self.pools, self.kinds, self._made = {}, {}, {}
        for place, run in enumerate(run for run in runs if run.workers == 1):
            steady, alike = bool(_times(run)[0]), _alike(run)
            has = run.configuration
            kinds = self.kinds.setdefault(run.study, {})
            kinds.setdefault((alike, has.strategy, run.folder, steady), (place, run, steady))
            for near in (origin(run), ("folder", run.folder)) if steady else ():
                batches = self.pools.setdefault((alike, near), {})
                batches.setdefault((has.strategy, has.global_batch), []).append((place, run))

    def of(self, run: Run) -> Run:
        """The baseline of a run; see `find_baseline`."""
        if run.workers == 1:
            return run
        if run.workers is None:
            raise MetricsError(f"{run}: the number of workers is not known, so no speedup. Give FILE:workers=N.")
        alike, named = _alike(run), run.model is not None and run.hardware is not None
        near = alike, origin(run)
        beside = alike, ("folder", run.folder) if named else None
        pools = [self.pools.get(place, {}) for place in (near, beside)]
        own = run.configuration.strategy
        batches = [batch for batch in dict.fromkeys(itertools.chain(*pools)) if batch[0] in (own, "single")]
        batches = [batch for batch in batches if batch[0] == own] or batches
        for wanted in ("weak", "strong", None):
            if chosen := [batch for batch in batches if _scaling(run, batch[1]) == wanted]:
                break
        else:
            self._refuse(run, batches and (pools[1] | pools[0])[batches[0]][0][1])
        near_ones = any(batch in pools[0] for batch in chosen)
        key, pool = (near if near_ones else beside, tuple(chosen)), pools[not near_ones]
        if key not in self._made:
            runs = sorted((one for batch in chosen for one in pool.get(batch, [])), key=lambda one: one[0])
            self._made[key] = _merged([one for _, one in runs])
        first, stranger = self._made[key]
        if stranger:
            raise MetricsError(
                f"{run}: {first.source} and {stranger.source} could both be its 1-worker run, and which of them "
                "belongs to it is not known. Pass only the one that was measured with it."
            )
        return first

    def _refuse(self, run, other_batch):
        """Raise the MetricsError that says why no run can be the baseline."""
        reasons, own = {}, self.kinds.get(run.study, {}).values()
        others = (next(iter(kinds.values())) for study, kinds in self.kinds.items() if study != run.study)
        looked_at = [*itertools.islice(own, self.REASONS), *itertools.islice(others, 1)]
        for _, one, steady in sorted(looked_at, key=lambda kind: kind[0]):
            reason = apart(run, one) or (None if steady else "without a steady epoch")
            if reason:
                reasons.setdefault(reason, one)
        if other_batch:
            reasons["its batch is neither the local nor the global one"] = other_batch
        said = "; ".join(f"{one.source}: {reason}" for reason, one in reasons.items())
        raise MetricsError(
            f"{run}: no 1-worker run to divide by ({said or 'none is in the input'}). Measure 1 and {run.workers} "
            "workers in one study (labs study), and pass both; if these are from one machine, say --same-machine."
        )


def _alike(run):
    """What runs must have in common to be divided at all, besides the strategy."""
    return run.study, run.kind, run.hardware, run.configuration.training


def _merged(runs):
    """(the first of the runs, with the repeats of all that are equal to it, a run that is not together with it)."""
    first = runs[0]
    equal = [one for one in runs if one.configuration.same_training(first.configuration)]
    equal = [one for one in equal if (one.steps, one.images) == (first.steps, first.images)]
    stranger = next((one for one in runs if not together(first, one)), None)
    return replace(first, repeats=[repeat for one in equal for repeat in one.repeats]), stranger


def find_baseline(run: Run, runs: Iterable[Run] | Baselines) -> Run:
    """The 1-worker run among `runs` by which `run` may be divided; equal ones of one study, job or file become one.

    Preferred: the run's own strategy before "single", then weak scaling before strong, then the same job.
    runs: a list, or its Baselines where they are asked for often.
    Errors: MetricsError with the reason when there is none, or when several have an equal claim.
    """
    return (runs if isinstance(runs, Baselines) else Baselines(runs)).of(run)


def in_turns(run: Run, baseline: Run) -> list[int]:
    """The rounds in which both were measured, one after the other; empty where they did not take turns."""
    return sorted(run.rounds.keys() & baseline.rounds.keys()) if run.study and run.study == baseline.study else []


OTHERS = 0.2  # share of the cores: in a round in which other programs took more, they were measured as well
LEAST = 3  # rounds that must be left for an interval


def calm(run: Run, baseline: Run) -> tuple[list[int], str | None]:
    """(the rounds of `in_turns` that count, a note or None).

    What is left out is chosen by what other programs took of the cores, never by the times; where fewer than LEAST
    rounds would be left, all count. For a run's own times, the run is its baseline.
    """
    rounds, what = in_turns(run, baseline), "the time" if run is baseline else "the speedup"
    return counted({n: max(run.others.get(n, 0), baseline.others.get(n, 0)) for n in rounds}, what)


def counted(others: dict[int, float | None], what: str) -> tuple[list[int], str | None]:
    """The same of any measurement in turns, from what other programs took of the cores in each round (None if unknown).

    what: was measured, as the note says it.
    """
    rounds, left = list(others), [n for n, share in others.items() if (share or 0) <= OTHERS]
    if len(left) == len(rounds):
        return rounds, None
    said = f"other programs took over {OTHERS:.0%} of the cores in {len(rounds) - len(left)} of {len(rounds)} rounds"
    if len(left) < LEAST:
        return rounds, f"{said}: this is {what} on a busy machine; measure again when it is quiet"
    return left, f"{said}, which are left out"


NOT_PAIRED = (
    "not paired: the runs did not take turns, so drift of the machine is in the ratio (an interval is not of 95 %); "
    "measure them in turns (labs study, or jobs.Turns)"
)


def speedup(run: Run, baseline: Run | Iterable[Run] | Baselines) -> Estimate:
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
    rounds, busy = calm(run, base)
    if rounds:
        estimate = intervals.paired([base.rounds[n] for n in rounds], [run.rounds[n] for n in rounds])
        notes += [busy] if busy else []
    else:
        estimate = intervals.product([theirs], [ours], (their_step, our_step))
        notes.append(NOT_PAIRED)
    estimate = estimate.scaled(factor)
    least = (estimate.interval or estimate.rounded or (estimate.value,))[0]
    if least and run.workers and least > run.workers:
        notes.append(
            "efficiency above 1: either the workers together have more cache and memory, or this is the wrong baseline"
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


def efficiency(run: Run, baseline: Run | Iterable[Run] | Baselines) -> Estimate:
    """Speedup / workers, with interval; errors as in `speedup`."""
    return speedup(run, baseline).scaled(1 / (run.workers or 1))


def learning(run: Run, name: str) -> tuple[list[float | None], tuple[float, float] | None]:
    """(metric `name` after each epoch, mean over repeats; interval of the last); not-a-number is None,
    and so is what is too large to be computed with."""
    curve, values = [], []
    for epochs in itertools.zip_longest(*run.repeats):
        values = [epoch.metrics[name] for epoch in epochs if epoch and name in epoch.metrics]
        curve.append(fmean(values) if values and all(abs(value) < 1e300 for value in values) else None)
    if all(value is None for value in curve) and not _has(run, name):
        return [], None
    if curve[-1] is None:
        return curve, None
    share = name.endswith("accuracy") and all(0 <= value <= 1 for value in values)
    return curve, intervals.shares(values) if share else intervals.plain(values)


def _has(run, name):
    return any(name in epoch.metrics for repeat in run.repeats for epoch in repeat)


class Row(TypedDict):
    """One run in numbers, ready for JSON: None for what is not known or not finite; times in seconds.

    The configuration (labs.results.record) and what else the file says of the run (labs.results.run); `repeats` counts
    those with a steady epoch, `rounds` those of `calm`, which times and speedup are computed from. Beside a quantity
    stand its interval [low, high], None without one, and `_rounded`, what the rounding of a log's times leaves open.
    loss and accuracy have a value for each epoch; scaling: see `scaling`.
    """

    source: str
    run: int
    kind: str
    name: str | None
    model: str | None
    strategy: str | None
    workers: int | None
    nodes: int | None
    global_batch: int | None
    local_batch: int | None
    learning_rate: float | None
    dataset: str | None
    images: int | None
    image_size: int | None
    precision: str | None
    seed: int | None
    repeats: int
    epochs_per_repeat: int | None
    steps: int | None
    hardware: str | None
    oversubscribed: bool | None
    started: str | None
    failure: Failure | None
    truncated: bool
    images_per_epoch: int | None
    rounds: int | None
    study: str | None
    epoch_seconds_resolution: float | None
    images_per_second_per_worker: float | None
    scaling: str | None
    epoch_seconds: float | None
    epoch_seconds_interval: list[float] | None
    epoch_seconds_rounded: list[float] | None
    images_per_second: float | None
    images_per_second_interval: list[float] | None
    images_per_second_rounded: list[float] | None
    speedup: float | None
    speedup_interval: list[float] | None
    speedup_rounded: list[float] | None
    efficiency: float | None
    efficiency_interval: list[float] | None
    efficiency_rounded: list[float] | None
    loss: list[float | None]
    final_loss: float | None
    final_loss_interval: list[float] | None
    final_loss_rounded: list[float] | None
    accuracy: list[float | None]
    final_accuracy: float | None
    final_accuracy_interval: list[float] | None
    final_accuracy_rounded: list[float] | None
    notes: list[str]


def summarise(runs: Iterable[Run]) -> list[Row]:
    """The Row of each run.

    Baselines are looked for among `runs`; a missing one gives None for speedup and efficiency, and a note says why.
    """
    runs = list(runs)
    baselines = Baselines(runs)
    return [_row(run, baselines) for run in runs]


def _only(run, rounds):
    """The run with its warm-up and these rounds."""
    return replace(run, repeats=[[e for e in repeat if e.round is None or e.round in rounds] for repeat in run.repeats])


_OWN = ("kind", "name", "steps", "images", "hardware", "oversubscribed", "started", "failure", "truncated")


def _row(run: Run, pool: Baselines) -> Row:
    base, kind = run, None
    try:
        gain = speedup(run, pool)
        base = find_baseline(run, pool)
        kind = scaling(run, base) if run.workers != 1 else None
    except MetricsError as error:
        gain = Estimate(None, None, (f"no speedup: {error}",) if run.workers != 1 else ())
    rounds, busy = calm(run, base)
    used = _only(run, rounds) if rounds else run
    seconds, rate = epoch_seconds(used), throughput(used)
    notes = [*run.notes, *seconds.notes, *rate.notes, *([busy] if busy and base is run else [])]
    row = {
        "source": run.source,
        "run": run.index,
        **{key: getattr(run.configuration, key) for key in Configuration.model_fields},
        **{key: getattr(run, key) for key in _OWN},
        "images_per_epoch": epoch_images(run)[0],
        "repeats": len(run.steady),
        "rounds": len(used.rounds) or None,
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
    return finite(row | {"notes": list(dict.fromkeys([*notes, *gain.notes]))})
