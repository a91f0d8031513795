"""Questions of 05_resnet50_scaling (T5, T6)."""

import ast
from pathlib import Path
from types import SimpleNamespace

from labs.checks import batch_scripts
from labs.checks.judging import NotDone, choice, prediction, question, written

HERE = "05_resnet50_scaling"

prediction("05.1", "Speedup on 2 workers", HERE)
prediction("05.2", "Accuracy on 2 workers after the same epochs (higher, equal, lower)", HERE)


def _calls(tree):
    """{name of a function: its calls} in a script."""
    calls = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            calls.setdefault(getattr(node.func, "attr", getattr(node.func, "id", "")), []).append(node)
    return calls


def _rate(tree, workers):
    """Value of the script's learning_rate for a number of workers, or None if it cannot be computed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "learning_rate":
            expression = compile(ast.Expression(node.value), "learning_rate", "eval")
            known = {
                "args": SimpleNamespace(n_gpus=workers),
                "__builtins__": {},
                "strategy": SimpleNamespace(num_replicas_in_sync=workers),
                "workers": ["GPU"] * workers,
                "len": len,
            }
            return eval(expression, known)  # the student's own expression, with nothing but these names
    return None


@question(
    "05.3",
    "scripts/ResNet50.py, before it runs",
    HERE,
    points=3,
    why="Strategy, learning rate, network and training stand where they belong.",
)
def script(path):
    from labs import blanks

    tree = ast.parse(Path(path).read_text())
    for line, text in blanks.blanks(Path(path)):
        raise NotDone(f"Line {line} of {Path(path).name} is still blank: {text.strip()}")
    calls = _calls(tree)
    if "MirroredStrategy" not in calls:
        return "No MirroredStrategy is created: the model would live on one device."
    if not calls["MirroredStrategy"][0].keywords and not calls["MirroredStrategy"][0].args:
        return "MirroredStrategy() takes every device it finds. Give it the `workers`, so that --n_gpus counts."
    if _rate(tree, 1) is None or abs(_rate(tree, 1) - 0.01) > 1e-9:
        return "With one worker the learning rate must be 0.01."
    if abs(_rate(tree, 4) - 0.01) < 1e-9:
        return "The learning rate does not depend on the workers: what does the linear rule say?"
    if abs(_rate(tree, 4) - 0.04) > 1e-9:
        return "With 4 workers the linear rule gives another rate than your script."
    if "ResNet50V2" not in calls:
        return "No keras.applications.ResNet50V2 is created."
    scopes = [n for n in ast.walk(tree) if isinstance(n, ast.With) and "scope" in ast.dump(n.items[0])]
    inside = {id(n) for scope in scopes for n in ast.walk(scope)}
    if id(calls["ResNet50V2"][0]) not in inside:
        return "The network is created outside `strategy.scope()`: it would have one copy only."
    if "fit" not in calls:
        return "The model is never trained: where is `fit`?"
    words = {k.arg for k in calls["fit"][0].keywords}
    if "callbacks" not in words:
        return "`fit` runs without the recorder: pass callbacks=[recorder], or there is no record of your run."
    verbose = next((k.value.value for k in calls["fit"][0].keywords if k.arg == "verbose"), None)
    if verbose != 2:
        return "Pass verbose=2 to `fit`: one line per epoch, which is your log."


@question(
    "05.4",
    "Seconds per epoch, by hand",
    HERE,
    points=2,
    why="The mean of the epochs after the first, which holds tracing and warm-up.",
)
def epoch_time(seconds, run):
    epochs = [e.seconds for e in run.repeats[0]]
    steady = sum(epochs[1:]) / len(epochs[1:])
    tolerance = max(0.5, 0.02 * steady)
    if abs(seconds - steady) <= min(tolerance, abs(sum(epochs) / len(epochs) - steady) / 2):
        return None
    if abs(seconds - sum(epochs) / len(epochs)) <= tolerance:
        return "This mean holds the first epoch. What happens in it that never happens again?"
    if abs(seconds - epochs[0]) <= tolerance:
        return "This is the first epoch: tracing and warm-up are in it."
    if abs(seconds - sum(epochs)) <= tolerance or (len(epochs) > 2 and abs(seconds - sum(epochs[1:])) <= tolerance):
        return "This is a sum over epochs: divide by how many you added."
    if abs(seconds - steady) <= tolerance:
        return None
    return "Take the seconds that the lines after `Epoch 2/..` give, and average them."


@question("05.5", "images per second", HERE, why="Images of an epoch divided by its seconds.")
def throughput(function):
    value, n = function(50000, 45.0), 50000 / 45.0
    if abs(value - n) < 1e-6 * n:
        return None
    if abs(value - 45.0 / 50000) < 1e-9:
        return "Upside down: this is seconds per image."
    if abs(value - 50000 * 45.0) < 1:
        return "Multiplied: the more seconds an epoch takes, the fewer images per second there must be."
    return "How many images in how many seconds: one division."


@question("05.6", "Speedup", HERE, why="S(p) = T(1)/T(p): how many times faster than one worker.")
def speedup(function):
    value = function(45.0, 12.0)
    if abs(value - 3.75) < 1e-9:
        return None
    if abs(value - 12 / 45) < 1e-9:
        return "Upside down: a speedup above 1 means faster."
    if abs(value - 33) < 1e-9:
        return "A difference in seconds is no speedup: the same 33 s are much for one program and little for another."
    return "The time of one worker divided by the time of p workers."


@question("05.7", "Efficiency", HERE, why="E(p) = S(p)/p: the share of the ideal that is reached.")
def efficiency(function):
    value = function(3.75, 4)
    if abs(value - 0.9375) < 1e-9:
        return None
    if abs(value - 15) < 1e-9 or abs(value - 4 / 3.75) < 1e-9:
        return "More than 1: an efficiency is the share of the ideal speedup. What is the ideal on p workers?"
    if abs(value - 3.75) < 1e-9:
        return "That is the speedup itself. Divide by what would be ideal."
    return "Speedup divided by the number of workers."


@question(
    "05.8",
    "Your own study, with labs",
    HERE,
    points=2,
    why="Each number of workers has its record, and speedup has its baseline.",
)
def own_study(rows):
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
        return "Give the rows that `collect.rows(...)` returns."
    foreign = [row["source"] for row in rows if row["kind"] != "measured"]
    if foreign:
        return f"{foreign[0]} was not measured by you: give the rows of the jobs that you ran yourself."
    workers = {row["workers"] for row in rows}
    if 1 not in workers:
        return "There is no run with 1 worker: without a baseline nothing can be called faster."
    if len(workers) < 2:
        return "There is only one number of workers: run at least 1 and 2."
    failed = [row["source"] for row in rows if row["failure"] or row["truncated"]]
    if failed:
        return f"{failed[0]} did not run to its end: look into its .err."


@question(
    "T6",
    "Epoch time, images/second and speedup, plotted from your own runs",
    HERE,
    points=6,
    why="Three plots, with units, from your own logs.",
)
def plots(figure, rows):
    axes = list(getattr(figure, "axes", []))
    if len(axes) < 3:
        return f"The figure has {len(axes)} plot(s): epoch time, images/second and speedup are three."
    wanted = {}
    for key in ("epoch_seconds", "images_per_second", "speedup"):
        wanted[key] = [row[key] for row in sorted(rows, key=lambda r: r["workers"])]
    for axis in axes[:3]:
        if not axis.get_xlabel() or not axis.get_ylabel():
            return "An axis has no label: what is shown, and in which unit?"
    names = {"epoch_seconds": "seconds per epoch", "images_per_second": "images per second", "speedup": "speedup"}
    for key, values in wanted.items():
        lines = [list(line.get_ydata()) for axis in axes for line in axis.get_lines()]
        if not any(_alike(line, values) for line in lines):
            if key == "speedup" and any(_alike(line, [1 / v for v in values if v]) for line in lines):
                return "The speedup is upside down: a faster run must lie above 1."
            return f"No curve shows the {names[key]} of your runs, ordered by workers."


def _alike(line, values):
    return len(line) == len(values) and all(
        v is not None and abs(x - v) <= 0.02 * abs(v) for x, v in zip(line, values, strict=True)
    )


@question(
    "05.9",
    "Updates of the weights in one epoch",
    HERE,
    points=2,
    why="Twice the global batch, half the updates: the same epochs are fewer updates.",
)
def updates(one, two, rows):
    steps = {row["workers"]: row["steps"] for row in rows}
    if (one, two) == (steps.get(1), steps.get(2)):
        return None
    if one == two:
        return "The same number for both? The global batch of 2 workers is twice as large."
    if (two, one) == (steps.get(1), steps.get(2)):
        return "The other way round: more images per step are fewer steps."
    return "One update per step: read how many steps an epoch has in the log (`98/98` is 98 steps)."


@question(
    "05.10",
    "Efficiency of CTE-POWER on 4 GPUs, as an interval",
    HERE,
    points=2,
    why="Whole seconds hide more than the difference that is usually argued about.",
)
def rounding(low, high):
    if abs(low - 0.9375) < 0.005 and abs(high - 0.9375) < 0.005:
        return "That is the efficiency without its interval: 12 s in the log is anything from 11.5 s to 12.5 s."
    if low > high:
        return "The lower bound is above the upper one: which of the two times must be long for a low efficiency?"
    if abs(low - 45 / 12.5 / 4) < 0.003 and abs(high - 45 / 11.5 / 4) < 0.003:
        return "Good for the 12 s. But the 45 s of one GPU are rounded as well."
    if abs(low - 44.5 / 12.5 / 4) > 0.006 or abs(high - 45.5 / 11.5 / 4) > 0.006:
        return "Shortest possible T(1) over longest possible T(4), divided by 4; then the other way round."


choice(
    "05.11",
    "Why is the speedup on your machine below the number of workers?",
    HERE,
    right="c",
    wrong={
        "a": "Parameters are never collected: every replica holds its own copy, and gradients are averaged at every step.",
        "b": "A larger global batch makes steps fewer, not slower: each worker's share is what it was.",
        "d": "That happens before the first epoch's end, and the first epoch is discarded.",
    },
    why="At each step all wait for the slowest, and sum their gradients before anyone goes on.",
)

choice(
    "05.12",
    "Two GPUs and all threads of a node with four",
    HERE,
    right="b",
    wrong={
        "a": "Then two GPUs of the node would be left without a thread. Compare with the row for 2 GPUs.",
        "c": "SLURM gives what is asked for, or nothing; it never adds GPUs.",
        "d": "SLURM does not correct what you ask for.",
    },
    why="The site's submit plugin refuses it, so that no GPU is left without cores.",
)


@question(
    "05.13",
    "slurm/<site>/ResNet50.sh, before it is submitted",
    HERE,
    points=3,
    why="It asks for what its trainings need, within the rule, and the batch follows the workers.",
)
def batch_script(path):
    return batch_scripts.judge(path, trains="ResNet50.py")


@question(
    "05.14",
    "GPUs asked for below the first command",
    HERE,
    why="After the first command every #SBATCH line is a comment, and sbatch says nothing about it.",
)
def late(gpus):
    if gpus == 4:
        return "`module load` is a command. How far does sbatch read a script?"
    if gpus != 0:
        return "Either the line counts, or it does not: which number does each of the two give?"


written("T5", "ResNet50V2 on 1, 2 and 4 workers: script, job script, .out and .err", HERE, points=6)
