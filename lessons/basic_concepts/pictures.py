"""Pictures of notebook 01: a gap, published training runs, the laws of speedup, three parallelisms over time, memory.

Every function takes what a control may move and returns a matplotlib Figure with its text alternative in `figure.alt`;
labs.show.figure.show shows it as it is, labs.show.widgets.explore lets it move. Nothing here runs TensorFlow.
"""

import numpy as np

from labs import recorded
from labs.errors import UseError, number, whole
from labs.show.figure import COLOURS, MARKERS
from lessons import memory as simulated
from lessons.basic_concepts import laws, pipeline
from lessons.canvas import boxes, canvas, done
from lessons.drawing import beside, logarithmic

LAYERS = 8
_LOOKS = {"forward": COLOURS[5], "backward": COLOURS[0], "all-reduce": COLOURS[1]}
_BESIDE = {"Goyal": (6, 4), "Akiba": (8, 6), "Jia": (8, 4), "Ying": (-8, 0), "Mikami": (8, 0), "Yamazaki": (-9, -3)}


def gap(per_year):
    """What the largest trainings needed and what one chip gives, from 2012 on; and when one chip would get there.

    per_year: a function that returns the growth in a year of something that doubles every given number of months. The
    training runs doubled every 3.4 months until 2018 (D. Amodei and D. Hernandez, OpenAI, 2018), a chip every 24
    (Moore's law).
    """
    yearly, names = [per_year(3.4), per_year(24)], ["the largest training runs", "one chip"]
    needed, chip = (factor**6 for factor in yearly)
    wait = float(np.log(needed) / np.log(yearly[1]))
    figure, (six, long) = canvas(2, 4.9, 3.4, left=1.15)
    for axis, last in ((six, (6, 6)), (long, (6, wait))):
        for name, factor, years, colour, style in zip(names, yearly, last, COLOURS[1::-1], ("-", "--"), strict=True):
            axis.plot(2012 + np.array([0, years]), [1, factor**years], style, lw=2.5, color=colour, label=name)
        logarithmic(axis, y={1: "1", 1e2: "100", 1e4: "10,000", 1e6: "1 million"})
        axis.set(xlabel="year", ylabel="times as much as in 2012", ylim=(0.5, 2e7))
    years = np.array([0, 6])
    six.fill_between(2012 + years, yearly[1] ** years, yearly[0] ** years, color=COLOURS[4], alpha=0.25)
    arrow = {"arrowstyle": "<->", "lw": 1.5, "shrinkA": 0, "shrinkB": 0}
    six.annotate("", (2018, chip), (2018, needed), arrowprops=arrow)
    beside(six, f"{_rounded(needed / chip)} times", (2018, chip**0.6 * needed**0.4), (-8, 0), ha="right", weight="bold")
    six.set(title="six years: who fills the gap?", xlim=(2011.8, 2018.3), xticks=range(2012, 2019, 2))
    long.annotate("", (2018, needed), (2012 + wait, needed), arrowprops=arrow | {"linestyle": ":"})
    beside(long, f"{wait - 6:.0f} years", (2015 + wait / 2, needed), (0, 5), ha="center", weight="bold")
    long.set(title=f"one chip alone would get there in {2012 + wait:.0f}", xlim=(2010, 2015 + wait))
    six.legend(fontsize=9, loc="upper left")
    said = [
        f"In 2018, the largest training runs needed {_rounded(needed)} times as much as in 2012.",
        f"One chip was {chip:.3g} times as fast as in 2012, which leaves a gap of {_rounded(needed / chip)} times.",
        f"At this pace, one chip alone would get there in {2012 + wait:.0f}.",
    ]
    return done(figure, " ".join(said), "computed")


def _rounded(value):
    """Three digits, with separators: 296,000."""
    return f"{float(f'{value:.3g}'):,.0f}"


