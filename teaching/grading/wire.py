"""Values of Python as JSON, between a sandbox and the judge outside. Whatever was sent, reading it runs no code."""

import importlib
import json
from contextlib import suppress
from typing import Any

import numpy as np

from labs.results.run import Run

MOST = 1 << 20  # characters of one message
DEEPEST = 20  # lists in lists


class Blank:
    """A blank that was not filled in."""


class Unfit:
    """A value that cannot cross: `what` is the name of its type; source: of a run, the name of its file."""

    def __init__(self, what, source=None):
        self.what, self.source = str(what)[:80], source if isinstance(source, str) else None


def packed(value, slot, deepest=DEEPEST):
    """A value as what JSON can hold. slot: function that keeps a function and gives its number."""
    kind = type(value)
    if value is ...:
        return {"blank": 1}
    if not deepest:
        return {"unfit": "too deep"}

    def each_of(values):
        return [packed(each, slot, deepest - 1) for each in values]

    if kind in (type(None), bool, str, int, float):
        return value
    if kind in (list, tuple, set, frozenset):
        return {{list: "list", tuple: "tuple"}.get(kind, "set"): each_of(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"named": [kind.__module__, kind.__name__, each_of(value)]}
    if kind is dict:
        return {"dict": list(map(each_of, value.items()))}
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        return packed(value.item(), slot, deepest)
    if kind is np.ndarray and value.dtype.kind in "biuf":
        return {"array": value.tolist(), "dtype": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, Run):
        return {"unfit": kind.__name__, "source": value.source}
    return {"function": slot(value)} if callable(value) and slot else {"unfit": kind.__name__}


def unpacked(data, function, trusted=False):
    """The value that `packed` was given, as plain as it can be. function: what stands for the function of a number.

    trusted: whether it comes from the judge, whose named tuples of this kit are made anew.
    """
    if not isinstance(data, dict):
        return data if isinstance(data, bool | int | float | str | None) else Unfit("list")

    def each_of(values) -> Any:
        return (unpacked(each, function, trusted) for each in values)

    try:
        for kind, build in (("list", list), ("tuple", tuple), ("set", frozenset)):
            if isinstance(data.get(kind), list):
                return build(each_of(data[kind]))
        if "dict" in data:
            return dict(map(each_of, data["dict"]))
        if "array" in data:
            dtype = np.dtype(str(data["dtype"]))
            if dtype.kind not in "biuf":
                return Unfit("array")
            return np.array(data["array"], dtype).reshape([int(n) for n in data["shape"]])
        if "named" in data:
            module, name, values = data["named"]
            if not (trusted and module.startswith(("labs.", "lessons."))):
                return Unfit(name)
            return getattr(importlib.import_module(module), name)(*each_of(values))
        if "function" in data:
            return function(int(data["function"]))
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, MemoryError):
        return Unfit("value")
    return Blank() if "blank" in data else Unfit(data.get("unfit"), data.get("source"))


def line(message):
    """A message as a line."""
    return (json.dumps(message) + "\n").encode(errors="replace")


def read(text):
    """The message in a line, a dict; {} if the line is not a message."""
    with suppress(ValueError, RecursionError):
        message = json.loads(text) if len(text) <= MOST else {}
        return message if isinstance(message, dict) else {}
    return {}
