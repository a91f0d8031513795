"""Started with 2 ranks by tests/hvd/test_hvd.py: each mistake, and what labs.hvd and labs.ranks say to it; as JSON."""

import argparse
import json
import sys
from pathlib import Path

import horovod.tensorflow.keras
import keras
import numpy as np
import tensorflow as tf

from labs import data, devices, hvd, ranks, training

out = Path(sys.argv[1])
hvd.init()
devices.pin(hvd.local_rank(), hvd.local_size())
rank = hvd.rank()
x, y = np.ones((8, 4), "float32"), np.ones((8, 3), "float32")
said = []


def tried(expected, action, *arguments, **options):
    """Do it, and note a part of what must be said on this rank, "" for nothing, and what was said."""
    told = ""
    try:
        action(*arguments, **options)
    except Exception as problem:
        told = f"{type(problem).__name__}: {problem}"
    said.append([expected, told])


def fit(optimizer, units=3, rows=8, batches=None, steps=None, epochs=1, root=0, **options):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(units)])
    model.compile(optimizer, loss="mse", **{"jit_compile": False} | options)
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(root)]
    if batches is not None:
        return model.fit(batches, epochs=epochs, steps_per_epoch=steps, verbose=0, callbacks=callbacks)
    return model.fit(x[:rows], y[:rows, :units], epochs=epochs, batch_size=2, verbose=0, callbacks=callbacks)


def sgd():
    return keras.optimizers.SGD(0.1)


def wrapped(*args, **options):
    return hvd.DistributedOptimizer(sgd(), *args, **options)


scale = keras.optimizers.LossScaleOptimizer
APART = "Rank 1 and rank 0 have different networks before the first step (first"
pairs = tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
unknown = pairs.filter(lambda x, y: True)

tried("", fit, wrapped())
tried("", fit, wrapped(), batches=unknown.repeat(), steps=3)
tried("does not average gradients", fit, sgd())
tried("which averages nothing on Keras 3", fit, horovod.tensorflow.keras.DistributedOptimizer(sgd()))
tried("wrapped twice", hvd.DistributedOptimizer, wrapped())
tried("with loss scaling, hvd.DistributedOptimizer(", fit, scale(wrapped()))
tried("jit_compile=False", fit, wrapped(), jit_compile=True)
tried("There is no rank 2", fit, wrapped(), root=2)
tried("disagree on steps: rank 0 has 4, rank 1 has 3", fit, wrapped(), rows=8 - 2 * rank)
tried("disagree on epochs: rank 0 has 1, rank 1 has 2", fit, wrapped(), epochs=1 + rank)
tried("steps_per_epoch", fit, wrapped(), batches=unknown)
tried("disagree on network weight 0: rank 0 has (4, 2), rank 1 has (4, 3)", fit, wrapped(), units=2 + rank)

# What goes wrong in `fit` on one rank, or in the order of callbacks
Broadcast, Average = hvd.callbacks.BroadcastGlobalVariablesCallback, hvd.callbacks.MetricAverageCallback


class Does(keras.callbacks.Callback):
    """Does something at one place of `fit`, on the last rank alone."""

    def __init__(self, place, action):
        super().__init__()
        if rank == 1:
            setattr(self, place, lambda at, logs=None: action(self.model, at, logs))


def rate(model, at, logs):
    model.optimizer.learning_rate = 0.05


def stop(model, at, logs):
    model.stop_training = True


def compiled(layers=(), optimizer=None):
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(3)])
    model.compile(optimizer or wrapped(), loss="mse", jit_compile=False)
    return model


def go(*does, model=None, batches=None, epochs=3, callbacks=None, **options):
    model, batches = model or compiled(), pairs if batches is None else batches
    made = [Broadcast(), Average(), *does] if callbacks is None else callbacks
    model.fit(batches, epochs=epochs, verbose=0, callbacks=made, **options)


def unbuilt():
    model = keras.Sequential([keras.layers.Dense(3)])
    model.compile(wrapped(), loss="mse", jit_compile=False)
    return model


def with_sgd(*args, **options):
    return compiled(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(*args, **options)))


def batches_of(rows):
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(rows).take(2)


def bias_of_ones(model, at, logs):
    model.layers[-1].bias.assign(y[0])


keras_callbacks = keras.callbacks
slower = keras_callbacks.LearningRateScheduler(lambda epoch, rate: 0.1 / (1 + epoch))
plateau = keras_callbacks.ReduceLROnPlateau("loss", min_delta=1e9, patience=1)
stops = keras_callbacks.EarlyStopping("loss", min_delta=1e9)
within = keras_callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: stop(both, 0, 0) if batch == 1 else None)
both = compiled()
tried("", go, slower, plateau, stops, batches=batches_of(5))
tried("The learning rate of rank 0 is 0.05 and of rank 1 0.1, before epoch 2", go, *[slower][: 1 - rank])
tried("before the first step (first difference: sgd", go, Does("on_train_batch_begin", rate), epochs=1)
tried("the optimizer's momentum: rank 0 has 0.0, rank 1 has 0.5", go, model=with_sgd(0.1, momentum=rank / 2))
other = keras.optimizers.Adam(0.1) if rank else sgd()
tried("the optimizer: rank 0 has SGD, rank 1 has Adam", go, model=compiled(optimizer=hvd.DistributedOptimizer(other)))
tried("have different networks before epoch 2 (first difference: ", go, Does("on_epoch_end", bias_of_ones))
last = batches_of(4).take(1).concatenate(batches_of(3 - rank).take(1))
tried("Rank 0 has trained on 7 samples in epoch 1 and rank 1 on 6", go, batches=last)
tried("has measured val_loss in epoch 1 and rank 1 has not", go, validation_data=(x, y) if rank == 0 else None)
tried("", go, within, model=both)
tried("Rank 1 has ended its training, and rank 0 goes on", go, Does("on_epoch_end", stop))
tried("The model has no weights yet", go, model=unbuilt())
tried("Rank 0 compares its metrics and rank 1 whether it", go, callbacks=[Broadcast(), Average()][: 2 - rank])


