"""Pictures for notebook 26: the parts of a measured step, their sum beside a whole step, predicted steps beside
measured ones; and, with controls, how the backward pass hides messages and how both networks would scale.

The last one is computed (lessons.where_a_step_goes.what_if). Nothing here runs TensorFlow, except the first call of
`what_if.networks`, in another process: facts of a network are kept (lessons.counts).
"""

from functools import lru_cache

import numpy as np

from labs.errors import number
from labs.measure import breakdown as measured
from labs.results import intervals
from labs.show.figure import COLOURS, MARKERS, new_figure, stamp
from lessons.canvas import boxes, canvas, done
from lessons.drawing import beside, logarithmic
from lessons.reduce import ring_seconds
from lessons.step_model import BACKWARD, buckets
from lessons.where_a_step_goes.what_if import NAMES, WORKERS, efficiencies, first_below, fits, networks, steps

PARTS = {  # of a step: the field of what_if.StepParts, name and colour
    "computation": ("computation", COLOURS[5]),
    "stragglers": ("waiting for the slowest", COLOURS[4]),
    "exposed": ("all-reduce that is not hidden", COLOURS[1]),
}


def scaling(network="ResNet152V2", batch=64, bandwidth=25, latency=30, precision="float32", fusion=128, accumulation=1):
    """Left: efficiency of both networks over the number of workers, and where it falls below 0.8. Right: the parts of a
    step of `network`, as shares. Arguments as of `steps`."""
    settings = {"batch": batch, "bandwidth": bandwidth, "latency": latency, "precision": precision}
    settings |= {"fusion": fusion, "accumulation": accumulation}
    figure, (axis, parts) = canvas(2, 5.2, 3.6)
    sentences = []
    axis.axhline(0.8, color="0.5", ls="--", lw=1)
    for place, (name, colour, marker) in enumerate(zip(NAMES, COLOURS, MARKERS, strict=False)):
        values, below = efficiencies(name, **settings), first_below(name, **settings)
        room = fits(name, precision)
        note = f" (about {room} images fit)" if batch > room else ""
        axis.plot(WORKERS, list(values.values()), color=colour, marker=marker, ms=5, ls=":" if note else "-")
        text = f"{name}: below 0.8 from {below}" if below else f"{name}: never below 0.8"
        _say(axis, 1 - place, "●■"[place], text + note, colour)
        sentences.append(f"{text}{note}; {values[64]:.2f} on 64, {values[4096]:.2f} on 4096 workers.")
    _over_workers(axis, ylabel="efficiency S(p)/p", title="efficiency", ylim=(0, 1.05))
    found = steps(network, **settings)
    low = [0.0] * len(WORKERS)
    for place, (key, (part, colour)) in enumerate(PARTS.items()):
        high = [a + float(getattr(step, key) / step.total) for a, step in zip(low, found.values(), strict=True)]
        parts.fill_between(WORKERS, low, high, color=colour, lw=0)
        _say(parts, place, "■", part, colour)
        low = high
    alone = 1e3 * float(found[1].total)
    _over_workers(parts, ylabel="share of a step", title=f"{network}: {alone:.3g} ms of computation", ylim=(0, 1.05))
    last = found[WORKERS[-1]]
    sentences.append(
        f"A step of {network}: {1e3 * last.computation:.3g} ms of computation; on 4096 workers "
        f"{1e3 * last.stragglers:.3g} ms of waiting and {1e3 * last.exposed:.3g} ms of all-reduce that the backward "
        "pass does not hide."
    )
    about = (
        f"Batch {batch} per V100, {bandwidth} Gbit/s and {latency} us between nodes, {precision}, fusion "
        f"{f'{fusion} MiB' if fusion else 'off'}, {accumulation} pass{'es' * (accumulation != 1)} per update. "
    )
    return done(figure, "Computed efficiency over workers. " + about + " ".join(sentences), "computed")


def _say(axis, line, mark, text, colour):
    """A coloured mark and a text above the axis' lower end: cheaper than a legend."""
    place = {"y": 0.05 + 0.09 * line, "transform": axis.transAxes, "fontsize": 9}
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
    axis.text(0.02, s=f"    {text}", bbox=behind, **place)
    axis.text(0.025, s=mark, color=colour, **place)


def _over_workers(axis, **labels):
    logarithmic(axis, WORKERS[::3])
    axis.set(xlabel="workers", xlim=(0.9, 4800), **labels)


def _digits(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _with_bounds(value, interval):
    """Milliseconds in words, with their interval where there is one."""
    return f"{_digits(value)} ms" + (f" [{', '.join(map(_digits, interval))}]" if interval else "")


def _in_ms(axis, **labels):
    """The x axis in milliseconds of a step, with separators."""
    axis.set(xlabel="milliseconds per step", **labels)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}")


