"""Judges of 05_resnet50_scaling."""

import math
from statistics import fmean, stdev

from labs.checks.judging import NotDone, judges
from labs.checks.reading import CUT, called, close, near
from labs.printed import an
from labs.results import intervals
from lessons import own_runs, training_scripts
from lessons.asked import refuse_noise, told


@judges("resnet50.3")
def script(path):
    yield from training_scripts.not_mirrored(path, "ResNet50V2")


@judges("resnet50.4")
def epoch_time(seconds, run):
    epochs = [e.seconds for e in run.repeats[0]]
    steady = sum(epochs[1:]) / len(epochs[1:])
    whole = sum(map(round, epochs[1:])) / len(epochs[1:])
    tolerance = max(0.5, 0.02 * steady)
    if not any(close(seconds, mean) or near(seconds, round(mean), 1e-9) for mean in (steady, whole)):
        one = any(close(seconds, epoch) for epoch in epochs[1:])  # it may be within the tolerance
        yield one, "This is a single epoch. Which others come after the first one?"
        last = sum(epochs[-2:]) / 2
        yield near(seconds, last, 1e-3), "These are the last epochs only. Which others come after the first one?"
    yield abs(seconds - steady) <= min(tolerance, abs(sum(epochs) / len(epochs) - steady) / 2), None
    yield (
        abs(seconds - sum(epochs) / len(epochs)) <= tolerance,
        "This mean includes the first epoch. What happens in that epoch that never happens again?",
    )
    yield abs(seconds - epochs[0]) <= tolerance, "This is the first epoch, with tracing and warm-up."
    yield (
        abs(seconds - sum(epochs)) <= tolerance or (len(epochs) > 2 and abs(seconds - sum(epochs[1:])) <= tolerance),
        "This is a sum over epochs. Divide it by the number of epochs.",
    )
    yield abs(seconds - steady) <= tolerance, None
    yield near(seconds, 1000 * steady, 0.05), "These are milliseconds. Give seconds."
    if run.steps:
        step = steady / run.steps
        yield near(seconds, step, 0.05), "These are the seconds of a step. How many steps does an epoch have?"
        yield near(seconds, 1000 * step, 0.05), "These are the milliseconds of a step. Give the seconds of an epoch."
    yield True, "Take the seconds from the lines after `Epoch 2/..`, and compute their mean."


@judges("resnet50.5")
def round_speedups(function):
    value, changed = called(function, [4.0, 5.0, 8.0, 3.0], [2.5, 2.5, 5.0, 4.0])
    yield changed, changed
    lazy = hasattr(value, "__next__")
    yield lazy, f"Your function returns {an(type(value).__name__)} object, not yet a list: wrap it in `list(...)`."
    yield (
        not hasattr(value, "__len__"),
        "One number hides how much the rounds differ. Return a list with a speedup for each round.",
    )
    value = [float(each) for each in value]

    def is_(*wanted):
        return len(value) == 4 and all(near(a, b, 1e-3) for a, b in zip(value, wanted, strict=True))

    yield is_(1.6, 2.0, 1.6, 0.75), None
    yield len(value) != 4, f"4 rounds were given, so return a list of length 4. Yours has length {len(value)}."
    yield is_(2.5 / 4, 0.5, 5 / 8, 4 / 3), "Upside down: a speedup above 1 means faster."
    yield is_(1.5, 2.5, 3, -1), "A difference in seconds is not a speedup: divide."
    yield is_(1, 2, 1, 0), CUT
    yield is_(1.6, 2, 1.6, 0.8) or is_(2, 2, 2, 1), "These speedups are rounded: do not round what `/` gives."
    yield is_(1.6, 2.0, 1.6, 1), "In one of these rounds, p workers are slower. Its speedup is below 1: keep it."
    yield len({round(each, 6) for each in value}) == 1, "All the same? Each round has its own two times."
    yield True, "Divide the time on 1 worker by the time on p workers of the same round."


