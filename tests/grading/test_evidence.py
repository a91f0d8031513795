"""Evidence: honest runs of any speed and noise give no finding; each thing that cannot be gives one, for a person."""

import copy
import json
import random

import made_class
import numpy as np
import pytest
from made_class import RUNS, scaled, study, written

from labs import recorded
from labs.results import run as records
from teaching.grading import copies, evidence, handed
from teaching.grading.finding import HONEST, SEVERITIES


@pytest.fixture
def looked_at(tmp_path):
    """looked_at(runs, files) -> findings about a submission with these runs, {name: Run}, but no notes."""

    def looked_at(runs, logs_of=None, **more):
        contents = written(runs) | {name: of for name, of in written(logs_of or runs).items() if name.endswith(".out")}
        contents["notebooks/scripts/ResNet50.py"] = made_class.script().encode()
        found = evidence.findings(handed.Submission("001", contents | more, tmp_path / str(random.random())))
        return [each for each in found if each.severity != "note"]

    return looked_at


def changed(runs, changes):
    """A copy of some runs, {name: Run}: in each the values at {"epochs.*.seconds": function} become those of it."""
    runs = copy.deepcopy(runs)
    for record in runs.values():
        for path, function in changes.items():
            change(record, path.split("."), function)
    return runs


def change(part, way, function):
    key, *rest = way
    table = part if isinstance(part, list | dict) else vars(part)
    for each in range(len(table)) if key == "*" else [int(key) if key.isdecimal() else key]:
        if rest:
            change(table[each], rest, function)
        else:
            table[each] = function(table[each])


def times(factor):
    """Changes that make a run slower by a factor, in its record."""
    return {"epochs.*.seconds": lambda s: s * factor, "epochs.*.step_seconds": lambda of: [s * factor for s in of]}


def test_honest_runs_give_no_finding(looked_at):
    for smooth in (0.002, 0.01, 0.06, 0.2):
        for seed, speed in enumerate((0.2, 1.0, 5.0)):
            assert looked_at(study(seed, speed=speed, smooth=smooth)) == [], (smooth, speed)
    validated = {"epochs.*.seconds": lambda s: 2 * s, "epochs.*.metrics": lambda of: {**of, "val_loss": 1.0}}
    assert looked_at(changed(study(15), validated | {"started": lambda _: "2026-01-01T00:00:00+00:00"})) == []
    runs = {path.stem: records.load_record(path) for path in recorded.laptop_two_networks()}
    out = {f"{RUNS}{path.stem}.out": path.with_suffix(".out").read_bytes() for path in recorded.laptop()}
    assert looked_at(runs, **out) == []


def on_a_slope(epochs):
    first = epochs[1].step_seconds[0]
    for n, epoch in enumerate(epochs):
        steps = len(epoch.step_seconds)
        epoch.step_seconds = [first * (1 + (n * steps + step) / 1000) for step in range(steps)]
        epoch.seconds = sum(epoch.step_seconds)
    return epochs


