"""A student's function and the right one, called with inputs that no student has seen."""

import copy
import random

import numpy as np

from labs.grading.wire import Unfit

TRIES, CALLS = 3, 8  # variants of a call; calls of the judge that are varied
NEAR = 1e-3  # relative: as exact as a formula must be


def differs(theirs, right, calls, seed):
    """Whether a student's function gives anything else than the right one, for variants of the judge's own calls.

    calls: tuples of arguments; seed: of the draw, so that it is the same each time. Inputs for which the right
    function has no answer say nothing.
    """
    draw = random.Random(seed)
    for arguments in calls[:CALLS]:
        for _ in range(TRIES):
            varied = _varied(arguments, draw)
            try:
                wanted = right(*copy.deepcopy(varied))
            except Exception:
                continue
            if not _same(theirs(*varied), wanted):
                return True
    return False


def _varied(arguments, draw):
    """Other arguments of their kinds: the order of numbers stays (the lower end of an interval is below the upper one),
    and so does the ratio of two arrays."""
    scale = draw.uniform(0.6, 1.6)
    made = [_vary(each, draw, scale) for each in arguments]
    places = [place for place, each in enumerate(arguments) if isinstance(each, float)]
    values = iter(sorted(made[place] for place in places))
    for place in sorted(places, key=lambda place: arguments[place]):
        made[place] = next(values)
    return made


def _vary(value, draw, scale):
    """Another value of that kind: other numbers, also in what a list or dict holds. All numbers of a list change by one
    factor, since points of a line must stay on one; whole ones stay, since they may be places; so do 0 and 1, which are
    often special."""
    if isinstance(value, float):
        return value * draw.uniform(0.6, 1.6)
    if isinstance(value, int) and not isinstance(value, bool) and value > 1:
        return value * draw.choice((2, 3))
    if type(value) in (list, tuple):
        of_list = {int: copy.copy, float: lambda each: each * scale}
        return type(value)(of_list.get(type(each), lambda e: _vary(e, draw, scale))(each) for each in value)
    if isinstance(value, dict):
        return {key: _vary(each, draw, scale) for key, each in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return (value * scale).astype(value.dtype)
    return copy.deepcopy(value)


def _same(one, other):
    """Whether two results are equal, numbers up to NEAR; what could not cross is not compared."""
    if isinstance(one, Unfit):
        return True
    if hasattr(other, "__array__"):  # also a tensor
        other = np.asarray(other)
    if isinstance(other, np.ndarray | np.generic | float | int) and not isinstance(other, bool | np.bool_):
        try:
            one, other = np.asarray(one, float), np.asarray(other, float)
        except (TypeError, ValueError):
            return False
        return one.shape == other.shape and np.allclose(one, other, rtol=NEAR, atol=1e-9, equal_nan=True)
    if isinstance(other, list | tuple):
        if not isinstance(one, list | tuple | np.ndarray) or len(one) != len(other):
            return False
        return all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(other, dict):
        return isinstance(one, dict) and one.keys() == other.keys() and all(_same(one[k], other[k]) for k in other)
    if isinstance(other, str):  # as editors write an apostrophe
        return str(one).strip().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'") == other
    return one == other if isinstance(other, bool | None) else True
