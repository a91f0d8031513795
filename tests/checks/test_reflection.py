"""labs.checks.reflect: the list that opens behind a written answer."""

import json

import pytest

from labs import checks
from labs.checks import tasks
from labs.report.course import Course

HEAD = "### T1: your answer\n"
HOLDS = ["the `batch` is <global>.", "an interval.", "a third."]


@pytest.fixture
def opened(course, monkeypatch):
    """opened(): what the cell displays, or None."""
    displayed = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: displayed.append(data))

    def opened():
        displayed.clear()
        checks.reflect("T1")
        return displayed[0] if displayed else None

    return opened


def test_the_list_opens_behind_an_answer_and_without_one_there_is_one_line(opened, write, course, capsys, tmp_path):
    assert opened() is None and "01_first.ipynb is not in the folder of this kernel" in capsys.readouterr().out
    for text in (HEAD + "*Write your answer here.*", HEAD + "\n \n", ""):
        write(text)
        assert opened() is None and checks.progress()[-1]["state"] == "open"
        out = capsys.readouterr().out
        assert out.count("\n") == 1 and "save the notebook" in out and HOLDS[1] not in out
    write(HEAD + "Because.")
    assert all(opened()["text/markdown"].count(f"- {line}\n") == 1 for line in HOLDS)
    assert checks.progress()[-1]["state"] == "written"
    assert Course(tmp_path, tmp_path, tmp_path / "runs").answers == {"T1": "Because."}
    text = (course / "tasks.toml").read_text()
    (course / "tasks.toml").write_text(text.replace(json.dumps(HOLDS), '["...", "...", "..."]'))
    tasks.load.cache_clear()
    assert opened() is None and capsys.readouterr().out == "", "a release without the lists"
    assert tasks.task("T1").points == 3
