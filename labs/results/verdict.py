"""Is the difference real? The efficiencies of two networks compared, with an interval, as yes, no or can't tell.

Each efficiency is a ratio of times within the rounds of its study; the two samples of ratios are divided by
labs.results.intervals.product. All means are geometric, as of a speedup within rounds: the ratio is the middle of its
interval, on logarithms. Of runs that did not take turns, and of ratios that still change from round to round, nothing
can be told: under a linear drift of the machine, "yes" would be wrong in half of such studies. "no" needs evidence as
well: the whole interval must lie within the differences that do not matter (equivalence: D. Schuirmann, J.
Pharmacokinetics and Biopharmaceutics 15, 1987).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from labs.results import intervals, metrics
from labs.results.run import MetricsError, Run

YES, NO, OPEN = "yes", "no", "can't tell"
MATTERS = 0.05  # a difference of 5 % of efficiency


@dataclass(frozen=True)
class Verdict:
    """answer: YES, NO or OPEN; ratio: of the two efficiencies, with its 95 % interval (None: one repeat); matters: the
    smallest relative difference that matters; smallest: the difference that, seen in data with this spread, would have
    counted as real; reliable: the true difference that 4 of 5 such studies find; names of what was compared; notes; why
    it cannot be told although the interval would say so, or None."""

    answer: str
    ratio: float
    interval: tuple[float, float] | None
    matters: float
    smallest: float | None
    reliable: float | None
    names: tuple[str, str] = ("first", "second")
    notes: tuple[str, ...] = ()
    why: str | None = None

    @property
    def said(self) -> str:
        """The answer as a table shows it, with the reason in brackets."""
        return f"{self.answer} ({self.why})" if self.why else self.answer

    def __str__(self):
        first, second = self.names
        notes = [f"Note: {note}." for note in self.notes]
        low, high = self.interval or (math.nan, math.nan)
        if not self.interval or self.why:
            between = f" [{low:.3f}, {high:.3f}]" if self.interval else ", without an interval"
            return " ".join([f"{self.said}: efficiency of {first} / {second} is {self.ratio:.3f}{between}.", *notes])
        said = {
            YES: f"yes: {first} has the {'higher' if self.ratio > 1 else 'lower'} efficiency",
            NO: f"no: the efficiencies differ by less than {self.matters:.0%}",
            OPEN: f"{OPEN}: the interval contains 1, and also differences above {self.matters:.0%}",
        }
        small = ", by less than what matters" if self.answer == YES and inside(low, high, self.matters) else ""
        ratio = f"Efficiency of {first} / {second}: {self.ratio:.3f} [{low:.3f}, {high:.3f}]."
        return " ".join([f"{said[self.answer]}{small}.", ratio, self._power(), *notes])

    def _power(self):
        if self.smallest is None or self.reliable is None or self.reliable > 1:
            return "The spread is so large that not even a factor of 2 would be found in 4 of 5 such studies."
        return (
            f"With this spread, {self.smallest:.1%} would have counted as real; a true difference of "
            f"{self.reliable:.1%} is found in 4 of 5 such studies."
        )


def inside(low: float, high: float, matters: float) -> bool:
    """Whether all of the interval is within a relative difference of `matters`, up or down."""
    return 1 / (1 + matters) <= low and high <= 1 + matters


def decide(interval: tuple[float, float] | None, matters: float = MATTERS) -> str:
    """YES: the interval leaves out 1. NO: it lies within `matters`. Else, or without an interval, OPEN."""
    if not interval:
        return OPEN
    low, high = interval
    return YES if low > 1 or high < 1 else NO if inside(low, high, matters) else OPEN


def power(estimate: intervals.Estimate) -> tuple[float | None, float | None]:
    """(smallest, reliable) relative differences of an Estimate with an interval over repeats, else (None, None).

    smallest: half the interval's width, rounding included; reliable: with the quantile of 80 % added to that of 97.5 %
    (J. Cohen, Statistical Power Analysis, 1988).
    """
    if estimate.error is None:
        return None, None
    low, high = estimate.rounding
    half = max(-math.log(low), math.log(high)) if low else math.inf
    sure = half
    if estimate.error:
        half += intervals.t_quantile(estimate.degrees) * estimate.error
        sure = half + intervals.t_quantile(estimate.degrees, 0.8) * estimate.error
    return math.expm1(half), math.expm1(sure)


def compare(
    runs: Iterable[Run], first: str, second: str, workers: int = 2, *, matters: float = MATTERS, floor: float = 0.0
) -> Verdict:
    """The Verdict on efficiency(first) / efficiency(second) on `workers`, from labs.results.run.Run objects.

    first, second: names of the networks. Runs of the same configuration in one study are taken together. floor: the
    relative difference up to which one configuration differed from itself; no smaller one is believed.
    Raises MetricsError: a run or its 1-worker baseline is missing, has no steady epoch, or comes from several studies.
    """
    runs, parts, said, factor, why = list(runs), [], [], 1.0, None  # parts: (sample, its rounding step, 1 or -1)
    for name, sign in ((first, 1), (second, -1)):
        chosen = [run for run in runs if run.model == name and run.workers == workers]
        if not chosen:
            have = ", ".join(sorted({f"{run.model} on {run.workers}" for run in runs})) or "none"
            raise MetricsError(f"There is no run of {name} on {workers} workers, only {have}: run it, and pass it.")
        if strangers := [run for run in chosen if not metrics.together(run, chosen[0])]:
            raise MetricsError(
                f"{name} on {workers} workers was measured in different studies ({chosen[0].source}, "
                f"{strangers[0].source}), which are not taken together. Pass the runs of one."
            )
        same = [run for run in chosen if run.configuration.same_training(chosen[0].configuration)]
        run = replace(chosen[0], repeats=[repeat for other in same for repeat in other.repeats])
        base = metrics.find_baseline(run, runs)
        images, of_base = (metrics.epoch_images(each)[0] for each in (run, base))
        if not images or not of_base:
            raise MetricsError(f"{name}: the images of an epoch are not known, so no efficiency. Pass run records.")
        factor *= (images / of_base) ** sign
        (ours, our_step), (theirs, their_step) = _times(run), _times(base)
        rounds, busy = metrics.calm(run, base)
        if rounds:
            said += [f"{name}: {busy}"] if busy else []
            ratios = [base.rounds[n] / run.rounds[n] for n in rounds]
            parts.append((ratios, _ratio_step(ratios, (theirs, their_step), (ours, our_step)), sign))
            if intervals.changing(ratios):
                why, said = why or "still changing", [*said, f"{name}: {intervals.CHANGING}"]
        else:
            why = "not in turns"
            parts.append(([fmean(theirs) / fmean(ours)], 0.0, sign))
    parts.sort(key=lambda part: -part[2])
    above, below = ([sample for sample, _, sign in parts if sign == wanted] for wanted in (1, -1))
    estimate = intervals.product(above, below, [step for _, step, _ in parts]).scaled(factor)
    ratio = factor * math.exp(sum(sign * fmean(map(math.log, sample)) for sample, _, sign in parts))
    interval, notes = estimate.interval, said
    if why == "not in turns":
        notes.append(metrics.NOT_PAIRED)
    elif interval is None:
        notes.append("one round, or times shorter than their rounding: measure 3 rounds or more")
    if not why and decide(interval, matters) == YES and abs(math.log(ratio)) <= math.log1p(floor):
        why = f"below {floor:.1%}, by which one configuration differed from itself"
    if any(run.oversubscribed for run in runs if run.workers == workers):
        notes.append("oversubscribed: more workers than cores, which says nothing about scaling")
    answer = OPEN if why else decide(interval, matters)
    return Verdict(answer, ratio, interval, matters, *power(estimate), (first, second), tuple(notes), why)


def _times(run):
    """(mean seconds of the steady epochs of each repeat, their rounding step)."""
    times, resolution = run.steady_times()
    if not times:
        raise MetricsError(f"{run}: no epoch is left after the first one, which is warm-up. Train 2 epochs or more.")
    if any(not (math.isfinite(seconds) and seconds > 0) for seconds in times):
        raise MetricsError(f"{run}: a time that is not above 0 cannot be compared.")
    return times, resolution


def _ratio_step(ratios, above, below):
    """The rounding step of ratios, of whose two times each is rounded to steps: (sample, step) above and below."""
    half_above, half_below = (step / 2 / fmean(sample) for sample, step in (above, below))
    return 2 * fmean(ratios) * ((1 + half_above) / (1 - half_below) - 1) if half_below < 1 else math.inf
