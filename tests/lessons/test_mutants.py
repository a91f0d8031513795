"""Every right answer, changed by one plausible mistake, is not right any more: for the student's check, and a function
also not for the grader's own trials.

A mutant of a function ignores an argument, exchanges two, gives its result in another unit, one too many or always the
same, or differs from the solution in one operator, number or name. One that gives the same as the right function for
many other inputs is no mistake. A mutant of a number is one more or less, or in another unit. What passes nevertheless
stands in EXPLAINED, with the reason.
"""

import ast
import copy
import importlib
import itertools
import random
import sys
import types

import numpy as np
import pytest
from tree import ROOT

from labs.checks import judging, student_code, tasks
from teaching.grading import again, reference

sys.path.insert(0, str(ROOT / "tests/grading"))
from test_judging_again import called  # noqa: E402

LESSONS = tasks.lessons()
UNITS = (1000, 1 / 1000, 60, 1 / 60, 100, 1 / 100, 8, 1 / 8, 2, 1 / 2, -1)
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv, ast.Eq: ast.NotEq, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
NAMES = {"sum": "max", "max": "min", "min": "max", "mean": "max", "median": "mean", "first": "last"}
LARGE = 100  # what is one more than this is within the tolerance of many checks
PLACES = 5  # of a list, whose numbers are changed
CASES = 60  # other inputs for which a mutant is compared with the right function