def imagenet():
    """Published trainings of ResNet-50 on ImageNet: time over devices, and what the number of devices explains.

    The factor against the first row (8 P100) is that of the number of devices times the rest: faster devices, software,
    larger batches, losses by communication. Rows without a number of devices are left out.
    """
    rows = [row for row in recorded.imagenet() if row["devices"]]
    first = rows[0]
    figure, (axis, bars) = canvas(2, 5.4, 3.9, left=1.1)
    looks = dict(zip(dict.fromkeys(row["hardware"] for row in rows), zip(COLOURS, MARKERS, strict=True), strict=False))
    counts = np.array([first["devices"], 4096])
    ideal = first["minutes"] / 60 * first["devices"] / counts
    axis.plot(counts, ideal, "--", color="0.5", label="8 P100, ideally scaled")
    for hardware, (colour, marker) in looks.items():
        points = [(row["devices"], row["minutes"] / 60) for row in rows if row["hardware"] == hardware]
        axis.plot(*zip(*points, strict=True), marker, ms=8, color=colour, label=hardware)
    for row in rows:
        name = row["who"].split()[0]
        shift = _BESIDE.get(name, (8, 0))
        side = "left" if shift[0] > 0 else "right"
        slower = row["minutes"] * row["devices"] / (first["minutes"] * first["devices"])
        if row is not first and row["hardware"] == first["hardware"]:
            name += f": {slower:.2f} x the line"
        beside(axis, name, (row["devices"], row["minutes"] / 60), shift, fontsize=9, va="center", ha=side)
    logarithmic(axis, [8, 32, 128, 512, 2048], {0.02: "1.2 min", 0.1: "6 min", 1: "1 h", 10: "10 h"})
    axis.set(xlabel="devices", ylabel="training time", title="ResNet-50 on ImageNet")
    axis.set(xlim=(6, 9000), ylim=(0.012, 60))
    axis.legend(fontsize=9, loc="lower left")
    sentences = []
    for place, row in enumerate(rows):
        count, total = row["devices"] / first["devices"], first["minutes"] / row["minutes"]
        for value, shift, colour in ((count, -0.2, "0.55"), (total / count, 0.2, looks[row["hardware"]][0])):
            bars.barh(place + shift, value - 1, 0.38, left=1, color=colour)
            bars.text(max(value, 1) * 1.15, place + shift, f"{value:.3g}", va="center", fontsize=9)
        factors = f"{total:.4g} times as fast, {count:.3g} by the number of devices, {total / count:.2g} by the rest."
        sentences.append(f"{row['who']}, {row['devices']} {row['hardware']}, {row['minutes'] / 60:.3g} h: {factors}")
    logarithmic(bars, [1, 10, 100, 1000])
    bars.set_yticks(range(len(rows)), [f"{row['devices']} {row['hardware']}" for row in rows], fontsize=9)
    bars.set(xlabel="factor against 8 P100", title="devices (grey) and the rest (coloured)")
    bars.set(xlim=(0.5, 3000), ylim=(len(rows) - 0.4, -0.6))
    return done(
        figure, "Time of published training runs against the number of devices. " + " ".join(sentences), "recorded"
    )


