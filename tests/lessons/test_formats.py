"""lessons.formats: PNG folders and TFRecord files hold the data set; reading them is counted."""

import os

import numpy as np
import pytest

from labs import data
from lessons import formats


@pytest.fixture(scope="module")
def dataset():
    made = data.load("digits", images=30)
    order = np.argsort(made.labels, kind="stable")
    return data.Dataset("sorted", made.images[order], made.labels[order], made.classes)


def paths(files):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(files)


def test_folder_holds_every_image_unchanged_and_in_order(dataset, tmp_path):
    files, reads = formats.write_folder(dataset, tmp_path / "png"), formats.Reads()
    assert files == sorted(files) and files[0] == str(tmp_path / "png/0/00000.png")
    images = np.stack(list(paths(files).map(lambda file: reads.image(reads.file(file))).as_numpy_iterator()))
    assert np.array_equal(images, dataset.images)
    assert [int(file.split(os.sep)[-2]) for file in files] == dataset.labels.tolist()
    assert reads.read == sum(map(os.path.getsize, files)) and reads.opened == files and reads.decoded == 30


def test_tfrecords_hold_every_sample_and_what_is_read_and_decoded_depends_on_the_place_of_the_shard(dataset, tmp_path):
    files, reads = formats.write_tfrecords(dataset, tmp_path, 4), formats.Reads()
    images, labels = zip(*reads.records(paths(files)).map(reads.example).as_numpy_iterator(), strict=True)
    assert np.array_equal(np.stack(images), dataset.images)
    assert list(labels) == dataset.labels.tolist() and reads.opened == files and reads.decoded == 30
    every = reads.read

    def count(share):
        reads.reset()
        kept = len(list(share.as_numpy_iterator()))
        return kept, len(reads.opened), reads.decoded, reads.read

    by_file = count(reads.records(paths(files).shard(2, 0)).map(reads.example))
    assert by_file[:3] == (15, 2, 15) and 0.4 < by_file[3] / every < 0.6
    assert count(reads.records(paths(files)).shard(2, 0).map(reads.example)) == (15, 4, 15, every)
    assert count(reads.records(paths(files)).map(reads.example).shard(2, 0)) == (15, 4, 30, every)
    assert count(reads.records(paths(files).shard(8, 6)).map(reads.example)) == (0, 0, 0, 0)
