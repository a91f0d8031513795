"""Started with K ranks by tests/hvd/test_hvd.py: what each rank read, computed and trained, as JSON, a file each."""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from labs import data, devices, hvd, ranks
from labs.hvd.optimizer import averages

GLOBAL, IMAGES, EPOCHS = 16, 72, 2  # 4 whole batches of 16, 8 images left out
out = Path(sys.argv[1])
hvd.init()
devices.pin(hvd.local_rank(), hvd.local_size())
rank, size = hvd.rank(), hvd.size()
dataset = data.load("digits", images=IMAGES)


def network(seed):
    """No batch normalisation and no dropout: each image's gradient is its own."""
    keras.utils.set_random_seed(seed)
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Rescaling(1 / 255),
            layers.AveragePooling2D(4),
            layers.Flatten(),
            layers.Dense(16, activation="tanh"),
            layers.Dense(10),
        ]
    )


LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train(model, optimizer, batches, callbacks=(), epochs=EPOCHS):
    model.compile(optimizer, loss=LOSS, metrics=["accuracy"], jit_compile=False)
    return model.fit(batches, epochs=epochs, shuffle=False, verbose=0, callbacks=list(callbacks))


def shard(seed=5):
    return data.order(dataset, GLOBAL, seed=seed).shard(size, rank)


def batches():
    return data.batches(dataset, shard(), GLOBAL // size)


def broadcast():
    return [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]


def numbers(model):
    return np.concatenate([np.ravel(weight) for weight in model.get_weights()])


found = {"place": ranks.place(), "cores": devices.cores(), "rank": rank, "size": size, "steps": len(batches())}

# Shards: the samples of two epochs, and of one's batches
both = shard()
found["samples"] = [[int(n) for n in both.as_numpy_iterator()] for _ in range(EPOCHS)]
found["checked"] = [[int(n) for n in shard] for shard in ranks.check_shards(shard(), IMAGES, dropped=IMAGES % GLOBAL)]

# The averaged gradient of one step, seen by an optimizer that does nothing but keep it
start = network(0)
images, labels = next(iter(batches()))
whole_images, whole_labels = next(iter(data.pipeline(dataset, GLOBAL, seed=5)))


def gradient(images, labels):
    with tf.GradientTape() as tape:
        losses = keras.losses.sparse_categorical_crossentropy(labels, start(images), from_logits=True)
        loss = tf.reduce_mean(losses)
    return tape.gradient(loss, [weight.value for weight in start.trainable_weights])


class Keep(keras.optimizers.SGD):
    def update_step(self, gradient, variable, learning_rate):
        kept.append(gradient)


kept = []
keeper = hvd.DistributedOptimizer(Keep(0.1))
keeper.apply(gradient(images, labels), start.trainable_weights)
full, own = gradient(whole_images, whole_labels), gradient(images, labels)
found["gradient_error"] = max(float(tf.reduce_max(abs(a - b))) for a, b in zip(kept, full, strict=True))
found["own_gradient_error"] = max(float(tf.reduce_max(abs(a - b))) for a, b in zip(own, full, strict=True))
found["gradient_scale"] = max(float(tf.reduce_max(abs(g))) for g in full)

# Trainings: K ranks from different seeds against one process with the effective batch, from rank 0's seed
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.2),
    "momentum_clipped": lambda: keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.5),
    "adam_schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.5)),
}
for name, make in OPTIMIZERS.items():
    model, alone = network(100 + rank), network(100)
    before = numbers(model)
    history = train(model, hvd.DistributedOptimizer(make()), batches(), broadcast())
    reference = train(alone, make(), data.pipeline(dataset, GLOBAL, seed=5))
    found[name] = {
        "start": float(before[0]),
        "moved": float(np.max(np.abs(numbers(alone) - before))),
        "error": float(np.max(np.abs(numbers(model) - numbers(alone)))),
        "weights": ranks.compare_weights(model),
        "loss": history.history["loss"],
        "reference_loss": reference.history["loss"],
        "accuracy": history.history["accuracy"],
        "reference_accuracy": reference.history["accuracy"],
        "same_process": [float(x) for x in numbers(model)[:3]],
    }

# Averaging every 2nd step: as half as many steps with twice the batch
model, alone = network(200 + rank), network(200)
train(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.2), backward_passes_per_step=2), batches(), broadcast())
train(alone, keras.optimizers.SGD(0.2), data.pipeline(dataset, 2 * GLOBAL, seed=5))
found["every_2nd"] = {
    "error": float(np.max(np.abs(numbers(model) - numbers(alone)))),
    "weights": ranks.compare_weights(model),
}
model, first = network(300), network(300)
train(
    model,
    hvd.DistributedOptimizer(keras.optimizers.SGD(0.2), backward_passes_per_step=3),
    batches().take(2),
    broadcast(),
    epochs=1,
)
found["moved_before_the_third"] = float(np.max(np.abs(numbers(model) - numbers(first))))

# Batch normalisation: statistics of each rank's own batches, averaged at the end of an epoch
keras.utils.set_random_seed(400 + rank)
layers = keras.layers
model = keras.Sequential(
    [
        keras.Input((32, 32, 3)),
        layers.Rescaling(1 / 255),
        layers.Conv2D(4, 3, strides=4),
        layers.BatchNormalization(),
        layers.Dropout(0.3),
        layers.Flatten(),
        layers.Dense(10),
    ]
)
train(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), batches(), broadcast())
found["batch_normalisation"] = ranks.compare_weights(model)
train(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), batches(), broadcast()[:1], epochs=1)
found["statistics_not_averaged"] = ranks.compare_weights(model)