def _bar(axis, place, value, interval, **look):
    """A bar from 0, to either side, with its interval where there is one."""
    axis.barh(place, value, 0.7, edgecolor="white", **look)
    if interval:
        axis.errorbar(value, place, xerr=[[value - interval[0]], [interval[1] - value]], color="black", capsize=3)


def breakdown(results):
    """The parts of a step with their intervals: all of them on one scale, and those that are differences on their
    own. A part below 0 is drawn to the left of 0. results: of labs.measure.breakdown.measure."""
    figure, (axis, small) = new_figure(2, width=5.2, height=1.0 + 1.0 * len(results), sharey=True)
    names, sentences, longest = [], [], 0.0
    for found in results:
        said = []
        for number_, (part, (seconds, interval)) in enumerate(measured.parts(found).items()):
            value, bounds = 1e3 * seconds, interval and tuple(1e3 * end for end in interval)
            look = {"color": COLOURS[number_], "hatch": ("", "//", "..", "xx")[number_]}
            _bar(axis, len(names), value, bounds, **look)
            if part != "computation":
                _bar(small, len(names), value, bounds, **look)
                longest = max(longest, abs(value))
            names.append(f"{found['model']}: {part}")
            said.append(f"{part} {_with_bounds(value, bounds)}")
        sentences.append(f"{found['model']} on {found['ranks']} workers: {', '.join(said)}.")
    axis.set_yticks(range(len(names)), names)
    _in_ms(axis, ylim=(len(names) - 0.4, -0.6), title="parts of a step")
    _in_ms(small, title="only the differences, enlarged")
    low, high = small.get_xlim()
    small.set_xlim(max(low, -2 * longest), min(high, 2 * longest))  # a long whisker leaves the bars their size
    for each in (axis, small):
        each.axvline(0, color="black", lw=1)
    stamp(
        figure,
        *(found["kind"] for found in results),
        note="whiskers: intervals, valid only for these minutes; long ones are cut",
    )
    figure.alt = "Parts of a step in milliseconds, with intervals that are valid only for these minutes. " + " ".join(
        sentences
    )
    return figure


def whole(compared, *kinds):
    """The sum of the parts beside a whole step, and the residual, with intervals.

    compared: {name of a network: what `experiments.whole_step` says}; kinds: "measured" or "recorded", first of the
    parts, then of the whole steps.
    """
    figure, (axis,) = new_figure(1, width=8.0, height=0.9 + 0.8 * len(compared))
    names, sentences = [], []
    looks = ((COLOURS[5], ""), (COLOURS[0], "//"), (COLOURS[1], ".."))
    for name, told in compared.items():
        said = []
        for (what, (seconds, interval)), (colour, hatch) in zip(told.items(), looks, strict=True):
            value, bounds = 1e3 * seconds, interval and tuple(1e3 * end for end in interval)
            _bar(axis, len(names), value, bounds, color=colour, hatch=hatch)
            names.append(f"{name}: {what}")
            said.append(f"{what} {_with_bounds(value, bounds)}")
        sentences.append(f"{name}: {', '.join(said)}.")
    axis.axvline(0, color="black", lw=1)
    axis.set_yticks(range(len(names)), names)
    _in_ms(axis, ylim=(len(names) - 0.4, -0.6), title="sum of the parts and a whole step")
    stamp(figure, *kinds, note="whiskers: intervals, valid only for these minutes")
    figure.alt = (
        "A step's parts, summed, beside a whole step of a training run; intervals are valid only for these minutes. "
        + " ".join(sentences)
    )
    return figure


def held_out(rows, kind="measured"):
    """Predicted steps beside measured ones. rows: dicts {name, predicted: (seconds, interval or None), measured: the
    same}. Intervals of predicted steps hold the noise of the fitted ones; those of measured steps are valid for
    these minutes only."""
    figure, (axis,) = new_figure(1, width=8.0, height=1.0 + 0.55 * len(rows))
    sentences = []
    for place, row in enumerate(rows):
        for shift, what, colour, marker in ((-0.15, "predicted", COLOURS[1], "s"), (0.15, "measured", COLOURS[0], "o")):
            seconds, interval = row[what]
            value, bounds = 1e3 * seconds, interval and tuple(1e3 * end for end in interval)
            reach = [[value - bounds[0]], [bounds[1] - value]] if bounds else None
            look = {"color": colour, "marker": marker, "ms": 7, "ls": "", "capsize": 3}
            axis.errorbar(value, place + shift, xerr=reach, label=None if place else what, **look)
        residual = row["measured"][0] / row["predicted"][0] - 1
        spans = ", ".join(
            f"{what} " + _with_bounds(1e3 * row[what][0], row[what][1] and [1e3 * end for end in row[what][1]])
            for what in ("predicted", "measured")
        )
        sentences.append(f"{row['name']}: {spans}, residual {residual:+.1%} of the prediction.")
        right = max(1e3 * (row[what][1] or row[what][:1])[-1] for what in ("predicted", "measured"))
        beside(axis, f"{residual:+.1%}", (right, place), (8, -3), fontsize=9)
    axis.set_yticks(range(len(rows)), [row["name"] for row in rows])
    _in_ms(axis, ylim=(len(rows) - 0.4, -0.6), title="steps that the fit did not use")
    axis.set_xlim(0, 1.12 * axis.get_xlim()[1])
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    stamp(
        figure,
        "predicted",
        kind,
        note="intervals: noise of the fitted steps; for measurements, valid only for these minutes; right: residual",
    )
    figure.alt = (
        "Predicted steps with the noise of the fitted ones, and measured steps with intervals that are valid only for "
        "these minutes. " + " ".join(sentences)
    )
    return figure


