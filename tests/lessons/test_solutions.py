"""What the build refuses in a solution, and what students get of its tasks."""

import re
import tomllib

import pytest
from tree import ROOT

from labs.checks import tasks
from labs.errors import LabsError
from teaching.author import sources


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (r"(?s)(T1: your answer\n).*?(# ### END)", r"\1# ### BEGIN SOLUTION\n\2", r"cell \d+: T1 has no solution"),
        ('labs={"id": "T1"', 'labs={"id": "T99"', r"cell \d+: T99 is no written task"),
    ],
)
def test_a_solution_without_its_answer_or_task_is_refused(tmp_path, old, new, says):
    tasks_of, path = tmp_path / "lessons/basic_concepts/tasks.toml", tmp_path / "solutions/01_basic_concepts.py"
    for file in (tasks_of, path):
        file.parent.mkdir(parents=True)
        file.write_text(re.sub(old, new, (ROOT / file.relative_to(tmp_path)).read_text()))
    with pytest.raises(LabsError, match=says):
        sources.pair(tmp_path, path)


def test_students_get_the_points_and_not_what_a_good_answer_holds():
    for lesson in tasks.lessons():
        text = (tasks.LESSONS / lesson / "tasks.toml").read_text()
        given, full = tomllib.loads(sources.student_tasks(text)), tomllib.loads(text)
        for item, whole in zip(given["task"], full["task"], strict=True):
            assert item == whole | ({"holds": ["..."] * len(whole["holds"])} if "holds" in whole else {})
