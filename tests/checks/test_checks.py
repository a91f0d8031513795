"""labs.checks: items, states, hints, and progress.json, which outlives everything that a student does to it."""

import ast
import contextlib
import errno
import json
import math
import operator
import os
import re
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import numpy as np
import pytest

from labs import checks, files
from labs.checks import judging, kept, student_code, tasks
from labs.results.run import Configuration

pytestmark = pytest.mark.usefixtures("course")
NAN = float("nan")
BLANK = "not done yet. Fill the blank above (`...`) and run the cell again."


def judged_by(judge):
    judging.JUDGES["01.1"] = judge


def calling(*arguments):
    """A judge of a function: it calls it with these arguments, and it must return 42."""

    def judge(function):
        yield function(*arguments) != 42, "no"

    return judge


def items():
    return json.loads(kept.progress_file().read_text())["items"]


def test_an_answer_is_told_and_kept_and_what_was_right_stays_right(capsys):
    for attempts, (value, state, said, *held) in enumerate(
        [
            (..., "open", BLANK, "open", 0, "Ellipsis"),
            (41, "wrong", "not yet. Too small.", "wrong", 0, "41"),
            (43, "wrong", "not yet. Too large.", "wrong", 0, "43"),
            (42, "right", "right. It is 42.", "right", 2, "42"),
            (41, "wrong", "not yet. Too small.", "right", 2, "42"),
            (..., "open", BLANK, "right", 2, "42"),
        ],
        1,
    ):
        outcome, item = checks.check("01.1", value), items()["01.1"]
        assert (outcome.state, bool(outcome)) == (state, state == "right")
        assert capsys.readouterr().out == f"01.1: {said}\n"
        assert [item[key] for key in ("state", "points", "answer", "attempts")] == [*held, attempts]
    assert item["when"].endswith("+00:00")


def test_a_cell_that_needs_an_answer_says_so_by_itself(capsys):
    checks.check("01.1", 42), checks.check("01.2", "a")
    capsys.readouterr()
    assert checks.answered("01.1") and not capsys.readouterr().out
    assert not checks.answered("01.1", "01.2")
    assert capsys.readouterr().out == "This cell needs the right answer to 01.2: run it again when you have it.\n"
    checks.check("01.1", 41)  # no longer right in this notebook, though its points stay
    assert not checks.answered("01.1")


def test_blanks_are_seen_anywhere_and_values_are_none():
    def bare(fits, fails): ...

    def documented(fits, fails):
        """What it should do."""
        ...  # your code here

    for blank in (..., None, (..., 2), {"a": ...}, {1, ...}, bare, documented):
        assert judging.unfilled([0, blank]), blank
    for value in (0, "", [], {}, False, "x", lambda x: x + 1, lambda: 7, print):
        assert not judging.unfilled([value]), value


def test_a_choice_is_read_from_its_letter_and_from_no_word():
    for letter in ("b", " B ", "(B)", "b.", "b) it is"):
        assert checks.judge("01.2", letter) == ("right", "b it is.", None), letter
    assert checks.judge("01.2", "a") == ("wrong", "Early", None)
    for words in ("x", "both of them", "because", "b and c", "bc"):
        assert checks.judge("01.2", words)[:2] == ("wrong", f"'{words}' is not one of the choices: a, b, c.")


def test_what_a_judge_cannot_compare_is_named():
    judged_by(lambda value: map(operator.lt, [value() if callable(value) else value], [42]))  # no line of its own
    for answer, hint in (
        ("many", "'many' is not what is asked for here: compare its form with what the question says."),
        (lambda: None, "Your function returns nothing (None)"),
        (lambda: "x", "What your function returns is not what is asked for here (TypeError: "),
    ):
        state, said, _ = checks.judge("01.1", answer)
        assert state == "wrong" and said.startswith(hint)


def test_an_answer_that_ends_the_program_does_not_end_the_notebook(capsys):
    judged_by(calling())
    assert checks.check("01.1", lambda: sys.exit("bye")).state == "wrong"
    assert "ends the whole program" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):  # this is the student's own wish
        checks.check("01.1", lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(5))


