"""95 % intervals of means and ratios over repeats, with the rounding of a log on top.

Ratios within rounds (`paired`) hold these 95 % on a machine that drifts. Means of times do not: they are those of the
minutes in which they were measured.

Of times and ratios, t intervals are taken on logarithms, since these are positive and their errors relative. Welch's t
with few repeats keeps its promise where a bootstrap does not (3 repeats, 3 % noise: 95 % against 81 %).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import correlation, fmean, linear_regression, variance

ONE_RUN = "1 run: no interval; repeat it 3 times or more, or measure in turns"
CHANGING = "the ratio still changes from round to round, as in a warm-up: do not trust its interval; train longer"
TOO_SHORT = "times shorter than their rounding: no interval"
LEVEL = 0.025  # share of the ratios without a change that are called changing: 5 % in a comparison, which has two
NOTHING = 0.001  # a smaller slope of the log ratio, 0.1 %, matters to no study; equal ratios have no correlation


@dataclass(frozen=True)
class Estimate:
    """A value, its 95 % interval (low, high) or None, and what a reader must know about them.

    Also its parts: the logarithm in the middle of the interval and its standard error with its degrees of freedom (None
    where a sample is one value, which has no spread and so no interval), and the factors (low, high) of the rounding;
    and whether the ratios of which it is the mean are `changing`.
    """

    value: float | None
    interval: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    centre: float = 0.0
    error: float | None = None
    degrees: float | None = None
    rounding: tuple[float, float] = (1.0, 1.0)
    changing: bool = False

    @property
    def rounded(self) -> tuple[float, float] | None:
        """(low, high): what the value can be, since times were rounded; not a 95 % interval. None if not rounded."""
        low, high = self.rounding
        return None if self.value is None or low == high else (self.value * low, self.value * high)

    def scaled(self, factor: float) -> "Estimate":
        """The same estimate in another unit: value and interval times `factor` (> 0)."""
        interval = self.interval and (self.interval[0] * factor, self.interval[1] * factor)
        value = self.value and self.value * factor
        return replace(self, value=value, interval=interval, centre=self.centre + math.log(factor))


UNKNOWN = Estimate(None)


def t_quantile(degrees: float, share: float = 0.975) -> float:
    """Quantile of Student's t with `degrees` of freedom, which need not be a whole number."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, share))


