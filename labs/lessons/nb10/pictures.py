"""Pictures of notebook 10: where a step's time goes, memory against time, and a ladder of measurements."""

from labs.results import intervals
from labs.show.figure import COLOURS, MARKERS, new_figure, stamp


def waits(measured, kind="measured"):
    """Time of a step in waiting for the batch and in computing, for several pipelines.

    measured: {name: list of rounds (seconds of waiting, seconds of computing) of a step}. Bars: intervals, in
    these minutes.
    """
    figure, (axis,) = new_figure(1, width=8.0, height=0.8 + 0.45 * len(measured))
    sentences = []
    for place, (name, rounds) in enumerate(reversed(measured.items())):
        wait, compute = ([1e3 * each[part] for each in rounds] for part in (0, 1))
        middle, whole = sum(wait) / len(wait), [a + b for a, b in zip(wait, compute, strict=True)]
        mean = sum(whole) / len(whole)
        axis.barh(place, middle, color=COLOURS[1], label="waiting for the batch" if not place else None)
        axis.barh(place, mean - middle, left=middle, color=COLOURS[0], hatch="//", edgecolor="white",
                  label="computing" if not place else None)  # fmt: skip
        span = intervals.mean(whole).interval
        if span:
            axis.plot(span, (place, place), color="black", marker="|")
        between = f" (step {span[0]:.3g} to {span[1]:.3g})" if span else ""
        sentences.append(f"{name}: waiting {middle:.3g} ms, computing {mean - middle:.3g} ms{between}.")
    axis.set_yticks(range(len(measured)), list(reversed(measured)))
    axis.set(xlabel="time of a step (ms)", xlim=(0, None))
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    stamp(figure, kind)
    figure.alt = (
        "Time of a step by pipeline. " + " ".join(reversed(sentences)) + " Bars show intervals in these minutes."
    )
    return figure


def recompute(found, kind="measured"):
    """Peak memory against the time of a step. found: rows of labs.lessons.nb10.recompute.measure of one batch size."""
    figure, (axis,) = new_figure(1, width=6.4)
    sentences = []
    for row, colour, marker in zip(found, COLOURS * 3, MARKERS * 3, strict=False):
        name = f"blocks of {row['block']}" if row["block"] else {"none": "kept"}.get(row["mode"], row["mode"])
        axis.plot(row["seconds"], row["peak_bytes"] / 2**20, marker, color=colour, ms=9, label=name)
        sentences.append(f"{name}: {row['peak_bytes'] / 2**20:.0f} MiB, {row['seconds']:.3g} s.")
    axis.set(xlabel="seconds of a step", ylabel="peak memory of a step (MiB)", xlim=(0, None), ylim=(0, None))
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    stamp(figure, kind)
    figure.alt = f"Peak memory against time of a step, batch {found[0]['batch']}. " + " ".join(sentences)
    return figure


def ladder(steps, kind="measured"):
    """Images/s after each change, with 95 % intervals over epochs, and the accuracy beside it.

    steps: {name of the change: (images/s of each epoch, accuracy)}, the training as it was given first.
    """
    figure, (rates, right) = new_figure(2, width=5.0, height=1.2 + 0.4 * len(steps), sharey=True)
    first, sentences = None, []
    for place, (name, (values, accuracy)) in enumerate(steps.items()):
        estimate = intervals.mean(values)
        first = first or estimate.value
        low, high = estimate.interval or (estimate.value, estimate.value)
        error = [[estimate.value - low], [high - estimate.value]]
        rates.barh(place, estimate.value, xerr=error, capsize=4, color=COLOURS[place % len(COLOURS)])
        rates.text(estimate.value / 2, place, f"{estimate.value / first:.1f} times", va="center", ha="center",
                   bbox={"color": "white", "alpha": 0.8, "pad": 1})  # fmt: skip
        right.plot(accuracy, place, MARKERS[place % len(MARKERS)], color=COLOURS[place % len(COLOURS)], ms=9)
        sentences.append(
            f"{name}: {estimate.value:.3g} images/s ({low:.3g} to {high:.3g}), {estimate.value / first:.2f} times the "
            f"first, accuracy {accuracy:.3f}."
        )
    rates.set_yticks(range(len(steps)), list(steps))
    rates.invert_yaxis()
    rates.set(xlabel="images per second", title="speed")
    right.set(xlabel="validation accuracy (share of images)", title="accuracy", xlim=(0, 1.02))
    stamp(figure, kind)
    figure.alt = "Step by step. " + " ".join(sentences)
    return figure
