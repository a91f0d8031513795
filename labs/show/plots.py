"""Figures from metrics, each stamped measured, recorded or simulated.

Every function returns a matplotlib Figure with its text alternative in `figure.alt`; `show` puts both into a
notebook.
"""

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from labs.errors import UseError
from labs.printed import digits, grouped, several
from labs.results import metrics
from labs.results import steps as of_steps
from labs.results.run import Run
from labs.results.tables import BRACKETS
from labs.show.figure import COLOURS, MARKERS, finished, new_figure, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curves", "learning", "rounds", "scaling", "show", "steps"]

# quantity: (attribute of a run, axis label, unit)
QUANTITIES = {
    "epoch time": ("epoch_seconds", "seconds per epoch", "s"),
    "throughput": ("images_per_second", "images per second", "images/s"),
    "speedup": ("speedup", "speedup S(p) = T(1)/T(p)", "times"),
    "efficiency": ("efficiency", "efficiency S(p)/p", ""),
}


def _label(run):
    label = run.model or run.source
    return f"{label}, {run.strategy}" if run.strategy else label


def _styles():
    return zip(cycle(COLOURS), cycle(MARKERS), strict=False)


def _digits(value):
    return "not a number" if value is None else digits(value, 4)


def _groups(runs):
    """Runs by curve: one for each model, strategy and kind."""
    groups = grouped(((_label(run), run.kind), run) for run in runs)
    for ((label, kind), members), style in zip(groups.items(), _styles(), strict=False):
        yield f"{label} ({kind})", sorted(members, key=lambda run: run.workers or 0), style