class Odd:
    def __repr__(self):
        raise ValueError("no")


def test_an_answer_that_cannot_be_shown_is_wrong_and_no_more():
    for answer in (10**5000, Odd(), [Odd()]):
        assert checks.check("01.1", answer).state == checks.check("01.2", answer).state == "wrong"
        checks.predict("01.10", answer)


class Lie(float):
    def __eq__(self, other):
        return True


def test_what_is_no_number_or_equals_everything_is_never_right():
    judged_by(lambda value: iter([(True, None)]))
    for nan in (NAN, np.float32(NAN), complex(0, NAN), [1.0, NAN], {"a": NAN}, np.array([1, NAN])):
        assert checks.judge("01.1", nan)[:2] == (
            "wrong",
            "NaN is not a number: 0/0 and infinity - infinity give it. Which line of yours does?",
        )
    for lie in (Lie(), [Lie()], {"a": Lie()}):
        assert "Lie defines its own equality" in checks.judge("01.1", lie)[1]
    assert "True says yes or no" in checks.judge("01.1", True)[1]
    for fine in (1.5, "x", np.ones(3), np.array(["x"]), Configuration(), lambda: 3, float):
        assert checks.judge("01.1", fine)[0] == "right", fine
    judged_by(lambda value: iter([(value != 42, "no")]))
    for text in ("42", " 42 ", "4.2e1", "42.0"):
        assert checks.judge("01.1", text)[0] == "right", text


def test_a_judge_can_say_that_there_is_nothing_to_judge_and_its_first_case_decides():
    def judge(value):
        yield value == 42, None
        raise value("Line 3.")

    judged_by(judge)
    for answer, told in (
        (42, ("right", "It is 42.", None)),
        (judging.NotDone, ("open", "not done yet. Line 3.", judging.NotDone)),
        (judging.NotTried, ("open", "not tried out. Line 3.", judging.NotTried)),
        (judging.OnlyRead, ("right", "As far as it can be read here: Line 3.", judging.OnlyRead)),
        (judging.TooNoisy, ("open", "too noisy: measure again. Line 3.", judging.TooNoisy)),
    ):
        assert checks.judge("01.1", answer) == told


def test_mistakes_of_a_lesson_are_refused():
    for call, message in (
        (lambda: checks.check("99.9", 1), r"no task '99.9'. The nearest: [\w.]+, [\w.]+, [\w.]+\.$"),
        (lambda: checks.reflect("01.1"), "01.1 is not a written task"),
        (lambda: checks.outcome("01.11", 0.8), "01.11: 0.8 cannot be the outcome. write yes, no"),
    ):
        with pytest.raises(tasks.TaskError, match=message):
            call()


# Predictions


def test_a_prediction_is_read_generously(capsys):
    for id, value, kept_as in (
        ("01.10", "1.6", 1.6),
        ("01.10", 100, 100),
        ("01.11", "Can\N{RIGHT SINGLE QUOTATION MARK}t tell", "can't tell"),
        ("01.12", "s, s, a", "ssa"),
        ("01.13", "0.5 0.25", [0.5, 0.25]),
        ("01.14", "c and a", "ac"),
        ("01.14", 43, "34"),
    ):
        checks.predict(id, value)
        assert f": {value}. Kept; now find out." in capsys.readouterr().out
        checks.predict(id, ...)
        item = items()[id]
        assert (item["state"], ast.literal_eval(item["answer"]), item["points"]) == ("predicted", kept_as, 0)


