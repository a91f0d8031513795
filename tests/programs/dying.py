"""Started with 2 ranks by tests/hvd/test_hvd.py: trains SmallCNN; one rank dies in the second epoch, or none."""

import argparse
import os
import signal

import keras

from labs import data, devices, hvd, models, training

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4000)
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--die", choices=("exception", "kill", "never"))
parser.add_argument("--rank", type=int, default=1)
training.arguments(parser)
args = parser.parse_args()
hvd.init()
devices.pin(hvd.local_rank(), hvd.local_size())
dataset = data.load("digits", images=64)
train = data.batches(dataset, data.order(dataset, 32).shard(hvd.size(), hvd.rank()), 32 // hvd.size())
model = models.build("SmallCNN", 32, 10)
model.compile(
    hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
    jit_compile=False,
)


class Die(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1 and hvd.rank() == args.rank and args.die == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if epoch == 1 and hvd.rank() == args.rank and args.die == "exception":
            raise ZeroDivisionError(f"a mistake of rank {hvd.rank()}")


recorder = training.Recorder(
    args, model="SmallCNN", strategy="horovod", workers=hvd.size(), images=64, learning_rate=0.01
)
model.fit(
    train,
    epochs=args.epochs,
    shuffle=False,
    verbose=2 if hvd.rank() == 0 else 0,
    callbacks=[
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        Die(),
        recorder,
    ],
)
