"""labs.models: the networks of the course, and the memory of one training step."""

import numpy as np
import pytest

from labs import models


@pytest.fixture(scope="module")
def resnet():
    return models.network("ResNet50V2", 32, 10)


@pytest.fixture(scope="module")
def small():
    model = models.build("SmallCNN", 32, 10)
    model.build((None, 32, 32, 3))
    return model


def test_parameters_of_resnet50v2(resnet):
    # Keras documents 25.6 million for 1000 classes, 2,049,000 of them in the top layer (2048 x 1000 + 1000).
    assert resnet.count_params() == 25_613_800 - 2_049_000 + (2048 * 10 + 10)
    frozen = sum(int(np.prod(w.shape)) for w in resnet.non_trainable_weights)
    assert frozen == 45_440  # moving mean and variance of each batch normalisation


def test_uint8_images_in_probabilities_out(small):
    images = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), np.uint8)
    out = np.asarray(small(images))
    assert out.shape == (5, 10) and np.allclose(out.sum(1), 1, atol=1e-5)


def test_images_are_scaled_and_resized_in_the_model():
    layer = models.preprocessing(64)
    out = np.asarray(layer(np.array([[0, 255]], np.uint8).reshape(1, 1, 2, 1).repeat(3, axis=3)))
    assert out.shape == (1, 64, 64, 3) and out.min() == -1 and out.max() == 1


def test_unknown_model():
    for name in ("ResNet50", "resnet50v2", "", None):
        with pytest.raises(models.ModelError, match="Unknown model") as caught:
            models.build(name, 32, 10)
        assert all(known in str(caught.value) for known in models.NAMES) and "\n" not in str(caught.value)


def test_image_too_small():
    for name, size in (("ResNet50V2", 31), ("ResNet152V2", 8), ("SmallCNN", 7), ("SmallCNN", 0), ("SmallCNN", -4)):
        with pytest.raises(models.ModelError, match=f"not {size}x{size}"):
            models.build(name, size, 10)


def test_only_activations_grow_with_the_batch_and_linearly(resnet):
    one, two, many = (models.memory(resnet, batch, optimizer_slots=1) for batch in (1, 2, 64))
    for part in ("weights", "gradients", "optimizer"):
        assert one[part] == two[part] == many[part] > 0
    assert two["activations"] == 2 * one["activations"] and many["activations"] == 64 * one["activations"]


def test_memory_by_part_of_a_network_counted_by_hand(small):
    # 3 convolutions without bias, batch normalisation (scale, offset; 2 moving), dense 64 x 10 + 10
    convolutions = 9 * (3 * 16 + 16 * 32 + 32 * 64)
    trainable = convolutions + 2 * (16 + 32 + 64) + 650
    frozen = 2 * (16 + 32 + 64)
    # read again by backward: the image; what normalisation gets and what ReLU gives at 16, 8 and 4 pixels a side; the
    # input of the dense layer and the output of its softmax
    values = 32 * 32 * 3 + 2 * (16 * 16 * 16 + 8 * 8 * 32 + 4 * 4 * 64) + 64 + 10
    parts = models.memory(small, batch=3, optimizer_slots=2)
    assert parts == {
        "weights": 4 * (trainable + frozen),
        "gradients": 4 * trainable,
        "optimizer": 8 * trainable,
        "activations": 3 * 4 * values,
    }


def test_import_stays_light():
    import subprocess
    import sys

    code = "import sys, labs.models, labs.devices; print([m for m in ('tensorflow', 'keras') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
