"""What simulators demand of their arguments, and the sentence for one that is not so."""

import math
import numbers
from typing import Any

from labs.errors import UseError


class SimulationError(UseError):
    """A simulation cannot be run as asked; the message names the argument and says what it must be."""


def whole(name: str, value: Any, least: int = 1, most: float = math.inf) -> int:
    """`value` as an int. Raises SimulationError unless it is a whole number from `least` to `most`."""
    good = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not good or not least <= int(value) <= most:
        span = f"at least {least}" if math.isinf(most) else f"from {least} to {most}"
        raise SimulationError(f"{name} is {value!r}: it must be a whole number, {span}.")
    return int(value)


def number(name: str, value: Any, least: float = 0.0, above: bool = False, most: float = math.inf) -> float:
    """`value` as a float. Raises SimulationError unless it is finite, not below `least` (with `above`: above it), and
    not over `most`."""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not least <= float(value) <= most or (above and value == least):
        span = f"above {least:g}" if above else f"at least {least:g}"
        limit = "" if math.isinf(most) else f" and at most {most:g}"
        raise SimulationError(f"{name} is {value!r}: it must be a number {span}{limit}.")
    return float(value)
