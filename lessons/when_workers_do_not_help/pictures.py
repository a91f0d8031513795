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


def step_parts(results):
    """The parts of a step of the smallest and of the largest network, as shares of the step on all ranks that was taken
    in the same round: a panel for each measurement, since two of them did not take turns. Whiskers: 95 % intervals.

    results: what steps.measure gave, for several numbers of ranks above 1. A network of which a part came out below 0
    is marked as too noisy.
    """
    figure, axes = new_figure(len(results), width=5.4, height=2.8)
    sentences = []
    for axis, found in zip(axes, results, strict=True):
        divided, name, groups = steps.shares(found), steps.named(found), {}
        for filters in (min(divided), max(divided)):
            noisy = too_noisy(divided[filters])
            groups[f"{filters} filters" + f" ({steps.NOISY})" * bool(noisy)] = divided[filters]
            told = (f"{part} {share:.0%}{_between(span, '.0%')}" for part, (share, span) in divided[filters].items())
            sentences.append(f"{filters} filters on {name}: {', '.join(told)}. {'; '.join(noisy)}")
        bars(axis, groups, name, unit=f"% of the network's step on {found['ranks']} ranks", scale=100)
    alt = "Parts of a step, as shares of the step on all the ranks in the same round. " + " ".join(sentences)
    note = "each panel took turns separately: compare only within a panel"
    return finished(figure, alt.strip(), "measured", note=note)


def pays(alone, results, expected):
    """How many times as long a step takes on several ranks as on one: measured, and as predicted before.

    alone: of steps.measure on 1 rank; results: on several; expected: {ranks: {filters: seconds}}.
    Each ratio is of steps of one measurement, which took turns; predicted ones are over the steps they are made of.
    """
    figure, (axis,) = new_figure(1, width=6.6)
    one = {filters: fmean(of[steps.WHOLE]) for filters, of in alone["seconds"].items()}
    axis.axhline(1, color="0.4", ls="--", lw=1, label="as fast as one rank")
    sentences, heights = [], [1.0]
    for found, colour, marker in zip(results, COLOURS, MARKERS, strict=False):
        ranks = found["ranks"]
        guess = {f: intervals.Estimate(seconds / one[f]) for f, seconds in expected.get(ranks, {}).items()}
        for name, times, look in (
            (f"{steps.named(found)} (measured)", steps.times_as_long(found), {}),
            (f"{ranks} ranks (predicted by the cost model)", guess, {"ls": ":", "mfc": "none"}),
        ):
            look |= {"color": colour, "marker": marker, "label": name}
            if times:
                sentences.append(f"{name}: {_points(axis, times, '{:.2f}{} at {} filters', **look)}.")
                heights += [estimate.value for estimate in times.values()]
    logarithmic(axis, sorted(one), _near(heights))
    axis.set(xlabel="filters of the network", ylabel="step on several ranks /\nstep on one (times)")
    axis.set_title("a step with the same 32 images, on more ranks")
    axis.legend(fontsize=8)
    alt = "A step on several ranks divided by a step on one rank, same 32 images. " + " ".join(sentences)
    return finished(figure, alt, "measured", "predicted")


def accuracy_by(found, *, xlabel, title, ylabel="test accuracy (share of images)", note=None, shift=1.03, unit=""):
    """Accuracy over a number, on a logarithmic axis, a curve for each name, with 95 % intervals over the seeds.

    found: {name: {number: [accuracy of each seed]}}; note: what the stamp says besides, then it is "simulated"; shift:
    from the points of a name to those of the next, a factor; unit: of the number, in words.
    """
    figure, (axis,) = new_figure(1, width=6.4)
    sentences = []
    for place, (name, by) in enumerate(found.items()):
        look = {"color": COLOURS[place], "marker": MARKERS[place], "label": name, "shift": shift**place}
        means = {n: intervals.Estimate(fmean(seeds), intervals.shares(seeds)) for n, seeds in by.items()}
        sentences.append(f"{name}: {_points(axis, means, f'{{:.3f}}{{}} at {{}}{unit}', **look)}.")
    logarithmic(axis, sorted({number for by in found.values() for number in by}))
    axis.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axis.legend(fontsize=9)
    seeds = len(next(iter(by.values())))
    alt = f"{title}. {ylabel.capitalize()}, {seeds} seeds, with 95 % intervals. " + " ".join(sentences)
    return finished(figure, alt, "simulated" if note else "measured", note=note)


