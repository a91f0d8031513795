"""What notebooks 09 and 10 take over from earlier ones: runs of the same sizes only, and a script without blanks."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from answers import two_networks

from labs import blanks, checks, presets, recorded, results
from labs.measure import study
from labs.show import plots
from lessons.resnet152_scaling import experiments
from lessons.two_networks import logs

SCRIPT = Path(__file__).parents[2] / "solutions/scripts/ResNet50_horovod.py"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The folder of the runs, which is not there yet."""
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def kept_search(runs, model, largest, **changed):
    """The file that a search for the largest batch leaves, with a budget of 128 MiB."""
    runs.mkdir(exist_ok=True)
    found = {"model": model, "image_size": 32, "memory": 2**27, "device": "CPU under a memory budget"} | changed
    (runs / f"maxbatch_{model}_32.maxbatch.json").write_text(json.dumps(found | {"largest": largest}))


def test_the_script_for_the_larger_network_differs_in_its_name_only(runs):
    copy = experiments.with_network(SCRIPT, "ResNet152V2")
    assert copy == runs / "ResNet152V2_horovod.py" and "ResNet50" not in copy.read_text()
    assert copy.read_text().replace("ResNet152V2", "ResNet50V2") == SCRIPT.read_text()


def test_a_script_with_blanks_is_not_taken(runs, tmp_path, capsys):
    script = tmp_path / "ResNet50_horovod.py"
    script.write_text(f"learning_rate = {blanks.YOUR_CODE}\n")
    assert experiments.with_network(script, "ResNet152V2") is None and not runs.exists()
    assert capsys.readouterr().out.startswith("ResNet50_horovod.py has blanks.")


@pytest.mark.parametrize(
    ("same", "network"), [((True, True), "ResNet50V2"), ((True, False), "ResNet50V2"), ((True, True), "ResNet152V2")]
)
def test_earlier_runs_are_taken_if_all_of_them_fit(runs, monkeypatch, same, network):
    asked, answers = [], iter(same)
    monkeypatch.setattr(study, "reusable", lambda *given: asked.append(given) or next(answers))
    plan = presets.choose("laptop")
    files = [runs / f"ResNet50_horovod_w{workers}.json" for workers in plan.workers]
    found = experiments.earlier(plan, "ResNet50_horovod", "horovod", network)
    assert found == (files if all(same) else [])
    assert asked == [(f, study.configuration(plan, network, n, "horovod")) for n, f in enumerate(files, 1)]


def trainings(state, *records):
    """Trainings that took turns, as far as `lacks` looks at them."""
    return SimpleNamespace(state=state, jobs=[SimpleNamespace(record=record) for record in records])


@pytest.mark.parametrize(
    "small, turns, going, said",
    [
        (["s1", "s2"], trainings("finished", "l1", "l2"), False, []),
        (["s1", "s2"], trainings("running", "l1", "l2"), True, []),
        (["s1", "s2"], trainings("running", "l1", "l2"), False, ["ResNet152V2 with Horovod (this notebook: yours are"]),
        (["s1", "s2"], trainings("stopped", "l1", "l2"), True, ["ResNet152V2 with Horovod ", "yours are stopped"]),
        (["s1", "s2"], trainings("finished"), True, ["ResNet152V2 with Horovod (this notebook: none were started)."]),
        ([], trainings("finished", "l1", "l2"), False, ["ResNet50V2 with Horovod", "(notebook 08)."]),
        ([], trainings("failed", "l1", "l2"), False, ["ResNet50V2 with Horovod", "ResNet152V2 with Horovod", "failed"]),
        (["s1", "s2"], ["l1", "l2"], False, []),
        (["s1", "s2"], [], False, ["ResNet152V2 with Horovod (notebook 09)."]),
    ],
)
def test_own_runs_are_compared_only_where_both_networks_have_them(monkeypatch, small, turns, going, said):
    monkeypatch.setattr(experiments, "load", lambda file: SimpleNamespace(hardware="2 cores"))
    sentence = experiments.lacks(small, turns, "Horovod", going=going)
    assert bool(sentence) == bool(said) and all(part in sentence for part in said)
    assert ("ResNet50V2" in sentence) == (not small)
    assert ("ResNet152V2" in sentence) == bool(re.search(r"\((this notebook|notebook 09)", sentence))


