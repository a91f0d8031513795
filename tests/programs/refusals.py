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