# {what: (changes of the records, {kind: severity})}; the logs stay those of the unchanged runs
PLANTED = {
    "steps longer": ({"epochs.3.step_seconds": lambda of: [s * 1.2 for s in of]}, {"clock": "serious"}),
    "steps shorter": ({"epochs.*.step_seconds": lambda of: [s * 0.7 for s in of]}, {"clock": "look"}),
    "epochs longer": ({"finished": lambda _: "2026-11-02T09:00:00+00:00"}, {"clock": "serious"}),
    "more images": ({"epochs.2.images": lambda _: 900}, {"images": "serious"}),
    "fewer images": ({"epochs.2.images": lambda _: 300}, {"images": "look"}),
    "typed": ({"epochs.*.step_seconds": lambda of: [s // 0.001 / 1000 for s in of]}, {"spread": "look"}),
    "on a line": ({"epochs.*.step_seconds": lambda of: [sum(of) / len(of)] * len(of)}, {"spread": "serious"}),
    "on a slope": ({"epochs": on_a_slope}, {"spread": "serious", "log": "serious"}),
    "another script": ({"script_sha256": lambda _: "0" * 64}, {"script": "look"}),
    "better": ({"epochs.6.metrics.accuracy": lambda _: 0.999}, {"log": "serious"}),
    "worse": ({"epochs.6.metrics.accuracy": lambda _: 0.1}, {"log": "serious"}),
    "faster": (times(0.8), {"log": "serious"}),
    "shorter": ({"epochs": lambda of: of[:4]}, {"log": "look"}),
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_cannot_be_is_found_in_both_runs(looked_at, what):
    changes, kinds = PLANTED[what]
    runs = study(7)
    found = looked_at(changed(runs, changes), logs_of=runs)
    assert {(each.kind, each.severity) for each in found} == set(kinds.items()), found
    assert {(each.kind, each.where) for each in found} == {(kind, name) for kind in kinds for name in runs}
    assert all(each.kind in HONEST and each.honest and each.severity in SEVERITIES for each in found)


def test_a_script_from_which_paths_were_taken_out_is_the_one_that_ran(looked_at):
    runs = changed(study(16), {"script_sha256": lambda _: "a" * 64})
    entry = {"notebooks/scripts/ResNet50.py": {"sha256_before_cleaning": "a" * 64}}
    assert looked_at(runs, **{"manifest.json": json.dumps({"files": entry}).encode()}) == []


def test_what_two_runs_say_of_each_other_is_told(looked_at):
    runs = study(8) | {"ResNet50_w2": study(8, speed=3.0)["ResNet50_w2"]}
    runs["ResNet50_w2"].machine = {**runs["ResNet50_w2"].machine, "cpu": "Intel Xeon"}
    assert ("different machines", "look") in {(each.kind, each.severity) for each in looked_at(runs)}
    runs["ResNet50_w2"].machine = runs["ResNet50_w1"].machine
    assert ("superlinear", "look") in {(each.kind, each.severity) for each in looked_at(runs)}


def test_a_record_that_cannot_be_read_is_told_and_one_that_stops_a_look_hides_nothing_from_the_others(looked_at):
    (found,) = looked_at(study(10), **{f"{RUNS}mine.json": b'{"version": 9, "epochs": []}'})
    assert (found.kind, found.where) == ("record", "mine") and "/tmp" not in found.seen
    runs = changed(study(14), PLANTED["on a line"][0] | {"machine.cores": lambda _: [""], "command": lambda _: ["\0"]})
    found = looked_at(runs)
    assert {each.where for each in found if (each.kind, each.severity) == ("spread", "serious")} == set(runs)
    assert any(each.kind == "stopped" for each in found)


# ---- across students


def series(owner, runs):
    return list(copies.series(owner, runs))


DRAW = random.Random(1)


def in_another_order(epochs):
    steps = [s for epoch in epochs[1:] for s in epoch.step_seconds]
    DRAW.shuffle(steps)
    for epoch in epochs[1:]:
        epoch.step_seconds = [steps.pop() for _ in epoch.step_seconds]
    return epochs


def jittered(steps):
    return [s * (1 + DRAW.uniform(-5e-4, 5e-4)) for s in steps]


COPIES = {
    "scaled, in another order": lambda of: changed(scaled(of, 1.07), {"epochs": in_another_order}),
    "with a little noise": lambda runs: changed(runs, {"epochs.*.step_seconds": jittered}),
    "a part": lambda runs: changed(runs, {"epochs": lambda of: of[:4]}),
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_found_at_both_and_the_earlier_one_is_a_note(how):
    runs = changed(study(11), {"started": lambda _: "2026-01-01T00:00:00+00:00"})
    theirs = changed(COPIES[how](runs), {"started": lambda _: "2026-01-02T00:00:00+00:00"})
    found = copies.findings(series("001", runs) + series("002", theirs) + series("003", study(12)))
    longest = {name for name, record in theirs.items() if len(record.epochs) * record.steps >= 20}
    assert {each.where for each in found["002"]} >= longest and longest
    assert {each.severity for each in found["002"]} == {"serious"}
    assert {each.severity for each in found["001"]} == {"note"} and "003" not in found


def test_copies_of_the_kits_recorded_runs_are_known_also_when_scaled():
    kits = (records.load_record(path.with_suffix(".json")) for path in recorded.laptop())
    runs = {f"ResNet50_w{of.workers}": of for of in kits}
    for name, run in runs.items():
        run.name = name
    assert copies.findings(series("001", runs)) == {}
    runs = changed(runs, {"kind": lambda _: "measured"})
    for factor in (1.0, 0.9):
        found = copies.findings(series("001", scaled(runs, factor)))
        assert {(each.kind, each.severity) for each in found["001"]} == {("recorded", "serious")}


def test_no_pair_of_copies_is_passed_over_among_many():
    draw = np.random.default_rng(0)
    steps = [np.log(draw.normal(1, 0.06, draw.integers(14, 40))) for _ in range(30)]
    steps += [np.log(1.07) + draw.permutation(each) for each in steps[::5]]
    steps += [each[:-2] + draw.normal(0.3, 0.001, len(each) - 2) for each in steps[:30:4]]
    runs = [copies.Series(str(n), "run", "measured", None, np.exp(each)) for n, each in enumerate(steps)]
    pairs = [(one, other) for other in range(len(runs)) for one in range(other)]
    alike = {pair for pair in pairs if copies.alike(*(steps[place] for place in pair)) is not None}
    assert len(alike) >= 14 and alike == {pair[:2] for pair in copies._copies(runs)}
    assert {int(owner) for owner in copies.findings(runs)} == {place for pair in alike for place in pair}
    assert copies.alike(np.log([0.01, 0.011] * 10), np.log([0.011, 0.01] * 10)) is None  # of a coarse clock


def test_no_two_honest_runs_are_copies():
    for smooth in (1e-4, 0.002, 0.06):
        runs = [each for seed in range(40) for each in series(str(seed), study(seed, smooth=smooth))]
        assert len(runs) == 80 and copies.findings(runs) == {}
