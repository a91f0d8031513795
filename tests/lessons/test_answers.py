"""Every lesson: right answers are accepted, plausible wrong ones get a hint of their own, and its items fit together.

The answers of a lesson stand in answers/NAME.py: ANSWERS, a row for each check that a function judges.
right and wrong hold tuples of what the check is given, or functions of a folder that give such a tuple, or texts for
the module's own `judge`. `secret` is what a hint must not say; `same` names pairs of wrong answers that may share one,
and `raises` those that raise, or are no value at all.
The choices need no row: their right and wrong answers are the tasks.toml itself.
"""

import ast
import functools
import importlib
import inspect
import json
import re
import subprocess
import sys
import textwrap
from itertools import combinations
from pathlib import Path

import pytest

from labs import blanks, checks
from labs.checks import judging, scripts, tasks
from labs.results.intervals import Estimate
from lessons import connected
from teaching.author import regions
from teaching.grading import judge as grader

ROOT = Path(__file__).parents[2]
NAMES = list(tasks.lessons())
each_lesson = pytest.mark.parametrize("name", NAMES)
MISSPELT = re.compile(r"\b1 [a-z]+s (are|have|were)\b|\ba [AEIO][a-z]+[A-Z]|\w\(e?s\)|\b[01] (plots|letters|samples)\b")


def rows(name):
    """{id: row} of all that a lesson checks."""
    choices = [item for item in tasks.lessons()[name].task if isinstance(item, tasks.Choice)]
    of_choices = {
        item.id: {"right": [(item.right,)], "wrong": [(wrong,) for wrong in item.wrong], "secret": None}
        for item in choices
    }
    return of_choices | importlib.import_module(f"answers.{name}").ANSWERS


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """judge(name of the lesson, id, answer) -> (state, text), as on a machine without GPUs."""
    from labs import devices

    monkeypatch.setattr(devices, "gpus", lambda: [])

    def judge(name, id, answer):
        if isinstance(answer, str):
            return importlib.import_module(f"answers.{name}").judge(id, answer)
        return checks.judge(id, *(answer(tmp_path) if callable(answer) else answer))

    return judge


def test_every_lesson_has_answers():
    there = {path.stem for path in Path(__file__).parent.glob("answers/*.py")}
    assert NAMES and set(NAMES) == there, f"tests/lessons/answers/ lacks or has too many: {sorted(set(NAMES) ^ there)}"


@each_lesson
def test_every_lesson_is_in_the_table_of_the_readme(name):
    lesson = tasks.lessons()[name]
    handed_in = ", ".join(item.id for item in lesson.task if item.handed_in)
    letters = " ".join(path[0].upper() for path in lesson.paths)
    source = (ROOT / "solutions" / f"{lesson.notebook}.py").read_text()
    computing = re.search(r"including (?:less than )?(\d+) minutes? of computing", source)[1]
    end = " | ".join([handed_in, letters, f"{lesson.minutes} min", f"{computing} min"]).replace("|  |", "| |")
    row = rf"^\| `{lesson.notebook}`{r' .optional.' * lesson.optional} \| .* \| {re.escape(end.strip())} \|$"
    assert re.search(row, (ROOT / "README.md").read_text(), re.MULTILINE), f"no row that ends with: {end} |"


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
    plan = re.findall(r'\| (\d\d\w?), .* section "(.+?)" \| check (\w+\.\d+) is right', teaching)
    assert len(plan) == 2
    for number, heading, id in plan:
        (source,) = (ROOT / "solutions").glob(f"{number}_*.py")
        assert f"\n# ## {heading}\n" in source.read_text() and f'check("{id}"' in source.read_text()


@each_lesson
def test_title_and_minutes_are_those_at_the_top_of_the_notebook(name):
    lesson = tasks.lessons()[name]
    top = (ROOT / "solutions" / f"{lesson.notebook}.py").read_text().partition("\n# %%\n")[0]
    found = re.search(r"^# # (.+)$", top, re.MULTILINE)[1], int(re.search(r"\*\*Time: (\d+) minutes", top)[1])
    assert (lesson.title, lesson.minutes) == found


