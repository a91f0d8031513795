"""TOML files that people write: what a mistake in one says."""

import pytest
from pydantic import PositiveInt

from labs import schema
from labs.errors import LabsError


class Part(schema.Section):
    size: PositiveInt = 1


class Whole(schema.Section):
    title: str
    parts: list[Part] = []


class Broken(LabsError):
    pass


def test_a_mistake_names_file_and_key_and_what_to_write(tmp_path):
    path = tmp_path / "my.toml"
    for text, says in (
        ("", "title is missing."),
        ("titel = 'x'", "titel is not known here."),
        ("title = true", "title must be a valid string, not True."),
        ("title = ''\nparts = 3", "parts must be a valid list, not 3."),
        ("title = ''\nparts = [{}, {sise = 1}]", "parts[2].sise is not known here."),
        ("title = ''\nparts = [{size = 0}]", "parts[1].size must be greater than 0, not 0."),
    ):
        path.write_text(text)
        with pytest.raises(Broken) as problem:
            schema.read(Whole, path, "my.toml", Broken, "template.toml")
        assert str(problem.value) == f"my.toml: {says} template.toml explains every key."


def test_a_file_that_is_no_toml_or_is_not_there(tmp_path):
    path = tmp_path / "my.toml"
    with pytest.raises(Broken, match=r"^my.toml cannot be read: No such file or directory\. Is it there"):
        schema.read(Whole, path, "my.toml", Broken)
    path.write_text("name = x")
    with pytest.raises(Broken, match="^my.toml cannot be read: Invalid value .* texts are in quotes"):
        schema.read(Whole, path, "my.toml", Broken)
