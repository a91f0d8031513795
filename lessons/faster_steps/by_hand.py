"""What the scripts that exchange by hand share: a small network, the batches of each rank, one process to compare with.

The scripts pass labs.hvd as `hvd`, so that this module can be imported where there is no Horovod.
"""

import re

import keras
import numpy as np
import psutil
import tensorflow as tf

from labs import data, ranks

RATE, MOMENTUM = 0.05, 0.9
NETWORKS = ("dense", "frozen", "tied", "batch_norm")


def arguments(parser):
    """Add the options that these scripts share to an argparse parser."""
    parser.add_argument("--steps", type=int, default=8, help="steps of the training (default: 8)")
    parser.add_argument("--batch_size", type=int, default=64, help="images per step, over all ranks (default: 64)")
    parser.add_argument("--hidden", type=int, default=64, help="width of the network (default: 64)")
    parser.add_argument("--model", choices=NETWORKS, default="dense", help="frozen: its first layer is not trained; "
                        "tied: one layer is used twice; batch_norm: with batch normalisation")  # fmt: skip


def network(kind, hidden, seed):
    """A network for uint8 images of 32 x 32 x 3 and 10 classes, with random weights from this seed."""
    keras.utils.set_random_seed(seed)
    images = keras.Input((32, 32, 3))
    values = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(images))
    values = keras.layers.Dense(hidden, "relu", trainable=kind != "frozen")(values)
    if kind == "batch_norm":
        values = keras.layers.BatchNormalization()(values)
    if kind == "tied":
        square = keras.layers.Dense(hidden, "relu")
        values = square(square(values))
    return keras.Model(images, keras.layers.Dense(10, "softmax")(values))


def gradient_of(model):
    """A function (images, labels) -> gradients of the mean loss, a list with one for each trainable variable."""
    loss = keras.losses.SparseCategoricalCrossentropy()

    @tf.function(reduce_retracing=True)
    def gradient(images, labels):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        return tape.gradient(value, model.trainable_variables)

    return gradient


def batches(args, rank=0, size=1):
    """(images uint8, labels) of each step: this rank's share of the global batch. Alone: the whole batch."""
    dataset = data.load("digits")
    numbers = np.random.default_rng(0).permutation(len(dataset.labels))
    for batch in np.resize(numbers, (args.steps, args.batch_size)):
        share = np.array_split(batch, size)[rank]
        yield dataset.images[share], dataset.labels[share]


def compare(model, start, args, hvd):
    """Print on rank 0 how far the weights of any rank are from those of one process that takes each batch at once.

    start: the weights from which the ranks began.
    """
    alone = network(args.model, args.hidden, seed=0)
    alone.set_weights(start)
    optimizer, gradient = keras.optimizers.SGD(RATE, MOMENTUM), gradient_of(alone)
    for images, labels in batches(args):
        optimizer.apply(gradient(images, labels), alone.trainable_variables)
    far = _apart(model.trainable_variables, alone.trainable_variables)
    frozen = _apart(model.non_trainable_variables, alone.non_trainable_variables)
    moved = _apart(start, alone.get_weights())
    by_rank = ranks.gather((far, frozen, ranks.fingerprints(model.trainable_variables)), "its weights")
    if hvd.rank() == 0:
        print(f"trained weights identical on all {len(by_rank)} ranks: {all(a[2] == by_rank[0][2] for a in by_rank)}")
        print(f"largest difference from one process with the whole batch: {max(a[0] for a in by_rank):.1e}")
        print(f"largest difference of a variable that is not trained: {max(a[1] for a in by_rank):.1e}")
        print(f"largest change of a weight by the training: {moved:.1e}", flush=True)


def told(output):
    """{alike, apart, fixed, moved}: the values that `compare` printed, as texts. output: of a run that has finished."""
    value = r"True|False|nan|inf|\d\.\de[-+]\d+"  # a launcher may set the mark of a rank behind it
    values = re.findall(rf"\b(?:trained|largest) [^:\n]*: ({value})", output)
    return dict(zip(("alike", "apart", "fixed", "moved"), values, strict=True))


def _apart(some, others):
    """The largest difference of a value between two lists of variables or arrays."""
    pairs = zip(some, others, strict=True)
    return max([float(np.max(np.abs(np.asarray(a) - np.asarray(b)))) for a, b in pairs], default=0.0)


class Usage:
    """Memory and traffic of this rank from here on: `say` prints what was added."""

    def __init__(self, hvd):
        self._hvd = hvd
        self._memory, self._wire = self._now()

    def _now(self):
        """(bytes of memory of this process, bytes sent over this machine's loopback). All ranks call it."""
        self._hvd.allreduce([0.0], name="here")
        return psutil.Process().memory_info().rss, psutil.net_io_counters(pernic=True)["lo"].bytes_sent

    def say(self, steps):
        memory, wire = self._now()
        print(f"rank {self._hvd.rank()}: {(memory - self._memory) / 1e6:.1f} MB of memory were added", flush=True)
        sent = (wire - self._wire) / steps / self._hvd.size() / 1e6
        if self._hvd.rank() == 0 and sent > 0.1:  # MPI's ranks on one machine share memory instead
            print(f"each rank sent {sent:.1f} MB in each step over the loopback", flush=True)