@each_lesson
def test_every_check_has_a_judge_and_two_wrong_answers_or_more(name):
    importlib.import_module(f"lessons.{name}.questions")
    judged = [item.id for item in tasks.lessons()[name].task if item.kind == "check"]
    assert [id for id in judged if id not in judging.JUDGES or id not in rows(name)] == []
    checked = [item.id for item in tasks.lessons()[name].task if isinstance(item, tasks.Check)]
    assert [id for id in rows(name) if id not in checked] == []
    assert [id for id, row in rows(name).items() if not row["right"] or len(row["wrong"]) < 2] == [], (
        "right and two wrong"
    )


@each_lesson
def test_every_choice_names_what_shows_that_its_answer_is_right(name):
    lesson = tasks.lessons()[name]
    source = (ROOT / "solutions" / f"{lesson.notebook}.py").read_text().splitlines()
    for item in lesson.task:
        if not isinstance(item, tasks.Choice) or re.match(r"none: \w+ \w+ \w+", item.proof):
            continue
        file, _, test = item.proof.partition("::")
        if test:
            assert f"\ndef {test}(" in (ROOT / file).read_text(), f"{item.id}: {item.proof} is no test"
        else:
            assert item.proof in source and re.search(r"\bassert |check\(", item.proof), f"{item.id}: {item.proof!r}"


def test_every_judge_has_its_check():
    for name in NAMES:
        importlib.import_module(f"lessons.{name}.questions")
    assert {tasks.task(id).kind for id in judging.JUDGES} == {"check"}


def returns_value(function):
    """Whether a `return` of this function itself, not of one inside of it, gives a value."""
    waiting = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0].body[:]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False


def shared(module):
    """{name: whether it returns a value} of the functions whose cases this module's judges yield, and nothing more."""
    found = {}
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        match node:
            case ast.Expr(value=ast.YieldFrom(value=ast.Call(func=called))):
                *rooms, name = ast.unparse(called).split(".")
                of = functools.reduce(getattr, rooms, module) if all(map(str.isidentifier, rooms)) else None
                if inspect.isfunction(function := getattr(of, name, None)):
                    found[function.__qualname__] = returns_value(function)
    return found