def hidden(cases, kind="measured"):
    """All-reduce of a step within the backward pass and after it, one bar for each of `cases`: {name: rows of
    lessons.timeline.overlap}. Whiskers: intervals over the steps, valid only for these minutes."""
    figure, (axis,) = new_figure(1, width=8.0, height=1.1 + 0.45 * len(cases))
    sentences = []
    for place, (name, rows) in enumerate(cases.items()):
        within, later, total = (
            [1e3 * row[f"{key}_seconds"] for row in rows] for key in ("within", "behind", "allreduce")
        )
        inside, after = np.mean(within), np.mean(later)
        first = place == 0
        axis.barh(place, inside, 0.7, color=COLOURS[2], label="within the backward pass" if first else None)
        look = {"color": COLOURS[1], "hatch": "//", "edgecolor": "white"}
        axis.barh(place, after, 0.7, left=inside, label="after it" if first else None, **look)
        span = intervals.mean(total).interval
        if span:
            axis.errorbar(
                inside + after,
                place,
                xerr=[[inside + after - span[0]], [span[1] - inside - after]],
                color="black",
                capsize=3,
            )
        sentences.append(
            f"{name}: {inside:.3g} ms within the backward pass, {after:.3g} ms after it; "
            f"together {_with_bounds(inside + after, span)}."
        )
    axis.set_yticks(range(len(cases)), list(cases))
    axis.set(ylim=(len(cases) - 0.4, -0.6), xlabel="milliseconds of all-reduce per step", xlim=(0, None))
    axis.set_title("how much of the all-reduce is within the backward pass")
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    stamp(figure, kind, note="whiskers: intervals over steps, valid only for these minutes")
    figure.alt = "All-reduce of a step within the backward pass and after it. " + " ".join(sentences)
    return figure


STEP = {"backward": 0.1, "workers": 8}  # of the simulated step: seconds of its backward pass, and workers on a ring
BUCKETS = (0, 1, 4, 16, 64, 128)  # MiB


@lru_cache(256)
def messages(bucket, bandwidth, latency=50):
    """[(ready, begin, end, bytes)] of the messages of one step of ResNet50V2, in seconds from the start of the backward
    pass.

    Simulated: the gradients become ready at equal distances in the backward pass, the last layer's first. A message is
    a bucket (lessons.step_model.buckets) of up to `bucket` MiB, or one tensor if that is 0; it is ready with its
    last gradient and begins when the link is free. Links: bandwidth in Gbit/s, latency in microseconds of each of the
    ring's steps. Raises UseError.
    """
    sizes = networks()[NAMES[0]].tensor_bytes
    filled = np.cumsum(sizes[::-1])
    speed = 1e9 / 8 * number("bandwidth", bandwidth, above=True)
    found, free, sent = [], 0.0, 0
    for size in buckets(sizes, number("bucket", bucket) * 2**20):
        sent += size
        ready = STEP["backward"] * (np.searchsorted(filled, sent) + 1) / len(sizes)
        begin = max(free, ready)
        free = begin + ring_seconds(STEP["workers"], size, latency * 1e-6, speed)
        found.append((float(ready), float(begin), float(free), int(size)))
    return found


