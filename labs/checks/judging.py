"""Judging: `check` says whether an answer is right, `predict` keeps an expectation.

A judge stands in the questions.py of its lesson, bound to the id of a task of the tasks.toml beside it:

    @judges("05.6")
    def speedup(function):
        ...

It gets the student's answer and returns None if it is right, else a hint that names the likely mistake and not the
answer. What it yields before are cases (condition, hint or None): the first whose condition holds decides, and the
judge goes no further; the hint is a text also where the condition does not hold.

With LABS_STRICT=1 in the environment, as in CI, an answer that is not right is an error.
"""

import ast
import html
import importlib
import inspect
import linecache
import os
import sys
import sysconfig
import textwrap
import traceback
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from labs.checks import kept, tasks

JUDGES = {}
CAN_BE_MISSING = ("horovod",)  # what the course goes on without


class NotDone(Exception):
    """Raised by a judge for an answer that still holds blanks; the text says where."""


class NotRight(AssertionError):
    """In strict mode: an answer is wrong or open; the text holds the id, the state and the hint."""


def judges(id):
    """Decorator: the function judges the answers to task `id`. Raises TaskError if another one does already."""

    def bind(judge):
        other = JUDGES.setdefault(id, judge)
        if (other.__module__, other.__qualname__) != (judge.__module__, judge.__qualname__):
            raise tasks.TaskError(f"Two functions judge {id}: {other.__qualname__} and {judge.__qualname__}.")
        JUDGES[id] = judge  # the same one again when its module is reloaded
        return judge

    return bind


def judge_of(id):
    """The function that judges task `id`; imports the questions of its lesson, and no others. Raises TaskError."""
    lesson, item = tasks.find(id)
    if isinstance(item, tasks.Choice):
        return lambda answer: _choose(item, answer)
    if id not in JUDGES and isinstance(item, tasks.Check):
        importlib.import_module(f"labs.lessons.{lesson}.questions")
    if id not in JUDGES:
        missing = f"labs/lessons/{lesson}/questions.py has no judge for it."
        raise tasks.TaskError(f"Nothing judges {id}, {item.kind}: {missing}")
    return JUDGES[id]


def _choose(item, answer):
    letter = str(answer)[:9].strip().lower().strip(".()")
    if letter == item.right:
        return None
    choices = ", ".join(sorted([item.right, *item.wrong]))
    return item.wrong.get(letter) or f"{repr(answer)[:40]} is none of the choices: {choices}."


def _is_blank(value):
    """True for `...`, None, and a function whose body, as it is written, is still `...`."""
    if value is ... or value is None:
        return True
    if not inspect.isfunction(value):
        return False
    try:
        written = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    except (OSError, SyntaxError):  # no text is known of it, or it stands in the middle of an expression
        return False
    body = getattr(written, "body", None)
    if not isinstance(body, list):
        return False
    *before, last = [getattr(getattr(statement, "value", None), "value", None) for statement in body]
    return last is ... and all(isinstance(value, str) for value in before)  # a docstring may stand before


def unfilled(answers):
    """True if any answer is still blank: `...`, None, a function without a body, or a container that holds `...`."""
    return any(_is_blank(answer) or any(value is ... for value in _held(answer)) for answer in answers)


def decided(judged):
    """What a judge says, from what calling it gave: a hint or None, or a generator of cases that returns one."""
    while inspect.isgenerator(judged):
        try:
            holds, hint = next(judged)
        except StopIteration as end:
            return end.value
        if holds:
            return hint
    return judged


def judge(id, *answers):
    """(state, text) of an answer, without showing or keeping it; state: right, wrong or open. Raises TaskError."""
    item, judge = tasks.task(id), judge_of(id)

    def judged():
        if unfilled(answers):
            return "open", _OPEN
        hint = _no_answer(answers) or decided(judge(*answers))
        return ("wrong", hint) if hint else ("right", item.why)

    return _outlived(judged, judge)


_OPEN = "not done yet. Fill the blank above (`...`) and run the cell again."
_NAN = "NaN is no answer: it is what comes of 0/0 or of infinity - infinity. Where does it come from?"


def _outlived(judged, judge=None):
    """What `judged`, which calls `judge`, returns.

    A student's answer may be anything, also a program that ends; the check outlives it.
    """
    try:
        return judged()
    except NotDone as problem:
        return "open", f"not done yet. {problem}"
    except KeyboardInterrupt:
        raise
    except SystemExit:
        return "wrong", "your answer ends the whole program (sys.exit, quit): let it return instead."
    except BaseException as problem:
        said = f"{type(problem).__name__}: {kept.shown(problem, str)}".rstrip(": ")
        if where := _line(problem, judge):
            return "wrong", f"{where}: {said}" + ("" if said.endswith((".", "?", "!")) else ".")
        return "wrong", f"your answer cannot be read ({said}). What type does it have?"


