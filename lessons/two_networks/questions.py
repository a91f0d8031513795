"""Judges of 10_two_networks."""

import itertools
import math
from functools import partial
from statistics import fmean, variance

from labs.checks import reading
from labs.checks.judging import judges
from lessons import own_runs

near = partial(reading.near, relative=0.005)
close = partial(reading.close, relative=0.005)


@judges("networks.1")
def plots(figure, runs):
    from matplotlib.text import Text

    yield from own_runs.no_plots(figure)
    legends = [text.get_text() for axis in figure.axes for text in (axis.get_legend() or figure).findobj(Text)]
    names = sorted({run.model for run in runs})
    yield (
        not all(any(name in text for text in legends) for name in names),
        "No legend names both networks, so a reader cannot tell one curve from the other.",
    )
    for name in names:
        yield from own_runs.no_curve(figure, [run for run in runs if run.model == name], name)


@judges("networks.2")
def epoch_ratio(ratio, runs):
    seconds = {(run.model, run.workers): run.epoch_seconds.value for run in runs}
    small, large = seconds["ResNet50V2", 1], seconds["ResNet152V2", 1]
    yield close(ratio, large / small), None
    yield near(ratio, small / large), "Upside down: divide the longer epoch by the shorter one."
    yield near(ratio, large - small), "This is a difference in seconds. How many *times* as long is it?"
    two = seconds.get(("ResNet152V2", 2))
    yield (
        two and (near(ratio, two / small) or near(ratio, large / two)),
        "This ratio includes a run on 2 workers: compare the two networks on one worker.",
    )
    yield True, "Divide the epoch seconds of ResNet152V2 on 1 worker by those of ResNet50V2 on 1 worker."


TIMES = ([8.0, 9.1, 8.1, 8.4], [4.4, 5.2, 4.3, 4.7], [13.0, 16.3, 12.9, 14.1, 13.5], [7.4, 9.1, 7.5, 7.8, 7.7])


@judges("networks.3")
def contrast(function):
    centre, error = map(float, function(*(list(times) for times in TIMES)))
    logs = [[math.log(t) for t in times] for times in TIMES]
    s1, s2, l1, l2 = map(fmean, logs)
    right = (l1 - l2) - (s1 - s2)

    def sums(value):
        return abs(centre - value) < 1e-5

    yield sums(-right), "The sign is wrong: E(large) is the numerator of the ratio."
    yield (
        sums((l1 - l2) + (s1 - s2)),
        "This is the logarithm of the product of the efficiencies. What sign does the logarithm of a divisor have?",
    )
    yield sums((l1 - s1) - (s2 - l2)), "The signs are mixed up: first write out the formula with its four terms."
    yield sums(math.exp(right)), "This is the ratio itself. Give its logarithm."
    means = [math.log(fmean(times)) for times in TIMES]
    yield (
        sums((means[2] - means[3]) - (means[0] - means[1])),
        "You took logarithms of mean times. Take the logarithm in each round first, then their mean.",
    )
    ratios = [fmean(a / b for a, b in zip(*TIMES[k : k + 2], strict=True)) for k in (0, 2)]
    yield (
        sums(math.log(ratios[1] / ratios[0])),
        "You took the logarithm of mean ratios. Take the logarithm in each round first, then their mean.",
    )
    yield (
        not sums(right),
        "The first number is not the difference in the formula. Take the mean of the logarithms of the ratios.",
    )
    ratios = [[a - b for a, b in zip(*logs[k : k + 2], strict=True)] for k in (0, 2)]
    squares = list(map(variance, ratios))
    parts = [square / len(v) for square, v in zip(squares, ratios, strict=True)]
    wanted = math.sqrt(sum(parts))

    def errs(value):
        return abs(error - value) < 2e-3 * wanted

    yield errs(wanted), None
    equal = [times[:4] for times in TIMES]
    parts_4 = [variance([math.log(a / b) for a, b in zip(*equal[k : k + 2], strict=True)]) / 4 for k in (0, 2)]
    yield (
        near(list(function(*equal))[1], math.sqrt(sum(parts_4)), relative=2e-3),
        "The standard error was tested twice. With 4 rounds of each network it is right; with 4 rounds of the "
        "smaller network and 5 of the larger one it is not.",
    )
    yield errs(wanted**2), "This is the variance of the difference. The standard error is its square root."
    yield (
        errs(math.sqrt(sum(squares))),
        "The variance of a mean of n values is smaller than that of one value: divide by n.",
    )
    yield errs(sum(map(math.sqrt, parts))), "You added standard errors. For independent means, the *variances* add up."
    yield errs(math.sqrt(abs(parts[0] - parts[1]))), "You subtracted variances. A difference is as uncertain as a sum."
    yield (
        errs(math.sqrt(sum(variance(values) / len(values) for values in logs))),
        "These are the variances of all four lists of times. They include whatever slowed down a whole round. Take "
        "the logarithm of the ratio within each round first, then its variance.",
    )
    yield (
        abs(error - wanted * math.sqrt(3 / 4)) < 0.05 * wanted,
        "Close: `variance` divides by n - 1, `pvariance` by n. The rounds are a sample.",
    )
    yield (
        True,
        "The second number is not the standard error. Divide each variance by its n, add them up, and take the root.",
    )


