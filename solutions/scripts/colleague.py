"""A small network on handwritten digits, with Horovod, in any number of processes.

--batch_size is the global batch: the images of one step over all ranks.
"""

import argparse

from labs import data, devices, hvd, models, training  # import this first: it sets up TensorFlow

import keras

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch_size", type=int, default=64, help="images per step, over all ranks")
training.arguments(parser)
args = training.parse(parser)

hvd.init()
worker = devices.pin(hvd.local_rank(), hvd.local_size())
print(f"Rank {hvd.rank()} of {hvd.size()} on {worker}", flush=True)
keras.utils.set_random_seed(args.seed + hvd.rank())

dataset = data.load(args.dataset, images=args.images)
numbers = data.order(dataset, args.batch_size, seed=args.seed)
train = data.batches(dataset, numbers, args.batch_size // hvd.size())

learning_rate = 0.01 * hvd.size()
model = models.build("SmallCNN", image_size=args.image_size, classes=len(dataset.classes))
model.compile(
    optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(learning_rate)),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
    jit_compile=False,
)
if hvd.rank() == 0:
    print(f"Model SmallCNN {hvd.size()} workers")
    print("Strategy: horovod")
    print(f"Batch_size: {args.batch_size}")
    print(f"N_replicas: {hvd.size()}")
    print(f"Images: {len(dataset.images)}")
    print(f"Learning_rate: {learning_rate}", flush=True)

recorder = training.Recorder(args, model, images=len(dataset.images))
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(), recorder]
verbose = 2 if hvd.rank() == 0 else 0
for _ in training.repeats(args, recorder, model):
    model.fit(train, epochs=args.epochs, shuffle=False, verbose=verbose, callbacks=callbacks)
