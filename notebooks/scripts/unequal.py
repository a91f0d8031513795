"""Horovod alone, without the kit's checks: what happens if one rank takes more steps than the other?

    python unequal.py --rank0 3 2 --rank1 2 3 [--average_loss]

in each of 2 ranks: in epoch 1 rank 0 takes 3 steps and rank 1 takes 2, in epoch 2 the other way round. A rank that waits
in an all-reduce for 20 s says so, and ends the job.
"""

import argparse
import contextlib
import os
import threading
import time

from labs import data, devices  # import this first: it sets up TensorFlow

import horovod.tensorflow as hvd
import tensorflow as tf

parser = argparse.ArgumentParser()
for rank in (0, 1):
    parser.add_argument(f"--rank{rank}", type=int, nargs="+", required=True, help=f"steps of rank {rank} in each epoch")
parser.add_argument("--average_loss", action="store_true", help="average the loss over the ranks after each epoch")
args = parser.parse_args()

hvd.init()
devices.pin(hvd.local_rank(), hvd.local_size())
dataset = data.load("digits", images=256)
images = tf.reshape(tf.cast(dataset.images, tf.float32) / 255, (256, -1))
labels = tf.one_hot(dataset.labels, 10)
weights = tf.Variable(tf.zeros((images.shape[1], 10)))


def give_up(what):
    print(f"rank {hvd.rank()} has waited 20 s in the all-reduce of {what}, and gives up", flush=True)
    time.sleep(3)  # time for the other rank to say the same
    os._exit(1)


@contextlib.contextmanager
def patience(what):
    timer = threading.Timer(20, give_up, [what])
    timer.start()
    try:
        yield
    finally:  # also where Horovod stops this rank with an error
        timer.cancel()


@tf.function
def train_step(epoch, step):
    """One step of SGD with the gradient averaged over the ranks; returns the loss, and (epoch, step) of each rank."""
    place = 16 * (2 * step + hvd.rank()) % 256
    with tf.GradientTape() as tape:
        scores = images[place : place + 16] @ weights
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels[place : place + 16], scores))
    # A second all-reduce says where each rank is: a row for each rank, which this rank alone fills.
    here = tf.one_hot([hvd.rank()], 2, axis=0, dtype=tf.int32) * tf.stack([epoch, step])
    where = hvd.allreduce(here, op=hvd.Sum, name="where")
    weights.assign_sub(0.01 * hvd.allreduce(tape.gradient(loss, weights), name="gradient"))
    return loss, where


@tf.function
def average(loss, name):
    return hvd.allreduce(loss, name=name)


for epoch, steps in enumerate(zip(args.rank0, args.rank1), 1):
    for step in range(1, steps[hvd.rank()] + 1):
        with patience(f"epoch {epoch} step {step}"):
            loss, where = train_step(tf.constant(epoch), tf.constant(step))
            places = where.numpy()
        if not places[: hvd.rank()].any():  # one line, by the first rank that takes this step
            print("averaged", *(f"rank {r}: epoch {e} step {s}," for r, (e, s) in enumerate(places)), flush=True)
    if args.average_loss:
        with patience(f"the loss of epoch {epoch}"):
            mean = average(loss, f"loss_{epoch}").numpy()
        print(f"rank {hvd.rank()}: mean loss of epoch {epoch} {mean:.3f}", flush=True)
print(f"rank {hvd.rank()} is done", flush=True)
