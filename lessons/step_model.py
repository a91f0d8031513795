"""A model of a training step, term by term: arithmetic with stated assumptions.

    step = computation(batch) x slowest worker / mean worker + what the backward pass does not hide of the all-reduce

How far a real step is from it, only a measurement tells. A range that comes out of `ranged` holds what the ranges of
the inputs do, and nothing that the model leaves out.
"""

from collections import deque
from functools import cache, lru_cache
from math import ceil, exp, expm1, hypot, inf, log
from typing import NamedTuple

import numpy as np

from labs.errors import UseError
from labs.results import intervals
from lessons.reduce import ring_seconds

BACKWARD = 2 / 3  # share of the computation: backward is two of the three products that each layer needs
CYCLE = 0.001  # seconds between Horovod's looks for work; its default from 0.21 on


class Quantity(NamedTuple):
    """A number, the range (low, high) in which it is thought to be, and where both come from."""

    value: float
    low: float
    high: float
    unit: str = ""
    source: str = ""

    def __str__(self):
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}] {self.unit}".rstrip()


def ranged(function, inputs, most=inf):
    """(value, (low, high)) of `function({name: number})`, from 0 to `most`; inputs: {name: Quantity}.

    Each input goes to both ends of its range with all others at their values. The shifts of the logarithm that they
    make are added in quadrature, upwards and downwards apart (propagation of independent errors: BIPM, Guide to the
    Expression of Uncertainty in Measurement, JCGM 100:2008, section 5.1.2; with whole ranges instead of slopes).
    """
    values = {name: quantity.value for name, quantity in inputs.items()}
    value, down, up = function(values), 0.0, 0.0
    for name, quantity in inputs.items():
        shifts = [log(function(values | {name: end}) / value) for end in (quantity.low, quantity.high)]
        down, up = hypot(down, min(0.0, *shifts)), hypot(up, max(0.0, *shifts))
    return value, (value * exp(-down), min(most, value * exp(up)))


# Computation


class Line(NamedTuple):
    """level + slope x (batch - centre): seconds of a step over its batch, about the centre of the measured batches,
    where the errors of level and slope are independent."""

    level: Quantity
    slope: Quantity
    centre: float

    def seconds(self, local_batch, level=None, slope=None):
        """Seconds of a step with this batch; level, slope: instead of the fitted ones."""
        level, slope = level or self.level.value, slope or self.slope.value
        return max(level + slope * (local_batch - self.centre), 0.05 * level)  # a range's end may cross 0 far outside


def fitted_line(batches, seconds):
    """The Line through measured seconds, one pair for each round; needs 2 different batches and 3 pairs or more.

    Least squares with weights 1 / seconds^2, since errors of times are relative; ranges are 95 % intervals by the
    residuals, with Student's t of n - 2 degrees of freedom (N. Draper and H. Smith, Applied Regression Analysis,
    sections 1.4 and 2.11). Raises UseError for steps that do not get longer with the batch.
    """
    batches, seconds = np.array(batches, float), np.array(seconds, float)
    centre = float(np.average(batches, weights=seconds**-2))
    (slope, level), covariance = np.polyfit(batches - centre, seconds, 1, w=1 / seconds, cov=True)
    if slope <= 0:
        raise UseError("Steps do not get longer with the batch, so no slope can be fitted: measure on an idle machine.")
    reach = intervals.t_quantile(len(seconds) - 2) * np.sqrt(np.diag(covariance))

    def fitted(value, reach, unit):  # downwards on logarithms: however large the error, no step takes no time
        return Quantity(float(value), float(value * exp(-reach / value)), float(value + reach), unit)

    return Line(fitted(level, reach[1], "s"), fitted(slope, reach[0], "s/image"), centre)


# Waiting


@lru_cache(4096)
def slowest(workers, spread):
    """Expected time of the slowest of K workers / mean time of a worker, >= 1; 1 for one worker.

    The workers' times are independent gamma variables with the relative standard deviation `spread` (as in
    lessons.averages_and_rings.stragglers). With the quantile function Q, the maximum of K has the distribution function
    F^K, so

        E[max] = integral of Q(u^(1/K)) over u from 0 to 1.

    Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, 2003, chapters 2 and 3.
    """
    from scipy.integrate import quad
    from scipy.special import gammainccinv

    if workers == 1 or spread < 1e-6:
        return 1.0
    shape = spread**-2
    return quad(lambda u: gammainccinv(shape, -expm1(log(u) / workers)), 0, 1)[0] / shape


# The all-reduce


def two_rings(workers, size, devices, inside, between):
    """Seconds of an all-reduce of `size` bytes: a ring in each node of `devices` workers, then one over the nodes.

    inside, between: (seconds of latency a message, bytes/s) of the links (P. Patarasuk and X. Yuan, JPDC 69, 2009; on
    two levels: X. Jia and others, arXiv 1807.11205, 2018).
    """
    within = ring_seconds(min(workers, devices), size, *inside)
    return within + ring_seconds(ceil(workers / devices), size, *between)


def fused(tensors, threshold, all_reduce=lambda size: 0.0):
    """[(begin, end, bytes)] of the messages of some gradients, [(when it may go, bytes)] in order: when the link is
    free and a gradient may go, all that may go leave together while they fit into `threshold` bytes; a larger one goes
    alone.

    all_reduce: gives the seconds of a message of some bytes; threshold 0: no fusion. Source: A. Sergeev and M. Del
    Balso, Horovod, arXiv 1802.05799, 2018 ("tensor fusion").
    """
    found, end, waiting = [], 0.0, deque(tensors)
    while waiting:
        may_go, size = waiting.popleft()
        begin = max(end, may_go)
        while waiting and waiting[0][0] <= begin and size + waiting[0][1] <= threshold:
            size += waiting.popleft()[1]
        end = begin + all_reduce(size)
        found.append((begin, end, size))
    return found


def exposed(tensor_bytes, all_reduce, backward, threshold, overlap):
    """Seconds by which the all-reduces of a step lengthen it; all_reduce, threshold: as of `fused`.

    overlap 0: all messages, one after the other, when backward has ended. overlap 1: during backward (`backward`
    seconds) the gradients become ready at even distances, the last tensor's first; two of Horovod's cycles later (one
    finds it ready, in one all workers agree) it may go. What ends after backward is exposed; the first layer's gradient
    always is. Between 0 and 1: so far from the one to the other. Even distances and two cycles are this model's
    assumptions.
    """
    all_reduce, count = cache(all_reduce), len(tensor_bytes)  # many tensors are equally large
    may_go = [backward * number / count + 2 * CYCLE for number in range(1, count + 1)]
    during, after = (
        fused(zip(when, reversed(tensor_bytes), strict=True), threshold, all_reduce)[-1][1] - backward
        for when in (may_go, may_go[-1:] * count)
    )
    return overlap * min(max(0.0, during), after) + (1 - overlap) * after
