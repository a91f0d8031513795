"""Pictures of what a sampler wrote while a training ran."""

from itertools import cycle
from statistics import median

import numpy as np

from labs.show.figure import COLOURS, finished, new_figure

HATCHES = ("", "//", "..", "xx", "\\\\", "++")
SEEN = 0.005  # share of the time from which a phase is drawn
LABELS = {"cores": "cores in use", "memory": "memory (GB)", "faults": "1000 page faults/s", "images": "images so far"}
LABELS |= {"gpus": "GPU utilisation (share)"}
LEAST = {"cores": 1.0, "gpus": 1.0, "faults": 10.0}  # to which an axis goes: less looks like nothing


def figure(ranks, title=None):
    """What some ranks used and did, over time: cores, memory, page faults, images; below, the phases of their time.

    ranks: list of lessons.faster_steps.samples.Samples of one run. GPUs, where there are any, get a panel of their own.
    Images are counted from the start, since a sample holds few batches: their rate would jump.
    """
    panels = ["cores", "memory", "faults", "images"] + ["gpus"] * any(rank.samples[0]["gpus"] for rank in ranks)
    columns = max(len(panels), len(ranks))
    figure, axes = new_figure(columns, 3.1, 2.5, rows=2)
    sentences = _drawn(axes, panels, ranks)
    for axis, panel in zip(axes, panels, strict=False):
        axis.set(xlabel="seconds", ylabel=LABELS[panel], ylim=(0, _top(panel, axis)))
    handles, names = axes[0].get_legend_handles_labels() if len(ranks) > 1 else ([], [])
    shares = [each for rank in ranks for each in rank.shares().items()]
    used = list(dict.fromkeys(phase for phase, share in shares if share >= SEEN))
    for axis, rank in zip(axes[columns:], ranks, strict=False):
        sentences.append(_phases(axis, rank, used))
    handles, names = handles + list(axes[columns].collections if used else []), names + used
    for axis in (*axes[len(panels) : columns], *axes[columns + len(ranks) :]):
        axis.set_axis_off()
    if handles:
        figure.legend(handles, names, fontsize=9, loc="outside lower left", ncols=len(handles))
    if title:
        figure.suptitle(title)
    alt = " ".join(([f"{title}."] if title else []) + sentences)
    return finished(figure, alt, *(rank.kind for rank in ranks))


def several(runs):
    """The same for several runs, one below the other, without phases. Columns have one scale, except for the images.

    runs: {title: list of Samples, as in `figure`}.
    """
    panels = ["cores", "memory", "faults", "images"]
    figure, axes = new_figure(len(panels), 3.1, 1.6, rows=len(runs), sharex=True)
    grid, sentences = axes.reshape(len(runs), len(panels)), []
    for row, (title, ranks) in zip(grid, runs.items(), strict=True):
        sentences += [f"{title}.", *_drawn(row, panels, ranks)]
        row[0].set_title(title, loc="left", fontsize=11)
    for panel, column in zip(panels, grid.T, strict=True):
        tops = [_top(panel, axis) for axis in column]
        for axis, top in zip(column, tops if panel == "images" else [max(tops)] * len(tops), strict=True):
            axis.set(ylim=(0, top))
            axis.set_ylabel(LABELS[panel], fontsize=9)
        column[-1].set_xlabel("seconds")
    handles, names = max((axis.get_legend_handles_labels() for axis in grid[:, 0]), key=lambda each: len(each[0]))
    figure.legend(handles, names, fontsize=9, loc="outside lower left", ncols=len(handles))
    return finished(figure, " ".join(sentences), *(rank.kind for ranks in runs.values() for rank in ranks))


def _top(panel, axis):
    return 1.1 * max(axis.dataLim.ymax, LEAST.get(panel, 0.0)) or 1


def _drawn(axes, panels, ranks):
    """Draw what the ranks of a run used and did; returns their means, a sentence for each."""
    sentences = []
    for rank, colour, line in zip(ranks, COLOURS, cycle(("-", "--"))):  # both are seen where one lies on the other
        begin = ranks[0].samples[0]["t"] - ranks[0].samples[0]["seconds"]
        usual = median(sample["seconds"] for sample in rank.samples)
        drawn = [sample for sample in rank.samples if sample["seconds"] > usual / 2]  # the last may be a moment only
        times = [sample["t"] - begin for sample in drawn]
        values = {
            "cores": [sample["cores"] for sample in drawn],
            "memory": [sample["memory"] / 1e9 for sample in drawn],
            "faults": [sample["faults"] / 1e3 for sample in drawn],
            "images": np.cumsum([sample["images"] for sample in drawn]),
            "gpus": [max([gpu["utilisation"] for gpu in sample["gpus"]], default=0) for sample in drawn],
        }
        for axis, panel in zip(axes, panels, strict=False):
            axis.plot(times, values[panel], ls=line, color=colour, label=f"rank {rank.rank}")
        sentences.append(
            f"Rank {rank.rank}, mean: {rank.mean('cores'):.2f} cores, {rank.mean('memory') / 1e9:.2f} GB, "
            f"{rank.mean('faults'):.0f} page faults a second, {rank.images_per_second:.1f} images/s."
        )
    return sentences


def _phases(axis, rank, used):
    """The share of each phase that is used in the time of one rank, stacked over time; returns all of them in words."""
    begin = rank.samples[0]["t"] - rank.samples[0]["seconds"]
    times = [sample["t"] - begin for sample in rank.samples]
    bottom = np.zeros(len(times))
    for phase, colour, hatch in zip(used, COLOURS[2:] + COLOURS[:2], HATCHES, strict=False):
        top = bottom + [sample["phases"].get(phase, 0.0) / sample["seconds"] for sample in rank.samples]
        axis.fill_between(times, bottom, top, step="pre", color=colour, hatch=hatch, alpha=0.7, lw=0)
        bottom = top
    axis.set(xlabel="seconds", ylabel="share of the time", ylim=(0, 1.02), title=f"rank {rank.rank}")
    told = ", ".join(f"{phase} {share:.0%}" for phase, share in rank.shares().items())
    return f"Of the time of rank {rank.rank}: {told}."
