"""What the build adds to a solution, and what it refuses: a written answer that is missing, an answer that is wrong."""

import tomllib

import pytest

from labs.blanks import BuildError
from labs.checks import tasks
from labs.errors import LabsError
from teaching.author import build, sources

TASKS = """
notebook = "01_small"
title = "Small"
minutes = 1

[[task]]
id = "T1"
kind = "answer"
title = "Explain"
holds = ["a reason.", "an example."]
"""
ANSWER = "# ### BEGIN SOLUTION\n# Because.\n# ### END SOLUTION\n"
SOURCE = f'# %% [markdown] labs={{"id": "T1", "kind": "answer"}}\n# ### T1: your answer\n{ANSWER}'


def pair(root, source=SOURCE, items=TASKS):
    """The notebooks of a course with one written answer: the solution and the student's."""
    lesson, path = root / "lessons/small", root / "solutions/01_small.py"
    for file, text in ((lesson / "tasks.toml", items), (path, source)):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return sources.pair(root, path)


def test_points_a_list_and_what_a_good_answer_holds_come_from_the_tasks(tmp_path):
    holds = "Because.\n\n**A good answer contains** (1 point each):\n- a reason.\n- an example."
    for notebook, text in zip(pair(tmp_path), (holds, "*Write your answer here.*"), strict=True):
        answer, behind = notebook.cells
        assert answer.source == f"### T1: your answer\n{text}"
        assert answer.metadata.labs == {"id": "T1", "kind": "answer", "points": 2}
        assert (answer.id, behind.id, behind.cell_type) == ("labs-T1", "labs-T1-reflect", "code")
        assert behind.source == 'from labs.checks import reflect\n\nreflect("T1")' and not behind.metadata


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("# Because.\n", "", "solutions/01_small.py: cell 1: T1 has no solution"),
        ("T1", "T2", "cell 1: T2 is no written task"),
        ('title = "Explain"', "", r"small/tasks.toml: task\[1\].answer.title is missing"),
    ],
)
def test_a_solution_without_its_answer_or_task_is_refused(tmp_path, old, new, says):
    with pytest.raises(LabsError, match=says):
        pair(tmp_path, SOURCE.replace(old, new), TASKS.replace(old, new) if old not in SOURCE else TASKS)


def test_students_get_the_points_and_not_what_a_good_answer_holds():
    for lesson in tasks.lessons():
        text = (tasks.LESSONS / lesson / "tasks.toml").read_text()
        given, full = tomllib.loads(sources.student_tasks(text)), tomllib.loads(text)
        for item, whole in zip(given["task"], full["task"], strict=True):
            assert item == whole | ({"holds": ["..."] * len(whole["holds"])} if "holds" in whole else {})


def test_a_solution_whose_answer_is_wrong_is_not_built(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    cell = '# %%\nfrom labs.checks import check\n\ncheck("concepts.6", "{}")\n'
    solution, _ = pair(tmp_path / "b", cell.format("b"))
    build.executed(tmp_path / "b", solution)
    solution, _ = pair(tmp_path / "a", cell.format("a"))
    with pytest.raises(BuildError, match="NotRight: concepts.6 is wrong: You wait for the first epoch only once"):
        build.executed(tmp_path / "a", solution)
