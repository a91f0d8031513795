"""labs.checks: items, states, hints, and progress.json, which outlives everything that a student does to it."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from labs import checks
from labs.checks import judging, kept, tasks
from labs.results import record

COURSE = """
notebook = "01_first"

[[task]]
id = "01.1"
kind = "check"
title = "The answer"
points = 2
why = "It is 42."

[[task]]
id = "01.2"
kind = "choice"
title = "Which?"
points = 1
why = "b it is."
right = "b"
[task.wrong]
a = "a is too early."
c = "c is too late."

[[task]]
id = "01.10"
kind = "prediction"
title = "How many?"

[[task]]
id = "T1"
kind = "answer"
title = "Explain"
holds = ["one", "two", "three"]
"""


@pytest.fixture(autouse=True)
def course(tmp_path, monkeypatch):
    """A course of four items in a folder of its own; gives the folder of its lesson."""
    lesson = tmp_path / "lessons" / "nb01"
    lesson.mkdir(parents=True)
    (lesson / "tasks.toml").write_text(COURSE)
    monkeypatch.setattr(tasks, "LESSONS", lesson.parent)
    monkeypatch.setattr(judging, "JUDGES", {})
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("LABS_STRICT", raising=False)

    @judging.judges("01.1")
    def answer(value):
        if value == 42:
            return None
        return "Too small." if value < 42 else "Too large."

    return lesson


def items():
    return json.loads(kept.progress_file().read_text())["items"]


def test_open_wrong_right(capsys):
    said = []
    for value in (..., 41, 43, 42):
        outcome = checks.check("01.1", value)
        said.append((bool(outcome), outcome.state, capsys.readouterr().out.strip()))
    assert said == [
        (False, "open", "01.1: not done yet. Fill the blank above (`...`) and run the cell again."),
        (False, "wrong", "01.1: not yet. Too small."),
        (False, "wrong", "01.1: not yet. Too large."),
        (True, "right", "01.1: right. It is 42."),
    ]


def test_progress_is_kept():
    checks.check("01.1", 41)
    assert items()["01.1"]["state"] == "wrong" and items()["01.1"]["points"] == 0
    checks.check("01.1", 42)
    checks.check("01.2", ...)
    item = items()["01.1"]
    assert (item["state"], item["points"], item["attempts"], item["answer"]) == ("right", 2, 2, "42")
    assert item["when"].endswith("+00:00") and items()["01.2"]["state"] == "open"


def test_right_stays_right_with_its_answer():
    for value in (42, 41, ...):
        checks.check("01.1", value)
    item = items()["01.1"]
    assert (item["state"], item["points"], item["answer"], item["attempts"]) == ("right", 2, "42", 3)


@pytest.mark.parametrize("answers", [[...], [None], [1, ...], [[1, ...]], [(..., 2)], [{"a": ...}], [{1, ...}]])
def test_blanks_are_seen_anywhere(answers):
    assert judging.unfilled(answers)


@pytest.mark.parametrize("answers", [[0], [""], [[]], [{}], [False], [0.0, "x"], [lambda x: x + 1], [print]])
def test_values_are_no_blanks(answers):
    assert not judging.unfilled(answers)


def test_functions_without_a_body_are_blanks():
    def blank(fits, fails): ...

    def documented(fits, fails):
        """What it should do."""
        ...  # your code here

    def constant(fits, fails):
        return 7

    def none(fits, fails):
        return fits and None

    assert judging.unfilled([blank]) and judging.unfilled([documented])
    assert not judging.unfilled([constant]) and not judging.unfilled([none])


@pytest.mark.parametrize("letter", ["b", " B ", "b)", "(b)", "b."])
def test_choice_is_generous_about_the_form(letter):
    assert checks.judge("01.2", letter) == ("right", "b it is.")


def test_choice_tells_why_not():
    assert checks.judge("01.2", "a") == ("wrong", "a is too early.")
    assert checks.judge("01.2", "x") == ("wrong", "'x' is none of the choices: a, b, c.")


def test_exception_in_a_judge_becomes_a_hint():
    state, text = checks.judge("01.1", "many")
    assert state == "wrong" and "TypeError" in text and "cannot be read" in text
    assert not checks.check("01.1", "many") and items()["01.1"]["state"] == "wrong"
    assert checks.judge("01.1", 1, 2, 3)[0] == "wrong"  # too many answers


class Odd:
    """Raises whatever is done with it, as repr, str and comparison."""

    def __init__(self, error):
        self.error = error

    def __repr__(self):
        raise self.error

    __str__ = __lt__ = __repr__


def deep(levels):
    return [deep(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "answer",
    [10**5000, Odd(RuntimeError()), Odd(SystemExit(3)), [Odd(ValueError())], Odd(Odd), deep(900)],
    ids=range(6),
)
@pytest.mark.parametrize("id", ["01.1", "01.2"])
def test_an_answer_that_cannot_be_shown_is_wrong_and_no_more(id, answer):
    assert checks.check(id, answer).state == "wrong"
    checks.predict("01.10", answer)
    assert items()[id]["state"] == "wrong" and items()["01.10"]["state"] == "predicted"


def test_an_answer_that_ends_the_program_does_not_end_the_notebook(capsys):
    judging.JUDGES["01.1"] = lambda function: function()
    assert checks.check("01.1", lambda: sys.exit("bye")).state == "wrong"
    assert "ends the whole program" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):  # this is the student's own wish
        checks.check("01.1", lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(5))


NAN = float("nan")


@pytest.mark.parametrize(
    "answer", [NAN, np.float32(NAN), complex(0, NAN), [1.0, NAN], {"a": NAN}, np.array([1, NAN])], ids=range(6)
)
def test_nan_is_never_right(answer, capsys):
    judging.JUDGES["01.1"] = lambda value: None
    assert checks.check("01.1", answer).state == "wrong" and "NaN" in capsys.readouterr().out


def test_what_equals_everything_is_never_right(capsys):
    class Lie(float):
        def __eq__(self, other):
            return True

    judging.JUDGES["01.1"] = lambda value: None
    for answer in (Lie(), [Lie()], {"a": Lie()}):
        assert checks.check("01.1", answer).state == "wrong" and "Lie says itself" in capsys.readouterr().out
    for answer in (1.5, "x", np.ones(3), np.array(["x"]), Path("x"), record.Configuration(), lambda: 3, float):
        assert checks.check("01.1", answer), answer


def test_judge_can_say_that_something_is_still_blank(monkeypatch):
    def file(name):
        raise judging.NotDone(f"Line 3 of {name} is still blank.")

    monkeypatch.setitem(judging.JUDGES, "01.1", file)
    assert checks.judge("01.1", "a.py") == ("open", "not done yet. Line 3 of a.py is still blank.")


def test_unknown_id_lists_the_known():
    with pytest.raises(tasks.TaskError, match="no task '99.9'.*01.1, 01.2, 01.10, T1"):
        checks.check("99.9", 1)
    with pytest.raises(tasks.TaskError, match="no task '01.9'.*01.1"):
        checks.task("01.9")


def test_what_is_not_judged_is_no_check():
    for id in ("01.10", "T1"):
        with pytest.raises(tasks.TaskError, match=f"Nothing judges {id}"):
            checks.check(id, 1)


def test_two_judges_of_one_item_are_refused():
    with pytest.raises(tasks.TaskError, match="Two functions judge 01.1: .*answer and .*other"):

        @judging.judges("01.1")
        def other(value):
            pass


def test_predictions_are_kept_not_judged(capsys):
    checks.predict("01.10", ...)
    assert items()["01.10"]["state"] == "open" and "not done yet" in capsys.readouterr().out
    checks.predict("01.10", 1.6)
    assert "How many?: 1.6. Kept" in capsys.readouterr().out
    item = items()["01.10"]
    assert (item["state"], item["answer"], item["points"]) == ("predicted", "1.6", 0)
    checks.predict("01.10", ...)
    assert (items()["01.10"]["state"], items()["01.10"]["answer"]) == ("predicted", "1.6")


# tasks.toml


def test_points_of_an_answer_are_what_it_holds():
    assert (checks.task("T1").points, checks.task("01.10").points) == (3, 0)


def test_an_item_is_looked_up_in_its_lesson_only(course):
    other = course.with_name("nb02")
    other.mkdir()
    (other / "tasks.toml").write_text("no toml at all")
    assert checks.task("01.1").title == "The answer"
    with pytest.raises(tasks.TaskError, match="nb02/tasks.toml cannot be read"):
        checks.task("T9")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('id = "01.2"', 'id = "01.1"', "two tasks have the id 01.1"),
        ("points = 2", "points = 0", "task 01.1: points must be greater than or equal to 1"),
        ("points = 2", "", "task 01.1: points is missing"),
        ('right = "b"', "", "task 01.2: right is missing"),
        ('right = "b"', 'right = "a"', "task 01.2: a is both right and wrong"),
        ('a = "a is too early."\nc = "c is too late."', "", "task 01.2: wrong "),
        ('kind = "prediction"', 'kind = "guess"', "task 01.10: 'kind' must be one of 'check', .*, not 'guess'"),
        ('kind = "prediction"', 'kind = "prediction"\npoints = 1', "task 01.10: points is not known here"),
        ('holds = ["one", "two", "three"]', "holds = []", "task T1: holds must hold at least 1 value"),
        ('id = "T1"', "", r"task\[4\].answer.id is missing"),
        ('notebook = "01_first"', "", "notebook is missing"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_file_and_id(tmp_path, old, new, message):
    assert old in COURSE
    path = tmp_path / "tasks.toml"
    path.write_text(COURSE.replace(old, new))
    with pytest.raises(tasks.TaskError, match=f"^{path}: {message}"):
        tasks.load(path)


def test_an_id_of_two_lessons_is_refused(course):
    other = course.with_name("nb02")
    other.mkdir()
    (other / "tasks.toml").write_text(COURSE)
    with pytest.raises(tasks.TaskError, match="nb02/tasks.toml: the id 01.1 is taken already, in .*nb01/tasks.toml"):
        tasks.lessons()


# Strict mode


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checks.check("01.1", 41), "^01.1 is wrong: Too small.$"),
        (lambda: checks.check("01.1", ...), "^01.1 is open: not done yet"),
        (lambda: checks.check("01.2", "a"), "^01.2 is wrong: a is too early.$"),
        (lambda: checks.predict("01.10", ...), "^01.10 is open: not done yet"),
    ],
)
def test_strict_mode_refuses_what_is_not_right(monkeypatch, call, message):
    assert not call()  # as a student has it
    monkeypatch.setenv("LABS_STRICT", "1")
    with pytest.raises(AssertionError, match=message):
        call()


def test_strict_mode_lets_pass_what_is_right(monkeypatch):
    monkeypatch.setenv("LABS_STRICT", "1")
    assert checks.check("01.1", 42) and checks.check("01.2", "b")
    checks.predict("01.10", 3)


def test_an_open_answer_is_excused_only_where_its_reason_holds(monkeypatch):
    monkeypatch.setenv("LABS_STRICT", "1")
    monkeypatch.setattr(judging, "find_spec", lambda name: None)
    assert checks.check("01.1", ..., without="horovod").state == "open"
    with pytest.raises(judging.NotRight, match="01.1 is wrong"):
        checks.check("01.1", 41, without="horovod")
    monkeypatch.setattr(judging, "find_spec", lambda name: name == "horovod")
    with pytest.raises(judging.NotRight, match="01.1 is open"):
        checks.check("01.1", ..., without="horovod")


def test_any_other_reason_is_refused():
    with pytest.raises(tasks.TaskError, match="without='time' is no reason; known are horovod"):
        checks.check("01.1", ..., without="time")


# The file of the progress


def bad(number):
    return kept.progress_file().with_name(f"progress.json.bad-{number}")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{half",
        b"[]",
        b"3",
        b'{"items": []}',
        b'{"items": {"01.1": 5}}',
        b'{"other": {}}',
        b"[" * 200_000,
        b'{"items": ' * 20_000,
        b'{"items": {"01.1": {"state": "right", "attempts": ' + b"9" * 5000 + b"}}}",
        b'{"items": {"01.1": {"state": ["right"], "attempts": "many"}}}',
        b"\xff\xfe\x00",
    ],
    ids=range(12),
)
def test_what_is_no_progress_is_kept_aside_and_ends_no_check(text, capsys):
    kept.progress_file().parent.mkdir()
    kept.progress_file().write_bytes(text)
    checks.progress()
    assert kept.progress_file().read_bytes() == text, "reading changes nothing"
    capsys.readouterr()
    assert checks.check("01.1", 42)
    assert capsys.readouterr().out.count("Warning") == 1
    assert bad(1).read_bytes() == text and items()["01.1"]["state"] == "right"
    assert checks.check("01.2", "b") and capsys.readouterr().out.count("Warning") == 0
    assert not bad(2).exists()


@pytest.mark.parametrize("cut", [lambda t: t[:-3], lambda t: t[:-40], lambda t: t.replace(b'"open"', b'"op', 1)])
def test_what_can_be_read_of_a_damaged_file_is_recovered(cut):
    checks.check("01.2", "b")
    checks.check("01.1", 42)
    checks.predict("01.10", ...)
    damaged = cut(kept.progress_file().read_bytes())
    kept.progress_file().write_bytes(damaged)
    checks.check("01.1", 41)
    assert bad(1).read_bytes() == damaged
    assert [items()[id]["state"] for id in ("01.1", "01.2")] == ["right", "right"]
    assert (items()["01.1"]["answer"], items()["01.1"]["attempts"]) == ("42", 2)


def test_a_field_that_cannot_be_costs_that_field_only():
    checks.check("01.1", 42)
    text = kept.progress_file().read_text()
    kept.progress_file().write_text(text.replace('"attempts": 1', '"attempts": "many"'))
    checks.check("01.2", "b")
    assert (items()["01.1"]["state"], items()["01.1"]["attempts"]) == ("right", 0)


def test_after_a_reading_error_nothing_is_written(monkeypatch, capsys):
    checks.check("01.1", 42)
    before = kept.progress_file().read_bytes()

    def broken(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as disk:
        disk.setattr(kept.Path, "read_bytes", broken)
        assert checks.check("01.2", "b")
        assert "cannot keep your progress" in capsys.readouterr().out
        checks.progress()
        assert "cannot be read: Input/output error" in capsys.readouterr().out
    assert kept.progress_file().read_bytes() == before
    assert {path.name for path in bad(1).parent.glob("[!.]*")} == {"progress.json"}


def test_two_kernels_lose_nothing(course):
    code = (
        "from labs.checks import kept, tasks; import sys, pathlib; tasks.LESSONS = pathlib.Path(sys.argv[1])\n"
        "for _ in range(100): kept.keep(tasks.task(sys.argv[2]), 'right', [1])"
    )
    kernels = [subprocess.Popen([sys.executable, "-c", code, course.parent, id]) for id in ("01.1", "01.1", "01.2")]
    assert [kernel.wait(60) for kernel in kernels] == [0, 0, 0]
    assert (items()["01.1"]["attempts"], items()["01.2"]["attempts"]) == (200, 100)


def test_full_disk_keeps_the_old_file_whole_and_the_answer_counts(monkeypatch, capsys):
    checks.check("01.1", 42)
    before = kept.progress_file().read_text()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(os, "replace", full)
        assert checks.check("01.2", "b")
    out = capsys.readouterr().out
    assert "Warning: cannot keep your progress" in out and "No space left" in out
    assert kept.progress_file().read_text() == before
    assert [p.name for p in kept.progress_file().parent.glob("[!.]*")] == ["progress.json"]


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
    judging._show("01.1", "wrong", "Is 3 < 4?")
    assert shown[0]["text/plain"] == "01.1: not yet. Is 3 < 4?"
    assert 'role="status"' in shown[0]["text/html"] and "3 &lt; 4" in shown[0]["text/html"]
