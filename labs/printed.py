"""What goes to a terminal or to another program: no control characters, JSON that every reader takes."""

import json
import math


def printable(text):
    """The text with control characters, and what no encoding can write, as \\x1b; line breaks and tabs stay.

    Names in records and lines of logs are printed, and a terminal would obey what they hold.
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def finite(value):
    """The value with None for numbers that are not finite, which JSON does not know; also inside lists and dicts."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(value, indent=1):
    """The value as JSON text, with null for what is no finite number."""
    return json.dumps(finite(value), indent=indent, allow_nan=False)


def about(seconds):
    """A time that is left, in words."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= 1.5 * unit:
            return f"about {seconds / unit:.0f} {name}"
    return f"about {max(seconds, 1):.0f} s"
