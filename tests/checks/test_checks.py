"""labs.checks: states, hints, and progress.json, which outlives everything that a student does to it."""

import errno
import json
import os

import pytest

from labs.checks import judging as checks


@pytest.fixture(autouse=True)
def course(tmp_path, monkeypatch):
    """A course of four items in a folder of its own; the real questions are put back afterwards."""
    checks.load_lessons()

    monkeypatch.setattr(checks, "REGISTRY", {})
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))

    @checks.question("01.1", "The answer", "01_first", points=2, why="It is 42.")
    def answer(value):
        if value == 42:
            return None
        return "Too small." if value < 42 else "Too large."

    checks.choice(
        "01.2", "Which?", "01_first", right="b", wrong={"a": "a is too early.", "c": "c is too late."}, why="b it is."
    )
    checks.prediction("01.10", "How many?", "01_first")
    checks.written("T1", "Explain", "01_first", points=3)


def kept():
    return json.loads(checks.progress_file().read_text())["items"]


def test_open_wrong_right(capsys):
    said = []
    for value in (..., 41, 43, 42):
        verdict = checks.check("01.1", value)
        said.append((bool(verdict), verdict.state, capsys.readouterr().out.strip()))
    assert said == [
        (False, "open", "01.1: not done yet. Fill the blank above (`...`) and run the cell again."),
        (False, "wrong", "01.1: not yet. Too small."),
        (False, "wrong", "01.1: not yet. Too large."),
        (True, "right", "01.1: right. It is 42."),
    ]


def test_progress_is_kept():
    checks.check("01.1", 41)
    assert kept()["01.1"]["state"] == "wrong" and kept()["01.1"]["points"] == 0
    checks.check("01.1", 42)
    checks.check("01.2", ...)
    item = kept()["01.1"]
    assert (item["state"], item["points"], item["attempts"], item["answer"]) == ("right", 2, 2, "42")
    assert item["when"].endswith("+00:00") and kept()["01.2"]["state"] == "open"


def test_right_stays_right_with_its_answer():
    for value in (42, 41, ...):
        checks.check("01.1", value)
    item = kept()["01.1"]
    assert (item["state"], item["points"], item["answer"], item["attempts"]) == ("right", 2, "42", 3)


@pytest.mark.parametrize("answers", [[...], [None], [1, ...], [[1, ...]], [(..., 2)], [{"a": ...}], [{1, ...}]])
def test_blanks_are_seen_anywhere(answers):
    assert checks.unfilled(answers)


@pytest.mark.parametrize("answers", [[0], [""], [[]], [{}], [False], [0.0, "x"], [lambda x: x + 1], [print]])
def test_values_are_no_blanks(answers):
    assert not checks.unfilled(answers)


def test_functions_without_a_body_are_blanks():
    def blank(fits, fails): ...

    def documented(fits, fails):
        """What it should do."""
        ...  # your code here

    def constant(fits, fails):
        return 7

    def none(fits, fails):
        return fits and None

    assert checks.unfilled([blank]) and checks.unfilled([documented])
    assert not checks.unfilled([constant]) and not checks.unfilled([none])


@pytest.mark.parametrize("letter", ["b", " B ", "b)", "(b)", "b."])
def test_choice_is_generous_about_the_form(letter):
    assert checks.judge("01.2", letter) == ("right", "b it is.")


def test_choice_tells_why_not():
    assert checks.judge("01.2", "a") == ("wrong", "a is too early.")
    assert checks.judge("01.2", "x") == ("wrong", "'x' is none of the choices: a, b, c.")


def test_exception_in_a_judge_becomes_a_hint():
    state, text = checks.judge("01.1", "many")
    assert state == "wrong" and "TypeError" in text and "cannot be read" in text
    assert not checks.check("01.1", "many") and kept()["01.1"]["state"] == "wrong"
    assert checks.judge("01.1", 1, 2, 3)[0] == "wrong"  # too many answers


def test_judge_can_say_that_something_is_still_blank():
    @checks.question("01.3", "A file", "01_first")
    def file(name):
        raise checks.NotDone(f"Line 3 of {name} is still blank.")

    assert checks.judge("01.3", "a.py") == ("open", "not done yet. Line 3 of a.py is still blank.")


