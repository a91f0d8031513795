"""How far one step of SGD with `clipnorm` changes a weight matrix, on 1 replica of MirroredStrategy and on 4.

Started as `python -m lessons.large_batches.clipped CLIPNORM`; prints a list of rows in JSON.
"""

import json
import sys

from labs import data, devices  # import this first: it sets up TensorFlow
from lessons.faster_steps import networks

# isort: split
import keras
import numpy as np
import tensorflow as tf


def change(strategy, clipnorm, images, labels):
    """Length of the change of W in one step with rate 1 on all these images."""
    with strategy.scope():
        keras.utils.set_random_seed(1)
        network = networks.classifier(keras.layers.Flatten())
        network.compile(keras.optimizers.SGD(1.0, clipnorm=clipnorm), "sparse_categorical_crossentropy")
    before = network.get_weights()[0]
    network.fit(images, labels, batch_size=len(labels), shuffle=False, verbose=0)
    return float(np.linalg.norm(network.get_weights()[0] - before))


def main():
    clipnorm, workers = float(sys.argv[1]), devices.workers(4, pin=False, kind="cpu")
    strategies = {1: tf.distribute.get_strategy(), 4: tf.distribute.MirroredStrategy(devices=workers)}
    dataset = data.load("digits", images=64)
    different = dataset.images[:16], dataset.labels[:16]
    alike = [np.concatenate([part[:4]] * 4) for part in different]  # the same 4 for each replica
    rows = []
    for replicas, name, images in (
        (1, "the same 4 images, four times", alike),
        (4, "the same 4 images", alike),
        (4, "different images", different),
    ):
        found = change(strategies[replicas], clipnorm, *images)
        rows.append({"replicas": replicas, "each gets": name, "change": found})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
