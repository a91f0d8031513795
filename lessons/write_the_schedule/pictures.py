"""The picture of a schedule: ranks over time, their memory below, and what each of them holds at the cursor.

All but the cursor and the words below is drawn once and kept as pixels, so that a move takes less than a blink.
"""

import io
import re
import textwrap

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import blended_transform_factory
from PIL import Image, ImageDraw

from labs.printed import grouped
from labs.show.figure import COLOURS, MARKERS, finished, new_figure
from lessons.canvas import boxes
from lessons.write_the_schedule.engine import Event
from lessons.write_the_schedule.puzzles import sizes

KINDS = {  # word: (colour, pattern, name in the legend)
    "forward": (COLOURS[5], "", "forward"),
    "backward": (COLOURS[4], "///", "backward"),
    "backward_inputs": (COLOURS[4], "\\\\\\", "backward: inputs"),
    "backward_weights": (COLOURS[3], "xx", "backward: weights"),
    "update": (COLOURS[2], "..", "update"),
    "load": ("0.75", "++", "load"),
    "wait": ("white", "////", "idle"),
}
_KINDS = ("weights", "optimizer", "gradient", "micro-batch", "activation", "error")
_PARTS = re.compile(r"\(gradient\(\d+, ([\d, ]+)\)")  # of send(gradient(0, 2, 3), to=1)
_MOMENTS, _COLUMNS = 400, 140  # of the slider; characters in a line below the picture
_WRAPPED = {"width": _COLUMNS, "subsequent_indent": " " * 7, "break_on_hyphens": False, "placeholder": " \u2026"}
_IN_A_ROW = 8  # names in a key
_KEY = {"fontsize": 8, "frameon": False, "borderpad": 0, "handlelength": 1.6, "columnspacing": 1.0}


