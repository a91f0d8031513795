"""Questions of 10_two_networks."""

import itertools
import math
from statistics import fmean, pvariance, variance

from labs.checks.judging import judges
from lessons import own_runs
from lessons.forms import formula, value


@judges("networks.1")
def plots(figure, runs):
    from matplotlib.text import Text

    yield from own_runs.no_plots(figure)
    legends = [text.get_text() for axis in figure.axes for text in (axis.get_legend() or figure).findobj(Text)]
    names = sorted({run.model for run in runs})
    named = all(any(name in text for text in legends) for name in names)
    yield not named, "No legend names both networks, so a reader cannot tell one curve from the other."
    for name in names:
        yield from own_runs.no_curve(figure, [run for run in runs if run.model == name], name)


def _seconds(runs, model, workers=1):
    return next((run.epoch_seconds.value for run in runs if (run.model, run.workers) == (model, workers)), math.nan)


def _ratio(runs, large=1, small=1):
    """Epoch seconds of ResNet152V2 divided by those of ResNet50V2, on these numbers of workers."""
    return _seconds(runs, "ResNet152V2", large) / _seconds(runs, "ResNet50V2", small)


value(
    "networks.2",
    right=_ratio,
    wrong=[
        (
            lambda runs: _seconds(runs, "ResNet152V2") - _seconds(runs, "ResNet50V2"),
            "This is a difference in seconds. How many *times* as long is it?",
        ),
        (
            [lambda runs: _ratio(runs, large=2), lambda runs: _ratio(runs, small=2)],
            "This ratio includes a run on 2 workers: compare the two networks on one worker.",
        ),
    ],
    otherwise="Divide the epoch seconds of ResNet152V2 on 1 worker by those of ResNet50V2 on 1 worker.",
    tolerance=0.005,
)


def _logs(pair):
    """Logarithms of the ratios of two lists of times, round by round."""
    return [math.log(one / two) for one, two in zip(*pair, strict=True)]


def _centre(small_1, small_2, large_1, large_2, mean=lambda pair: fmean(_logs(pair))):
    return mean((large_1, large_2)) - mean((small_1, small_2))


def _error(*samples):
    """Standard error of a sum or difference of the samples' means."""
    return math.sqrt(sum(variance(sample) / len(sample) for sample in samples))


def _first(mistake):
    return lambda *times: (mistake(*times), ...)


def _second(mistake):
    return lambda *times: (..., mistake(_logs(times[:2]), _logs(times[2:])))


def _log_of_means(pair):
    return math.log(fmean(pair[0]) / fmean(pair[1]))


def _log_of_mean_ratio(pair):
    return math.log(fmean(one / two for one, two in zip(*pair, strict=True)))


formula(
    "networks.3",
    right=lambda *times: (_centre(*times), _error(_logs(times[:2]), _logs(times[2:]))),
    cases=[
        ([8.0, 9.1, 8.1, 8.4], [4.4, 5.2, 4.3, 4.7], [13.0, 16.3, 12.9, 14.1, 13.5], [7.4, 9.1, 7.5, 7.8, 7.7]),
        ([6.2, 7.9, 6.6], [3.7, 4.1, 3.9], [11.0, 12.3, 10.4], [6.9, 7.1, 6.3]),
    ],
    wrong=[
        (_first(lambda *times: -_centre(*times)), "The sign is wrong: E(large) is the numerator of the ratio."),
        (_first(lambda *times: math.exp(_centre(*times))), "This is the ratio itself. Give its logarithm."),
        (
            [
                _first(lambda *times, mean=mean: _centre(*times, mean=mean))
                for mean in (_log_of_means, _log_of_mean_ratio)
            ],
            "You took the logarithm of means. Take the logarithm in each round first, then their mean.",
        ),
        (_second(lambda a, b: _error(a, b) ** 2), "This is a variance. The standard error is its square root."),
        (
            _second(lambda a, b: math.sqrt(variance(a) + variance(b))),
            "The variance of a mean of n values is smaller than that of one value: divide by n.",
        ),
        (_second(lambda a, b: math.sqrt(sum(pvariance(x) / len(x) for x in (a, b)))), "You divide by n, not n - 1."),
        (_second(lambda a, b: _error(a) + _error(b)), "You added standard errors. Of independent means, what adds up?"),
        (
            lambda *times: (..., _error(*([math.log(time) for time in each] for each in times))),
            "These variances include whatever slowed down a whole round. Take the ratios within each round first.",
        ),
    ],
    otherwise="First the mean of the logarithms of the ratios; for the second number, divide each variance by its n.",
    tolerance=1e-3,
)


