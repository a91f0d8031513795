"""The figures of notebooks 22 and 23: matplotlib Figures, each with its text alternative in `figure.alt`."""

from statistics import fmean

import numpy as np

from labs.measure.breakdown import too_noisy
from labs.results import intervals
from labs.show.figure import COLOURS, MARKERS, new_figure, stamp
from lessons.drawing import logarithmic
from lessons.when_workers_do_not_help import steps

ONE_PROCESS = "the workers take turns in one process, and really train"


def _bars(values, spans):
    """Lengths of error bars, (2, n), from intervals around values; None: no bar."""
    ends = [span or (value, value) for value, span in zip(values, spans, strict=True)]
    return np.array([(max(0.0, v - low), max(0.0, high - v)) for v, (low, high) in zip(values, ends, strict=True)]).T


def _between(span, digits=".3g"):
    return f" ({span[0]:{digits}} to {span[1]:{digits}})" if span else ""


def step_parts(results):
    """The parts of a step of the smallest and of the largest network, as shares of the step on all ranks that was taken
    in the same round: a panel for each measurement, since two of them did not take turns. Whiskers: 95 % intervals.

    results: what steps.measure gave, for several numbers of ranks above 1. A network of which a part came out below 0
    has no bars: it is too noisy.
    """
    figure, axes = new_figure(len(results), width=5.4, height=2.8)
    sentences = []
    for axis, found in zip(axes, results, strict=True):
        divided, ranks, name, names = steps.shares(found), found["ranks"], steps.named(found), []
        for filters in dict.fromkeys((min(divided), max(divided))):
            of, place = divided[filters], len(names)
            names += [f"{filters} filters, 1 rank", f"{filters} filters, {ranks} ranks"]
            if noisy := too_noisy(of):
                axis.text(0.02, place + 0.5, steps.NOISY, va="center", fontsize=9)
                sentences.append(f"{filters} filters on {name}: {'; '.join(noisy)}.")
                continue
            start, computing = (of[part][0] for part in steps.PARTS[:2])
            _stacked(axis, place, (start, ranks * computing))
            _stacked(axis, place + 1, [share for share, _ in of.values()], [span for _, span in of.values()])
            told = ", ".join(f"{part} {share:.0%}{_between(span, '.0%')}" for part, (share, span) in of.items())
            sentences.append(f"{filters} filters on {name}: {told}. One rank alone: {start + ranks * computing:.0%}.")
        axis.set_yticks(range(len(names)), names)
        axis.set(xlabel=f"share of the network's step on {ranks} ranks", title=name, ylim=(len(names) - 0.4, -0.6))
        axis.axvline(1, color="0.4", ls="--", lw=1)
    if any(axis.patches for axis in axes):
        axes[-1].legend(*_keys(), fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    stamp(figure, "measured", note="each panel took turns separately: compare only within a panel")
    figure.alt = "Parts of a step, as shares of the step on all the ranks in the same round. " + " ".join(sentences)
    return figure


LOOKS = dict(zip(steps.PARTS, zip(COLOURS, ("", "//", "..", "xx"), strict=False), strict=True))


def _stacked(axis, place, widths, spans=()):
    """Parts of a step beside each other; spans: their intervals, each drawn around the end of its part."""
    left = 0.0
    for number, (width, (colour, hatch)) in enumerate(zip(widths, LOOKS.values(), strict=False)):
        axis.barh(place, width, 0.8, left=left, color=colour, hatch=hatch, edgecolor="white")
        left += width
        if spans and spans[number]:
            bars = _bars([width], [spans[number]])
            axis.errorbar(left, place - 0.24 + 0.16 * number, xerr=bars, color="black", capsize=2, lw=1)


def _keys():
    """Handles and labels of a legend of the parts."""
    from matplotlib.patches import Patch

    return [Patch(facecolor=c, hatch=h, edgecolor="white") for c, h in LOOKS.values()], list(LOOKS)


def pays(alone, results, expected):
    """How many times as long a step takes on several ranks as on one: measured, and as predicted before.

    alone: of steps.measure on 1 rank; results: on several; expected: {ranks: {filters: seconds}}.
    Each ratio is of steps of one measurement, which took turns; predicted ones are over the steps they are made of.
    """
    figure, (axis,) = new_figure(1, width=6.6)
    one = {filters: fmean(of[f"alone {steps.GLOBAL_BATCH}"]) for filters, of in alone["seconds"].items()}
    axis.axhline(1, color="0.4", ls="--", lw=1, label="as fast as one rank")
    sentences, heights = [], [1.0]
    for found, colour, marker in zip(results, COLOURS, MARKERS, strict=False):
        ranks, times = found["ranks"], steps.times_as_long(found)
        name = f"{steps.named(found)} (measured)"
        values, spans = [e.value for e in times.values()], [e.interval for e in times.values()]
        axis.errorbar(
            list(times), values, yerr=_bars(values, spans), color=colour, marker=marker, capsize=4, label=name
        )
        told = ", ".join(f"{e.value:.2f}{_between(e.interval)} at {f} filters" for f, e in times.items())
        sentences.append(f"{name}: {told}.")
        heights += values
        if expected.get(ranks):
            guess = {filters: seconds / one[filters] for filters, seconds in expected[ranks].items()}
            label = f"{ranks} ranks (predicted by the cost model)"
            axis.plot(list(guess), list(guess.values()), ":", color=colour, marker=marker, mfc="none", label=label)
            sentences.append(f"{label}: {', '.join(f'{value:.2f} at {f} filters' for f, value in guess.items())}.")
            heights += guess.values()
    ticks = [t for t in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if min(heights) / 2 <= t <= 2 * max(heights)]
    logarithmic(axis, sorted(one), ticks)
    axis.set(xlabel="filters of the network", ylabel="step on several ranks /\nstep on one (times)")
    axis.set_title("a step with the same 32 images, on more ranks")
    axis.legend(fontsize=8)
    stamp(figure, "measured", "predicted")
    figure.alt = "A step on several ranks divided by a step on one rank, same 32 images. " + " ".join(sentences)
    return figure


def accuracy_by(found, *, xlabel, title, note=None, ticks=None):
    """Test accuracy over a number, on a logarithmic axis, a curve for each name, with 95 % intervals over the seeds.

    found: {name: {number: [accuracy of each seed]}}; note: what the stamp says besides, then it is "simulated".
    """
    figure, (axis,) = new_figure(1, width=6.4)
    sentences = []
    for place, ((name, by), colour, marker) in enumerate(zip(found.items(), COLOURS, MARKERS, strict=False)):
        values, spans = [fmean(seeds) for seeds in by.values()], [intervals.shares(seeds) for seeds in by.values()]
        shifted = [number * 1.03**place for number in by]  # bars beside each other
        axis.errorbar(shifted, values, yerr=_bars(values, spans), color=colour, marker=marker, capsize=4, label=name)
        told = ", ".join(f"{v:.3f}{_between(s)} at {n}" for n, v, s in zip(by, values, spans, strict=True))
        sentences.append(f"{name}: {told}.")
    numbers = ticks or sorted({number for by in found.values() for number in by})
    logarithmic(axis, numbers)
    axis.set(xlabel=xlabel, ylabel="test accuracy (share of images)", title=title)
    axis.legend(fontsize=9)
    stamp(figure, "simulated" if note else "measured", note=note)
    seeds = len(next(iter(next(iter(found.values())).values())))
    figure.alt = f"{title}. Test accuracy, {seeds} seeds, with 95 % intervals. " + " ".join(sentences)
    return figure


def critical(rows, fitted):
    """Left: steps to the target over the batch, with the fit and with steps that halve as the batch doubles. Right: the
    best rate, and one that grows with the batch.

    rows: [{batch, rate, steps [of each seed]}]; fitted: (S_min, B_crit), or None.
    """
    figure, (left, right) = new_figure(2, width=5.2, height=3.5)
    batches = [row["batch"] for row in rows]
    estimates = [intervals.mean(row["steps"]) for row in rows]
    values, spans = [e.value for e in estimates], [e.interval for e in estimates]
    left.errorbar(
        batches, values, yerr=_bars(values, spans), color=COLOURS[0], marker="o", ls="", capsize=4, label="measured"
    )
    fine = np.geomspace(batches[0], batches[-1], 100)
    left.plot(fine, values[0] * batches[0] / fine, "--", color="0.5", label="twice the batch, half the steps")
    told = ", ".join(f"{v:.0f}{_between(s)} at batch {b}" for b, v, s in zip(batches, values, spans, strict=True))
    sentences = [f"Steps: {told}."]
    if fitted:
        least, size = fitted
        left.plot(fine, least * (1 + size / fine), color=COLOURS[1], label="your fit")
        left.axvline(size, color=COLOURS[1], ls=":", lw=1, label=f"$B_{{crit}}$ = {size:.0f} images")
        sentences.append(f"Fit: S_min {least:.3g} steps, B_crit {size:.3g} images.")
    rates = [row["rate"] for row in rows]
    right.plot(batches, rates, color=COLOURS[2], marker="s", label="best rate that was tried (measured)")
    right.plot(fine, rates[0] * fine / batches[0], "--", color="0.5", label="linear rule")
    logarithmic(left, batches, [t for t in (10, 20, 50, 100, 200, 500, 1000) if min(values) / 2 < t < 2 * max(values)])
    logarithmic(right, batches, sorted(set(rates)))
    right.set_ylim(min(rates) / 1.5, 3 * max(rates))
    left.set_ylim(min(values) / 2, 2 * max(values))
    left.set(xlabel="batch (images)", ylabel="steps to 95 % validation accuracy", title="steps")
    right.set(
        xlabel="batch (images)", ylabel="learning rate", title="the rate that needs the fewest steps, out of a few"
    )
    for axis in (left, right):
        axis.legend(fontsize=8)
    stamp(figure, "measured")
    sentences.append("Best rate: " + ", ".join(f"{r:g} at {b}" for b, r in zip(batches, rates, strict=True)) + ".")
    figure.alt = " ".join(sentences)
    return figure


def noise(middles, losses, scales, b_crit=None):
    """The noise scale during a training run, beside its loss.

    middles: steps; losses: mean training loss there (nats); scales: [[B_simple of each seed] of each window], images;
    b_crit: the critical batch to compare with, images, or None. Windows whose mean gradient is lost in the noise have a
    scale of 0 or less, and are left out.
    """
    figure, (left, right) = new_figure(2, width=4.8)
    left.plot(middles, losses, color=COLOURS[0], marker="o", ms=4)
    left.set(xlabel="step", ylabel="training loss (cross-entropy, nats)", title="loss", ylim=(0, None))
    known = [(m, [s for s in seeds if s > 0]) for m, seeds in zip(middles, scales, strict=True)]
    known = [(m, intervals.mean(seeds)) for m, seeds in known if seeds]
    where, values, spans = [m for m, _ in known], [e.value for _, e in known], [e.interval for _, e in known]
    right.errorbar(
        where, values, yerr=_bars(values, spans), color=COLOURS[1], marker="s", capsize=3, label="$B_{simple}$"
    )
    if b_crit:
        right.axhline(b_crit, color="0.4", ls="--", label="$B_{crit}$ of your fit")
    logarithmic(
        right, y=[t for t in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if min(values) / 2 < t < 2 * max(values)]
    )
    right.set(xlabel="step", ylabel="images", title="noise scale")
    right.legend(fontsize=9)
    stamp(figure, "simulated", note=ONE_PROCESS)
    told = ", ".join(f"{e.value:.0f}{_between(e.interval)} at step {m:.0f}" for m, e in known)
    figure.alt = f"The loss falls from {losses[0]:.3g} to {losses[-1]:.3g}. Noise scale in images: {told}."
    figure.alt += f" Critical batch of the fit: {b_crit:.0f}." if b_crit else ""
    return figure


def schedule(plans):
    """When each run of a search began and ended. plans: {title: [(label, begin, end)]}, seconds from the start."""
    figure, axes = new_figure(1, width=7.0, height=1.6, rows=len(plans), sharex=True)
    sentences = []
    for axis, (title, bars) in zip(axes, plans.items(), strict=True):
        for place, (label, begin, end) in enumerate(bars):
            axis.barh(place, end - begin, left=begin, color=COLOURS[place % len(COLOURS)], height=0.7)
            axis.text(begin, place, f" {label}", va="center", fontsize=8)
        axis.set(yticks=[], title=title)
        axis.invert_yaxis()
        told = ", ".join(f"{label} from {begin:.1f} to {end:.1f} s" for label, begin, end in bars)
        sentences.append(f"{title}: {told}.")
    axes[-1].set(xlabel="seconds", xlim=(0, None))
    note = "one search of each kind; after the end of its bar, a run still has to close down"
    stamp(figure, "measured", note=note)
    figure.alt = " ".join(sentences)
    return figure


def stopping(found):
    """Best validation accuracy over the epochs that a search spent. found: {name: [(accuracy, epochs), by seed]}."""
    figure, (axis,) = new_figure(1, width=6.0)
    sentences = []
    for (name, pairs), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        accuracy, spent = [a for a, _ in pairs], pairs[0][1]
        value, span = fmean(accuracy), intervals.shares(accuracy)
        bars = _bars([value], [span])
        same = [other for other, each in found.items() if each[0][1] == spent]  # these stand beside each other
        beside = spent * 1.12 ** (same.index(name) - (len(same) - 1) / 2)
        axis.errorbar([beside], [value], yerr=bars, color=colour, marker=marker, ms=8, ls="", capsize=4, label=name)
        sentences.append(f"{name}: {value:.3f}{_between(span)} in {spent} epochs.")
    spent = sorted({pairs[0][1] for pairs in found.values()})
    logarithmic(axis, spent)
    axis.set_xlim(spent[0] / 1.6, spent[-1] * 1.6)
    axis.set(xlabel="epochs of all runs together", ylabel="best validation accuracy", title="what a search costs")
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    stamp(figure, "measured")
    figure.alt = "Best validation accuracy of a search, with 95 % intervals over seeds. " + " ".join(sentences)
    return figure


def late(found):
    """Left: milliseconds of each step; right: test accuracy. found: {name: what late_workers.run gave}."""
    figure, (times, marks) = new_figure(2, width=4.8)
    sentences = []
    for (name, result), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        taken = 1000 * np.array(result["seconds"][1:])
        times.plot(range(1, len(taken) + 1), taken, marker, ms=2.5, ls="", color=colour)
        marks.plot([result["accuracy"]], [name], marker, color=colour, ms=9)
        sentences.append(
            f"{name}: half of the steps take at most {np.median(taken):.3g} ms, accuracy {result['accuracy']:.3f}."
        )
    logarithmic(times, y=[t for t in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)])
    times.set(xlabel="step", ylabel="milliseconds", title="every step (symbols as on the right)")
    marks.set(xlabel="test accuracy (share of images)", title="what was learned")
    marks.invert_yaxis()
    marks.margins(y=0.3)
    stamp(figure, "measured", note="one run of each kind")
    figure.alt = " ".join(sentences)
    return figure
