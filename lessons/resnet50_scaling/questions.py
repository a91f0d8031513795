"""Questions of 05_resnet50_scaling."""

import math
from functools import partial
from itertools import combinations, product
from operator import sub
from statistics import fmean, median, median_high, median_low, pstdev, stdev

from labs.checks.judging import NotDone, judges
from labs.checks.reading import as_rounded, near
from labs.results import intervals
from lessons import own_runs, training_scripts
from lessons.asked import refuse_noise, told, undecided
from lessons.forms import formula, value

judges("resnet50.3")(partial(training_scripts.not_mirrored, network="ResNet50V2"))


@judges("resnet50.4")
def epoch_time(seconds, run):
    epochs = [epoch.seconds for epoch in run.repeats[0]]
    steady, whole = fmean(epochs[1:]), fmean(map(round, epochs[1:]))
    tolerance = max(0.5, 0.02 * steady)
    yield any(as_rounded(seconds, mean) or near(seconds, round(mean), 1e-9) for mean in (steady, whole)), None
    some = any(as_rounded(seconds, part) for part in (*epochs[1:], fmean(epochs[-2:])))  # may be within the tolerance
    yield some, "This is one epoch, or the last ones only. Which others come after the first one?"
    yield abs(seconds - steady) <= min(tolerance, abs(sum(epochs) / len(epochs) - steady) / 2), None
    yield (
        any(abs(seconds - each) <= tolerance for each in (sum(epochs) / len(epochs), epochs[0])),
        "This includes the first epoch. What happens in that epoch that never happens again?",
    )
    added = len(epochs) > 2 and any(abs(seconds - each) <= tolerance for each in (sum(epochs), sum(epochs[1:])))
    yield added, "This is a sum over epochs. Divide it by the number of epochs."
    yield abs(seconds - steady) <= tolerance, None
    step = steady / (run.steps or math.inf)
    other = any(near(seconds, each, 0.05) for each in (1000 * steady, step, 1000 * step))
    yield other, "These are milliseconds, or those of a step. Give the seconds of an epoch."
    yield True, "Take the seconds from the lines after `Epoch 2/..`, and compute their mean."


def _in_rounds(of):
    return lambda *seconds: list(map(of, *seconds))


formula(
    "resnet50.5",
    right=lambda seconds_1, seconds_p: [one / p for one, p in zip(seconds_1, seconds_p, strict=True)],
    cases=[([4.0, 5.0, 8.0, 3.0], [2.5, 2.5, 5.0, 4.0]), ([9.0, 6.0], [6.0, 2.5])],
    wrong=[
        (_in_rounds(sub), "A difference in seconds is not a speedup: divide."),
        (_in_rounds(lambda one, p: max(one / p, 1)), "In a round, p workers are slower: keep its speedup, below 1."),
    ],
    otherwise="Divide the time on 1 worker by the time on p workers of the same round.",
)


def _interval(speedups, share=0.975, spread=stdev, root=math.sqrt, factor=None):
    """The answer to resnet50.6; each other parameter is a way to get it wrong."""
    logs = [math.log(speedup) for speedup in speedups]
    factor = factor or intervals.t_quantile(len(logs) - 1, share)
    mean, reach = fmean(logs), factor * spread(logs) / root(len(logs))
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)


formula(
    "resnet50.6",
    right=_interval,
    cases=[([1.5, 1.7, 1.6, 1.9, 1.4],), ([0.9, 1.3, 1.2],)],
    wrong=[
        (lambda speedups: (fmean(map(math.log, speedups)), ..., ...), "This is still a logarithm. What undoes `log`?"),
        (lambda speedups: (fmean(speedups), ..., ...), "This is the mean of the speedups: take logarithms first."),
        (partial(_interval, root=lambda n: 1), "The ends are t standard *deviations* away. How does a mean vary?"),
        (partial(_interval, factor=1.96), "This is the factor for very many rounds. Here it is Student's t."),
        (lambda speedups: (..., *_interval(speedups)[:0:-1]), "The ends are in the wrong order: the lower one first."),
        (
            lambda speedups: sorted(_interval(speedups)),
            "The numbers are right, in another order: first the mean, then the lower end, then the upper one.",
        ),
        (partial(_interval, share=0.95), "This leaves out 5 % on each side. How much is left out on both together?"),
        (partial(_interval, spread=pstdev), "You divide by n: `pstdev` does, and NumPy's `std` without `ddof=1`."),
    ],
    otherwise="Go through the four steps of the text again. Which of your numbers depend on n, and how?",
)


