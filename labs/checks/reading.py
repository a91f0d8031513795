"""What judges look at in a student's answer: numbers, and what a function gives and changes."""

import copy
import pickle


def near(value, wanted, relative=0.01):
    """Whether a number is what is wanted, up to a relative tolerance, of 1 % by default."""
    return abs(float(value) - wanted) <= max(relative * abs(wanted), 1e-9)


def as_rounded(value, wanted, relative=1e-3):
    """Whether a number is what is wanted, within 0.1 % by default, or rounded to 2 or 3 digits."""
    return near(value, wanted, relative) or any(near(value, float(f"{wanted:.{n}g}"), 1e-9) for n in (2, 3))


def called(function, *arguments):
    """(what a function gives for copies of the arguments, hint if it has changed one of them, else None).

    Raises TypeError for a function that returns nothing, which NumPy would take for a number; `judge` says it.
    """
    given, kept_back = copy.deepcopy(arguments), copy.deepcopy(arguments)
    value = function(*given)
    value = value if hasattr(value, "__next__") else copy.deepcopy(value)  # a generator cannot be copied
    if value is None:
        raise TypeError("NoneType is no value")
    for number, (after, before) in enumerate(zip(given, kept_back, strict=True), 1):
        if pickle.dumps(after) != pickle.dumps(before):
            return value, f"Your function changes its argument {number}, which others use after it. Work on a copy."
    return value, None
