"""Judging: `check` says whether an answer is right, and `answered` whether a cell that needs it can go on.

A judge stands in the questions.py of its lesson, bound to the id of a task of the tasks.toml beside it:

    @judges("lesson.k")
    def speedup(function):
        ...

It gets the student's answer and yields cases, `yield condition, hint`. The first case whose condition holds decides;
the judge goes no further. The hint names the likely mistake and not the answer. A case `yield condition, None` says
that the answer is right; so does an answer for which no condition holds. Python makes the hint before it looks at the
condition, so the hint must not fail for any answer. A judge's last case is `yield True, hint`. Functions that judges
share yield cases, too, and are called with `yield from`; what they return, if anything, is a value that they found.

With LABS_STRICT=1 in the environment, as in CI, an answer that is not right is an error.
"""

import html
import importlib
import inspect
import os
import re
import sys
import textwrap
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from labs import blanks
from labs.checks import kept, student_code, tasks

JUDGES = {}
RIGHT = {}  # id: whether the newest answer of this kernel was, or cannot be judged here
UNFIT = "is not what is asked for here"


class Undecided(Exception):
    """Raised by a judge that does not call an answer right or wrong as its cases would. The student reads `says`, then
    the text."""

    state, says = "open", ""


class NotDone(Undecided):
    """Raised by a judge for an answer that still holds blanks; the text says where."""

    says = "not done yet."


class NotTried(Undecided):
    """Raised by a judge for an answer that cannot be judged on this machine; the text says why. What needs the answer
    goes on."""

    says = "not tried out."


class OnlyRead(Undecided):
    """Raised by a judge for an answer that is right as far as it can be read here; the text says what was not looked
    at."""

    state, says = "right", "As far as it can be read here:"


class TooNoisy(Undecided):
    """Raised by a judge for an answer that rests on a measurement with an impossible result (such as a part below 0);
    the text says why. It is to be measured again."""

    says = "too noisy: measure again."


class Judged(NamedTuple):
    """What is said of an answer: state and text, as `judge` describes them; reason: the class of the Undecided that the
    judge raised, None where its cases decided. It is true only if the answer is right. A notebook shows nothing for it
    at a cell's end."""

    state: str
    text: Any
    reason: type[Undecided] | None = None

    def __bool__(self):
        return self.state == "right"

    def _ipython_display_(self):
        pass


class NotRight(AssertionError):
    """In strict mode: an answer is wrong or open; the text holds the id, the state and the hint."""


def judges(id, as_written=False, varied=None):
    """Decorator: the function judges the answers to task `id`.

    as_written: it gets a text that is a number as the text (`as_number`), for an answer with which a cell goes on.
    varied: for a student's function whose arguments cannot be changed number by number: a function of these arguments
        and a random.Random that gives other ones, with which grading calls it (teaching.grading.again).
    """

    def bind(judge):
        judge.as_written, judge.varied = as_written, varied
        JUDGES[id] = judge
        return judge

    return bind


def judge_of(id):
    """The function that judges task `id`; imports the questions of its lesson, and no others. Raises TaskError."""
    lesson, item = tasks.find(id)
    if isinstance(item, tasks.Choice):
        return partial(_choose, item)
    if id not in JUDGES and isinstance(item, tasks.Check):
        importlib.import_module(f"lessons.{lesson.name}.questions")
    if id not in JUDGES:
        raise tasks.TaskError(f"Nothing judges {id}, {item.kind}: no judge in lessons/{lesson.name}/questions.py.")
    return JUDGES[id]


def letter(answer):
    """The letter that an answer to a choice begins with, as "b", "(b)" or "b: every second one", else None."""
    match = re.match(r"\W*(\w)(?:\W*$|[).:]\s)", str(answer)[:99].lower())
    return match and match[1]


def _choose(item, answer):
    chosen = letter(answer)
    yield chosen == item.right, None
    yield chosen in item.wrong, item.wrong.get(chosen)
    yield True, f"{repr(answer)[:40]} is not one of the choices: {', '.join(sorted([item.right, *item.wrong]))}."


def _is_blank(value):
    """True for `...`, None, and a function that holds a blank as it is written."""
    if value is ... or value is None:
        return True
    try:
        return inspect.isfunction(value) and bool(blanks.blanks(textwrap.dedent(inspect.getsource(value))))
    except (OSError, TypeError, blanks.BuildError):  # no text is known of it, or it stands in an expression's middle
        return False


def unfilled(answers):
    """True if any answer is still blank: `...`, None, a function with a blank, or a container that holds `...`."""
    return any(_is_blank(answer) or any(value is ... for value in _values_in(answer)) for answer in answers)


def judge(id: str, *answers: Any) -> Judged:
    """(state, text, reason) of an answer, without showing or keeping it.

    id: of a check
    answers: what the notebook hands to `check`, of any type

    The state is "right", "wrong" or "open"; the text says why the answer is right, or is a hint, or says what is left
    to do. Whatever the answer does, it raises nothing here. Raises TaskError for an id that no check has.
    """
    item, judge = tasks.task(id), judge_of(id)

    def judged():
        if unfilled(answers):
            raise NotDone("Fill the blank above (`...`) and run the cell again.")
        as_written = isinstance(item, tasks.Choice) or getattr(judge, "as_written", False)
        given = answers if as_written else [as_number(answer) for answer in answers]
        hint = _no_answer(given) or next((hint for holds, hint in judge(*given) if holds), None)
        return Judged("wrong", hint) if hint else Judged("right", item.why)

    return judged_safely(judged, answers)