def _other_interval(_, draw):
    """[low, high, matters] with each end on any side of where the answer changes: an interval drawn at will is seldom
    close to it."""
    matters = draw.choice((0.05, 0.1, 0.2, 0.4))
    lows = 1 - 2 * matters, 1 - matters, 1 / (1 + matters), 1.0, 1 + matters
    highs = 1 - matters, 1.0, 1 + matters, 1 + 2 * matters
    low, high = (draw.uniform(*draw.choice([*itertools.pairwise(ends)])) for ends in (lows, highs))
    return [min(low, high), max(low, high), matters]


def _answer(large="can't tell", small="no", below="yes", above="yes", least=lambda matters: 1 / (1 + matters), most=1):
    """The function of the question with mistakes: what it says of intervals with 1 inside, and of those beside 1."""

    def function(low, high, matters):
        if high < 1:
            return below
        if low > 1:
            return above if high <= 1 + matters else "yes"
        return small if low >= least(matters) and high <= 1 + matters * most else large

    return function


ENDS = (1.01, 1.2), (0.8, 0.97), (1.005, 1.02), (0.97, 1.03), (0.9, 1.1), (0.9, 1.02), (0.98, 1.1), (1, 1.2), (0.8, 1)

formula(
    "networks.4",
    right=_answer(),
    cases=[
        *((low, high, 0.05) for low, high in ENDS),
        (0.97, 1.03, 0.01),
        (0.90, 1.08, 0.2),
        (0.90, 1.22, 0.2),  # between 1 + matters and 1 / (1 - matters)
        (0.81, 1.10, 0.2),  # between 1 - matters and 1 / (1 + matters)
    ],
    wrong=[
        (_answer(large="no"), "An interval around 1 proves no equality: large differences may lie in it, too."),
        (_answer(small="can't tell"), "Some intervals are so narrow that no difference in them matters."),
        (_answer(above="no"), "From 1.005 to 1.02, 1 is outside: the difference is real, though small."),
        ([_answer(below="can't tell"), _answer(below="no")], "A ratio can be below 1, too, and its whole interval."),
        (
            [_answer(least=lambda matters: 0), _answer(most=math.inf)],
            'For a "no", *both* ends must lie within the range of differences that do not matter.',
        ),
        (
            _answer(least=lambda matters: 1 - matters),
            "Of the cases tried, only low = 0.81, high = 1.10, matters = 0.2 is wrong. Compare your lower bound.",
        ),
    ],
    otherwise="Go through the three sentences in order, and check both ends of the interval.",
    varied=_other_interval,
)


def _exchange(messages=lambda n, k: 2 * (k - 1) * n, parts=lambda n, k: 2 * (k - 1) / k):
    """The function of the question: latencies of the messages, and the parts of `size` that a worker sends."""
    return lambda n, size, k, latency, bandwidth: messages(n, k) * latency + parts(n, k) * size / bandwidth


formula(
    "networks.6",
    right=_exchange(),
    cases=[(100, 8e7, 4, 2e-5, 1e10), (270, 9.4e7, 8, 5e-5, 2.5e9)],
    wrong=[
        (_exchange(parts=lambda n, k: 0), "The bytes are missing: each worker sends 2 (K - 1) / K times `size`."),
        (_exchange(messages=lambda n, k: 0), "The latency is missing: each tensor needs 2 (K - 1) messages."),
        (_exchange(messages=lambda n, k: 2 * (k - 1)), "The latency of one tensor is in it. How many are exchanged?"),
        (_exchange(parts=lambda n, k: 2 * (k - 1) / k * n), "`size` is the whole gradient: count all tensors once."),
        (_exchange(parts=lambda n, k: 2 * (k - 1)), "A message carries only a K-th of a tensor. What is sent in all?"),
        (_exchange(messages=lambda n, k: n), "A tensor needs 2 (K - 1) messages in a row, not one."),
    ],
    otherwise="Add two terms: the messages of all tensors, and the bytes that a worker sends, over the bandwidth.",
)
