"""Answers across the wire, and functions with other inputs: what is right stays right, what was looked up is found."""

import copy
import importlib
import itertools
import json
import math
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs.checks import judging, tasks
from teaching.grading import again, judge, reference, wire

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lessons"))
LESSONS = tasks.lessons()

scalars = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text()
values = st.recursive(
    scalars,
    lambda of: st.lists(of) | st.lists(of).map(tuple) | st.dictionaries(st.text() | st.integers(-9, 9), of),
    max_leaves=20,
)


def crossed(value, trusted=False):
    return wire.unpacked(json.loads(wire.line(wire.packed(value, None))), None, trusted)


@given(values)
@settings(deadline=None)
def test_plain_values_cross_as_they_are(value):
    assert repr(crossed(value)) == repr(value)


@pytest.mark.parametrize("value", [np.arange(6.0).reshape(2, 3), np.float32(1.5), np.zeros((0, 3), int), {3, 4}])
def test_arrays_numbers_and_sets_cross_as_they_are(value):
    back = crossed(value)
    assert np.array_equal(back, value) or set(back) == value
    assert getattr(value, "shape", ()) == getattr(back, "shape", ()) or np.ndim(value) == 0


@given(st.recursive(scalars, lambda of: st.lists(of) | st.dictionaries(st.text(), of), max_leaves=20))
@settings(deadline=None)
def test_whatever_is_sent_becomes_data(sent):
    data = wire.read(wire.line({"x": sent}))
    wire.unpacked(data.get("x"), lambda number: ("function", number))


HOSTILE = [
    {"array": [1, 2], "dtype": "object", "shape": [2]},
    {"array": [1], "dtype": "float64", "shape": [10**12]},
    {"named": ["os", "system", ["true"]]},
    {"named": ["lessons.averages.sgd", "Work", [0, 0, 0, 0]]},
    {"function": "x"},
    {"figure": [{"labels": []}]},
    {"dict": [[{"list": []}, 1]]},
    {"set": [{"list": []}]},
    {"int": "9" * 10_000},
    [1, 2],
]


@pytest.mark.parametrize("sent", HOSTILE, ids=str)
def test_what_describes_no_value_is_unfit(sent):
    assert isinstance(wire.unpacked(sent, lambda number: None), wire.Unfit | int)


def compared(name):
    """(id, kind of answer, the student's function, the right one, calls of the judge) of a lesson's known answers."""
    notebook = LESSONS[name].notebook
    right, asked = reference.functions(ROOT, notebook), reference.asked(ROOT, notebook)
    for id, row in importlib.import_module(f"answers.{name}").ANSWERS.items():
        for kind in ("right", "wrong"):
            for answer in row[kind] if id in asked else ():
                if not isinstance(answer, tuple) or len(answer) != len(asked[id].names):
                    continue
                for place, function in enumerate(answer):
                    if isinstance(function, types.FunctionType) and asked[id].own[place]:
                        calls = called(id, answer, place)
                        if calls is not None:
                            yield id, kind, function, right[asked[id].names[place]], calls


def called(id, answer, place):
    """The judge's calls of one function of an answer; None where an argument or result cannot cross the wire."""
    calls, fits, function = [], [], answer[place]

    def spied(*arguments):
        fits.append(not judge._holds_unfit([wire.packed(each, None) for each in arguments]))
        calls.append(copy.deepcopy(arguments) if fits[-1] else ())
        value = function(*arguments)
        fits.append(not judge._holds_unfit(wire.packed(value, None)))
        return value

    judging.judge(id, *(spied if n == place else each for n, each in enumerate(answer)))
    return calls if all(fits) else None


def isolated(function):
    """The function as it is called through the wire: with copies, and what it gives crosses."""

    def call(*arguments):
        try:
            return crossed(function(*(crossed(each, trusted=True) for each in arguments)))
        except Exception as problem:
            raise judge.Raised(str(problem)) from None

    return call


def seen(variants, function):
    """Whether a function gives anything else than what is right for one of the variants."""
    return any(not again._same(function(*arguments), wanted) for arguments, wanted, _ in variants)


@pytest.mark.parametrize("name", LESSONS)
def test_other_inputs_have_other_right_answers_and_a_right_function_is_right_for_them(name):
    """Of every check that gets a function: who knows the judge's own inputs, or their right answers alone or in their
    order, is found by every draw; and each known right answer is right."""
    of_id = {}
    for id, kind, function, right, calls in compared(name):
        if kind == "right" and calls and not tasks.task(id).several:
            variants = of_id.setdefault((id, right), again.drawn(right, calls, id, id))
            assert len(variants) >= again.TRIES and sum(other for *_, other in variants) >= len(variants) / 2, id
            assert not seen(variants, isolated(function)), (id, calls)
            known = {repr(each): function(*copy.deepcopy(each)) for each in calls}
            first, *_ = known.values()
            assert seen(variants, lambda *arguments, known=known: known.get(repr(arguments), math.pi)), id
            assert seen(variants, lambda *arguments, first=first: first), id
            in_turn = itertools.cycle(known.values())
            assert seen(variants, lambda *arguments, in_turn=in_turn: next(in_turn)), id


@pytest.mark.parametrize(
    ("name", "id", "function"),
    [
        ("resnet50_scaling", "resnet50.5", lambda one, p: [1.6, 2.0, 1.6, 0.75]),
        ("two_networks", "networks.3", None),
        ("averages", "averages.12", None),
    ],
)
def test_what_is_right_for_the_judges_inputs_alone_is_found_by_each_draw(name, id, function):
    (_, _, other, right, calls), *_ = (each for each in compared(name) if each[:2] == (id, "right"))
    answers = [other(*copy.deepcopy(each)) for each in calls]
    for seed in range(5):
        in_turn = itertools.cycle(answers)
        assert again.differs(function or (lambda *arguments: next(in_turn)), right, calls, f"{seed}{id}", id)  # noqa: B023
        assert not again.differs(isolated(other), right, calls, f"{seed}{id}", id)


def test_figures_cross_and_are_judged_alike():
    answers = importlib.import_module("answers.resnet50_scaling").ANSWERS["T6"]
    hints = set()
    for kind in ("right", "wrong"):
        for figure, rows in answers[kind]:
            here = judging.judge("T6", figure, rows)
            assert judging.judge("T6", crossed(figure), rows) == here, here
            hints.add(here)
    assert len(hints) > 4