def as_number(answer: Any) -> Any:
    """A text or array that is one number, as the number, also within a list or tuple; anything else as it is."""
    if isinstance(answer, np.ndarray) and answer.shape == ():
        answer = answer.item()
    if type(answer) in (list, tuple):
        return type(answer)(map(as_number, answer))
    if type(answer) is str and re.fullmatch(r"\s*[-+]?(\d[\d_]*\.?\d*|\.\d+)(e[-+]?\d+)?\s*", answer, re.IGNORECASE):
        number = float(answer)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return answer


def judged_safely(judged, answers):
    """The Judged that `judged` returns, or one for what it raises: an answer can be a program that ends, too."""
    try:
        return student_code.within_time(judged)
    except Undecided as problem:
        return Judged(problem.state, f"{problem.says} {problem}", type(problem))
    except KeyboardInterrupt:
        raise
    except SystemExit:
        hint = "your answer ends the whole program (sys.exit, quit): let it return instead."
    except student_code.Endless as problem:
        hint = f"{problem}: stopped after {student_code.SECONDS} s without an end. Does this loop end?"
    except BaseException as problem:
        hint = student_code.error_hint(problem) or _hint_on_type(answers, student_code.error_text(problem))
    return Judged("wrong", hint)


def _hint_on_type(answers, said):
    """Hint for what a judge cannot compare, as a text for a number: the student's own stands first. said: by Python."""
    if not any(callable(answer) for answer in answers):
        odd = [answer for answer in answers if not isinstance(answer, int | float | np.number)] or answers
        return f"{kept.brief(odd[0])[:40]} {UNFIT}: compare its form with what the question says."
    if "NoneType" in said:  # as Python says it of None, and labs.checks.reading.called
        return "Your function returns nothing (None). Does every path through it end in a `return`?"
    return f"What your function returns {UNFIT} ({said.rstrip('.')}): its description says what to return."


def _no_answer(answers):
    """A hint where an answer, or what its list or dict holds, cannot be compared: NaN, or an equality of its own.

    NaN is neither above nor below a limit, and an object with an __eq__ of the student's own equals what it says.
    """
    for answer in answers:
        if isinstance(answer, bool | np.bool_):
            return f"{answer} says yes or no. This question asks for a number, a text or a list."
        if hint := incomparable(answer):
            return hint
    return None


def incomparable(answer):
    """A hint where an answer, or what it holds, is NaN or has an equality of its own, else None."""
    for value in (answer, *_values_in(answer)):
        number = isinstance(value, np.ndarray | np.generic | float | complex) and np.asarray(value)
        if number is not False and number.dtype.kind in "fc" and np.isnan(number).any():
            return "NaN is not a number: 0/0 and infinity - infinity give it. Which line of yours does?"
        if _own_equality(type(value)):
            return f"{type(value).__name__} defines its own equality (__eq__): give a number, text or list."
    return None


def _values_in(answer):
    """What a list, tuple, set or dict holds; nothing for anything else."""
    values = answer.values() if isinstance(answer, dict) else answer
    return tuple(values) if isinstance(values, list | tuple | set | type({}.values())) else ()


def _own_equality(kind):
    """Whether a class, not an installed one, defines what its objects are equal to."""
    maker = next(each for each in kind.__mro__ if "__eq__" in vars(each))
    if maker.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(maker.__module__), "__file__", None)
    return file is not None and not student_code.installed(file)


def check(id: str, *answers: Any, without: str | None = None) -> Judged:
    """Check an answer, show the result, and keep it in progress.json. Returns a Judged, true only if it is right.

    id: of a check
    answers: the student's: a number, text, list, function, figure, path of a script, as the question asks
    without: a package that this answer needs and a machine may lack. In strict mode this is the only reason for which
        an answer may stay open, and only where it really is missing

    Raises TaskError for an unknown id, and NotRight in strict mode for an answer that is not right; a measurement that
    was too noisy is no reason for it.
    """
    judged = judge(id, *answers)
    kept.keep(tasks.task(id), judged.state, answers)
    RIGHT[id] = bool(judged) or judged.reason is NotTried
    show(id, judged.state, judged.text)
    missing = judged.state == "open" and without is not None and find_spec(without) is None
    if not judged and not missing and judged.reason is not TooNoisy:
        refuse_if_strict(id, judged.state, judged.text)
    return judged


def answered(*ids: str) -> bool:
    """True if these checks are right; else one line says what the cell waits for.

    Each must have been checked in this kernel, or be one that cannot be judged on this machine. Raises TaskError for an
    unknown id.
    """
    if missing := [tasks.task(id).id for id in ids if not RIGHT.get(id)]:
        print(f"This cell needs the right answer to {' and '.join(missing)}: run it again when you have it.")
    return not missing


def refuse_if_strict(id, state, text):
    """Raise NotRight with LABS_STRICT=1 in the environment."""
    if os.environ.get("LABS_STRICT") == "1":
        raise NotRight(f"{id} is {state}: {text}")


WORDS = {"right": "right.", "wrong": "not yet.", "open": "", "predicted": "prediction."}
COLOURS = {"right": "#009E73", "wrong": "#D55E00", "open": "#6b6b6b", "predicted": "#0072B2"}


def show(id, state, text):
    """Show the state of an item, one of WORDS, and a text: in a notebook as a coloured box, else as a line."""
    text = text.encode(errors="backslashreplace").decode()  # half a surrogate pair has no encoding
    line = f"{id}: {WORDS[state]} {text}".replace(":  ", ": ").rstrip()
    from IPython import get_ipython
    from IPython.display import display

    if get_ipython() is None:
        print(line)
        return
    marked = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text))
    box = (
        f'<div role="status" style="border-left:5px solid {COLOURS[state]};padding:.3em .8em">'
        f"<b>{html.escape(id)}</b>: <b>{WORDS[state]}</b> {marked}</div>"
    )
    display({"text/html": box, "text/plain": line}, raw=True)