def overlap(bucket=16, bandwidth=25, latency=50, time=100):
    """Left: the backward pass of one step, its buckets and its messages, up to `time` per cent of the step. Right: how
    long messages take after the backward pass, over the bucket size. Arguments as of `messages`."""
    found, end = messages(bucket, bandwidth, latency), STEP["backward"]
    length = max(end, found[-1][2])
    now = length * number("time", time, most=100) / 100
    figure, (axis, curve) = canvas(2, 5.4, 3.4, left=1.2)
    lanes = (
        ([(0.0, end)], COLOURS[5], "backward pass"),
        ([(before, ready) for before, (ready, *_) in zip((0.0, *(m[0] for m in found)), found, strict=False)],
         COLOURS[4], "buckets fill"),
        ([(begin, stop) for _, begin, stop, _ in found], COLOURS[1], "messages"),
    )  # fmt: skip
    for row, (spans, colour, _) in enumerate(lanes):
        drawn = [(1e3 * a, 1e3 * min(b, now), row) for a, b in spans if a < now]
        axis.add_collection(boxes(drawn, colour, linewidth=0.4 if len(found) < 50 else 0.1))
    axis.axvline(1e3 * end, color="0.35", ls="--", lw=1)
    axis.set_yticks(range(3), [name for *_, name in lanes])
    axis.set(ylim=(2.6, -0.6), xlabel="milliseconds from the start of the backward pass", xlim=(0, 1e3 * length))
    count, gone = len(found), sum(stop <= now * (1 + 1e-9) for _, _, stop, _ in found)
    after = max(0.0, found[-1][2] - end)
    axis.set_title(f"{gone} of {count} messages sent; {1e3 * after:.3g} ms remain after the backward pass", fontsize=10)
    left = [1e3 * max(0.0, messages(size, bandwidth, latency)[-1][2] - end) for size in BUCKETS]
    curve.plot(range(len(BUCKETS)), left, color=COLOURS[0], marker="o")
    if bucket in BUCKETS:
        here = BUCKETS.index(bucket)
        curve.plot([here], [left[here]], "o", ms=14, mfc="none", mec=COLOURS[1], mew=2)
    curve.set_xticks(range(len(BUCKETS)), ["none", *map(str, BUCKETS[1:])])
    curve.set(xlabel="bucket size (MiB)", ylabel="after the backward pass (ms)", title="what lengthens the step")
    curve.set_ylim(0, 1.1 * max(left) + 1)
    total = sum(stop - begin for _, begin, stop, _ in found)
    said = "no buckets, each tensor a message" if not bucket else f"buckets of {bucket} MiB"
    text = (
        f"Simulated: the backward pass of ResNet50V2 takes {1e3 * end:.3g} ms on each of {STEP['workers']} workers; "
        f"{said}, {bandwidth} Gbit/s, {latency} us. At {1e3 * now:.3g} ms {gone} of {count} messages are sent. "
        f"All-reduce takes {1e3 * total:.3g} ms, {1e3 * after:.3g} ms of it after the backward pass. "
        "After it, by bucket size: "
    )
    pairs = zip(BUCKETS, left, strict=True)
    return done(
        figure, text + ", ".join(f"{size or 'none'}{' MiB' * bool(size)} {ms:.3g} ms" for size, ms in pairs) + "."
    )


def threshold(image_seconds, bandwidth, sizes, thresholds, kind="predicted"):
    """Time of the backward pass and of the all-reduce over the images of a worker, and where the two are equally long.

    image_seconds: of both passes for one image; bandwidth: bytes/s of an all-reduce; sizes: {name: bytes of the
    message}; thresholds: {name: batch at which both are equally long}.
    """
    figure, (axis,) = new_figure(1, width=7.0, height=3.8)
    last = 2 ** int(np.ceil(np.log2(4 * max(2, *thresholds.values()))))
    batches = np.geomspace(1, last, 50)
    axis.plot(batches, 1e3 * BACKWARD * image_seconds * batches, color=COLOURS[5], lw=2.5, label="backward pass")
    sentences = []
    for (name, size), colour, marker, dash in zip(
        sizes.items(), COLOURS[:4], MARKERS, ("--", ":", "-.", "-"), strict=False
    ):
        took, batch = 1e3 * size / bandwidth, thresholds[name]
        axis.axhline(took, color=colour, ls=dash, lw=2, label=f"all-reduce of {size / 1e6:.3g} MB ({name})")
        axis.plot([batch], [took], marker, color=colour, ms=9, label=f"threshold: {_digits(batch)} images")
        sentences.append(
            f"{name}: {size / 1e6:.3g} MB take {_digits(took)} ms; hidden from {_digits(batch)} images on."
        )
    ticks = [2**k for k in range(0, int(np.log2(last)) + 1, max(1, int(np.log2(last)) // 8))]
    logarithmic(axis, ticks)
    axis.set_yscale("log")
    axis.set(
        xlabel="images per worker and step",
        ylabel="milliseconds",
        title="where the backward pass can hide the exchange",
    )
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    stamp(figure, kind, note="two straight lines, from one step and one bandwidth")
    about = f"The backward pass takes {1e3 * BACKWARD * image_seconds:.3g} ms for each image. "
    figure.alt = (
        "Time of the backward pass and of the all-reduce over the batch, both axes logarithmic. "
        + about
        + " ".join(sentences)
    )
    return figure
