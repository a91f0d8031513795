"""The picture of lessons.timeline."""

import numpy as np

from labs.printed import several
from labs.show.figure import COLOURS, finished, new_figure
from lessons import timeline

DASHES = ("-", "--", "-.", (0, (1, 1)))


def figure(events, kind="measured"):
    """The last training step over milliseconds; kind: "measured" or "recorded".

    Above, curves of the megabytes that each rank has announced and that were averaged; below, lanes of the copies and
    the all-reduces. Raises UseError for a timeline without a finished step.
    """
    items, row = timeline.steps(events)[-1], timeline.summary(events)[-1]
    zero, end = timeline.begin_of(items), max(item.end for item in items)
    figure, (above, below) = new_figure(1, 9.0, 2.2, rows=2, sharex=True, height_ratios=(2.2, 1))

    def grow(points, **look):
        times, sizes = np.array(sorted(points)).T
        times = 1000 * (np.array([zero, *times, end]) - zero)
        above.step(times, np.cumsum([0, *sizes, 0]) / 1e6, where="post", lw=1.8, **look)

    def bar(lane, begin, end, **look):
        below.barh(lane, 1000 * (end - begin), left=1000 * (begin - zero), height=0.6, ec="white", lw=0.3, **look)

    for rank in sorted({rank for item in items for rank in item.arrivals}):
        announced = [(item.arrivals[rank], item.bytes) for item in items if rank in item.arrivals]
        look = {"color": COLOURS[(1, 2, 3, 5)[rank % 4]], "ls": DASHES[rank % 4]}  # the other colours stand for phases
        grow(announced, **look, label=f"rank {rank} has announced")
    grow([(item.end, item.bytes) for item in items], color=COLOURS[0], label="averaged over the ranks")
    for number, buffer in enumerate(sorted({item.buffer for item in items})):
        for name, begin, stop in next(item for item in items if item.buffer == buffer).phases:
            if timeline.is_copy(name):
                bar(0, begin, stop, color=COLOURS[4], hatch="//")
            elif timeline.is_reduction(name):
                bar(1, begin, stop, color=COLOURS[number % 2 * 5])
    size = f"{row['step']}: {row['tensors']} tensors, {row['bytes'] / 1e6:.3g} MB"
    above.set(ylabel="MB of gradients", ylim=(0, None), title=f"step {size}, {several(row['buffers'], 'message')}")
    below.set_yticks((0, 1), ("copies into and out\nof the buffer", "all-reduce,\nmessage by message"), fontsize=9)
    below.set(xlabel="milliseconds since the first announcement", xlim=(0, None), ylim=(1.5, -0.5))
    figure.legend(fontsize=9, loc="outside upper center", ncols=3)
    ms = {key: f"{1000 * row[f'{key}seconds']:.1f} ms" for key in ("", "negotiate_", "allreduce_", "copy_")}
    alt = (
        f"Horovod's timeline of one training step. Step {size}, messages: {row['buffers']}; {ms['']} from the first "
        f"announcement to the end, of which {ms['negotiate_']} some tensor waited for a rank, {ms['allreduce_']} "
        f"all-reduce, {ms['copy_']} copies."
    )
    for rank, seconds in row["waited"].items():
        alt += f" A tensor of rank {rank} waited {1000 * seconds:.1f} ms for the other ranks (median)."
    return finished(figure, alt, kind)
