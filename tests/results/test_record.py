"""The run record: what is refused and how, and which runs may be compared."""

import functools
import json
import math
import operator

import pytest

from labs.results import run as record
from labs.results.run import Configuration, RecordError, Run

EPOCHS = [{"repeat": 0, "epoch": e, "seconds": 8.0 - e, "images": 64, "step_seconds": [0.1]} for e in range(4)]
HOW = {"model": "ResNet50V2", "workers": 2, "repeats": 3, "images": 64}
NEW = {"version": 2, "name": "a", "state": "finished", "configuration": HOW, "dataset_images": 128, "epochs": EPOCHS}
NEW |= {"machine": {"cpu": "Some CPU", "gpus": []}}


def broken(*place, value=None):
    """The record as text, with another value at a place; without it, if there is no value."""
    made = json.loads(json.dumps(NEW))
    *outer, last = place
    part = functools.reduce(operator.getitem, outer, made)
    if value is None:
        del part[last]
    else:
        part[last] = value
    return json.dumps(made)


def test_a_record_is_the_run_with_its_place(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(NEW | {"source": "elsewhere", "failure": 7, "speedup": 9}))
    found = record.load_record(tmp_path / "a.json")
    assert (found.source, found.folder, found.failure, found.speedup.value) == ("a.json", tmp_path, None, None)
    assert (found.configuration.images, found.dataset_images, found.hardware) == (64, 128, "Some CPU")
    assert [epoch.seconds for epoch in found.epochs] == [8, 7, 6, 5] and len(found.steady[0]) == 3
    gpus = record.of_json(NEW | {"machine": {"cpu": "c", "gpus": ["V100", "V100"]}}, "a.json")
    assert gpus.hardware == "V100" and not gpus.truncated
    failed = record.of_json(NEW | {"state": "failed"}, "a.json")
    assert failed.truncated and failed.notes == ["the record says that this run is failed"]


def test_what_is_saved_is_read_again_with_fields_of_a_newer_kit(tmp_path):
    found = record.of_json(NEW | {"colour": "blue", "configuration": HOW | {"momentum": 0.9}}, "a.json")
    found.epochs[0].metrics["loss"] = math.nan  # a training that diverged
    record.save_record(tmp_path / "new" / "b.json", found)
    again = record.load_record(tmp_path / "new" / "b.json")
    assert again.colour == "blue" and again.configuration.momentum == 0.9
    assert math.isnan(again.epochs[0].metrics["loss"]) and again.epochs[1:] == found.epochs[1:]
    with pytest.raises(ValueError, match="seconds"):
        Run(state="running", epochs=[{"seconds": -1.0}])


END, READ = "Make the run again.", "cannot be read as a run record"


def test_what_is_no_record_is_refused_in_one_line_that_names_file_and_field(tmp_path):
    for text, says in (
        (broken("epochs", 3, "seconds"), "broken run record: epochs[4].seconds is missing."),
        (broken("epochs", 3, "seconds", value=-1), "epochs[4].seconds must be greater than or equal to 0, not -1."),
        (broken("epochs", 3, "seconds", value=math.nan), "epochs[4].seconds must be a finite number"),
        (broken("epochs", 3, "seconds", value="5"), "epochs[4].seconds must be a valid number, not '5'."),
        (broken("epochs", 1, "step_seconds", value=[0.1, -2]), "epochs[2].step_seconds[2] must be "),
        (broken("configuration", "workers", value=-2), "configuration.workers must be greater than or equal to 0"),
        (broken("machine", "gpus", value=[5]), "machine.gpus[1] must be a valid string"),
        (broken("state", value="asleep"), "state must be 'running'"),
        (json.dumps(NEW | {"version": 7}), "version 7, this kit reads version 2. Update the kit"),
        ("[1, 2]", "not a run record"),
        ("[\n", READ),  # a timeline of Horovod
        ('{"version": 2, "epochs": [', READ),
    ):
        path = tmp_path / "a.json"
        path.write_text(text)
        with pytest.raises(RecordError) as caught:
            record.load_record(path)
        said = str(caught.value)
        assert said.startswith(f"{path}: ") and says in said and "\n" not in said
        with pytest.raises(RecordError, match="the run record cannot be read"):
            record.load_record(tmp_path)


# Which runs may be compared

TWO = Configuration(model="M", strategy="mirrored", workers=2, nodes=1, global_batch=128, local_batch=64, images=512)
ONE = {"workers": 1, "nodes": 3, "global_batch": 64, "local_batch": 32, "learning_rate": 0.01}
AMOUNT = {"seed": 7, "repeats": 1, "epochs_per_repeat": 2, "images": 64}  # by which a time per epoch does not change
NETWORK = {"model": "N", "dataset": "cifar10", "image_size": 64, "precision": "mixed_float16"}


def test_what_runs_must_share():
    def other(**fields):
        return TWO.model_copy(update=fields)

    assert TWO.comparable(other(**ONE, **AMOUNT)) and TWO.comparable(other(**ONE, strategy="single"))
    assert not other(**ONE, strategy="single").comparable(TWO)
    for key, value in {**NETWORK, "strategy": "horovod"}.items():
        assert not TWO.comparable(other(**{key: value})), key
    assert TWO.fulfils(Configuration(model="M", workers=2)) and TWO.fulfils(Configuration())
    assert not TWO.fulfils(Configuration(model="M", workers=3))
    assert not TWO.fulfils(Configuration(model="M", images=None)), "all images were asked for"
