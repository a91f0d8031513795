"""Least squares with relative errors: the line of computation over the batch, and a ratio through the origin."""

import math

import numpy as np

from labs.costs.chosen import CHOSEN
from labs.costs.computation import FittedLine
from labs.costs.notes import note
from labs.costs.parameter import CostError, Parameter
from labs.results import intervals

ONE_BATCH = 0.7  # with one batch size: a fixed cost of up to 30 % of the step is thought possible


def line(batches, seconds, resolution=0.0, spread=None):
    """(FittedLine, Parameter of the fixed cost or None, notes) of step seconds over batches, one pair for each repeat.

    Least squares with weights 1 / seconds^2, since errors of times are relative; errors and 95 % intervals from the
    residuals, with Student's t of n - 2 degrees of freedom (N. Draper and H. Smith, Applied Regression Analysis,
    sections 1.4 and 2.11). spread: relative standard deviation from run to run, for runs without repeats: few points
    can lie on a line by chance, so errors are not taken below those of this spread, with its degrees of freedom
    (CHOSEN.repeat_degrees). resolution: rounding of the seconds, its half added to both ends. One batch size cannot
    separate fixed cost and slope: then the slope is that of a step that grows with the batch wholly, and its interval
    goes down to 70 % of this.
    """
    if len(set(batches)) == 1:
        return _one_batch(batches[0], seconds, resolution, spread)
    x, y = np.array(batches, float), np.array(seconds, float)
    weights = y**-2
    total, centre, level = weights.sum(), np.average(x, weights=weights), np.average(y, weights=weights)
    square = weights @ (x - centre) ** 2
    slope = weights @ ((x - centre) * y) / square
    notes, free = [], len(seconds) - 2
    if slope <= 0:
        raise CostError(
            "Steps do not get longer with the batch, so no slope can be fitted: measure batch sizes "
            "that differ by a factor of 2 or more, on an idle machine."
        )
    if level < slope * centre:
        notes.append(note("below_zero"))
        slope, error = through_origin(x, y, weights)
        free, level, error = len(y) - 1, slope * centre, error or 0.0
        errors = error * centre, error
    else:
        residuals = (y - level - slope * (x - centre)) / y
        variance = residuals @ residuals / free if free else 0.0
        errors = math.sqrt(variance / total), math.sqrt(variance / square)
    if not free and not spread:
        notes.append(note("no_interval"))
        reach = None
    else:
        t = intervals.t_quantile(free) if free else 0.0
        least = intervals.t_quantile(CHOSEN.repeat_degrees) * (spread or 0.0)
        reach = [max(t * error, least / math.sqrt(w)) for error, w in zip(errors, (total, square), strict=True)]
        reach = reach[0] + resolution / 2, reach[1] + resolution / (max(batches) - min(batches))
    return *_line(float(level), float(slope), float(centre), reach), notes


def _line(level, slope, centre, reach):
    """(FittedLine, Parameter of the fixed cost). reach: half intervals of level and slope, or None."""
    fixed, spans, far = level - slope * centre, (None, None), None
    if reach:
        # Downwards on a logarithmic scale, as for all times: however large the error, no step takes no time.
        spans = [(v * math.exp(-r / v), v + r) for v, r in zip((level, slope), map(float, reach), strict=True)]
        width = math.hypot(reach[0], reach[1] * centre)
        far = (max(0.0, fixed - width), fixed + width)
    found = FittedLine(
        Parameter(level, "s", spans[0], f"step at batch {centre:.4g}, least squares"),
        Parameter(slope, "s/image", spans[1], "least squares"),
        centre,
    )
    return found, Parameter(max(0.0, fixed), "s", far, "level - slope x centre")


def _one_batch(local_batch, seconds, resolution, spread):
    value, span = float(np.mean(seconds)), None
    if len(seconds) > 1:
        span = intervals.mean(seconds, resolution).interval
    if spread or (len(seconds) == 1 and resolution):
        error = (spread or 0.0) / math.sqrt(len(seconds))
        reach, half = math.exp(intervals.t_quantile(CHOSEN.repeat_degrees) * error), resolution / 2
        least = max(0.0, value / reach - half), value * reach + half
        span = (min(least[0], span[0]), max(least[1], span[1])) if span else least
    slope = value / local_batch
    text = "step / batch: as if nothing of the step were fixed"
    found = FittedLine(
        Parameter(value, "s", span, f"mean step at batch {local_batch:g}"),
        Parameter(slope, "s/image", (ONE_BATCH * slope, slope), text),
        local_batch,
    )
    return found, None, [note("one_batch", local_batch=local_batch, fixed=1 - ONE_BATCH)]


def through_origin(x, y, weights):
    """(ratio, its standard error or None for one pair) of y = ratio x, by weighted least squares."""
    x, y, weights = (np.asarray(values, float) for values in (x, y, weights))
    square = weights @ x**2
    ratio = float(weights @ (x * y) / square)
    if len(x) < 2:
        return ratio, None
    return ratio, math.sqrt(weights @ (y - ratio * x) ** 2 / (len(x) - 1) / square)


def relative_error(seconds, spread, steps):
    """Relative standard deviation of a single run's mean step from run to run: that of recorded runs, or what its steps
    show if it is more; None for several repeats, which show it themselves."""
    if len(seconds) > 1:
        return None
    return max(CHOSEN.repeat_spread, (spread or 0.0) / math.sqrt(steps))