def plain(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % t interval of the mean of `values` of any sign (a loss, a difference), not on logarithms; None for fewer
    than 2, or without bounds."""
    if len(values) < 2:
        return None
    try:
        reach = t_quantile(len(values) - 1) * math.sqrt(variance(values) / len(values))
        return fmean(values) - reach, fmean(values) + reach
    except OverflowError:
        return None


def shares(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the mean of accuracies over repeats.

    values: shares from 0 to 1, as is the interval; None for fewer than 2. A t interval of their log-odds, whose ends
    lie around the mean (the delta method: the standard error of the mean, divided by m (1 - m), is that of its
    log-odds). A mean of 0 or 1 has no log-odds: then all values are equal, and so are the ends.
    """
    if len(values) < 2:
        return None
    centre = fmean(values)
    if not 0 < centre < 1:
        return centre, centre
    odds, scale = math.log(centre / (1 - centre)), centre * (1 - centre)
    reach = t_quantile(len(values) - 1) * math.sqrt(variance(values) / len(values)) / scale
    low, high = (1 / (1 + math.exp(-max(-700.0, min(700.0, odds + side * reach)))) for side in (-1, 1))
    return low, high


def mean(sample: Sequence[float], resolution: float = 0.0) -> Estimate:
    """The mean of a sample of values > 0, with its interval.

    resolution: the steps to which each is rounded (same unit, 0 = not rounded). The worst case of rounding is half a
    step of all values in one direction. A single value gives no interval.
    """
    value, logs = fmean(sample), [math.log(x) for x in sample]
    half = resolution / 2 / value
    rounding = max(0.0, 1 - half), 1 + half
    if len(sample) < 2:
        return Estimate(value, None, (ONE_RUN,), rounding=rounding)
    return _estimate(value, fmean(logs), [(variance(logs) / len(logs), len(logs) - 1)], rounding)


def changing(ratios: Sequence[float]) -> bool:
    """Whether ratios, round after round, still approach their value, as one side's warm-up lets them.

    A t test, at LEVEL, of the slope of their logarithms over exp(-round / 2), which is how a warm-up fades that is felt
    for a few rounds (tests/results/test_drift.py simulates it so). False with fewer than 4 rounds.
    """
    logs, warming = [math.log(ratio) for ratio in ratios], [math.exp(-n / 2) for n in range(len(ratios))]
    if len(logs) < 4 or abs(linear_regression(warming, logs).slope) < NOTHING:
        return False
    square = correlation(warming, logs) ** 2
    return square * (len(logs) - 2) > (1 - square) * t_quantile(len(logs) - 2, 1 - LEVEL / 2) ** 2


def paired(above: Sequence[float], below: Sequence[float], resolutions: tuple[float, float] = (0.0, 0.0)) -> Estimate:
    """The ratio of two samples whose values belong together in pairs.

    Such as two epochs of one round; values > 0. The geometric mean of the pairs' ratios, with Student's t on their
    logarithms: what changes from pair to pair, but not within one, is not in the interval. resolutions: steps to which
    above and below are rounded (in notebook 10; records are not). One pair gives no interval. Where the ratios are
    `changing`, this is noted.
    """
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    logs = [math.log(ratio) for ratio in ratios]
    centre = fmean(logs)
    half_above, half_below = (
        step / 2 / fmean(values) for step, values in zip(resolutions, (above, below), strict=True)
    )
    if half_below >= 1:
        return Estimate(math.exp(centre), None, (TOO_SHORT,))
    half = (1 + half_above) / (1 - half_below) - 1
    if len(logs) < 2:
        return Estimate(math.exp(centre), None, ("1 round: no interval; measure 3 or more",))
    parts = [(variance(logs) / len(logs), len(logs) - 1)]
    found = _estimate(math.exp(centre), centre, parts, (max(0.0, 1 - half), 1 + half))
    return replace(found, changing=True, notes=(CHANGING,)) if changing(ratios) else found


def ratio(above: Estimate, below: Estimate) -> Estimate:
    """The ratio of two independent Estimates of `mean`, `paired` or `ratio`; UNKNOWN where one of them is.

    On logarithms this is a difference of means, see `_estimate`.
    """
    if above.value is None or below.value is None:
        return UNKNOWN
    value = above.value / below.value
    if not below.rounding[0]:
        return Estimate(value, None, (TOO_SHORT,))
    rounding = above.rounding[0] / below.rounding[1], above.rounding[1] / below.rounding[0]
    if above.error is None or below.error is None:
        return Estimate(value, None, (ONE_RUN,), rounding=rounding)
    parts = [(above.error**2, above.degrees), (below.error**2, below.degrees)]
    return _estimate(value, above.centre - below.centre, parts, rounding)


def _estimate(value, centre, parts, rounding):
    """The Estimate around exp(centre) of a sum of means of logarithms, with rounding on top of both ends.

    parts: (square of the standard error, degrees of freedom) of each mean. Welch's t with the degrees of freedom of
    Satterthwaite (F. Satterthwaite, Biometrics Bulletin 2, 1946; B. Welch, Biometrika 34, 1947).
    """
    total, spread = sum(square for square, _ in parts), sum(square**2 / degrees for square, degrees in parts)
    error, degrees = math.sqrt(total), total**2 / spread if spread else 1.0
    reach = t_quantile(degrees) * error if error else 0.0
    low, high = math.exp(centre - reach) * rounding[0], math.exp(centre + reach) * rounding[1]
    return Estimate(value, (min(low, value), max(high, value)), (), centre, error, degrees, rounding)
