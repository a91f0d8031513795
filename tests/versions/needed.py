"""Prints what the course and this suite need besides TensorFlow and Keras, for `make test-versions`."""

import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
named = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
print(*(line for line in named if not line.startswith(("keras", "nbval", "ruff", "import-linter"))))
