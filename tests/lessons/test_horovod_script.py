"""The six checks of ResNet50_horovod.py look at their own step only."""

from pathlib import Path

import pytest

from labs import blanks, checks
from lessons.training_scripts import lines_of
from teaching.author import regions

SOLUTION = Path(__file__).parents[2] / "solutions/scripts/ResNet50_horovod.py"
STEPS = {f"horovod.{number + 6}": number for number in range(1, 7)}


@pytest.mark.parametrize("id", STEPS)
def test_a_blank_is_named_and_a_step_is_right_while_the_others_are_blank(id, tmp_path):
    path = tmp_path / "ResNet50_horovod.py"
    path.write_text(regions.blank(SOLUTION.read_text()))
    first = lines_of(path, STEPS[id])[0]
    line = min(line for line, _ in blanks.blanks(path) if line > first)
    state, text = checks.judge(id, path)
    assert state == "open" and f"Line {line} of ResNet50_horovod.py is still blank" in text
    head, begin, rest = SOLUTION.read_text().partition(f"# {STEPS[id]}. ")
    filled = rest.replace("### BEGIN SOLUTION\n", "", 1).replace("### END SOLUTION\n", "", 1)
    path.write_text(regions.blank(head + begin + filled))
    assert blanks.blanks(path) and checks.judge(id, path)[0] == "right"


def test_a_script_that_is_tried_out_leaves_nothing_where_it_stands_nor_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ResNet50_horovod.py"
    path.write_text(SOLUTION.read_text().replace("0.01 * hvd.size()", "open('trace', 'w') and 0.01"))
    state, hint = checks.judge("horovod.10", path)
    assert state == "wrong" and "which is 0.01 on 6 ranks" in hint
    assert [file.name for file in tmp_path.iterdir()] == ["ResNet50_horovod.py"]
    path.write_text("learning_rate = = 1\n")  # what Python cannot read
    assert (
        "line 1: `learning_rate = = 1`: SyntaxError: invalid syntax (ResNet50_horovod.py, line 1)."
        in checks.judge("horovod.9", path)[1]
    )
