"""A student's function and the right one, called with inputs that no student has seen."""

import copy
import random
from typing import Any

import numpy as np

from labs.checks import judging
from teaching.grading.wire import Unfit

TRIES, CALLS = 3, 8  # variants of a call; calls of the judge that are varied
ATTEMPTS = 6  # to draw a variant whose right answer is another one
NEAR = 1e-3  # relative: as exact as a formula must be


def differs(theirs, right, calls, seed, id=None):
    """Whether a student's function gives anything else than the right one, for variants of the judge's own calls.

    theirs, right: the two functions
    calls: tuples of arguments, those of the judge's own calls
    seed: of the random draw; the same seed gives the same variants
    id: of the check, whose judge may say how its arguments are varied

    Variants for which the right function raises an error are left out.
    """
    variants = drawn(right, calls, seed, id)
    return any(not _same(theirs(*arguments), wanted) for arguments, wanted, _ in variants)


def drawn(right, calls, seed, id=None):
    """[(other arguments, the right answer to them, whether this differs from the answer to the judge's own arguments)].

    The answers differ in at least half of them, where such arguments are found: otherwise a function that repeats what
    it once answered the judge would pass. Arguments are those of `differs`.
    """
    draw = random.Random(seed)
    vary = id and getattr(judging.judge_of(id), "varied", None) or _varied
    tries = [_one(right, arguments, vary, draw) for arguments in calls[:CALLS] for _ in range(TRIES)]
    other, same = ([found for found in tries if found and found[2] is differs] for differs in (True, False))
    made = other + same[: len(other) or TRIES]
    draw.shuffle(made)  # so counting the calls tells no answer
    return made


def _one(right, arguments, vary, draw):
    """A variant of a call whose right answer differs; after ATTEMPTS any variant with an answer; else None."""
    found, before = None, _answer(right, arguments)
    for _ in range(ATTEMPTS):
        made = vary(arguments, draw)
        if wanted := _answer(right, made):
            found = made, wanted[0], not (before and _same(wanted[0], before[0]))
            if found[2]:
                break
    return found


def _answer(right, arguments):
    """(What the right function returns,), or None where it has no answer."""
    try:
        return (right(*copy.deepcopy(arguments)),)
    except Exception:
        return None


def _varied(arguments, draw):
    """Other arguments of the same types. The order of numbers stays, as that of the two ends of an interval."""
    made = [_vary(each, draw) for each in arguments]
    places = [place for place, each in enumerate(arguments) if isinstance(each, float)]
    values = iter(sorted(made[place] for place in places))
    for place in sorted(places, key=lambda place: arguments[place]):
        made[place] = next(values)
    return made


def _vary(value: Any, draw, scale=None) -> Any:
    """Another value of the same type: other numbers, also inside of a list, dict or array. One factor, `scale`, for
    all floats of a list or array keeps their order, and points on a line. Whole numbers in a list stay, since they may
    be indices; so do 0 and 1, which often have a meaning of their own."""
    scale = scale or draw.uniform(0.6, 1.6)
    if type(value) in (list, tuple):
        return type(value)(each if type(each) is int else _vary(each, draw, scale) for each in value)
    if isinstance(value, float):
        return value * scale
    if isinstance(value, int) and not isinstance(value, bool) and value > 1:
        return value * draw.choice((2, 3))
    if isinstance(value, dict):
        return {key: _vary(each, draw) for key, each in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return (value * scale).astype(value.dtype)
    return copy.deepcopy(value)


def _same(one, other):
    """Whether two results are equal, numbers up to NEAR; what could not cross is not compared."""
    if isinstance(one, Unfit):
        return True
    if hasattr(other, "__array__"):  # also a tensor
        other = np.asarray(other)
    if isinstance(other, bool | np.bool_ | None):
        return one == other
    if isinstance(other, np.ndarray | np.generic | float | int):
        try:
            one, other = np.asarray(one, float), np.asarray(other, float)
        except (TypeError, ValueError):
            return False
        return one.shape == other.shape and np.allclose(one, other, rtol=NEAR, atol=1e-9, equal_nan=True)
    if isinstance(other, list | tuple):
        alike = isinstance(one, list | tuple | np.ndarray) and len(one) == len(other)
        return alike and all(map(_same, one, other))
    if isinstance(other, dict):
        return isinstance(one, dict) and one.keys() == other.keys() and all(_same(one[k], other[k]) for k in other)
    # A text as editors write an apostrophe; anything else is not compared.
    return not isinstance(other, str) or str(one).strip().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'") == other