def test_what_cannot_be_a_prediction_is_asked_for_again(capsys):
    for id, values, says in (
        ("01.10", (101, -0.1, "much", NAN, math.inf, True, [1, 2], lambda: 3), "write a number from 0 to 100."),
        ("01.11", ("perhaps", True), "write yes, no or can't tell."),
        ("01.12", ("ss", "ssax", "ssx", 7), "write 3 of the characters s or a, in one word."),
        ("01.13", (0.5, [50, 75], [0, 1, 1]), "write a list of 2 numbers, each from 0 to 1 (75 % is 0.75)."),
        ("01.14", ("", "ad"), "write one or more of the characters a, b, c, 3 or 4, in one word."),
    ):
        for value in values:
            checks.predict(id, value)
            assert f"cannot be a prediction here: {says}\n" in capsys.readouterr().out
        checks.predict(id, ...)
        assert f"{id}: not done yet. Commit yourself" in capsys.readouterr().out and items()[id]["state"] == "open"


def test_a_prediction_stands_beside_its_outcome_and_stays_what_it_was(capsys):
    for id, other, said, outcome, line in (
        ("01.10", 8, "0.25", (np.float64(0), (0, 0.5)), "You said 0.25; measured 0 [0, 0.5]."),
        ("01.11", "yes", "no", ("yes", None), "You said no; measured yes."),
        ("01.13", [1, 1], [0.5, 0.5], ([0.5, 0.125], None), "You said 0.5, 0.5; measured 0.5, 0.125."),
    ):
        checks.predict(id, other)  # before the outcome, you may think again
        checks.predict(id, said)
        checks.outcome(id, None)
        assert "the outcome is not known yet" in capsys.readouterr().out and items()[id].get("outcome") is None
        checks.outcome(id, *outcome)
        assert f"{id}: prediction. {line}\n" in capsys.readouterr().out
        item = items()[id]
        assert (item["outcome"], item["interval"]) == (outcome[0], outcome[1] and list(outcome[1]))
        checks.predict(id, other)
        assert "stays, since you have already seen the outcome." in capsys.readouterr().out and items()[id] == item
        checks.predict(id, said)  # the notebook is run again
        assert "Kept; now find out" in capsys.readouterr().out and items()[id]["outcome"] == item["outcome"]
    checks.outcome("01.12", "ssa", how="simulated")
    assert "01.12: You made no prediction; simulated ssa." in capsys.readouterr().out
    path = kept.progress_file()
    path.write_text(path.read_text().replace("'no'", "'n"))  # cut, or edited
    checks.outcome("01.11", "yes")
    assert "01.11: You made no prediction; measured yes." in capsys.readouterr().out


# A student's code that fails, or does not end


def cell(tmp_path, text):
    """What `mine` of a cell with this text is."""
    path = tmp_path / "cell.py"
    path.write_text(text)
    exec(compile(text, path, "exec"), space := {})
    return space["mine"]


def test_an_exception_names_the_students_line_as_it_stands_now(tmp_path):
    judged_by(calling([1, 2]))
    last = cell(tmp_path, "def mine(values):\n    n = len(values)\n    return values[n]\n")
    told = "Line 3: `return values[n]`: IndexError: list index out of range."
    assert checks.judge("01.1", last) == ("wrong", told, None)
    judged_by(lambda function: calling([[1, 2]])(np.vectorize(function)))
    assert "Line 2: `n = len(values)`: TypeError: " in checks.judge("01.1", last)[1], "the last of the student's"
    judged_by(lambda function: calling(1)(student_code.tried("one worker")(function)))
    named = cell(tmp_path, "def mine(n):\n    return number\n")
    assert re.match(r"Line 2: `return number`: NameError: .* Tried with one worker\.$", checks.judge("01.1", named)[1])
    assert "StopIteration" in checks.judge("01.1", lambda _: next(iter([])))[1]


def test_a_loop_without_end_is_stopped_and_its_line_named(monkeypatch):
    """Also one that catches whatever ends it; the judge's own work, as importing TensorFlow, has no limit."""
    monkeypatch.setattr(student_code, "SECONDS", 0.3)

    def never():
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                pass

    def pause():
        try:
            time.sleep(0.01)
        except BaseException:
            pass

    def calls():
        for _ in range(300):  # each call of the helper is another one
            pause()

    def judge(function):
        time.sleep(0.5)
        yield function() != 42, "no"

    judge.__code__ = judge.__code__.replace(co_filename=judging.__file__)
    judged_by(judge)
    state, text, _ = checks.judge("01.1", never)
    line = r"Line \d+: `(time.sleep\(0.01\)|while True:|try:|pass|except .*)`: stopped after 0.3 s without an end"
    assert state == "wrong" and re.match(line, text), text
    assert "stopped after 0.3 s without an end" in checks.judge("01.1", calls)[1]
    assert checks.judge("01.1", lambda: 42)[0] == "right"
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0 or "pytest_timeout" in sys.modules