# Loss scaling: a gradient that overflows on the last rank alone is left out by all
model = network(500)
scaled = hvd.DistributedOptimizer(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=2.0))
scaled.build(model.trainable_weights)
for step in range(3):
    gradients = [tf.ones(weight.shape) * (rank + 1) for weight in model.trainable_weights]
    if step == 1 and rank == size - 1:
        gradients[0] = gradients[0] * np.inf
    before = numbers(model)
    scaled.apply(gradients, model.trainable_weights)
    found.setdefault("scaled_moved", []).append(float(np.max(np.abs(numbers(model) - before))))

# Validation on uneven shards: 2 images for each rank but the first
model = network(600 + rank)
bounds = [0, *(IMAGES - 2 * others for others in range(size - 1, -1, -1))]
mine = slice(bounds[rank], bounds[rank + 1])
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), LOSS, metrics=["accuracy"], jit_compile=False)
shares = (dataset.images[mine], dataset.labels[mine])
history = model.fit(
    batches(), epochs=2, verbose=0, validation_data=shares, validation_batch_size=8, callbacks=broadcast()
).history
found["validation"] = {key: history[key][-1] for key in ("val_loss", "val_accuracy")}
found["validation_of_all"] = model.evaluate(dataset.images, dataset.labels, batch_size=8, verbose=0, return_dict=True)
found["validation_of_this_rank"] = model.evaluate(*shares, batch_size=8, verbose=0, return_dict=True)


# Two optimizers in one model, whose gradients have equal shapes
class Pair(keras.Model):
    def __init__(self, make):
        super().__init__()
        self.halves = [keras.layers.Dense(8), keras.layers.Dense(8)]
        self.last = make(keras.optimizers.SGD(0.05))
        self(tf.zeros((1, 8)))
        self.compile(make(keras.optimizers.SGD(0.1, momentum=0.9)), jit_compile=False)

    def call(self, x):
        return self.halves[1](self.halves[0](x))

    def train_step(self, data):
        x = tf.reshape(tf.cast(data[0], tf.float32), (-1, 32 * 32 * 3))[:, 1000:1008] / 255
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean((self(x) - x[:, ::-1]) ** 2)
        gradients = [tape.gradient(loss, half.trainable_weights) for half in self.halves]
        for optimizer, some, half in zip((self.optimizer, self.last), gradients, self.halves, strict=True):
            optimizer.apply(some, half.trainable_weights)
        return {"loss": loss}


def pair(seed, make):
    keras.utils.set_random_seed(seed)
    return Pair(make)


model, alone = pair(700 + rank, hvd.DistributedOptimizer), pair(700, lambda optimizer: optimizer)
before = numbers(alone)
model.fit(batches(), epochs=EPOCHS, verbose=0, callbacks=broadcast())
alone.fit(data.pipeline(dataset, GLOBAL, seed=5), epochs=EPOCHS, verbose=0)
found["two_optimizers"] = {
    "moved": float(np.max(np.abs(numbers(alone) - before))),
    "error": float(np.max(np.abs(numbers(model) - numbers(alone)))),
    "weights": ranks.compare_weights(model),
}

# Two epochs, saved by rank 0, and two more against four at once. The odd ranks do not load: they are given the state
fixed = batches().cache()
for name in ("momentum_clipped", "adam_schedule"):

    def fit(model, epochs, **options):
        return model.fit(fixed, epochs=epochs, verbose=0, shuffle=False, callbacks=broadcast(), **options)

    def compiled(model, optimizer):
        model.compile(hvd.DistributedOptimizer(optimizer), LOSS, metrics=["accuracy"], jit_compile=False)
        return model

    whole, first = (compiled(network(800 + rank), OPTIMIZERS[name]()) for _ in range(2))
    fit(whole, 4)
    fit(first, 2)
    if rank == 0:
        first.save(out / f"{name}.keras")
    ranks.agree(saved=name)
    resumed = network(900 + rank) if rank % 2 else keras.models.load_model(out / f"{name}.keras")
    compiled(resumed, OPTIMIZERS[name]() if rank % 2 else resumed.optimizer)
    forgetful = compiled(keras.models.load_model(out / f"{name}.keras"), OPTIMIZERS[name]())
    for model in (resumed, forgetful):
        fit(model, 4, initial_epoch=2)
    found[f"resumed_{name}"] = {
        "error": float(np.max(np.abs(numbers(resumed) - numbers(whole)))),
        "error_without_state": float(np.max(np.abs(numbers(forgetful) - numbers(whole)))),
        "iterations": int(resumed.optimizer.iterations),
        "weights": ranks.compare_weights(resumed),
    }

# Beside labs.hvd, horovod.tensorflow works as ever
import horovod.tensorflow

found["sum_of_ranks"] = float(horovod.tensorflow.allreduce(tf.constant(float(rank)), op=horovod.tensorflow.Sum))
# A saved model loads without Horovod
if rank == 0:
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse", jit_compile=False)
    model.save(out / "model.keras")
    found["loaded_optimizer_averages"] = averages(keras.models.load_model(out / "model.keras").optimizer)
(out / f"rank{rank}.json").write_text(json.dumps(found))
