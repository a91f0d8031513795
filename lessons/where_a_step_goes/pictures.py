"""Pictures for notebook 26: the parts of a measured step; and, with controls, how the backward pass hides messages and
how both networks would scale.

The last one is computed (lessons.where_a_step_goes.what_if). Nothing here runs TensorFlow, except the first call of
`what_if.networks`, in another process: facts of a network are kept (lessons.counts).
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np

from labs.measure import breakdown as measured
from labs.show.figure import COLOURS, MARKERS, finished, new_figure
from lessons.canvas import boxes, canvas, done
from lessons.drawing import VALID, bars, logarithmic, said
from lessons.reduce import ring_seconds
from lessons.step_model import fused
from lessons.where_a_step_goes.what_if import NAMES, WORKERS, efficiencies, first_below, fits, networks, steps

PARTS = {  # of a step, in the order of what_if.StepParts
    "computation": COLOURS[5],
    "waiting for the slowest": COLOURS[4],
    "all-reduce that is not hidden": COLOURS[1],
}


def scaling(network="ResNet152V2", batch=64, bandwidth=25, latency=30, precision="float32", fusion=128, accumulation=1):
    """Left: efficiency of both networks over the number of workers, and where it falls below 0.8. Right: the parts of a
    step of `network`, as shares. Arguments as of `steps`."""
    settings = {"batch": batch, "bandwidth": bandwidth, "latency": latency, "precision": precision}
    settings |= {"fusion": fusion, "accumulation": accumulation}
    figure, (axis, parts) = canvas(2, 5.2, 3.6)
    sentences = []
    axis.axhline(0.8, color="0.5", ls="--", lw=1)
    for place, (name, colour) in enumerate(zip(NAMES, COLOURS, strict=False)):
        values, below, room = efficiencies(name, **settings), first_below(name, **settings), fits(name, precision)
        text = f"{name}: {f'below 0.8 from {below}' if below else 'never below 0.8'}"
        text += f" (about {room} images fit)" if batch > room else ""
        look = {"color": colour, "marker": MARKERS[place], "ms": 5, "ls": ":" if batch > room else "-"}
        axis.plot(WORKERS, list(values.values()), label=text, **look)
        sentences.append(f"{text}; {values[64]:.2f} on 64, {values[4096]:.2f} on 4096 workers.")
    found = steps(network, **settings)
    shares = np.array([np.array(step) / sum(step) for step in found.values()])
    parts.stackplot(WORKERS, shares.T, colors=PARTS.values(), labels=PARTS, lw=0)
    for each in (axis, parts):
        each.legend(fontsize=9, loc="lower left", reverse=each is parts)
        logarithmic(each, WORKERS[::3])
        each.set(xlabel="workers", xlim=(0.9, 4800), ylim=(0, 1.05))
    axis.set(ylabel="efficiency S(p)/p", title="efficiency")
    parts.set(ylabel="share of a step", title=f"{network}: {1e3 * sum(found[1]):.3g} ms of computation")
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


def breakdown(results):
    """The parts of a step with their intervals: all of them on one scale, and those that are differences on their
    own. A part below 0 is drawn to the left of 0. results: of labs.measure.breakdown.measure."""
    figure, (axis, small) = new_figure(2, width=5.2, height=1.0 + 1.0 * len(results), sharey=True)
    parts = {found["model"]: measured.parts(found) for found in results}
    bars(axis, parts, "parts of a step")
    bars(small, parts, "only the differences, enlarged", without="computation")
    longest = max(abs(bar.get_width()) for bar in small.patches)
    low, high = small.get_xlim()
    small.set_xlim(max(low, -2 * longest), min(high, 2 * longest))  # a long whisker leaves the bars their size
    about = f"Parts of a step on {measured.WORKERS} workers, with {VALID}. "
    note, kinds = f"whiskers: {VALID}; long ones are cut", (found["kind"] for found in results)
    return finished(figure, about + said(parts), *kinds, note=note)


STEP = {"backward": 0.1, "workers": 8}  # of the simulated step: seconds of its backward pass, and workers on a ring
BUCKETS = (0, 1, 4, 16, 64, 128)  # MiB


@lru_cache(256)
def messages(bucket, bandwidth, latency=50):
    """[(ready, begin, end, bytes)] of the messages of one step of ResNet50V2, in seconds from the start of the backward
    pass.

    Simulated: the gradients become ready at equal distances in the backward pass, the last layer's first. A message is
    a bucket of up to `bucket` MiB, or one tensor if that is 0; it is ready with its last gradient and begins when the
    link is free. Links: bandwidth in Gbit/s, latency in microseconds of each of the ring's steps.
    """

    def all_reduce(size):
        return ring_seconds(STEP["workers"], size, latency * 1e-6, bandwidth * 1e9 / 8)

    sizes = networks()[NAMES[0]].tensor_bytes[::-1]
    buckets = [size for *_, size in fused([(0.0, size) for size in sizes], bucket * 2**20)]
    tensors = np.searchsorted(np.cumsum(sizes), np.cumsum(buckets)) + 1  # that are ready with each bucket
    ready = STEP["backward"] * tensors / len(sizes)
    sent = fused(zip(ready, buckets, strict=True), 0, all_reduce)
    return [(when, *message) for when, message in zip(ready, sent, strict=True)]


def overlap(bucket=16, bandwidth=25, latency=50):
    """Left: the backward pass of one step, its buckets and its messages. Right: how long messages take after the
    backward pass, over the bucket size. Arguments as of `messages`."""
    found, end = messages(bucket, bandwidth, latency), STEP["backward"]
    left = [1e3 * (messages(size, bandwidth, latency)[-1][2] - end) for size in BUCKETS]
    here = BUCKETS.index(bucket)
    figure, (axis, curve) = canvas(2, 5.4, 3.4, left=1.2)
    lanes = {
        "backward pass": (COLOURS[5], [(0.0, end)]),
        "buckets fill": (COLOURS[4], pairwise((0.0, *(ready for ready, *_ in found)))),
        "messages": (COLOURS[1], [(begin, stop) for _, begin, stop, _ in found]),
    }
    for row, (colour, spans) in enumerate(lanes.values()):
        drawn = [(1e3 * a, 1e3 * b, row) for a, b in spans]
        axis.add_collection(boxes(drawn, colour, linewidth=0.4 if len(found) < 50 else 0.1))
    axis.axvline(1e3 * end, color="0.35", ls="--", lw=1)
    axis.set_yticks(range(3), lanes)
    axis.set(ylim=(2.6, -0.6), xlabel="milliseconds from the start of the backward pass", xlim=(0, 1e3 * found[-1][2]))
    axis.set_title(f"{len(found)} messages; the last ends {left[here]:.3g} ms after the backward pass", fontsize=10)
    curve.plot(range(len(BUCKETS)), left, color=COLOURS[0], marker="o")
    curve.plot([here], [left[here]], "o", ms=14, mfc="none", mec=COLOURS[1], mew=2)
    names = ["none", *map(str, BUCKETS[1:])]
    curve.set_xticks(range(len(BUCKETS)), names)
    curve.set(xlabel="bucket size (MiB)", ylabel="after the backward pass (ms)", title="what lengthens the step")
    curve.set_ylim(0, 1.1 * max(left) + 1)
    said = f"buckets of {bucket} MiB" if bucket else "no buckets, each tensor a message"
    total = sum(stop - begin for _, begin, stop, _ in found)
    others = ", ".join(f"{size} {ms:.3g} ms" for size, ms in zip(names, left, strict=True))
    text = (
        f"Simulated: the backward pass of ResNet50V2 takes {1e3 * end:.3g} ms on each of {STEP['workers']} workers; "
        f"{said}, {bandwidth} Gbit/s, {latency} us. All-reduce takes {1e3 * total:.3g} ms in "
        f"{len(found)} messages, {left[here]:.3g} ms of it after the backward pass; by MiB of a bucket: {others}."
    )
    return done(figure, text)
