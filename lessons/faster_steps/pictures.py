"""Pictures of notebook 24: where a step's time goes, memory against time, and a ladder of measurements."""

from labs.results import intervals, metrics
from labs.show.figure import COLOURS, MARKERS, new_figure, stamp


def waits(measured, kind="measured"):
    """Time of a step in waiting for the batch and in computing, for several pipelines.

    measured: {name: list of rounds (seconds of waiting, seconds of computing) of a step}. Bars are means, and points
    the whole step in each round.
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
        axis.plot(whole, [place] * len(whole), "o", color="black", mfc="white", ms=5,
                  label="whole step, in each round" if not place else None)  # fmt: skip
        span = intervals.mean(whole).interval
        between = f" (step {span[0]:.3g} to {span[1]:.3g})" if span else ""
        sentences.append(f"{name}: waiting {middle:.3g} ms, computing {mean - middle:.3g} ms{between}.")
    axis.set_yticks(range(len(measured)), list(reversed(measured)))
    axis.set(xlabel="time of a step (ms)", xlim=(0, None))
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    stamp(figure, kind)
    figure.alt = (
        "Time of a step by pipeline. "
        + " ".join(reversed(sentences))
        + " In brackets: 95 % intervals, valid only for these minutes."
    )
    return figure


def ladder(steps, kind="measured"):
    """Speed after each change, as a multiple of the given script's speed (measured in turns with it), and the accuracy.

    steps: {name of the change: (labs.results.intervals.Estimate of the ratio, images/s, accuracy)}. Whiskers: 95 %
    intervals of the ratio, over rounds; one that would flatten the bars is cut off, with an arrow. Without intervals
    recorded runs did not take turns, and measured ones have too few rounds, which the stamp says.
    """
    figure, (speeds, right) = new_figure(2, width=5.0, height=1.3 + 0.5 * len(steps), sharey=True)
    sentences, paired = [], all(gain.interval for gain, _, _ in steps.values())
    most = 1.4 * max(gain.value for gain, _, _ in steps.values())
    for place, (name, (gain, rate, accuracy)) in enumerate(steps.items()):
        low, high = gain.interval or (gain.value, gain.value)
        colour = COLOURS[place % len(COLOURS)]
        speeds.barh(place, gain.value, color=colour, alpha=0.8)
        if gain.interval:
            speeds.plot([max(0.0, low), min(high, most)], [place, place], color="black", marker="|")
        if high > most:
            speeds.plot(0.99 * most, place, ">", color="black")
        right.plot(accuracy, place, MARKERS[place % len(MARKERS)], color=colour, ms=9)
        right.annotate(
            f"{accuracy:.3f}", (accuracy, place), (0, 8), textcoords="offset points", ha="center", fontsize=9
        )
        span = f" ({low:.2f} to {high:.2f})" if gain.interval else ""
        sentences.append(
            f"{name}: {gain.value:.2f} times as fast as given{span}, {rate:.3g} images/s in these minutes, accuracy "
            f"{accuracy:.3f}."
        )
    speeds.axvline(1, color="0.4", ls="--", lw=1)
    speeds.set_yticks(range(len(steps)), [f"{name}\n{rate:,.0f} images/s" for name, (_, rate, _) in steps.items()])
    speeds.set_ylim(len(steps) - 0.4, -0.7)
    speeds.set(xlabel="times as fast as given, within rounds" if paired else "times as fast as given", title="speed")
    speeds.set_xlim(0, most)
    accuracies = [accuracy for _, _, accuracy in steps.values()]
    ends = max(0, min(accuracies) - 0.05), min(1, max(accuracies) + 0.05)
    right.set(xlabel="validation accuracy (share of images)", title="accuracy", xlim=ends)
    why = "not in turns" if kind == "recorded" else "too few rounds"
    stamp(figure, kind, note=None if paired else f"{why}, so without an interval")
    figure.alt = "Step by step. " + " ".join(sentences)
    return figure


def gain(run, given):
    """(how many times as many images a second `run` trains on as `given`: a labs.results.intervals.Estimate, a note or
    None). run, given: labs.results.run.Run. Within the rounds that count; no interval where they did not take turns."""
    rounds, note = metrics.quiet_rounds(run, given)
    images = metrics.epoch_images(run)[0] / metrics.epoch_images(given)[0]
    if rounds:
        return intervals.paired([given.rounds[n] for n in rounds], [run.rounds[n] for n in rounds]).scaled(images), note
    ours, theirs = (metrics.epoch_seconds(each).value for each in (run, given))
    return intervals.Estimate(images * theirs / ours), metrics.NOT_PAIRED
