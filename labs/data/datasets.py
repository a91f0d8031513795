"""Datasets and the input pipeline that feeds them to the workers.

A dataset is an array of small uint8 images. The pipeline shuffles *indices* and gathers one batch at a time, still
small: resizing and scaling happen batched, in the model, on the worker.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labs import compat

REMAINDERS = ("drop", "keep", "pad")


class DataError(ValueError):
    """Data or batch sizes that cannot be used. The message is one line: what, why, what to do."""


class DataNotFoundError(DataError, FileNotFoundError):
    """A file or folder that is not there."""


@dataclass
class Dataset:
    """Labelled images in memory: `images` uint8 (N, H, W, 3); `labels` int64 (N,), indices into `classes`."""

    name: str
    images: np.ndarray
    labels: np.ndarray
    classes: list[str]


def load(name="digits", *, images=None, seed=0, folder_size=64, split="train"):
    """Load a dataset by name; nothing is ever downloaded.

    Args:
        name: "digits" (1797 real images from scikit-learn, upsampled to 32x32), "cifar10" (50,000 images from
            $LABS_DATA or Keras' cache), "folder:PATH" (one subfolder per class, .png or .jpg), "synthetic:N"
            (random 32x32 images and labels, for throughput only; N is `images` or 10,000 if left out).
        images: keep this many, chosen with `seed`, classes as balanced as they allow; None keeps all.
        seed: of that choice and of synthetic images; the same seed gives the same data.
        folder_size: height and width in pixels to which the images of a folder are resized.
        split: "train" or, for cifar10 only, "test" (10,000 images).

    Raises DataError: unknown name, unusable file, argument out of range (DataNotFoundError: missing file).
    """
    kind, _, detail = str(name).partition(":")
    images = None if images is None else whole("images", images)
    seed, folder_size = whole("seed", seed, least=0), whole("folder_size", folder_size)
    if split != "train" and (split, name) != ("test", "cifar10"):
        raise DataError(f"{name} has no split {split!r}: only cifar10 has a 'test'. Use split='train'.")
    if kind == "folder" and detail:
        return _folder(Path(detail).expanduser(), images, seed, folder_size)
    if kind == "synthetic":
        dataset = _synthetic(detail, images, seed)
    elif name in ("digits", "cifar10"):
        dataset = _digits() if name == "digits" else _cifar10(split)
    else:
        raise DataError(f"No dataset is called {name!r}. Use digits, cifar10, folder:PATH or synthetic:N.")
    chosen = slice(None) if images is None else balanced(dataset.labels, images, seed)
    return Dataset(dataset.name, dataset.images[chosen], dataset.labels[chosen], dataset.classes)


def balanced(labels, n, seed=0):
    """Sorted indices (n,) of a random subset with equal counts per class, as far as the classes allow."""
    if n > len(labels):
        raise DataError(f"images={n} is more than the {len(labels)} there are: no subset. Ask for fewer.")
    order = np.random.default_rng(seed).permutation(len(labels))
    turn = np.empty(len(labels), np.int64)  # 0 for one image of each class, 1 for the next of each, ...
    for label in np.unique(labels):
        mine = order[labels[order] == label]
        turn[mine] = np.arange(len(mine))
    return np.sort(order[np.argsort(turn[order], kind="stable")][:n])


def whole(what, value, least=1):
    """`value` as an int; True, 64.0 and "64" are refused: they are mistakes more often than sizes."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise DataError(f"{what} is {value!r}, which counts nothing. Give a whole number, {least} or more.")
    return int(value)


def _digits():
    from sklearn.datasets import load_digits

    bunch = load_digits()  # 8x8, 0..16
    at = np.clip((np.arange(32) + 0.5) / 4 - 0.5, 0, 7)  # bilinear, pixel centres at i + 1/2
    weights = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(8)))
    grey = np.rint(weights @ bunch.images @ weights.T * (255 / 16)).astype(np.uint8)
    return Dataset("digits", np.repeat(grey[..., None], 3, axis=3), bunch.target.astype(np.int64), list("0123456789"))


def _cifar10(split):
    from labs.data import cifar10

    return Dataset("cifar10", *cifar10.read(split))


def _synthetic(detail, images, seed):
    if detail and not (detail.isascii() and detail.isdecimal() and int(detail)):
        raise DataError(f"synthetic:{detail} names no number of images to make. Write it as synthetic:2048.")
    n, rng, names = int(detail or images or 10_000), np.random.default_rng(seed), list("0123456789")
    return Dataset("synthetic", rng.integers(0, 256, (n, 32, 32, 3), np.uint8), rng.integers(0, 10, n), names)


def _folder(root, images, seed, size):
    from PIL import Image, ImageOps

    if not root.is_dir():
        raise DataNotFoundError(f"{root} is not a folder: no images. Give one with a subfolder per class.")
    folders = sorted(p for p in root.glob("[!.]*") if p.is_dir())
    if len(folders) < 2:
        raise DataError(f"{root} has {len(folders)} subfolder(s): nothing to tell apart. Make one per class.")
    files, labels = [], []
    for label, folder in enumerate(folders):
        found = sorted(p for p in folder.glob("[!.]*") if p.suffix.lower() in (".png", ".jpg", ".jpeg"))
        if not found:
            raise DataError(f"{folder} has no .png or .jpg: a class without images. Add some or remove it.")
        files, labels = files + found, labels + [label] * len(found)
    labels = np.array(labels, np.int64)
    chosen = balanced(labels, len(labels) if images is None else images, seed)
    pixels = np.empty((len(chosen), size, size, 3), np.uint8)
    for row, i in enumerate(chosen):
        try:
            with Image.open(files[i]) as picture:
                upright = ImageOps.exif_transpose(picture).convert("RGB")
                pixels[row] = upright.resize((size, size), Image.Resampling.BILINEAR)
        except Exception as error:  # Pillow raises many kinds on bytes that are no image
            raise DataError(f"{files[i]} is no readable image ({error!r}). Replace or remove it.") from error
    return Dataset(f"folder:{root}", pixels, labels[chosen], [p.name for p in folders])


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
    options.autotune.enabled = False  # see labs.compat
    return options


def pipeline(dataset, global_batch, *, workers=1, seed=0, remainder="drop", shuffle=True):
    """The batches of one process that feeds all `workers`: `batches` of `order` (see there), one pass is one epoch.

    The images are the same whatever `workers` is, which is only checked.
    Raises DataError: see `check_batch` and `steps`.
    """
    check_batch(len(dataset.labels), global_batch, workers, remainder)
    numbers = order(dataset, global_batch, seed=seed, remainder=remainder, shuffle=shuffle)
    return batches(dataset, numbers, global_batch)
