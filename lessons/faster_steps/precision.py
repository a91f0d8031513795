"""One network in float32, bfloat16 and float16 with loss scaling: speed, memory, accuracy, and the types it stores.

    python -m lessons.faster_steps.precision [--rounds 4] [--steps 6] [--train 60]

All three networks are made in one process and take turns, in random order. Prints one line of JSON.
"""

import argparse
import json
import time

from labs import data, devices, jobs  # import this first: it sets up TensorFlow

# isort: split
import keras
import numpy as np
import tensorflow as tf

POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
BATCH = 64


def build(policy):
    """(model, optimizer) with this Keras dtype policy."""
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Rescaling(1 / 255)])
    for filters, stride in ((32, 1), (64, 2), (128, 2)):
        model.add(keras.layers.Conv2D(filters, 3, strides=stride, padding="same", activation="relu"))
    model.add(keras.layers.GlobalAveragePooling2D())
    model.add(keras.layers.Dense(10))
    model.add(keras.layers.Activation("softmax", dtype="float32"))
    optimizer = keras.optimizers.Adam(0.003)
    if policy == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def stepper(model, optimizer):
    """A function (images, labels) -> loss that trains once."""
    loss = keras.losses.SparseCategoricalCrossentropy()

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
            scaled = optimizer.scale_loss(value) if hasattr(optimizer, "inner_optimizer") else value
        optimizer.apply(tape.gradient(scaled, model.trainable_variables), model.trainable_variables)
        return value

    return step


def stored(model, optimizer):
    """{what: its dtype}, and the bytes of one image's activations (the outputs of the layers)."""
    conv = next(layer for layer in model.layers if isinstance(layer, keras.layers.Conv2D))
    kinds = {"weights": conv.kernel.dtype, "activations": conv.compute_dtype, "loss": model.layers[-1].compute_dtype}
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    kinds["optimizer"] = next(v.dtype for v in inner.variables if "momentum" in v.path)
    given = sum(
        np.prod(layer.output.shape[1:]) * tf.as_dtype(layer.compute_dtype).size
        for layer in model.layers
        if not isinstance(layer, keras.layers.InputLayer)
    )
    return kinds, int(given)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for option, value in (("--rounds", 4), ("--steps", 6), ("--train", 60)):
        parser.add_argument(option, type=int, default=value)
    args = parser.parse_args()
    devices.workers(1)
    dataset = data.load("digits")
    images, labels = tf.constant(dataset.images), tf.constant(dataset.labels)
    fixed, made, found = (images[:BATCH], labels[:BATCH]), {}, {}
    for policy in POLICIES:
        model, optimizer = build(policy)
        made[policy] = model, stepper(model, optimizer)
        kinds, size = stored(model, optimizer)
        found[policy] = {"stored": kinds, "activation_bytes": size, "seconds": []}
        made[policy][1](*fixed)
    for _, order in zip(range(args.rounds), jobs.orders(0, len(POLICIES)), strict=False):
        for policy in (POLICIES[place] for place in order):
            begin = time.perf_counter()
            for _ in range(args.steps):
                float(made[policy][1](*fixed))
            found[policy]["seconds"].append((time.perf_counter() - begin) / args.steps)
    order = np.random.default_rng(0).permutation(len(labels))
    train, rest = order[:1280], order[1280:]
    for policy, (model, step) in made.items():
        for number in range(args.train):
            batch = np.take(train, range(number * BATCH, (number + 1) * BATCH), mode="wrap")
            value = step(tf.gather(images, batch), tf.gather(labels, batch))
        right = np.argmax(model.predict(dataset.images[rest], verbose=0), 1) == dataset.labels[rest]
        found[policy] |= {"accuracy": float(right.mean()), "loss": float(value)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
