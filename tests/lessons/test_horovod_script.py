"""The six checks of ResNet50_horovod.py look at their own step only."""

from pathlib import Path

import pytest

from labs import blanks, checks
from lessons.training_scripts import lines_of
from teaching.author import regions

SOLUTION = Path(__file__).parents[2] / "solutions/scripts/ResNet50_horovod.py"
STEPS = {f"horovod.{number + 3}": number for number in range(1, 7)}


def student(folder, *filled):
    """The student's script with the blanks of these steps filled from the solution."""
    solved, result, number = SOLUTION.read_text().split("\n"), [], 0
    for line in solved:
        number = int(line[2]) if line[:2] == "# " and line[2:3].isdigit() and line[3:5] == ". " else number
        marker = "SOLUTION" in line
        result.append("" if marker and number in filled else line)
    path = folder / "ResNet50_horovod.py"
    path.write_text(regions.blank("\n".join(result)))
    return path


@pytest.mark.parametrize("id", STEPS)
def test_a_blank_is_open_and_its_line_is_named(id, tmp_path):
    path = student(tmp_path)
    state, text = checks.judge(id, path)
    first = lines_of(path, STEPS[id])[0]
    line = min(line for line, _ in blanks.blanks(path) if line > first)
    assert state == "open" and f"Line {line} of ResNet50_horovod.py is still blank" in text


@pytest.mark.parametrize("id", STEPS)
def test_a_step_is_right_while_the_others_are_blank(id, tmp_path):
    path = student(tmp_path, STEPS[id])
    assert blanks.blanks(path)
    assert checks.judge(id, path)[0] == "right"


def test_a_script_without_its_comments_is_still_read(tmp_path):
    path = tmp_path / "ResNet50_horovod.py"
    path.write_text("\n".join(line for line in SOLUTION.read_text().split("\n") if not line.startswith("#")))
    assert [checks.judge(id, path)[0] for id in STEPS] == ["right"] * 6


def test_a_script_that_is_tried_out_leaves_nothing_where_it_stands_nor_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ResNet50_horovod.py"
    path.write_text(SOLUTION.read_text().replace("0.01 * hvd.size()", "open('trace', 'w') and 0.01"))
    state, hint = checks.judge("horovod.7", path)
    assert state == "wrong" and "does not depend on the ranks" in hint
    assert [file.name for file in tmp_path.iterdir()] == ["ResNet50_horovod.py"]


def test_a_script_that_python_cannot_read_shows_its_line(tmp_path):
    path = tmp_path / "ResNet50_horovod.py"
    path.write_text("learning_rate = = 1\n")
    for id in STEPS:
        state, hint = checks.judge(id, path)
        assert state == "wrong" and "line 1: `learning_rate = = 1`: SyntaxError: invalid syntax." in hint