def moving(played, title):
    """(draw, moments): draw(time) gives the picture with its cursor there; moments: where something begins or ends."""
    ends = {round(time, 4) for each in (*played.events, *played.transfers) for time in (each.begin, each.end)}
    moments = sorted(ends | {0.0})
    moments = moments[:: 1 + len(moments) // _MOMENTS]
    picture, peak = _Picture(played, title), _peak(played)
    first = min(moments, key=lambda moment: abs(moment - peak))

    def draw(time=first):
        return picture.at(time)

    return draw, moments if len(moments) > 1 else [0.0, 1.0]  # a slider also where no rank does anything yet


def _peak(played):
    """The moment at which a rank holds most."""
    rank = int(np.argmax(played.peaks))
    return max(played.memory(rank), key=lambda each: each[1], default=(0.0, 0.0))[0]


class _Picture:
    """One Figure, in which the cursor moves."""

    def __init__(self, played, title):
        self.played, ranks = played, played.case.ranks
        self.length = played.time or 1.0
        peaks = ", ".join(f"rank {rank} {peak:.4g} MB" for rank, peak in enumerate(played.peaks))
        self.about = f"Schedule for {sizes(played.case)}: {played.time:.4g} ms, {use(played)}. Peak memory: {peaks}. "
        self.about += f"Sent by a rank: {max(played.sent):.4g} MB."
        self.about += f" Not right: {played.problem}" if played.problem else ""
        times = [_peak(played), *np.linspace(0, self.length, 9)]  # what is told then below the picture is never cut
        told = [[textwrap.wrap(told_of(played, rank, time), **_WRAPPED) for time in times] for rank in range(ranks)]
        self.lines = [max(map(len, own)) for own in told]
        rows = min(0.42 * ranks, 1.9) + 0.15, 0.8, 0.145 * sum(self.lines) + 0.25  # their heights in inches
        high = sum(rows) + 1.5 + 0.16 * -(-ranks // _IN_A_ROW)
        self.figure, (*self.axes, below) = new_figure(1, 9.6, high / 3, rows=3, height_ratios=rows)
        below.set_axis_off()
        look = {"fontsize": 7.5, "family": "monospace", "va": "top", "linespacing": 1.35, "animated": True}
        place = blended_transform_factory(self.figure.transFigure, below.transAxes)
        self.words = below.text(0.01, 1, "", transform=place, in_layout=False, **look)
        self._timeline(self.axes[0], title)
        self._memory(self.axes[1])
        self.cursors = [axis.axvline(0, color="black", lw=1.5, animated=True) for axis in self.axes]
        self.drawn, self.still = FigureCanvasAgg(self.figure), None

    def _timeline(self, axis, title):
        played = self.played
        ends = {event.rank: event.end for event in sorted(played.events, key=lambda event: event.end)}
        over = [Event(rank, end, played.time, "wait", "") for rank, end in ends.items() if end < played.time]
        computes = any(event.word != "wait" for event in played.events) or not played.transfers
        drawn = [*played.events, *over] if computes else []  # where only messages are sent, all would be striped
        by_word = grouped((event.word, event) for event in drawn)
        for word in filter(by_word.get, KINDS):
            group, (colour, pattern, name) = by_word[word], KINDS[word]
            look = {"hatch": pattern, "edgecolor": "0.55" if word == "wait" else "0.25", "linewidth": 0.4}
            axis.add_collection(boxes([(e.begin, e.end, e.rank) for e in group], colour, label=name, **look))
            for event in group if word not in ("wait", "load", "update") else ():
                if event.end - event.begin > 0.015 * self.length:
                    middle = (event.begin + event.end) / 2
                    layer, batch = re.findall(r"\d+", event.text)[:2]
                    label = batch if played.case.start == "stages" else layer
                    axis.text(middle, event.rank, label, ha="center", va="center", fontsize=8,
                              bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85})  # fmt: skip
        sent = [each for each in played.transfers if each.word == "send"]
        if joint := [(rank + 0.4, t.begin, t.end) for t in played.transfers if t not in sent for rank in t.ranks]:
            axis.hlines(*np.transpose(joint), COLOURS[0], lw=4, label="exchange of all ranks")
        if sent:
            arrows = np.array([(m.begin, m.ranks[0], m.end - m.begin, m.ranks[1] - m.ranks[0]) for m in sent])
            look = {"angles": "xy", "scale_units": "xy", "scale": 1, "units": "dots", "zorder": 2}
            axis.quiver(*arrows.T, **look, width=1, headwidth=7, headlength=7, headaxislength=7)
            axis.plot([], [], color="black", lw=0.7, marker="v", ms=4, label="message")
            self._parts(axis, sent)
        for (rank, _, other), shift in zip(played.cycle, range(99), strict=False):
            x = self.length * (1.01 + 0.008 * shift)
            arrow = {"arrowstyle": "->", "color": COLOURS[1], "lw": 2, "shrinkA": 0, "shrinkB": 0}
            axis.annotate("", (x, other), xytext=(x, rank), arrowprops=arrow)
        axis.set_yticks(range(played.case.ranks), [f"rank {rank}" for rank in range(played.case.ranks)])
        axis.set(axisbelow=True, ylim=(played.case.ranks - 0.45, -0.55))
        axis.set_xlim((0, self.length * (1.06 if played.cycle else 1.005)))
        self.axes[1].set_xlim(axis.get_xlim())
        axis.tick_params(labelbottom=False)
        ends = f"stopped at {played.time:.4g} ms" if played.problem else f"{played.time:.4g} ms, {use(played)}"
        axis.set_title(f"{title}: {'deadlock, ' * bool(played.cycle)}{ends}", pad=22)
        if played.events or played.transfers:
            axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=_IN_A_ROW, **_KEY)

    def _parts(self, axis, sent):
        """The parts that messages carry, on the row of the rank that sends them, if there is room for all of them."""
        told = [(each, match[1]) for each in sent if (match := _PARTS.search(each.text))]
        if any(each.end - each.begin < (0.012 + 0.009 * len(parts)) * self.length for each, parts in told):
            return
        for each, parts in told:
            axis.text(each.begin + 0.008 * self.length, each.ranks[0], parts, ha="left", va="center", fontsize=7.5,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85})  # fmt: skip

    def _memory(self, axis):
        for rank in range(self.played.case.ranks):
            steps = {round(time, 6): used for time, used in self.played.memory(rank)}  # the last one of each moment
            if steps:
                x, y = zip(*steps.items(), strict=True)
                marker = MARKERS[(rank + rank // 6) % 6]  # with more than 6 ranks, a colour comes again
                look = {"color": COLOURS[rank % 6], "marker": marker, "markevery": 0.13 + 0.01 * rank, "ms": 4}
                axis.step([*x, self.length], [*y, y[-1]], where="post", lw=1.2, label=f"rank {rank}", **look)
        axis.set(xlabel="time (ms)", ylabel="memory (MB)")
        axis.set_ylim(0, 1.1 * max([1e-9, *self.played.peaks]))
        if axis.lines:
            axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=_IN_A_ROW, **_KEY)

    def at(self, time):
        """The Figure with its cursor at a time."""
        for cursor in self.cursors:
            cursor.set_xdata([time, time])
        told = [told_of(self.played, rank, time) for rank in range(self.played.case.ranks)]
        lines = [textwrap.fill(text, max_lines=most, **_WRAPPED) for text, most in zip(told, self.lines, strict=True)]
        self.words.set_text("\n".join([f"at {time:.4g} ms", *lines]))
        self.figure.png = self._png
        return finished(self.figure, f"{self.about} At {time:.4g} ms: {'; '.join(told)}.", "simulated")

    def _png(self):
        """The figure as PNG bytes: what is not `animated` is drawn once, and cursors and words upon it; the words by
        Pillow, which is ten times as fast."""
        if self.still is None:
            self.drawn.draw()
            self.still = self.drawn.copy_from_bbox(self.figure.bbox)
        self.drawn.restore_region(self.still)
        for cursor in self.cursors:
            self.figure.draw_artist(cursor)
        image = Image.fromarray(np.array(self.drawn.buffer_rgba()))
        x, y = self.words.get_transform().transform(self.words.get_position())
        pen, buffer = ImageDraw.Draw(image), io.BytesIO()
        pen.multiline_text((x, image.height - y), self.words.get_text(), "black", font_size=12, spacing=2)
        image.quantize(128, Image.Quantize.FASTOCTREE).save(buffer, "png", compress_level=1)
        return buffer.getvalue()


def use(played):
    """How long the ranks are idle, and how long their links are in use, in words."""
    ranks = played.case.ranks
    used = sum((each.end - each.begin) * (1 if each.word == "send" else ranks) for each in played.transfers)
    return f"idle {played.idle:.0%}, links in use {used / (ranks * (played.time or 1.0)):.0%}"


def told_of(played, rank, time):
    """What a rank does and holds at a time, in words."""
    event = next((e for e in played.events if e.rank == rank and e.begin <= time + 1e-9 < e.end), None)
    stuck = [f"waits in {text} for rank {other}" for place, text, other in played.cycle if place == rank]
    if event is None:
        does = stuck[0] if stuck else "stands still" if played.problem else "has ended"
    elif event.word == "wait":
        does = f"waits{event.text.removeprefix('wait')}" if event.text.startswith("wait") else f"waits in {event.text}"
    else:
        does = event.text
    held, now = {}, played.holds(rank, time)
    for (kind, layer, batch), size in now.items():
        whole, place = played.case.size(kind, layer), (layer,) if batch is None else (layer, batch)
        if layer < 0:
            kind, place = "micro-batch", (batch,)
        held.setdefault(kind, ([], []))[size < 0.999 * whole].append(place)
    told = []
    for kind in sorted(held, key=_KINDS.index):
        whole, parts = map(_ranges, held[kind])
        texts = [whole] * bool(whole) + [f"parts of {parts}"] * bool(parts)
        told.append(f"{kind} {' and '.join(texts)}")
    return f"rank {rank} {does}; holds {sum(now.values()):.4g} MB: {', '.join(told) or 'nothing'}"


def _ranges(places):
    """Places as they are read: 0-5 of layers, (0-5, 2) of layers for a micro-batch, (2, 0-5) of a layer for some."""
    if not places or len(places[0]) == 1:
        return " and ".join(_runs([place for (place,) in places]))
    layers, batches = grouped(places), grouped((batch, layer) for layer, batch in places)
    if len(layers) <= len(batches):
        return " ".join(f"({layer}, {' '.join(_runs(of))})" for layer, of in sorted(layers.items()))
    return " ".join(f"({' '.join(_runs(of))}, {batch})" for batch, of in sorted(batches.items()))


def _runs(numbers):
    numbers = np.sort(numbers)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs if len(run)]