def legend(axis, *keys):
    """The legend beside the axis, where it covers no line and no point."""
    axis.figure.set_figwidth(axis.figure.get_figwidth() + 2.6)
    axis.legend(*keys, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _with_interval(workers, estimate, unit):
    """A value in a text alternative: "1.71 times on 2 (interval 1.62 to 1.80)"."""
    low, high = estimate.interval or (0, 0)
    between = f" (interval {digits(low)} to {digits(high)})" if low < high else ""
    return f"{digits(estimate.value)} {unit} on {workers}{between}"


def scaling(runs: Iterable[Run], quantities: Sequence[str] = ("epoch time", "throughput", "speedup")) -> "Figure":
    """Speedup and other quantities over the number of workers.

    quantities: by their names in QUANTITIES; one curve per model and strategy. Bars: intervals, of times and rates in
    these minutes, of ratios 95 %; of a single run, what the rounding of its log leaves open. runs: measured together
    (labs.results.load).
    """
    runs = [run for run in runs if run.workers]
    figure, axes = new_figure(len(quantities))
    sentences = []
    ticks = sorted({run.workers for run in runs})
    for axis, quantity in zip(axes, quantities, strict=True):
        attribute, label, unit = QUANTITIES[quantity]
        ideal = {"speedup": ticks, "efficiency": [1.0] * len(ticks)}.get(quantity)
        if ideal:
            axis.plot(ticks, ideal, "--", color="0.5", label="ideal")
        for name, members, (colour, marker) in _groups(runs):
            estimates = [(run, getattr(run, attribute)) for run in members]
            points = [(run, estimate) for run, estimate in estimates if estimate.value is not None]
            if not points:
                continue
            x, y = [run.workers for run, _ in points], [estimate.value for _, estimate in points]
            bounds = [each.interval or each.rounded or (each.value, each.value) for _, each in points]
            error = [(max(0, v - low), max(0, high - v)) for v, (low, high) in zip(y, bounds, strict=True)]
            axis.errorbar(x, y, yerr=np.transpose(error), color=colour, marker=marker, capsize=4, label=name)
            if shared := [(run.workers, estimate.value) for run, estimate in points if run.oversubscribed]:
                note = "oversubscribed: workers share cores"
                axis.plot(*zip(*shared, strict=True), "o", ms=13, mfc="none", mec="0.3", label=note)
            values = ", ".join(_with_interval(run.workers, estimate, unit) for run, estimate in points)
            sentences.append(f"{quantity.capitalize()} of {name} by workers: {values}.")
        high = axis.dataLim.y1  # of values and bars; not finite without any
        top = 1.08 * high if 0 < high < np.inf else None  # so that neither a marker nor the cap of a bar is cut off
        axis.set(xlabel="workers", ylabel=label, xticks=ticks, ylim=(0, top))
        axis.set_title(quantity if ideal else f"{quantity}, in these minutes")
    unique = {}  # a curve that has no speedup, for example, stands in the other panels only
    for axis in axes[::-1]:
        unique |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    legend(axes[-1], unique.values(), unique.keys())
    sentences.append(f"Bars show intervals: {BRACKETS}; for a single run, what rounding leaves open.")
    return finished(figure, " ".join(sentences), *(run.kind for run in runs), runs=runs)


def learning(runs: Sequence[Run]) -> "Figure":
    """Loss and accuracy after each epoch, one curve per run."""
    figure, axes = new_figure(2, width=4.4)
    sentences = []
    for run, (colour, marker) in zip(runs, _styles(), strict=False):
        name = f"{_label(run)}, {several(run.workers or '?', 'worker')} ({run.kind})"
        for axis, (metric, values) in zip(axes, {"loss": run.loss, "accuracy": run.accuracy}.items(), strict=True):
            axis.plot(range(1, len(values) + 1), values, color=colour, marker=marker, label=name)
            if values:
                sentences.append(f"{metric.capitalize()} of {name}: " + ", ".join(map(_digits, values)) + ".")
    longest = max((len(run.loss) for run in runs), default=1)
    axes[0].set(title="loss", ylabel="training loss (cross-entropy, nats)", ylim=(0, None))
    axes[1].set(title="accuracy", ylabel="training accuracy (share of images)", ylim=(0, 1))
    for axis in axes:
        axis.set(xlabel="epoch", xticks=range(1, longest + 1))
    if runs:
        legend(axes[1])
    return finished(figure, " ".join(sentences), *(run.kind for run in runs), runs=runs)


def rounds(run: Run, baseline: Run) -> "Figure":
    """The epochs of two trainings that took turns, and their ratio.

    For each round, with the speedup and its interval. run, baseline: labs.results.run.Run on several workers and on 1,
    of one study. Raises UseError: they did not take turns, or may not be divided.
    """
    numbers, (counted, _) = metrics.in_turns(run, baseline), metrics.undisturbed_rounds(run, baseline)
    if not numbers:
        raise UseError("These runs did not take turns, so there are no rounds to compare: measure them together.")
    found = metrics.speedup(run, baseline)
    ratios = [baseline.rounds[n] / run.rounds[n] for n in counted]
    factor = found.value / np.exp(np.mean(np.log(ratios)))  # their epochs may hold different numbers of images
    figure, (times, gain) = new_figure(2)
    sentences = []
    for each, (colour, marker) in zip((baseline, run), _styles(), strict=False):
        name = f"{several(each.workers, 'worker')} ({each.kind})"
        seconds = [each.rounds[n] for n in numbers]
        times.plot(numbers, seconds, color=colour, marker=marker, label=name)
        sentences.append(f"Seconds of an epoch on {name} by round: {', '.join(map(_digits, seconds))}.")
    ratios = [factor * ratio for ratio in ratios]
    sentences.append(f"Speedup by round: {', '.join(map(_digits, ratios))}; geometric mean {found.value:.3g}.")
    gain.plot(counted, ratios, "D", color=COLOURS[2], label=f"each round ({run.kind})")
    if left := [n for n in numbers if n not in counted]:
        beside = [factor * baseline.rounds[n] / run.rounds[n] for n in left]
        gain.plot(left, beside, "D", color=COLOURS[2], mfc="white", label="left out: other programs ran")
        sentences.append(f"Left out, since other programs ran: {', '.join(f'round {n}' for n in left)}.")
    gain.axhline(found.value, color="0.3", label="speedup, geometric mean")
    if found.interval:
        gain.axhspan(*found.interval, color="0.85", label="its 95 % interval")
        sentences.append("Its 95 % interval reaches from {:.3g} to {:.3g}.".format(*found.interval))
    gain.axhline(run.workers, color="0.5", ls="--", label="ideal")
    times.set(title="epochs of both", ylabel="seconds per epoch")
    gain.set(title="speedup within each round", ylabel="speedup (times)")
    for axis in (times, gain):
        axis.set(xlabel="round", xticks=numbers, ylim=(0, 1.08 * axis.dataLim.y1))
    times.legend(fontsize=9, loc="lower left")
    legend(gain)
    return finished(figure, " ".join(sentences), run.kind, baseline.kind, runs=(baseline, run))


def steps(*runs: Run) -> "Figure":
    """The steps of some runs in time, and their distribution.

    The distribution is that of the steady ones.

    runs: labs.results.run.Run with the seconds of steps (of a record; logs have none). Beside each run on several
    workers stands, dashed, the slowest of so many steps of the run on 1 worker by which it may be divided: what waiting
    alone would make of these. Raises UseError: a run has no steady steps.
    """
    figure, (times, shares) = new_figure(2, width=5.0, height=3.4)
    sentences, note = [], None
    alone = [run for run in runs if run.workers == 1]
    for run, (colour, marker) in zip(runs, _styles(), strict=False):
        name = f"{run.model or run.source}, {several(run.workers, 'worker')}"
        seconds, share = of_steps.distribution(run)
        if not len(seconds):
            raise UseError(f"{run} has no steady steps: a record of 2 epochs or more keeps them, a log does not.")
        place, low, middle, high = of_steps.over_time(run)
        times.vlines(place, low, high, color=colour, lw=1)
        times.plot(place, middle, marker, color=colour, ms=3.5, ls="", label=f"{name} ({run.kind})")
        found = of_steps.quantile(seconds, share)
        _staircase(shares, seconds, share, color=colour, label=f"{name}: half within {found:.3g} s")
        first, last = run.repeats[0][0].step_seconds[:1] or [0.0], of_steps.quantile(seconds, share, 0.95)
        sentences.append(
            f"{name}: first step {first[0]:.3g} s; of {len(seconds)} steady steps half take {found:.3g} s or less, 95 "
            f"of 100 {last:.3g} s or less, the longest {seconds[-1]:.3g} s."
        )
        ones = [one for one in alone if (run.workers or 1) > 1 and not metrics.why_not_divided(run, one)]
        for one in ones[:1]:
            seconds, share = of_steps.distribution(one, run.workers)
            found = of_steps.quantile(seconds, share)
            text = f"slowest of {run.workers} steps on 1 worker: half within {found:.3g} s"
            _staircase(shares, seconds, share, color="0.4", ls="--", label=text)
            sentences.append(f"The {text}.")
            note = "the dashed curve is computed from the steps of 1 worker"
    count = "round" if all(run.rounds for run in runs) else "epoch"
    times.axvspan(0, 1, color="0.92", lw=0, label="warm-up")
    times.set(xlabel=f"{count} (0 = warm-up)", ylabel="seconds of a step (logarithmic)", title="every step")
    shares.set(xlabel="seconds of a step, or less (logarithmic)", ylabel="share of the steps", ylim=(0, 1.02))
    shares.set_title("distribution of the steady steps")
    _logarithmic(times, "y")
    _logarithmic(shares, "x")
    for axis in (times, shares):  # below the axis, where a legend covers no point
        axis.legend(fontsize=9, loc="upper left", bbox_to_anchor=(0, -0.22))
    figure.set_figheight(2.9 + 0.2 * max(len(axis.get_legend().texts) for axis in (times, shares)))
    alt = "Seconds of each step in time, and their distribution. " + " ".join(sentences)
    return finished(figure, alt, *(run.kind for run in runs), note=note, runs=runs)


def _staircase(axis, seconds, share, **look):
    """A distribution as stairs, of many steps at 400 levels only."""
    if len(seconds) > 400:
        chosen = np.unique(np.searchsorted(share, np.linspace(0, 1, 400)).clip(0, len(seconds) - 1))
        seconds, share = seconds[chosen], share[chosen]
    axis.plot(np.append(seconds[:1], seconds), np.append(0.0, share), drawstyle="steps-post", lw=1.5, **look)


def _logarithmic(axis, which):
    """Equal distances are equal ratios; ticks as numbers, not as powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    getattr(axis, f"set_{which}scale")("log")
    low, high = getattr(axis, f"get_{which}lim")()
    line = getattr(axis, f"{which}axis")
    line.set_major_locator(LogLocator(subs=(1, 2, 5)) if high / low > 5 else MaxNLocator(6, steps=(1, 2, 5)))
    line.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    line.set_minor_formatter(NullFormatter())


def curves(series: dict[str, Sequence[float]], *, x: str, y: str, title: str, start: int = 0) -> "Figure":
    """Several curves over steps or epochs.

    series: {name: measured values}; x, y: axis labels with units; start: where the first value stands on the x axis.
    """
    figure, (axis,) = new_figure(1, width=5.0)
    for (name, values), (colour, marker) in zip(series.items(), _styles(), strict=False):
        axis.plot(range(start, start + len(values)), values, color=colour, marker=marker, ms=4, label=name)
    axis.set(xlabel=x, ylabel=y, title=title)
    axis.xaxis.get_major_locator().set_params(integer=True)
    legend(axis)
    ends = (f"{name}: from {_digits(found[0])} to {_digits(found[-1])}." for name, found in series.items() if found)
    return finished(figure, f"{title}: {y} over {x}. {' '.join(ends)}", "measured")
