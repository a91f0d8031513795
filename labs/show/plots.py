"""Figures from metrics (never computing them), each stamped measured, recorded or simulated.

Every function returns a matplotlib Figure with its text alternative in `figure.alt`; `show` puts both into a
notebook.
"""

from itertools import cycle

import numpy as np

from labs.results import metrics
from labs.results.run import MetricsError
from labs.show.figure import COLOURS, MARKERS, new_figure, png, show, stamp

__all__ = ["curves", "learning", "memory", "png", "rounds", "scaling", "search", "show"]

# quantity: (key in a row of metrics.summarise, axis label, unit)
QUANTITIES = {
    "epoch time": ("epoch_seconds", "seconds per epoch", "s"),
    "throughput": ("images_per_second", "images per second", "images/s"),
    "speedup": ("speedup", "speedup S(p) = T(1)/T(p)", "times"),
    "efficiency": ("efficiency", "efficiency S(p)/p", ""),
}


def _label(row):
    label = row["model"] or row["source"]
    return f"{label}, {row['strategy']}" if row.get("strategy") else label


def _styles():
    return zip(cycle(COLOURS), cycle(MARKERS), strict=False)


def _digits(value):
    return "not a number" if value is None else f"{value:.4g}"


def _groups(rows):
    """Rows by curve: one for each model, strategy and kind."""
    groups = {}
    for row in rows:
        groups.setdefault((_label(row), row["kind"]), []).append(row)
    for ((label, kind), members), style in zip(groups.items(), _styles(), strict=False):
        yield f"{label} ({kind})", sorted(members, key=lambda r: r["workers"] or 0), style


def scaling(rows, quantities=("epoch time", "throughput", "speedup")):
    """Quantities of QUANTITIES over the number of workers; one curve per model and strategy. Bars: 95 % intervals or,
    of a single run, what the rounding of its log leaves open."""
    rows = [row for row in rows if row["workers"]]
    figure, axes = new_figure(len(quantities))
    sentences = []
    ticks = sorted({row["workers"] for row in rows})
    for axis, quantity in zip(axes, quantities, strict=True):
        key, label, unit = QUANTITIES[quantity]
        ideal = {"speedup": ticks, "efficiency": [1.0] * len(ticks)}.get(quantity)
        if ideal:
            axis.plot(ticks, ideal, "--", color="0.5", label="ideal")
        for name, members, (colour, marker) in _groups(rows):
            points = [row for row in members if row.get(key) is not None]
            if not points:
                continue
            x, y = [p["workers"] for p in points], [p[key] for p in points]
            bounds = [p.get(f"{key}_interval") or p.get(f"{key}_rounded") or (p[key], p[key]) for p in points]
            error = [(max(0, v - low), max(0, high - v)) for v, (low, high) in zip(y, bounds, strict=True)]
            axis.errorbar(x, y, yerr=np.transpose(error), color=colour, marker=marker, capsize=4, label=name)
            if shared := [(p["workers"], p[key]) for p in points if p.get("oversubscribed")]:
                note = "oversubscribed: workers share cores"
                axis.plot(*zip(*shared, strict=True), "o", ms=13, mfc="none", mec="0.3", label=note)
            values = ", ".join(f"{p[key]:.3g} {unit} on {p['workers']}" for p in points)
            sentences.append(f"{quantity.capitalize()} of {name} by workers: {values}.")
        axis.set(xlabel="workers", ylabel=label, xticks=ticks, title=quantity, ylim=(0, None))
    unique = {}  # a curve that has no speedup, for example, stands in the other panels only
    for axis in axes[::-1]:
        unique |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    axes[-1].legend(unique.values(), unique.keys(), fontsize=7)
    stamp(figure, *(row["kind"] for row in rows))
    figure.alt = " ".join(sentences) + " Bars show 95 % intervals; of a single run, what rounding leaves open."
    return figure


def learning(rows):
    """Loss and accuracy after each epoch, one curve per run: do they learn the same?"""
    figure, axes = new_figure(2)
    sentences = []
    for row, (colour, marker) in zip(rows, _styles(), strict=False):
        workers = f"{row['workers'] or '?'} worker{'s' if row['workers'] != 1 else ''}"
        name = f"{_label(row)}, {workers} ({row['kind']})"
        for axis, key in zip(axes, ("loss", "accuracy"), strict=True):
            values = row.get(key) or []
            axis.plot(range(1, len(values) + 1), values, color=colour, marker=marker, label=name)
            if values:
                sentences.append(f"{key.capitalize()} of {name}: " + ", ".join(map(_digits, values)) + ".")
    longest = max((len(row.get("loss") or []) for row in rows), default=1)
    axes[0].set(title="loss", ylabel="training loss (cross-entropy, nats)", ylim=(0, None))
    axes[1].set(title="accuracy", ylabel="training accuracy (share of images)", ylim=(0, 1))
    for axis in axes:
        axis.set(xlabel="epoch", xticks=range(1, longest + 1))
    if rows:
        axes[0].legend(fontsize=7)
    stamp(figure, *(row["kind"] for row in rows))
    figure.alt = " ".join(sentences)
    return figure


