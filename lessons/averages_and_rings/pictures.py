"""Pictures of notebook 02: the averaged gradient, barriers, SGD over time, the ring step by step.

Made as those of lessons.basic_concepts.pictures: one Figure with `figure.alt`, from values that a control may move.
"""

import numpy as np
from matplotlib import colormaps

from labs.show.figure import COLOURS, finished
from lessons import reduce
from lessons.averages_and_rings import sgd, stragglers
from lessons.canvas import boxes, canvas, done
from lessons.drawing import logarithmic


def averaging(workers=3, batch=4, digit=6):
    """One step of synchronous SGD: the gradients of K workers for the 64 weights of the class `digit` as pictures, the
    mean of these, and the gradient of all batches at once. The weights are zero before the step."""
    step, (_, labels) = sgd.one_step(workers, batch), sgd.digits()
    columns = [values[:64, digit] for values in (*step["gradients"], step["mean"], step["whole"])]
    own = [f"{(labels[rows] == digit).sum()} of {batch} are {digit}s" for rows in step["rows"]]
    names = [*(f"worker {number}: {each}" for number, each in enumerate(own)), "mean", "all at once"]
    figure, axes = canvas(len(columns), width=1.7, height=2.3, left=0.1, right=0.1)
    highest = np.abs(columns).max()
    for axis, values, name in zip(axes, columns, names, strict=True):
        axis.imshow(values.reshape(8, 8), cmap="PuOr", vmin=-highest, vmax=highest)
        axis.grid(False)
        axis.set(xticks=[], yticks=[], xlabel=f"length {np.linalg.norm(values):.3f}")
        axis.set_title(name, fontsize=9)
    far = np.abs(step["mean"] - step["whole"]).max()
    said = f"One step of {workers} workers with {batch} digits each, of which {', '.join(own)}. Gradients for the "
    said += f"weights of class {digit}: of each worker, their mean, and of all {workers * batch} digits at once. "
    said += f"The last two differ by at most {far:.1e}."
    note = f"gradient for class {digit}; orange: the weight grows, violet: it shrinks"
    return finished(figure, said, "simulated", note=note)


def barrier(workers=64, spread=0.1):
    """Five steps of workers that wait for the slowest (8 are drawn), and the share of the time that they compute."""
    times = stragglers.draws(workers, 200, spread=spread)
    figure, (axis,) = canvas(width=8.0, left=0.85)
    ends = np.cumsum(times[:5].max(axis=1))  # of all workers, also of those that are not drawn
    begins = [0, *ends]
    spans = [(begins[step], begins[step] + taken, worker) for (step, worker), taken in np.ndenumerate(times[:5, :8])]
    axis.add_collection(boxes(spans, COLOURS[0]))
    axis.vlines(ends, -0.5, 7.5, color=COLOURS[1], lw=1.5)
    said = f"{workers} workers compute for {stragglers.efficiency(times):.0%} of the time"
    axis.set(xlabel="time (s)", title=f"5 of 200 steps, {min(workers, 8)} of {workers} workers; {said}")
    axis.set_xlim(0, 6.5 if ends[-1] < 6.5 else 16)
    _lines(axis, 8)
    return done(figure, f"A barrier at each step, step times of 1 s that spread by {spread:.0%}: {said}.")


def _lines(axis, workers):
    """A line of the timeline for each worker, the first one at the top."""
    axis.set_yticks(range(workers), [f"worker {number}" for number in range(workers)])
    axis.set_ylim(workers - 0.5, -0.5)


