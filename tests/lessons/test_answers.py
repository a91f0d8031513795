"""Every lesson: right answers are accepted, plausible wrong ones get a hint, and its items fit together.

Where answers come from: known.py.
"""

import importlib
import inspect
import json
import re

import known
import numpy as np
import pytest
import tensorflow as tf
from answers import faster_steps, resnet50_scaling
from tree import ROOT

from labs import checks, devices
from labs.checks import judging, tasks
from labs.results.intervals import Estimate
from lessons import forms
from teaching.grading import judge as grader

# Answers to notebook 03 live on 4 devices, whose number is fixed as soon as anything is computed.
CPU = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(CPU, [tf.config.LogicalDeviceConfiguration()] * 4)

NAMES = list(tasks.lessons())
each_lesson = pytest.mark.parametrize("name", NAMES)
TRIED = ("faster_steps", "going_on_and_two_nodes")
MORE = pytest.mark.more("answers of notebooks 20 to 34 that are scripts: each is tried out")


def text_of(name):
    return (ROOT / "solutions" / f"{tasks.lessons()[name].notebook}.py").read_text()


@each_lesson
def test_readme_and_the_top_of_the_notebook_say_what_a_lesson_takes(name):
    lesson, source = tasks.lessons()[name], text_of(name)
    handed_in = ", ".join(item.id for item in lesson.task if tasks.handed_in(item.id))
    letters = " ".join(path[0].upper() for path in lesson.paths)
    end = " | ".join([handed_in, letters, str(lesson.minutes)]).replace("|  |", "| |")
    row = rf"^\| `{lesson.notebook}`{r' .optional.' * lesson.optional} \| .* \| {re.escape(end.strip())} \|$"
    assert re.search(row, (ROOT / "README.md").read_text(), re.MULTILINE), f"no row that ends with: {end} |"
    top = source.partition("\n# %%\n")[0]
    found = re.search(r"^# # (.+)$", top, re.MULTILINE)[1], int(re.search(r"\*\*Time: (\d+) minutes", top)[1])
    assert (lesson.title, lesson.minutes) == found


def test_readme_and_teaching_say_which_notebooks_a_path_has_and_how_long_it_takes():
    readme, before = (ROOT / "README.md").read_text(), []
    teaching = (ROOT / "docs/instructors/teaching.md").read_text()
    for path, name in (("afternoon", "an afternoon"), ("practical", "the practical")):
        lessons = tasks.on_path(path)
        hours = round(sum(lesson.minutes for lesson in lessons) / 30) / 2
        assert f"**{name}** ({path[0].upper()}, {hours:g} hours)" in readme
        numbers = [lesson.notebook.partition("_")[0] for lesson in lessons]
        new = ", ".join(number for number in numbers if number not in before)
        assert f"| {name} | {'these, and ' if before else ''}{new} |" in teaching
        before = numbers


@each_lesson
def test_a_notebook_says_on_which_paths_it_lies_and_what_comes_next(name):
    lesson, text, lessons = tasks.lessons()[name], text_of(name), list(tasks.lessons().values())
    (told,) = re.findall(r"(?m)^# (\*\*Paths:\*\* .*)$", text)
    for path, called in (("afternoon", "an afternoon"), ("practical", "the practical")):
        on = tasks.on_path(path)
        later = on[on.index(lesson) + 1 :] if lesson in on else []
        assert re.findall(rf"\*{called}\* \(next: `(.*?)`\)", told) == [each.notebook for each in later[:1]]
    for later in lessons[lessons.index(lesson) + 1 :][:1]:
        told = text.rpartition("Next: ")[2].partition("# %%")[0]
        assert later.optional or f"`{later.notebook}`" in told, f"ends without: Next: `{later.notebook}`"


@each_lesson
def test_items_are_those_of_the_notebook_in_its_order_with_their_judges_and_proofs(name):
    lesson, source = tasks.lessons()[name], text_of(name)
    marks = [json.loads(mark) for mark in re.findall(r"^# %%.* labs=(\{.*\})$", source, re.MULTILINE)]
    kinds = {item.id: item.kind for item in lesson.task}
    assert [mark["id"] for mark in marks] == [*kinds], "cells marked labs={...}, items"
    numbered = [id for id in kinds if "." in id]
    (word,) = {id.partition(".")[0] for id in numbered}
    assert numbered == [f"{word}.{number}" for number in range(1, len(numbered) + 1)], "ids rise within a notebook"
    written = {mark["id"] for mark in marks if mark.get("kind") == "answer"}
    assert written == {id for id, kind in kinds.items() if kind == "answer"}
    for id, kind in kinds.items():
        call = {"prediction": f'predict("{id}"', "answer": f"### {id}: your answer"}.get(kind, f'check("{id}"')
        assert source.count(call) == 1, call
        if kind == "prediction":
            told = [match.start() for match in re.finditer(rf'outcome\(\s*"{id}"', source)]
            assert told and min(told) > source.index(call), f"{id} has no outcome after its prediction"
    importlib.import_module(f"lessons.{name}.questions")
    assert judging.JUDGES.keys() & kinds.keys() == {id for id, kind in kinds.items() if kind == "check"}
    assert {*known.answers(name)} == {item.id for item in lesson.task if isinstance(item, tasks.Check)}
    for item in [item for item in lesson.task if isinstance(item, tasks.Choice)]:
        file, _, test = item.proof.partition("::")
        if test:
            assert f"\ndef {test}(" in (ROOT / file).read_text(), f"{item.id}: {item.proof} is no test"
        elif not re.match(r"none: \w+ \w+ \w+", item.proof):
            assert item.proof in source.splitlines() and re.search(r"\bassert |check\(", item.proof), item.id


