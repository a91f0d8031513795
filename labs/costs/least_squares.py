"""Least squares with relative errors: the line of computation over the batch, and a ratio through the origin."""

import math
from statistics import fmean

from labs.costs.computation import Line
from labs.costs.parameter import Parameter, ScalingError
from labs.results import intervals

ONE_BATCH = 0.7  # with one batch size: a fixed cost of up to 30 % of the step is thought possible


def line(batches, seconds, resolution=0.0, spread=None):
    """(Line, Parameter of the fixed cost or None, notes) of step seconds over batches, one pair for each repeat.

    Least squares with weights 1 / seconds^2, since errors of times are relative; errors and 95 % intervals from the
    residuals, with Student's t of n - 2 degrees of freedom (N. Draper and H. Smith, Applied Regression Analysis,
    sections 1.4 and 2.11). With n = 2, from `spread`: relative standard error of a repeat's mean step. resolution:
    rounding of the seconds, its half added to both ends. One batch size cannot separate fixed cost and slope: then the
    slope is that of a step that grows with the batch wholly, and its interval goes down to 70 % of this.
    """
    if len(set(batches)) == 1:
        return _one_batch(batches[0], seconds, resolution)
    weights = [value**-2 for value in seconds]
    total = sum(weights)
    centre = sum(w * b for w, b in zip(weights, batches, strict=True)) / total
    level = sum(w * y for w, y in zip(weights, seconds, strict=True)) / total
    square = sum(w * (b - centre) ** 2 for w, b in zip(weights, batches, strict=True))
    slope = sum(w * (b - centre) * y for w, b, y in zip(weights, batches, seconds, strict=True)) / square
    notes, free = [], len(seconds) - 2
    if slope <= 0:
        raise ScalingError(
            "Steps do not get longer with the batch, so no slope can be fitted: measure batch sizes "
            "that differ by a factor of 2 or more, on an idle machine."
        )
    if level < slope * centre:
        notes.append(
            "the fixed cost came out below 0 and is taken as 0: the measured steps grow with the batch at "
            "least in proportion"
        )
        ratio, error = through_origin(batches, seconds, weights)
        free, level, slope, errors = len(seconds) - 1, ratio * centre, ratio, (error * centre, error)
    else:
        residuals = [(y - level - slope * (b - centre)) / y for b, y in zip(batches, seconds, strict=True)]
        variance = sum(r * r for r in residuals) / free if free else (spread or 0.0) ** 2
        errors = math.sqrt(variance / total), math.sqrt(variance / square)
    if not free and not spread:
        notes.append("two measurements for two parameters: no interval; repeat each run")
        return _line(level, slope, centre, (None, None), (None, None), notes)
    t = intervals.t_quantile(free) if free else 1.96
    reach = [t * error for error in errors]
    reach = reach[0] + resolution / 2, reach[1] + resolution / (max(batches) - min(batches))
    return _line(level, slope, centre, errors, reach, notes)


def _line(level, slope, centre, errors, reach, notes):
    # Downwards on a logarithmic scale, as for all times: however large the error, no step takes no time.
    spans = [None if r is None else (v * math.exp(-r / v), v + r) for v, r in zip((level, slope), reach, strict=True)]
    fixed, far = level - slope * centre, None
    if reach[0] is not None:
        far = math.hypot(reach[0], reach[1] * centre)
        far = (max(0.0, fixed - far), fixed + far)
    error = None if errors[0] is None else math.hypot(errors[0], errors[1] * centre)
    found = Line(
        Parameter(level, "s", spans[0], errors[0], f"step at batch {centre:.4g}, least squares"),
        Parameter(slope, "s/image", spans[1], errors[1], "least squares"),
        centre,
    )
    return found, Parameter(max(0.0, fixed), "s", far, error, "level - slope x centre"), notes


def _one_batch(batch, seconds, resolution):
    estimate = intervals.mean(seconds, resolution)
    level = Parameter(estimate.value, "s", estimate.interval, None, f"mean step at batch {batch:g}")
    slope = estimate.value / batch
    text = "step / batch: as if nothing of the step were fixed"
    return (
        Line(level, Parameter(slope, "s/image", (ONE_BATCH * slope, slope), None, text), batch),
        None,
        [
            f"one batch size only ({batch:g}): fixed cost and slope of the computation cannot be separated. Other batches "
            f"are predicted as if nothing were fixed, with an interval that allows {1 - ONE_BATCH:.0%} of the step to be; "
            "measure one worker at a second batch size"
        ],
    )


def through_origin(x, y, weights):
    """(ratio, its standard error or None for one pair) of y = ratio x, by weighted least squares."""
    square = sum(w * a * a for w, a in zip(weights, x, strict=True))
    ratio = sum(w * a * b for w, a, b in zip(weights, x, y, strict=True)) / square
    if len(x) < 2:
        return ratio, None
    left = sum(w * (b - ratio * a) ** 2 for w, a, b in zip(weights, x, y, strict=True))
    return ratio, math.sqrt(left / (len(x) - 1) / square)


def relative_error(seconds, spread, steps):
    """Relative standard error of a repeat's mean step: from the repeats, else from single steps; None: unknown."""
    if len(seconds) > 1:
        centre = fmean(seconds)
        return math.sqrt(sum((s - centre) ** 2 for s in seconds) / (len(seconds) - 1)) / centre
    return spread / math.sqrt(steps) if spread is not None else None