def rounds(run, baseline):
    """What trainings that took turns measured in each round: the epochs of both, and their ratio with the speedup.

    run, baseline: labs.results.run.Run on several workers and on 1, of one study. Raises MetricsError: they did not
    take turns, or may not be divided.
    """
    numbers = metrics.in_turns(run, baseline)
    if not numbers:
        raise MetricsError("These runs did not take turns, so there are no rounds to compare: measure them together.")
    found = metrics.speedup(run, baseline)
    ratios = [baseline.rounds[n] / run.rounds[n] for n in numbers]
    factor = found.value / np.exp(np.mean(np.log(ratios)))  # their epochs may hold different numbers of images
    figure, (times, gain) = new_figure(2)
    sentences = []
    for each, (colour, marker) in zip((baseline, run), _styles(), strict=False):
        name = f"{each.workers} worker{'s' if each.workers != 1 else ''} ({each.kind})"
        seconds = [each.rounds[n] for n in numbers]
        times.plot(numbers, seconds, color=colour, marker=marker, label=name)
        sentences.append(f"Seconds of an epoch on {name} by round: {', '.join(map(_digits, seconds))}.")
    ratios = [factor * ratio for ratio in ratios]
    gain.plot(numbers, ratios, "D", color=COLOURS[2], label=f"each round ({run.kind})")
    gain.axhline(found.value, color="0.3", label="speedup, geometric mean")
    if found.interval:
        gain.axhspan(*found.interval, color="0.85", label="its 95 % interval")
        sentences.append("Its 95 % interval reaches from {:.3g} to {:.3g}.".format(*found.interval))
    gain.axhline(run.workers, color="0.5", ls="--", label="ideal")
    times.set(title="epochs of both", ylabel="seconds per epoch", ylim=(0, None))
    gain.set(title="speedup within each round", ylabel="speedup (times)", ylim=(0, None))
    for axis in (times, gain):
        axis.set(xlabel="round", xticks=numbers)
        axis.legend(fontsize=7)
    stamp(figure, run.kind, baseline.kind)
    sentences.insert(2, f"Speedup by round: {', '.join(map(_digits, ratios))}; geometric mean {found.value:.3g}.")
    figure.alt = " ".join(sentences)
    return figure


def memory(parts_by_batch, limit=None):
    """Memory of a training step by part, stacked, for several batch sizes.

    parts_by_batch: {batch: {part: bytes}}; limit: bytes, drawn as a line.
    """
    figure, (axis,) = new_figure(1, width=6.0)
    batches = list(map(str, parts_by_batch))
    parts = list(next(iter(parts_by_batch.values())))
    bottom = np.zeros(len(batches))
    for part, colour, hatch in zip(parts, COLOURS, cycle(("", "//", "..", "xx")), strict=False):
        values = np.array([found[part] / 2**30 for found in parts_by_batch.values()])
        axis.bar(batches, values, bottom=bottom, color=colour, hatch=hatch, label=part, edgecolor="white")
        bottom += values
    if limit:
        axis.axhline(limit / 2**30, color="black", ls="--", label=f"limit: {limit / 2**30:.1f} GiB")
    axis.set(xlabel="batch size (images)", ylabel="memory (GiB)", title="memory of one training step")
    axis.legend(fontsize=8)
    stamp(figure, "simulated", note="computed from the model")
    totals = ", ".join(f"{t:.2f} GiB at batch {b}" for b, t in zip(batches, bottom, strict=True))
    figure.alt = f"Stacked bars of memory by part ({', '.join(parts)}): {totals}. Only the activations grow."
    return figure


def search(result):
    """Seconds per step of each batch size tried by labs.measure.maxbatch, and where memory ran out."""
    figure, (axis,) = new_figure(1, width=6.0)
    fits = [t for t in result["trials"] if t["fits"]]
    sizes, rates = [t["batch"] for t in fits], [t["batch"] / t["seconds"] for t in fits]
    axis.plot(sizes, rates, "-o", color=COLOURS[0], label="fits")
    for number, trial in enumerate(t for t in result["trials"] if not t["fits"]):
        axis.axvline(trial["batch"], color=COLOURS[1], ls="--", label=None if number else "out of memory")
    ticks = [t["batch"] for t in result["trials"]]
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [str(t) for t in ticks], fontsize=8)
    axis.set(xlabel="batch size (images)", ylabel="images per second (one step)", ylim=(0, None))
    axis.set_title(f"{result['model']}: doubling until memory runs out")
    axis.legend(fontsize=8)
    stamp(figure, result["kind"])
    largest = result["largest"] or "none that was tried"
    border = f"{result['fails']} runs out of memory" if result["fails"] else "memory did not run out"
    figure.alt = (
        f"Images per second over batch size for {result['model']}. Largest batch that fits: {largest}; {border}."
    )
    return figure


def curves(series, *, x, y, title, start=0):
    """Several curves over steps or epochs. series: {name: values}; x, y: axis labels with units."""
    figure, (axis,) = new_figure(1, width=6.0)
    for (name, values), (colour, marker) in zip(series.items(), _styles(), strict=False):
        axis.plot(range(start, start + len(values)), values, color=colour, marker=marker, ms=4, label=name)
    axis.set(xlabel=x, ylabel=y, title=title)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(fontsize=8)
    stamp(figure, "measured")
    figure.alt = f"{title}: {y} over {x}. " + " ".join(
        f"{name}: from {_digits(values[0])} to {_digits(values[-1])}." for name, values in series.items() if values
    )
    return figure
