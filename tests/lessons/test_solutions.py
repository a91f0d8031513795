"""What the build refuses in a solution, and what students get of its tasks."""

import re

import pytest
from tree import ROOT

from labs.errors import LabsError
from teaching.author import sources


def test_a_solution_without_its_answer_is_refused(tmp_path):
    tasks_of, path = tmp_path / "lessons/basic_concepts/tasks.toml", tmp_path / "solutions/01_basic_concepts.py"
    for file in (tasks_of, path):
        file.parent.mkdir(parents=True)
        text = (ROOT / file.relative_to(tmp_path)).read_text()
        file.write_text(re.sub(r"(?s)(T1: your answer\n).*?(# ### END)", r"\1# ### BEGIN SOLUTION\n\2", text))
    with pytest.raises(LabsError, match=r"cell \d+: T1 has no solution"):
        sources.pair(tmp_path, path)
