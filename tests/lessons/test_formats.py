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
    reads.reset()
    assert (reads.read, reads.decoded, reads.opened) == (0, 0, [])


def test_tfrecords_hold_every_sample_once_in_order(dataset, tmp_path):
    for files in (30, 4):
        written, reads = formats.write_tfrecords(dataset, tmp_path / f"{files}", files), formats.Reads()
        assert len(written) == files
        every = reads.records(paths(written)).map(reads.example).as_numpy_iterator()
        images, labels, numbers = zip(*every, strict=True)
        assert np.array_equal(np.stack(images), dataset.images) and list(numbers) == list(range(30))
        assert list(labels) == dataset.labels.tolist() and reads.opened == written and reads.decoded == 30


def test_what_is_read_and_decoded_depends_on_the_place_of_the_shard(dataset, tmp_path):
    files, reads = formats.write_tfrecords(dataset, tmp_path, 4), formats.Reads()

    def count(share):
        reads.reset()
        kept = len(list(share.as_numpy_iterator()))
        return kept, len(reads.opened), reads.decoded, reads.read

    whole = count(reads.records(paths(files)).map(reads.example))
    by_file = count(reads.records(paths(files).shard(2, 0)).map(reads.example))
    before = count(reads.records(paths(files)).shard(2, 0).map(reads.example))
    after = count(reads.records(paths(files)).map(reads.example).shard(2, 0))
    assert whole[:3] == (30, 4, 30)
    assert by_file[:3] == (15, 2, 15) and 0.4 < by_file[3] / whole[3] < 0.6
    assert before == (15, 4, 15, whole[3]) and after == (15, 4, 30, whole[3])
    assert count(reads.records(paths(files).shard(8, 6)).map(reads.example)) == (0, 0, 0, 0)