def _other_interval(_, draw):
    """[low, high, matters] with each end on any side of where the answer changes: an interval drawn at will is seldom
    close to it."""
    matters = draw.choice((0.05, 0.1, 0.2, 0.4))
    lows = 1 - 2 * matters, 1 - matters, 1 / (1 + matters), 1.0, 1 + matters
    highs = 1 - matters, 1.0, 1 + matters, 1 + 2 * matters
    low, high = (draw.uniform(*draw.choice([*itertools.pairwise(ends)])) for ends in (lows, highs))
    return [min(low, high), max(low, high), matters]


@judges("networks.4", varied=_other_interval)
def answer(function):
    cases = {
        (1.01, 1.20, 0.05): "yes",
        (0.80, 0.97, 0.05): "yes",
        (1.005, 1.02, 0.05): "yes",
        (0.97, 1.03, 0.05): "no",
        (0.90, 1.10, 0.05): "can't tell",
        (0.90, 1.02, 0.05): "can't tell",
        (0.98, 1.10, 0.05): "can't tell",
        (0.97, 1.03, 0.01): "can't tell",
        (0.90, 1.08, 0.2): "no",
        (0.81, 1.10, 0.2): "can't tell",  # between 1 - matters and 1 / (1 + matters)
    }
    told = {case: str(function(*case)).strip().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'") for case in cases}
    words = {"yes", "no", "can't tell"}
    for value in told.values():
        yield value not in words, f"{value!r} is not one of the three answers. Spell it as in the text."
    yield told == cases, None
    yield (
        all(told[case] == "yes" for case in cases if case[1] < 1)
        and all(told[case] == "no" for case in cases if case[0] < 1 < case[1]),
        "An interval that contains 1 does not prove that there is no difference: it may contain large ones as well.",
    )
    yield "no" not in told.values(), "Some intervals are narrow enough to say that there is no difference that matters."
    yield (
        told[1.005, 1.02, 0.05] != "yes",
        "The interval from 1.005 to 1.02 does not contain 1, so the difference is real, though it is small.",
    )
    yield told[0.80, 0.97, 0.05] != "yes", "A ratio can be below 1, too: then the whole interval lies below 1."
    yield (
        told[0.97, 1.03, 0.01] == "no" or told[0.90, 1.08, 0.2] != "no",
        "Your function does not use `matters`, which says how small a difference must be for it not to matter.",
    )
    yield (
        told[0.90, 1.02, 0.05] == "no" or told[0.98, 1.10, 0.05] == "no",
        'For a "no", *both* ends must lie within the range of differences that do not matter.',
    )
    if [case for case in cases if told[case] != cases[case]] == [(0.81, 1.10, 0.2)]:
        said = told[0.81, 1.10, 0.2]
        yield (
            True,
            f'For low = 0.81, high = 1.10, matters = 0.2 you return "{said}". Compare your lower bound with the text.',
        )
    yield True, "Go through the three sentences in order, and check both ends of the interval."


@judges("networks.6")
def exchange_seconds(function):
    tensors, size, workers, latency, bandwidth = 100, 8e7, 4, 2e-5, 1e10
    value = float(function(tensors, size, workers, latency, bandwidth))
    messages, moved = 2 * (workers - 1) * tensors * latency, 2 * (workers - 1) / workers * size / bandwidth
    yield reading.near(value, messages + moved, 1e-6), None
    yield near(value, messages), "The bytes are missing: each worker sends 2 (K - 1) / K times `size`."
    yield near(value, moved), "The latency is missing: each tensor needs 2 (K - 1) messages."
    yield (
        near(value, messages / tensors + moved),
        "The latency of one tensor is in it. How many tensors are exchanged, one after another?",
    )
    yield (
        near(value, tensors * (messages / tensors + moved)),
        "`size` is the whole gradient: the bytes of all tensors together. Count them once.",
    )
    yield (
        near(value, messages + 2 * (workers - 1) * size / bandwidth),
        "A message carries a K-th of a tensor, and a worker sends 2 (K - 1) / K times the bytes in all.",
    )
    yield near(value, (messages + moved) / 2), "This is one round of the ring. First sums go round, then the results."
    yield near(value, tensors * latency + moved), "A tensor needs 2 (K - 1) messages in a row, not one."
    yield (True, "Add two terms: the messages of all tensors, and the bytes that a worker sends, over the bandwidth.")
