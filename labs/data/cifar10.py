"""CIFAR-10 in its original form (cifar-10-python.tar.gz, unpacked), read without running what a pickle may hold."""

import os
import pickle
from pathlib import Path

import numpy as np

from labs.data.dataset import DataError

FOLDER = "cifar-10-batches-py"
UNPACK = f"Unpack the original cifar-10-python.tar.gz again, so that $LABS_DATA/{FOLDER} holds it."


def find():
    """The folder with CIFAR-10's batch files, in $LABS_DATA or else Keras' cache; DataError if none."""
    home = Path.home() if os.access(Path.home(), os.W_OK) else Path("/tmp")  # as Keras does
    cache = Path(os.environ.get("KERAS_HOME") or home / ".keras").expanduser() / "datasets"
    mine = Path(os.environ.get("LABS_DATA") or cache).expanduser()
    places = [folder / FOLDER for folder in dict.fromkeys((mine, cache, cache / f"{FOLDER}-target"))]
    for place in places:
        if any(place.glob("*_batch*")):
            return place
    raise DataError(f"CIFAR-10 is not in {' or '.join(map(str, places))}; nothing is downloaded. {UNPACK}")


class _Unpickler(pickle.Unpickler):
    """Reads arrays, bytes, numbers, lists and dicts only: other pickles can run any program when loaded."""

    makers = (np.ndarray, np.dtype, np.empty(1).__reduce__()[0], np.empty(1).__reduce_ex__(5)[0])

    def find_class(self, module, name):
        if module.startswith("numpy") and (maker := {m.__name__: m for m in self.makers}.get(name)):
            return maker
        if (module, name) == ("_codecs", "encode"):  # bytes, as Python 3 writes them in old protocols
            return lambda text, encoding: text.encode("latin1")
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _read(path):
    """What a file of CIFAR-10 holds: class names, or (images (10000, 32, 32, 3), labels (10000,))."""
    try:
        with open(path, "rb") as file:
            content = _Unpickler(file, encoding="bytes").load()
        content = {k if isinstance(k, str) else k.decode(): v for k, v in content.items()}
        if path.name == "batches.meta":
            names = [content["label_names"][i] for i in range(10)]
            return [name if isinstance(name, str) else name.decode() for name in names]
        pixels, labels = content["data"], np.array(content["labels"])
        if pixels.shape != (10_000, 3072) or pixels.dtype != np.uint8:
            raise ValueError(f"pixels {pixels.shape} {pixels.dtype}, not (10000, 3072) uint8")
        if labels.shape != (10_000,) or labels.dtype.kind not in "iu" or not set(labels) <= set(range(10)):
            raise ValueError("not 10000 labels from 0 to 9")
        return pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels.astype(np.int64)
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing, so CIFAR-10 is incomplete. {UNPACK}") from error
    except Exception as error:  # foreign or cut bytes can raise anything
        raise DataError(f"{path} is cut short or not CIFAR-10's ({error!r}). {UNPACK}") from error


def read(split="train"):
    """(images uint8 (N, 32, 32, 3), labels int64 (N,), class names): N is 50,000 of "train", 10,000 of "test".

    Raises DataError: no such folder or file, or a file that is cut short or another's.
    """
    folder = find()
    classes = _read(folder / "batches.meta")
    names = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
    images, labels = zip(*(_read(folder / name) for name in names), strict=True)
    return np.concatenate(images), np.concatenate(labels), classes
