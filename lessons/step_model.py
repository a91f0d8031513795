"""A model of a training step, term by term: arithmetic with stated assumptions.

    step = computation(batch) x slowest worker / mean worker + what the backward pass does not hide of the all-reduce

How far a real step is from it, only a measurement tells. A range that comes out of `ranged` holds what the ranges of
the inputs do, and nothing that the model leaves out.
"""

from functools import cache, lru_cache
from math import ceil, exp, hypot, log
from typing import NamedTuple

import numpy as np

from labs.errors import UseError, number, whole
from labs.results import intervals
from lessons.reduce import ring_seconds

BACKWARD = 2 / 3  # share of the computation: backward is two of the three products that each layer needs
THRESHOLD = 128 * 2**20  # bytes of a fused message; Horovod's default from 0.21 on
CYCLE = 0.001  # seconds between Horovod's looks for work; its default from 0.21 on
NODES = np.polynomial.legendre.leggauss(120)  # of the integral in `slowest`, and their weights


class Quantity(NamedTuple):
    """A number, the range (low, high) in which it is thought to be, and where both come from."""

    value: float
    low: float
    high: float
    unit: str = ""
    source: str = ""

    def __str__(self):
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}] {self.unit}".rstrip()


def ranged(function, inputs):
    """(value, (low, high)) of `function({name: number})`, a number above 0; inputs: {name: Quantity}.

    Each input goes to both ends of its range with all others at their values. The shifts of the logarithm that they
    make are added in quadrature, upwards and downwards apart (propagation of independent errors: BIPM, Guide to the
    Expression of Uncertainty in Measurement, JCGM 100:2008, section 5.1.2; with whole ranges instead of slopes).
    """
    values = {name: quantity.value for name, quantity in inputs.items()}
    value, down, up = function(values), 0.0, 0.0
    for name, quantity in inputs.items():
        shifts = [log(function(values | {name: end}) / value) for end in (quantity.low, quantity.high)]
        down, up = hypot(down, min(0.0, *shifts)), hypot(up, max(0.0, *shifts))
    return value, (value * exp(-down), value * exp(up))


# Computation


class Line(NamedTuple):
    """level + slope x (batch - centre): seconds of a step over its batch, about the centre of the measured batches,
    where the errors of level and slope are independent."""

    level: Quantity
    slope: Quantity
    centre: float

    def seconds(self, local_batch, level=None, slope=None):
        """Seconds of a step with this batch; level, slope: instead of the fitted ones."""
        level = self.level.value if level is None else level
        line = level + (self.slope.value if slope is None else slope) * (local_batch - self.centre)
        return max(line, 0.05 * level)  # the end of a range may cross 0 far outside


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
        raise UseError(
            "Steps do not get longer with the batch, so no slope can be fitted: measure batch sizes that differ by a "
            "factor of 2 or more, on an idle machine."
        )
    reach = intervals.t_quantile(len(seconds) - 2) * np.sqrt(np.diag(covariance))

    def fitted(value, reach, unit):  # downwards on logarithms: however large the error, no step takes no time
        return Quantity(float(value), float(value * exp(-reach / value)), float(value + reach), unit, "least squares")

    return Line(fitted(level, reach[1], "s"), fitted(slope, reach[0], "s/image"), centre)


# Waiting


@lru_cache(4096)
def slowest(workers, spread):
    """Expected time of the slowest of K workers / mean time of a worker, >= 1; 1 for one worker.

    The workers' times are independent gamma variables with the relative standard deviation `spread` (as in
    lessons.averages_and_rings.stragglers). With the quantile function Q, the maximum of K has the distribution function
    F^K, so

        E[max] = integral of Q(u^(1/K)) over u from 0 to 1.

    Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, 2003, chapters 2 and 3. Raises
    UseError for less than 1 worker or a spread that is negative or above 10.
    """
    from scipy.special import gammainccinv

    workers, spread = whole("workers", workers), number("spread", spread, most=10)
    if workers == 1 or spread < 1e-6:
        return 1.0
    nodes, weights = NODES
    v = (nodes + 1) / 2  # u = 1 - v^3 puts the nodes close to where Q grows without bound
    tail = -np.expm1(np.log1p(-(v**3)) / workers)
    shape = spread**-2
    return float(np.sum(weights / 2 * 3 * v**2 * gammainccinv(shape, tail)) / shape)


# The all-reduce


def two_rings(workers, size, devices, inside, between):
    """Seconds of an all-reduce of `size` bytes: a ring in each node of `devices` workers, then one over the nodes.

    inside, between: (seconds of latency a message, bytes/s) of the links (P. Patarasuk and X. Yuan, JPDC 69, 2009; on
    two levels: X. Jia and others, arXiv 1807.11205, 2018).
    """
    within = ring_seconds(min(workers, devices), size, *inside)
    return within + ring_seconds(ceil(workers / devices), size, *between)


def buckets(tensor_bytes, threshold=THRESHOLD):
    """Bytes of each fused message when all gradients are ready: from the last tensor on, as backward makes them,
    tensors go together while they fit into `threshold` bytes; a larger one goes alone. threshold 0: no fusion.

    Source: A. Sergeev and M. Del Balso, Horovod, arXiv 1802.05799, 2018 ("tensor fusion").
    """
    found, room = [], 0
    for size in reversed(tensor_bytes):
        if found and size <= room:
            found[-1] += size
            room -= size
        else:
            found.append(size)
            room = threshold - size
    return found


def exposed(tensor_bytes, all_reduce, backward, threshold=THRESHOLD, cycle=CYCLE, overlap=1.0):
    """Seconds by which the all-reduces of a step lengthen it; all_reduce: gives the seconds of a message of some bytes.

    overlap 0: all messages of `buckets`, one after the other, when backward has ended. overlap 1: during backward
    (`backward` seconds) the gradients become ready at even distances, the last tensor's first; two of Horovod's cycles
    later (one finds it ready, in one all workers agree) it may go, and as soon as the link is free, one message takes
    all that may go and fit. What ends after backward is exposed; the first layer's gradient always is. Between 0 and 1:
    so far from the one to the other. Source: A. Sergeev and M. Del Balso, arXiv 1802.05799; even distances and two
    cycles are this model's assumptions.
    """
    all_reduce = cache(all_reduce)  # many tensors are equally large
    after = sum(map(all_reduce, buckets(tensor_bytes, threshold))) + 2 * cycle
    sizes, count = tensor_bytes[::-1], len(tensor_bytes)
    may_go = [backward * number / count + 2 * cycle for number in range(1, count + 1)]
    free, first = 0.0, 0
    while first < count:
        start = max(free, may_go[first])
        last, size = first + 1, sizes[first]
        while last < count and may_go[last] <= start and size + sizes[last] <= threshold:
            size, last = size + sizes[last], last + 1
        free, first = start + all_reduce(size), last
    during = min(after, max(0.0, free - backward))
    return overlap * during + (1 - overlap) * after