def test_an_alarm_behind_a_check_does_not_end_the_kernel():
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert student_code.within_time(lambda: 5) == 5
    signal.raise_signal(signal.SIGALRM)
    assert callable(signal.signal(signal.SIGALRM, before))


# tasks.toml


def test_what_cannot_be_used_is_refused_with_its_file_and_place(course):
    path = course / "tasks.toml"
    text = path.read_text()
    assert (checks.task("T1").points, checks.task("01.10").points) == (3, 0)
    path.write_text(text.replace('id = "T1", ', ""))
    tasks.load.cache_clear()
    with pytest.raises(tasks.TaskError, match=rf"^{path}: task\[8\].answer.id is missing"):
        tasks.load(path)
    path.write_text(text)
    other = course.with_name("nb02")
    other.mkdir()
    (other / "tasks.toml").write_text(text)
    with pytest.raises(tasks.TaskError, match="nb02/tasks.toml: the id 01.1 is taken already, in .*nb01/tasks.toml"):
        tasks.lessons()


# Strict mode


def test_strict_mode_refuses_what_is_not_right_and_lets_the_rest_pass(monkeypatch, capsys):
    monkeypatch.setenv("LABS_STRICT", "1")
    for message, call in (
        ("^01.1 is wrong: Too small.$", lambda: checks.check("01.1", 41)),
        ("^01.1 is open: not done yet", lambda: checks.check("01.1", ...)),
        ("^01.10 is open: not done yet", lambda: checks.predict("01.10", ...)),
        ("^01.10 is open: 101 cannot be a prediction here", lambda: checks.predict("01.10", 101)),
    ):
        with pytest.raises(judging.NotRight, match=message):
            call()
    assert checks.check("01.1", 42)
    checks.outcome("01.10", 7)  # its prediction stands in an earlier notebook
    assert "01.10: You made no prediction; measured 7." in capsys.readouterr().out


def test_an_open_answer_is_excused_only_where_its_reason_holds(monkeypatch):
    monkeypatch.setenv("LABS_STRICT", "1")
    for missing, answer, says in ((True, ..., None), (True, 41, "01.1 is wrong"), (False, ..., "01.1 is open")):
        monkeypatch.setattr(judging, "find_spec", lambda name, missing=missing: None if missing else name)
        with pytest.raises(judging.NotRight, match=says) if says else contextlib.nullcontext():
            assert checks.check("01.1", answer, without="horovod").state == "open"


# The file of the progress


def bad(number):
    return kept.progress_file().with_name(f"progress.json.bad-{number}")


LIST, DEEP, LONG = b'{"items": []}', b'{"items": ' * 20_000, b'{"items": {"01.1": {"attempts": ' + b"9" * 5000 + b"}}}"
ODD = b'{"version": 1, "items": {"01.1": {"state": ["right"], "attempts": "many"}}}'


@pytest.mark.parametrize("text", [b"", LIST, DEEP, LONG, ODD, b"\xff\xfe\x00"], ids=range(6))
def test_what_is_no_progress_is_kept_aside_and_ends_no_check(text, capsys):
    path = kept.progress_file()
    path.parent.mkdir()
    path.write_bytes(text)
    checks.progress()
    assert path.read_bytes() == text, "reading changes nothing"
    said = capsys.readouterr().out
    assert "progress.json cannot be read (it is damaged: " in said and "yours?" not in said
    assert checks.check("01.1", 42)
    said = capsys.readouterr().out
    assert said.count("Warning") == 1 and "is kept as progress.json.bad-1, and a new one is begun: it is" in said
    assert bad(1).read_bytes() == text and items().keys() == {"01.1"}
    path.write_bytes(b"other damage")
    checks.check("01.2", "b")
    assert (bad(1).read_bytes(), bad(2).read_bytes()) == (text, b"other damage") and items().keys() == {"01.2"}


