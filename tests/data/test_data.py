"""Datasets, their errors, and what the pipeline gives in each epoch. Nothing here touches the network."""

import itertools
import pickle
import re
import sys

import numpy as np
import pytest

from labs import data
from labs.data import cifar10, datasets
from labs.errors import UseError


@pytest.fixture(autouse=True)
def no_other_data(monkeypatch, tmp_path):
    """No CIFAR-10 of the person who runs the tests."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.delenv("LABS_DATA", raising=False)


def message(call, *args, **kwargs):
    """The message of the error that the call raises; it must be one line."""
    with pytest.raises(UseError) as caught:
        call(*args, **kwargs)
    text = str(caught.value)
    assert text and "\n" not in text
    return text


# Datasets


def test_digits_are_the_real_ones_interpolated_as_tensorflow_does():
    import tensorflow as tf
    from sklearn.datasets import load_digits

    bunch, digits = load_digits(), data.load()
    assert digits.images.shape == (1797, 32, 32, 3) and digits.images.dtype == np.uint8
    assert digits.labels.dtype == np.int64 and (digits.labels == bunch.target).all()
    assert digits.classes == list("0123456789")
    theirs = tf.image.resize(bunch.images[..., None], (32, 32), "bilinear") * (255 / 16)
    assert np.abs(digits.images - theirs.numpy()).max() <= 0.51


def test_without_tensorflow_the_pipeline_gives_the_same_batches(monkeypatch):
    dataset = data.load("synthetic", images=100)
    with_it = data.pipeline(dataset, 32, seed=3)
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # as if it were not installed
    without = data.pipeline(dataset, 32, seed=3)
    monkeypatch.undo()
    for _ in range(2):
        expected = [(images.numpy(), labels.numpy()) for images, labels in with_it]
        for i, (images, labels) in enumerate(expected):
            assert np.array_equal(without[i][0], images) and np.array_equal(without[i][1], labels)
        assert len(without) == len(expected) == 3
        without.on_epoch_end()


def test_subset_is_balanced_as_far_as_the_classes_allow_and_always_the_same():
    random = np.random.default_rng(0)
    for _ in range(30):
        labels = np.repeat(np.arange(4), random.integers(1, 40, 4))
        n = int(random.integers(1, len(labels) + 1))
        chosen = datasets.balanced(labels, n)
        counts, there = np.bincount(labels[chosen], minlength=4), np.bincount(labels, minlength=4)
        assert len(set(chosen)) == n and (np.diff(chosen) > 0).all()
        assert counts.max() - counts[counts < there].min(initial=99) <= 1, (
            "one more of any class is one less of another"
        )
    assert (data.load("digits", images=105).images == data.load("digits", images=105).images).all()


def test_synthetic():
    one, same = data.load("synthetic", images=300), data.load("synthetic", images=300)
    assert one.images.shape == (300, 32, 32, 3) and one.images.dtype == np.uint8 and one.labels.dtype == np.int64
    assert set(one.labels) == set(range(len(one.classes))) == set(range(10)) and (one.images == same.images).all()


NAMED = ("digits", "cifar10", "synthetic")


def test_what_names_no_data_is_refused():
    for name, options, says in (
        *((name, {}, NAMED) for name in ("cifar100", "", "synthetic:3", None)),
        *(("digits", {"images": n}, ["images"]) for n in (0, True, 2.0, "5")),
        ("digits", {"images": 1798}, ["1798", "1797"]),
        ("synthetic", {"images": 999999999999}, ["do not fit into memory"]),
    ):
        text = message(data.load, name, **options)
        assert all(part in text for part in says), name


# CIFAR-10, from files of the true shape


def write(path, content):
    """As Python 2 wrote it, whose str is bytes here: its opcode is U, that of text is X."""
    raw = pickle.dumps(content, protocol=3)
    path.write_bytes(re.sub(rb"X(.)\0\0\0(?=labels|data|batch_label)", rb"U\1", raw, flags=re.DOTALL))


def batch(number, **changed):
    rng = np.random.default_rng(number)
    pixels = rng.integers(0, 256, (10_000, 3072), np.uint8)
    return {"batch_label": f"batch {number}", "labels": rng.integers(0, 10, 10_000).tolist(), "data": pixels} | changed


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    """A folder of files with CIFAR-10's names, keys, types and shapes, written once as by Python 2."""
    folder = tmp_path_factory.mktemp("data") / cifar10.FOLDER
    folder.mkdir()
    for i in range(1, 6):
        write(folder / f"data_batch_{i}", batch(i))
    return folder


def test_cifar10_is_read_as_written(batches, monkeypatch):
    monkeypatch.setenv("LABS_DATA", str(batches.parent))
    train = data.load("cifar10")
    assert train.images.shape == (50_000, 32, 32, 3) and train.images.dtype == np.uint8
    assert train.labels.dtype == np.int64 and train.classes[3] == "cat"
    assert train.labels.tolist() == [label for i in range(1, 6) for label in batch(i)["labels"]]
    red, green, blue = batch(3)["data"][7].reshape(3, 32, 32)
    assert (train.images[20_007] == np.stack([red, green, blue], -1)).all()
    assert set(np.bincount(data.load("cifar10", images=200).labels)) == {20}


