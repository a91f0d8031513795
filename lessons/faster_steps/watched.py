"""Pictures of what a sampler wrote while a training ran."""

from itertools import cycle
from statistics import median

import numpy as np

from labs.show.figure import COLOURS, finished, new_figure

HATCHES = ("", "//", "..", "xx", "\\\\", "++")
SEEN = 0.005  # share of the time from which a phase is drawn
USUAL = ("cores", "memory", "faults", "images")
PANELS = {  # the label of the axis, to where it goes at least (less looks like nothing), what is drawn of a sample
    "cores": ("cores in use", 1.0, lambda sample: sample["cores"]),
    "memory": ("memory (GB)", 0.0, lambda sample: sample["memory"] / 1e9),
    "faults": ("1000 page faults/s", 10.0, lambda sample: sample["faults"] / 1e3),
    "images": ("images so far", 1.0, lambda sample: sample["images"]),
    "gpus": ("GPU utilisation (share)", 1.0, lambda sample: max(gpu["utilisation"] for gpu in sample["gpus"])),
}


def figure(ranks, title):
    """What some ranks used and did, over time: cores, memory, page faults, images; below, the phases of their time.

    ranks: list of lessons.faster_steps.samples.Samples of one run. GPUs, where there are any, get a panel of their own.
    Images are counted from the start, since a sample holds few batches: their rate would jump.
    """
    panels = (*USUAL, "gpus") if ranks[0].samples[0]["gpus"] else USUAL
    columns = max(len(panels), len(ranks))
    figure, axes = new_figure(columns, 3.1, 2.5, rows=2)
    above, below = axes.reshape(2, columns)
    sentences = _drawn([above], panels, {title: ranks})
    shares = [each for rank in ranks for each in rank.shares().items()]
    used = list(dict.fromkeys(phase for phase, share in shares if share >= SEEN))
    sentences += [_phases(axis, rank, used) for axis, rank in zip(below, ranks, strict=False)]
    for axis in (*above[len(panels) :], *below[len(ranks) :]):
        axis.set_axis_off()
    return _finished(figure, sentences, (above[0], below[0]), {title: ranks})


def several(runs):
    """The same for several runs, one below the other, without phases. Columns have one scale, except for the images.

    runs: {title: list of Samples, as in `figure`}.
    """
    figure, axes = new_figure(len(USUAL), 3.1, 1.6, rows=len(runs), sharex=True)
    rows = axes.reshape(len(runs), len(USUAL))
    return _finished(figure, _drawn(rows, USUAL, runs), rows[:, 0], runs)


def _finished(figure, sentences, named, runs):
    """The figure with a legend of what is named in some of its axes."""
    legend = {}
    for axis in named:
        handles, names = axis.get_legend_handles_labels()
        legend |= dict(zip(names, handles, strict=True))
    if legend:
        figure.legend(legend.values(), legend, fontsize=9, loc="outside lower left", ncols=len(legend))
    return finished(figure, " ".join(sentences), *(rank.kind for ranks in runs.values() for rank in ranks))


def _drawn(rows, panels, runs):
    """Draw what the ranks of some runs used and did, a row of axes for each run; returns their means in sentences."""
    sentences = []
    for row, (title, ranks) in zip(rows, runs.items(), strict=True):
        row[0].set_title(title, loc="left", fontsize=11)
        sentences.append(f"{title}.")
        begin = ranks[0].samples[0]["t"] - ranks[0].samples[0]["seconds"]
        for rank, colour, line in zip(ranks, COLOURS, cycle(("-", "--"))):  # both are seen where one lies on the other
            usual = median(sample["seconds"] for sample in rank.samples)
            drawn = [sample for sample in rank.samples if sample["seconds"] > usual / 2]  # the last may be short
            times = [sample["t"] - begin for sample in drawn]
            look = {"ls": line, "color": colour, "label": f"rank {rank.rank}" if len(ranks) > 1 else None}
            for axis, panel in zip(row, panels, strict=False):
                values = [PANELS[panel][2](sample) for sample in drawn]
                axis.plot(times, np.cumsum(values) if panel == "images" else values, **look)
            sentences.append(
                f"Rank {rank.rank}, mean: {rank.mean('cores'):.2f} cores, {rank.mean('memory') / 1e9:.2f} GB, "
                f"{rank.mean('faults'):.0f} page faults a second, {rank.images_per_second:.1f} images/s."
            )
    for panel, column in zip(panels, zip(*rows, strict=True), strict=False):
        label, least, _ = PANELS[panel]
        tops = [1.1 * max(axis.dataLim.ymax, least) for axis in column]
        for axis, top in zip(column, tops, strict=True):
            axis.set_ylim(0, top if panel == "images" else max(tops))
            axis.set_ylabel(label, fontsize=9)
        column[-1].set_xlabel("seconds")
    return sentences


def _phases(axis, rank, used):
    """The share of each phase that is used in the time of one rank, stacked over time; returns all of them in words."""
    begin = rank.samples[0]["t"] - rank.samples[0]["seconds"]
    times = [sample["t"] - begin for sample in rank.samples]
    bottom = np.zeros(len(times))
    for phase, colour, hatch in zip(used, COLOURS[2:] + COLOURS[:2], HATCHES, strict=False):
        top = bottom + [sample["phases"].get(phase, 0.0) / sample["seconds"] for sample in rank.samples]
        axis.fill_between(times, bottom, top, step="pre", color=colour, hatch=hatch, alpha=0.7, lw=0, label=phase)
        bottom = top
    axis.set(xlabel="seconds", ylabel="share of the time", ylim=(0, 1.02), title=f"rank {rank.rank}")
    told = ", ".join(f"{phase} {share:.0%}" for phase, share in rank.shares().items())
    return f"Of the time of rank {rank.rank}: {told}."
