"""One gradient of each rank, before and after it is averaged over the ranks; then the gradient of all the images."""

from labs import data, devices, hvd  # import this first: it sets up TensorFlow

import keras
import tensorflow as tf

hvd.init()
devices.pin(hvd.local_rank(), hvd.local_size())
keras.utils.set_random_seed(1)  # the same weights on all ranks
digits = data.load("digits", images=64)
layers = [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(10, "softmax")]
network, loss = keras.Sequential(layers), keras.losses.SparseCategoricalCrossentropy()


def gradient(images, labels):
    """Of the mean loss of these images, with respect to the bias of the first class."""
    with tf.GradientTape() as tape:
        value = loss(labels, network(images))
    return tape.gradient(value, network.trainable_weights[-1])[0]


share = slice(hvd.rank(), None, hvd.size())  # every size-th image, from this rank's number on
mine = gradient(digits.images[share], digits.labels[share])
average = hvd.allreduce(mine)
print(f"rank {hvd.rank()}: {mine:+.5f} before, {average:+.5f} after", flush=True)
if hvd.rank() == 0:
    print(f"all 64 images in one process: {gradient(digits.images, digits.labels):+.5f}", flush=True)
