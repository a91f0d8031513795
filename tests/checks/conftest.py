"""A course of one lesson with an item of each kind, and its notebook."""

import json

import pytest

from labs.checks import judging, tasks

COURSE = """
notebook = "01_first"
title = "Small"
minutes = 1
task = [
{id = "01.1", kind = "check", title = "The answer", points = 2, why = "It is 42."},
{id = "01.2", kind = "choice", title = "?", points = 1, why = "b it is.", right = "b", wrong = {a = "Early", c = "No"}},
{id = "01.10", kind = "prediction", title = "How many?", number = [0, 100]},
{id = "01.11", kind = "prediction", title = "Better?", words = ["yes", "no", "can't tell"]},
{id = "01.12", kind = "prediction", title = "Who?", words = ["s", "a"], count = 3},
{id = "01.13", kind = "prediction", title = "How long, twice?", number = [0, 1], count = 2},
{id = "01.14", kind = "prediction", title = "Which?", words = ["a", "b", "c", "3", "4"], count = "any"},
{id = "T1", kind = "answer", title = "Explain", holds = ["the `batch` is <global>.", "an interval.", "a third."]},
]
"""


@pytest.fixture
def course(tmp_path, monkeypatch):
    """The folder of the one lesson of a course; 42 is the answer to 01.1."""
    lesson = tmp_path / "lessons/nb01"
    lesson.mkdir(parents=True)
    (lesson / "tasks.toml").write_text(COURSE)
    monkeypatch.setattr(tasks, "LESSONS", lesson.parent)
    monkeypatch.setattr(judging, "JUDGES", {})
    monkeypatch.setattr(judging, "RIGHT", {})
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("LABS_STRICT", raising=False)
    monkeypatch.chdir(tmp_path)

    @judging.judges("01.1")
    def answer(value):
        yield value < 42, "Too small."
        yield value > 42, "Too large."

    return lesson


@pytest.fixture
def write(tmp_path):
    """write(text of T1): a notebook with this answer; its path."""

    def write(text, name="01_first"):
        cells = [{"cell_type": "code", "metadata": {"labs": {"id": "01.1"}}, "source": ["x = 1"]}]
        cells.append({"cell_type": "markdown", "metadata": {"labs": {"id": "T1", "kind": "answer"}}, "source": text})
        path = tmp_path / f"{name}.ipynb"
        path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        return path

    return write
