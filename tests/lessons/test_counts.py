"""lessons.counts agrees with Keras, with published tables and with counting by hand."""

import math
import subprocess
import sys

import pytest

from labs.errors import UseError
from lessons import counts

# Networks


@pytest.mark.parametrize(
    ("name", "parameters", "billions"), [("ResNet50V2", 25_613_800, 3.48), ("MobileNetV2", 3_538_984, 0.30)]
)
def test_counts_agree_with_keras_and_with_published_tables(name, parameters, billions):
    import keras

    model = getattr(keras.applications, name)(weights=None)
    found = counts.from_model(model)
    assert found.parameters == model.count_params() == parameters
    assert found.multiply_adds / 1e9 == pytest.approx(billions, rel=0.02)
    assert found.tensor_bytes == [4 * math.prod(w.shape) for w in model.trainable_weights]


# By hand


def test_each_kind_of_layer_by_hand():
    """On 8 x 8 x 6: layers, multiply-adds, values that gradients read again."""
    import keras
    from keras import layers

    image, dense = 8 * 8 * 6, layers.Dense
    for chain, adds, kept in (
        ([layers.Conv2D(4, (3, 5), strides=2, padding="same")], 15 * 6 * 4 * 16, image),
        ([layers.Conv2D(4, 3, activation="relu")], 9 * 6 * 4 * 36, image + 36 * 4),
        ([layers.DepthwiseConv2D(3)], 9 * 6 * 36, image),
        ([dense(5, activation="softmax")], image * 5, image + 64 * 5),
        ([layers.ReLU(), layers.Conv2D(4, 3)], 9 * 6 * 4 * 36, image),  # the same tensor, kept once
        ([layers.ZeroPadding2D(), layers.Conv2D(4, 3)], 9 * 6 * 4 * 64, 10 * 10 * 6),
        ([layers.BatchNormalization(), layers.Activation("relu")], 0, 2 * image),
        ([layers.MaxPooling2D()], 0, image + image // 4),
        ([layers.ReLU(), layers.Flatten(), dense(5)], image * 5, image),  # Flatten hands its input's memory on
    ):
        found = counts.from_model(keras.Sequential([keras.Input((8, 8, 6)), *chain]))
        names = [layer.name for layer in chain]
        assert (names, found.multiply_adds, found.activation_bytes) == (names, adds, 4 * kept)
    frozen = keras.Sequential([keras.Input((3,)), dense(5, trainable=False), dense(2)])
    found = counts.from_model(frozen)
    assert (found.parameters, found.trainable, found.tensor_bytes) == (20 + 12, 12, [40, 8])
    parts = {"weights": 4 * 32, "gradients": 48, "optimizer": 2 * 48, "activations": 3 * found.activation_bytes}
    assert counts.memory(frozen, 3, 2) == parts
    with pytest.raises(UseError, match=r"is a Dense \(gelu\), of which this module does not know what it keeps"):
        counts.from_model(keras.Sequential([keras.Input((8, 8, 6)), dense(4, "gelu")]))


# Questions


def test_who_asks_for_a_network_loads_no_tensorflow(cold):
    code = "import sys; from lessons import counts; counts.of('SmallCNN', 48, 7); print('tensorflow' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_a_size_too_large_for_this_machine_is_counted_and_some_questions_have_no_answer(monkeypatch):
    assert counts.of("VGG16", 4096, 10).parameters > 34e9  # weights of 137 GB, which are never made
    with pytest.raises(UseError, match="InceptionV3 cannot be counted for 74x74 and 1000 classes: .*75"):
        counts.of("InceptionV3", 74)
    monkeypatch.setattr(counts.sys, "executable", "/bin/false")
    with pytest.raises(UseError, match="VGG19 cannot be counted .*: its process ended"):
        counts.of("VGG19", 33)