@pytest.mark.parametrize("large", [trainings("finished", "l1", "l2"), ["l1", "l2"]], ids=["turns", "files"])
@pytest.mark.parametrize("other", ["l2", "m1"])
def test_own_runs_of_two_machines_are_not_compared(monkeypatch, other, large):
    hardware = {other: "AMD EPYC"}
    monkeypatch.setattr(experiments, "load", lambda file: SimpleNamespace(hardware=hardware.get(file, "Intel Xeon")))
    sentence = experiments.lacks(["s1"], large, "MirroredStrategy", beside=["m1"])
    assert sentence == "Your own runs come from different hardware: AMD EPYC, Intel Xeon."


def test_the_largest_batch_is_that_of_your_search_or_a_recorded_one(runs, capsys):
    assert experiments.largest_batch("ResNet152V2", 32) == (256, "recorded") and not capsys.readouterr().out
    assert experiments.largest_batch("ResNet152V2", 128)[0] is None
    assert capsys.readouterr().out == "ResNet152V2: no search of T8 (notebook 09) is kept here.\n"
    kept_search(runs, "ResNet50V2", 128, memory=2**30)
    kept_search(runs, "ResNet152V2", 64, memory=2**30)
    assert experiments.largest_batch("ResNet152V2", 32) == (64, "measured") and not capsys.readouterr().out


@pytest.mark.parametrize("other", [None, {"memory": 2**30}, {"device": "another GPU"}, {"image_size": 128}])
def test_largest_batches_are_compared_only_for_equal_memory_on_the_same_device(runs, capsys, other):
    kept_search(runs, "ResNet50V2", 64)
    if other:
        kept_search(runs, "ResNet152V2", 256, **other)
    assert experiments.largest_batch("ResNet50V2", 32) == (512, "recorded")
    assert re.match(r"ResNet50V2: the largest batches of ResNet50V2 \(.*\) and ResNet152V2 .*", capsys.readouterr().out)
    assert experiments.largest_batch("ResNet152V2", 32) == (256, "recorded")


def test_where_own_runs_are_missing_there_is_nothing_to_judge():
    state, text = checks.judge("resnet152.9", two_networks.RUNS, "You have no finished runs.")
    assert state == "open" and "nothing of yours to judge. You have no finished runs." in text
    assert "Fill the blank" not in text and checks.judge("resnet152.9", two_networks.RUNS, "")[0] == "right"


def test_a_network_has_one_colour_in_the_plots_of_both_recorded_studies():
    colours = []
    for files in (recorded.laptop_two_networks(), recorded.laptop_two_networks_horovod()):
        chosen = experiments.both(files)
        assert sorted(chosen) == sorted(files)
        axis = plots.scaling(results.load(chosen), ("epoch time",)).axes[0]
        colours.append({bars.get_label().split(",")[0]: bars.lines[0].get_color() for bars in axis.containers})
    assert colours[0] == colours[1] and len(set(colours[0].values())) == 2


@pytest.mark.parametrize("times, says", [(1, False), (0.01, True)])
def test_a_log_in_whole_seconds_says_nothing_of_epochs_below_one(times, says):
    runs = results.load(recorded.laptop_two_networks())
    for epoch in (epoch for run in runs for epoch in run.epochs):
        epoch.seconds *= times
    exact, *rounded = logs.table(runs, "ResNet152V2", "ResNet50V2")
    assert exact["95 % interval"].startswith("[") and exact["difference real?"] in ("yes", "no", "can't tell")
    for row in rounded:
        assert row["difference real?"].endswith(": the log says 0 s") == says
        assert (row["ratio of efficiencies"] is None) == says
