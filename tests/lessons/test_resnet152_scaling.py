"""What notebook 08 takes over from earlier notebooks: runs of the same sizes only, and a script without blanks."""

from pathlib import Path

import pytest

from labs import blanks, presets
from labs.lessons.nb08 import experiments
from labs.measure import study

SCRIPT = Path(__file__).parents[2] / "solutions/scripts/ResNet50_horovod.py"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The folder of the runs, which is not there yet."""
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_the_script_for_the_larger_network_differs_in_its_name_only(runs):
    copy = experiments.with_network(SCRIPT, "ResNet152V2")
    assert copy == runs / "ResNet152V2_horovod.py" and "ResNet50" not in copy.read_text()
    assert copy.read_text().replace("ResNet152V2", "ResNet50V2") == SCRIPT.read_text()


def test_a_script_with_blanks_is_not_taken(runs, tmp_path, capsys):
    script = tmp_path / "ResNet50_horovod.py"
    script.write_text(f"learning_rate = {blanks.YOUR_CODE}\n")
    assert experiments.with_network(script, "ResNet152V2") is None and not runs.exists()
    assert capsys.readouterr().out.startswith("ResNet50_horovod.py has blanks.")


@pytest.mark.parametrize("same", [(True, True), (True, False)])
def test_earlier_runs_are_taken_if_all_of_them_fit(runs, monkeypatch, same):
    asked, answers = [], iter(same)
    monkeypatch.setattr(study, "reusable", lambda *given: asked.append(given) or next(answers))
    plan = presets.choose("laptop")
    files = [runs / f"ResNet50_horovod_w{workers}.json" for workers in plan.workers]
    assert experiments.earlier(plan, "ResNet50_horovod", "horovod") == (files if all(same) else [])
    assert asked == [(f, study.configuration(plan, "ResNet50V2", n, "horovod")) for n, f in enumerate(files, 1)]