def test_no_hint_is_returned_by_a_judge_or_by_a_function_that_judges_share(tmp_path, monkeypatch):
    modules = [importlib.import_module(f"lessons.{name}.questions") for name in NAMES]
    found = [shared(module) for module in [*modules, scripts, connected]]
    assert sum(map(len, found)) > 40
    assert [id for id, judge in judging.JUDGES.items() if returns_value(judge)] == []
    assert [name for of in found for name, returns in of.items() if returns] == []
    (tmp_path / "careless.py").write_text(
        "def cases(answer):\n    yield answer < 42, 'Too small.'\n    return 'Too large.'\n\n"
        "def judge(answer):\n    yield from cases(answer)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    careless = importlib.import_module("careless")
    assert shared(careless) == {"cases": True} and [*map(returns_value, (careless.cases, careless.judge))] == [
        True,
        False,
    ]


def not_tried(state, text):
    """Was it only read, on a machine without a sandbox, or not tried out, on one without JAX?"""
    return state != "wrong" and text.startswith((judging.ONLY_READ, judging.NOT_TRIED))


@each_lesson
def test_right_answers_are_accepted_and_wrong_ones_get_a_hint_of_their_own(name, judge):
    source = ast.parse((ROOT / "solutions" / f"{tasks.lessons()[name].notebook}.py").read_text())
    names = [each for node in ast.walk(source) if isinstance(node, ast.Import | ast.ImportFrom) for each in node.names]
    imported = {each.asname or each.name for each in names}
    for id, row in rows(name).items():
        assert checks.judge(id, ...)[0] == "open", f"{id}: a blank"
        for number, answer in enumerate(row["right"]):
            judged = judge(name, id, answer)
            right = ("right", checks.task(id).why)
            assert tuple(judged) == right or not_tried(*judged), f"{id}, right answer {number}"
        hints = []
        for number, answer in enumerate(row["wrong"]):
            said = f"{id}, wrong answer {number}: "
            state, hint = judge(name, id, answer)
            if not_tried(state, hint):
                continue
            assert state == "wrong", said + "is taken for right"
            ends = hint.strip().rstrip(")").endswith((".", "?")) and "\n" not in hint
            assert ends, said + f"a hint is one line that ends with a full stop or a question mark: {hint!r}"
            assert len(hint) >= 25, said + f"a hint has at least 25 characters: {hint!r}"
            breaks = judging.UNFIT in hint or re.match(r"Line \d+: `.*`: \w+(Error|Iteration)\b", hint)
            assert not breaks or number in row.get("raises", ()), said + f"breaks the check: {hint}"
            given = " ".join(map(repr, answer)) if isinstance(answer, tuple) else ""
            own = re.sub(r"(As rank \d of \d, )?\b[Ll]ine \d+: `.*`", "", hint)  # without the student's own line
            told = [word for word in re.findall(row["secret"], own) if word not in given] if row["secret"] else []
            assert not told, said + f"the hint {hint!r} tells {told}"
            assert not MISSPELT.search(own), said + f"a plural of one, a wrong article or `(s)`: {hint}"
            modules = imported.intersection(re.findall(r"`(\w+)\[", hint))
            assert not modules, said + f"the notebook imports {modules}, and no element of it is meant: {hint}"
            hints.append(hint)
        alike = {frozenset(pair) for pair in row.get("same", ())}
        for one, other in combinations(range(len(hints)), 2):
            if {one, other} not in alike:
                assert hints[one] != hints[other], f"{id}: wrong answers {one} and {other} get the same hint"
        assert len(set(hints)) >= 2 or len(hints) < len(row["wrong"]), f"{id} has one hint for all"


@each_lesson
def test_nonsense_never_breaks_a_check_nor_passes_it(name):
    for id in rows(name):
        parameters = inspect.signature(judging.judge_of(id)).parameters.values()
        count = sum(parameter.default is parameter.empty for parameter in parameters)
        for nonsense in ("", "x", -1, 3.7, [], {}, object()):
            state, text = checks.judge(id, *[nonsense] * count)
            assert state == "wrong" and text, f"{id}: {nonsense!r}"


@each_lesson
def test_items_are_those_of_the_notebook_in_its_order(name):
    lesson = tasks.lessons()[name]
    source = (ROOT / "solutions" / f"{lesson.notebook}.py").read_text()
    marks = [json.loads(mark) for mark in re.findall(r"^# %%.* labs=(\{.*\})$", source, re.MULTILINE)]
    assert [mark["id"] for mark in marks] == [item.id for item in lesson.task], "cells marked labs={...}, items"
    kinds = {item.id: item.kind for item in lesson.task}
    numbered = [id for id in kinds if "." in id]
    (word,) = {id.partition(".")[0] for id in numbered}
    assert numbered == [f"{word}.{number}" for number in range(1, len(numbered) + 1)], "ids rise within a notebook"
    assert {mark["id"] for mark in marks if mark.get("kind") == "answer"} == {
        id for id, kind in kinds.items() if kind == "answer"
    }
    for id, kind in kinds.items():
        assert re.fullmatch(r"[A-Z]\d+|[a-z][a-z0-9]*\.\d+", id)
        call = {"prediction": f'predict("{id}"', "answer": f"### {id}: your answer"}.get(kind, f'check("{id}"')
        assert source.count(call) == 1, call
        if kind == "prediction":
            told = [match.start() for match in re.finditer(rf'outcome\(\s*"{id}"', source)]
            assert told and min(told) > source.index(call), f"{id} has no outcome after its prediction"


@pytest.mark.parametrize("sentence", ["faster", "slower", "can't tell"])
def test_a_speedup_above_the_workers_is_never_right_but_to_be_measured_again(sentence, tmp_path, monkeypatch):
    resnet50_scaling = importlib.import_module("answers.resnet50_scaling")
    runs = resnet50_scaling.changed(resnet50_scaling.RUNS, 1, speedup=Estimate(2.2, (1.8, 2.7)))
    assert runs[1].workers == 2
    state, text = checks.judge("resnet50.6", sentence, runs)
    assert state == "open" and text.startswith("too noisy: measure again. 2 workers would be 2.2 times as fast")
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    monkeypatch.setenv("LABS_STRICT", "1")  # noise is nobody's wrong answer
    assert not checks.check("resnet50.6", sentence, runs) and not checks.answered("resnet50.6")
    assert grader._of_judge(state, "inside", text).how == "person"  # not as if nothing had been done
    large = [
        run.model_copy(update={"configuration": run.configuration.model_copy(update={"model": "ResNet152V2"})})
        for run in runs
    ]
    assert checks.judge("resnet152.9", [*runs, *large])[1].startswith(
        "too noisy: measure again. 2 workers would be 2.2 times"
    )
    runs[1].speedup = Estimate(2.0, (1.8, 2.7))
    with pytest.raises(judging.NotRight):
        checks.check("resnet50.6", "slower", runs)


def test_a_question_about_own_runs_is_open_where_there_are_only_recorded_ones():
    resnet50_scaling = importlib.import_module("answers.resnet50_scaling")
    runs = [run.model_copy(update={"kind": "recorded"}) for run in resnet50_scaling.RUNS]
    assert checks.judge("resnet50.6", "faster", runs) == (
        "open",
        "not done yet. Finish resnet50.3, then run the training: this question is about your own runs.",
    )


def test_twice_as_fast_with_half_of_the_interval_below_is_too_noisy():
    faster_steps = importlib.import_module("answers.faster_steps")
    state, text = checks.judge(
        "faster.7", *faster_steps.steps(faster_steps.FED, faster_steps.LARGE), {"change 2": (2.5, (1.6, 3.9))}
    )
    assert state == "open" and text.startswith("too noisy: measure again. 'change 2' is 2.5 times as fast")


def test_script_with_blanks_is_open_and_names_the_line(tmp_path):
    path = tmp_path / "ResNet50.py"
    path.write_text(regions.blank((ROOT / "solutions/scripts/ResNet50.py").read_text()))
    state, text = checks.judge("resnet50.3", path)
    assert state == "open" and f"Line {blanks.blanks(path)[0][0]} of ResNet50.py is still blank" in text


@pytest.mark.parametrize(("id", "name"), [("horovod.18", "begin_equal"), ("horovod.19", "distributed")])
def test_blank_function_is_open_and_names_its_own_line(tmp_path, id, name):
    path = tmp_path / "own_optimizer.py"
    path.write_text(regions.blank((ROOT / "solutions/scripts/own_optimizer.py").read_text()))
    state, text = checks.judge(id, path)
    lines = path.read_text().split("\n")
    begin = next(number for number, line in enumerate(lines, 1) if line.startswith(f"def {name}"))
    own = min(number for number, _ in blanks.blanks(path) if number > begin)
    assert state == "open" and f"Line {own} of own_optimizer.py is still blank" in text


def test_function_that_gives_a_name_a_blank_is_open():
    def fit(batches, steps):
        """S_min and B_crit."""
        slope = ...
        return slope, steps[-1]

    state, text = checks.judge("batches.5", fit)
    assert state == "open" and text.startswith("not done yet.")


def test_exception_in_a_students_function_is_shown_with_its_line():
    def usual_step(epochs):
        return [sum(epochs[1])][1]

    state, text = checks.judge("resnet50.11", usual_step)
    line = inspect.getsourcelines(usual_step)[1] + 1
    assert (state, text) == (
        "wrong",
        f"Line {line}: `return [sum(epochs[1])][1]`: IndexError: list index out of range.",
    )


def test_a_check_imports_its_own_lesson_and_the_progress_none(tmp_path):
    program = """
import sys
from labs import checks
checks.progress()
before = [name for name in sys.modules if name.startswith("lessons.")]
assert checks.judge("resnet50.5", lambda one, p: [a / b for a, b in zip(one, p)])[0] == "right"
folders = [f"lessons.{name}" for name in checks.tasks.lessons()]
print(before, sorted(name for name in sys.modules if name.startswith(tuple(folders))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "[] ['lessons.resnet50_scaling', 'lessons.resnet50_scaling.questions']", done.stderr
