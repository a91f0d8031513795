"""The files of a grading, each with its schema: of a damaged one a line says what is wrong, and what to do."""

import json
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from labs import files, schema
from labs.errors import UseError
from labs.printed import mapped
from teaching.grading.finding import CheckResult, Finding

Number = Annotated[float, Field(allow_inf_nan=False)]
Names = Annotated[list[str], Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _StorePart(BaseModel):
    """A part of a file; keys that a newer kit has added to it are kept."""

    model_config = ConfigDict(extra="allow")


class Who(_StorePart):
    """A student, as the learning platform names them."""

    who: str
    id: str
    platform: str


class Checked(_StorePart):
    """What was found about a submission (teaching.grading.check)."""

    key: str
    submission: str
    notebooks: list[str]
    claimed: list[str]
    answers: dict[str, str]
    code: dict[str, str]
    findings: list[Finding]
    steps: list[tuple[str, str, str | None, list[Positive]]]
    alike: dict[str, list[str]]
    tables: dict[str, list[Annotated[list[str | list[str]], Field(min_length=2)]]]


class ReplayedNotebook(_StorePart):
    """One of its notebooks in replay: how each check was judged (teaching.grading.check)."""

    key: str
    submission: str
    checks: dict[str, CheckResult]
    told: list[str]
    seconds: Number


_AGAIN = "delete it and run `teach in` again, which writes it anew."
# By name or folder: what the file holds, and what helps where it is damaged.
_KINDS = {
    "names.json": (dict[str, Who], "put back a copy of it: without it no number can be told to a student."),
    "collection.json": (dict[str, list[str]], _AGAIN),
    "points.json": (dict[str, Number], "delete it; all that is lost is whose points moved since the last time."),
    "notebooks.json": (Names, "name those that count again: `teach in --notebooks ...`"),
    "checked": (Checked, _AGAIN),
    "replayed": (ReplayedNotebook, _AGAIN),
}


def read(path):
    """What a JSON file of the grading holds, a dict or a list; {} where there is none. Raises UseError."""
    path = Path(path)
    model, help = _KINDS.get(path.name) or _KINDS[path.parent.name]
    return load(path, TypeAdapter(model).validate_python, help)[0] or {}


def path(out, number, notebook=None):
    """The file of a submission's evidence, or of one of its notebooks."""
    return Path(out, f"checked/{number}.json" if notebook is None else f"replayed/{number}-{notebook}.json")


def kept(out, number, notebook=None):
    """What is kept of a submission's evidence, or of one of its notebooks; {} where nothing can be read."""
    with suppress(UseError):
        return read(path(out, number, notebook))
    return {}


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
        data = json.loads(content) if form == "JSON" else tomllib.loads(content.decode())
        return data, validate(mapped(data, _encodable, _encodable))
    except ValidationError as problem:
        mistake = schema.first_mistake(problem)
    except (ValueError, RecursionError) as problem:
        mistake = f"it is not {form} ({problem})."
    raise UseError(f"{path} is damaged: {mistake} Nothing was changed; {help}") from None


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
