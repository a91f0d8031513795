"""labs.checks: items, states, hints, and progress.json, which outlives everything that a student does to it."""

import ast
import errno
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from labs import checks
from labs.checks import judging, kept, student_code, tasks
from labs.results import record

COURSE = """
notebook = "01_first"
title = "Small"
minutes = 1

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
number = [0, 100]

[[task]]
id = "01.11"
kind = "prediction"
title = "Better?"
words = ["yes", "no", "can't tell"]

[[task]]
id = "01.12"
kind = "prediction"
title = "Who?"
words = ["s", "a"]
count = 3

[[task]]
id = "01.13"
kind = "prediction"
title = "How long, twice?"
number = [0, 1]
count = 2

[[task]]
id = "01.14"
kind = "prediction"
title = "Which?"
words = ["a", "b", "c", "3", "4"]
count = "any"

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
        yield value < 42, "Too small."
        yield value > 42, "Too large."

    return lesson


def anything(value):
    """A judge to whom every answer is right."""
    yield True, None


def calling(*arguments):
    """A judge of a function: it calls it with these arguments, and it must return 42."""

    def judge(function):
        yield function(*arguments) != 42, "no"

    return judge


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


def test_a_cell_that_needs_an_answer_says_so_by_itself(monkeypatch, capsys):
    monkeypatch.setattr(judging, "RIGHT", {})
    checks.check("01.1", 42), checks.check("01.2", "a")
    capsys.readouterr()
    assert checks.answered("01.1") and not capsys.readouterr().out
    assert not checks.answered("01.1", "01.2")
    assert capsys.readouterr().out == "This cell needs the right answer to 01.2: run it again when you have it.\n"
    checks.check("01.1", 41)  # no longer right in this notebook, though its points stay
    assert not checks.answered("01.1")
    with pytest.raises(tasks.TaskError):
        checks.answered("01.99")


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
    assert checks.judge("01.2", "x") == ("wrong", "'x' is not one of the choices: a, b, c.")


def test_what_a_judge_cannot_compare_is_named_with_its_type():
    judging.JUDGES["01.1"] = lambda value: zip(map(float, [value]), ["It is not 0."], strict=True)  # no line of its own
    assert checks.judge("01.1", "many") == (
        "wrong",
        "'many' (str) is not what is asked for here: a number, a text, a list? The question says which.",
    )
    assert not checks.check("01.1", "many") and items()["01.1"]["state"] == "wrong"
    assert checks.judge("01.1", 1, 2, 3)[0] == "wrong"  # too many answers
    judging.JUDGES["01.1"] = lambda value, run: zip(map(float, [value]), ["It is not 0."], strict=True)
    hint = checks.judge("01.1", "2.53 s", {"a run": "of the notebook"})[1]
    assert hint.startswith("'2.53 s' (str) is not what is asked for here"), hint


NAN = float("nan")


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
    assert items()[id]["state"] == "wrong" and items()["01.10"]["state"] == "open"


def test_an_answer_that_ends_the_program_does_not_end_the_notebook(capsys):
    judging.JUDGES["01.1"] = calling()
    assert checks.check("01.1", lambda: sys.exit("bye")).state == "wrong"
    assert "ends the whole program" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):  # this is the student's own wish
        checks.check("01.1", lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(5))


@pytest.mark.parametrize(
    "answer", [NAN, np.float32(NAN), complex(0, NAN), [1.0, NAN], {"a": NAN}, np.array([1, NAN])], ids=range(6)
)
def test_nan_is_never_right(answer, capsys):
    judging.JUDGES["01.1"] = anything
    assert checks.check("01.1", answer).state == "wrong" and "NaN" in capsys.readouterr().out


def test_what_equals_everything_is_never_right(capsys):
    class Lie(float):
        def __eq__(self, other):
            return True

    judging.JUDGES["01.1"] = anything
    for answer in (Lie(), [Lie()], {"a": Lie()}):
        assert (
            checks.check("01.1", answer).state == "wrong" and "Lie defines its own equality" in capsys.readouterr().out
        )
    for answer in (1.5, "x", np.ones(3), np.array(["x"]), Path("x"), record.Configuration(), lambda: 3, float):
        assert checks.check("01.1", answer), answer


def test_judge_can_say_that_something_is_still_blank(monkeypatch):
    def file(name):
        raise judging.NotDone(f"Line 3 of {name} is still blank.")

    monkeypatch.setitem(judging.JUDGES, "01.1", file)
    assert checks.judge("01.1", "a.py") == ("open", "not done yet. Line 3 of a.py is still blank.")


def test_unknown_id_lists_the_known():
    with pytest.raises(tasks.TaskError, match="no task '99.9'.*01.1, 01.2, 01.10, 01.11, 01.12, 01.13, 01.14, T1"):
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
            yield value != 42, "It is not 42."


def late(value):
    yield value == 42, None
    return "It is not 42."


def only(value):
    return None if value == 42 else "It is not 42."


def from_another(value):
    if value != 42:
        return (yield from late(value))


def test_a_judge_that_yields_nothing_is_refused_before_it_judges():
    judging.JUDGES.clear()
    with pytest.raises(tasks.TaskError, match="only, which is to judge 01.1, yields no cases. .*`yield True, hint`"):
        judging.judges("01.1")(only)
    assert judging.JUDGES == {}


@pytest.mark.parametrize("judge", [late, from_another])
def test_a_hint_that_is_returned_is_an_error_and_no_right_answer(judge):
    judging.JUDGES["01.1"] = judge
    assert checks.judge("01.1", 42)[0] == "right"
    with pytest.raises(tasks.TaskError, match=f"{judge.__name__} returned 'It is not 42.'. .*`yield True, hint`"):
        checks.judge("01.1", 41)


def test_the_first_case_that_holds_decides_and_the_judge_goes_no_further():
    def judge(value):
        yield value == 42, None
        yield value > 42, "Too large."
        yield 1 / 0, "Never asked."

    assert judging.decided(judge(42)) is None and judging.decided(judge(43)) == "Too large."
    with pytest.raises(ZeroDivisionError):
        judging.decided(judge(41))


def test_predictions_are_kept_not_judged(capsys):
    checks.predict("01.10", ...)
    assert items()["01.10"]["state"] == "open" and "not done yet" in capsys.readouterr().out
    checks.predict("01.10", 1.6)
    assert "How many?: 1.6. Kept" in capsys.readouterr().out
    item = items()["01.10"]
    assert (item["state"], item["answer"], item["points"]) == ("predicted", "1.6", 0)
    checks.predict("01.10", ...)
    assert (items()["01.10"]["state"], items()["01.10"]["answer"]) == ("predicted", "1.6")


@pytest.mark.parametrize(
    ("id", "value", "kept_as"),
    [
        ("01.10", "1.6", 1.6),
        ("01.10", np.float32(0.5), 0.5),
        ("01.10", np.array([7]), 7),
        ("01.10", 100, 100),
        ("01.11", "Yes", "yes"),
        ("01.11", "can\N{RIGHT SINGLE QUOTATION MARK}t tell", "can't tell"),
        ("01.12", "ssa", "ssa"),
        ("01.12", ["s", "S", "a"], "ssa"),
        ("01.12", "s, s, a", "ssa"),
        ("01.13", [0.5, "0.25"], [0.5, 0.25]),
        ("01.13", np.array([0, 1.0]), [0, 1]),
        ("01.13", "0.5 0.25", [0.5, 0.25]),
        ("01.14", "ca", "ac"),
        ("01.14", {"b"}, "b"),
        ("01.14", "a and c", "ac"),
        ("01.14", 43, "34"),
    ],
)
def test_a_prediction_is_read_generously(id, value, kept_as):
    checks.predict(id, value)
    item = items()[id]
    assert (item["state"], ast.literal_eval(item["answer"])) == ("predicted", kept_as)


@pytest.mark.parametrize(
    ("id", "value", "says"),
    [
        ("01.10", 101, "write a number from 0 to 100."),
        ("01.10", -0.1, "from 0 to 100"),
        ("01.10", "much", "from 0 to 100"),
        ("01.10", NAN, "from 0 to 100"),
        ("01.10", float("inf"), "from 0 to 100"),
        ("01.10", True, "from 0 to 100"),
        ("01.10", [1, 2], "from 0 to 100"),
        ("01.10", lambda: 3, "from 0 to 100"),
        ("01.11", "perhaps", "write yes, no or can't tell."),
        ("01.11", True, "write yes, no or can't tell."),
        ("01.12", "ss", "write 3 of the characters s or a, in one word."),
        ("01.12", "ssx", "3 of the characters s or a"),
        ("01.12", 7, "3 of the characters s or a"),
        ("01.13", 0.5, "write a list of 2 numbers, each from 0 to 1 (75 % is 0.75)."),
        ("01.13", [50, 75], "2 numbers, each from 0 to 1"),
        ("01.14", "", "write one or more of the characters a, b, c, 3 or 4, in one word."),
        ("01.14", "ad", "one or more of the characters a, b, c, 3 or 4"),
    ],
)
def test_what_cannot_be_a_prediction_is_asked_for_again(id, value, says, capsys):
    checks.predict(id, value)
    out = capsys.readouterr().out
    assert f"{id}: " in out and "cannot be a prediction here: " in out and says in out
    assert items()[id]["state"] == "open"


@pytest.mark.parametrize(
    ("id", "said", "outcome", "line"),
    [
        ("01.10", 0.9, (0.8, (0.75, 0.86)), "You said 0.9; measured 0.8 [0.75, 0.86]."),
        ("01.10", 12, (1234567.8, None), "You said 12; measured 1,234,568."),
        ("01.10", "0.25", (np.float64(0.25), None), "You said 0.25; measured 0.25."),
        ("01.11", "no", ("yes", None), "You said no; measured yes."),
        ("01.12", "ssa", ("asa", None), "You said ssa; measured asa."),
        ("01.13", [0.5, 0.5], ([0.5, 0.125], None), "You said 0.5, 0.5; measured 0.5, 0.125."),
        ("01.14", "b", ("cd"[:1], None), "You said b; measured c."),
    ],
)
def test_a_prediction_stands_beside_its_outcome(id, said, outcome, line, capsys):
    checks.predict(id, said)
    checks.outcome(id, *outcome)
    assert f"{id}: prediction. {line}\n" in capsys.readouterr().out
    item = items()[id]
    assert item["outcome"] == (list(outcome[0]) if isinstance(outcome[0], list) else outcome[0])
    assert item["interval"] == (outcome[1] and list(outcome[1]))
    checks.predict(id, said)  # the notebook is run again
    assert "Kept; now find out" in capsys.readouterr().out and items()[id]["outcome"] is not None


def test_an_outcome_without_a_prediction_is_shown_and_asks_for_none_later(capsys):
    checks.outcome("01.10", 0.8, how="simulated")
    assert "01.10: You made no prediction; simulated 0.8." in capsys.readouterr().out
    checks.predict("01.10", 3)
    checks.outcome("01.10", None)
    assert "You said 3; the outcome is not known yet" in capsys.readouterr().out
    assert items()["01.10"].get("outcome") is None


@pytest.mark.parametrize("came", [8, 0])
def test_after_the_outcome_a_prediction_stays_what_it_was(came, capsys):
    checks.predict("01.10", 3)
    checks.predict("01.10", 4)  # before it, you may think again
    checks.outcome("01.10", came)
    capsys.readouterr()
    checks.predict("01.10", 8)
    assert "How many?: 4 stays, since you have already seen the outcome." in capsys.readouterr().out
    assert items()["01.10"]["answer"] == "4"


def test_an_outcome_that_its_prediction_could_not_be_is_the_lessons_mistake():
    with pytest.raises(tasks.TaskError, match="01.11: 0.8 cannot be the outcome. write yes, no"):
        checks.outcome("01.11", 0.8)


def test_all_predictions_with_half_of_them_missing():
    checks.predict("01.10", 2)
    checks.outcome("01.10", 3, (2.5, 3.5))
    checks.predict("01.11", "no")
    checks.outcome("01.11", "yes")
    checks.predict("01.13", [0, 0.5])
    checks.outcome("01.13", [0.25, 0.25])
    checks.predict("01.12", "ssa")
    rows = {row["id"]: (row["said"], row["outcome"], row["ratios"], row["right"]) for row in checks.predictions()}
    assert rows == {
        "01.10": (2, 3, [1.5], None),
        "01.11": ("no", "yes", None, False),
        "01.12": ("ssa", None, None, None),
        "01.13": ([0, 0.5], [0.25, 0.25], [math.inf, 0.5], None),
        "01.14": (None, None, None, None),
    }


# A student's code that fails, or does not end


def test_an_exception_names_the_students_line(tmp_path):
    judging.JUDGES["01.1"] = calling([1, 2])
    cell = tmp_path / "cell.py"
    cell.write_text("def last(values):\n    n = len(values)\n    return values[n]\n")
    space = {}
    exec(compile(cell.read_text(), str(cell), "exec"), space)
    assert checks.judge("01.1", space["last"]) == (
        "wrong",
        "Line 3: `return values[n]`: IndexError: list index out of range.",
    )
    judging.JUDGES["01.1"] = lambda function: calling([[1, 2]])(np.vectorize(function))
    assert "Line 2: `n = len(values)`: TypeError: " in checks.judge("01.1", space["last"])[1], (
        "the last line of the student's"
    )


def test_a_long_line_is_cut_between_two_words(tmp_path):
    cell = tmp_path / "cell.py"
    cell.write_text(f"def fails(n):\n    return {' + '.join(['number'] * 20)}\n")
    space = {}
    exec(compile(cell.read_text(), str(cell), "exec"), space)
    judging.JUDGES["01.1"] = calling(1)
    said = checks.judge("01.1", space["fails"])[1]
    assert re.match(r"Line 2: `return (number \+ )+number (\+ )?\.\.\.`: NameError", said) and len(said) < 160, said


def test_a_stop_iteration_is_the_students():
    judging.JUDGES["01.1"] = calling()
    assert "StopIteration" in checks.judge("01.1", lambda: next(iter([])))[1]


def test_the_line_is_quoted_as_the_script_stands_now(tmp_path):
    script = tmp_path / "mine.py"
    for call in ("foo", "another"):
        script.write_text(f"def mine():\n    return {call}()\n")
        exec(compile(script.read_text(), script, "exec"), space := {})
        with pytest.raises(NameError) as caught:
            space["mine"]()
        assert student_code.told(caught.value).startswith(f"Line 2: `return {call}()`: NameError")


def test_what_a_judge_says_it_tried_stands_beside_the_error():
    def judge(function):
        with student_code.tried("one worker"):
            yield function([[1]]) != 42, "no"

    judging.JUDGES["01.1"] = judge
    assert checks.judge("01.1", lambda reads: reads[1])[1].endswith("list index out of range. Tried with one worker.")


def test_an_error_in_a_function_of_tensorflow_is_told_once_with_the_students_line():
    import tensorflow as tf

    @tf.function
    def step(values):
        if values.shape[0] > 1:
            raise ValueError("too many")
        return values

    def judge(function):
        yield function(tf.zeros(2)) is None, "never"

    judging.JUDGES["01.1"] = judge
    hint = checks.judge("01.1", lambda values: step(values))[1]
    assert "ag__" not in hint and hint.endswith("ValueError: too many.") and hint.count("ValueError") == 1, hint


def for_ever(*_):
    while True:
        pass


def swallows():
    while True:
        try:
            for_ever()
        except BaseException:
            pass


def sleeps():
    while True:
        try:
            time.sleep(9)
        except BaseException:
            continue


def comes_back():
    try:
        for_ever()
    except BaseException:
        return 42


@pytest.mark.parametrize("loop", [for_ever, swallows, sleeps, comes_back])
def test_a_loop_without_end_is_stopped_and_its_line_named(loop, monkeypatch):
    monkeypatch.setattr(student_code, "SECONDS", 0.3)
    judging.JUDGES["01.1"] = calling()
    state, text = checks.judge("01.1", loop)
    assert state == "wrong" and re.match(
        r"Line \d+: `(pass|while True:|time.sleep\(9\))`: stopped after 0.3 s without an end", text
    ), text
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0 or "pytest_timeout" in sys.modules


def test_the_limit_is_one_calls_and_not_the_judges(monkeypatch):
    monkeypatch.setattr(student_code, "SECONDS", 1.0)

    def judge(function):
        time.sleep(1.5)  # the judge's own work, as importing TensorFlow
        yield function() != 42, "no"

    judge.__code__ = judge.__code__.replace(co_filename=judging.__file__)
    judging.JUDGES["01.1"] = judge
    assert checks.judge("01.1", lambda: 42)[0] == "right"


def test_somebody_elses_alarm_goes_on():
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    old = signal.setitimer(signal.ITIMER_REAL, 60)
    assert student_code.limited(lambda: 5) == 5
    left = signal.setitimer(signal.ITIMER_REAL, *old)[0]
    assert 0 < left <= 60 and signal.signal(signal.SIGALRM, before) is not None and not rang


@pytest.mark.parametrize("text", ["42", " 42 ", "4.2e1", "42.0"])
def test_a_text_that_is_a_number_is_read_as_the_number(text):
    assert checks.judge("01.1", text)[0] == "right"


# tasks.toml


def test_points_of_an_answer_are_what_it_holds():
    assert (checks.task("T1").points, checks.task("01.10").points) == (3, 0)


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
        ("number = [0, 100]", "", "task 01.10: number or `words` must say what the prediction may be"),
        ("number = [0, 100]", 'number = [0, 1]\nwords = ["a", "b"]', "task 01.10: number or `words` must say"),
        ("number = [0, 100]", "number = [1, 1]", "task 01.10: number must be a lower and an upper end"),
        ('words = ["s", "a"]', 'words = ["sync", "async"]', "task 01.12: words must be single letters"),
        ('holds = ["one", "two", "three"]', "holds = []", "task T1: holds must hold at least 1 value"),
        ('id = "T1"', "", r"task\[8\].answer.id is missing"),
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
        (lambda: checks.predict("01.10", 101), "^01.10 is open: 101 cannot be a prediction here"),
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
    checks.outcome("01.10", 4)
    checks.outcome("01.10", None)


def test_strict_mode_lets_pass_an_outcome_whose_prediction_stands_in_an_earlier_notebook(monkeypatch, capsys):
    monkeypatch.setenv("LABS_STRICT", "1")
    checks.outcome("01.10", 7)
    assert "01.10: You made no prediction; measured 7." in capsys.readouterr().out


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
    with pytest.raises(tasks.TaskError, match="without='time' is not a reason; allowed: horovod"):
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
        "import os; os.fsync = lambda handle: None  # a slow disk would keep the lock longer than a kernel waits\n"
        "from labs.checks import kept, tasks; import sys, pathlib; tasks.LESSONS = pathlib.Path(sys.argv[1])\n"
        "for _ in range(100): kept.keep(tasks.task(sys.argv[2]), 'right', [1])"
    )
    kernels = [subprocess.Popen([sys.executable, "-c", code, course.parent, id]) for id in ("01.1", "01.1", "01.2")]
    assert [kernel.wait(600) for kernel in kernels] == [0, 0, 0]
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


def notebook(folder, text, name="01_first"):
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
        {"cell_type": "code", "metadata": {"labs": {"id": "01.1"}}, "source": ["x = 1"]},
        {"cell_type": "markdown", "metadata": {"labs": {"id": "T1", "kind": "answer", "points": 3}}, "source": text},
    ]
    path = folder / f"{name}.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_written_answers_are_read_from_the_metadata(tmp_path):
    from teaching.author.regions import YOUR_ANSWER

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
        *((f"01.{n}", "prediction", "open", 0) for n in range(11, 15)),
        ("T1", "answer", "written", 3),
    ]
    notebook(tmp_path, ["*Write your answer here.*"])
    assert checks.progress(tmp_path)[-1]["state"] == "open"
    notebook(tmp_path, ["Because."], name="01b_between")
    assert checks.progress(tmp_path)[-1]["state"] == "written"


def test_in_a_notebook_the_result_is_one_accessible_box(monkeypatch):
    import IPython
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: object())
    monkeypatch.setattr(IPython.display, "display", lambda data, raw: shown.append(data))
    judging.show("01.1", "wrong", "Is 3 < 4? Ask `fit`.")
    assert shown[0]["text/plain"] == "01.1: not yet. Is 3 < 4? Ask `fit`."
    assert 'role="status"' in shown[0]["text/html"] and "3 &lt; 4" in shown[0]["text/html"]
    assert "<code>fit</code>" in shown[0]["text/html"] and "`fit`" in shown[0]["text/plain"]


@pytest.mark.parametrize("answer", ["both of them", "because", "b and c", "bc", "every b"])
def test_a_choice_is_not_taken_from_the_first_letter_of_words(answer):
    choice = next(item for lesson in tasks.lessons().values() for item in lesson.task
                  if isinstance(item, tasks.Choice) and item.right == "b")  # fmt: skip
    state, hint = checks.judge(choice.id, answer)
    assert state == "wrong" and "not one of the choices" in hint
    assert checks.judge(choice.id, "b) it is")[0] == checks.judge(choice.id, "(B)")[0] == "right"
