"""Pictures of notebook 01: a gap, published training runs, the laws of speedup, three parallelisms over time, memory.

Every function takes what a control may move and returns a matplotlib Figure with its text alternative in `figure.alt`;
labs.show.figure.show shows it as it is, labs.show.widgets.explore lets it move. Nothing here runs TensorFlow.
"""

import numpy as np

from labs import recorded
from labs.show.figure import COLOURS, MARKERS
from lessons import memory as simulated
from lessons.basic_concepts import laws, pipeline
from lessons.canvas import boxes, canvas, done
from lessons.drawing import beside, logarithmic

LAYERS = 8
_LOOKS = {"forward": COLOURS[5], "backward": COLOURS[0], "all-reduce": COLOURS[1]}
_BESIDE = {"Goyal": (6, 4), "Akiba": (8, 6), "Jia": (8, 4), "Ying": (-8, 0), "Yamazaki": (-9, -3)}


def gap(per_year):
    """What the largest trainings needed and what one chip gives, from 2012 on; and when one chip would get there.

    per_year: a function that returns the growth in a year of something that doubles every given number of months. The
    training runs doubled every 3.4 months until 2018 (D. Amodei and D. Hernandez, OpenAI, 2018), a chip every 24
    (Moore's law).
    """
    trainings, chips = per_year(3.4), per_year(24)  # growth in a year
    needed, chip = trainings**6, chips**6
    wait = float(np.log(needed) / np.log(chips))
    missing, there = _rounded(needed / chip), f"one chip alone would get there in {2012 + wait:.0f}"
    figure, (axis,) = canvas(width=8.0, height=3.6, left=1.15)
    axis.plot([2012, 2018], [1, needed], lw=2.5, color=COLOURS[1], label="the largest training runs")
    axis.plot([2012, 2012 + wait], [1, needed], "--", lw=2.5, color=COLOURS[0], label="one chip")
    logarithmic(axis, y={1: "1", 1e2: "100", 1e4: "10,000", 1e6: "1 million"})
    axis.set(xlabel="year", ylabel="times as much as in 2012", ylim=(0.5, 2e7), xlim=(2010, 2015 + wait), title=there)
    arrow = {"arrowstyle": "<->", "lw": 1.5, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", (2018, chip), (2018, needed), arrowprops=arrow)
    beside(axis, f"{missing} times", (2018, chip**0.6 * needed**0.4), (8, 0), weight="bold")
    axis.annotate("", (2018, needed), (2012 + wait, needed), arrowprops=arrow | {"linestyle": ":"})
    beside(axis, f"{wait - 6:.0f} years", (2015 + wait / 2, needed), (0, 5), ha="center", weight="bold")
    axis.legend(fontsize=9, loc="lower right")
    return done(
        figure,
        f"In 2018, the largest training runs needed {_rounded(needed)} times as much as in 2012. One chip was "
        f"{chip:.3g} times as fast as in 2012, which leaves a gap of {missing} times. At this pace, {there}.",
        "computed",
    )


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
    counts = np.array([first["devices"], 4096])
    ideal = first["minutes"] / 60 * first["devices"] / counts
    axis.plot(counts, ideal, "--", color="0.5", label="8 P100, ideally scaled")
    looks, sentences = {}, []
    for place, row in enumerate(rows):
        devices, hardware, hours, name = row["devices"], row["hardware"], row["minutes"] / 60, row["who"].split()[0]
        label = None if hardware in looks else hardware
        colour, marker = looks.setdefault(hardware, (COLOURS[len(looks)], MARKERS[len(looks)]))
        axis.plot(devices, hours, marker, ms=8, color=colour, label=label)
        more, total = devices / first["devices"], first["minutes"] / row["minutes"]
        shift = _BESIDE.get(name, (8, 0))
        beside(axis, name, (devices, hours), shift, fontsize=9, va="center", ha="left" if shift[0] > 0 else "right")
        for value, side, shade in ((more, -0.2, "0.55"), (total / more, 0.2, colour)):
            bars.barh(place + side, value - 1, 0.38, left=1, color=shade)
            bars.text(max(value, 1) * 1.15, place + side, f"{value:.3g}", va="center", fontsize=9)
        factors = f"{total:.4g} times as fast, {more:.3g} by the number of devices, {total / more:.2g} by the rest."
        sentences.append(f"{row['who']}, {devices} {hardware}, {hours:.3g} h: {factors}")
    logarithmic(axis, [8, 32, 128, 512, 2048], {0.02: "1.2 min", 0.1: "6 min", 1: "1 h", 10: "10 h"})
    axis.set(xlabel="devices", ylabel="training time", title="ResNet-50 on ImageNet")
    axis.set(xlim=(6, 9000), ylim=(0.012, 60))
    axis.legend(fontsize=9, loc="lower left")
    logarithmic(bars, [1, 10, 100, 1000])
    bars.set_yticks(range(len(rows)), [f"{row['devices']} {row['hardware']}" for row in rows], fontsize=9)
    bars.set(xlabel="factor against 8 P100", title="devices (grey) and the rest (coloured)")
    bars.set(xlim=(0.5, 3000), ylim=(len(rows) - 0.4, -0.6))
    said = "Time of published training runs against the number of devices."
    return done(figure, f"{said} {' '.join(sentences)}", "recorded")


def speedups(workers=64, serial=0.05):
    """Speedup over the number of workers by Amdahl (fixed problem) and by Gustafson (growing problem)."""
    figure, (axis,) = canvas(width=6.2, height=3.6)
    counts, ends = np.unique(np.linspace(1, workers, 65).astype(int)), [f"ideal {workers}"]
    axis.plot(counts, counts, "--", color="0.5", label="ideal")
    for law, name, colour, marker in (
        (laws.gustafson, "Gustafson: the problem grows with the workers", COLOURS[0], MARKERS[0]),
        (laws.amdahl, "Amdahl: the problem is fixed", COLOURS[1], MARKERS[1]),
    ):
        values = law(counts, serial)
        axis.plot(counts, values, color=colour, marker=marker, markevery=max(1, len(counts) // 8), label=name)
        look = {"va": "center", "fontsize": 9, "annotation_clip": False, "color": colour}
        beside(axis, f"{values[-1]:.3g}", (workers, values[-1]), (4, 0), **look)
        ends.append(f"{name.split(':')[0]} {values[-1]:.3g}")
    axis.set(xlabel="workers p", ylabel="speedup S(p)", title=f"serial share {100 * serial:g} %")
    axis.set(ylim=(0, workers * 1.05), xlim=(0, workers * 1.06))
    axis.legend(fontsize=9, loc="upper left")
    said = f"Speedup on 1 to {workers} workers with a serial share of {100 * serial:g} %."
    return done(figure, f"{said} On {workers}: {'; '.join(ends)}.")


def _blocks(kind, devices, micro_batches):
    """(blocks, name) of one mini-batch."""
    name = f"{kind} parallelism, {devices} devices"
    if kind == "data":
        return pipeline.data_parallel(devices, LAYERS), name
    parts = micro_batches if kind == "pipeline" else 1
    return pipeline.pipelined(devices, LAYERS, parts), name + (f", {parts} micro-batches" if parts > 1 else "")


def _timeline(axis, blocks, title, last, now):
    """Draw blocks until `now` per cent of the time have passed, on an axis that ends at `last`; what to say of them."""
    length, idle = pipeline.length(blocks), pipeline.idle(blocks)
    clock = length * now / 100
    for what, colour in _LOOKS.items():
        spans = [(b.begin, min(b.end, clock), b.device) for b in blocks if b.what == what and b.begin < clock]
        if spans or what != "all-reduce":
            axis.add_collection(boxes(spans, colour, label=what, linewidth=1 if len(blocks) <= 128 else 0.2))
    if any(block.part for block in blocks) and blocks[0].end > 0.4:
        for block in blocks:
            if block.end <= clock:
                colour = "white" if block.what == "backward" else "black"
                look = {"ha": "center", "va": "center", "fontsize": 9, "color": colour}
                axis.text((block.begin + block.end) / 2, block.device, block.part + 1, **look)
    rows, passed = 1 + max(block.device for block in blocks), ""
    if now < 100:
        axis.axvline(clock, color="black", lw=1)
        busy = sum(min(block.end, clock) - block.begin for block in blocks if block.begin < clock)
        busy /= rows * clock or 1
        passed = f" After {now:g} % of it the devices were busy {busy:.0%} of the time."
    said = f"{length:.3g} units of time"
    axis.set_title(f"{title}: {said}, idle {idle:.0%}", fontsize=10)
    axis.set(xlim=(0, last), ylim=(rows - 0.5, -0.5))
    axis.set_yticks(range(rows), [f"device {number}" for number in range(rows)])
    return f"{title.capitalize()}: {said} for one mini-batch, idle share {idle:.0%}.{passed}"


def parallelism(kind="all", device_count=4, micro_batches=4, now=100):
    """One mini-batch through 8 layers on several devices: kind "data", "model" or "pipeline", or all three, one above
    the other on one axis of time.

    The unit of time is the forward pass of one layer for the whole mini-batch. now: per cent of the time that passed.
    """
    kinds = ("data", "model", "pipeline") if kind == "all" else (kind,)
    drawn = [_blocks(each, device_count, micro_batches) for each in kinds]
    size = {"width": 9.2, "height": 1.4 + 0.25 * device_count, "left": 0.9, "right": 1.2, "top": 0.4, "gap": 0.5}
    figure, axes = canvas(rows=len(kinds), **size, share=True)
    last = max(pipeline.length(blocks) for blocks, _ in drawn) * 1.02
    said = [_timeline(axis, blocks, name, last, now) for axis, (blocks, name) in zip(axes, drawn, strict=True)]
    axes[-1].set_xlabel("time (forward passes of one layer)")
    handles = list(axes[0].collections)
    axes[len(axes) // 2].legend(handles=handles, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    return done(figure, " ".join(said))


def memory(network="ResNet50V2", batch=32, optimizer="momentum", precision="float32", devices=1, sharded="nothing"):
    """Memory of each device for images of 224x224, its parts stacked in one bar, beside the memory of devices.

    batch: images of each device; optimizer: "SGD", "momentum", "Adam"; precision: "float32" or "float16" of all values
    (programs keep some of them in 32 bit); sharded: see lessons.memory.
    """
    slots, width = simulated.SLOTS[optimizer], {"float32": 4, "float16": 2}[precision]
    parts = simulated.step(*recorded.networks()[network], batch, slots, width, devices, sharded)
    figure, (axis,) = canvas(width=7.6, height=2.9, left=0.3, right=0.3)
    total = 0
    for (part, value), colour in zip(parts.items(), COLOURS, strict=False):
        axis.barh(0, value / 1e9, left=total / 1e9, height=0.7, color=colour, label=f"{part} {_size(value)}")
        total += value
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
    values = ", ".join(f"{part} {_size(value)}" for part, value in (parts | {"sum": total}).items())
    return done(figure, f"{title}; sharded: {sharded}. Memory of each device: {values}.")


def _size(value):
    return f"{value / 1e9:.3g} GB" if value >= 1e9 else f"{value / 1e6:.3g} MB"