DISKS = [(kept.Path, "read_bytes", errno.EIO), (os, "replace", errno.ENOSPC)]


@pytest.mark.parametrize("place, name, error", DISKS)
def test_a_disk_that_fails_keeps_the_old_file_whole_and_the_answer_counts(monkeypatch, capsys, place, name, error):
    def fails(*_):
        raise OSError(error, os.strerror(error))

    checks.check("01.1", 42)
    path = kept.progress_file()
    before = path.read_text()
    with monkeypatch.context() as disk:
        disk.setattr(place, name, fails)
        assert checks.check("01.2", "b")
    out = capsys.readouterr().out
    assert "Warning: cannot keep your progress" in out and os.strerror(error) in out
    assert path.read_text() == before and [each.name for each in path.parent.glob("[!.]*")] == ["progress.json"]
    monkeypatch.setenv("LABS_RUNS", str(path / "runs"))  # a folder that cannot be written
    assert checks.check("01.1", 42) and "cannot keep your progress" in capsys.readouterr().out


def test_a_lock_is_no_matter_of_the_disk(monkeypatch, capsys):
    locked = files.WriteError(errno.EAGAIN, "another process keeps it locked; try again when that has ended", "p.json")
    monkeypatch.setattr(kept.files, "locked", Mock(side_effect=locked))
    checks.check("01.1", 42)
    said = capsys.readouterr().out
    assert "cannot keep your progress: p.json cannot be written: another process" in said and "disk" not in said


def test_three_kernels_lose_nothing(course):
    code = (
        "import os; os.fsync = lambda handle: None  # a slow disk would keep the lock longer than a kernel waits\n"
        "from labs.checks import kept, tasks; import sys, pathlib; tasks.LESSONS = pathlib.Path(sys.argv[1])\n"
        "for _ in range(51):\n"
        "    kept.keep(tasks.task('01.1'), 'right', [1])\n"
        "    kept.keep(tasks.task(sys.argv[2]), 'predicted', [2])"
    )
    kernels = [subprocess.Popen([sys.executable, "-c", code, course.parent, f"01.1{n}"]) for n in "013"]
    assert [kernel.wait(600) for kernel in kernels] == [0, 0, 0]
    assert items()["01.1"]["attempts"] == 153 and {*items()} == {"01.1", "01.10", "01.11", "01.13"}


# Written answers and the overview


def test_progress_over_all_tasks(tmp_path, write, capsys):
    assert checks.answers(write(["### T1: your answer\n", "Because.\n"])) == {"T1": "### T1: your answer\nBecause.\n"}
    checks.check("01.1", 42), checks.check("01.2", "a"), checks.predict("01.10", 3)
    rows = [tuple(row[key] for key in ("id", "kind", "state", "points")) for row in checks.progress(tmp_path)]
    assert rows[:2] == [("01.1", "check", "right", 2), ("01.2", "check", "wrong", 1)]
    assert rows[2:4] == [("01.10", "prediction", "predicted", 0), ("01.11", "prediction", "open", 0)]
    assert rows[7:] == [("T1", "answer", "written", 3)]
    (tmp_path / "02_broken.ipynb").write_text("{")
    assert checks.progress(tmp_path)[-1]["state"] == "written"
    assert "02_broken.ipynb cannot be read as a notebook" in capsys.readouterr().out


def test_in_a_notebook_the_result_is_one_accessible_box(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.get_ipython", lambda: object())
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    judging.show("01.1", "wrong", "Is 3 < 4? Ask `fit`.")
    assert shown[0]["text/plain"] == "01.1: not yet. Is 3 < 4? Ask `fit`."
    assert all(part in shown[0]["text/html"] for part in ('role="status"', "3 &lt; 4", "<code>fit</code>"))