def _usual(epochs, first=1, begin=0, middle=median):
    """The answer to resnet50.13; each other parameter is a way to get it wrong."""
    return middle([step for epoch in epochs[first:] for step in epoch[begin:]])


formula(
    "resnet50.13",
    right=_usual,
    cases=[
        ([[9.0, 2.5, 2.4], [1.0, 1.3, 5.0], [1.0, 1.2, 1.1, 1.4]],),
        ([[8.0, 2.5], [1.0, 3.0], [1.4, 2.0]],),
        ([[12.0, 2.5], [1.5, 3.1], [1.4, 2.0], [7.0, 8.0]],),
    ],
    wrong=[
        (partial(_usual, first=0), "This includes the first epoch. What happens in it that never happens again?"),
        (partial(_usual, middle=fmean), "This is a mean, which one slow step shifts. Take the median."),
        (lambda epochs: median(map(median, epochs[1:])), "First put the steps of all steady epochs together."),
        (partial(_usual, first=0, begin=1), "The first *step* of each epoch is missing. What is not to count?"),
        (
            [partial(_usual, middle=median_high), partial(_usual, middle=median_low)],
            "With an even number of steps, two are in the middle. What is the median?",
        ),
        (partial(_usual, middle=lambda steps: steps[len(steps) // 2]), "In which order are your steps?"),
    ],
    otherwise="Which steps count, and which of them is in the middle?",
)


def _slower(steps, of=max, pairs=lambda steps: product(steps, repeat=2)):
    """The answer to resnet50.14; each other parameter is a way to get it wrong."""
    return fmean(map(of, pairs(steps)))


formula(
    "resnet50.14",
    right=_slower,
    cases=[([1.0, 1.2, 2.0, 1.0],)],  # one: who returns its number is found in grading (tests/grading/made_class.py)
    wrong=[
        (max, "This is the slowest step of all, and most pairs are faster. Take the mean over the pairs."),
        (fmean, "This is the mean step of one worker, in which nobody waits."),
        (partial(_slower, pairs=lambda steps: combinations(steps, 2)), "Which of the 16 pairs are missing?"),
        (partial(_slower, of=min), "This is the faster of the two. Who waits for whom?"),
        (partial(_slower, of=sum), "You add the two times, but both workers compute at the same time."),
    ],
    otherwise="Take the larger time of each pair, then the mean over all pairs. 4 steps make 16 pairs.",
)


@judges("resnet50.8")
def own_study(sentence, runs):
    yield from own_runs.no_runs(runs)
    if all(run.kind == "recorded" for run in runs):
        raise NotDone("Finish resnet50.3, then run the training: this question is about your own runs.")
    yield from own_runs.not_yours(runs, runs)
    of = {run.workers: run for run in runs}
    yield not {1, 2} <= of.keys(), "Run at least 1 and 2 workers: without a baseline, you cannot call anything faster."
    refuse_noise(of[2])
    interval = of[2].speedup.interval
    alone = interval is None and told(sentence) != "can't tell"
    yield alone, "One round gives no interval, so you do not know how much the next round would differ."
    yield from undecided(sentence, interval or (0, math.inf), 1, "faster", "slower", "The interval of your speedup")


@judges("T6")
def plots(figure, runs):
    yield from own_runs.no_plots(figure)
    yield from own_runs.not_yours(runs, runs)
    yield from own_runs.no_curve(figure, runs, "your runs")


def _gain(steps, images=2, kind="together"):
    return images * steps["alone"] / steps[kind]


value(
    "resnet50.10",
    right=lambda steps: _gain(steps),
    wrong=[
        (lambda steps: _gain(steps, images=1), "This is the efficiency. How many images do both train in that step?"),
        ([lambda steps: 2 / _gain(steps), lambda steps: 4 / _gain(steps)], "Upside down: what is divided by what?"),
        ([partial(_gain, kind="exchange"), partial(_gain, kind="input")], "Is there an exchange in that kind of step?"),
    ],
    otherwise="In a step together, both train twice as many images. Divide images by seconds in both cases.",
    tolerance=3e-3,  # by hand, from the rounded numbers that are printed
)


def _updates(runs):
    """Steps of an epoch on 1 and on 2 workers."""
    steps = {run.workers: run.steps for run in runs}
    return steps[1], steps[2]


value(
    "resnet50.12",
    right=_updates,
    wrong=[
        (lambda runs: _updates(runs)[:1] * 2, "The same for both? The global batch of 2 workers is twice as large."),
        (lambda runs: _updates(runs)[::-1], "The other way round: with more images per step, there are fewer steps."),
    ],
    otherwise="There is one update per step. In the log, an epoch's line begins with the number of its steps.",
)
