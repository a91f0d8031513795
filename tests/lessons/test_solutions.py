"""What the build refuses in a solution, and what students get of its tasks."""

import tomllib

import pytest

from labs.checks import tasks
from labs.errors import LabsError
from teaching.author import sources

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


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("# Because.\n", "", "solutions/01_small.py: cell 1: T1 has no solution"),
        ('labs={"id": "T1"', 'labs={"id": "T2"', "cell 1: T2 is no written task"),
        ('title = "Explain"', "", r"small/tasks.toml: task\[1\].answer.title is missing"),
    ],
)
def test_a_solution_without_its_answer_or_task_is_refused(tmp_path, old, new, says):
    lesson, path = tmp_path / "lessons/small", tmp_path / "solutions/01_small.py"
    for file, text in ((lesson / "tasks.toml", TASKS), (path, SOURCE)):
        file.parent.mkdir(parents=True)
        file.write_text(text.replace(old, new))
    with pytest.raises(LabsError, match=says):
        sources.pair(tmp_path, path)


def test_students_get_the_points_and_not_what_a_good_answer_holds():
    for lesson in tasks.lessons():
        text = (tasks.LESSONS / lesson / "tasks.toml").read_text()
        given, full = tomllib.loads(sources.student_tasks(text)), tomllib.loads(text)
        for item, whole in zip(given["task"], full["task"], strict=True):
            assert item == whole | ({"holds": ["..."] * len(whole["holds"])} if "holds" in whole else {})