ONE_HALF = "a size next to the middle halves the gap, too: it is asked for where the sum is even"
SLOW = ("mirrored.8", "rate.1")  # their judges build networks: every fourth mutant
EXPLAINED = {
    ("rate.5", "next_batch: `(fits + fails) / 2`"): ONE_HALF,
    ("rate.5", "next_batch: argument 0 + 1"): ONE_HALF,
    (
        "standing.7",
        "line: - 1, place 0",
    ): "the loop that waits has two lines, and a look may find the rank at each of them",
}
CLOSE = "the answer is a large whole number, and numbers are compared up to a thousandth"
# What the grader's own trials take for right, and the check does not.
UNSEEN = {
    ("averages.13", "seconds_to: `loss < target`"): "no drawn loss equals the target",
    ("rate.5", "next_batch: result 0 + 1"): CLOSE,
    ("rate.5", "next_batch: result 0 - 1"): CLOSE,
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
        for place, each in enumerate(value[:PLACES]):
            for other in changed(each, change):
                yield type(value)([*value[:place], other, *value[place + 1 :]])


def changes():
    for unit in UNITS:
        yield f"* {unit:g}", lambda value, unit=unit: value * unit
    yield "+ 1", lambda value: value + 1
    yield "- 1", lambda value: value - 1


def of_result(function, change, place):
    def mutant(*arguments):  # of a function that gives text or a function there is no unit
        value = function(*arguments)
        if isinstance(value, types.FunctionType | str):
            return value
        versions = list(changed(value, change))
        return versions[place] if place < len(versions) else value

    return mutant


def of_arguments(function, calls):
    """(name, mutant): an argument ignored or one more, two exchanged, always the first result."""
    first = max(calls, key=len)
    result = function(*copy.deepcopy(first))
    yield "constant", lambda *_: copy.deepcopy(result)
    for place, given in enumerate(first):

        def ignores(*arguments, place=place, given=given):
            return function(
                *arguments[:place], *([copy.deepcopy(given)] if len(arguments) > place else []), *arguments[place + 1 :]
            )

        yield f"ignores argument {place}", ignores
        if isinstance(given, int) and not isinstance(given, bool) and given < LARGE:

            def one_more(*arguments, place=place):
                return function(*(each + (n == place) if n == place else each for n, each in enumerate(arguments)))

            yield f"argument {place} + 1", one_more
    for one, other in itertools.combinations(range(len(first)), 2):

        def swapped(*arguments, one=one, other=other):
            arguments = list(arguments)
            if other < len(arguments):
                arguments[one], arguments[other] = arguments[other], arguments[one]
            return function(*arguments)

        yield f"arguments {one} and {other} exchanged", swapped


def nodes(tree):
    """What is changed in the tree, one after the other; each change is undone before the next."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for number, node in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(node, ast.BinOp):
                    for half in (node.left, node.right):
                        _put(parent, field, number, half)
                        yield f"{ast.unparse(half)} for {ast.unparse(node)}"
                    _put(parent, field, number, node)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
            before, node.op = node.op, OPERATORS[type(node.op)]()
            yield ast.unparse(node)
            node.op = before
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            before, node.ops = node.ops, [OPERATORS[type(node.ops[0])](), *node.ops[1:]]
            yield ast.unparse(node)
            node.ops = before
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            node.left, node.right = node.right, node.left
            yield ast.unparse(node)
            node.left, node.right = node.right, node.left
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            for other in {node.value + 1, node.value - 1}:
                before, node.value = node.value, other
                yield f"{other} for {before}"
                node.value = before
        elif isinstance(node, ast.Name) and node.id in NAMES:
            before, node.id = node.id, NAMES[node.id]
            yield f"{node.id} for {before}"
            node.id = before
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            before, node.attr = node.attr, NAMES[node.attr]
            yield f"{node.attr} for {before}"
            node.attr = before


def _put(parent, field, number, node):
    if isinstance(getattr(parent, field), list):
        getattr(parent, field)[number] = node
    else:
        setattr(parent, field, node)


def of_source(notebook, name):
    """(what, mutant) of a function of the solution, with one node of its text changed."""
    names = reference.functions(ROOT, notebook)
    for source in reference.forms(ROOT, notebook)[0].values():
        for node in reference.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                tree = ast.Module([copy.deepcopy(node)], [])
                for what in nodes(tree.body[0]):
                    made = dict(names)
                    exec(compile(ast.fix_missing_locations(tree), f"mutant of {name}", "exec"), made)
                    yield f"`{what}`", made[name]


def cases(right, calls, id):
    """Other inputs: those of the grader, and whole numbers changed at will."""
    draw, found = (
        random.Random(id),
        [arguments for seed in range(3) for arguments, *_ in again.drawn(right, calls, f"{seed}", id)],
    )
    if not getattr(judging.judge_of(id), "varied", None):
        found += [
            [
                each
                if isinstance(each, bool) or not isinstance(each, int) or each < 2
                else draw.randint(1, 2 * each + 3)
                for each in arguments
            ]
            for arguments in calls
            for _ in range(-(-CASES // len(calls)))
        ]
    return found[: 3 * CASES]


def alike(mutant, right, inputs):
    """Whether both give the same for each of the inputs for which the right function gives anything."""
    for arguments in inputs:
        wanted = again._answer(right, arguments)
        if wanted and not ((got := again._answer(mutant, arguments)) and again._same(got[0], wanted[0])):
            return False
    return True


def survivors(name):
    """(id, mutant) that the check takes for right, and is not."""
    notebook = LESSONS[name].notebook
    right, asked = reference.functions(ROOT, notebook), reference.asked(ROOT, notebook)
    for id, row in importlib.import_module(f"answers.{name}").ANSWERS.items():
        answer = next((each for each in row["right"] if isinstance(each, tuple)), None)
        if answer is None or id not in asked or len(answer) != len(asked[id].names):
            continue
        for place, given in enumerate(answer):
            if not asked[id].own[place]:
                continue
            if isinstance(given, types.FunctionType):
                made = of_function(
                    id, answer, place, right.get(asked[id].names[place]), notebook, asked[id].names[place]
                )
            else:
                made = [
                    (f"{what}, place {number}", other, None)
                    for what, change in changes()
                    for number, other in enumerate(changed(given, change))
                ]
            for what, mutant, inputs in itertools.islice(made, 0, None, 4 if id in SLOW else 1):
                state, _ = judging.judge(id, *answer[:place], mutant, *answer[place + 1 :])
                if state == "right":
                    true = right.get(asked[id].names[place])
                    if inputs and (what == "constant" or what.startswith("ignores")):
                        tried = called(id, answer, place)
                        if what != "constant":
                            tried = [each[int(what.split()[-1])] for each in tried if len(each) > int(what.split()[-1])]
                        if len(set(map(repr, tried))) == 1 and again.differs(
                            mutant, true, called(id, answer, place), id, id
                        ):
                            continue  # all trials of the judge are alike in this; those of the grader are not
                    if inputs is None or not alike(mutant, true, inputs):
                        yield id, f"{asked[id].names[place]}: {what}"
        own = [place for place, mine in enumerate(asked[id].own) if mine and isinstance(answer[place], int | float)]
        for one, other in itertools.combinations(own, 2):
            swapped = list(answer)
            swapped[one], swapped[other] = answer[other], answer[one]
            if answer[one] != answer[other] and judging.judge(id, *swapped)[0] == "right":
                yield id, f"answers {one} and {other} exchanged"


def of_function(id, answer, place, right, notebook, name):
    calls = called(id, answer, place)
    if not calls or not callable(right):
        return
    inputs = [list(each) for each in calls] + cases(right, calls, id)
    for what, change in changes():
        some = max(
            (len(list(changed(again._answer(right, each)[0], change))) for each in calls if again._answer(right, each)),
            default=0,
        )
        for number in range(some):
            yield f"result {number} {what}", of_result(right, change, number), inputs
    for what, mutant in itertools.chain(of_arguments(right, calls), of_source(notebook, name)):
        yield what, mutant, inputs


@pytest.mark.parametrize("name", [name for name in LESSONS if name not in PLAYED])
def test_a_plausible_mistake_in_a_right_answer_is_not_right(name, monkeypatch):
    monkeypatch.setattr(student_code, "SECONDS", 0.5)
    found = sorted({each for each in survivors(name) if each not in EXPLAINED})
    assert not found, "\n".join(map(str, found))


def unseen(name):
    """(id, mutant) of a function that the grader's own trials take for right, and is not."""
    notebook = LESSONS[name].notebook
    right, asked = reference.functions(ROOT, notebook), reference.asked(ROOT, notebook)
    for id, row in importlib.import_module(f"answers.{name}").ANSWERS.items():
        answer = next((each for each in row["right"] if isinstance(each, tuple)), ())
        own = asked[id].own if id in asked and len(answer) == len(asked[id].names) else ()
        for place in [n for n, mine in enumerate(own) if mine and isinstance(answer[n], types.FunctionType)]:
            called_here = asked[id].names[place]
            true, calls = right.get(called_here), called(id, answer, place)
            made = of_function(id, answer, place, true, notebook, called_here)
            for what, mutant, inputs in itertools.islice(made, 0, None, 4 if id in SLOW else 1):
                if not _told(mutant, true, calls, id) and not alike(mutant, true, inputs):
                    yield id, f"{called_here}: {what}"


def _told(mutant, right, calls, id):
    try:
        return again.differs(mutant, right, calls, id, id)
    except Exception:  # the grader says so, too
        return True


@pytest.mark.parametrize("name", [name for name in LESSONS if name not in PLAYED])
def test_a_plausible_mistake_in_a_function_is_seen_by_the_graders_own_trials(name, monkeypatch):
    monkeypatch.setattr(student_code, "SECONDS", 0.5)
    found = sorted({each for each in unseen(name) if each not in EXPLAINED | UNSEEN})
    assert not found, "\n".join(map(str, found))
