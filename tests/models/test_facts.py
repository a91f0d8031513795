"""labs.models.counts agrees with TensorFlow's profiler and counting by hand; activations with measured memory."""

import contextlib
import dataclasses
import io
import json
import math
import os
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest

from labs import models
from labs.models import counts
from labs.models.counts import FactsError


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    """A cache folder of these tests' own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABS_CACHE", str(folder))
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        yield folder


@pytest.fixture(autouse=True)
def no_weights_owed():
    """Keras gives memory to weights without any when the next symbolic call ends: a process of ours has ended by then.

    This one goes on with other tests, in which one network of this file's would ask for 137 GB.
    """
    yield
    if "keras" in sys.modules:
        sys.modules["keras"].utils.clear_session()


@pytest.fixture
def nothing_counted(monkeypatch):
    """From here on, an answer can come from the cache alone."""

    def fail(*args):
        raise AssertionError(f"{args} was counted again")

    monkeypatch.setattr(counts, "_elsewhere", fail)


@pytest.fixture
def built_here(monkeypatch):
    """Networks are built in this process, which has loaded TensorFlow already: that saves seconds a network."""

    def run(command, **kwargs):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            counts.answer(*json.loads(command[-1]))
        return subprocess.CompletedProcess(command, 0, out.getvalue(), "")

    monkeypatch.setattr(counts, "subprocess", SimpleNamespace(run=run, DEVNULL=None))


# Published counts and an independent count


@pytest.mark.parametrize(
    ("name", "parameters", "billions"), [("ResNet50V2", 25_613_800, 3.48), ("ResNet152V2", 60_380_648, 10.91)]
)
def test_counts_of_the_two_networks_of_the_course(name, parameters, billions, built_here):
    found = counts.of(name)
    assert (found.model, found.image_size, found.classes) == (name, 224, 1000)
    assert found.parameters == parameters
    assert found.multiply_adds == pytest.approx(billions * 1e9, rel=0.01)
    assert found.uncounted == ()


def test_resnet152v2_over_resnet50v2(built_here):
    small, large = counts.of("ResNet50V2"), counts.of("ResNet152V2")
    assert large.multiply_adds / small.multiply_adds == pytest.approx(3.13, abs=0.01)
    small, large = counts.of("ResNet50V2", 32, 10), counts.of("ResNet152V2", 32, 10)  # as the course trains them
    assert large.gradient_bytes / small.gradient_bytes == pytest.approx(2.47, abs=0.01)


def profiled(model):
    """Multiply-adds of one image by TensorFlow's profiler, which counts 2 operations for each.

    Operations of convolutions and matrix products alone: the profiler also counts bias and batch normalisation.
    """
    import tensorflow as tf

    signature = tf.TensorSpec((1, *model.input_shape[1:]), tf.float32)
    graph = tf.function(lambda x: model(x, training=False)).get_concrete_function(signature).graph
    options = (
        tf.compat.v1.profiler.ProfileOptionBuilder(tf.compat.v1.profiler.ProfileOptionBuilder.float_operation())
        .with_empty_output()
        .build()
    )
    node, operations = tf.compat.v1.profiler.profile(graph, cmd="op", options=options), {}
    while node.children:  # a chain: one kind of operation below the other
        node = node.children[0]
        operations[node.name] = node.float_ops
    assert operations["Conv2D"] > 0
    return sum(operations.get(kind, 0) for kind in ("Conv2D", "DepthwiseConv2dNative", "MatMul")) / 2


@pytest.mark.parametrize("name", ["ResNet50V2", "ResNet152V2", "VGG16", "MobileNetV2"])
def test_multiply_adds_agree_with_the_profiler_of_tensorflow(name, built_here):
    import keras

    model = getattr(keras.applications, name)(weights=None)
    assert counts.of(name).multiply_adds == pytest.approx(profiled(model), rel=0.02)
    found = counts.of(name)
    assert found.parameters == model.count_params()
    assert found.tensor_bytes == tuple(4 * math.prod(w.shape) for w in model.trainable_weights)
    assert dataclasses.replace(counts.from_model(model), model=name) == found  # with weights in memory or without


# Activations against measured memory

STEPS = """
import sys
import keras
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
name, size = sys.argv[1], int(sys.argv[2])
model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=10)
loss, optimizer = keras.losses.SparseCategoricalCrossentropy(), keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)

@tf.function(input_signature=[tf.TensorSpec([None, size, size, 3]), tf.TensorSpec([None], tf.int64)])
def step(images, labels):
    with tf.GradientTape() as tape:
        value = loss(labels, model(images, training=True))
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(value, weights), weights, strict=True))
    return value

