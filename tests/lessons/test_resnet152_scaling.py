"""What notebooks 09 and 10 take over from earlier ones: runs of the same sizes only."""

import json
from types import SimpleNamespace

from labs import presets, recorded, results
from labs.measure import study
from lessons.resnet152_scaling import experiments
from lessons.two_networks import logs

SMALL, LARGE = "ResNet50V2", "ResNet152V2"


def test_earlier_runs_are_taken_if_all_of_them_fit(runs, monkeypatch):
    plan, fit = presets.choose("laptop"), {}
    monkeypatch.setattr(study, "reusable", lambda file, asked: fit.get(file) == asked)
    for workers in plan.workers:
        assert experiments.earlier(plan, "mine", "horovod", LARGE) == []
        fit[runs / f"mine_w{workers}.json"] = study.configuration(plan, LARGE, workers, "horovod")
    assert experiments.earlier(plan, "mine", "horovod", LARGE) == list(fit)


def test_own_runs_are_compared_only_where_both_networks_have_them_of_one_machine(monkeypatch):
    monkeypatch.setattr(experiments, "load_record", lambda file: SimpleNamespace(hardware=file))
    assert experiments.lacks(["A"], ["A"]) == ""
    assert experiments.lacks(["A"], []).endswith("of ResNet152V2 (notebook 09).")
    assert experiments.lacks(["A"], ["A", "B"]).endswith("different hardware: A, B.")


def test_the_largest_batch_is_that_of_your_search_if_both_are_of_equal_memory_and_device(runs, capsys):
    def kept(model, largest, **changed):
        """The file that a search for the largest batch leaves, with a budget of 128 MiB."""
        found = {"model": model, "image_size": 32, "memory": 2**27, "device": "CPU under a memory budget"} | changed
        (runs / f"maxbatch_{model}_32.maxbatch.json").write_text(json.dumps(found | {"largest": largest}))

    assert experiments.largest_batch(LARGE, 128) == (None, "recorded")
    assert "no search of T8" in capsys.readouterr().out
    kept(SMALL, 64)
    for other in ({"memory": 2**30}, {"device": "another GPU"}, {"image_size": 128}):
        kept(LARGE, 128, **other)
        found = [experiments.largest_batch(name, 32) for name in (SMALL, LARGE)]
        assert found == [(512, "recorded"), (256, "recorded")], other
    capsys.readouterr()
    kept(LARGE, 128)
    assert experiments.largest_batch(LARGE, 32) == (128, "measured") and not capsys.readouterr().out


def test_a_log_in_whole_seconds_says_nothing_of_epochs_below_one():
    runs = results.load(recorded.laptop_two_networks())
    for epoch in (epoch for run in runs for epoch in run.epochs):
        epoch.seconds *= 0.01
    exact, *rounded = logs.table(runs, LARGE, SMALL)
    assert exact["95 % interval"].startswith("[")
    for row in rounded:
        assert row["difference real?"].endswith(": the log says 0 s") and row["ratio of efficiencies"] is None
