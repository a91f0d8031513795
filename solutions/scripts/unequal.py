"""Horovod alone, without the kit's checks: what happens if one rank takes more steps than the other?

    python unequal.py --rank0 3 2 --rank1 2 3 [--average_loss] [--repair equal|join]

in each of 2 ranks: in epoch 1 rank 0 takes 3 steps and rank 1 takes 2, in epoch 2 the other way round.
"""

import argparse

from labs import data, devices  # first: it silences TensorFlow's start-up messages

import horovod.tensorflow as hvd
import tensorflow as tf

parser = argparse.ArgumentParser()
for rank in (0, 1):
    parser.add_argument(f"--rank{rank}", type=int, nargs="+", required=True, help=f"steps of rank {rank} in each epoch")
parser.add_argument("--average_loss", action="store_true", help="average the loss over the ranks after each epoch")
parser.add_argument("--repair", choices=("equal", "join"))
args = parser.parse_args()

hvd.init()
devices.pin(hvd.local_rank(), hvd.local_size())
dataset = data.load("digits", images=256)
images = tf.reshape(tf.cast(dataset.images, tf.float32) / 255, (256, -1))
labels = tf.one_hot(dataset.labels, 10)
weights = tf.Variable(tf.zeros((images.shape[1], 10)))


def train_step(epoch, step):
    """One step of SGD with the gradient averaged over the ranks; returns the loss."""
    place = (16 * (2 * step + hvd.rank())) % 256
    with tf.GradientTape() as tape:
        scores = images[place : place + 16] @ weights
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels[place : place + 16], scores))
    # A second all-reduce carries who is where: the sum has a row for each rank, filled by that rank alone.
    here = tf.one_hot([hvd.rank()], 2, axis=0) * tf.constant([[epoch, step]], tf.float32)
    met = hvd.allreduce(here, name="where", op=hvd.Sum).numpy().astype(int)
    weights.assign_sub(0.01 * hvd.allreduce(tape.gradient(loss, weights), name="gradient"))
    if hvd.rank() == 0:
        print("averaged:", *(f"rank {r} in epoch {e}, step {s}" if e else f"rank {r}: nothing" for r, (e, s) in enumerate(met)), sep="  ")
    return loss


for epoch, steps in enumerate(zip(args.rank0, args.rank1), 1):
    own = min(steps) if args.repair == "equal" else steps[hvd.rank()]
    for step in range(1, own + 1):
        loss = train_step(epoch, step)
    if args.repair == "join":
        hvd.join()  # until all are here, this rank adds zeros to what the others average
    if args.average_loss:
        mean = hvd.allreduce(loss, name=f"loss of epoch {epoch}")
        print(f"rank {hvd.rank()}: epoch {epoch}, mean loss {mean:.3f}", flush=True)
print(f"rank {hvd.rank()} is done", flush=True)
