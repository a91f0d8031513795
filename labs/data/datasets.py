"""Load a data set by its name: an array of small uint8 images, which stay small until they are on the worker. Nothing
is cached in memory: each call reads or makes it anew."""

from dataclasses import dataclass

import numpy as np

from labs.data import cifar10
from labs.errors import UseError, whole


@dataclass
class Dataset:
    """Labelled images in memory.

    images: uint8 (N, H, W, 3); labels: int64 (N,), indices into `classes`.
    """

    name: str
    images: np.ndarray
    labels: np.ndarray
    classes: list[str]


def load(name: str = "digits", *, images: int | None = None) -> Dataset:
    """Load a dataset by name; nothing is ever downloaded.

    name: "digits" (1797 real images from scikit-learn, upsampled to 32x32), "cifar10" (50,000 images from $LABS_DATA or
        Keras' cache), "synthetic" (random 32x32 images and labels, for throughput only).
    images: keep this many, always the same ones, classes as balanced as they allow; None keeps all. Of "synthetic":
        make this many, by default 10,000.
    Raises UseError: unknown name, unusable file, argument out of range, missing file.
    """
    images = None if images is None else whole("images", images)
    if name == "synthetic":
        return _synthetic(images or 10_000)
    if name not in ("digits", "cifar10"):
        raise UseError(f"No dataset is called {name!r}. Use digits, cifar10 or synthetic.")
    dataset = _digits() if name == "digits" else Dataset("cifar10", *cifar10.read())
    chosen = slice(None) if images is None else balanced(dataset.labels, images)
    return Dataset(dataset.name, dataset.images[chosen], dataset.labels[chosen], dataset.classes)


def balanced(labels: np.ndarray, n: int) -> np.ndarray:
    """Sorted indices (n,) of a random subset with equal counts per class, as far as the classes allow.

    labels: int (N,), the class of each sample; n: how many are kept. Raises UseError for n > N.
    """
    if n > len(labels):
        raise UseError(f"images={n} is more than the {len(labels)} there are: no subset. Ask for fewer.")
    order = np.random.default_rng(0).permutation(len(labels))
    turn = np.empty(len(labels), np.int64)  # 0 for one image of each class, 1 for the next of each, ...
    for label in np.unique(labels):
        mine = order[labels[order] == label]
        turn[mine] = np.arange(len(mine))
    return np.sort(order[np.argsort(turn[order], kind="stable")][:n])


def _digits():
    from sklearn.datasets import load_digits

    bunch = load_digits()  # 8x8, 0..16
    at = np.clip((np.arange(32) + 0.5) / 4 - 0.5, 0, 7)  # bilinear, pixel centres at i + 1/2
    weights = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(8)))
    grey = np.rint(weights @ bunch.images @ weights.T * (255 / 16)).astype(np.uint8)
    return Dataset("digits", np.repeat(grey[..., None], 3, axis=3), bunch.target.astype(np.int64), list("0123456789"))


def _synthetic(n):
    rng, names = np.random.default_rng(0), list("0123456789")
    try:
        return Dataset("synthetic", rng.integers(0, 256, (n, 32, 32, 3), np.uint8), rng.integers(0, 10, n), names)
    except (MemoryError, ValueError, OverflowError):
        raise UseError(f"{n} synthetic images do not fit into memory (3 kB each). Ask for fewer.") from None
