"""labs.checks.reflect: the list that opens behind a written answer, and its ticks in progress.json."""

import json
import os
import subprocess
import sys

import pytest

from labs import checks
from labs.checks import kept, tasks
from labs.report import course

COURSE = """
notebook = "01_first"
title = "First"
minutes = 1

[[task]]
id = "T1"
kind = "answer"
title = "Explain"
holds = ["the `batch` is <global>.", "an interval."]

[[task]]
id = "01.1"
kind = "choice"
title = "Which?"
points = 1
why = "b it is."
right = "b"
[task.wrong]
a = "no."
"""
HEAD = "### T1: your answer\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of the notebook; the course has one lesson."""
    (tmp_path / "lessons/nb01").mkdir(parents=True)
    (tmp_path / "lessons/nb01/tasks.toml").write_text(COURSE)
    monkeypatch.setattr(tasks, "LESSONS", tmp_path / "lessons")
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text):
    cell = {"cell_type": "markdown", "metadata": {"labs": {"id": "T1", "kind": "answer"}}, "source": text}
    with open("01_first.ipynb", "w") as file:
        json.dump({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, file)


@pytest.fixture
def opened(monkeypatch):
    """Function: what the cell displays, or None."""
    displayed = []
    monkeypatch.setattr("IPython.display.display", lambda widget: displayed.append(widget))

    def opened():
        displayed.clear()
        checks.reflect("T1")
        return displayed[0] if displayed else None

    return opened


def boxes(widget):
    return [child for child in widget.children if hasattr(child, "indent")]


@pytest.mark.parametrize("text", [HEAD + "*Write your answer here.*", HEAD, HEAD + "\n \n", ""])
def test_without_an_answer_there_is_one_line(opened, capsys, text):
    write(text)
    assert opened() is None
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and "save the notebook" in out and "interval" not in out
    assert checks.progress()[0]["state"] == "open"


def test_a_notebook_that_is_not_there_is_named(opened, capsys):
    assert opened() is None
    assert "01_first.ipynb is not in the folder of this kernel" in capsys.readouterr().out


def test_ticks_are_kept_at_once_and_shown_again_also_with_another_answer(opened):
    write(HEAD + "Because.")
    widget = opened()
    first, second = boxes(widget)
    assert [first.value, second.value] == [False, False]
    assert first.description == "the <code>batch</code> is &lt;global&gt;."
    second.value = True
    assert kept.read_progress()["T1"]["ticked"] == ["an interval."]
    write(HEAD + "Something else.")
    again = opened()
    assert [box.value for box in boxes(again)] == [False, True]
    assert "stay when you change your answer" in again._repr_mimebundle_()["text/plain"]
    boxes(again)[1].value = False
    assert [box.value for box in boxes(opened())] == [False, False]


def test_without_a_kernel_it_is_a_plain_list(opened):
    write(HEAD + "Because.")
    boxes(opened())[1].value = True
    shown = opened()._repr_mimebundle_()
    assert "[ ] the `batch` is <global>.\n[x] an interval." in shown["text/plain"] == repr(opened())
    assert "<li>[x] an interval.</li>" in shown["text/html"] and "&lt;global&gt;" in shown["text/html"]


def test_a_release_without_the_lists_shows_nothing(opened, folder, capsys):
    from teaching.author.sources import student_tasks

    path = folder / "lessons/nb01/tasks.toml"
    path.write_text(student_tasks(COURSE))
    write(HEAD + "Because.")
    assert opened() is None and capsys.readouterr().out == ""
    assert tasks.task("T1").points == 2


def test_only_a_written_task_has_a_list():
    with pytest.raises(tasks.TaskError, match="01.1 is not a written task"):
        checks.reflect("01.1")


@pytest.mark.parametrize("ticked", ["an interval.", 5, [1], {"an interval.": True}, [None], [["an interval."]], True])
def test_ticks_that_cannot_be_are_none(opened, ticked):
    write(HEAD + "Because.")
    checks.check("01.1", "b")
    text = kept.progress_file().read_text()
    items = json.loads(text)["items"] | {"T1": {"state": "open", "ticked": ticked}}
    kept.progress_file().write_text(json.dumps({"version": 1, "items": items}))
    widget = opened()
    assert [box.value for box in boxes(widget)] == [False, False]
    boxes(widget)[1].value = True
    assert kept.read_progress()["T1"]["ticked"] == ["an interval."]
    assert kept.read_progress()["01.1"]["state"] == "right"


def test_a_tick_of_a_line_that_is_no_more_is_kept_and_not_shown(opened):
    write(HEAD + "Because.")
    kept.keep_tick(tasks.task("T1"), "a line of an earlier release.", True)
    boxes(opened())[0].value = True
    assert kept.read_progress()["T1"]["ticked"] == ["a line of an earlier release.", "the `batch` is <global>."]


def test_a_tick_that_cannot_be_kept_says_so_in_the_list(opened, monkeypatch):
    write(HEAD + "Because.")
    widget = opened()

    def full(*_):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as disk:
        disk.setattr(os, "replace", full)
        boxes(widget)[0].value = True
    assert 'role="alert"' in widget.children[-1].value and "No space left" in widget.children[-1].value
    boxes(widget)[1].value = True
    assert widget.children[-1].value == ""


def test_two_kernels_keep_the_ticks_of_both(folder):
    code = (
        "import os; os.fsync = lambda handle: None  # a slow disk would keep the lock longer than a kernel waits\n"
        "from labs.checks import kept, tasks; import sys, pathlib; tasks.LESSONS = pathlib.Path(sys.argv[1])\n"
        "item = tasks.task('T1')\n"
        "for number in range(51): kept.keep_tick(item, item.holds[int(sys.argv[2])], number % 2 == 0)"
    )
    command = [sys.executable, "-c", code, str(folder / "lessons")]
    kernels = [subprocess.Popen([*command, number]) for number in "01"]
    assert [kernel.wait(600) for kernel in kernels] == [0, 0]
    assert sorted(kept.read_progress()["T1"]["ticked"]) == sorted(tasks.task("T1").holds)


def test_ticks_count_nowhere(opened, folder):
    write(HEAD + "Because.")
    before = checks.progress()
    boxes(opened())[0].value = True
    assert checks.progress() == before and before[0]["state"] == "written"
    seen = course.Course(folder, folder, folder / "runs")
    assert seen.answers == {"T1": "Because."}