@judges("resnet50.6")
def interval(function):
    speedups = [1.5, 1.7, 1.6, 1.9, 1.4]
    value, changed = called(function, speedups)
    yield changed, changed
    yield (not hasattr(value, "__len__") or len(value) != 3, "Return three numbers: the mean and both ends.")
    logs, n = [math.log(speedup) for speedup in speedups], len(speedups)
    mean, deviation, t = fmean(logs), stdev(logs), intervals.t_quantile(n - 1)
    centre, low, high = map(float, value)

    def reaches(reach):
        return near(low, math.exp(mean - reach), 1e-4) and near(high, math.exp(mean + reach), 1e-4)

    yield near(centre, mean, 1e-6), "These are still logarithms. `exp` turns a logarithm into a speedup."
    yield near(centre, fmean(speedups), 1e-6), "The mean is that of the speedups. Take their logarithms first."
    yield not near(centre, math.exp(mean), 1e-4), "The first number is not `exp` of the mean of the logarithms."
    yield low > high, "The lower end is above the upper one: swap them."
    yield reaches(t * deviation), "The ends are t standard *deviations* away. How does a mean of n values vary?"
    yield reaches(1.96 * deviation / math.sqrt(n)), "This is the factor for very many rounds. Here it is Student's t."
    yield reaches(deviation / math.sqrt(n)), "The ends are one standard error away. By how many must it be?"
    root = t * deviation * math.sqrt((n - 1) / n) / math.sqrt(n)
    yield reaches(root), "This standard deviation divides by n: `pstdev` does, and NumPy's `std` without `ddof=1`."
    yield reaches(intervals.t_quantile(n) * deviation / math.sqrt(n)), "Student's t has n - 1 degrees of freedom here."
    one_side = intervals.t_quantile(n - 1, 0.95) * deviation / math.sqrt(n)
    yield reaches(one_side), "This leaves out 5 % on each side. Leave out 2.5 % on each."
    yield reaches(t * deviation / n), "You divide by n. The standard error divides by the square root of n."
    yield (not reaches(t * deviation / math.sqrt(n)), "The mean is right. Each end is t standard errors away.")
    longer, _ = called(function, speedups * 2)
    error = intervals.t_quantile(2 * n - 1) * stdev(logs * 2) / math.sqrt(2 * n)
    yield (
        not near(list(longer)[2], math.exp(mean + error), 1e-4),
        f"With {n} rounds it is right, with {2 * n} it is not. Which of your numbers depend on n?",
    )


@judges("resnet50.13")
def usual_step(function):
    epochs = [[9.0, 2.5, 2.4], [1.0, 1.3, 5.0], [1.0, 1.2, 1.1, 1.4]]
    value, changed = called(function, epochs)
    yield changed, changed
    yield hasattr(value, "__len__"), "Return one median of all steady steps, not one for each epoch."
    if near(value, 1.2, 1e-3):
        of_even, _ = called(function, [[9.0, 2.5], [1.0, 3.0], [1.4, 2.0]])
        yield near(of_even, 1.7, 1e-3), None
        yield (
            True,
            "With an odd number of steps, this is the median. With an even number, two steps stand in the middle: the "
            "median is their mean. Does `median` from the first cell help?",
        )
    yield (
        near(value, 1.35, 1e-3),
        "This includes the steps of the first epoch. What happens in that epoch that never happens again?",
    )
    yield near(value, 12 / 7, 1e-3), "This is a mean: one step of 5 s shifts it by half a second. Take the median."
    yield near(value, 25.9 / 10, 1e-3), "This is a mean, and it includes the first epoch."
    yield (
        near(value, 1.225, 1e-3),
        "This uses the median of each epoch. First put the steps of all steady epochs together.",
    )
    yield near(value, 1.3, 1e-3), "The first step of each steady epoch is missing here: those steps count, too."
    yield (
        near(value, 1.4, 1e-3),
        "The first *step* of each epoch is left out here. Leave out the first *epoch*, and nothing else.",
    )
    yield near(value, 1.0, 1e-3), "The step in the middle of a list is its median only if the list is sorted."
    yield True, "Leave out the first epoch, sort all the other steps, and take the step in the middle."


