"""Judges of 05_resnet50_scaling."""

import ast
from pathlib import Path

from labs.checks import batch_scripts, reading
from labs.checks.judging import judges


@judges("05.3")
def script(path):
    tree = ast.parse(Path(path).read_text())
    reading.refuse_blanks(path)
    calls = reading.calls(tree)
    if "MirroredStrategy" not in calls:
        return "No MirroredStrategy is created: the model would live on one device."
    if not calls["MirroredStrategy"][0].keywords and not calls["MirroredStrategy"][0].args:
        return "MirroredStrategy() takes every device it finds. Give it the `workers`, so that --n_gpus counts."
    rate_1, rate_4 = (reading.learning_rate(tree, workers) for workers in (1, 4))
    if rate_1 is None or abs(rate_1 - 0.01) > 1e-9:
        return "With one worker the learning rate must be 0.01."
    if abs(rate_4 - 0.01) < 1e-9:
        return "The learning rate does not depend on the workers: what does the linear rule say?"
    if abs(rate_4 - 0.04) > 1e-9:
        return "With 4 workers the linear rule gives another rate than your script."
    if "ResNet50V2" not in calls:
        return "No keras.applications.ResNet50V2 is created."
    return reading.outside_scope(tree, calls["ResNet50V2"][0]) or reading.untrained(calls)


@judges("05.4")
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


@judges("05.5")
def throughput(function):
    value, n = function(50000, 45.0), 50000 / 45.0
    if abs(value - n) < 1e-6 * n:
        return None
    if abs(value - 45.0 / 50000) < 1e-9:
        return "Upside down: this is seconds per image."
    if abs(value - 50000 * 45.0) < 1:
        return "Multiplied: the more seconds an epoch takes, the fewer images per second there must be."
    return "How many images in how many seconds: one division."


@judges("05.6")
def speedup(function):
    value = function(45.0, 12.0)
    if abs(value - 3.75) < 1e-9:
        return None
    if abs(value - 12 / 45) < 1e-9:
        return "Upside down: a speedup above 1 means faster."
    if abs(value - 33) < 1e-9:
        return "A difference in seconds is no speedup: the same 33 s are much for one program and little for another."
    return "The time of one worker divided by the time of p workers."


@judges("05.7")
def efficiency(function):
    value = function(3.75, 4)
    if abs(value - 0.9375) < 1e-9:
        return None
    if abs(value - 15) < 1e-9 or abs(value - 4 / 3.75) < 1e-9:
        return "More than 1: an efficiency is the share of the ideal speedup. What is the ideal on p workers?"
    if abs(value - 3.75) < 1e-9:
        return "That is the speedup itself. Divide by what would be ideal."
    return "Speedup divided by the number of workers."


@judges("05.8")
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


@judges("T6")
def plots(figure, rows):
    return reading.no_plots(figure) or reading.no_curve(figure, rows, "your runs")


@judges("05.9")
def updates(one, two, rows):
    steps = {row["workers"]: row["steps"] for row in rows}
    if (one, two) == (steps.get(1), steps.get(2)):
        return None
    if one == two:
        return "The same number for both? The global batch of 2 workers is twice as large."
    if (two, one) == (steps.get(1), steps.get(2)):
        return "The other way round: more images per step are fewer steps."
    return "One update per step: read how many steps an epoch has in the log (`98/98` is 98 steps)."


@judges("05.10")
def rounding(low, high):
    if abs(low - 0.9375) < 0.005 and abs(high - 0.9375) < 0.005:
        return "That is the efficiency without its interval: 12 s in the log is anything from 11.5 s to 12.5 s."
    if low > high:
        return "The lower bound is above the upper one: which of the two times must be long for a low efficiency?"
    if abs(low - 45 / 12.5 / 4) < 0.003 and abs(high - 45 / 11.5 / 4) < 0.003:
        return "Good for the 12 s. But the 45 s of one GPU are rounded as well."
    if abs(low - 44.5 / 12.5 / 4) > 0.006 or abs(high - 45.5 / 11.5 / 4) > 0.006:
        return "Shortest possible T(1) over longest possible T(4), divided by 4; then the other way round."


@judges("05.13")
def batch_script(path):
    return batch_scripts.judge(path, trains="ResNet50.py")


@judges("05.14")
def late(gpus):
    if gpus == 4:
        return "`module load` is a command. How far does sbatch read a script?"
    if gpus != 0:
        return "Either the line counts, or it does not: which number does each of the two give?"
