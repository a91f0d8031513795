"""Forms of questions, in which a mistake is one row: a wrong answer, executable, and its hint.

    formula(
        "concepts.13",
        right=lambda k, m: (k - 1) / (m + k - 1),
        cases=[(4, 4), (2, 1), (8, 3), (1, 5)],
        wrong=[(lambda k, m: (k - 1) / k, "This is the share without micro-batches. Where does their number come in?")],
        otherwise="Count the boxes and the gaps in the picture.",
    )
    value("concepts.14", right=27, wrong=[(4, "This is the number of devices.")], otherwise="Try a few numbers.")

An answer is right if it gives what `right` gives. Else the first row decides that gives what the answer gives, then
the mistakes that any answer can have (`_MISTAKES`, arguments swapped or ignored). What is none of them gets what was
observed, and `otherwise`, a question or advice without the answer. A list in place of a wrong answer, or of the right
one, holds several; a hint may be a function of the student's answer. What has no such form has a judge of its own
(labs.checks.judging); tests/lessons/test_answers.py tries every row.
"""

import contextlib
import copy
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labs.checks import kept
from labs.checks.judging import incomparable, judges, letter
from labs.checks.reading import as_rounded, called
from labs.checks.student_code import tried
from labs.printed import an, several
from lessons.asked import told

WHOLE = "This is a whole number, but the right one has decimals."
Rows = Sequence[tuple[Any, str | Callable[..., str]]]
# (what it makes of right numbers, hint): the first that gives what the student's answer gives
_MISTAKES = (
    (lambda right: 100 * right, "This is 100 times too large. Is it in per cent?"),
    *((whole, WHOLE) for whole in (np.trunc, np.floor, np.ceil, np.round)),
    (lambda right: 1 / right, "This is upside down: what is divided by what?"),
    (lambda right: -right, "Only the sign is wrong."),
)
UNITS = (1e3, 2**10, 1e6, 2**20, 1e9, 2**30)
ROUNDED = "Only the rounding is wrong: leave the number as it is."


