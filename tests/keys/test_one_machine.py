"""What shows that the answers keyed in notebooks 01 and 03 to 05 are true, on MirroredStrategy itself."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from tree import ROOT

from labs import models, recorded
from labs.results import steps
from labs.results.run import load_record
from lessons import counts
from lessons.averages_and_rings import sgd


@pytest.fixture(scope="module")
def mirrored():
    """What tests/programs/mirrored.py found on 8 logical devices."""
    program, env = ROOT / "tests/programs/mirrored.py", {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_mirrored_strategy_sums_all_gradients_in_each_step_and_sends_variables_only_at_their_creation(mirrored):
    assert mirrored["steps"] == 2 * [["CollectiveReduceV2"]]
    assert mirrored["created"] == 8 * mirrored["drawn"], "one value is drawn, and all copies take it"
    assert mirrored["moved"] == pytest.approx([mirrored["moved"][0]] * 8, rel=1e-5) and mirrored["moved"][0] > 0.01
    assert mirrored["apart"] == pytest.approx([0] * 7 + [1], abs=1e-6), (
        "3 epochs bring no copy back that was moved away by 1: neither replica 0 nor an epoch's end sends parameters"
    )


def test_a_step_sums_as_many_numbers_with_twice_the_images(mirrored):
    assert mirrored["summed"] == [[mirrored["trainable"]]] * 2, "a gradient of each weight, with 16 images and with 32"


def test_copies_exchange_gradients_of_all_weights_and_parts_of_a_network_only_what_crosses_the_cut(mirrored):
    assert max(mirrored["cut"]) < 1e-6, "activations forward and their gradients back give the gradients of both parts"


def test_with_the_same_local_batch_each_of_8_devices_keeps_as_much_of_everything_as_one_does(mirrored):
    (alone,) = mirrored["on 1"]
    assert mirrored["on 8"] == 8 * [alone] and min(alone) > 0


def test_images_with_sides_twice_as_long_make_the_batch_of_equal_memory_four_times_smaller():
    def border(pixels):
        parts = counts.memory(models.network("ResNet50V2", image_size=pixels, classes=10), 1, optimizer_slots=1)
        kept = parts.pop("activations")
        return sum(parts.values()) / kept

    assert 3.5 < border(32) / border(64) < 4.5


def test_a_larger_batch_makes_fewer_updates_and_falls_behind_and_a_higher_rate_makes_up_for_much_of_it():
    seen = len(sgd.digits()[1]) // 256 * 256

    def loss(batch, rate, epochs=10):
        updates = seen // batch * epochs  # of one worker, which reads the same number of samples with any batch
        return updates, sgd.synchronous(1, updates, np.ones((1, 1)), batch=batch, rate=rate, every=updates).losses[-1]

    (many, small), (few, behind), (same, caught_up) = loss(32, 0.1), loss(256, 0.1), loss(256, 0.8)
    assert many == 8 * few == 8 * same
    assert small < behind and (behind - caught_up) / (behind - small) > 0.5


def test_what_more_workers_cost_is_in_each_step_and_not_in_tracing_nor_in_more_images(mirrored):
    assert mirrored["traced"][0] > 0 and len(set(mirrored["traced"])) == 1, "no epoch but the first traces"
    assert all("CollectiveReduceV2" in step for step in mirrored["steps"])
    for pair in (recorded.laptop(), list(recorded.laptop_horovod().values())[:2]):
        one, two = (load_record(path.with_suffix(".json")) for path in pair)
        median = [steps.quantile(*steps.distribution(run)) for run in (one, two)]
        assert median[1] > median[0], "half of the steady steps are longer, so the loss is in the steps"
