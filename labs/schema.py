"""Files that are read, checked by a pydantic model: a mistake is one line that names the file and the key."""

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from labs import files
from labs.printed import an

# By pydantic's types of errors.
_SAYS = files.beside(__file__)
Model = TypeVar("Model", bound=BaseModel)


class Section(BaseModel):
    """A section of a file: its keys with their types. Other keys are errors, and so is a text for a number."""

    model_config = ConfigDict(strict=True, frozen=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, table):
        if isinstance(table, dict):
            known(table, [field.alias or name for name, field in cls.model_fields.items()])
        return table


def known(table: Iterable[str], keys: Iterable[str]) -> None:
    """Raise the error of the first key of `table` that is not among `keys`, with the one that was meant."""
    for key in table:
        if key not in keys:
            near = get_close_matches(key, keys, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(keys))}."
            raise wrong(key, f"is not known; {hint}")


def wrong(key: str, says: str) -> PydanticCustomError:
    """The error to raise in a validator of a section, for one of its keys: "is ...", "must be ..."."""
    return PydanticCustomError("key", "{says}", {"key": key, "says": says})


def read(path: str | Path, where: object, error: type[Exception]) -> dict[str, Any]:
    """The tables of a TOML file. Raises `error` with a line that begins with `where`, which names the file."""
    try:
        return tomllib.loads(files.read(path).decode("utf-8-sig"))  # an editor may have put a mark in front
    except (OSError, ValueError, RecursionError) as problem:
        raise error(f"{where} cannot be read: {problem}. A line is `key = value`, texts are in quotes.") from None


def check(
    model: type[Model], table: dict[str, Any], where: object, error: type[Exception], template: str | None = None
) -> Model:
    """The tables of a file as an instance of a pydantic model.

    where: names the file; template: the one that explains every key, which is named where one is missing.
    Raises `error` with the first mistake, in a line that begins with `where`.
    """
    try:
        return model.model_validate(table, context={"file": where})
    except ValidationError as problem:
        hint = f" {template} explains every key." if template and problem.errors()[0]["type"] == "missing" else ""
        raise error(f"{where}: {first_mistake(problem)}{hint}") from None


def first_mistake(problem: ValidationError) -> str:
    """The first mistake of a pydantic ValidationError in one line: "node.gpus must be a whole number, not '4'."."""
    found = problem.errors()[0]
    given, context = _short(found["input"]), found.get("ctx", {})
    says = found["msg"].removeprefix("Value error, ")
    if found["type"] in _SAYS:
        says = _SAYS[found["type"]].format(input=given, **context)
    elif says.startswith("Input should be "):
        says = f"must be {says.removeprefix('Input should be ')}, not {given}"
    path = [*found["loc"], *([context["key"]] if found["type"] == "key" else [])]
    # Elements of lists are counted from 1, as people do: measured[2].batch.
    key = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    said = f"{key} {says}".strip()
    return said if said.endswith((".", "?")) else f"{said}."


def _short(given):
    """What was given, as Python writes it, cut where it is long."""
    try:
        text = repr(given)
    except (ValueError, RecursionError):  # thousands of digits, thousands of lists in lists
        text = f"{an(type(given).__name__)} that is too large"
    return text if len(text) <= 40 else f"{text[:37]}..."