@dataclass(frozen=True)
class Formula:
    """A function that a student writes. `formula` says what its fields are."""

    right: Callable
    cases: Sequence[tuple]
    wrong: Rows = ()
    otherwise: str = ""
    tolerance: float = 1e-4

    def hint(self, function: Callable) -> str | None:
        """What to tell the student, or None if the function is right."""
        if not callable(function):
            return f"{_shown(function)} is no function: give the function itself, without calling it."
        got, changed = [], None
        for case in self.cases:
            if problem := _unfit(function, case):
                return f"Your function does not take the {several(len(case), 'argument')} of the question: {problem}."
            with tried(self.described(function, case)):
                result, change = called(function, *case)
            if hasattr(result, "__next__"):
                what = f"{kind(result)} object, which has computed nothing yet"
                return f"Your function returns {what}: return what it will give."
            if hint := incomparable(result):
                return f"For {self.described(function, case)} your function gives {_shown(result)}. {hint}"
            got.append(result)
            changed = changed or change
        wanted = self.results(self.right)
        right = [alike(*pair, self.tolerance) for pair in zip(got, wanted, strict=True)]
        if all(right):
            return changed and f"What it returns is right. {changed}"
        more = f" {changed}" if changed else ""
        for wrong, hint in self.wrong:
            if any(self.same(got, self.results(each)) for each in alternatives(wrong)):
                return (hint if isinstance(hint, str) else hint(function)) + more
        hint = self._misshapen(got, wanted) or self._common(function, got, wanted)
        return (hint or f"{self._observed(function, got, wanted, right)} {self.otherwise}".rstrip()) + more

    def results(self, function: Callable, cases: Sequence[tuple] = ()) -> list:
        """What a function gives in each case, or in these; an object that equals nothing where it raises an error."""
        found = []
        for case in cases or self.cases:
            try:
                with np.errstate(all="ignore"):
                    found.append(function(*copy.deepcopy(case)))
            except Exception:
                found.append(object())
        return found

    def same(self, got, results):
        return all(alike(one, other, self.tolerance) for one, other in zip(got, results, strict=True))

    def names(self, function, count):
        """The names of the first arguments, if the student's function, or else the right one, has a name for each."""
        for of in (function, self.right):
            with contextlib.suppress(TypeError, ValueError):  # of a function written in C
                if len(names := list(inspect.signature(of).parameters)) >= count:
                    return names[:count]
        return []

    def described(self, function, case):
        """The arguments of a case, with their names."""
        names = self.names(function, len(case)) or [""] * len(case)
        return ", ".join(f"{name} = {_shown(each)}".lstrip(" =") for name, each in zip(names, case, strict=True))

    def _misshapen(self, got, wanted):
        """Hint for a list where a number is asked for, the reverse, and other shapes; else None."""
        for one, other in zip(got, wanted, strict=True):
            array, right = as_array(one), as_array(other)
            if right is None or (array is not None and array.shape == right.shape):
                continue
            if not right.shape:
                return f"Your function returns {kind(one)}: return one number."
            if array is None and right.ndim == 1:
                return f"Your function returns {_shown(one)}: return {right.size} numbers."
            if right.ndim > 1:
                return f"Your function returns {_shown(one)}: an array of shape {right.shape} is asked for."
            return f"Your function returns {several(array.size, 'value')}: {right.size} are asked for."
        return None

    def _common(self, function, got, wanted):
        """Hint for a mistake that any formula can have, or None."""
        if hint := _of_numbers(got, wanted, self.tolerance):
            return hint + " Is it `//`, `int` or `round`?" * (hint == WHOLE)
        if all(alike(each, got[0], 1e-9) for each in got) and not self.same(wanted, wanted[:1] * len(wanted)):
            return f"Your function gives {_shown(got[0])} in each case tried. Does it use what it is given?"
        names = self.names(function, min(map(len, self.cases)))
        for one, other in itertools.combinations(range(len(names)), 2):
            if self.same(got, self.results(lambda *case: self.right(*_exchanged(case, one, other)))):  # noqa: B023
                return f"These results are right if `{names[one]}` and `{names[other]}` change places: which is which?"
        following = [*zip(self.cases, [*self.cases[1:], self.cases[0]], strict=True)]
        for place, name in enumerate(names if len(names) > 1 else ()):
            cases = [(*case[:place], other[place], *case[place + 1 :]) for case, other in following]
            found = zip(got, self.results(function, cases), wanted, self.results(self.right, cases), strict=True)
            both = [(alike(one, new), alike(*rights)) for one, new, *rights in found if as_array(rights[1]) is not None]
            if all(same for same, _ in both) and not all(same for _, same in both):
                return f"In the cases tried, your function gives the same whatever `{name}` is. Do you use it?"
        return None

    def _observed(self, function, got, wanted, right):
        """What to say of a mistake that is none of the known ones: a case in which the result is wrong."""
        wrong = right.index(False)
        seen = f"or {self.described(function, self.cases[wrong])} your function gives {_shown(got[wrong])}."
        shapes = {np.shape(as_array(each)) for each in (*got, *wanted)}
        count = len(wanted[0]) if shapes in ({(2,)}, {(3,)}) else 0
        for place, name in enumerate(("first", "second", "third")[:count]):
            if all(alike(one[place], other[place], self.tolerance) for one, other in zip(got, wanted, strict=True)):
                return f"The {name} value is right. F{seen}"
        if True in right:
            return f"Right for {self.described(function, self.cases[right.index(True)])}. But f{seen}"
        return f"F{seen}"


def formula(
    id: str,
    right: Callable,
    cases: Sequence[tuple],
    wrong: Rows = (),
    otherwise: str = "",
    tolerance: float = 1e-4,
    varied: Callable | None = None,
) -> None:
    """Task `id` asks for a function.

    right: what it computes
    cases: arguments that it is called with, in copies; some that make each mistake differ from what is right
    wrong: (a function with a mistake, its hint); `...` in a tuple that it returns stands for any value; hint: a text,
        or a function of the student's function
    otherwise: for what is none of these
    tolerance: relative, of numbers
    varied: other arguments for the grader's calls (labs.checks.judging)
    """
    formulas(id, varied, **{"": Formula(right, cases, wrong, otherwise, tolerance)})


