"""The pictures of lessons.timeline: rows for few tensors, lanes for many."""

from matplotlib.patches import Patch

from labs.printed import several
from labs.show.figure import COLOURS, MARKERS, finished, new_figure, stamp
from lessons import timeline

ROWS = 24  # more tensors than these are drawn as lanes
WAIT, COPY, REDUCE, OTHER = "0.78", COLOURS[4], COLOURS[0], "0.55"


def _style(name):
    if timeline.is_reduction(name):
        return REDUCE, ""
    return (COPY, "//") if timeline.is_copy(name) else (OTHER, "..")


def _bar(axis, row, begin, end, zero, colour, hatch=""):
    look = {"height": 0.6, "color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.3}
    axis.barh(row, 1000 * (end - begin), left=1000 * (begin - zero), **look)


def _colour(rank):
    return COLOURS[(1, 2, 3, 5)[rank % 4]]  # the other colours stand for phases


def _mark(rank):
    return {"linestyle": "", "color": _colour(rank), "marker": MARKERS[rank % len(MARKERS)], "ms": 6}


def _keys(axis, items, seen):
    """Legend: ranks' marks and the colours of the phases that take `seen` seconds or more."""
    keys = [Patch(color=WAIT, label="waiting for a rank")]
    names = {name for item in items for name, begin, end in item.phases if end - begin >= seen}
    if any(map(timeline.is_copy, names)):
        keys.append(Patch(facecolor=COPY, hatch="//", edgecolor="white", label="copy into and out of the buffer"))
    keys.append(Patch(color=REDUCE, label="all-reduce"))
    if others := sorted(name for name in names if _style(name)[0] == OTHER):
        keys.append(Patch(facecolor=OTHER, hatch="..", edgecolor="white", label=", ".join(others).lower()))
    for rank in sorted({rank for item in items for rank in item.arrivals}):
        keys += axis.plot([], [], **_mark(rank), label=f"rank {rank} announces it")
    return keys


def _finish(figure, axis, row, kind):
    size = f"{row['step']}: {row['tensors']} tensors, {row['bytes'] / 1e6:.3g} MB"
    ms = {key: f"{1000 * row[f'{key}seconds']:.1f} ms" for key in ("", "negotiate_", "allreduce_", "copy_")}
    axis.set_xlabel("milliseconds since the first announcement")
    figure.axes[0].set_title(f"step {size}, {several(row['buffers'], 'message')}")
    waited = [
        f" A tensor of rank {rank} waited {1000 * seconds:.1f} ms for the other ranks (median)."
        for rank, seconds in row["waited"].items()
    ]
    alt = (
        f"Horovod's timeline of one training step. Step {size}, messages: {row['buffers']}; {ms['']} from the first "
        f"announcement to the end, of which {ms['negotiate_']} some tensor waited for a rank, {ms['allreduce_']} "
        f"all-reduce, {ms['copy_']} copies.{''.join(waited)}"
    )
    return finished(figure, alt, kind)


def rows(items, row, zero, kind):
    """One row per tensor, sorted by buffer; tensors of one buffer stand on a common ground."""
    items = sorted(items, key=lambda item: (item.buffer, item.tensor))
    figure, (axis,) = new_figure(1, width=9.0, height=1.4 + 0.3 * len(items))
    for number, item in enumerate(items):
        if item.buffer % 2 == 0:
            axis.axhspan(number - 0.5, number + 0.5, color="0.93", zorder=0)
        begin, end = item.negotiated or (item.begin, item.begin)
        _bar(axis, number, begin, end, zero, WAIT)
        for name, start, stop in item.phases:
            _bar(axis, number, start, stop, zero, *_style(name))
        for rank, when in sorted(item.arrivals.items()):
            axis.plot(1000 * (when - zero), number, **_mark(rank), mec="white", mew=0.5, clip_on=False, zorder=5)
    axis.set_yticks(range(len(items)), [f"{item.tensor}, {_size(item.bytes)}" for item in items], fontsize=9)
    axis.set_ylim(len(items) - 0.5, -0.5)
    buffers = sorted({item.buffer for item in items})
    for number, name in enumerate(buffers, 1):
        members = [place for place, item in enumerate(items) if item.buffer == name]
        look = {"fontsize": 8, "ha": "right", "va": "center", "bbox": {"color": "white", "alpha": 0.7, "pad": 1}}
        place = 0.995, sum(members) / len(members)
        axis.text(*place, f"message {number}", transform=axis.get_yaxis_transform(), **look)
    axis.set_xlim(0, 1250 * row["seconds"])  # room for the numbers of the messages
    keys = _keys(axis, items, row["seconds"] / 300)  # a thinner bar is not seen
    axis.legend(handles=keys, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return _finish(figure, axis, row, kind)


def _size(count):
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB" if count >= 1e3 else f"{count} B"


def lanes(items, row, zero, kind):
    """Above, the megabytes announced by each rank and averaged; below, lanes of the copies and the all-reduces."""
    figure, (above, axis) = new_figure(1, 9.0, 2.2, rows=2, sharex=True, height_ratios=(2.2, 1))
    ranks = sorted({rank for item in items for rank in item.arrivals})
    curves = {f"rank {rank} has announced": [(item.arrivals.get(rank), item.bytes) for item in items] for rank in ranks}
    if not ranks:
        known = [item for item in items if item.negotiated]
        curves = {
            "some rank has announced": [(item.negotiated[0], item.bytes) for item in known],
            "all ranks have announced": [(item.negotiated[1], item.bytes) for item in known],
        }
    curves["averaged over the ranks"] = [(item.end, item.bytes) for item in items]
    dashes = ("-", "--", "-.", (0, (1, 1)))
    for number, (name, points) in enumerate(curves.items()):
        mine = name.startswith("averaged")
        colour = REDUCE if mine else _colour(number)
        times, sizes = _grown(points, zero)
        above.step(times, sizes, where="post", color=colour, ls="-" if mine else dashes[number % 4], lw=1.8, label=name)
    above.set(ylabel="MB of gradients", ylim=(0, None))
    above.legend(fontsize=9, loc="lower right")
    for number, buffer in enumerate(sorted({item.buffer for item in items})):
        for name, begin, end in next(item for item in items if item.buffer == buffer).phases:
            if timeline.is_copy(name):
                _bar(axis, 0, begin, end, zero, COPY, "//")
            elif timeline.is_reduction(name):
                _bar(axis, 1, begin, end, zero, (REDUCE, COLOURS[5])[number % 2])
    axis.set_yticks((0, 1), ("copies into and out\nof the buffer", "all-reduce,\nmessage by message"), fontsize=9)
    axis.set_ylim(1.5, -0.5)
    axis.set_xlim(0, None)
    return _finish(figure, axis, row, kind)


def _grown(points, zero):
    """Milliseconds and megabytes so far, from (seconds, bytes); begins at zero."""
    times, sizes, total = [0.0], [0.0], 0
    for time, size in sorted(point for point in points if point[0] is not None):
        total += size
        times.append(1000 * (time - zero))
        sizes.append(total / 1e6)
    return times, sizes


def figure(events, kind="measured"):
    """The last training step over milliseconds, stamped where its file was cut; kind: "measured" or "recorded".

    Up to ROWS tensors get a row each, with the tensors of one message side by side on a common ground. More are drawn
    as curves, the megabytes that each rank has announced, above lanes of the copies and the all-reduces.
    Raises TimelineError for a timeline without a finished step.
    """
    items = timeline.steps(events)[-1]
    draw = rows if len(items) <= ROWS else lanes
    drawn = draw(items, timeline.summary(events)[-1], timeline.begin_of(items), kind)
    if not getattr(events, "complete", True):
        stamp(drawn, kind, note=timeline.CUT)
        drawn.alt += f" Mind that {timeline.CUT}."
    return drawn