@pytest.mark.parametrize("name", [pytest.param(name, marks=MORE if name in TRIED else ()) for name in NAMES])
def test_right_answers_are_accepted_and_wrong_ones_get_a_hint_that_does_not_tell(name, tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: [])

    def judge(id, answer):
        return checks.judge(id, *(answer(tmp_path) if callable(answer) else answer))

    for id, row in known.answers(name).items():
        assert row.right and len(row.wrong) >= 2, f"{id}: a right answer and two wrong ones"
        assert checks.judge(id, ...)[0] == "open", f"{id}: a blank"
        for number, answer in enumerate(row.right):
            judged = judge(id, answer)
            right = judged == ("right", checks.task(id).why, None) or not_tried(judged)
            assert right, f"{id}, right answer {number}: {judged}"
        for number, (answer, wanted) in enumerate(row.wrong):
            judged = judge(id, answer)
            if not_tried(judged):
                continue
            state, hint, _ = judged
            said = f"{id}, wrong answer {number}: {state}: {hint}"
            assert state == "wrong", f"{said} (no case tells this mistake from what is right: {wanted!r})"
            if wanted is not None:
                wanted = wanted if isinstance(wanted, str) else wanted(*answer)
                assert hint.endswith(wanted), f"another mistake hides this one: {wanted!r}: {said}"
            assert judging.UNFIT not in hint, f"breaks the check: {said}"
            given = " ".join(map(repr, answer)) if isinstance(answer, tuple) else ""
            theirs = r"(As rank \d of \d, )?\b[Ll]ine \d+: `.*`|gives .* in each case tried"  # a line, a result
            own = re.sub(theirs, "", hint)
            told = [match[0] for secret in row.secret for match in re.finditer(secret, own) if match[0] not in given]
            assert not told, f"it tells {told}: {said}"


def not_tried(judged):
    """Was it only read, on a machine without a sandbox, or not tried out, on one without JAX?"""
    return judged.reason in (judging.OnlyRead, judging.NotTried)


def test_a_number_may_be_rounded_to_two_or_three_digits_or_a_text():
    form = forms.Value(2.71828, [], "Which base?", 1e-3)
    right = {answer for answer in ("2.6", "2.7", "2.71", "2.72", "2.718") if not form.hint(judging.as_number(answer))}
    assert right == {"2.7", "2.72", "2.718"}


def test_a_result_may_be_any_sequence_of_numbers_and_arguments_stay_as_they_are():
    form = forms.Formula(lambda values: [values[-1], 2.5], cases=[([1, 2],), ([3],)])
    for kind in (tuple, np.array, lambda result: list(map(np.float64, result))):
        assert form.hint(lambda values, kind=kind: kind([values[-1], 2.5])) is None
    for last in 2.5, 3.5:  # right, and not
        assert "Your function changes its argument 1" in form.hint(lambda values, last=last: [values.pop(), last])


def test_a_function_is_called_constant_where_results_are_equal_and_should_not_be():
    form = forms.Formula(sum, cases=[([1, 2],), ([3, 4],)])
    assert "gives 5 in each case tried" in form.hint(lambda values: 5)
    assert "same amount" in form.hint(lambda values: 1e6 + sum(values))
    assert "each case" not in forms.Formula(sum, cases=[([1, 2],)]).hint(lambda values: 5)


@each_lesson
def test_nonsense_never_breaks_a_check_nor_passes_it(name):
    for id, row in known.answers(name).items():
        form = hasattr(judging.judge_of(id), "parts")
        parameters = row.right[0] if form else inspect.signature(judging.judge_of(id)).parameters.values()
        count = sum(form or parameter.default is parameter.empty for parameter in parameters)
        for nonsense in ("x", -3.7, [], {}, object()):
            state, text, _ = checks.judge(id, *[nonsense] * count)
            assert state == "wrong" and text, f"{id}: {nonsense!r}"


def test_a_speedup_above_the_workers_is_never_right_but_to_be_measured_again(monkeypatch):
    monkeypatch.setenv("LABS_STRICT", "1")  # noise is nobody's wrong answer
    runs = resnet50_scaling.changed(resnet50_scaling.RUNS, 1, speedup=Estimate(2.2, (1.8, 2.7)))
    ladder = *faster_steps.steps(faster_steps.FED, faster_steps.LARGE), {"change 2": (2.5, (1.6, 3.9))}
    for id, *answer in (("resnet50.8", "faster", runs), ("resnet50.8", "can't tell", runs), ("faster.7", *ladder)):
        judged = checks.judge(id, *answer)
        assert judged.state == "open" and judged.text.startswith("too noisy: measure again. ")
        assert not checks.check(id, *answer) and not checks.answered(id)
        assert grader._of_judge(judged, "inside").how == "person"  # not as if nothing had been done