def formulas(id: str, varied: Callable | None = None, **parts: Formula) -> None:
    """Task `id` asks for several functions, by their names; the first that is not right is told."""

    def judge(*functions):
        for place, (name, function) in enumerate(zip(parts, functions, strict=True)):
            before = f"{' and '.join([*parts][:place])} {'is' if place == 1 else 'are'} right. " if place else ""
            hint = parts[name].hint(function)
            yield hint, f"{before}{name}: {hint}" if name else hint

    judge.parts = list(parts.values())
    judges(id, varied=varied)(judge)


@dataclass(frozen=True)
class Value:
    """Values that a student gives. `value` says what its fields are."""

    right: Any
    wrong: Rows
    otherwise: str | tuple[str, ...] | Callable[..., str]
    tolerance: float

    def of(self, answer: Any, given: tuple) -> tuple:
        """An answer of `right` or `wrong` as a tuple of its values; given: what the notebook hands over."""
        answer = answer(*given) if callable(answer) else answer
        return answer if isinstance(answer, tuple) else (answer,)

    def count(self, arguments: Sequence) -> int:
        """How many of the arguments of `check` are the student's."""
        first = alternatives(self.right)[0]
        if callable(first):
            return len(arguments) - len(inspect.signature(first).parameters)
        return len(first) if isinstance(first, tuple) else 1

    def hint(self, *arguments: Any) -> str | None:
        """What to tell the student, or None if the values are right."""
        answers, given = arguments[: (count := self.count(arguments))], arguments[count:]
        right = [self.of(each, given) for each in alternatives(self.right)]
        for answer, wanted in zip(answers, right[0], strict=True):
            if callable(answer):
                return "This is a function: call it, and give what it returns."
            if isinstance(wanted, int | float | np.number) and ((array := as_array(answer)) is None or array.shape):
                return f"{kept.brief(answer)[:40]} is {kind(answer)}: one number is asked for, such as 2.5."
        if any(self.same(answers, each) for each in right):
            return None
        for wrong, hint in self.wrong:
            if any(self.same(answers, self.of(each, given)) for each in alternatives(wrong)):
                return hint if isinstance(hint, str) else hint(*arguments)
        if any(self.same(order, right[0]) for order in itertools.permutations(answers)):
            return "These values are right, but in another order: which one is asked for first?"
        wrong = [self.same([one], [other]) for one, other in zip(answers, right[0], strict=True)].index(False)
        advice = self.otherwise[wrong] if isinstance(self.otherwise, tuple) else self.otherwise
        advice = advice if isinstance(advice, str) else advice(*arguments)
        if not (hint := _of_numbers([answers[wrong]], [right[0][wrong]], self.tolerance)):
            return advice
        hint = f"{hint} {advice}" if hint == WHOLE else hint
        return hint if len(answers) == 1 else f"{('First', 'Second', 'Third', 'Fourth')[wrong]} value: {hint}"

    def same(self, answers, wanted):
        return all(each is ... or self.fits(one, each) for one, each in zip(answers, wanted, strict=True))

    def fits(self, answer, wanted):
        """Whether a value is what is wanted, as somebody rounds it: to 2 or 3 digits, unless it is a whole number."""
        if isinstance(wanted, str):
            return (letter(answer) if len(wanted) == 1 else told(answer).strip(" ().,")) == told(wanted)
        if isinstance(wanted, float) and not wanted.is_integer():
            return as_rounded(answer, wanted, self.tolerance)
        if not isinstance(wanted, int | float | np.number):
            return alike(answer, wanted)
        return alike(answer, wanted, 1e-9 if abs(wanted) < 1e6 else self.tolerance)


def value(
    id: str, right: Any, wrong: Rows = (), otherwise: str | tuple | Callable = "", tolerance: float = 1e-3
) -> None:
    """Task `id` asks for a number, a word, or several of these, a tuple.

    right: it, or a function of what the notebook hands over beside the answer, such as a run
    wrong: (what a student gives, hint), also a function; `...` stands for any value; hint: a text, or a function of
        all that is handed over
    otherwise: for what is none of these, as a hint; in a tuple, one for each value: that of the first wrong one is told
    tolerance: relative, of numbers that are not whole; these may also be rounded to 2 or 3 digits
    """
    form = Value(right, wrong, otherwise, tolerance)

    def judge(*arguments):
        hint = form.hint(*arguments)
        yield hint, hint

    judge.parts = [form]
    judges(id)(judge)


