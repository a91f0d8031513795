"""Pictures of the concepts: laws, timelines of devices, the ring, its cost, SGD over time. All simulated.

Every function takes the numbers that a slider may move and returns a matplotlib Figure with its text alternative in
`figure.alt`, as those of labs.plots do; labs.widgets.explore makes it move.
"""

import numpy as np

from labs import plots
from labs.simulate import laws, pipeline, reduce, sgd, stragglers
from labs.simulate.given import whole

KIND = [{"kind": "simulated"}]
_LOOKS = {"forward": (plots.COLOURS[5], ""), "backward": (plots.COLOURS[0], "//"),
          "all-reduce": (plots.COLOURS[1], "..")}  # fmt: skip


def _done(figure, text):
    plots._stamp(figure, KIND)
    figure.alt = text
    return figure


def speedups(workers=64, serial=0.05):
    """Speedup over the number of workers by Amdahl (fixed problem) and by Gustafson (growing problem)."""
    figure, (axis,) = plots._figure(1, width=6.0)
    counts = np.arange(1, whole("workers", workers) + 1)
    lines = {"Amdahl: the problem is fixed": [laws.amdahl(int(p), serial) for p in counts],
             "Gustafson: it grows with the workers": [laws.gustafson(int(p), serial) for p in counts]}  # fmt: skip
    axis.plot(counts, counts, "--", color="0.5", label="ideal")
    for (name, values), colour, marker in zip(lines.items(), plots.COLOURS, plots.MARKERS, strict=False):
        axis.plot(counts, values, color=colour, marker=marker, markevery=max(1, workers // 8), label=name)
    axis.set(xlabel="workers p", ylabel="speedup S(p)", title=f"serial share {serial:.0%}", ylim=(0, None))
    axis.legend(fontsize=8)
    ends = "; ".join(f"{name.split(':')[0]} {values[-1]:.3g}" for name, values in lines.items())
    return _done(figure, f"Speedup on 1 to {workers} workers with a serial share of {serial:.0%}. On {workers}: ideal "
                         f"{workers}; {ends}.")  # fmt: skip


def devices(blocks, title):
    """Timeline of devices from labs.simulate.pipeline: one row for each, with the number of the micro-batch."""
    rows = 1 + max(block.device for block in blocks)
    figure, (axis,) = plots._figure(1, width=8.0, height=1.2 + 0.4 * rows)
    many = 1 + max(block.part for block in blocks)
    for what, (colour, hatch) in _LOOKS.items():
        chosen = [block for block in blocks if block.what == what]
        if chosen:
            axis.barh([block.device for block in chosen], [block.end - block.begin for block in chosen],
                      left=[block.begin for block in chosen], height=0.8, color=colour, hatch=hatch, edgecolor="white",
                      label=what)  # fmt: skip
    if many > 1 and len(blocks) <= 128:
        for block in blocks:
            axis.text((block.begin + block.end) / 2, block.device, str(block.part + 1), ha="center", va="center",
                      fontsize=8, bbox={"boxstyle": "circle,pad=0.1", "fc": "white", "ec": "none"})  # fmt: skip
    axis.set(xlabel="time (forward passes of one layer)", yticks=range(rows), title=title, xlim=(0, None),
             yticklabels=[f"device {number}" for number in range(rows)], ylim=(rows - 0.5, -0.5))  # fmt: skip
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    idle, length = pipeline.idle(blocks), pipeline.length(blocks)
    return _done(figure, f"{title}: {rows} devices, {length:.3g} units of time for a mini-batch, idle share "
                         f"{idle:.0%}.")  # fmt: skip


def parallelism(kind="data", device_count=4, micro_batches=4, layers=4):
    """One mini-batch on several devices: kind "data", "model" or "pipeline"."""
    if kind == "data":
        return devices(pipeline.data_parallel(device_count, layers), f"data parallelism on {device_count} devices")
    parts = micro_batches if kind == "pipeline" else 1
    layers = device_count * max(1, layers // device_count)
    name = "pipeline" if kind == "pipeline" else "model"
    title = f"{name} parallelism on {device_count} devices" + (f", {parts} micro-batches" if parts > 1 else "")
    return devices(pipeline.pipelined(device_count, layers, parts), title)


def ring(workers=4, step=0):
    """Which worker holds how much of the sum of which chunk after a step of the ring all-reduce, and what is sent.

    Each worker begins with ones, so a number says how many workers' gradients are in that chunk.
    """
    steps = reduce.ring(np.ones((workers, workers), int))
    step = min(step, len(steps))
    state = steps[step - 1].vectors if step else np.ones((workers, workers), int)
    figure, (axis,) = plots._figure(1, width=1.8 + 0.75 * workers, height=1.6 + 0.5 * workers)
    axis.grid(False)
    axis.imshow(state, cmap="cividis", vmin=0, vmax=workers)
    sent = {(send.receiver, send.chunk): send.sender for send in steps[step - 1].sends} if step else {}
    for (worker, chunk), value in np.ndenumerate(state):
        source = sent.get((worker, chunk))
        text = f"{value}" if source is None else f"{value}\nfrom {source}"
        axis.text(chunk, worker, text, ha="center", va="center", fontsize=8, fontweight="bold" if source is not None
                  else "normal", color="black" if value > workers / 2 else "white")  # fmt: skip
    phase = steps[step - 1].phase if step else "before the first step"
    axis.set(xlabel="chunk of the gradient", ylabel="worker", xticks=range(workers), yticks=range(workers),
             title=f"step {step} of {len(steps)}: {phase}")  # fmt: skip
    full = int((state == workers).sum())
    sends = steps[step - 1].sends if step else []
    moved = "; ".join(f"worker {send.sender} sends chunk {send.chunk} to {send.receiver}" for send in sends)
    return _done(figure, f"Ring all-reduce of {workers} workers after step {step} of {len(steps)}, {phase}: "
                         f"{moved or 'nothing is sent yet'}. {full} of {workers * workers} chunks are complete "
                         "sums.")  # fmt: skip


def costs(megabytes=94.0, gigabytes_per_second=10.0, microseconds=10.0, servers=4, workers=256):
    """Seconds of one exchange of the gradient over the number of workers: ring, one server, several servers."""
    figure, (axis,) = plots._figure(1, width=6.0)
    counts = [2**k for k in range(1, max(2, int(np.log2(workers)) + 1))]
    size, latency, bandwidth = megabytes * 1e6, microseconds * 1e-6, gigabytes_per_second * 1e9
    lines = {
        "one server": [reduce.server_seconds(k, size, latency, bandwidth) for k in counts],
        f"{servers} servers": [reduce.server_seconds(k, size, latency, bandwidth, servers) for k in counts],
        "ring": [reduce.ring_seconds(k, size, latency, bandwidth) for k in counts],
    }
    for (name, values), colour, marker in zip(lines.items(), plots.COLOURS, plots.MARKERS, strict=False):
        axis.plot(counts, [1000 * value for value in values], color=colour, marker=marker, label=name)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set(xlabel="workers", ylabel="time of one exchange (ms)", title=f"{megabytes:g} MB of gradient")
    axis.set_xticks(counts[:: max(1, len(counts) // 8)], [str(k) for k in counts[:: max(1, len(counts) // 8)]])
    axis.legend(fontsize=8)
    ends = "; ".join(f"{name} {1000 * values[-1]:.3g} ms" for name, values in lines.items())
    return _done(figure, f"Time to exchange {megabytes:g} MB over the number of workers, {gigabytes_per_second:g} GB/s "
                         f"and {microseconds:g} microseconds a message. On {counts[-1]} workers: {ends}.")  # fmt: skip


def barrier(workers=64, spread=0.1, steps=200):
    """Share of the time that workers compute, over their number, if all wait for the slowest at each step."""
    figure, (axis,) = plots._figure(1, width=6.0)
    counts = sorted({int(k) for k in np.geomspace(1, workers, 12)})
    times = stragglers.draws(workers, steps, spread=spread)
    shares = [stragglers.efficiency(times[:, :k]) for k in counts]
    axis.plot(counts, shares, "-o", color=plots.COLOURS[0])
    axis.set_xscale("log", base=2)
    axis.set(xlabel="workers", ylabel="share of time spent computing", ylim=(0, 1.02),
             title=f"a barrier at each step; step times spread by {spread:.0%}")  # fmt: skip
    values = ", ".join(f"{share:.2f} on {count}" for count, share in zip(counts, shares, strict=True))
    return _done(figure, f"Share of time that workers compute with a barrier at each step, spread {spread:.0%}: "
                         f"{values}.")  # fmt: skip


def races(workers=4, slow=4.0, seconds=60.0, rate=0.5):
    """Synchronous against asynchronous SGD on the digits: who works when, and the loss over time.

    slow: how many times as long the last worker takes; the others take 1 s for a gradient.
    """
    times = np.ones((1, workers))
    times[0, -1] = slow
    each = max(1, int(seconds / max(slow, 1)))
    sync = sgd.synchronous(workers, each, times, rate=rate)
    free = sgd.asynchronous(workers, max(1, int(seconds * (workers - 1 + 1 / slow))), times, rate=rate)
    figure, axes = plots._figure(3, width=4.2)
    shown = min(seconds, 5 * slow)
    stale = max(1, max(work.staleness for work in free.work))
    for axis, history, title in zip(axes[:2], (sync, free), ("synchronous", "asynchronous"), strict=True):
        begun = [work for work in history.work if work.begin < shown]
        shades = [0.25 + 0.7 * work.staleness / stale for work in begun]
        axis.barh([work.worker for work in begun], [work.end - work.begin for work in begun], height=0.8,
                  left=[work.begin for work in begun], edgecolor="white", color=_shade(shades))  # fmt: skip
        axis.set(xlabel="time (s)", title=title, xlim=(0, shown), yticks=range(workers), ylim=(workers - 0.5, -0.5),
                 yticklabels=[f"worker {number}" for number in range(workers)])  # fmt: skip
    for history, name, colour, style in ((sync, "synchronous", plots.COLOURS[0], "-"),
                                         (free, "asynchronous", plots.COLOURS[1], "--")):  # fmt: skip
        axes[2].plot(history.seconds, history.losses, style, color=colour, label=name)
    axes[2].set(xlabel="time (s)", ylabel="training loss (nats)", title="loss over time", xlim=(0, seconds),
                ylim=(0, 2.5))  # fmt: skip
    axes[2].legend(fontsize=8)
    ends = [float(history.losses[history.seconds <= seconds][-1]) for history in (sync, free)]
    mean = np.mean([work.staleness for work in free.work])
    return _done(figure, f"{workers} workers, the last one {slow:g} times slower. In {seconds:g} s: synchronous {each} "
                         f"updates, loss {ends[0]:.3f}; asynchronous {len(free.work)} updates, loss {ends[1]:.3f}, "
                         f"gradients {mean:.1f} updates old on average. Darker bars: staler gradients.")  # fmt: skip


def _shade(values):
    from matplotlib import colormaps

    return colormaps["cividis_r"](np.clip(values, 0, 1))
