"""A notebook in replay: what trains hands back the submitted runs, also what trains in the background."""

import pytest

TURNS = """
from labs import jobs
from labs.checks import check

turns = jobs.Turns()
for workers in (1, 2):
    turns.start("scripts/ResNet50.py", "--n_gpus", workers, name=f"ResNet50_w{workers}")
"""
BEGIN = "turns.begin()\nprint(turns, turns.progress())"
WAIT = "found = [job.name for job in turns.wait()] == ['ResNet50_w1', 'ResNet50_w2']"
CHECK = "check('concepts.14', 27 if found and turns.state == 'finished' else 0)"  # 27 is right


@pytest.mark.parametrize(("handed_in", "state"), [((1, 2), "right"), ((1,), "wrong")])
def test_turns_in_the_background_are_the_submitted_runs(run, handed_in, state):
    logs = {f"notebooks/runs/ResNet50_w{workers}.out": b"Epoch 1/2\n" for workers in handed_in}
    found, told = run("01_basic_concepts", TURNS, BEGIN, WAIT, CHECK, **logs)
    assert found["concepts.14"].state == state, told


def test_a_script_that_was_not_touched_is_not_done_and_no_mistake(run):
    """`labs report` packs scripts that were changed: others are as they were given."""
    found, told = run(
        "05_resnet50_scaling", 'from labs.checks import check\nready = check("resnet50.3", "scripts/ResNet50.py")'
    )
    assert (found["resnet50.3"].state, found["resnet50.3"].how) == ("open", "inside") and not told
    assert "of ResNet50.py is still blank" in found["resnet50.3"].text
