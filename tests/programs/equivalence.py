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
    first = [keras.Input((32, 32, 3)), layers.Rescaling(1 / 255), layers.AveragePooling2D(4), layers.Flatten()]
    return keras.Sequential([*first, layers.Dense(16, activation="tanh"), layers.Dense(10)])


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


def compared(model, alone, before):
    """How far a model is from that of one process, and how far that one came from where it was before."""
    found = {"moved": np.max(np.abs(numbers(alone) - before)), "error": np.max(np.abs(numbers(model) - numbers(alone)))}
    return {name: float(value) for name, value in found.items()} | {"weights": ranks.compare_weights(model)}


found = {"place": [rank, *ranks.where_ranks_run()], "cores": devices.cores()}
found |= {"rank": rank, "size": size, "steps": len(batches())}

# What each collective gives each rank; K does not divide the number of rows
rows = np.arange(2 * (2 * size + 1), dtype="float32").reshape(-1, 2) * (rank + 1)
given = {
    "allreduce": hvd.allreduce(rows),
    "sum": hvd.allreduce(keras.Variable(rows), op=hvd.Sum),
    "grouped": hvd.grouped_allreduce([rows, rows[0]])[1],
    "reducescatter": hvd.reducescatter(rows),
    "reducescatter_sum": hvd.reducescatter(tf.constant(rows), op=hvd.Sum),
    "allgather": hvd.allgather(rows[: rank + 1]),
    "broadcast": hvd.broadcast(rows, 1),
    "slices": hvd.allreduce(tf.IndexedSlices(tf.constant([[1.0, 2.0]]), [rank % 2], tf.constant([2, 2]))),
}


@tf.function
def in_a_graph(values):
    twice = hvd.allreduce(values, name="first"), hvd.allreduce(2 * values, name="second")
    return hvd.allgather(hvd.reducescatter(twice[0] + twice[1], name="third"), name="fourth")


given["graph"] = in_a_graph(tf.constant(rows))
found["collectives"] = {name: np.asarray(value).tolist() for name, value in given.items()}
found["refused"] = []
for collective in (hvd.reducescatter, hvd.allgather):
    try:
        collective(1.0)
    except hvd.HorovodError as problem:
        found["refused"].append(str(problem))

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

# Trainings: K ranks from different seeds against one process with the global batch, from rank 0's seed
OPTIMIZERS = {
    "momentum_clipped": lambda: keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.5),
    "adam_schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.5)),
}
for name, make in OPTIMIZERS.items():
    model, alone = network(100 + rank), network(100)
    before = numbers(model)
    history = train(model, hvd.DistributedOptimizer(make()), batches(), broadcast()).history
    reference = train(alone, make(), data.pipeline(dataset, GLOBAL, seed=5)).history
    found[name] = compared(model, alone, before) | {"start": float(before[0])}
    found[name] |= {"history": history, "reference": reference}

# Keras adds up the averages of 2 steps: as half as many steps with twice the batch
model, alone = network(200 + rank), network(200)
before, sgd = numbers(alone), keras.optimizers.SGD(0.2, gradient_accumulation_steps=2)
train(model, hvd.DistributedOptimizer(sgd), batches(), broadcast())
train(alone, keras.optimizers.SGD(0.2), data.pipeline(dataset, 2 * GLOBAL, seed=5))
found["every_2nd"] = compared(model, alone, before)

# Batch normalisation: statistics of each rank's own batches, averaged at the end of an epoch
keras.utils.set_random_seed(400 + rank)
layers = keras.layers
first = [keras.Input((32, 32, 3)), layers.Rescaling(1 / 255), layers.Conv2D(4, 3, strides=4)]
model = keras.Sequential([*first, layers.BatchNormalization(), layers.Dropout(0.3), layers.Flatten(), layers.Dense(10)])
train(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), batches(), broadcast())
found["batch_normalisation"] = ranks.compare_weights(model)
train(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), batches(), broadcast()[:1], epochs=1)
found["statistics_not_averaged"] = ranks.compare_weights(model)
# Statistics that only rank 0 has, as of a model that it loaded: with momentum 1 no step changes them
model = keras.Sequential([*first, layers.BatchNormalization(momentum=1.0), layers.Flatten(), layers.Dense(10)])
for weight in model.non_trainable_weights:
    weight.assign(weight + float(rank))
train(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), batches(), broadcast()[:1], epochs=1)
found["statistics_broadcast"] = ranks.compare_weights(model)

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
options = {"validation_data": shares, "validation_batch_size": 8, "callbacks": broadcast()}
history = model.fit(batches(), epochs=2, verbose=0, **options).history
found["validation"] = {key: history[key][-1] for key in ("val_loss", "val_accuracy")}
found["validation_of_all"] = model.evaluate(dataset.images, dataset.labels, batch_size=8, verbose=0, return_dict=True)
found["validation_of_this_rank"] = model.evaluate(*shares, batch_size=8, verbose=0, return_dict=True)

# Two epochs, saved by rank 0, and two more against four at once. The odd ranks do not load: they are given the state
fixed, adam = batches().cache(), OPTIMIZERS["adam_schedule"]


def fit(model, optimizer, epochs, **options):
    model.compile(hvd.DistributedOptimizer(optimizer), LOSS, metrics=["accuracy"], jit_compile=False)
    model.fit(fixed, epochs=epochs, verbose=0, shuffle=False, callbacks=broadcast(), **options)
    return model


whole, first = (fit(network(800 + rank), adam(), epochs) for epochs in (4, 2))
if rank == 0:
    first.save(out / "first.keras")
ranks.agree(saved="first")
resumed, forgetful = (keras.models.load_model(out / "first.keras") for _ in range(2))
found["loaded_optimizer_averages"] = averages(resumed.optimizer)  # no: it loads without Horovod
resumed = network(900 + rank) if rank % 2 else resumed
fit(resumed, adam() if rank % 2 else resumed.optimizer, 4, initial_epoch=2)
fit(forgetful, adam(), 4, initial_epoch=2)
found["resumed"] = compared(resumed, whole, numbers(forgetful)) | {"iterations": int(resumed.optimizer.iterations)}
(out / f"rank{rank}.json").write_text(json.dumps(found))
