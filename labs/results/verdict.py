"""Is the difference real? The efficiencies of two networks compared, with an interval, as yes, no or can't tell.

Each efficiency is a ratio of times within the rounds of its study; the two are divided by labs.results.intervals.ratio.
All means are geometric, as of a speedup within rounds: the ratio is the middle of its interval, on logarithms. Of runs
that did not take turns, and of ratios that still change from round to round, nothing can be told: under a linear drift
of the machine, "yes" would be wrong in half of such studies. "no" needs evidence as well: the whole interval must lie
within the differences that do not matter (equivalence: D. Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15,
1987).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from labs.errors import UseError
from labs.results import intervals, metrics
from labs.results.run import Run

YES, NO, OPEN = "yes", "no", "can't tell"
MATTERS = 0.05  # a difference of 5 % of efficiency: a choice: of 20 GPUs, one
NOT_IN_TURNS, STILL_CHANGING = "not in turns", "still changing"  # why nothing can be told


@dataclass(frozen=True)
class Verdict:
    """Whether the efficiencies differ.

    answer: YES, NO or OPEN
    ratio: of the two efficiencies
    interval: of the ratio, 95 %; None where the runs did not take turns, for one round, and for times shorter than
        their rounding
    matters: the smallest relative difference that matters
    smallest: the difference that, seen in data with this spread, would have counted as real
    reliable: the true difference that 4 of 5 such studies find
    names: of what was compared
    why: why it cannot be told although the interval would say so, or None
    """

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
        if self.smallest is None or self.reliable is None:
            return ""
        true = "not even a factor of 2 is" if self.reliable > 1 else f"a true difference of {self.reliable:.1%} is"
        least = f"With this spread, a difference of {self.smallest:.1%} would have counted as real"
        return f"{least}; {true} found in 4 of 5 such studies."


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
    smallest = half + intervals.t_quantile(estimate.degrees) * estimate.error
    return math.expm1(smallest), math.expm1(smallest + intervals.t_quantile(estimate.degrees, 0.8) * estimate.error)


def compare(runs: Iterable[Run], first: str, second: str, workers: int = 2, *, matters: float = MATTERS) -> Verdict:
    """The Verdict on efficiency(first) / efficiency(second) on `workers`, from labs.results.run.Run objects.

    first, second: names of the networks; matters: the smallest relative difference that matters.
    Raises UseError: a run or its 1-worker baseline is missing, has no steady epoch, or is there more than once.
    """
    runs, compared, gains, notes, why = list(runs), [], [], [], None
    for name in (first, second):
        chosen = [run for run in runs if run.model == name and run.workers == workers]
        if not chosen:
            have = ", ".join(sorted({f"{run.model} on {run.workers}" for run in runs})) or "none"
            raise UseError(f"There is no run of {name} on {workers} workers, only {have}: run it, and pass it.")
        if len(chosen) > 1:
            raise UseError(
                f"{name} on {workers} workers was measured more than once ({chosen[0].source}, {chosen[1].source}), "
                "and runs of different studies are not taken together. Pass the runs of one."
            )
        run, base = chosen[0], metrics.find_baseline(chosen[0], runs)
        compared.append(run)
        gains.append(metrics.speedup(run, base))
        rounds, busy = metrics.undisturbed_rounds(run, base)
        notes += [f"{name}: {busy}"] if busy else []
        if not rounds:
            why = NOT_IN_TURNS
        elif gains[-1].changing:
            why, notes = why or STILL_CHANGING, [*notes, f"{name}: {intervals.CHANGING}"]
    estimate = intervals.ratio(*gains)
    if why == NOT_IN_TURNS:
        estimate = intervals.Estimate(estimate.value)
        notes.append(metrics.NOT_PAIRED)
    elif estimate.interval is None:
        notes.append("one round, or times shorter than their rounding: measure 3 rounds or more")
    answer = OPEN if why else decide(estimate.interval, matters)
    if any(run.oversubscribed for run in compared):
        notes.append("oversubscribed: more workers than cores, which says nothing about scaling")
    names, differences = (first, second), power(estimate)
    return Verdict(answer, estimate.value, estimate.interval, matters, *differences, names, tuple(notes), why)