# What rank 0 saves alone
saved, best = out / "saved.keras", compiled()
checkpoint = keras_callbacks.ModelCheckpoint(saved, "loss", save_best_only=True)
tried("", go, *[checkpoint][: 1 - rank], model=best)
np.save(out / f"best{rank}.npy", best.layers[-1].kernel)

# Ranks that begin apart, in `fit` and in a loop of one's own
tried(APART, go, callbacks=[Average()])
tried(APART, compiled().train_on_batch, x, y)


def equal_weights(seed=0):
    keras.utils.set_random_seed(1)
    model = compiled([keras.layers.Dropout(0.5, seed=seed)])
    keras.utils.set_random_seed(ranks.own_seed(1))
    return model


def on_batches(rate=0.1, momentum=0.0, pushed=False):
    model = equal_weights()
    model.optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(rate, momentum=0.9))
    model.optimizer.build(model.trainable_weights)
    model.optimizer.momentums[1].assign(y[0] * pushed)
    for _ in range(2):
        model.train_on_batch(x, y)
    ranks.require_same_weights(model)


def by_hand(*brings, **options):
    """A step of one's own, compiled; of two weights those have a gradient for which `brings` is true."""
    optimizer, weights = wrapped(**options), [keras.Variable(np.ones(3), name=name) for name in ("first", "second")]
    gradients = [tf.ones(3) if has else None for has in brings]
    step = tf.function(lambda: optimizer.apply(gradients, weights), autograph=False)
    for _ in range(2):
        step()


tried("", go, model=equal_weights(rank), callbacks=[Average()], epochs=1)
tried("", on_batches)
tried("/learning_rate)", on_batches, 0.1 + rank)
tried("bias_momentum)", on_batches, pushed=rank == 1)
tried("", by_hand, True, False)
tried("disagree on gradient 1 (second): rank 0 has a value, rank 1 has None", by_hand, True, rank == 0)
tried("gradient 0 (first): rank 0 has None, rank 1 has a value", by_hand, rank == 1, True)

Dense = keras.layers.Dense
initial = keras.initializers.RandomNormal(seed=rank)
named = Dense(2, lambda values: values, kernel_initializer=initial, name=f"mine{rank}")
drops = keras.layers.Dropout(0.5, name=f"drops{rank}")
tried("", go, model=compiled([named, drops]), epochs=1)


options = argparse.Namespace(epochs=1, repeats=1, run="x", runs=str(out / "runs"), seed=0, images=None)
vars(options).update(dataset="digits", image_size=32, batch_size=64 // (1 + rank))
tried("batch_size: rank 0 has 64, rank 1 has 32", training.Recorder, options, compiled(), images=1797)
options.batch_size = 64
tried("images: rank 0 has 1797, rank 1 has 1796", training.Recorder, options, compiled(), images=1797 - rank)


def ordered(*order, model=None):
    """A `fit` with a recorder among Horovod's callbacks; on the last rank in the order that was given last."""
    settings, model = argparse.Namespace(**vars(options) | {"batch_size": 4}), model or compiled()
    made = {"B": Broadcast, "M": Average, "R": lambda: training.Recorder(settings, model, images=8)}
    callbacks = {key: made[key]() for key in "BMR"}
    go(model=model, callbacks=[callbacks[key] for key in order[rank % len(order)]], epochs=1)


tried("", ordered, "BMR")
tried("MetricAverageCallback stands after the recorder", ordered, "BRM")
tried(APART, ordered, "RBM")
tried("MetricAverageCallback stands after the recorder", ordered, "RBM", model=equal_weights())

dataset = data.load("digits", images=60)
order = data.order(dataset, 8, seed=1)


def shards(numbers, dropped=4):
    return lambda: ranks.check_shards(numbers, 60, dropped)


tried("", shards(order.shard(2, rank)))
tried("Ranks 0 and 1 both read samples 0, 1, 2, 3, 4 and", shards(data.order(dataset, 8, seed=1)))
tried("common order. No rank reads samples", shards(data.order(dataset, 8, seed=rank).shard(2, rank)))
tried("Is the number of shards the number of ranks (2)?", shards(data.order(dataset, 8, seed=1).shard(4, rank)))
tried("Rank 0 reads 30 samples and rank 1 29", shards(tf.data.Dataset.range(59).shard(2, rank)))
tried("Rank 0 reads twice in one epoch: samples", shards(data.order(dataset, 8, seed=1).shard(2, rank).repeat(2)))
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
model.layers[0].kernel.assign(np.full((4, 3), rank))
tried("Rank 1 and rank 0 have different networks", ranks.require_same_weights, model)
deeper = keras.Sequential([keras.Input((4,)), *(keras.layers.Dense(4) for _ in range(1 + rank))])
tried("different networks now (first difference: their number)", ranks.compare_weights, deeper)
(out / f"rank{rank}.json").write_text(json.dumps(said))
