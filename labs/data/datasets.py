"""Load a data set by its name: an array of small uint8 images, which stay small until they are on the worker."""

from pathlib import Path

import numpy as np

from labs.data import cifar10
from labs.data.dataset import DataError, Dataset, whole


def load(name: str = "digits", *, images: int | None = None, seed: int = 0, split: str = "train") -> Dataset:
    """Load a dataset by name; nothing is ever downloaded.

    name: "digits" (1797 real images from scikit-learn, upsampled to 32x32), "cifar10" (50,000 images from $LABS_DATA or
        Keras' cache), "folder:PATH" (one subfolder per class, .png or .jpg, resized to 64x64), "synthetic:N" (random
        32x32 images and labels, for throughput only; N is `images` or 10,000 if left out).
    images: keep this many, chosen with `seed`, classes as balanced as they allow; None keeps all.
    seed: of that choice and of synthetic images; the same seed gives the same data.
    split: "train" or, for cifar10 only, "test" (10,000 images).
    Raises DataError: unknown name, unusable file, argument out of range, missing file.
    """
    kind, _, detail = str(name).partition(":")
    images = None if images is None else whole("images", images)
    seed = whole("seed", seed, least=0)
    if split != "train" and (split, name) != ("test", "cifar10"):
        raise DataError(f"{name} has no split {split!r}: only cifar10 has a 'test'. Use split='train'.")
    if kind == "folder" and detail:
        return _folder(Path(detail).expanduser(), images, seed)
    if kind == "synthetic":
        dataset = _synthetic(detail, images, seed)
    elif name in ("digits", "cifar10"):
        dataset = _digits() if name == "digits" else Dataset("cifar10", *cifar10.read(split))
    else:
        raise DataError(f"No dataset is called {name!r}. Use digits, cifar10, folder:PATH or synthetic:N.")
    chosen = slice(None) if images is None else balanced(dataset.labels, images, seed)
    return Dataset(dataset.name, dataset.images[chosen], dataset.labels[chosen], dataset.classes)


def balanced(labels: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    """Sorted indices (n,) of a random subset with equal counts per class, as far as the classes allow.

    labels: int (N,), the class of each sample; n: how many are kept; seed: of the choice. Raises DataError for n > N.
    """
    if n > len(labels):
        raise DataError(f"images={n} is more than the {len(labels)} there are: no subset. Ask for fewer.")
    order = np.random.default_rng(seed).permutation(len(labels))
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


def _synthetic(detail, images, seed):
    if detail and not (detail.isascii() and detail.isdecimal() and int(detail)):
        raise DataError(f"synthetic:{detail} names no number of images to make. Write it as synthetic:2048.")
    n, rng, names = int(detail or images or 10_000), np.random.default_rng(seed), list("0123456789")
    try:
        return Dataset("synthetic", rng.integers(0, 256, (n, 32, 32, 3), np.uint8), rng.integers(0, 10, n), names)
    except (MemoryError, ValueError, OverflowError):
        raise DataError(f"{n} synthetic images do not fit into memory (3 kB each). Ask for fewer.") from None


def _folder(root, images, seed):
    from PIL import Image, ImageOps

    if not root.is_dir():
        raise DataError(f"{root} is not a folder: no images. Give one with a subfolder per class.")
    folders = sorted(p for p in root.glob("[!.]*") if p.is_dir())
    if len(folders) < 2:
        raise DataError(f"{root} has fewer than two subfolders: nothing to tell apart. Make one per class.")
    files, labels = [], []
    for label, folder in enumerate(folders):
        found = sorted(p for p in folder.glob("[!.]*") if p.suffix.lower() in (".png", ".jpg", ".jpeg"))
        if not found:
            raise DataError(f"{folder} has no .png or .jpg: a class without images. Add some or remove it.")
        files, labels = files + found, labels + [label] * len(found)
    labels = np.array(labels, np.int64)
    chosen = balanced(labels, len(labels) if images is None else images, seed)
    pixels = np.empty((len(chosen), 64, 64, 3), np.uint8)
    for row, i in enumerate(chosen):
        try:
            with Image.open(files[i]) as picture:
                upright = ImageOps.exif_transpose(picture).convert("RGB")
                pixels[row] = np.asarray(upright.resize((64, 64), Image.Resampling.BILINEAR))
        except Exception as error:  # Pillow raises many kinds of errors for what is not an image
            raise DataError(f"{files[i]} is no readable image ({error!r}). Replace or remove it.") from error
    return Dataset(f"folder:{root}", pixels, labels[chosen], [p.name for p in folders])