def test_duplicate_id_is_refused():
    with pytest.raises(ValueError, match="Two tasks have the id 01.1"):
        checks.prediction("01.1", "Again", "01_first")
    assert checks.task("01.1").title == "The answer"


def test_unknown_id_lists_the_known():
    with pytest.raises(KeyError, match="no task '99.9'.*01.1"):
        checks.check("99.9", 1)


def test_predictions_are_kept_not_judged(capsys):
    checks.predict("01.10", ...)
    assert kept()["01.10"]["state"] == "open" and "not done yet" in capsys.readouterr().out
    checks.predict("01.10", 1.6)
    assert "How many?: 1.6. Kept" in capsys.readouterr().out
    item = kept()["01.10"]
    assert (item["state"], item["answer"], item["points"]) == ("predicted", "1.6", 0)
    checks.predict("01.10", ...)
    assert (kept()["01.10"]["state"], kept()["01.10"]["answer"]) == ("predicted", "1.6")


# The file of the progress


@pytest.mark.parametrize("text", ["", "{half", "[]", "3", '{"items": []}', '{"items": {"01.1": 5}}', '{"other": {}}'])
def test_unreadable_progress_warns_and_starts_anew(text, capsys):
    checks.progress_file().parent.mkdir()
    checks.progress_file().write_text(text)
    assert checks.check("01.1", 42)
    out = capsys.readouterr().out
    assert out.count("Warning") == 1 and "progress.json cannot be read" in out
    assert list(kept()) == ["01.1"]


def test_full_disk_keeps_the_old_file_whole_and_the_answer_counts(monkeypatch, capsys):
    checks.check("01.1", 42)
    before = checks.progress_file().read_text()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(os, "replace", full)
        assert checks.check("01.2", "b")
    out = capsys.readouterr().out
    assert "Warning: cannot keep your progress" in out and "No space left" in out
    assert checks.progress_file().read_text() == before
    assert [p.name for p in checks.progress_file().parent.iterdir()] == ["progress.json"]


def test_folder_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "file" / "runs"))
    assert checks.check("01.1", 42)
    assert "cannot keep your progress" in capsys.readouterr().out


# Written answers and the overview


def notebook(folder, text):
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
        {"cell_type": "code", "metadata": {"labs": {"id": "01.1"}}, "source": ["x = 1"]},
        {"cell_type": "markdown", "metadata": {"labs": {"id": "T1", "kind": "answer", "points": 3}}, "source": text},
    ]
    path = folder / "01_first.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_written_answers_are_read_from_the_metadata(tmp_path):
    from labs.author.regions import YOUR_ANSWER

    assert checks.answers(notebook(tmp_path, ["### T1\n", "Because.\n"])) == {"T1": "### T1\nBecause.\n"}
    assert checks.answers(notebook(tmp_path, ["### T1\n", YOUR_ANSWER])) == {"T1": None}


def test_progress_over_all_tasks(tmp_path):
    notebook(tmp_path, ["Because."])
    checks.check("01.1", 42)
    checks.check("01.2", "a")
    checks.predict("01.10", 3)
    rows = checks.progress(tmp_path)
    assert [(row["id"], row["kind"], row["state"], row["points"]) for row in rows] == [
        ("01.1", "check", "right", 2),
        ("01.2", "check", "wrong", 1),
        ("01.10", "prediction", "predicted", 0),
        ("T1", "answer", "written", 3),
    ]
    notebook(tmp_path, ["*Write your answer here.*"])
    assert checks.progress(tmp_path)[-1]["state"] == "open"


def test_in_a_notebook_the_result_is_one_accessible_box(monkeypatch):
    import IPython
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: object())
    monkeypatch.setattr(IPython.display, "display", lambda data, raw: shown.append(data))
    checks._show("01.1", "wrong", "Is 3 < 4?")
    assert shown[0]["text/plain"] == "01.1: not yet. Is 3 < 4?"
    assert 'role="status"' in shown[0]["text/html"] and "3 &lt; 4" in shown[0]["text/html"]
