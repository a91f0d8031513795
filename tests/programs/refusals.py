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
said = {}


def refused(name, action):
    try:
        action()
        said[name] = ""
    except Exception as problem:
        said[name] = f"{type(problem).__name__}: {problem}"


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


def built():
    optimizer = sgd()
    optimizer.build([keras.Variable([1.0])])
    return optimizer


scale = keras.optimizers.LossScaleOptimizer
pairs = tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
unknown = pairs.filter(lambda x, y: True)

refused("right", lambda: fit(wrapped()))
refused("right, unknown length with steps", lambda: fit(wrapped(), batches=unknown.repeat(), steps=3))
refused("not wrapped", lambda: fit(sgd()))
refused("wrapped by Horovod", lambda: fit(horovod.tensorflow.keras.DistributedOptimizer(sgd())))
refused("wrapped by both", lambda: hvd.DistributedOptimizer(horovod.tensorflow.keras.DistributedOptimizer(sgd())))
refused("wrapped twice", lambda: hvd.DistributedOptimizer(wrapped()))
refused("used before", lambda: hvd.DistributedOptimizer(built()))
refused("used with other passes", lambda: hvd.DistributedOptimizer(built(), backward_passes_per_step=2))
refused("no optimizer", lambda: hvd.DistributedOptimizer("sgd"))
refused("no passes", lambda: wrapped(backward_passes_per_step=0))
refused("half a pass", lambda: wrapped(backward_passes_per_step=0.5))
refused("passes and scaling", lambda: hvd.DistributedOptimizer(scale(sgd()), backward_passes_per_step=2))
refused("scaling outside", lambda: fit(scale(wrapped())))
refused("xla", lambda: fit(wrapped(), jit_compile=True))
refused("no such root", lambda: fit(wrapped(), root=2))
refused("uneven steps", lambda: fit(wrapped(), rows=8 - 2 * rank))
refused("uneven epochs", lambda: fit(wrapped(), epochs=1 + rank))
refused("unknown steps", lambda: fit(wrapped(), batches=unknown))
refused("unlike networks", lambda: fit(wrapped(), units=2 + rank))

# What goes wrong in `fit` on one rank, or in the order of callbacks
Broadcast, Average = hvd.callbacks.BroadcastGlobalVariablesCallback, hvd.callbacks.MetricAverageCallback


class Pair(keras.Model):
    """Trains its halves with optimizers of their own, as a GAN."""

    def __init__(self, first, second):
        super().__init__()
        self.half, self.other, self.seconds = keras.layers.Dense(3), keras.layers.Dense(3), {"other": second}
        self(x)
        self.compile(first, jit_compile=False)

    def call(self, x):
        return self.other(self.half(x))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean((y - self(x)) ** 2)
        for half, optimizer in ((self.half, self.optimizer), (self.other, self.seconds["other"])):
            optimizer.apply(tape.gradient(loss, half.trainable_weights), half.trainable_weights)
        return {"loss": loss}


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


def stop_in_third(model, batch, logs):
    model.stop_training = batch == 2


def compiled(layers=(), optimizer=None):
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(3)])
    model.compile(optimizer or wrapped(), loss="mse", jit_compile=False)
    return model


def go(*does, model=None, batches=None, epochs=3, callbacks=None, **options):
    model, batches = model or compiled(), pairs if batches is None else batches
    made = [Broadcast(), Average(), *does] if callbacks is None else callbacks
    model.fit(batches, epochs=epochs, verbose=0, callbacks=made, **options)


class Own(keras.Sequential):
    """Validates in its own way, which counts no samples."""

    def __init__(self):
        super().__init__([keras.Input((4,)), keras.layers.Dense(3)])
        self.compile(wrapped(), loss="mse", jit_compile=False)

    def test_step(self, data):
        return {"mine": tf.reduce_mean(self(data[0]))}


def unbuilt():
    model = keras.Sequential([keras.layers.Dense(3)])
    model.compile(wrapped(), loss="mse", jit_compile=False)
    return model


def with_attribute(optimizer):
    model = compiled()
    model.spare = [optimizer]
    return model


def with_sgd(*args, **options):
    return compiled(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(*args, **options)))


def batches_of(rows):
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(rows).take(2)


def bias_of_ones(model, at, logs):
    model.layers[-1].bias.assign(y[0])


