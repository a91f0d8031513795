"""Judges of 05_resnet50_scaling."""

from labs.checks import batch_scripts, reading, scripts
from labs.checks.judging import judges
from labs.checks.reading import CUT, PER_CENT, close, near


@judges("05.3")
def script(path):
    yield from scripts.not_mirrored(path, "ResNet50V2")


@judges("05.4")
def epoch_time(seconds, run):
    epochs = [e.seconds for e in run.repeats[0]]
    steady = sum(epochs[1:]) / len(epochs[1:])
    tolerance = max(0.5, 0.02 * steady)
    yield abs(seconds - steady) <= min(tolerance, abs(sum(epochs) / len(epochs) - steady) / 2), None
    if abs(seconds - sum(epochs) / len(epochs)) <= tolerance:
        return "This mean holds the first epoch. What happens in it that never happens again?"
    yield abs(seconds - epochs[0]) <= tolerance, "This is the first epoch: tracing and warm-up are in it."
    if abs(seconds - sum(epochs)) <= tolerance or (len(epochs) > 2 and abs(seconds - sum(epochs[1:])) <= tolerance):
        return "This is a sum over epochs: divide by how many you added."
    yield abs(seconds - steady) <= tolerance, None
    return "Take the seconds that the lines after `Epoch 2/..` give, and average them."


@judges("05.5")
def throughput(function):
    value, n = float(function(50000, 45.0)), 50000 / 45.0
    yield near(value, n, 1e-6), None
    yield value == 50000 // 45.0, CUT
    yield near(value, 45.0 / 50000), "Upside down: this is seconds per image."
    if abs(value - 50000 * 45.0) < 1:
        return "Multiplied: the more seconds an epoch takes, the fewer images per second there must be."
    return "How many images in how many seconds: one division."


@judges("05.6")
def speedup(function):
    value = float(function(45.0, 12.0))
    yield near(value, 3.75, 1e-3), None
    yield value == 3, CUT
    yield near(value, 12 / 45), "Upside down: a speedup above 1 means faster."
    if near(value, 33):
        return "A difference in seconds is no speedup: the same 33 s are much for one program and little for another."
    return "The time of one worker divided by the time of p workers."


@judges("05.7")
def efficiency(function):
    value = float(function(3.75, 4))
    yield near(value, 0.9375, 1e-3), None
    yield near(value, 93.75), PER_CENT
    yield value == 0, CUT
    if near(value, 15) or near(value, 4 / 3.75):
        return "More than 1: an efficiency is the share of the ideal speedup. What is the ideal on p workers?"
    yield near(value, 3.75), "That is the speedup itself. Divide by what would be ideal."
    return "Speedup divided by the number of workers."


@judges("05.8")
def own_study(rows):
    yield from reading.no_rows(rows)
    yield from reading.not_yours(rows, rows)
    workers = {row["workers"] for row in rows}
    yield 1 not in workers, "There is no run with 1 worker: without a baseline nothing can be called faster."
    yield len(workers) < 2, "There is only one number of workers: run at least 1 and 2."


@judges("T6")
def plots(figure, rows):
    yield from reading.no_plots(figure)
    yield from reading.not_yours(rows, rows)
    yield from reading.no_curve(figure, rows, "your runs")


@judges("05.10")
def unconnected(speedup, steps):
    alone, together, exchange = (steps[kind] for kind in ("alone", "together", "exchange"))

    def is_(value):
        return close(speedup, value, 2e-3)

    yield is_(2 * alone / together), None
    yield is_(alone / together), "This is the efficiency, of one worker. How many images do both train in that step?"
    yield is_(together / alone), "Upside down: this says how much longer a step takes beside another one."
    yield is_(2 * together / alone), "Upside down: the longer the steps together, the smaller the speedup must be."
    if is_(2 * alone / exchange) or is_(2 * alone / steps["input"]):
        return "There is an exchange in this one. Which kind of step has two trainings and no exchange?"
    yield is_(alone / exchange), "An exchange is in it, and one worker's images only. Take the kind without exchange."
    return "Both train in a step together twice the images that one trains in a step alone: images over seconds, twice."


@judges("05.12")
def updates(one, two, rows):
    steps = {row["workers"]: row["steps"] for row in rows}
    yield (one, two) == (steps.get(1), steps.get(2)), None
    yield one == two, "The same number for both? The global batch of 2 workers is twice as large."
    yield (two, one) == (steps.get(1), steps.get(2)), "The other way round: more images per step are fewer steps."
    return "One update per step: read how many steps an epoch has in the log (`98/98` is 98 steps)."


@judges("05.13")
def rounding(low, high):
    low, high = float(low), float(high)
    yield min(low, high) > 50, PER_CENT
    if abs(low - 0.9375) < 0.005 and abs(high - 0.9375) < 0.005:
        return "That is the efficiency without its interval: 12 s in the log is anything from 11.5 s to 12.5 s."
    if low > high:
        return "The lower bound is above the upper one: which of the two times must be long for a low efficiency?"
    if abs(low - 45 / 12.5 / 4) < 0.003 and abs(high - 45 / 11.5 / 4) < 0.003:
        return "Good for the 12 s. But the 45 s of one GPU are rounded as well."
    if near(low, 44.5 / 12.5, 0.006) and near(high, 45.5 / 11.5, 0.006):
        return "These are the lowest and the highest speedup. Which share of the ideal are they?"
    if abs(low - 45.5 / 12.5 / 4) < 0.003 and abs(high - 44.5 / 11.5 / 4) < 0.003:
        return "Both times are too long here, or both too short: the errors nearly cancel. Which pair is the worst?"
    if not (abs(low - 44.5 / 12.5 / 4) <= 0.006 and abs(high - 45.5 / 11.5 / 4) <= 0.006):
        return (
            "Each of the two times may be off by half a second, and not both in one direction: which pairs are extreme?"
        )


@judges("05.15")
def batch_script(path):
    return batch_scripts.judge(path, trains="ResNet50.py")


@judges("05.16")
def late(gpus):
    yield gpus == 4, "`module load` is a command. How far does sbatch read a script?"
    yield gpus != 0, "Either the line counts, or it does not: which number does each of the two give?"
