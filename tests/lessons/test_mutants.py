"""Every right answer, changed by one plausible mistake, is not right any more: for the student's check, and a function
also not for the grader's own trials.

A mutant of a function ignores an argument, exchanges two, gives its result in another unit, one too many or always the
same. A mutant of a number is one more or less, or in another unit. What passes nevertheless stands in EXPLAINED, with
the reason. (What else students write stands in the answers, each with its hint.)
"""

import copy
import itertools
import sys
import types
from functools import partial
from operator import add, mul

import known
import numpy as np
import pytest
from tree import ROOT

from labs.checks import judging, student_code, tasks
from teaching.grading import again, reference

sys.path.insert(0, str(ROOT / "tests/grading"))
from test_judging_again import called  # noqa: E402

LESSONS = tasks.lessons()
CHANGES = {f"* {unit:g}": partial(mul, unit) for of in (1000, 60, 100, 8, 2) for unit in (of, 1 / of)}
CHANGES |= {"* -1": partial(mul, -1), "+ 1": partial(add, 1), "- 1": partial(add, -1)}
LARGE = 100  # what is one more than this is within the tolerance of many checks

ONE_HALF = "a size next to the middle halves the gap, too: it is asked for where the sum is even"
TWO_LINES = "the loop that waits has two lines, and a look may find the rank at each of them"
CLOSE = "the answer is a large whole number, and numbers are compared up to a thousandth"
ONE_CASE = "the check has one case of it; the grader has more (tests/grading/made_class.py)"
PRODUCT = "both are factors or terms of one product or sum"
EXPLAINED = {  # (id, the mutant): why it is taken for right
    ("averages.9", "staleness: ignores argument 0"): ONE_CASE,
    ("resnet50.14", "slower_of_two: constant"): ONE_CASE,
    ("resnet50.14", "slower_of_two: ignores argument 0"): ONE_CASE,
    ("standing.7", "line: - 1, place 0"): TWO_LINES,
    ("rate.5", "next_batch: argument 0 + 1"): ONE_HALF,
    ("rate.5", "next_batch: result 0 + 1"): CLOSE,
    ("rate.5", "next_batch: result 0 - 1"): CLOSE,
    ("rate.5", "next_batch: arguments 0 and 1 exchanged"): PRODUCT,
    ("concepts.7", "efficiency: arguments 1 and 2 exchanged"): PRODUCT,
    ("averages.13", "server_bytes: arguments 0 and 1 exchanged"): PRODUCT,
    ("sharding.10", "steps_of: arguments 1 and 2 exchanged"): PRODUCT,
    ("networks.6", "exchange_seconds: arguments 0 and 3 exchanged"): PRODUCT,
    ("step.5", "threshold: arguments 1 and 2 exchanged"): PRODUCT,
}
# What is right here is any program that plays right, with other ranks and times: a mutant that does is right, too.
# Wrong programs, each with its verdict: the answers of these lessons, test_schedules.py.
PLAYED = {"write_the_schedule", "zero_schedules", "harder_schedules", "pipeline_schedules"}


def changed(value, change):
    """Versions of a value with one of its numbers changed, and with all."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        yield change(value)
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
        if abs(change(value) - value) > abs(value) / LARGE:  # else it is rounded, or the same
            yield change(value)
    elif type(value) in (list, tuple):
        for place, each in enumerate(value[:5]):
            for other in changed(each, change):
                yield type(value)([*value[:place], other, *value[place + 1 :]])


def of_result(function, change, place):
    def mutant(*arguments):  # of a function that gives text or a function there is no unit
        value = function(*arguments)
        versions = [] if isinstance(value, types.FunctionType | str) else list(changed(value, change))
        return versions[place] if place < len(versions) else value

    return mutant


def of_arguments(function, calls):
    """(name, mutant): an argument ignored or one more, two exchanged, always the first result."""
    first = max(calls, key=len)
    result = function(*copy.deepcopy(first))
    yield "constant", lambda *_: copy.deepcopy(result)

    def put(what):
        """The function with other arguments: what(place, all of them) gives the one for each place."""
        return lambda *given: function(*(what(place, given) for place in range(len(given))))

    for n, value in enumerate(first):
        yield f"ignores argument {n}", put(lambda p, all, n=n, value=value: copy.deepcopy(value) if p == n else all[p])
        if isinstance(value, int) and not isinstance(value, bool) and value < LARGE:
            yield f"argument {n} + 1", put(lambda p, all, n=n: all[p] + 1 if p == n else all[p])
    for one, other in itertools.combinations(range(len(first)), 2):
        to = {one: other, other: one}
        exchanged = put(lambda p, all, to=to: all[to.get(p, p)] if max(to) < len(all) else all[p])
        yield f"arguments {one} and {other} exchanged", exchanged


def of_function(function, calls):
    """(what, mutant) of a function of the solution."""
    given = [answer[0] for each in calls if (answer := again._answer(function, each))]
    for what, change in CHANGES.items():
        for place in range(max((len(list(changed(each, change))) for each in given), default=0)):
            yield f"result {place} {what}", of_result(function, change, place)
    yield from of_arguments(function, calls)


def of_value(value):
    for what, change in CHANGES.items():
        for place, other in enumerate(changed(value, change)):
            yield f"{what}, place {place}", other


def told(mutant, right, calls, id):
    """Whether the grader's own trials tell a function from the right one."""
    try:
        return again.differs(mutant, right, calls, id, id)
    except Exception:  # the grader says so, too
        return True


def mistaken(name):
    """(id, the mutant, who takes it for right) of a lesson's mutants that are not seen to be wrong."""
    notebook = LESSONS[name].notebook
    right, asked = reference.functions(ROOT, notebook), reference.asked(ROOT, notebook)
    for id, row in known.answers(name).items():
        answer = next((each for each in row.right if isinstance(each, tuple)), ())
        if id not in asked or len(answer) != len(asked[id].names):
            continue
        own = [place for place, mine in enumerate(asked[id].own) if mine]
        for place in own:
            given, variable = answer[place], asked[id].names[place]
            function, calls = isinstance(given, types.FunctionType) and right.get(variable), []
            if not isinstance(given, types.FunctionType):
                made = of_value(given)
            elif callable(function) and (calls := called(id, answer, place)):
                made = of_function(function, calls)
            else:
                continue
            for what, mutant in made:
                state, *_ = judging.judge(id, *answer[:place], mutant, *answer[place + 1 :])
                seen = not calls or told(mutant, function, calls, id)
                if state == "right" or not seen:
                    yield id, f"{variable}: {what}", "the grader, too" * (not seen)


@pytest.mark.parametrize("name", [name for name in LESSONS if name not in PLAYED])
def test_a_plausible_mistake_in_a_right_answer_is_not_right(name, monkeypatch):
    monkeypatch.setattr(student_code, "SECONDS", 3)  # some mutants never end
    found = sorted({each for each in mistaken(name) if each[:2] not in EXPLAINED})
    assert not found, "\n".join(map(str, found))
