"""Predictions from machine files against published measurements: the table of labs/machines/README.md, computed anew.

The bounds are generous: the sources differ in programs, network versions and data. `overlap` and `spread` were chosen
with these rows in sight; the rates of one GPU anchor the computation.
"""

import pytest

from labs.costs import load, predict
from labs.costs.anchor import FAMILY, NONE, SIZES, anchored
from labs.costs.computation import roofline, values
from labs.models import counts

# machine, network, batch per GPU, GPUs, published efficiency, largest error that is accepted
EFFICIENCY = [
    ("p100-ethernet25", "ResNet101", 64, 512, 0.90, 0.05),
    ("p100-ethernet25", "InceptionV3", 64, 512, 0.90, 0.05),
    ("p100-ethernet25", "VGG16", 64, 512, 0.68, 0.08),
    ("p100-ethernet25", "ResNet101", 64, 128, 0.90, 0.05),
    ("p100-ethernet25", "InceptionV3", 64, 128, 0.90, 0.05),
    ("p100-ethernet25", "VGG16", 64, 128, 0.79, 0.15),
    ("p100-ethernet50", "ResNet50", 64, 8, 1734 / 8 / 219, 0.08),
    ("p100-ethernet50", "ResNet152", 64, 8, 716 / 8 / 91.8, 0.08),
    ("p100-ethernet50", "InceptionV3", 64, 8, 1131 / 8 / 142, 0.08),
    ("p100-ethernet50", "VGG16", 64, 8, 1081 / 8 / 154, 0.10),
    ("v100-dgx1", "ResNet50", 128, 4, 3.84 / 4, 0.05),
    ("v100-dgx1", "ResNet50", 128, 8, 7.51 / 8, 0.05),
    ("v100-dgx1", "ResNet50", 128, 16, 14.07 / 16, 0.10),
    ("v100-dgx1", "ResNet50", 128, 32, 26.25 / 32, 0.15),
    ("juwels-booster", "ResNet50", 256, 8, 7.70 / 8, 0.05),
]


def facts_of(model, image_size=None):
    return counts.of(model, image_size=image_size or SIZES.get(model, 224))


def ask(machine, model, batch, workers, **options):
    size = SIZES.get(model, 224)
    return predict(model, facts_of(model), load(machine), workers, batch, image_size=size, **options)


def errors():
    """{row of EFFICIENCY: predicted less published efficiency}."""
    return {row: ask(*row[:4]).efficiency.value - row[4] for row in EFFICIENCY}


def test_efficiencies():
    found = errors()
    for (machine, model, batch, workers, published, bound), error in found.items():
        print(f"{machine} {model} {batch} x {workers}: {published + error:.3f} {error:+.3f}")
        assert abs(error) < bound, (machine, model, batch, workers)
    sizes = sorted(map(abs, found.values()))
    assert sizes[len(sizes) // 2] < 0.05 and sum(sizes) / len(sizes) < 0.06


def test_goyal_and_others_from_8_to_256_gpus():
    """Time of a step grows from 8 to 256 GPUs to about 1 / 0.9 of it, at 32 images each."""
    few, many = (ask("p100-ethernet50", "ResNet50", 32, workers) for workers in (8, 256))
    share = few.step_seconds.value / many.step_seconds.value
    print(f"8 to 256 GPUs: {share:.3f} against about 0.90")
    assert abs(share - 0.90) < 0.08
    # 90 epochs in an hour; the interval of the model is that of another program (TensorFlow, not Caffe2) on this GPU.
    hour = many.images_per_second.value * 3600 / (90 * 1_281_167)
    assert 0.8 < hour < 1.7


def test_vgg_scales_worst_and_inception_best_on_a_slow_network():
    found = {
        model: ask("p100-ethernet25", model, 64, 512).efficiency.value
        for model in ("VGG16", "ResNet101", "InceptionV3")
    }
    assert found["VGG16"] < found["ResNet101"] - 0.15 and found["ResNet101"] < found["InceptionV3"] + 0.02


def test_every_measured_rate_is_within_the_reach_of_the_roofline():
    """Operations and bytes alone come within NONE of every rate that is on file."""
    for machine in map(load, ("p100-ethernet50", "v100-dgx1", "juwels-booster")):
        for row in machine.measured:
            line = roofline(facts_of(row.model), machine.computes(row.precision), row.precision)
            alone = line.seconds(row.local_batch, values(line.parameters))
            assert 1 / (1 + NONE) < row.local_batch / row.images_per_second / alone < 1 + NONE, row


@pytest.mark.parametrize("name", ["p100-ethernet50", "v100-dgx1"])
@pytest.mark.parametrize("model, other", [("ResNet50", "ResNet152"), ("ResNet152", "ResNet50")])
def test_one_resnet_gives_the_rate_of_another(name, model, other):
    machine = load(name)
    rows = [row for row in machine.measured if (row.model, row.precision, row.local_batch) == (model, "float32", 64)]
    rest = machine.model_copy(update={"measured": [row for row in machine.measured if row.model == other]})
    line, notes = anchored(model, facts_of(model), rest, "float32", 64, 224, facts_of)
    rate = 64 / line.seconds(64, values(line.parameters))
    print(f"{name} {model} from {other}: {rate:.1f} against {rows[0].images_per_second}")
    assert other in notes[0] and 1 / (1 + FAMILY) < rate / rows[0].images_per_second < 1 + FAMILY


def test_cte_power_without_any_of_its_runs():
    """The recorded epochs of the course (45, 24, 12 s of 50,000 images of 128x128) from the machine's file alone."""
    network = counts.of("ResNet50V2", image_size=128, classes=10)
    for workers, seconds in ((1, 45), (2, 24), (4, 12)):
        found = predict("ResNet50V2", network, load("cte-power"), workers, 256, image_size=128, images=50_000)
        epoch = found.epoch_seconds
        print(f"{workers} V100: {epoch} against {seconds} s")
        assert abs(epoch.value / seconds - 1) < 0.25