for batch in map(int, sys.argv[3:]):  # ascending: the peak so far is this batch's
    float(step(tf.zeros((batch, size, size, 3)), tf.zeros(batch, tf.int64)))
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(batch, 1024 * peak)
"""
# As in labs.measure.maxbatch: one thread, one arena, no oneDNN (it copies), freed memory returned.
ALONE = {
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}


def slope(name, size, batches):
    """Bytes by which the peak memory of a training step grows per image: a line through all batches but the first."""
    import numpy as np

    command = [sys.executable, "-c", STEPS, name, str(size), *map(str, batches)]
    done = subprocess.run(command, env=os.environ | ALONE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    batch, peak = np.array([line.split() for line in done.stdout.splitlines()], float)[1:].T
    return np.polyfit(batch, peak, 1)[0]


@pytest.mark.more("the memory of two networks' steps is measured")
@pytest.mark.parametrize(
    ("name", "size", "batches"), [("ResNet50V2", 96, (4, 8, 16, 24)), ("MobileNetV2", 64, (8, 16, 32, 64))]
)
def test_activations_predict_how_memory_grows_with_the_batch(name, size, batches):
    measured = slope(name, size, batches)
    assert counts.of(name, size, 10).activation_bytes == pytest.approx(measured, rel=0.25)


# By hand


def test_small_cnn_by_hand(built_here):
    found = counts.of("SmallCNN", 32, 10)
    kernels = (27 * 16, 144 * 32, 288 * 64)
    tensors = [t for kernel, n in zip(kernels, (16, 32, 64), strict=True) for t in (kernel, n, n)] + [64 * 10, 10]
    assert found.tensor_bytes == tuple(4 * t for t in tensors) and found.tensors == 11
    assert found.gradient_bytes == 4 * found.trainable == 4 * sum(tensors)
    assert found.parameters == sum(tensors) + 2 * (16 + 32 + 64)  # moving mean and variance
    assert found.multiply_adds == kernels[0] * 16**2 + kernels[1] * 8**2 + kernels[2] * 4**2 + 640
    # kept: the image; outputs of each convolution and each ReLU, not of the normalisation between; in and out of dense
    values = 32 * 32 * 3 + 2 * (16 * 16 * 16 + 8 * 8 * 32 + 4 * 4 * 64) + 64 + 10
    assert found.activation_bytes == 4 * values
    assert found.layers == 7 and found.uncounted == ()


def count(*layers, shape=(8, 8, 6)):
    import keras

    return counts.from_model(keras.Sequential([keras.Input(shape), *layers]))


def by_hand():
    """Rows of a layer on 8 x 8 x 6 (or another shape) and its multiply-adds."""
    from keras import layers

    return [
        (layers.Conv2D(4, 3), 9 * 6 * 4 * 36),
        (layers.Conv2D(4, 3, padding="same"), 9 * 6 * 4 * 64),
        (layers.Conv2D(4, (3, 5), strides=2, padding="same"), 15 * 6 * 4 * 16),
        (layers.Conv2D(4, 3, dilation_rate=2), 9 * 6 * 4 * 16),
        (layers.Conv2D(4, 3, groups=2, padding="same"), 9 * 3 * 4 * 64),
        (layers.DepthwiseConv2D(3, depth_multiplier=2), 9 * 12 * 36),
        (layers.SeparableConv2D(4, 3, strides=2, depth_multiplier=2, padding="same"), (9 * 12 + 12 * 4) * 16),
        (layers.Conv2DTranspose(4, 3, strides=2, padding="same"), 9 * 6 * 4 * 64),
        (layers.Dense(5), 64 * 6 * 5),
        (layers.Conv1D(4, 3), 3 * 6 * 4 * 6, (8, 6)),
        (layers.Conv3D(2, 2), 8 * 3 * 2 * 27, (4, 4, 4, 3)),
        (layers.BatchNormalization(), 0),
        (layers.MaxPooling2D(), 0),
        (layers.AveragePooling2D(2), 0),
        (layers.ReLU(), 0),
        (layers.ZeroPadding2D(), 0),
    ]


def test_multiply_adds_of_each_layer_by_hand():
    for layer, expected, *shape in by_hand():
        found = count(layer, shape=shape[0] if shape else (8, 8, 6))
        assert (layer.name, found.multiply_adds) == (layer.name, expected) and not found.uncounted


def test_what_is_kept_of_each_layer_by_hand():
    from keras import layers

    image, dense = 8 * 8 * 6, layers.Dense
    for chain, values in (
        ([layers.Conv2D(4, 3)], image),
        ([layers.ReLU()], image),
        ([layers.ReLU(), layers.ReLU()], 2 * image),
        ([layers.ReLU(), layers.Conv2D(4, 3)], image),  # the same tensor, kept once
        ([layers.ZeroPadding2D(), layers.Conv2D(4, 3)], 10 * 10 * 6),  # what was padded is not read again
        ([layers.Conv2D(4, 3, activation="relu")], image + 36 * 4),
        ([layers.Conv2D(4, 3, activation="silu")], image + 36 * 4),
        ([layers.Conv2D(4, 3, activation="silu"), layers.Flatten()], image + 36 * 4),
        ([layers.BatchNormalization(), layers.Activation("relu")], 2 * image),
        ([layers.MaxPooling2D()], image + image // 4),
        ([layers.AveragePooling2D(2)], 0),
        ([layers.ReLU(), layers.Flatten(), dense(5)], image),  # Flatten hands its input's memory on
        ([layers.ReLU(), layers.Activation("linear"), dense(5)], image),
        ([dense(5, activation="softmax")], image + 64 * 5),
        ([layers.SeparableConv2D(4, 3, depth_multiplier=2)], image + 36 * 12),
        ([layers.Dropout(0.5)], image // 4),
        ([layers.Dropout(0)], 0),
    ):
        names = [layer.name for layer in chain]
        assert (names, count(*chain).activation_bytes) == (names, 4 * values)


def test_a_layer_or_a_model_called_twice_counts_twice_but_has_its_weights_once():
    import keras
    from keras import layers

    image = keras.Input((8, 8, 6))
    shared = layers.Conv2D(6, 3, padding="same", use_bias=False)
    inner = keras.Sequential([keras.Input((8, 8, 6)), shared, layers.ReLU()])
    found = counts.from_model(keras.Model(image, inner(inner(image))))
    assert found.multiply_adds == 2 * 9 * 36 * 64
    assert (found.parameters, found.tensors, found.layers) == (9 * 36, 1, 1)
    assert found.activation_bytes == 3 * 4 * 8 * 8 * 6  # the image and two outputs of ReLU
    plain = layers.ReLU()(shared(layers.ReLU()(shared(image))))
    assert dataclasses.replace(counts.from_model(keras.Model(image, plain)), model=found.model) == found


def test_nested_models_count_as_their_layers(built_here):
    model = models.build("SmallCNN", 64, 10)
    model.build((None, 32, 32, 3))
    found, inner = counts.from_model(model), counts.of("SmallCNN", 64, 10)
    assert found.image_size == 32
    assert dataclasses.replace(found, model="SmallCNN", image_size=64) == inner


def test_layers_that_are_frozen_have_no_gradient():
    import keras

    first = keras.layers.Dense(5, trainable=False)
    found = count(first, keras.layers.Dense(2), shape=(3,))
    assert (found.parameters, found.trainable, found.tensor_bytes) == (20 + 12, 12, (40, 8))


def test_every_family_of_keras_applications_is_counted_completely():
    for name in (
        "ResNet50",
        "MobileNet",
        "MobileNetV3Small",
        "EfficientNetB0",
        "EfficientNetV2B0",
        "DenseNet121",
        "InceptionV3",
        "InceptionResNetV2",
        "Xception",
        "NASNetMobile",
        "ConvNeXtTiny",
    ):
        found = counts.from_model(counts._build(name, 96, 10))
        assert (name, found.uncounted) == (name, ())
        assert found.multiply_adds > found.trainable  # each weight but those of normalisation is used at least once


def test_layers_without_a_formula_are_named():
    import keras

    image = keras.Input((4, 6))
    attended = keras.layers.MultiHeadAttention(2, 3)(image, image)
    found = counts.from_model(keras.Model(image, keras.layers.Dense(5)(attended)))
    assert found.uncounted == ("MultiHeadAttention",) and found.multiply_adds == 4 * 6 * 5


# The cache


def test_first_call_asks_a_process_and_the_second_a_file_and_neither_loads_tensorflow(cold, cache):
    code = (
        "import sys; from labs.models import counts; found = counts.of('SmallCNN', 48, 7); "
        "print([m for m in ('tensorflow', 'keras') if m in sys.modules], found.multiply_adds); "
        "counts.subprocess = None; print(counts.of('SmallCNN', 48, 7) == found)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    expected = counts.from_model(counts._build("SmallCNN", 48, 7))
    assert said == [f"[] {expected.multiply_adds}", "True"]
    (file,) = (cache / "labs").rglob("*SmallCNN_48_7*")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert json.loads(file.read_text())["facts"]["multiply_adds"] == expected.multiply_adds


def test_answers_are_the_same_from_the_cache(nothing_counted, cache, monkeypatch):
    found = counts.Facts("Made", 32, 10, 5, 4, 16, 2, (8, 8), 99, 400, 3, ("Strange",))
    monkeypatch.setattr(counts, "_elsewhere", lambda *args: found)
    assert counts.of("Made", 32, 10) is found
    monkeypatch.setattr(counts, "_elsewhere", None)
    assert counts.of("Made", 32, 10) == found  # tuples again, not lists
    assert counts.of("Made", 32, 10) is not found


def test_a_file_that_is_damaged_or_outdated_is_counted_and_written_again(cache, monkeypatch):
    found = counts.Facts("Other", 32, 10, 5, 4, 16, 2, (8, 8), 99, 400, 3, ())
    monkeypatch.setattr(counts, "_elsewhere", lambda *args: found)
    counts.of("Other", 32, 10)
    (file,) = (cache / "labs").rglob("*Other_32_10*")
    good = file.read_text()
    wrong = good.replace("99", "98")
    text = {"KEEP KEY": good.replace('"tensors"', '"tenors"'), "OLD KEY": wrong.replace("keras ", "keras 0.")}
    for damage in ("", "{", "[]", "null", '{"key": 1}', "\udcff", '{"facts": {}}', "KEEP KEY", "OLD KEY"):
        file.write_bytes(text.get(damage, damage).encode("utf-8", "surrogateescape"))
        assert counts.of("Other", 32, 10) == found
        assert file.read_text() == good, damage


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path, monkeypatch):
    found = counts.Facts("Other", 32, 10, 5, 4, 16, 2, (8, 8), 99, 400, 3, ())
    monkeypatch.setattr(counts, "_elsewhere", lambda *args: found)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("LABS_CACHE", str(tmp_path / "file"))
    assert counts.of("Other", 32, 10) == found
    assert (tmp_path / "file").read_text() == "no folder"


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"XDG_CACHE_HOME": "{}/xdg", "LABS_CACHE": ""}, "xdg"),
        ({"XDG_CACHE_HOME": "", "LABS_CACHE": ""}, ".cache"),
        ({"XDG_CACHE_HOME": "{}/xdg", "LABS_CACHE": "~/mine"}, "mine"),
    ],
)
def test_where_the_cache_is(variables, folder, tmp_path, monkeypatch):
    found = counts.Facts("Other", 32, 10, 5, 4, 16, 2, (8, 8), 99, 400, 3, ())
    monkeypatch.setattr(counts, "_elsewhere", lambda *args: found)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    counts.of("Other", 32, 10)
    assert [p.relative_to(tmp_path).parts[:2] for p in tmp_path.rglob("*.json")] == [(folder, "labs")]


# Questions that have no answer


def test_unknown_network(cache, built_here):
    before = sorted(cache.rglob("*"))
    for name, near in (
        ("ResNet51", "ResNet50"),
        ("resnet50v2", "ResNet50V2"),
        ("ResNet-101", "ResNet101"),
        ("SmallCCN", "SmallCNN"),
        ("Qwertz", "keras.applications"),
        ("", "keras.applications"),
        (None, "keras.applications"),
        ("../../a\0b", "keras.applications"),
        ("include_top", "keras.applications"),
    ):
        with pytest.raises(FactsError, match="No network is called") as caught:
            counts.of(name)
        assert near in str(caught.value) and "\n" not in str(caught.value) and caught.value.code == 2
    assert sorted(cache.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "size", "least"), [("ResNet50V2", 31, "32"), ("InceptionV3", 74, "75"), ("SmallCNN", 7, "8x8")]
)
def test_images_too_small(name, size, least, built_here):
    with pytest.raises(FactsError, match=f"{name} cannot be built for {size}x{size} ") as caught:
        counts.of(name, size)
    assert least in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_wrong_comes_back_from_the_process_that_builds():
    with pytest.raises(FactsError, match="Did you mean ResNet50 "):
        counts.of("ResNet\0", 224)


def test_sizes_and_classes_that_count_nothing(nothing_counted):
    for value in (0, -224, 2.5, "224", True, None, math.nan):
        with pytest.raises(FactsError, match="image_size is .* counts nothing"):
            counts.of("ResNet50V2", value)
        with pytest.raises(FactsError, match="classes is .* counts nothing"):
            counts.of("ResNet50V2", 224, value)


def test_a_size_too_large_for_this_machine_is_counted_all_the_same(built_here):
    found = counts.of("VGG16", 4096, 10)  # weights of 137 GB, which are never made
    assert found.parameters > 34e9


def test_the_process_that_builds_may_fail(monkeypatch):
    monkeypatch.setattr(counts.sys, "executable", "/bin/false")
    with pytest.raises(FactsError, match="VGG19 was not counted: .* status 1 and said: nothing"):
        counts.of("VGG19", 33)


def test_models_without_a_graph_or_without_sizes():
    import keras

    class Mine(keras.Model):
        pass

    for model in (Mine(), models.build("SmallCNN", 32, 10), None):
        with pytest.raises(FactsError, match="no graph of layers"):
            counts.from_model(model)
    image = keras.Input((None, None, 3))
    with pytest.raises(FactsError, match="unknown size"):
        counts.from_model(keras.Model(image, keras.layers.Conv2D(4, 3)(image)))
