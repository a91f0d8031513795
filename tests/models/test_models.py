"""labs.models: the networks of the course, and the memory of one training step."""

import numpy as np
import pytest

from labs import models
from labs.errors import UseError


def test_networks_take_small_uint8_images_and_give_probabilities():
    model = models.build("SmallCNN", 64, 10)
    out = np.asarray(model(np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), np.uint8)))
    assert out.shape == (5, 10) and np.allclose(out.sum(1), 1, atol=1e-5)
    scaled = np.asarray(models.preprocessing(64)(np.array([0] * 3 + [255] * 3, np.uint8).reshape(1, 1, 2, 3)))
    assert scaled.shape == (1, 64, 64, 3) and scaled.min() == -1 and scaled.max() == 1
    with pytest.raises(UseError, match="Unknown model 'resnet50v2'.*ResNet50V2, ResNet101V2, .*SmallCNN"):
        models.build("resnet50v2", 32, 10)
    for name, size in (("ResNet50V2", 31), ("SmallCNN", 7), ("SmallCNN", -4)):
        with pytest.raises(UseError, match=f"not {size}x{size}"):
            models.build(name, size, 10)
