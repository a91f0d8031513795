"""Image data in files: a folder of PNGs, one subfolder for each class, and TFRecord files; and counted reading of both.

Written from a Dataset of labs.data, small enough for a notebook.
"""

import threading
from pathlib import Path

import numpy as np
import tensorflow as tf

from labs.data.datasets import Dataset


def write_folder(dataset: Dataset, folder: str | Path) -> list[str]:
    """Write every image as folder/CLASS/NUMBER.png (NUMBER: the sample's, with 5 digits); return the paths, sorted."""
    written = []
    for number, (image, label) in enumerate(zip(dataset.images, dataset.labels, strict=True)):
        written.append(f"{folder}/{dataset.classes[label]}/{number:05d}.png")
        tf.io.write_file(written[-1], tf.io.encode_png(image))
    return sorted(written)


def write_tfrecords(dataset: Dataset, folder: str | Path, files: int = 4) -> list[str]:
    """Write the samples in their order into `files` TFRecord files, as equal as possible; return the paths, in order.

    A record is a tf.train.Example with `image` (PNG) and `label`.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = [f"{folder}/part-{part}-of-{files}.tfrecord" for part in range(files)]
    for path, numbers in zip(written, np.array_split(np.arange(len(dataset.labels)), files), strict=True):
        with tf.io.TFRecordWriter(path) as writer:
            for number in numbers:
                png = tf.train.BytesList(value=[tf.io.encode_png(dataset.images[number]).numpy()])
                label = tf.train.Int64List(value=[int(dataset.labels[number])])
                feature = {"image": tf.train.Feature(bytes_list=png), "label": tf.train.Feature(int64_list=label)}
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return written


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

        def count(value):
            with self._lock:
                setattr(self, what, getattr(self, what) + amount(value))
            return value

        return tf.ensure_shape(tf.numpy_function(count, [tensor], tensor.dtype), tensor.shape)

    def _opened(self, path):
        return self._counted(path, "opened", lambda path: [path.decode()])

    def file(self, path: tf.Tensor) -> tf.Tensor:
        """tf.io.read_file: the bytes of one file (string scalar)."""
        return self._counted(tf.io.read_file(self._opened(path)), "read", len)

    def image(self, data: tf.Tensor) -> tf.Tensor:
        """tf.io.decode_png: bytes (string scalar) to an image, uint8 (H, W, 3)."""
        return self._counted(tf.io.decode_png(data, channels=3), "decoded", lambda image: 1)

    def records(self, files: tf.data.Dataset) -> tf.data.Dataset:
        """tf.data.TFRecordDataset: the records (string scalars) of a tf.data.Dataset of paths, file after file."""
        named = files.map(self._opened)
        return named.flat_map(tf.data.TFRecordDataset).map(lambda data: self._counted(data, "read", len))

    def example(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """One record (string scalar) to (image uint8 (H, W, 3), label int64)."""
        features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
        found = tf.io.parse_single_example(record, features)
        return self.image(found["image"]), found["label"]
