"""The run record: what is refused and how, and which runs may be compared."""

import json
import math

import pytest

from labs import recorded
from labs.results import run as record
from labs.results.record import Configuration, RecordError
from labs.results.run import Run

EPOCHS = [{"repeat": 0, "epoch": e, "seconds": 8.0 - e, "images": 64, "step_seconds": [0.1]} for e in range(4)]
HOW = {"model": "ResNet50V2", "workers": 2, "repeats": 3, "images": 64}
NEW = {
    "version": 2,
    "name": "a",
    "state": "finished",
    "configuration": HOW,
    "dataset_images": 128,
    "machine": {"cpu": "Some CPU", "gpus": []},
    "epochs": EPOCHS,
}


def broken(*place, value=None):
    """The record as text, with another value at a place; without it, if there is no value."""
    made = json.loads(json.dumps(NEW))
    *outer, last = place
    part = made
    for key in outer:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return json.dumps(made)


def refused(tmp_path, text):
    """The message of the error with which a file of this text is refused."""
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(RecordError) as caught:
        record.load(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ") and "\n" not in said and len(said) < 300 + len(str(path))
    return said


def test_a_record_is_the_run_with_its_place(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(NEW | {"source": "elsewhere", "failure": 7, "speedup": 9}))
    found = record.load(tmp_path / "a.json")
    assert (found.source, found.folder, found.failure, found.speedup.value) == ("a.json", tmp_path, None, None)
    assert (found.configuration.images, found.dataset_images, found.hardware) == (64, 128, "Some CPU")
    assert [epoch.seconds for epoch in found.epochs] == [8, 7, 6, 5] and len(found.steady[0]) == 3
    assert record.read(NEW | {"state": "failed"}, "a.json").notes == ["the record says that this run is failed"]


@pytest.mark.parametrize("log", recorded.laptop() + recorded.laptop_two_networks_horovod())
def test_recorded_runs_are_read_whole(log):
    path = log.with_suffix(".json")
    text, found = json.loads(path.read_text()), record.load(path)
    assert len(found.epochs) == len(text["epochs"]) and found.steps == text["steps"]
    assert found.configuration.global_batch == text["configuration"]["global_batch"]
    assert not found.model_extra and not found.configuration.model_extra


def test_what_is_saved_is_read_again_with_fields_of_a_newer_kit(tmp_path):
    found = record.read(NEW | {"colour": "blue", "configuration": HOW | {"momentum": 0.9}}, "a.json")
    found.epochs[0].metrics["loss"] = math.nan  # a training that diverged
    record.save(tmp_path / "b.json", found)
    again = record.load(tmp_path / "b.json")
    assert again.colour == "blue" and again.configuration.momentum == 0.9
    assert math.isnan(again.epochs[0].metrics["loss"]) and again.epochs[1:] == found.epochs[1:]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (broken("epochs", 3, "seconds"), "epochs[4].seconds is missing."),
        (broken("epochs", 3, "seconds", value=-1), "epochs[4].seconds must be greater than or equal to 0, not -1."),
        (broken("epochs", 3, "seconds", value=math.nan), "epochs[4].seconds must be a finite number"),
        (broken("epochs", 3, "seconds", value=math.inf), "epochs[4].seconds must be a finite number"),
        (broken("epochs", 3, "seconds", value="5"), "epochs[4].seconds must be a number, not '5'."),
        (broken("epochs", 3, "seconds", value=10**400), "epochs[4].seconds must be "),
        (broken("epochs", 1, "step_seconds", value=[0.1, -2]), "epochs[2].step_seconds[2] must be "),
        (broken("epochs", 2, value=5), "epochs[3] must be "),
        (broken("configuration", "workers", value=10**400), "configuration.workers must be "),
        (broken("configuration", "workers", value="two"), "configuration.workers must be a whole number"),
        (broken("configuration"), "configuration is missing."),
        (broken("state"), "state is missing."),
        (broken("state", value="asleep"), "state must be 'running'"),
    ],
)
def test_the_field_that_cannot_be_is_named(tmp_path, text, says):
    said = refused(tmp_path, text)
    assert f"broken run record: {says}" in said and said.endswith("Make the run again.")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (json.dumps(NEW | {"version": 7}), "version 7, this kit reads version 2. Update the kit"),
        (broken("version"), "version None"),
        ("[1, 2]", "not a run record"),
        ("{}", "not a run record"),
        ("", "cannot be read as a run record"),
        ("[\n", "a timeline of Horovod, no run record. Notebook 08 shows how to read it."),
        ('[\n{"name": "process_name", "ph": "M"},\n{"ph"', "a timeline of Horovod, no run record"),
        ('{"version": 2, "epochs": [', "cannot be read as a run record"),
        ("[" * 10**5, "cannot be read as a run record"),
        ('{"version": 2, "steps": ' + "9" * 5000 + "}", "cannot be read as a run record"),
    ],
)
def test_what_is_no_record_of_this_kit(tmp_path, text, says):
    assert says in refused(tmp_path, text)


def test_a_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "no.json", tmp_path):
        with pytest.raises(RecordError, match="the run record cannot be read"):
            record.load(path)
    (tmp_path / "latin.json").write_bytes(b'{"name": "\xff"}')
    with pytest.raises(RecordError, match="latin.json: cannot be read as a run record"):
        record.load(tmp_path / "latin.json")


# Which runs may be compared

TWO = Configuration(
    model="M",
    strategy="mirrored",
    workers=2,
    nodes=1,
    global_batch=128,
    local_batch=64,
    learning_rate=0.02,
    dataset="digits",
    images=512,
    image_size=32,
    precision="float32",
    seed=0,
    repeats=3,
    epochs_per_repeat=5,
)
ONE = TWO.model_copy(update={"workers": 1, "global_batch": 64, "learning_rate": 0.01})


def test_a_run_is_comparable_with_one_of_other_workers_batch_seed_and_length():
    assert TWO.comparable(ONE) and TWO.comparable(ONE.model_copy(update={"strategy": "single"}))
    assert TWO.comparable(ONE.model_copy(update={"seed": 7, "repeats": 1, "epochs_per_repeat": 2, "images": 64}))
    assert not ONE.model_copy(update={"strategy": "single"}).comparable(TWO)
    other = {"model": "N", "dataset": "cifar10", "image_size": 64, "precision": "mixed_float16", "strategy": "horovod"}
    for key, value in other.items():
        assert not TWO.comparable(ONE.model_copy(update={key: value})), key


def test_repeats_of_one_training_differ_in_seed_and_number_only():
    assert TWO.same_training(TWO.model_copy(update={"seed": 7, "repeats": 1}))
    for key, value in {"global_batch": 64, "learning_rate": 0.01, "strategy": "horovod", "nodes": 2}.items():
        assert not TWO.same_training(TWO.model_copy(update={key: value})), key


def test_fulfils_looks_at_what_was_asked_for_only():
    assert TWO.fulfils(Configuration(model="M", workers=2)) and TWO.fulfils(Configuration())
    assert not TWO.fulfils(Configuration(model="M", workers=3))
    assert not TWO.fulfils(Configuration(model="M", images=None)), "all images were asked for"


def test_a_record_in_memory_is_checked_too():
    with pytest.raises(ValueError, match="seconds"):
        Run(state="running", configuration=TWO, epochs=[{"seconds": -1.0}])
