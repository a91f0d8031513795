"""Gradient accumulation by hand: each rank takes its share of a batch in several passes, and all ranks exchange once.

Trains a small network with momentum. Then one process trains it with each batch as a whole, and the script compares both.
"""

import argparse
import time

from labs import devices, hvd, training  # import this first: it sets up TensorFlow
from lessons.faster_steps import by_hand

import keras
import numpy as np


def accumulated(gradient, images, labels, passes):
    """The gradient of the mean loss over the images of all ranks, after one exchange: a list, one for each weight.

    images, labels: those of this rank, equally many on every rank. It takes them in `passes` equal parts, one by one.
    gradient(images, labels): the gradients of the mean loss over these images, as a list.
    """
    ...  # your code here


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passes", type=int, default=4, help="parts of a rank's share of the batch (default: 4)")
    by_hand.arguments(parser)
    args = training.parse(parser)
    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    model = by_hand.network(args.model, args.hidden, seed=hvd.rank())  # other weights on each rank
    for variable in model.variables:
        variable.assign(hvd.broadcast(variable))
    start = model.get_weights()

    optimizer, gradient = keras.optimizers.SGD(by_hand.RATE, by_hand.MOMENTUM), by_hand.gradient_of(model)
    seconds = []
    for images, labels in by_hand.batches(args, hvd.rank(), hvd.size()):
        begin = time.perf_counter()
        optimizer.apply(accumulated(gradient, images, labels, args.passes), model.trainable_variables)
        seconds.append(time.perf_counter() - begin)

    by_hand.compare(model, start, args, hvd)
    if hvd.rank() == 0:
        print(f"images/s without the first two steps: {args.batch_size / np.mean(seconds[2:]):.0f}", flush=True)


if __name__ == "__main__":
    main()
