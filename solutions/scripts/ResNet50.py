"""ResNet50V2 on 1, 2 or 4 workers of one machine, with MirroredStrategy (tasks T5 and T6).

A worker is a GPU, or a CPU core where there is no GPU. --batch_size is the global batch:
the images of one step over all workers.
"""

import argparse

from labs import data, devices, models, training  # import this first: it sets up TensorFlow

import keras
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch_size", type=int, default=256, help="images per step, over all workers")
parser.add_argument("--n_gpus", type=int, default=1, help="workers: GPUs, or cores where there is no GPU")
training.arguments(parser)
args = training.parse(parser)

keras.utils.set_random_seed(args.seed)
workers = devices.workers(args.n_gpus)  # ["GPU:0", "GPU:1"], or logical CPU devices of one core each
dataset = data.load(args.dataset, images=args.images)
train = data.pipeline(dataset, args.batch_size, workers=args.n_gpus, seed=args.seed)

# One copy of the model on each of these workers.
### BEGIN SOLUTION
strategy = tf.distribute.MirroredStrategy(devices=workers)
### END SOLUTION
# The linear rule: the rate of one worker is 0.01.
### BEGIN SOLUTION
learning_rate = 0.01 * args.n_gpus
### END SOLUTION

print(f"Model ResNet50V2 {args.n_gpus} workers")
print(f"Batch_size: {args.batch_size}")
print(f"N_replicas: {strategy.num_replicas_in_sync}")
print(f"Images: {len(dataset.images)}")
print(f"Learning_rate: {learning_rate}", flush=True)

with strategy.scope():  # variables are created in here, so that each worker gets its copy
    ### BEGIN SOLUTION
    network = keras.applications.ResNet50V2(
        include_top=True, weights=None, classes=len(dataset.classes), input_shape=(args.image_size, args.image_size, 3)
    )
    ### END SOLUTION
    model = keras.Sequential([models.preprocessing(args.image_size), network])
    model.compile(
        optimizer=keras.optimizers.SGD(learning_rate),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )

recorder = training.Recorder(args, model, images=len(dataset.images))
for _ in training.repeats(args, recorder, model):
    # Train; verbose=2 prints one line per epoch, which is your log. The data is shuffled already.
    ### BEGIN SOLUTION
    model.fit(train, epochs=args.epochs, shuffle=False, verbose=2, callbacks=[recorder])
    ### END SOLUTION