def critical(rows, fitted):
    """Left: steps to the target over the batch, with the fit and with steps that halve as the batch doubles. Right: the
    best rate, and one that grows with the batch.

    rows: [{batch, rate, steps [of each seed]}]; fitted: (S_min, B_crit), or None.
    """
    figure, (left, right) = new_figure(2, width=5.2, height=3.5)
    batches, rates = ([row[key] for row in rows] for key in ("batch", "rate"))
    found = {row["batch"]: intervals.mean(row["steps"]) for row in rows}
    look = {"color": COLOURS[0], "marker": "o", "ls": "", "label": "measured"}
    sentences = [f"Steps: {_points(left, found, '{:.0f}{} at batch {}', **look)}."]
    values = [estimate.value for estimate in found.values()]
    fine = np.geomspace(batches[0], batches[-1], 100)
    left.plot(fine, values[0] * batches[0] / fine, "--", color="0.5", label="twice the batch, half the steps")
    if fitted:
        least, size = fitted
        left.plot(fine, least * (1 + size / fine), color=COLOURS[1], label="your fit")
        left.axvline(size, color=COLOURS[1], ls=":", lw=1, label=f"$B_{{crit}}$ = {size:.0f} images")
        sentences.append(f"Fit: S_min {least:.3g} steps, B_crit {size:.3g} images.")
    right.plot(batches, rates, color=COLOURS[2], marker="s", label="best rate that was tried (measured)")
    right.plot(fine, rates[0] * fine / batches[0], "--", color="0.5", label="linear rule")
    logarithmic(left, batches, _near(values))
    logarithmic(right, batches, sorted(set(rates)))
    left.set(ylabel="steps to 95 % validation accuracy", title="steps", ylim=(min(values) / 2, 2 * max(values)))
    right.set(ylabel="learning rate", title="the rate that needs the fewest steps, out of a few")
    right.set_ylim(min(rates) / 1.5, 3 * max(rates))
    for axis in (left, right):
        axis.set_xlabel("batch (images)")
        axis.legend(fontsize=8)
    sentences.append("Best rate: " + ", ".join(f"{r:g} at {b}" for b, r in zip(batches, rates, strict=True)) + ".")
    return finished(figure, " ".join(sentences), "measured")


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


def schedule(plans):
    """When each run of a search began and ended. plans: {title: [(label, begin, end)]}, seconds from the start."""
    figure, axes = new_figure(1, width=7.0, height=1.6, rows=len(plans), sharex=True)
    sentences = []
    for axis, (title, plan) in zip(axes, plans.items(), strict=True):
        for place, (label, begin, end) in enumerate(plan):
            axis.barh(place, end - begin, left=begin, color=COLOURS[place], height=0.7)
            axis.text(begin, place, f" {label}", va="center", fontsize=8)
        axis.set(yticks=[], title=title)
        axis.invert_yaxis()
        told = ", ".join(f"{label} from {begin:.1f} to {end:.1f} s" for label, begin, end in plan)
        sentences.append(f"{title}: {told}.")
    axes[-1].set(xlabel="seconds", xlim=(0, None))
    note = "one search of each kind; after the end of its bar, a run still has to close down"
    return finished(figure, " ".join(sentences), "measured", note=note)


def stopping(found):
    """Best validation accuracy over the epochs that a search spent. found: {name: [(accuracy, epochs), by seed]}."""
    by = {name: {pairs[0][1]: [accuracy for accuracy, _ in pairs]} for name, pairs in found.items()}
    labels = {"xlabel": "epochs of all runs together", "ylabel": "best validation accuracy"}
    return accuracy_by(by, **labels, title="what a search costs", shift=1.06, unit=" epochs")


def late(found):
    """Left: milliseconds of each step; right: test accuracy. found: {name: what late_workers.run gave}."""
    figure, (times, marks) = new_figure(2, width=4.8)
    sentences = []
    for (name, result), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        taken, accuracy = 1000 * np.array(result["seconds"][1:]), result["accuracy"]
        times.plot(range(1, len(taken) + 1), taken, marker, ms=2.5, ls="", color=colour)
        marks.plot([accuracy], [name], marker, color=colour, ms=9)
        sentences.append(f"{name}: half of the steps take at most {np.median(taken):.3g} ms, accuracy {accuracy:.3f}.")
    logarithmic(times, y=[tick for tick in TICKS if tick <= 200])
    times.set(xlabel="step", ylabel="milliseconds", title="every step (symbols as on the right)")
    marks.set(xlabel="test accuracy (share of images)", title="what was learned")
    marks.invert_yaxis()
    marks.margins(y=0.3)
    return finished(figure, " ".join(sentences), "measured", note="one run of each kind")
