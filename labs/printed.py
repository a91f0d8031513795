"""Text for people and for programs: without control characters, numbers and plurals, JSON that every reader takes.

`mapped` and `grouped` print nothing: they make ready what is to be printed, the values in lists and dicts.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

Key, Value = TypeVar("Key"), TypeVar("Value")


def printable(text: object) -> str:
    """The text with control characters, and what no encoding can write, as \\x1b; line breaks and tabs stay.

    Names in records and lines of logs are printed, and a terminal would obey what they hold.
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def mapped(value: Any, change: Callable, key: Callable = lambda name: name) -> Any:
    """The value with change(each) for everything but lists and dicts, also inside of these; key: for a dict's keys."""
    if isinstance(value, dict):
        return {key(name): mapped(item, change, key) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(item, change, key) for item in value]
    return change(value)


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """{key: [its values]} of (key, value) pairs, in their order."""
    found = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def digits(value: float, most: int = 3) -> str:
    """A number with `most` digits that count, a larger one whole, with commas: 0.938, 45, 1,111. It has an exponent
    below 0.0001 only."""
    return f"{value:,.0f}" if abs(value) >= 10**most - 0.5 else f"{value:.{most}g}"


def few(names: Sequence[str], most: int = 8) -> str:
    """The first of some names, and how many more there are, for one line: nobody reads hundreds."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")


def several(number: object, thing: str) -> str:
    """ "1 worker", "2 workers"."""
    return f"{number} {thing}{'s' * (number != 1)}"


def an(name: str) -> str:
    """ "a Tensor", "an EagerTensor", "an ndarray"."""
    return f"a{'n' * name.startswith((*'AEIOaeio', 'nd'))} {name}"


def finite(value: Any) -> Any:
    """The value with None for numbers that are not finite, which JSON does not know; also inside lists and dicts."""
    return mapped(value, lambda each: None if isinstance(each, float) and not math.isfinite(each) else each)


def as_json(value: Any) -> str:
    """The value as JSON text, with null for numbers that are not finite."""
    return json.dumps(finite(value), indent=1, allow_nan=False)
