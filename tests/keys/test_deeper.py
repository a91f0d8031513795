"""The keyed answers of notebooks 25, 26 and 27 are true: each test computes what its name states."""

import json
import os
import re
import subprocess
import sys

import pytest

from lessons.where_a_step_goes import pictures, what_if

# Keras on JAX: the gradient of a confident mistake on one device, then what a batch normalisation takes on two.
ON_JAX = """
import json
from labs import devices
names = devices.workers_on_jax(2)
import jax, keras, numpy as np

def loss(scores):
    return keras.ops.sum(keras.losses.sparse_categorical_crossentropy(np.array([0]), keras.ops.softmax(scores)))

gradient = jax.grad(loss)(np.array([[0.0, 40.0]], "float32"))
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=names))
layer = keras.layers.BatchNormalization(momentum=0.0)
model = keras.Sequential([keras.Input((1,)), layer, keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.0), loss="mse")
images = np.repeat([[0.0], [2.0]], 32, axis=0).astype("float32")  # the first device's 32, then the second one's
model.train_on_batch(images, images)
split = [len(part.data) for part in model.trainable_weights[0].value.addressable_shards]
found = [float(variable.numpy()[0]) for variable in (layer.moving_mean, layer.moving_variance)]
print(json.dumps({"gradient": np.abs(gradient).max().item(), "taken": found, "devices": len(split)}))
"""


@pytest.fixture(scope="module")
def on_jax(needs_jax):
    env = os.environ | {"KERAS_BACKEND": "jax", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", ON_JAX], env=env, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_stores_weights_and_optimizer_in_float32_and_activations_in_2_bytes(policy):
    """memory.2."""
    import keras
    import tensorflow as tf

    from lessons.faster_steps import precision

    before = keras.config.dtype_policy()
    try:
        model = precision.build(policy)
    finally:
        keras.config.set_dtype_policy(before)
    assert hasattr(model.optimizer, "inner_optimizer") == (policy == "mixed_float16")  # which scales the loss
    state = [v for v in model.optimizer.variables if re.search("moment|veloc", v.path)]
    assert {v.dtype for v in [*model.weights, *state]} == {"float32"} and len(state) == 2 * len(model.trainable_weights)
    first = next(layer for layer in model.layers if isinstance(layer, keras.layers.Conv2D))
    assert first(tf.zeros((1, 32, 32, 3))).dtype == policy.removeprefix("mixed_")


def test_an_exchange_of_equal_length_comes_from_bytes_or_from_messages_and_most_of_it_is_hidden():
    """step.4: what the exchange adds to a step, of two links."""

    def added(bandwidth, latency):
        return pictures.messages(4, bandwidth, latency)[-1][2] - pictures.STEP["backward"]

    bytes_alone = added(5.0, 0.0)
    latency = next(each for each in range(10_000) if added(400.0, each) >= bytes_alone)  # of a fast link
    assert added(400.0, latency) == pytest.approx(bytes_alone, rel=0.01) and bytes_alone > 10 * added(400.0, 0.0) > 0
    # That most of it is hidden: tests/lessons/test_timeline.py


def test_without_fusion_the_latency_of_its_messages_puts_resnet152v2_behind():
    """step.7: from 32 workers on."""

    def ahead(**settings):
        small, large = (what_if.efficiencies(name, batch=64, bandwidth=25, **settings) for name in what_if.NAMES)
        return {workers: large[workers] > small[workers] for workers in what_if.WORKERS if workers > 1}

    assert all(ahead(fusion=128).values())
    assert all(larger == (workers < 32) for workers, larger in ahead(fusion=0).items())


def test_after_a_softmax_keras_gives_a_confident_mistake_a_gradient_on_tensorflow_and_none_on_jax(on_jax):
    """engines.3: on a single device."""
    import keras
    import tensorflow as tf

    scores = tf.constant([[0.0, 40.0]])

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = keras.losses.sparse_categorical_crossentropy(tf.constant([0]), keras.ops.softmax(scores))
        return tape.gradient(value, scores)

    assert abs(gradient().numpy()).max() == pytest.approx(1.0) and on_jax["gradient"] == 0.0


def test_on_two_devices_of_jax_a_batch_normalisation_takes_the_whole_batch(on_jax):
    """engines.4: 32 zeros on one device and 32 twos on the other have a mean of 1 and a variance of 1."""
    assert on_jax["devices"] == 2 and on_jax["taken"] == pytest.approx([1.0, 1.0])