def test_cifar10_is_looked_for_in_labs_data_and_in_keras_cache(batches, tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_DATA", str(tmp_path / "mine"))
    text, cache = message(data.load, "cifar10"), tmp_path / "keras" / "datasets"
    assert str(tmp_path / "mine" / cifar10.FOLDER) in text and f"{cache}" in text and "cifar-10-python.tar.gz" in text
    for where in (cache / f"{cifar10.FOLDER}-target" / cifar10.FOLDER, cache / cifar10.FOLDER):
        where.parent.mkdir(parents=True, exist_ok=True)
        where.symlink_to(batches)
        assert cifar10.find() == where


def test_cifar10_spoilt_file_is_named(batches, tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_DATA", str(tmp_path))
    path = tmp_path / cifar10.FOLDER / "data_batch_5"
    path.parent.mkdir()
    for file in batches.iterdir():
        (path.parent / file.name).symlink_to(file)
    for spoilt in (
        b"<html>404</html>",
        (batches / "data_batch_1").read_bytes()[:1_000_000],
        {"fine_labels": [1], "data": 5},
        batch(6, data=np.zeros((10_000, 3072), np.float32)),
        batch(6, labels=[0] * 9_999),
    ):
        path.unlink()
        path.write_bytes(spoilt) if isinstance(spoilt, bytes) else write(path, spoilt)
        text = message(data.load, "cifar10")
        assert str(path) in text and "Unpack" in text
    path.unlink()
    assert str(path) in message(data.load, "cifar10")


# Batches


def test_bad_batches():
    digits = data.load("digits", images=50)
    for size in (0, True, 8.0, "8", None):
        assert "global_batch" in message(data.pipeline, digits, size)
        assert "workers" in message(data.pipeline, digits, 8, workers=size)
    data.check_batch(50, 50)
    assert "global_batch 51 is more than the 50 images" in message(data.pipeline, digits, 51)
    assert "global_batch 2 leaves some of 4 workers idle" in message(data.pipeline, digits, 2, workers=4)
    assert "10 is no multiple of 4 workers: unequal" in (text := message(data.pipeline, digits, 10, workers=4))
    assert "8 or 12" in text and "seed" in message(data.pipeline, digits, 8, seed=-1)


# The pipeline: images whose first pixel tells their index, so that a batch shows the order


def marked(n):
    images = np.zeros((n, 4, 5, 3), np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = np.arange(n) // 256, np.arange(n) % 256
    return data.Dataset("marked", images, np.arange(n) + 1000, ["a"])


def epoch(batches):
    """The indices of each batch in one pass; images and labels must belong together."""
    seen = []
    for images, labels in batches.as_numpy_iterator():
        assert images.dtype == np.uint8 and labels.dtype == np.int64 and images.shape[1:] == (4, 5, 3)
        numbers = images[:, 0, 0, 0].astype(int) * 256 + images[:, 0, 0, 1]
        assert (labels == numbers + 1000).all()
        seen.append(list(numbers))
    return seen


def flat(batches):
    return list(itertools.chain(*batches))


def test_drop_leaves_out_the_rest_others_in_each_epoch_and_a_smaller_batch_stays_without_an_order():
    import tensorflow as tf

    batches = data.pipeline(marked(1000), 64)
    seen = epoch(batches)
    assert batches.cardinality() == 15 and batches.element_spec[0].shape == (64, 4, 5, 3)
    assert [len(b) for b in seen] == [64] * 15 and len(set(flat(seen))) == 960
    assert set(flat(seen)) != set(flat(epoch(batches)))
    assert epoch(data.batches(marked(6), tf.data.Dataset.range(6), 4)) == [[0, 1, 2, 3], [4, 5]]
    assert "batch is 0" in message(data.batches, marked(10), tf.data.Dataset.range(10), 0)


def test_order_is_new_each_epoch_and_repeats_with_the_seed():
    import tensorflow as tf

    first = data.pipeline(marked(500), 50, seed=7)
    next(iter(first))  # an epoch that is left early does not disturb the next
    epochs = [flat(epoch(first)) for _ in range(3)]
    assert epochs == [list(np.random.default_rng([7, k]).permutation(500)) for k in (1, 2, 3)]
    tf.random.set_seed(99)  # no hidden randomness: the global seed changes nothing
    again = data.pipeline(marked(500), 50, seed=7, workers=2)
    assert [flat(epoch(again)) for _ in range(4)][1:] == epochs
    assert flat(epoch(data.pipeline(marked(500), 50, seed=8))) != flat(epoch(data.pipeline(marked(500), 50, seed=7)))
    later = data.order(marked(500), 50, seed=7, first=2)
    assert [list(later.as_numpy_iterator()) for _ in range(2)] == epochs[1:]
    assert "first is -1" in message(data.order, marked(500), 50, first=-1)
    options = first.options()  # no thread that an epoch waits for, and replicas share a batch: there is no file
    assert options.autotune.enabled is False
    assert options.experimental_distribute.auto_shard_policy == tf.data.experimental.AutoShardPolicy.DATA
