"""What one worker under a strategy costs against none: processor time of a step within an epoch, in turns.

    python benchmarks/strategy.py                            ResNet50V2, 16 rounds of one step
    python benchmarks/strategy.py --model SmallCNN --steps 5 --rounds 30

One process, one core, one thread; one network without a strategy, one under OneDeviceStrategy, one under
MirroredStrategy with one replica, each with Keras' own step and the same batches. What begins a fit or an epoch is not
in it. Prints the ratios within rounds to the steps without a strategy, and how far the weights are apart at the end.
"""

import argparse
import os
import random
import time

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

from labs import models  # before TensorFlow: its start-up messages stay out
from labs.results import intervals

# isort: split
import keras
import numpy as np
import tensorflow as tf


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="ResNet50V2")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=1, help="in each turn")
    parser.add_argument("--rounds", type=int, default=16)
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    strategies = {
        "none": tf.distribute.get_strategy(),
        "OneDeviceStrategy": tf.distribute.OneDeviceStrategy("/cpu:0"),
        "MirroredStrategy": tf.distribute.MirroredStrategy(["/cpu:0"]),
    }
    trained, batches = {}, {}
    for name, strategy in strategies.items():
        keras.utils.set_random_seed(0)
        with strategy.scope():
            model = trained[name] = models.build(args.model, 32, 10)
            model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy", jit_compile=False)
        pipeline = fixed(args.batch)
        model.fit(pipeline.take(2), shuffle=False, verbose=0)  # traces
        batches[name] = iter(pipeline if name == "none" else strategy.experimental_distribute_dataset(pipeline))
    seconds, order = {name: [] for name in strategies}, random.Random(0)
    for number in range(args.rounds + 1):  # the first one is warm-up
        for name in order.sample(list(strategies), len(strategies)):
            begin = time.process_time()
            for _ in range(args.steps):
                loss = trained[name].train_function(batches[name])["loss"]
            float(loss)
            if number:
                seconds[name].append((time.process_time() - begin) / args.steps)
    for name, own in seconds.items():
        ratio = intervals.mean([one / none for one, none in zip(own, seconds["none"], strict=True)])
        low, high = ratio.interval or (ratio.value, ratio.value)
        pairs = zip(trained[name].get_weights(), trained["none"].get_weights(), strict=True)
        apart = max(float(np.abs(one - other).max()) for one, other in pairs)
        print(
            f"{name}: {1000 * np.median(own):.1f} ms a step, ratio {ratio.value:.3f} ({low:.3f} to {high:.3f}); "
            f"weights apart by {apart:g}"
        )


def fixed(batch):
    """The same random images again and again, in the pipeline as they are asked for."""
    numbers = np.random.default_rng(0)
    images = tf.constant(numbers.integers(0, 256, (batch, 32, 32, 3), dtype=np.uint8))
    labels = tf.constant(numbers.integers(0, 10, batch), tf.int64)
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.Dataset.from_tensors((images, labels)).repeat().prefetch(2).with_options(options)


if __name__ == "__main__":
    main()
