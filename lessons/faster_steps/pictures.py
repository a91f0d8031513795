"""The picture of notebook 24 of where a step's time goes, and how many times as fast a run is as another one."""

from statistics import fmean

from labs.results import intervals, metrics
from labs.show.figure import finished, new_figure
from lessons.drawing import VALID, bars, said


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


def gain(run, given):
    """(how many times as many images a second `run` trains on as `given`: a labs.results.intervals.Estimate, a note or
    None). run, given: labs.results.run.Run. Within the rounds that count; no interval where they did not take turns."""
    rounds, note = metrics.undisturbed_rounds(run, given)
    if not rounds:
        return intervals.Estimate(metrics.throughput(run).value / metrics.throughput(given).value), metrics.NOT_PAIRED
    images = metrics.epoch_images(run)[0] / metrics.epoch_images(given)[0]
    return intervals.paired([given.rounds[n] for n in rounds], [run.rounds[n] for n in rounds]).scaled(images), note
