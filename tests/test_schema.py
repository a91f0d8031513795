"""TOML files that people write: what a mistake in one says."""

import pytest
from pydantic import BaseModel, PositiveInt, ValidationError

from labs import schema
from labs.errors import LabsError


class Part(schema.Section):
    size: PositiveInt = 1
    names: list[str] = []


class Whole(schema.Section):
    title: str
    parts: list[Part] = []


class Broken(LabsError):
    pass


def said(table):
    with pytest.raises(Broken) as problem:
        schema.check(Whole, table, "my.toml", Broken, "template.toml")
    return str(problem.value)


def test_a_mistake_names_file_and_key_and_what_to_write():
    assert said({}) == "my.toml: title is missing. template.toml explains every key."
    assert said({"titel": "x"}) == "my.toml: titel is not known; did you mean title?"
    assert said({"x": 1}) == "my.toml: x is not known; known are parts, title."
    assert said({"title": True}) == "my.toml: title must be a text in quotes, not True."
    assert said({"title": "", "parts": 3}) == "my.toml: parts must be a list in [ ], not 3."
    assert said({"title": "", "parts": [{}, {"sise": 1}]}) == "my.toml: parts[2].sise is not known; did you mean size?"
    assert said({"title": "", "parts": [{"size": 0}]}) == "my.toml: parts[1].size must be greater than 0, not 0."
    assert said({"title": "", "parts": [{"names": [1]}]}) == (
        "my.toml: parts[1].names[1] must be a text in quotes, not 1."
    )


def test_any_pydantic_model_can_say_its_first_mistake_in_one_line():
    class Record(BaseModel):
        epochs: list[dict[str, float]]

    with pytest.raises(ValidationError) as problem:
        Record.model_validate({"epochs": [{"loss": "x"}]})
    assert schema.first_mistake(problem.value).startswith("epochs[1].loss must be a valid number, ")


def test_a_file_that_is_no_toml_or_is_not_there(tmp_path):
    path = tmp_path / "my.toml"
    with pytest.raises(Broken, match="^my.toml cannot be read: .*No such file"):
        schema.read(path, "my.toml", Broken)
    path.write_text("name = x")
    with pytest.raises(Broken, match="^my.toml cannot be read: Invalid value .* texts are in quotes"):
        schema.read(path, "my.toml", Broken)