def _line(problem, judge):
    """The student's own line where an exception arose, as a text; None where it arose in the kit."""
    code, lines = getattr(judge, "__code__", None), []
    for frame, number in traceback.walk_tb(problem.__traceback__):
        if not _of_the_kit(frame.f_code.co_filename) and frame.f_code is not code:
            text = linecache.getline(frame.f_code.co_filename, number).strip()
            lines.append(f"line {number}: `{text}`" if text else f"line {number}")
    return lines[-1] if lines else None


def _no_answer(answers):
    """A hint where an answer, or what its list or dict holds, is no answer to anything: NaN, or equal to what it likes.

    NaN is neither above nor below a limit, and an object with an __eq__ of the student's own equals what it says.
    """
    for answer in answers:
        for value in (answer, *_held(answer)):
            number = isinstance(value, np.ndarray | np.generic | float | complex) and np.asarray(value)
            if number is not False and number.dtype.kind in "fc" and np.isnan(number).any():
                return _NAN
            if _own_equality(type(value)):
                return f"{type(value).__name__} says itself what it is equal to (__eq__): give a number, text or list."
    return None


def _held(answer):
    """What a list, tuple, set or dict holds; nothing for anything else."""
    values = answer.values() if isinstance(answer, dict) else answer
    return tuple(values) if isinstance(values, list | tuple | set | type({}.values())) else ()


def _own_equality(kind):
    """Whether a class, not an installed one, defines what its objects are equal to."""
    maker = next(each for each in kind.__mro__ if "__eq__" in vars(each))
    module = sys.modules.get(maker.__module__)
    return maker.__module__ == "__main__" or (module is not None and not _installed(module))


def _installed(module):
    """Whether a module comes with Python, this kit or a package."""
    file = getattr(module, "__file__", None)
    return file is None or _of_the_kit(file)


def _of_the_kit(file):
    """Whether a file comes with Python, this kit or a package; also what is no file."""
    folders = (*sysconfig.get_paths().values(), str(Path(__file__).parents[1]))
    return file.startswith("<") or any(Path(file).is_relative_to(folder) for folder in folders)


class Outcome:
    """What `check` returns: true only if the answer is right. A notebook shows nothing for it at a cell's end."""

    def __init__(self, state):
        self.state = state

    def __bool__(self):
        return self.state == "right"

    def _ipython_display_(self):
        pass


def check(id, *answers, without=None):
    """Check an answer, show the result, and keep it. Returns an Outcome: true only if the answer is right.

    without: what this answer needs and a machine may lack (a word of CAN_BE_MISSING). In strict mode it is the only
    reason for which an answer may stay open, and only where it really is missing. Raises TaskError for an unknown id or
    word, and NotRight in strict mode.
    """
    if without is not None and without not in CAN_BE_MISSING:
        raise tasks.TaskError(f"{id}: without={without!r} is no reason; known are {', '.join(CAN_BE_MISSING)}.")
    state, text = judge(id, *answers)
    kept.keep(tasks.task(id), state, answers)
    _show(id, state, text)
    excused = state == "open" and without is not None and find_spec(without) is None
    if state != "right" and not excused:
        _refuse_if_strict(id, state, text)
    return Outcome(state)


def predict(id, value):
    """Keep a prediction before you run anything. A blank one is asked for again; in strict mode it raises NotRight."""
    item = tasks.task(id)
    _, blank = _outlived(lambda: (None, unfilled([value])))
    state, text = "predicted", f"{item.title}: {kept.shown(value, str)}. Kept; now find out."
    if blank is True:
        text = "not done yet. Commit yourself before you look: a wrong prediction teaches more than none."
        state = "open"
    kept.keep(item, state, [value])
    _show(id, state, text)
    if state == "open":
        _refuse_if_strict(id, state, text)


def _refuse_if_strict(id, state, text):
    if os.environ.get("LABS_STRICT") == "1":
        raise NotRight(f"{id} is {state}: {text}")


WORDS = {"right": "right.", "wrong": "not yet.", "open": "", "predicted": "prediction."}
COLOURS = {"right": "#009E73", "wrong": "#D55E00", "open": "#6b6b6b", "predicted": "#0072B2"}


def _show(id, state, text):
    text = text.encode(errors="backslashreplace").decode()  # half a surrogate pair has no encoding
    line = f"{id}: {WORDS[state]} {text}".replace(":  ", ": ").rstrip()
    from IPython import get_ipython
    from IPython.display import display

    if get_ipython() is None:
        print(line)
        return
    box = (
        f'<div role="status" style="border-left:5px solid {COLOURS[state]};padding:.3em .8em">'
        f"<b>{html.escape(id)}</b>: <b>{WORDS[state]}</b> {html.escape(text)}</div>"
    )
    display({"text/html": box, "text/plain": line}, raw=True)
