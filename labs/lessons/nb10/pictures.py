"""Pictures of notebook 10: where a step's time goes, memory against time, and a ladder of measurements."""

from labs.results import intervals, metrics
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


def ladder(steps, kind="measured"):
    """How many times as fast each change is as the training that was given, in turns with it, and the accuracy.

    steps: {name of the change: (labs.results.intervals.Estimate of the ratio, images/s, accuracy)}. Whiskers: 95 %
    intervals of the ratio, over rounds. Where there are none the runs did not take turns, which the stamp says.
    """
    figure, (speeds, right) = new_figure(2, width=5.0, height=1.2 + 0.4 * len(steps), sharey=True)
    sentences, paired = [], all(gain.interval for gain, _, _ in steps.values())
    most = max(gain.value for gain, _, _ in steps.values())
    for place, (name, (gain, rate, accuracy)) in enumerate(steps.items()):
        low, high = gain.interval or (gain.value, gain.value)
        colour, error = COLOURS[place % len(COLOURS)], [[max(0.0, gain.value - low)], [max(0.0, high - gain.value)]]
        speeds.barh(place, gain.value, xerr=error if gain.interval else None, capsize=4, color=colour)
        speeds.text(0.02 * most, place, f"{rate:,.0f} images/s", va="center", fontsize=9,
                    bbox={"color": "white", "alpha": 0.8, "pad": 1})  # fmt: skip
        right.plot(accuracy, place, MARKERS[place % len(MARKERS)], color=colour, ms=9)
        span = f" ({low:.2f} to {high:.2f})" if gain.interval else ""
        sentences.append(
            f"{name}: {gain.value:.2f} times as fast as given{span}, {rate:.3g} images/s in these minutes, accuracy "
            f"{accuracy:.3f}."
        )
    speeds.axvline(1, color="0.4", ls="--", lw=1)
    speeds.set_yticks(range(len(steps)), list(steps))
    speeds.invert_yaxis()
    speeds.set(xlabel="times as fast as given, within rounds" if paired else "times as fast as given", title="speed")
    right.set(xlabel="validation accuracy (share of images)", title="accuracy", xlim=(0, 1.02))
    stamp(figure, kind, note=None if paired else "not in turns, so without an interval")
    figure.alt = "Step by step. " + " ".join(sentences)
    return figure


def gain(run, given):
    """(how many times as many images a second `run` trains on as `given`: a labs.results.intervals.Estimate, a note or
    None). run, given: labs.results.run.Run. Within the rounds that count; no interval where they did not take turns."""
    rounds, note = metrics.calm(run, given)
    images = metrics.epoch_images(run)[0] / metrics.epoch_images(given)[0]
    if rounds:
        return intervals.paired([given.rounds[n] for n in rounds], [run.rounds[n] for n in rounds]).scaled(images), note
    ours, theirs = (metrics.epoch_seconds(each).value for each in (run, given))
    return intervals.Estimate(images * theirs / ours), metrics.NOT_PAIRED
