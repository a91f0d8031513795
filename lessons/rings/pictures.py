"""Pictures of notebook 02b: the ring, step by step, and what it costs beside servers.

Made as those of lessons.basic_concepts.pictures: one Figure with `figure.alt`, from values that a control may move.
"""

import numpy as np

from labs.show.figure import COLOURS, MARKERS
from labs.simulate import reduce
from labs.simulate.given import SimulationError, number, whole
from lessons.canvas import canvas, done
from lessons.drawing import logarithmic


def ring(workers=4, step=0):
    """The ring all-reduce after a step: who sent which chunk to whom, and how many gradients each chunk sums.

    Each worker begins with ones, so a number says how many workers' gradients are in that chunk.
    """
    ones = np.ones((whole("workers", workers), workers), int)
    steps = reduce.ring(ones)
    step = min(whole("step", step, 0), len(steps))
    phase, sends, state = steps[step - 1] if step else ("before the first step", [], ones)
    figure, (circle, axis) = canvas(2, 4.1, 3.9, left=0.75, right=0.1)
    turns = np.pi / 2 - 2 * np.pi * np.arange(workers) / workers
    places = np.stack([np.cos(turns), np.sin(turns)], 1)
    circle.set_axis_off()
    circle.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal")
    for send in sends:
        middle = places[send.sender] + places[send.receiver] if workers > 2 else places[send.sender][::-1]
        x, y = middle / np.linalg.norm(middle) * (1.3 if workers > 2 else 0.5)
        circle.text(x, y, f"chunk {send.chunk}", ha="center", va="center", fontsize=9, color=COLOURS[1])
    if sends:
        begin, end = (places[[getattr(send, who) for send in sends]] for who in ("sender", "receiver"))
        away = (end - begin) / np.linalg.norm(end - begin, axis=1, keepdims=True)
        side = 0.12 * away[:, ::-1] * (-1, 1) if workers == 2 else 0
        begin, end = begin + 0.24 * away + side, end - 0.24 * away + side
        circle.quiver(*begin.T, *(end - begin).T, angles="xy", scale_units="xy", scale=1, width=0.01, color=COLOURS[1])
    circle.plot(*places.T, "o", ms=24, color=COLOURS[0])
    for place, (x, y) in enumerate(places):
        circle.text(x, y, place, ha="center", va="center", color="white", fontweight="bold")
    circle.set_title("who sends what to whom" if sends else "the workers")
    sent = {(send.receiver, send.chunk) for send in sends}
    axis.grid(False)
    axis.imshow(state, cmap="cividis", vmin=0, vmax=workers, aspect="auto")
    for (worker, chunk), value in np.ndenumerate(state):
        colour = "black" if value > workers / 2 else "white"
        weight, size = ("bold", 13) if (worker, chunk) in sent else ("normal", 9)
        axis.text(chunk, worker, value, ha="center", va="center", color=colour, fontweight=weight, fontsize=size)
    axis.set(xlabel="chunk of the gradient", ylabel="worker", title=f"step {step} of {len(steps)}: {phase}")
    axis.set(xticks=range(workers), yticks=range(workers))
    full = int((state == workers).sum())
    moved = "; ".join(f"worker {send.sender} sends chunk {send.chunk} to {send.receiver}" for send in sends)
    when = f"Ring all-reduce of {workers} workers after step {step} of {len(steps)}, {phase}"
    moved = moved or "nothing is sent yet"
    return done(figure, f"{when}: {moved}. {full} of {workers * workers} chunks are complete sums.")


def costs(megabytes=94.0, gigabytes_per_second=10.0, microseconds=10.0, servers=4):
    """Seconds of one exchange of the gradient over the number of workers: ring, one server, several servers."""
    counts = [2**k for k in range(1, 11)]
    size, latency = number("megabytes", megabytes) * 1e6, number("microseconds", microseconds, least=0) * 1e-6
    bandwidth = number("gigabytes_per_second", gigabytes_per_second, above=True) * 1e9
    if not (size or latency):
        raise SimulationError("megabytes and microseconds are both 0: nothing takes time. Give one of them.")
    lines = {
        "one server": [reduce.server_seconds(k, size, latency, bandwidth) for k in counts],
        f"{servers} servers": [reduce.server_seconds(k, size, latency, bandwidth, servers) for k in counts],
        "ring": [reduce.ring_seconds(k, size, latency, bandwidth) for k in counts],
    }
    figure, (axis,) = canvas(width=7.4, height=3.6, left=1.0, right=1.4)
    for (name, values), colour, marker in zip(lines.items(), COLOURS, MARKERS, strict=False):
        axis.plot(counts, values, color=colour, marker=marker, label=name)
    ticks = ("10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s")
    logarithmic(axis, counts, {10.0**power: tick for power, tick in enumerate(ticks, -5)})
    axis.set(xlabel="workers", ylabel="time of one exchange", ylim=(1e-5, 60))
    axis.set_title(f"{megabytes:g} MB, {gigabytes_per_second:g} GB/s, {microseconds:g} µs per message")
    axis.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    ends = "; ".join(f"{name} {1000 * values[-1]:.3g} ms" for name, values in lines.items())
    link = f"{gigabytes_per_second:g} GB/s and {microseconds:g} microseconds a message"
    what = f"Time to exchange {megabytes:g} MB over the number of workers, {link}."
    return done(figure, f"{what} On {counts[-1]} workers: {ends}.")