def alternatives(answer: Any) -> list:
    """The answers of a row, of which there may be several in a list."""
    return answer if isinstance(answer, list) else [answer]


def alike(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    """Whether a result is the wanted one, `other`: numbers up to a relative tolerance, also in lists and arrays; `...`
    in a tuple stands for any value."""
    if isinstance(other, tuple) and any(each is ... for each in other):
        pairs = zip(one, other, strict=True) if np.shape(as_array(one)) == (len(other),) else ((one, object()),)
        return all(wanted is ... or alike(value, wanted, tolerance) for value, wanted in pairs)
    if isinstance(other, str):
        return told(one).strip(" ().,") == told(other)
    if isinstance(other, dict):
        return isinstance(one, dict) and one.keys() == other.keys() and all(alike(one[k], other[k]) for k in other)
    if as_array(other) is None:
        return type(one) is type(other) and one == other
    one, other = as_array(one), as_array(other)
    return one is not None and one.shape == other.shape and np.allclose(one, other, rtol=tolerance, atol=1e-9)


def kind(value):
    """What kind of value it is, for a hint: "a list", "nothing"."""
    return "nothing" if value is None else an(type(value).__name__)


def as_array(value):
    """A number, list or array of numbers as an array of floats; None for anything else, also for numbers as text."""
    try:
        array = np.asarray(value)
        return None if value is None or array.dtype.kind in "USc" else array.astype(float)
    except (TypeError, ValueError):
        return None


def _of_numbers(got, wanted, tolerance):
    """The hint for numbers that are wrong in a way that any numbers can be, or None."""
    pairs = [(as_array(one), as_array(other)) for one, other in zip(got, wanted, strict=True)]
    if any(one is None or other is None or one.shape != other.shape for one, other in pairs):
        return None
    got, wanted = (np.concatenate(list(map(np.ravel, arrays))) for arrays in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        for make, hint in _MISTAKES:
            if alike(got, make(wanted), tolerance) and not alike(wanted, make(wanted), tolerance):
                return hint
        if any(alike(got, each) and not alike(wanted, each) for each in (np.round(wanted, n) for n in (1, 2, 3, 4))):
            return ROUNDED
        factors, differences = got / wanted, got - wanted
    if len(got) == 1:
        unit = got.all() and any(alike(factors, [factor], tolerance) for unit in UNITS for factor in (unit, 1 / unit))
        return "Is this the unit that is asked for?" if unit else None
    if got.any() and alike(factors, np.full(len(got), factors[0]), tolerance):
        return "In the cases tried, all is wrong by the same factor. Is a constant missing, or one too many?"
    if alike(differences, np.full(len(got), differences[0]), tolerance):
        return "In the cases tried, all is wrong by the same amount. Is something counted too often, or not at all?"
    return None


def _unfit(function, case):
    """Why a function cannot be called with these arguments, in Python's words, or None."""
    try:
        inspect.signature(function).bind(*case)
    except TypeError as problem:
        return problem
    except ValueError:  # of a function written in C
        pass
    return None


def _exchanged(case, one, other):
    """The arguments of a case, two of them exchanged."""
    to = {one: other, other: one}
    return [case[to.get(place, place)] for place in range(len(case))]


def _shown(value):
    """A value in at most 90 characters, its numbers in 4 digits."""
    value = np.asarray(value).tolist() if hasattr(value, "__array__") else value
    if isinstance(value, tuple | list):
        text = ", ".join(map(_shown, value)).join("()" if isinstance(value, tuple) else "[]")
    else:
        text = f"{value:.4g}" if isinstance(value, float | np.floating) else " ".join(kept.brief(value).split())
    long = f" of {len(value)}" if isinstance(value, tuple | list | dict | set) else ""
    return text if len(text) < 90 else f"{an(type(value).__name__)}{long}"
