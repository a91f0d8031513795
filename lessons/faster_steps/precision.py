"""One network in float32, bfloat16 and float16 with loss scaling: speed, memory, accuracy, and the types it stores.

    python -m lessons.faster_steps.precision OPTIONS        OPTIONS: JSON, the arguments of `main`

All three networks are made in one process and take turns, in random order. Prints one line of JSON.
"""

import json
import random
import sys
from statistics import fmean

from labs import data, devices  # import this first: it sets up TensorFlow
from labs.measure.step import timed
from lessons.faster_steps import networks

# isort: split
import keras
import numpy as np
import tensorflow as tf

POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
SLOW = 1  # seconds: where a step takes longer, as in float16 on some CPUs, it is taken once a round, not trained


def build(policy):
    """The network with this Keras dtype policy, ready to train; in float16 Keras scales its loss."""
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(0)
    model = networks.classifier(*networks.convolutions(), keras.layers.GlobalAveragePooling2D())
    model.compile(keras.optimizers.Adam(0.003), "sparse_categorical_crossentropy", jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model


def stored(model):
    """{what: its dtype}, and the bytes of one image's activations (the outputs of the layers)."""
    _, conv, *_, last = model.layers
    kinds = {"weights": conv.kernel.dtype, "activations": conv.compute_dtype, "loss": last.compute_dtype}
    kinds["optimizer"] = next(v.dtype for v in model.optimizer.variables if "momentum" in v.path)
    given = sum(np.prod(layer.output.shape[1:]) * tf.as_dtype(layer.compute_dtype).size for layer in model.layers)
    return kinds, int(given)


def main(rounds=4, steps=6, train=60, batch=64):
    """rounds: in which the networks take turns, with so many steps of `batch` images each; train: steps before the
    accuracy is taken. The accuracy is a share of the images, or says that a policy is too slow here."""
    devices.workers(1)
    digits, models, found, slow = data.load("digits"), {}, {}, set()
    for policy in POLICIES:
        models[policy] = build(policy)
        kinds, size = stored(models[policy])
        found[policy] = {"stored": kinds, "activation_bytes": size, "seconds": []}

    def step(policy, numbers):
        models[policy].train_on_batch(digits.images[numbers], digits.labels[numbers])

    order, turns = np.random.default_rng(0).permutation(len(digits.labels)), random.Random(0)
    known, rest = order[:1280], order[1280:]
    for number in range(rounds + 1):
        for policy in turns.sample(POLICIES, len(POLICIES)):
            count = 2 if number == 0 else 1 if policy in slow else steps
            seconds = timed(lambda: step(policy, known[:batch]), count)  # noqa: B023, called at once
            if number:
                found[policy]["seconds"].append(fmean(seconds))
            elif seconds[1] > SLOW:  # the first step traces
                slow.add(policy)
    for policy, model in models.items():
        if policy in slow:
            found[policy]["accuracy"] = "too slow to train here"
            continue
        for numbers in np.resize(known, (train, batch)):
            step(policy, numbers)
        right = np.argmax(model.predict(digits.images[rest], verbose=0), 1) == digits.labels[rest]
        found[policy]["accuracy"] = float(right.mean())
    print(json.dumps(found))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
