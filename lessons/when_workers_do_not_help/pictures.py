"""The figures of notebooks 22 and 23: matplotlib Figures, each with its text alternative in `figure.alt`."""

from statistics import fmean

import numpy as np

from labs.measure.breakdown import too_noisy
from labs.results import intervals
from labs.show.figure import COLOURS, MARKERS, finished, new_figure
from lessons.drawing import bars, logarithmic
from lessons.when_workers_do_not_help import steps

ONE_PROCESS = "the workers take turns in one process, and really train"
TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


def _between(span, digits=".3g"):
    return f" ({span[0]:{digits}} to {span[1]:{digits}})" if span else ""


def _points(axis, found, told, shift=1.0, capsize=4, **look):
    """Draw {x: Estimate} as points with their intervals, x moved by a factor `shift`; returns them in words.

    told: a format of a value, its interval and x
    """
    values = [estimate.value for estimate in found.values()]
    ends = np.array([estimate.interval or (estimate.value, estimate.value) for estimate in found.values()])
    axis.errorbar([x * shift for x in found], values, yerr=np.abs(ends.T - values), capsize=capsize, **look)
    return ", ".join(told.format(each.value, _between(each.interval), x) for x, each in found.items())


def _near(values):
    """The TICKS for these values on a logarithmic axis."""
    return [tick for tick in TICKS if min(values) / 2 < tick < 2 * max(values)]


def step_parts(found):
    """The parts of a step of the smallest and of the largest network, as shares of the step on both ranks in the same
    round. Whiskers: 95 % intervals.

    found: what steps.measure gave. A network of which a part came out below 0 is marked as too noisy.
    """
    figure, (axis,) = new_figure(1, width=8.0, height=2.8)
    divided, name, groups, sentences = steps.shares(found), steps.named(found), {}, []
    for filters in (min(divided), max(divided)):
        noisy = too_noisy(divided[filters])
        groups[f"{filters} filters" + f" ({steps.NOISY})" * bool(noisy)] = divided[filters]
        told = (f"{part} {share:.0%}{_between(span, '.0%')}" for part, (share, span) in divided[filters].items())
        sentences.append(f"{filters} filters on {name}: {', '.join(told)}. {'; '.join(noisy)}")
    bars(axis, groups, name, unit="% of the network's step on both ranks", scale=100)
    alt = "Parts of a step, as shares of the step on both ranks in the same round. " + " ".join(sentences)
    return finished(figure, alt.strip(), "measured")


def pays(found):
    """How many times as long a step takes on two ranks as on one, of the same round; found: what steps.measure gave."""
    figure, (axis,) = new_figure(1, width=6.6)
    axis.axhline(1, color="0.4", ls="--", lw=1, label="as fast as one rank")
    times, name = steps.times_as_long(found), steps.named(found)
    told = _points(axis, times, "{:.2f}{} at {} filters", color=COLOURS[0], marker=MARKERS[0], label=name)
    logarithmic(axis, sorted(times), _near([1.0, *(estimate.value for estimate in times.values())]))
    axis.set(xlabel="filters of the network", ylabel="step on two ranks /\nstep on one (times)")
    axis.set_title("a step with the same 32 images, on more ranks")
    axis.legend(fontsize=8)
    alt = f"A step on two ranks divided by a step on one rank, same 32 images. {name}: {told}."
    return finished(figure, alt, "measured")


def accuracy_by(found, *, xlabel, title, note=None):
    """Test accuracy over a number, on a logarithmic axis, a curve for each name, with 95 % intervals over the seeds.

    found: {name: {number: [accuracy of each seed]}}; note: what the stamp says besides, then it is "simulated".
    """
    figure, (axis,) = new_figure(1, width=6.4)
    sentences = []
    for place, (name, by) in enumerate(found.items()):
        look = {"color": COLOURS[place], "marker": MARKERS[place], "label": name, "shift": 1.03**place}
        means = {n: intervals.Estimate(fmean(seeds), intervals.shares(seeds)) for n, seeds in by.items()}
        sentences.append(f"{name}: {_points(axis, means, '{:.3f}{} at {}', **look)}.")
    logarithmic(axis, sorted({number for by in found.values() for number in by}))
    axis.set(xlabel=xlabel, ylabel="test accuracy (share of images)", title=title)
    axis.legend(fontsize=9)
    seeds = len(next(iter(by.values())))
    alt = f"{title}. Test accuracy (share of images), {seeds} seeds, with 95 % intervals. " + " ".join(sentences)
    return finished(figure, alt, "simulated" if note else "measured", note=note)


def critical(rows, fitted):
    """Steps to the target over the batch, with the fit and with steps that halve as the batch doubles.

    rows: [{batch, steps [of each seed]}]; fitted: (S_min, B_crit), or None.
    """
    figure, (axis,) = new_figure(1, width=6.4, height=3.5)
    found = {row["batch"]: intervals.mean(row["steps"]) for row in rows}
    look = {"color": COLOURS[0], "marker": "o", "ls": "", "label": "measured"}
    alt = f"Steps: {_points(axis, found, '{:.0f}{} at batch {}', **look)}."
    batches, values = list(found), [estimate.value for estimate in found.values()]
    fine = np.geomspace(batches[0], batches[-1], 100)
    axis.plot(fine, values[0] * batches[0] / fine, "--", color="0.5", label="twice the batch, half the steps")
    if fitted:
        least, size = fitted
        axis.plot(fine, least * (1 + size / fine), color=COLOURS[1], label="your fit")
        axis.axvline(size, color=COLOURS[1], ls=":", lw=1, label=f"$B_{{crit}}$ = {size:.0f} images")
        alt += f" Fit: S_min {least:.3g} steps, B_crit {size:.3g} images."
    logarithmic(axis, batches, _near(values))
    axis.set(xlabel="batch (images)", ylabel="steps to 95 % validation accuracy")
    axis.set_ylim(min(values) / 2, 2 * max(values))
    axis.legend(fontsize=8)
    return finished(figure, alt, "measured")


def noise(middles, losses, scales, b_crit):
    """The noise scale during a training run, beside its loss.

    middles: steps; losses: mean training loss there (nats); scales: [[B_simple of each seed] of each window], images;
    b_crit: the critical batch to compare with, images, or None. Windows whose mean gradient is lost in the noise have a
    scale of 0 or less, and are left out.
    """
    figure, (left, right) = new_figure(2, width=4.8)
    left.plot(middles, losses, color=COLOURS[0], marker="o", ms=4)
    left.set(xlabel="step", ylabel="training loss (cross-entropy, nats)", title="loss", ylim=(0, None))
    known = {middle: [s for s in seeds if s > 0] for middle, seeds in zip(middles, scales, strict=True)}
    found = {middle: intervals.mean(seeds) for middle, seeds in known.items() if seeds}
    look = {"color": COLOURS[1], "marker": "s", "capsize": 3, "label": "$B_{simple}$"}
    alt = f"The loss falls from {losses[0]:.3g} to {losses[-1]:.3g}. Noise scale in images: "
    alt += _points(right, found, "{:.0f}{} at step {:.0f}", **look) + "."
    if b_crit:
        right.axhline(b_crit, color="0.4", ls="--", label="$B_{crit}$ of your fit")
        alt += f" Critical batch of the fit: {b_crit:.0f}."
    logarithmic(right, y=_near([estimate.value for estimate in found.values()]))
    right.set(xlabel="step", ylabel="images", title="noise scale")
    right.legend(fontsize=9)
    return finished(figure, alt, "simulated", note=ONE_PROCESS)
