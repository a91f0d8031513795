"""Pictures of notebook 24: where a step's time goes, memory against time, and a ladder of measurements."""

from statistics import fmean

from labs.results import intervals, metrics
from labs.show.figure import COLOURS, MARKERS, finished, new_figure
from lessons.drawing import VALID, bars, beside, said


def waits(measured):
    """Time of a step in waiting for the batch and in computing, for several pipelines.

    measured: {name: list of rounds (seconds of waiting, seconds of computing) of a step}. Bars are means, whiskers 95 %
    intervals over the rounds.
    """
    figure, (axis,) = new_figure(1, width=8.0, height=0.8 + 0.7 * len(measured))
    groups = {}
    for name, rounds in measured.items():
        wait, compute = zip(*rounds, strict=True)
        parts = {"waiting for the batch": wait, "computing": compute, "whole step": [sum(each) for each in rounds]}
        groups[name] = {part: (fmean(seconds), intervals.mean(seconds).interval) for part, seconds in parts.items()}
    bars(axis, groups, "time of a step, by pipeline")
    axis.set_xlim(0, 1.5 * max(bar.get_width() for bar in axis.patches))  # a long whisker leaves the bars their size
    alt = f"Time of a step by pipeline, with {VALID}. {said(groups)}"
    return finished(figure, alt, "measured", note=f"whiskers: {VALID}; long ones are cut")


def ladder(steps, kind):
    """Speed after each change, as a multiple of the given script's speed (measured in turns with it), and the accuracy.

    steps: {name of the change: (labs.results.intervals.Estimate of the ratio, images/s, accuracy)}. Whiskers: 95 %
    intervals of the ratio, over rounds; one that would flatten the bars is cut off, with an arrow. Without intervals
    recorded runs did not take turns, and measured ones have too few rounds, which the stamp says.
    """
    figure, (speeds, right) = new_figure(2, width=5.0, height=1.3 + 0.5 * len(steps), sharey=True)
    sentences, paired = [], all(gain.interval for gain, _, _ in steps.values())
    most = 1.4 * max(gain.value for gain, _, _ in steps.values())
    for place, (name, (gain, rate, accuracy)) in enumerate(steps.items()):
        colour = COLOURS[place % len(COLOURS)]
        speeds.barh(place, gain.value, color=colour, alpha=0.8)
        span = ""
        if gain.interval:
            low, high = gain.interval
            span = f" ({low:.2f} to {high:.2f})"
            speeds.plot([max(0.0, low), min(high, most)], [place, place], color="black", marker="|")
            if high > most:
                speeds.plot(0.99 * most, place, ">", color="black")
        right.plot(accuracy, place, MARKERS[place % len(MARKERS)], color=colour, ms=9)
        beside(right, f"{accuracy:.3f}", (accuracy, place), (0, 8), ha="center", fontsize=9)
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
    note = None if paired else f"{why}, so without an interval"
    return finished(figure, " ".join(["Step by step.", *sentences]), kind, note=note)


def gain(run, given):
    """(how many times as many images a second `run` trains on as `given`: a labs.results.intervals.Estimate, a note or
    None). run, given: labs.results.run.Run. Within the rounds that count; no interval where they did not take turns."""
    rounds, note = metrics.quiet_rounds(run, given)
    if not rounds:
        return intervals.Estimate(metrics.throughput(run).value / metrics.throughput(given).value), metrics.NOT_PAIRED
    images = metrics.epoch_images(run)[0] / metrics.epoch_images(given)[0]
    return intervals.paired([given.rounds[n] for n in rounds], [run.rounds[n] for n in rounds]).scaled(images), note
