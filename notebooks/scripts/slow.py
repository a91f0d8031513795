"""A training that is slower than necessary: a small network on an image folder of handwritten digits, on one worker.

Leave this script as it is. scripts/faster.py begins as a copy of it, and is yours to change.
"""

import argparse

from labs import data, devices, training  # import this first: it sets up TensorFlow
from lessons.faster_steps import feeding

import keras
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--rate", type=float, default=0.01, help="learning rate at batch 8 (default: 0.01)")
parser.add_argument("--precision", default="float32", help="Keras' dtype policy (default: float32)")
training.arguments(parser)
args = training.parse(parser)

devices.workers(1)
keras.config.set_dtype_policy(args.precision)
keras.utils.set_random_seed(args.seed)
learning_rate = args.rate * args.batch_size / 8
dataset = data.load(args.dataset)
files, validation = feeding.folder(dataset, args.images or 1024, args.runs)

# 1. The input
train = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files), seed=args.seed).map(feeding.read)
train = train.map(lambda image, label: (feeding.small(image), label)).batch(args.batch_size, drop_remainder=True)
train = feeding.as_written(train)  # TensorFlow adds nothing to it

# 2. The network
model = feeding.network()
model.compile(
    optimizer=keras.optimizers.SGD(learning_rate, momentum=0.9),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
    jit_compile=False,
)

# 3. What is called in each step
losses = []
fetch = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: losses.append(logs["loss"]))
callbacks = [fetch]

recorder = training.Recorder(args, model, images=len(files))
for _ in training.repeats(args, recorder, model):
    model.fit(train, epochs=args.epochs, validation_data=validation, verbose=2, callbacks=[*callbacks, recorder])
