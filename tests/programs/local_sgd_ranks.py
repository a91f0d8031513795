"""Started with 2 ranks by tests/lessons/test_why_scaling_fails.py: local SGD of the solution against synchronous SGD.

A network with a layer that is not trained and one that is used twice, from different seeds on each rank, broadcast.
After that, the trainings that the check of it plays.
"""

import json
import runpy
import sys
from pathlib import Path

import horovod.tensorflow as horovod
import keras
import numpy as np
import tensorflow as tf

from labs import devices, hvd, ranks
from lessons.when_workers_do_not_help import equal_ranks

SCRIPT = Path(__file__).parents[2] / "solutions/scripts/local_sgd.py"
STEPS, BATCH = 12, 4
out = Path(sys.argv[1])
hvd.init()
devices.pin(hvd.local_rank(), hvd.local_size())
local_sgd = runpy.run_path(SCRIPT, run_name="a test")["local_sgd"]
loss = keras.losses.SparseCategoricalCrossentropy()


def network(weights=None):
    inputs, twice = keras.Input((6,)), keras.layers.Dense(6, "tanh")
    frozen = keras.layers.Dense(6, "tanh", trainable=False)
    model = keras.Model(inputs, keras.layers.Dense(3, "softmax")(twice(twice(frozen(inputs)))))
    if weights is not None:
        model.set_weights(weights)
    return model


def batches(rank):
    random = np.random.default_rng((7, rank))
    return [(random.normal(size=(BATCH, 6)).astype("float32"), random.integers(0, 3, BATCH)) for _ in range(STEPS)]


def synchronous(model, optimizer, batches):
    for images, labels in batches:
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        weights = model.trainable_variables
        optimizer.apply(tape.gradient(value, [weight.value for weight in weights]), weights)


def numbers(model):
    return np.concatenate([np.ravel(weight) for weight in model.get_weights()])


keras.utils.set_random_seed(100 + hvd.rank())
drawn = network()
start = [horovod.broadcast(weight.value, 0, name=f"start_{n}").numpy() for n, weight in enumerate(drawn.weights)]
whole = [tuple(map(np.concatenate, zip(*parts, strict=True))) for parts in zip(batches(0), batches(1), strict=True)]
found = {"drawn": float(numbers(drawn)[0]), "cases": {}}
for name, momentum, k in (("plain", 0.0, 1), ("momentum", 0.9, 1), ("every 3rd", 0.0, 3)):
    models = [network(start) for _ in range(3)]
    optimizers = [keras.optimizers.SGD(0.2, momentum=momentum) for _ in models]
    optimizers[1] = hvd.DistributedOptimizer(optimizers[1])
    for model, optimizer in zip(models, optimizers, strict=True):
        optimizer.build(model.trainable_variables)
    local_sgd(models[0], optimizers[0], loss, batches(hvd.rank()), k)
    synchronous(models[1], optimizers[1], batches(hvd.rank()))
    synchronous(models[2], optimizers[2], whole)
    local, averaged, alone = map(numbers, models)
    found["cases"][name] = {
        "against_averaged_gradients": float(np.abs(local - averaged).max()),
        "against_one_process": float(np.abs(local - alone).max()),
        "moved": float(np.abs(local - numbers(network(start))).max()),
        "frozen_moved": any((a.numpy() != b).any() for a, b in zip(models[0].weights[:2], start[:2], strict=True)),
        "identical": ranks.compare_weights(models[0])["identical"],
    }
found["check"] = [equal_ranks.train(local_sgd, hvd.rank(), **case) for case in equal_ranks.CASES]
(out / f"rank{hvd.rank()}.json").write_text(json.dumps(found))