keras_callbacks, decay = keras.callbacks, keras.optimizers.schedules.ExponentialDecay
slower = keras_callbacks.LearningRateScheduler(lambda epoch, rate: 0.1 / (1 + epoch))
plateau = keras_callbacks.ReduceLROnPlateau("loss", min_delta=1e9, patience=1)
stops = keras_callbacks.EarlyStopping("loss", min_delta=1e9)
within = keras_callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: stop(both, 0, 0) if batch == 1 else None)
both = compiled()
refused("two optimizers", lambda: go(model=Pair(wrapped(), wrapped())))
refused("second not wrapped", lambda: go(model=Pair(wrapped(), sgd())))
refused("first not wrapped", lambda: go(model=Pair(sgd(), wrapped())))
refused("not wrapped beside", lambda: go(model=with_attribute(sgd())))
refused("rates set everywhere", lambda: go(slower, plateau))
refused("rate set on one rank", lambda: go(*[slower][: 1 - rank]))
refused("rate set in the last epoch", lambda: go(Does("on_train_batch_begin", rate), epochs=1))
refused("other schedule", lambda: go(model=with_sgd(decay(0.1, 1 + rank, 0.5))))
refused("other momentum", lambda: go(model=with_sgd(0.1, momentum=rank / 2)))
other = keras.optimizers.Adam(0.1) if rank else sgd()
refused("other optimizer", lambda: go(model=compiled(optimizer=hvd.DistributedOptimizer(other))))
refused("weights set on one rank", lambda: go(Does("on_epoch_end", bias_of_ones)))
refused("batches of 5", lambda: go(batches=batches_of(5)))
refused("batches of 8 and 5", lambda: go(batches=batches_of(8 - 3 * rank)))
refused("last batches of 3 and 2", lambda: go(batches=batches_of(4).take(1).concatenate(batches_of(3 - rank).take(1))))
refused("validated on one rank", lambda: go(validation_data=(x, y) if rank == 0 else None))
refused("validated on unknown samples", lambda: go(model=Own(), validation_data=pairs.take(2 - rank)))
refused("stopped everywhere", lambda: go(stops))
refused("stopped everywhere within an epoch", lambda: go(within, model=both))
refused("stopped on one rank", lambda: go(Does("on_epoch_end", stop)))
refused("stopped on one rank in step 1", lambda: go(Does("on_train_batch_begin", stop)))
refused("begun later", lambda: go(initial_epoch=rank))
refused("not built", lambda: go(model=unbuilt()))
refused("synchronized", lambda: go(model=compiled([keras.layers.BatchNormalization(synchronized=True)])))
refused("callbacks of one rank", lambda: go(callbacks=[Broadcast(), Average()][: 2 - rank]))

options = argparse.Namespace(
    epochs=1,
    repeats=1,
    batch_size=64 // (1 + rank),
    run="x",
    runs=str(out / "runs"),
    seed=0,
    dataset="digits",
    image_size=32,
    images=None,
)
recorder = {"model": "SmallCNN", "strategy": "horovod", "workers": 2, "learning_rate": 0.01}
refused("batch", lambda: training.Recorder(options, **recorder, images=1797))
options.batch_size = 64
refused("data", lambda: training.Recorder(options, **recorder, images=1797 - rank))
options.epochs = 1


def ordered(*order):
    """A `fit` with a recorder among Horovod's callbacks; on the last rank in the order that was given last."""
    said = argparse.Namespace(**vars(options) | {"batch_size": 4})
    told = recorder | {"learning_rate": 0.1, "images": 8}
    made = {"B": Broadcast, "M": Average, "R": lambda: training.Recorder(said, **told)}
    callbacks = {key: made[key]() for key in "BMR"}
    go(callbacks=[callbacks[key] for key in order[rank % len(order)]], epochs=1)


refused("recorder last", lambda: ordered("BMR"))
refused("recorder before the mean", lambda: ordered("BRM"))
refused("recorder before the broadcast", lambda: ordered("RBM"))
refused("recorder at another place", lambda: ordered("BMR", "RBM"))

dataset = data.load("digits", images=60)
order = data.order(dataset, 8, seed=1)


def shards(numbers, dropped=4):
    return lambda: ranks.check_shards(numbers, 60, dropped)


refused("right shards", shards(order.shard(2, rank)))
refused("not sharded", shards(data.order(dataset, 8, seed=1)))
refused("other seeds", shards(data.order(dataset, 8, seed=rank).shard(2, rank)))
refused("same shard", shards(data.order(dataset, 8, seed=1).shard(2, 0)))
refused("too many shards", shards(data.order(dataset, 8, seed=1).shard(4, rank)))
refused("uneven shards", shards(tf.data.Dataset.range(59).shard(2, rank)))
refused("repeated", shards(data.order(dataset, 8, seed=1).shard(2, rank).repeat(2)))
refused("out of range", shards(tf.data.Dataset.range(58, 62).shard(2, rank)))
refused("agreed", lambda: ranks.agree(batch_size=64))
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
model.layers[0].kernel.assign(np.full((4, 3), rank))
refused("other weights", lambda: ranks.same_weights(model))
(out / f"rank{rank}.json").write_text(json.dumps(said))

# At last, for the others are left waiting in a step: one rank leaves an epoch before its end
hvd.callbacks.PATIENCE = 3
refused("stopped on one rank in step 3", lambda: go(Does("on_train_batch_begin", stop_in_third)))
(out / f"rank{rank}.json").write_text(json.dumps(said))
