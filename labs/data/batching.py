"""The input pipeline that feeds a data set to the workers: order, shards, batches, and whether they come out even.

The pipeline shuffles *indices* and gathers one batch at a time, still small: resizing and scaling happen batched, in
the model, on the worker.
"""

import importlib.util
import itertools
from typing import TYPE_CHECKING

import numpy as np

from labs import compat
from labs.data.datasets import Dataset
from labs.errors import UseError, whole

if TYPE_CHECKING:
    import keras
    import tensorflow as tf


def check_batch(n_images: int, global_batch: int, workers: int = 1) -> None:
    """Raise UseError unless batches divide into equal shares, one for each worker, and the images fill one.

    n_images: of the data set; global_batch: images per step, of all workers together.
    """
    batch, workers = whole("global_batch", global_batch), whole("workers", workers)
    local, rest = divmod(batch, workers)
    if batch < workers:
        raise UseError(f"global_batch {batch} leaves some of {workers} workers idle. Use {workers} or more.")
    if rest:
        raise UseError(
            f"global_batch {batch} is no multiple of {workers} workers: unequal shares weigh images "
            f"unequally. Use {local * workers} or {(local + 1) * workers}."
        )
    if n_images < batch:
        raise UseError(f"global_batch {batch} is more than the {n_images} images: no step. Use a smaller batch.")


def order(dataset: Dataset, global_batch: int, *, seed: int = 0, first: int = 0) -> "tf.data.Dataset":
    """A tf.data.Dataset of sample numbers; one pass is one epoch.

    The numbers are int64 scalars, 0 to N-1. The order of pass k = 0, 1, ... is that of
    numpy.random.default_rng([seed, k]).permutation(N): a new one in each epoch, and the same in every process with this
    seed, whatever the global seeds are. The numbers after the last full global batch are left out of this epoch. So
    `.shard(K, r)` of it gives the K workers disjoint and equal shares.

    global_batch: images per step, of all workers together
    first: the k of the first pass; a training that goes on where another one ended gives the epochs that are done

    Raises UseError for a batch without a full step, and for a seed or a first pass below 0.
    """
    import tensorflow as tf

    check_batch(len(dataset.labels), global_batch)
    total, next_pass = len(dataset.labels) // global_batch * global_batch, _passes(dataset, seed, first)

    def numbers():
        return next_pass()[:total]

    @tf.autograph.experimental.do_not_convert  # there is nothing to convert, which takes longer than all the rest
    def permuted(_):
        return tf.ensure_shape(tf.numpy_function(numbers, [], tf.int64), [total])

    orders = tf.data.Dataset.range(1).map(permuted)
    compat.no_tuning_thread()
    flat = orders.unbatch().apply(tf.data.experimental.assert_cardinality(total))
    return flat.with_options(_options())


def _passes(dataset, seed, first=0):
    """A function that gives all sample numbers in the order of the next pass, see `order`. Raises UseError."""
    seed, passes = whole("seed", seed, least=0), itertools.count(whole("first", first, least=0))
    return lambda: np.random.default_rng([seed, next(passes)]).permutation(len(dataset.labels))


def batches(dataset: Dataset, numbers: "tf.data.Dataset", batch: int) -> "tf.data.Dataset":
    """A tf.data.Dataset of the samples with these numbers, in order.

    Its elements are (images uint8 (B, H, W, 3), labels int64 (B,)).

    numbers: of samples, such as `order(...)` or a shard of it
    batch: B, images per step of this process

    A last, smaller batch stays; `order` makes none if B times the processes is its global batch. Raises UseError for a
    batch below 1.
    """
    import tensorflow as tf

    with tf.device("CPU:0"):  # captured below as tensors: no copy in the graph, none per epoch
        images, labels = tf.identity(dataset.images), tf.identity(dataset.labels)
    count = int(numbers.cardinality())  # below 0: unknown or without end
    grouped = numbers.batch(whole("batch", batch), drop_remainder=count >= 0 and count % batch == 0)

    @tf.autograph.experimental.do_not_convert
    def gathered(rows):
        return tf.gather(images, rows), tf.gather(labels, rows)

    made = grouped.map(gathered)
    return made.prefetch(2).with_options(_options())


def _options():
    import tensorflow as tf

    options = tf.data.Options()  # replicas share the batches: there is no file to shard by
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    options.autotune.enabled = False  # see compat.no_tuning_thread
    return options


def pipeline(
    dataset: Dataset, global_batch: int, *, workers: int = 1, seed: int = 0
) -> "tf.data.Dataset | keras.utils.PyDataset":
    """The batches of one process that feeds all `workers`.

    They are `batches` of `order` (see there); one pass is one epoch.

    global_batch: images per step, of all workers together; seed: of the order. The images are the same whatever
    `workers` is, which is only checked. Without TensorFlow (Keras on JAX) a PyDataset gives the same batches in the
    same order, for `fit(..., shuffle=False)`. Raises UseError: see `check_batch`.
    """
    check_batch(len(dataset.labels), global_batch, workers)
    if not importlib.util.find_spec("tensorflow"):  # Keras on JAX
        return _without_tensorflow(dataset, global_batch, seed)
    return batches(dataset, order(dataset, global_batch, seed=seed), global_batch)


def _without_tensorflow(dataset, batch, seed):
    """The same batches in the same order as `batches` of `order`, for `fit(..., shuffle=False)`: a keras PyDataset."""
    import keras

    class Batches(keras.utils.PyDataset):
        def __init__(self):
            super().__init__()
            self.next_pass = _passes(dataset, seed)
            self.on_epoch_end()

        def __len__(self):
            return len(dataset.labels) // batch

        def __getitem__(self, index):
            rows = self.rows[index * batch : (index + 1) * batch]
            return dataset.images[rows], dataset.labels[rows]

        def on_epoch_end(self):
            self.rows = self.next_pass()

    return Batches()