def speedups(workers=64, serial=0.05):
    """Speedup over the number of workers by Amdahl (fixed problem) and by Gustafson (growing problem)."""
    figure, (axis,) = canvas(width=6.2, height=3.6)
    counts = np.unique(np.linspace(1, whole("workers", workers), 65).astype(int))
    lines = {
        "Gustafson: the problem grows with the workers": [laws.gustafson(int(p), serial) for p in counts],
        "Amdahl: the problem is fixed": [laws.amdahl(int(p), serial) for p in counts],
    }
    axis.plot(counts, counts, "--", color="0.5", label="ideal")
    for (name, values), colour, marker in zip(lines.items(), COLOURS, MARKERS, strict=False):
        axis.plot(counts, values, color=colour, marker=marker, markevery=max(1, len(counts) // 8), label=name)
        look = {"va": "center", "fontsize": 9, "annotation_clip": False, "color": colour}
        beside(axis, f"{values[-1]:.3g}", (workers, values[-1]), (4, 0), **look)
    axis.set(xlabel="workers p", ylabel="speedup S(p)", title=f"serial share {100 * serial:g} %")
    axis.set(ylim=(0, workers * 1.05), xlim=(0, workers * 1.06))
    axis.legend(fontsize=9, loc="upper left")
    ends = "; ".join(f"{name.split(':')[0]} {values[-1]:.3g}" for name, values in lines.items())
    said = f"Speedup on 1 to {workers} workers with a serial share of {100 * serial:g} %."
    return done(figure, f"{said} On {workers}: ideal {workers}; {ends}.")


def _blocks(kind, devices, parts, layers):
    """(blocks, name) of one mini-batch."""
    if kind == "data":
        return pipeline.data_parallel(devices, layers), f"data parallelism, {devices} devices"
    if kind not in ("model", "pipeline"):
        raise UseError(f"kind is {kind!r}: it must be 'data', 'model' or 'pipeline'.")
    parts = parts if kind == "pipeline" else 1
    name = f"{kind} parallelism, {devices} devices" + (f", {parts} micro-batches" if parts > 1 else "")
    return pipeline.pipelined(devices, layers, parts), name


def _timeline(axis, blocks, title, last, now=100.0):
    """Draw blocks until `now` per cent of the time have passed, on an axis that ends at `last`; what to say of them."""
    length, idle = pipeline.length(blocks), pipeline.idle(blocks)
    clock = length * now / 100
    for what, colour in _LOOKS.items():
        spans = [(b.begin, min(b.end, clock), b.device) for b in blocks if b.what == what and b.begin < clock]
        if spans or what != "all-reduce":
            axis.add_collection(boxes(spans, colour, label=what, linewidth=1 if len(blocks) <= 128 else 0.2))
    many = 1 + max(block.part for block in blocks)
    if many > 1 and blocks[0].end - blocks[0].begin > 0.4:
        for block in blocks:
            if block.end <= clock:
                colour = "white" if block.what == "backward" else "black"
                look = {"ha": "center", "va": "center", "fontsize": 9, "color": colour}
                axis.text((block.begin + block.end) / 2, block.device, block.part + 1, **look)
    if now < 100:
        axis.axvline(clock, color="black", lw=1)
    rows = 1 + max(block.device for block in blocks)
    axis.set_title(f"{title}: {length:.3g} units of time, idle {idle:.0%}", fontsize=10)
    axis.set(xlim=(0, last), ylim=(rows - 0.5, -0.5))
    axis.set_yticks(range(rows), [f"device {number}" for number in range(rows)])
    busy = sum(min(block.end, clock) - block.begin for block in blocks if block.begin < clock) / (rows * clock or 1)
    passed = "" if now >= 100 else f" After {now:g} % of it the devices were busy {busy:.0%} of the time."
    return f"{title.capitalize()}: {length:.3g} units of time for one mini-batch, idle share {idle:.0%}.{passed}"


def parallelism(kind="data", device_count=4, micro_batches=4, now=100):
    """One mini-batch through 8 layers on several devices: kind "data", "model" or "pipeline".

    The unit of time is the forward pass of one layer for the whole mini-batch. now: per cent of the time that passed.
    """
    blocks, name = _blocks(kind, device_count, micro_batches, LAYERS)
    figure, (axis,) = canvas(width=9.2, height=1.5 + 0.35 * device_count, left=0.9, right=1.1, top=0.4)
    last = pipeline.length(blocks) * 1.02
    text = _timeline(axis, blocks, name, last, number("now", now, most=100))
    axis.set_xlabel("time (forward passes of one layer)")
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    return done(figure, text)


def compare(device_count=4, micro_batches=4):
    """The three ways for one mini-batch and 8 layers, one above the other on one axis of time."""
    drawn = [_blocks(kind, device_count, micro_batches, LAYERS) for kind in ("data", "model", "pipeline")]
    height = 0.85 + 0.25 * device_count
    figure, axes = canvas(rows=3, width=8.2, height=height + 0.3, left=0.9, right=1.1, top=0.4, gap=0.5, share=True)
    last = max(pipeline.length(blocks) for blocks, _ in drawn) * 1.02
    text = " ".join(_timeline(axis, blocks, name, last) for axis, (blocks, name) in zip(axes, drawn, strict=True))
    axes[2].set_xlabel("time (forward passes of one layer)")
    axes[1].legend(handles=list(axes[0].collections), fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    return done(figure, text)


def memory(network="ResNet50V2", batch=32, optimizer="momentum", precision="float32", devices=1, sharded="nothing"):
    """Memory of each device for images of 224x224, its parts stacked in one bar, beside the memory of devices.

    batch: images of each device; optimizer: "SGD", "momentum", "Adam"; precision: "float32" or "float16" of all values
    (programs keep some of them in 32 bit); sharded: see lessons.memory.
    """
    networks = recorded.networks()
    for name, value, known in (
        ("network", network, networks),
        ("optimizer", optimizer, simulated.SLOTS),
        ("precision", precision, ("float32", "float16")),
    ):
        if value not in known:
            raise UseError(f"{name} is {value!r}: it must be one of {', '.join(known)}.")
    width = {"float32": 4, "float16": 2}[precision]
    parts = simulated.step(*networks[network], batch, simulated.SLOTS[optimizer], width, devices, sharded)
    total, begin = sum(parts.values()), 0
    figure, (axis,) = canvas(width=7.6, height=2.9, left=0.3, right=0.3)
    for (part, value), colour in zip(parts.items(), COLOURS, strict=False):
        axis.barh(0, value / 1e9, left=begin / 1e9, height=0.7, color=colour, label=f"{part} {_size(value)}")
        begin += value
    parts["sum"] = total
    most = max(1.15 * total / 1e9, 20)
    for limit, name in ((16, "V100"), (40, "A100"), (80, "H100")):
        if limit < most:
            axis.plot([limit, limit], [-0.5, 0.75], color="black", ls=":", lw=1)
            axis.text(limit, 0.5, f"{name}: {limit} GB ", ha="right", va="bottom", fontsize=9)
    axis.text(total / 1e9, 0, f" sum {_size(total)}", va="center", fontsize=9)
    axis.legend(fontsize=9, loc="upper center", ncols=4, frameon=False)
    axis.set_yticks([])
    axis.set(xlabel="memory of each device (GB)", xlim=(0, most), ylim=(-0.5, 1.5))
    many = f"each of {devices} devices" if devices > 1 else "1 device"
    title = f"{network}, {batch} images for {many}, {optimizer}, {precision}"
    axis.set_title(title, fontsize=10)
    values = ", ".join(f"{part} {_size(value)}" for part, value in parts.items())
    return done(figure, f"{title}; sharded: {sharded}. Memory of each device: {values}.")


def _size(value):
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g} B"
