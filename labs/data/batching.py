"""The input pipeline that feeds a data set to the workers: order, shards, batches, and whether they come out even.

The pipeline shuffles *indices* and gathers one batch at a time, still small: resizing and scaling happen batched, in
the model, on the worker.
"""

import itertools

import numpy as np

from labs import compat
from labs.data.dataset import DataError, whole

REMAINDERS = ("drop", "keep", "pad")


def steps(n_images, global_batch, remainder="drop"):
    """Steps per epoch: floor(n_images / global_batch) with "drop", else its ceiling."""
    n, batch = whole("n_images", n_images), whole("global_batch", global_batch)
    if remainder not in REMAINDERS:
        raise DataError(f"remainder is {remainder!r}: the last batch is undefined. Use one of {REMAINDERS}.")
    if remainder == "drop" and n < batch:
        raise DataError(f"global_batch {batch} is more than the {n} images: no step. Use a smaller batch.")
    return n // batch if remainder == "drop" else -(-n // batch)


def images_per_epoch(n_images, global_batch, remainder="drop"):
    """Images that the workers process in an epoch; with "pad" those that fill the last batch count twice."""
    full = steps(n_images, global_batch, remainder) * global_batch
    return n_images if remainder == "keep" else full


def check_batch(n_images, global_batch, workers=1, remainder="drop"):
    """Raise DataError unless full batches divide into equal shares and no worker is ever without images.

    MirroredStrategy (TensorFlow 2.18, tried) cuts a last batch of r images into slices of ceil(r / workers), one per
    worker: 5 images for 4 workers are 2, 2, 1 and 0. All get some only if r > (workers - 1) * ceil(r / workers).
    """
    batch, workers = whole("global_batch", global_batch), whole("workers", workers)
    local, rest = divmod(batch, workers)
    if batch < workers:
        raise DataError(f"global_batch {batch} leaves some of {workers} workers idle. Use {workers} or more.")
    if rest:
        raise DataError(
            f"global_batch {batch} is no multiple of {workers} workers: unequal shares weigh images "
            f"unequally. Use {local * workers} or {(local + 1) * workers}."
        )
    r = images_per_epoch(n_images, batch, remainder) - (steps(n_images, batch, remainder) - 1) * batch
    share = -(-r // workers)
    if r <= (workers - 1) * share:
        raise DataError(
            f"The last batch has r={r} images, cut into slices of {share} for {workers} workers: one gets "
            "none, and BatchNormalization dies on it (nothing to average). Use remainder='drop' or 'pad'."
        )


def order(dataset, global_batch, *, seed=0, remainder="drop", shuffle=True):
    """A tf.data.Dataset of sample numbers (int64 scalars, 0 to N-1); one pass is one epoch.

    Pass k = 0, 1, ... has the order numpy.random.default_rng([seed, k]).permutation(N): a new one in each epoch, and
    the same in every process with this seed, whatever the global seeds are; without `shuffle` 0, 1, ..., N-1. The
    numbers after the last full global batch are left out of this epoch ("drop"), or stay ("keep"), or are filled up
    with the first ones of this epoch's order, which thus come twice ("pad").
    So `.shard(K, r)` of it gives the K workers disjoint and, with "drop" or "pad", equal shares. Raises DataError.
    """
    import tensorflow as tf

    n, seed, passes = len(dataset.labels), whole("seed", seed, least=0), itertools.count()
    total = images_per_epoch(n, whole("global_batch", global_batch), remainder)

    def numbers():
        drawn = np.random.default_rng([seed, next(passes)]).permutation(n) if shuffle else np.arange(n)
        return np.resize(drawn, total)  # cut ("drop"), whole ("keep") or begun anew at its end ("pad")

    orders = tf.data.Dataset.range(1).map(lambda _: tf.ensure_shape(tf.numpy_function(numbers, [], tf.int64), [total]))
    compat.no_tuning_thread()
    flat = orders.unbatch().apply(tf.data.experimental.assert_cardinality(total))
    return flat.with_options(_options())


def batches(dataset, numbers, batch):
    """A tf.data.Dataset of (images uint8 (B, H, W, 3), labels int64 (B,)): the samples with these numbers, in order.

    numbers: tf.data.Dataset of sample numbers, such as `order(...)` or a shard of it; batch: B, images per step of
    this process. A last, smaller batch stays; `order` makes none if B times the processes is its global batch.
    """
    import tensorflow as tf

    with tf.device("CPU:0"):  # captured below as tensors: no copy in the graph, none per epoch
        images, labels = tf.identity(dataset.images), tf.identity(dataset.labels)
    count = int(numbers.cardinality())
    grouped = numbers.batch(whole("batch", batch), drop_remainder=count >= 0 and count % batch == 0)
    made = grouped.map(lambda rows: (tf.gather(images, rows), tf.gather(labels, rows)))
    return made.prefetch(2).with_options(_options())


def _options():
    import tensorflow as tf

    options = tf.data.Options()  # replicas share the batches: there is no file to shard by
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    options.autotune.enabled = False  # see compat.no_tuning_thread
    return options


def pipeline(dataset, global_batch, *, workers=1, seed=0, remainder="drop", shuffle=True):
    """The batches of one process that feeds all `workers`: `batches` of `order` (see there), one pass is one epoch.

    The images are the same whatever `workers` is, which is only checked.
    Raises DataError: see `check_batch` and `steps`.
    """
    check_batch(len(dataset.labels), global_batch, workers, remainder)
    numbers = order(dataset, global_batch, seed=seed, remainder=remainder, shuffle=shuffle)
    return batches(dataset, numbers, global_batch)