@judges("resnet50.14")
def slower_of_two(function):
    value, changed = called(function, [1.0, 1.2, 2.0, 1.0])
    yield changed, changed
    yield hasattr(value, "__len__"), "Return one number: the mean over all pairs."
    yield near(value, 1.5, 1e-3), None
    yield (
        near(value, 2.0, 1e-3),
        "This is the slowest step of all, and most pairs are faster. Take the mean over the pairs.",
    )
    yield near(value, 1.3, 1e-3), "This is the mean step of one worker, in which nobody waits."
    yield near(value, 9.4 / 6, 1e-3), "Both workers may draw the same step, so 4 steps make 16 pairs."
    yield (
        near(value, 1.46, 1e-3),
        "(1.0, 2.0) and (2.0, 1.0) are two different pairs: either worker may be the slow one.",
    )
    yield near(value, 1.1, 1e-3), "This is the faster of the two. Who waits for whom?"
    yield near(value, 2.6, 1e-3), "You add the two times, but both workers compute at the same time."
    yield True, "Take the larger time of each pair, then the mean over all pairs. 4 steps make 16 pairs."


@judges("resnet50.8")
def own_study(sentence, runs):
    yield from own_runs.no_runs(runs)
    if all(run.kind == "recorded" for run in runs):
        raise NotDone("Finish resnet50.3, then run the training: this question is about your own runs.")
    yield from own_runs.not_yours(runs, runs)
    of = {run.workers: run for run in runs}
    yield 1 not in of, "There is no run with 1 worker. Without this baseline you cannot call anything faster."
    yield 2 not in of, "There is no run with 2 workers: run at least 1 and 2."
    given = told(sentence)
    yield (
        given not in ("faster", "slower", "can't tell"),
        f"{sentence!r} is not one of the three answers. Spell your answer as in the text.",
    )
    refuse_noise(of[2])
    interval = of[2].speedup.interval
    low, high = interval or (0, math.inf)
    yield given == ("faster" if low > 1 else "slower" if high < 1 else "can't tell"), None
    yield interval is None, "One round gives no interval, so you do not know how much the next round would differ."
    seen = f"The interval of your speedup ranges from {low:.3g} to {high:.3g}"
    yield low <= 1 <= high, f"{seen}, and a speedup of 1 is inside it."
    yield (
        given == "can't tell",
        f"{seen}, and 1 is not inside it. So the spread of your rounds does not explain the difference.",
    )
    yield True, f"{seen}. On which side of 1 is that?"


@judges("T6")
def plots(figure, runs):
    yield from own_runs.no_plots(figure)
    yield from own_runs.not_yours(runs, runs)
    yield from own_runs.no_curve(figure, runs, "your runs")


@judges("resnet50.10")
def unconnected(speedup, steps):
    alone, together, exchange = (steps[kind] for kind in ("alone", "together", "exchange"))

    exchanged = "This one includes the exchange. Which kind of step has two training runs but no exchange?"
    formulas = [
        (2 * alone / together, None),
        (
            alone / together,
            "This is the efficiency: it counts the images of one worker. How many images do both train in that step?",
        ),
        (together / alone, "Upside down: this is how much longer a step takes while another run is training."),
        (2 * together / alone, "Upside down: the longer the steps together, the smaller the speedup must be."),
        (2 * alone / exchange, exchanged),
        (2 * alone / steps["input"], exchanged),
        (
            alone / exchange,
            "This counts one worker's images only, and the exchange is part of it. Take the kind without exchange.",
        ),
    ]
    for tolerance in (1e-9, 0.01):  # as Python computes it; else by hand from the rounded numbers that are printed
        for value, hint in formulas:
            is_it = near(speedup, value, tolerance) or (tolerance > 1e-9 and close(speedup, value))
            yield is_it, hint
    yield (
        True,
        "In a step together, both train twice as many images as one alone. Divide images by seconds in both cases.",
    )


@judges("resnet50.12")
def updates(one, two, runs):
    steps = {run.workers: run.steps for run in runs}
    yield (one, two) == (steps.get(1), steps.get(2)), None
    yield one == two, "Is the number really the same for both? The global batch of 2 workers is twice as large."
    yield (
        (two, one) == (steps.get(1), steps.get(2)),
        "It is the other way round: with more images per step, there are fewer steps.",
    )
    yield True, "There is one update per step. In the log, an epoch's line begins with the number of its steps."
