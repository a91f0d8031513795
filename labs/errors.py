"""What is the user's to mend. The command line turns these, and only these, into one line and an exit code."""

import math
import numbers
from typing import Any


class LabsError(Exception):
    """Something that the reader of the message can mend: what happened, why it matters, what to do.

    `code` is the exit code of the command line: 2 for wrong use, 1 for a problem that was found or met on the way.
    """

    code = 1


class UseError(LabsError):
    """What was asked for cannot be done: wrong use."""

    code = 2


class HorovodError(LabsError):
    """Horovod would fail, hang or train something else than is meant; the message says why and what to do."""


def whole(name: str, value: Any, least: int = 1, most: float = math.inf) -> int:
    """`value` as an int. Raises UseError unless it is a whole number from `least` to `most`; True, 64.0 and "64" are
    mistakes more often than numbers. name: of what it counts."""
    good = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not good or not least <= int(value) <= most:
        span = f"at least {least}" if math.isinf(most) else f"from {least} to {most}"
        raise UseError(f"{name} is {value!r}: it must be a whole number, {span}.")
    return int(value)


def number(name: str, value: Any, above: bool = False) -> float:
    """`value` as a float. Raises UseError unless it is finite, and not below 0 (with `above`: above 0)."""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value < 0 or (above and value == 0):
        raise UseError(f"{name} is {value!r}: it must be a number {'above' if above else 'at least'} 0.")
    return float(value)