def races(workers=4, slow=4.0, rate=0.5):
    """Synchronous against asynchronous SGD on the digits, for 40 s: who works when, and the loss over time.

    slow: how many times as long as the others (1 s for a gradient) the last worker takes; rate: learning rate of both.
    """
    times = np.ones((1, workers))
    times[0, -1] = slow
    each = (40 / times[0] + 1e-9).astype(int)  # gradients of each worker, as far as it does not wait
    figure, axes = canvas(3, 3.7, 3.1, left=0.8, right=0.1)
    sentences = []
    for axis, name, train, updates, more, look in (
        (axes[0], "synchronous", sgd.synchronous, each[-1], "", {"color": COLOURS[0]}),
        (axes[1], "asynchronous", sgd.asynchronous, each.sum(), "; darker: staler", {"color": COLOURS[1], "ls": "--"}),
    ):
        history = train(workers, updates, times, rate=rate, every=1 + updates // 20)
        drawn = [work for work in history.work if work.begin < 20]
        stale = np.array([work.staleness for work in drawn]) / (workers - 1) / 4
        shades = colormaps["cividis_r"](0.15 + 0.8 * stale.clip(0, 1))
        axis.add_collection(boxes([(work.begin, work.end, work.worker) for work in drawn], shades))
        axis.set(xlabel=f"time (s){more}", title=name, xlim=(0, 20))
        _lines(axis, workers)
        axes[2].plot(history.seconds, history.losses, **look, label=name)
        sentences.append(f"{name.capitalize()}: {updates} updates, loss {history.losses[-1]:.3f}")
    logarithmic(axes[2], y=[0.1, 0.3, 1, 3, 10, 30, 100])
    axes[2].set(xlabel="time (s)", ylabel="training loss (nats)", title="loss over time")
    axes[2].set(xlim=(0, 40), ylim=(0.08, 120))
    axes[2].legend(fontsize=9)
    ages = [work.staleness for work in history.work]
    said = f"{workers} workers, the last {slow:g} times slower, learning rate {rate:g}, 40 s. {'. '.join(sentences)}"
    said += f", gradients {np.mean(ages):.1f} updates old on average, at most {max(ages)}."
    return done(figure, f"{said} Darker bars: staler gradients.")


def ring(workers=4, step=0):
    """The ring all-reduce after a step: who sent which chunk to whom, and how many gradients each chunk sums.

    Each worker begins with ones, so a number says how many workers' gradients are in that chunk.
    """
    ones = np.ones((workers, workers), int)
    steps = [reduce.Step("before the first step", [], ones), *reduce.ring(ones)]
    last = len(steps) - 1
    step = min(step, last)
    phase, sends, state = steps[step]
    figure, (circle, axis) = canvas(2, 4.1, 3.9, left=0.75, right=0.1)
    turns = np.pi / 2 - 2 * np.pi * np.arange(workers) / workers
    places = np.stack([np.cos(turns), np.sin(turns)], 1)
    circle.set_axis_off()
    circle.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal", title="who sends what to whom")
    look = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=-0.2", "shrinkA": 14, "shrinkB": 14, "lw": 2}
    for send in sends:
        circle.annotate("", places[send.receiver], places[send.sender], arrowprops=look | {"color": COLOURS[1]})
        halfway, away = turns[send.sender] - np.pi / workers, np.cos(np.pi / workers) + 0.55
        x, y = away * np.cos(halfway), away * np.sin(halfway)
        circle.text(x, y, f"chunk {send.chunk}", ha="center", va="center", fontsize=9, color=COLOURS[1])
    circle.plot(*places.T, "o", ms=24, color=COLOURS[0])
    for place, (x, y) in enumerate(places):
        circle.text(x, y, place, ha="center", va="center", color="white", fontweight="bold")
    sent = {(send.receiver, send.chunk) for send in sends}
    axis.grid(False)
    axis.imshow(state, cmap="cividis", vmin=0, vmax=workers, aspect="auto")
    for (worker, chunk), value in np.ndenumerate(state):
        colour = "black" if value > workers / 2 else "white"
        weight, size = ("bold", 13) if (worker, chunk) in sent else ("normal", 9)
        axis.text(chunk, worker, value, ha="center", va="center", color=colour, fontweight=weight, fontsize=size)
    axis.set(xlabel="chunk of the gradient", ylabel="worker", title=f"step {step} of {last}: {phase}")
    axis.set(xticks=range(workers), yticks=range(workers))
    full = int((state == workers).sum())
    moved = "; ".join(f"worker {send.sender} sends chunk {send.chunk} to {send.receiver}" for send in sends)
    when = f"Ring all-reduce of {workers} workers after step {step} of {last}, {phase}"
    return done(figure, f"{when}: {moved or 'nothing is sent yet'}. {full} of {workers**2} chunks are complete sums.")
