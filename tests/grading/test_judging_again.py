"""Answers across the wire, and functions with other inputs: what is right stays right, what was looked up is found."""

import copy
import itertools
import json
import math
import sys
import types
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs.checks import judging, tasks
from teaching.grading import again, judge, reference, wire

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lessons"))
import known  # noqa: E402

LESSONS = tasks.lessons()

scalars = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text()
tables = partial(st.dictionaries, st.text() | st.integers(-9, 9))
values = st.recursive(scalars, lambda of: st.lists(of) | st.lists(of).map(tuple) | tables(of), max_leaves=20)


def crossed(value, trusted=False):
    return wire.unpacked(json.loads(wire.line(wire.packed(value, None))), None, trusted)


@given(values)
@settings(deadline=None)
def test_plain_values_cross_as_they_are(value):
    assert repr(crossed(value)) == repr(value)
    for array in (np.arange(6.0).reshape(2, 3), np.zeros((0, 3), int), frozenset({3, 4})):
        assert repr(crossed(array)) == repr(array)


HOSTILE = [
    {"array": [1], "dtype": "float64", "shape": [10**12]},
    {"named": ["os", "system", ["true"]]},
    {"dict": [[{"list": []}, 1]]},
]


def test_what_describes_no_value_is_unfit():
    for sent in HOSTILE:
        assert isinstance(wire.unpacked(sent, lambda number: None), wire.Unfit), sent


def compared(name):
    """(id, a right answer's function, the solution's, calls of the judge) of a lesson's known answers."""
    notebook = LESSONS[name].notebook
    right, asked = reference.functions(ROOT, notebook), reference.asked(ROOT, notebook)
    rows = known.answers(name)
    for id, answer in ((each, answer) for each in rows.keys() & asked.keys() for answer in rows[each].right):
        names = asked[id].names if isinstance(answer, tuple) and len(answer) == len(asked[id].names) else ()
        for place, of in enumerate(names):
            if isinstance(answer[place], types.FunctionType) and asked[id].own[place]:
                if calls := called(id, answer, place):
                    yield id, answer[place], right[of], calls


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
    for id, function, right, calls in compared(name):
        if (id, right) not in of_id and not tasks.task(id).several:
            of_id[id, right] = variants = again.drawn(right, calls, id, id)
            assert len(variants) >= again.TRIES and sum(other for *_, other in variants) >= len(variants) / 2, id
            known = {repr(each): function(*copy.deepcopy(each)) for each in calls}
            first, in_turn = next(iter(known.values())), itertools.cycle(known.values())
            assert seen(variants, lambda *arguments, known=known: known.get(repr(arguments), math.pi)), id
            assert seen(variants, lambda *arguments, first=first: first), id
            assert seen(variants, lambda *arguments, in_turn=in_turn: next(in_turn)), id
        if variants := of_id.get((id, right)):
            assert not seen(variants, isolated(function)), (id, calls)
