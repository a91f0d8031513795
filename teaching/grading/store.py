"""The files of a grading, as they are read: of a damaged one a line says what is wrong, and what to do."""

import json
import tomllib
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from labs import files, schema
from labs.errors import UseError
from labs.printed import mapped

_AGAIN = "delete it and run `teach in` again, which writes it anew."
# What helps where a file is damaged.
_HELP = {
    "names.json": "put back a copy of it: without it no number can be told to a student.",
    "points.json": "delete it; all that is lost is whose points moved since the last time.",
    "notebooks.json": "name those that count again: `teach in --notebooks ...`",
}
# What `teach in` finds of a submission (teaching.grading.examine).
_FOUND = {*"submission key replayed notebooks claimed answers code findings steps alike tables".split()}


def read(path):
    """The dict that a JSON file of the grading holds; {} where there is none. Raises UseError."""
    path = Path(path)

    def whole(data):
        if not isinstance(data, dict) or (path.parent.name == "checked" and not data.keys() >= _FOUND):
            raise ValueError("it does not hold all that this kit writes")

    return load(path, whole, _HELP.get(path.name, _AGAIN))[0] or {}


def found(out, number):
    """What is kept of a submission; {} where nothing can be read."""
    with suppress(UseError):
        return read(checked(out, number))
    return {}


def checked(out, number):
    """The file of what was found of a submission."""
    return Path(out, f"checked/{number}.json")


def load(path, validate, help, form="JSON") -> tuple[Any, Any]:
    """(the data in a file, what `validate` makes of it); (None, None) where there is none. form: JSON, or TOML.

    Raises UseError with a line that ends with `help`, which says what to do about a damaged file.
    """
    try:
        content = files.read(path)
    except FileNotFoundError:
        return None, None
    except OSError as problem:
        raise UseError(f"{path} cannot be read: {problem.strerror}. Make it a readable file, or {help}") from None
    try:
        data = json.loads(content, object_pairs_hook=_once) if form == "JSON" else tomllib.loads(content.decode())
        return data, validate(mapped(data, _encodable, _encodable))
    except ValidationError as problem:
        mistake = schema.first_mistake(problem)
    except (ValueError, RecursionError) as problem:
        mistake = f"it is not {form} of a grading ({problem})."
    raise UseError(f"{path} is damaged: {mistake} Nothing was changed; {help}") from None


def _once(pairs):
    """The dict of these pairs. Raises ValueError where a name stands twice: JSON takes the last one, and drops what the
    first one held."""
    if len(data := dict(pairs)) < len(pairs):
        raise ValueError(f"{Counter(name for name, _ in pairs).most_common(1)[0][0]!r} stands twice in one place")
    return data


def append_toml(path, lines, head=""):
    """Put lines at the end of a TOML file, which begins with `head` where it is new. Raises UseError where it would not
    be TOML any more."""
    before = files.read(path).decode() if path.exists() else head
    text = "\n".join([before.rstrip("\n"), *lines, ""])
    try:
        tomllib.loads(text)
    except ValueError:
        form = "Write its tables as [notebook.NN], [[answer]], [[comment]] and [[pin]]"
        raise UseError(f"{path} takes nothing more at its end. {form}. Nothing was changed.") from None
    files.write(path, text)


def _encodable(value):
    """The value; of a text one that an encoding can write, which pydantic asks for: names of files, and what students
    paste, may hold halves of characters."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
