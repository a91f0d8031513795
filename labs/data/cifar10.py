"""CIFAR-10 in its original form (cifar-10-python.tar.gz, unpacked): files of pickle, of the training images alone.

A pickle can run any program when it is read: unpack only an archive that comes from where CIFAR-10 is published.
"""

import os
import pickle
from pathlib import Path

import numpy as np

from labs.errors import UseError

FOLDER = "cifar-10-batches-py"
CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()
UNPACK = f"Unpack the original cifar-10-python.tar.gz again, so that $LABS_DATA/{FOLDER} holds it."


def find():
    """The folder with CIFAR-10's batch files, in $LABS_DATA or else Keras' cache; UseError if none."""
    cache = Path(os.environ.get("KERAS_HOME") or "~/.keras").expanduser() / "datasets"
    mine = Path(os.environ.get("LABS_DATA") or cache).expanduser()
    # "-target" is the folder in which newer Keras unpacks the archive.
    places = [folder / FOLDER for folder in dict.fromkeys((mine, cache, cache / f"{FOLDER}-target"))]
    for place in places:
        if any(place.glob("data_batch_*")):
            return place
    raise UseError(f"CIFAR-10 is not in {' or '.join(map(str, places))}; nothing is downloaded. {UNPACK}")


def read():
    """(images uint8 (50000, 32, 32, 3), labels int64 (50000,), class names).

    Raises UseError: no such folder or file, or a file that is cut short or another's.
    """
    folder = find()
    images, labels = zip(*(_read(folder / f"data_batch_{number}") for number in range(1, 6)), strict=True)
    return np.concatenate(images), np.concatenate(labels), CLASSES


def _read(path):
    """(images (10000, 32, 32, 3), labels (10000,)) of one file."""
    try:
        content = pickle.loads(path.read_bytes(), encoding="bytes")
        pixels, labels = content[b"data"], np.array(content[b"labels"], np.int64)
        if (pixels.shape, pixels.dtype, labels.shape) != ((10_000, 3072), np.uint8, (10_000,)):
            raise ValueError(f"pixels {pixels.shape} {pixels.dtype}, labels {labels.shape}")
    except Exception as error:  # foreign or cut bytes can raise anything
        raise UseError(f"{path} is missing, cut short or not CIFAR-10's ({error!r}). {UNPACK}") from error
    return pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels
