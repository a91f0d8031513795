"""Image data in files: a folder of PNGs, one subfolder for each class, and TFRecord files; and counted reading of both.

Written from a Dataset of labs.data, small enough for a notebook. TensorFlow is imported where it is used.
"""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from labs.data.datasets import Dataset
from labs.errors import UseError

if TYPE_CHECKING:
    import tensorflow as tf


def write_folder(dataset: Dataset, folder: str | Path) -> list[str]:
    """Write every image as folder/CLASS/NUMBER.png (NUMBER: the sample's, with 5 digits); return the paths, sorted.

    PNGs of an earlier call that are not written again are removed. Raises UseError if the folder cannot be written.
    """
    from PIL import Image

    folder, written = Path(folder), []
    try:
        for number, (image, label) in enumerate(zip(dataset.images, dataset.labels, strict=True)):
            path = folder / dataset.classes[label] / f"{number:05d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
            written.append(path)
        for path in set(folder.glob("*/[0-9][0-9][0-9][0-9][0-9].png")) - set(written):
            path.unlink()
    except OSError as problem:
        raise UseError(f"Cannot write into {folder}: {problem.strerror}. Choose another folder.") from None
    return sorted(map(str, written))


def write_tfrecords(dataset: Dataset, folder: str | Path, files: int = 4) -> list[str]:
    """Write the samples in their order into `files` TFRecord files, as equal as possible; return the paths, in order.

    A record is a tf.train.Example with `image` (PNG), `label` and `number` (of the sample). Raises UseError for more
    files than samples and for a folder that cannot be written.
    """
    import numpy as np
    import tensorflow as tf

    if not 1 <= files <= len(dataset.labels):
        raise UseError(f"{len(dataset.labels)} samples in {files} files: one would be empty. Ask for fewer files.")
    folder, written = Path(folder), []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("part-*-of-*.tfrecord"):
            old.unlink()
        for part, numbers in enumerate(np.array_split(np.arange(len(dataset.labels)), files)):
            path = folder / f"part-{part}-of-{files}.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                for number in numbers:
                    writer.write(_example(dataset.images[number], dataset.labels[number], number))
            written.append(str(path))
    except (OSError, tf.errors.OpError) as problem:
        reason = getattr(problem, "strerror", None) or getattr(problem, "message", problem)
        raise UseError(f"Cannot write into {folder}: {reason}. Choose another folder.") from None
    return written


def _example(image, label, number):
    import tensorflow as tf

    def whole(value):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(value)]))

    png = tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.encode_png(image).numpy()]))
    feature = {"image": png, "label": whole(label), "number": whole(number)}
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


class Reads:
    """Counts what tf.data pipelines read and decode: each method is TensorFlow's function and a counter.

    opened: paths of the files that were read, as often as they were; read: bytes of data in them; decoded: images.
    """

    def __init__(self):
        self._lock = threading.Lock()  # tf.data calls from several threads
        self.reset()

    def reset(self) -> None:
        """Start again at nothing."""
        self.opened, self.read, self.decoded = [], 0, 0

    def _counted(self, tensor, what, amount):
        """The tensor, which adds amount(its value) to the attribute `what` whenever it is computed."""
        import tensorflow as tf

        def count(value):
            with self._lock:
                setattr(self, what, getattr(self, what) + amount(value))
            return value

        return tf.ensure_shape(tf.numpy_function(count, [tensor], tensor.dtype), tensor.shape)

    def _opened(self, path):
        return self._counted(path, "opened", lambda path: [path.decode()])

    def file(self, path: "tf.Tensor") -> "tf.Tensor":
        """tf.io.read_file: the bytes of one file (string scalar)."""
        import tensorflow as tf

        return self._counted(tf.io.read_file(self._opened(path)), "read", len)

    def image(self, data: "tf.Tensor") -> "tf.Tensor":
        """tf.io.decode_png: bytes (string scalar) to an image, uint8 (H, W, 3)."""
        import tensorflow as tf

        return self._counted(tf.io.decode_png(data, channels=3), "decoded", lambda image: 1)

    def records(self, files: "tf.data.Dataset") -> "tf.data.Dataset":
        """tf.data.TFRecordDataset: the records (string scalars) of a tf.data.Dataset of paths, file after file."""
        import tensorflow as tf

        named = files.map(self._opened)
        return named.flat_map(tf.data.TFRecordDataset).map(lambda data: self._counted(data, "read", len))

    def example(self, record: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor, tf.Tensor]":
        """One record (string scalar) to (image uint8 (H, W, 3), label int64, number int64)."""
        import tensorflow as tf

        features = {key: tf.io.FixedLenFeature([], tf.int64) for key in ("label", "number")}
        features["image"] = tf.io.FixedLenFeature([], tf.string)
        found = tf.io.parse_single_example(record, features)
        return self.image(found["image"]), found["label"], found["number"]
