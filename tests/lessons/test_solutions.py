"""What the build adds to a solution, and what it refuses: a written answer that is missing, an answer that is wrong."""

import tomllib

import pytest

from labs.blanks import BuildError
from labs.checks import tasks
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
SOURCE = """\
# %% [markdown] labs={"id": "T1", "kind": "answer"}
# ### T1: your answer
# ### BEGIN SOLUTION
# Because.
# ### END SOLUTION
"""


def pair(root, source=SOURCE, items=TASKS):
    """The two cells of a course with one written answer."""
    lesson = root / "lessons/small"
    lesson.mkdir(parents=True)
    (lesson / "tasks.toml").write_text(items)
    path = root / "solutions" / "01_small.py"
    path.parent.mkdir()
    path.write_text(source)
    return [notebook.cells[0] for notebook in sources.pair(root, path)]


def test_points_and_what_a_good_answer_holds_come_from_the_tasks(tmp_path):
    solution, student = pair(tmp_path)
    assert solution.source == (
        "### T1: your answer\nBecause.\n\n**A good answer contains** (1 point each):\n- a reason.\n- an example."
    )
    assert student.source == "### T1: your answer\n*Write your answer here.*"
    assert solution.metadata.labs == student.metadata.labs == {"id": "T1", "kind": "answer", "points": 2}


def test_behind_a_written_answer_stands_the_cell_that_opens_its_list(tmp_path):
    pair(tmp_path)
    for notebook in sources.pair(tmp_path, tmp_path / "solutions/01_small.py"):
        answer, behind = notebook.cells
        assert (answer.id, behind.id, behind.cell_type) == ("labs-T1", "labs-T1-reflect", "code")
        assert behind.source == 'from labs.checks import reflect\n\nreflect("T1")' and not behind.metadata


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Because.\n", ""),
        ("Because.", "..."),
        ("Because.", "*Write your answer here.*"),
        ("# ### BEGIN SOLUTION\n# Because.\n# ### END SOLUTION\n", ""),
    ],
)
def test_a_solution_without_its_answer_is_refused(tmp_path, old, new):
    assert old in SOURCE
    with pytest.raises(BuildError, match="solutions/01_small.py: cell 1: T1 has no solution"):
        pair(tmp_path, SOURCE.replace(old, new))


def test_an_answer_that_is_no_task_is_refused(tmp_path):
    with pytest.raises(BuildError, match="cell 1: T2 is no written task"):
        pair(tmp_path, SOURCE.replace("T1", "T2"))


def test_tasks_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(BuildError, match="small/tasks.toml: task T1: title is missing"):
        pair(tmp_path, items=TASKS.replace('title = "Explain"', ""))


def test_students_get_the_points_and_not_what_a_good_answer_holds():
    for lesson in tasks.lessons():
        text = (tasks.LESSONS / lesson / "tasks.toml").read_text()
        given, full = tomllib.loads(sources.student_tasks(text)), tomllib.loads(text)
        for item, whole in zip(given["task"], full["task"], strict=True):
            assert item == whole | ({"holds": ["..."] * len(whole["holds"])} if "holds" in whole else {})


def test_a_notebook_depends_on_its_own_tasks_and_judges(tmp_path):
    pair(tmp_path)
    own, other = tmp_path / "lessons/small", tmp_path / "lessons/other"
    other.mkdir()
    for folder in (own, other):
        (folder / "tasks.toml").write_text(TASKS)
        (folder / "questions.py").write_text("")
    source = tmp_path / "solutions/01_small.py"

    def used():
        return [path.relative_to(tmp_path).as_posix() for path in sources.source_files(tmp_path, source)]

    assert used() == ["lessons/small/questions.py", "lessons/small/tasks.toml", "solutions/01_small.py"]
    source.write_text(SOURCE + "\n# %%\npictures.course(checks.progress())\n")
    assert "lessons/other/tasks.toml" in used() and "lessons/other/questions.py" not in used()


def test_a_solution_whose_answer_is_wrong_is_not_built(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    for letter, refused in (("b", False), ("a", True)):
        root = tmp_path / letter
        pair(root, f'# %%\nfrom labs.checks import check\n\ncheck("concepts.6", "{letter}")\n')
        solution, _ = sources.pair(root, root / "solutions/01_small.py")
        if refused:
            with pytest.raises(
                BuildError, match="NotRight: concepts.6 is wrong: You wait for the first epoch only once"
            ):
                build.executed(root, solution)
        else:
            build.executed(root, solution)
