"""Started with 2 ranks by tests/hvd/test_hvd.py: each mistake, and what labs.hvd and labs.ranks say to it; as JSON."""

import argparse
import contextlib
import io
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
        hvd.check._warn.cache_clear()
        with contextlib.redirect_stderr(io.StringIO()) as warned:
            action()
        said[name] = "\n".join(line for line in warned.getvalue().splitlines() if line.startswith("Warning: "))
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


def rate_in_third(model, batch, logs):
    if batch == 2:
        rate(model, batch, logs)


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
refused("rate set in the last epoch", lambda: go(Does("on_train_batch_begin", rate_in_third), epochs=1))
refused("rate set in the first step", lambda: go(Does("on_train_batch_begin", rate), epochs=1))
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


# What several ranks would write, and what one of them does alone
def on_every_rank(callback):
    return lambda: go(callback, epochs=1)


saved = out / "saved.keras"
refused("checkpoint on every rank", on_every_rank(keras_callbacks.ModelCheckpoint(saved)))
refused("log on every rank", on_every_rank(keras_callbacks.CSVLogger(out / "log.csv")))
refused("backup on every rank", on_every_rank(keras_callbacks.BackupAndRestore(out / "backup")))
best, backup = compiled(), keras_callbacks.BackupAndRestore(out / f"backup{rank}")
checkpoint = keras_callbacks.ModelCheckpoint(saved, "loss", save_best_only=True)
refused("checkpoint of rank 0, backup of each", lambda: go(backup, *[checkpoint][: 1 - rank], model=best))
np.save(out / f"best{rank}.npy", best.layers[-1].kernel)

# Ranks that begin apart, in `fit` and in a loop of one's own
refused("nothing but the mean of metrics", lambda: go(callbacks=[Average()]))
refused("no callbacks", lambda: go(callbacks=[]))
refused("train_on_batch", lambda: compiled().train_on_batch(x, y))
refused("every second batch", lambda: compiled(optimizer=wrapped(backward_passes_per_step=2)).train_on_batch(x, y))


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
    ranks.same_weights(model)


def by_hand(*brings, **options):
    """A step of one's own, compiled; of two weights those have a gradient for which `brings` is true."""
    optimizer, weights = wrapped(**options), [keras.Variable(np.ones(3), name=name) for name in ("first", "second")]
    gradients = [tf.ones(3) if has else None for has in brings]
    step = tf.function(lambda: optimizer.apply(gradients, weights), autograph=False)
    for _ in range(2):
        step()


refused("equal weights, no broadcast", lambda: go(model=equal_weights(rank), callbacks=[Average()], epochs=1))
refused("equal weights in a loop", on_batches)
refused("other rate in a loop", lambda: on_batches(0.1 + rank))
refused("other momentum in a loop", lambda: on_batches(pushed=rank == 1))
refused("a weight without gradient", lambda: by_hand(True, False))
refused("no gradient on one rank", lambda: by_hand(True, rank == 0))
refused("no gradient on rank 0, in two passes", lambda: by_hand(rank == 1, True, backward_passes_per_step=2))

# One rank that is set otherwise, or by itself
Dense = keras.layers.Dense


def with_loss(loss, layers=(), x=x, y=y, **options):
    model = keras.Sequential([keras.Input(x.shape[1:]), *layers])
    model.compile(wrapped(), loss, jit_compile=False, **options)
    return lambda: go(model=model, batches=tf.data.Dataset.from_tensor_slices((x, y)).batch(2), epochs=1)


activation = ["relu", "tanh"][rank]
refused("other activation", lambda: go(model=compiled([Dense(2, activation)])))
refused("other activation in two", lambda: go(model=compiled([keras.Sequential([Dense(2, activation)])])))
refused("other precision", lambda: go(model=compiled([Dense(2, dtype=["float32", "mixed_float16"][rank])])))
refused("one more layer", lambda: go(model=compiled([keras.layers.ReLU()] * rank)))
refused("other loss", with_loss(["mse", "mae"][rank], [Dense(3)]))
refused("other loss of a class", with_loss(keras.losses.Huber(1.0 + rank), [Dense(3)]))
initial = keras.initializers.RandomNormal(seed=rank)
named = Dense(2, lambda values: values, kernel_initializer=initial, name=f"mine{rank}")
drops = keras.layers.Dropout(0.5, name=f"drops{rank}")
refused("other names, initial weights, seeds", lambda: go(model=compiled([named, drops]), epochs=1))


def own_metric(epoch, logs):
    logs["own"] = (1 - 2 * rank) * epoch


own = keras_callbacks.LambdaCallback(on_epoch_end=own_metric)


def restores():
    return keras_callbacks.EarlyStopping("own", mode="min", patience=9, restore_best_weights=True)


refused("restored before the mean", lambda: go(callbacks=[Broadcast(), own, restores(), Average()]))
refused("restored after the mean", lambda: go(callbacks=[Broadcast(), own, Average(), restores()]))

# What trains, and is warned of once
tokens, each = np.arange(32).reshape(8, 4) % 5, np.ones((8, 4, 1))
embedding = keras.layers.Embedding(5, 3, mask_zero=True)
twice = compiled([keras.layers.Dropout(0.5, seed=1)])
refused("dropout with equal seeds", lambda: [go(model=twice, epochs=1), go(model=twice, epochs=1)])
refused("sum", with_loss(keras.losses.MeanSquaredError(reduction="sum"), [Dense(3)]))
pooled = [keras.layers.Embedding(5, 3, mask_zero=True), keras.layers.GlobalAveragePooling1D(), Dense(3)]
refused("mask that ends before the loss", with_loss("mse", pooled, tokens))
refused("masked", with_loss("mse", [embedding, Dense(1)], tokens, each))


def weighted_metrics():
    """Raises AssertionError unless these are the means over all ranks, where one has more weight than the other."""
    weights = np.linspace(0, 1, 8, dtype="float32") + 3 * rank
    model = keras.Sequential([keras.Input((4,)), Dense(3)])
    still = hvd.DistributedOptimizer(keras.optimizers.SGD(0.0))
    model.compile(still, "mse", metrics=["mae"], weighted_metrics=["mae", "mse"], jit_compile=False)
    inputs, wanted = x * (1 + rank), y
    data = inputs, wanted, weights
    fitted = model.fit(*data[:2], 8, 1, 0, [Broadcast(), Average()], sample_weight=weights, validation_data=data)
    error = model(inputs).numpy() - wanted
    by_rank = ranks.gather((weights, abs(error).mean(1), (error**2).mean(1)), "its errors")
    weights, absolute, square = (np.concatenate(parts) for parts in zip(*by_rank, strict=True))
    means = {"mae": absolute.mean(), "weighted_mae": np.average(absolute, weights=weights)}
    means |= {"mse": np.average(square, weights=weights), "loss": (square * weights).mean()}
    for name, mean in means.items():
        for key in (name, f"val_{name}"):
            found = fitted.history[key][0]
            assert abs(found - mean) < 1e-5 * mean, f"{key} is {found}, and the mean of all {mean}"


refused("weighted metrics", weighted_metrics)

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
