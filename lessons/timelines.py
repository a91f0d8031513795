"""The pictures of lessons.timeline: rows for few tensors, lanes for many."""

import numpy as np

from labs.printed import several
from labs.show.figure import COLOURS, MARKERS, finished, new_figure
from lessons import timeline

ROWS = 24  # more tensors than these are drawn as lanes
REDUCE, COPY = {"color": COLOURS[0], "label": "all-reduce"}, {"color": COLOURS[4], "hatch": "//"}
DASHES = ("-", "--", "-.", (0, (1, 1)))


def _style(name):
    if timeline.is_reduction(name):
        return REDUCE
    if timeline.is_copy(name):
        return COPY | {"label": "copy into and out of the buffer"}
    return {"color": "0.55", "hatch": "..", "label": name.lower()}


def _bar(axis, row, begin, end, zero, **look):
    width, left = 1000 * (end - begin), 1000 * (begin - zero)
    axis.barh(row, width, left=left, height=0.6, edgecolor="white", linewidth=0.3, **look)


def _colour(rank):
    return COLOURS[(1, 2, 3, 5)[rank % 4]]  # the other colours stand for phases


def _rows(items, zero):
    """One row per tensor, sorted by buffer; tensors of one buffer stand on a common ground."""
    items = sorted(items, key=lambda item: (item.buffer, item.tensor))
    figure, (axis,) = new_figure(1, width=9.0, height=1.4 + 0.3 * len(items))
    seconds = max(item.end for item in items) - zero
    for number, item in enumerate(items):
        if item.buffer % 2 == 0:
            axis.axhspan(number - 0.5, number + 0.5, color="0.93", zorder=0)
        _bar(axis, number, *item.negotiated, zero, color="0.78", label="waiting for a rank")
        for name, start, stop in item.phases:
            seen = {} if stop - start >= seconds / 300 else {"label": ""}  # a thinner bar needs no key
            _bar(axis, number, start, stop, zero, **_style(name) | seen)
        for rank, when in sorted(item.arrivals.items()):
            look = {"color": _colour(rank), "marker": MARKERS[rank % len(MARKERS)], "ms": 6, "mec": "white", "mew": 0.5}
            look |= {"linestyle": "", "clip_on": False, "zorder": 5, "label": f"rank {rank} announces it"}
            axis.plot(1000 * (when - zero), number, **look)
    axis.set_yticks(range(len(items)), [f"{item.tensor}, {_size(item.bytes)}" for item in items], fontsize=9)
    axis.set_ylim(len(items) - 0.5, -0.5)
    for number, buffer in enumerate(sorted({item.buffer for item in items}), 1):
        members = [place for place, item in enumerate(items) if item.buffer == buffer]
        look = {"fontsize": 8, "ha": "right", "va": "center", "bbox": {"color": "white", "alpha": 0.7, "pad": 1}}
        axis.text(0.995, np.mean(members), f"message {number}", transform=axis.get_yaxis_transform(), **look)
    axis.set_xlim(0, 1250 * seconds)  # room for the numbers of the messages
    marks, names = axis.get_legend_handles_labels()
    keys = dict(zip(names, marks, strict=True))  # each once
    axis.legend(keys.values(), keys, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _size(count):
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB" if count >= 1e3 else f"{count} B"


def _lanes(items, zero):
    """Above, the megabytes announced by each rank and averaged; below, lanes of the copies and the all-reduces."""
    figure, (above, axis) = new_figure(1, 9.0, 2.2, rows=2, sharex=True, height_ratios=(2.2, 1))
    for rank in sorted({rank for item in items for rank in item.arrivals}):
        announced = [(item.arrivals[rank], item.bytes) for item in items if rank in item.arrivals]
        _grow(above, announced, zero, color=_colour(rank), ls=DASHES[rank % 4], label=f"rank {rank} has announced")
    _grow(above, [(item.end, item.bytes) for item in items], zero, color=COLOURS[0], label="averaged over the ranks")
    above.set(ylabel="MB of gradients", ylim=(0, None))
    above.legend(fontsize=9, loc="lower right")
    for number, buffer in enumerate(sorted({item.buffer for item in items})):
        for name, begin, end in next(item for item in items if item.buffer == buffer).phases:
            if timeline.is_copy(name):
                _bar(axis, 0, begin, end, zero, **COPY)
            elif timeline.is_reduction(name):
                _bar(axis, 1, begin, end, zero, color=COLOURS[number % 2 * 5])
    axis.set_yticks((0, 1), ("copies into and out\nof the buffer", "all-reduce,\nmessage by message"), fontsize=9)
    axis.set(xlim=(0, None), ylim=(1.5, -0.5))
    return figure


def _grow(axis, points, zero, **look):
    """A curve of the megabytes so far, from (seconds, bytes); it begins at zero."""
    times, sizes = np.array(sorted(points)).T
    axis.step([0, *1000 * (times - zero)], [0, *np.cumsum(sizes) / 1e6], where="post", lw=1.8, **look)


def figure(events, kind="measured"):
    """The last training step over milliseconds; kind: "measured" or "recorded".

    Up to ROWS tensors get a row each, with the tensors of one message side by side on a common ground. More are drawn
    as curves, the megabytes that each rank has announced, above lanes of the copies and the all-reduces.
    Raises TimelineError for a timeline without a finished step.
    """
    items, row = timeline.steps(events)[-1], timeline.summary(events)[-1]
    draw = _rows if len(items) <= ROWS else _lanes
    drawn = draw(items, timeline.begin_of(items))
    size = f"{row['step']}: {row['tensors']} tensors, {row['bytes'] / 1e6:.3g} MB"
    drawn.axes[0].set_title(f"step {size}, {several(row['buffers'], 'message')}")
    drawn.axes[-1].set_xlabel("milliseconds since the first announcement")
    ms = {key: f"{1000 * row[f'{key}seconds']:.1f} ms" for key in ("", "negotiate_", "allreduce_", "copy_")}
    alt = (
        f"Horovod's timeline of one training step. Step {size}, messages: {row['buffers']}; {ms['']} from the first "
        f"announcement to the end, of which {ms['negotiate_']} some tensor waited for a rank, {ms['allreduce_']} "
        f"all-reduce, {ms['copy_']} copies."
    )
    for rank, seconds in row["waited"].items():
        alt += f" A tensor of rank {rank} waited {1000 * seconds:.1f} ms for the other ranks (median)."
    return finished(drawn, alt, kind)
