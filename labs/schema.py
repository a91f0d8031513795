"""Files that are read, checked by a pydantic model: a mistake is one line that names the file and the key."""

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from labs import files

# pydantic's types of errors, as a reader of a file would say them; others: pydantic's own text.
_SAYS = {
    "model_type": "must be a section with keys, not {input}",
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "union_tag_invalid": "{discriminator} must be one of {expected_tags}, not {tag!r}",
}
Model = TypeVar("Model", bound=BaseModel)


class Section(BaseModel):
    """A section of a file: its keys with their types. Other keys are errors, and so is a text for a number."""

    model_config = ConfigDict(strict=True, frozen=True, populate_by_name=True, extra="forbid")


def wrong(key: str, says: str) -> PydanticCustomError:
    """The error to raise in a validator of a section, for one of its keys: "is ...", "must be ..."."""
    return PydanticCustomError("key", "{says}", {"key": key, "says": says})


def read(
    model: type[Model], path: str | Path, where: object, error: type[Exception], template: str | None = None
) -> Model:
    """A TOML file as an instance of a pydantic model.

    where: names the file; template: the one that explains every key, which is named.
    Raises `error` with why it cannot be read, or with its first mistake, in a line that begins with `where`.
    """
    try:
        text = files.read(path).decode("utf-8-sig")  # an editor may have put a mark in front
        return model.model_validate(tomllib.loads(text))
    except OSError as problem:
        raise error(f"{where} cannot be read: {problem.strerror}. Is it there, and may you read it?") from None
    except ValidationError as problem:
        hint = f" {template} explains every key." if template else ""
        raise error(f"{where}: {first_mistake(problem)}{hint}") from None
    except (ValueError, RecursionError) as problem:
        raise error(f"{where} cannot be read: {problem}. A line is `key = value`, texts are in quotes.") from None


def first_mistake(problem: ValidationError) -> str:
    """The first mistake of a pydantic ValidationError in one line: "node.gpus must be a valid integer, not '4'.".

    A key that is not known comes before one that is missing: it may be that one, misspelt.
    """
    mistakes = problem.errors()
    mistake = next((each for each in mistakes if each["type"] == "extra_forbidden"), mistakes[0])
    context = mistake.get("ctx", {})
    given = repr(mistake["input"])
    given = given if len(given) <= 40 else f"{given[:37]}..."
    says = mistake["msg"].removeprefix("Value error, ")
    if mistake["type"] in _SAYS:
        says = _SAYS[mistake["type"]].format(input=given, **context)
    elif says.startswith("Input should be "):
        says = f"must be {says.removeprefix('Input should be ')}, not {given}"
    path = [*mistake["loc"], *([context["key"]] if mistake["type"] == "key" else [])]
    # Elements of lists are counted from 1, as people do: measured[2].batch.
    key = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    line = f"{key} {says}".strip()
    return line if line.endswith((".", "?")) else f"{line}."
