"""Datasets, their errors, and what the pipeline gives in each epoch. Nothing here touches the network."""

import itertools
import json
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labs import data
from labs.data import DataError, cifar10

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_other_data(monkeypatch, tmp_path):
    """No CIFAR-10 of the person who runs the tests."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.delenv("LABS_DATA", raising=False)


def message(call, *args, **kwargs):
    """The message of the error that the call raises; it must be one line."""
    with pytest.raises(DataError) as caught:
        call(*args, **kwargs)
    text = str(caught.value)
    assert text and "\n" not in text
    return text


# Datasets


def test_import_stays_light():
    code = "import sys, labs.data; print([m for m in ('tensorflow', 'sklearn', 'scipy', 'PIL') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_digits_are_the_real_ones():
    from sklearn.datasets import load_digits

    bunch, digits = load_digits(), data.load()
    assert digits.images.shape == (1797, 32, 32, 3) and digits.images.dtype == np.uint8
    assert digits.labels.dtype == np.int64 and (digits.labels == bunch.target).all()
    assert digits.classes == list("0123456789") and set(digits.labels) == set(range(10))
    assert digits.images.min() == 0 and digits.images.max() == 255
    # Averaging every 4x4 block gives back the small image, up to what interpolation smooths.
    small = digits.images[..., 0].reshape(-1, 8, 4, 8, 4).mean((2, 4)) / 255 * 16
    assert np.corrcoef(small.ravel(), bunch.images.ravel())[0, 1] > 0.95
    assert (digits.images == data.load("digits").images).all()


def test_digits_are_interpolated_as_tensorflow_does():
    import tensorflow as tf
    from sklearn.datasets import load_digits

    theirs = tf.image.resize(load_digits().images[:50, ..., None], (32, 32), "bilinear")[..., 0] * (255 / 16)
    assert np.abs(data.load().images[:50, ..., 0] - theirs.numpy()).max() <= 0.51


def test_without_tensorflow_the_pipeline_gives_the_same_batches(monkeypatch):
    dataset = data.load("synthetic:100")
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


def test_subset_is_balanced_and_seeded():
    subset = data.load("digits", images=105, seed=3)
    counts = np.bincount(subset.labels)
    assert len(subset.labels) == 105 and set(counts) == {10, 11}
    assert (subset.images == data.load("digits", images=105, seed=3).images).all()
    assert (subset.images != data.load("digits", images=105, seed=4).images).any()
    assert len(data.load("digits", images=1797).labels) == 1797


def test_subset_takes_all_of_a_small_class():
    labels = np.array([0] * 100 + [1] * 3 + [2] * 50)
    chosen = data.balanced(labels, 43)
    assert len(set(chosen)) == 43 and list(np.bincount(labels[chosen])) == [20, 3, 20]


def test_subset_size_must_count():
    for images in (0, -1, True, 2.0, "5", np.float64(3)):
        assert "images" in message(data.load, "digits", images=images)


def test_subset_larger_than_the_dataset():
    text = message(data.load, "digits", images=1798)
    assert "1798" in text and "1797" in text


def test_unknown_name_lists_the_known():
    for name in ("cifar100", "", "folder", "folder:", "digits:3", "Digits", None):
        text = message(data.load, name)
        assert all(known in text for known in ("digits", "cifar10", "folder:PATH", "synthetic:N"))


def test_only_cifar10_has_a_test_split():
    assert "cifar10" in message(data.load, "digits", split="test")
    assert "tset" in message(data.load, "cifar10", split="tset")


def test_synthetic():
    one, same = data.load("synthetic:300", seed=1), data.load("synthetic:300", seed=1)
    assert one.images.shape == (300, 32, 32, 3) and one.images.dtype == np.uint8 and one.labels.dtype == np.int64
    assert len(one.classes) == 10 and set(one.labels) == set(range(10))
    assert (one.images == same.images).all() and (one.labels == same.labels).all()
    assert (one.images != data.load("synthetic:300", seed=2).images).any()
    assert len(data.load("synthetic", images=77).labels) == 77
    assert len(data.load("synthetic:300", images=77).labels) == 77
    assert "301" in message(data.load, "synthetic:300", images=301)
    for count in ("0", "-3", "many", "1.5"):
        assert f"synthetic:{count}" in message(data.load, f"synthetic:{count}")


# CIFAR-10, from files of the true shape


class Python2Pickler(pickle._Pickler):
    """Writes bytes and text as Python 2 wrote its str, as in the original files of CIFAR-10."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_bytes(self, value):
        self.write(pickle.BINSTRING + struct.pack("<i", len(value)) + value)
        self.memoize(value)

    dispatch[bytes] = save_bytes
    dispatch[str] = lambda self, value: self.save_bytes(value.encode("latin1"))


def write(path, content, like="python2"):
    with open(path, "wb") as file:
        if like == "python2":
            Python2Pickler(file, protocol=2).dump(content)
        else:
            pickle.dump(content, file, protocol=like)


NAMES = "airplane automobile bird cat deer dog frog horse ship truck".split()


def batch(number, **changed):
    rng = np.random.default_rng(number)
    pixels = rng.integers(0, 256, (10_000, 3072), np.uint8)
    return {"batch_label": f"batch {number}", "labels": rng.integers(0, 10, 10_000).tolist(), "data": pixels} | changed


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    """A folder of files with CIFAR-10's names, keys, types and shapes; written once."""
    folder = tmp_path_factory.mktemp("data") / cifar10.FOLDER
    folder.mkdir()
    for i in range(1, 6):
        write(folder / f"data_batch_{i}", batch(i))
    write(folder / "test_batch", batch(6))
    write(folder / "batches.meta", {"num_cases_per_batch": 10_000, "label_names": NAMES, "num_vis": 3072})
    return folder


@pytest.fixture
def cifar(batches, tmp_path, monkeypatch):
    """The same files as links, to be changed one by one; $LABS_DATA points there."""
    folder = tmp_path / "mine" / cifar10.FOLDER
    folder.mkdir(parents=True)
    for file in batches.iterdir():
        (folder / file.name).symlink_to(file)
    monkeypatch.setenv("LABS_DATA", str(folder.parent))
    return folder


def test_cifar10_is_read_as_written(cifar):
    train, test = data.load("cifar10"), data.load("cifar10", split="test")
    assert train.images.shape == (50_000, 32, 32, 3) and train.images.dtype == np.uint8
    assert train.labels.shape == (50_000,) and train.labels.dtype == np.int64 and train.classes == NAMES
    third = batch(3)
    red, green, blue = third["data"][7].reshape(3, 32, 32)
    assert (train.images[20_007] == np.stack([red, green, blue], -1)).all()
    assert (train.labels[20_000:30_000] == third["labels"]).all()
    assert (test.labels == batch(6)["labels"]).all() and test.images.shape == (10_000, 32, 32, 3)
    assert set(np.bincount(data.load("cifar10", images=200).labels)) == {20}


@pytest.mark.parametrize("place", [cifar10.FOLDER, f"{cifar10.FOLDER}-target/{cifar10.FOLDER}"])
def test_cifar10_in_keras_cache(batches, tmp_path, place):
    where = tmp_path / "keras" / "datasets" / place
    where.parent.mkdir(parents=True)
    where.symlink_to(batches)
    assert cifar10.find() == where
    assert len(data.load("cifar10", split="test").labels) == 10_000


def test_cifar10_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_DATA", str(tmp_path / "mine"))
    text = message(data.load, "cifar10")
    assert str(tmp_path / "mine" / cifar10.FOLDER) in text and str(tmp_path / "keras") in text
    assert "cifar-10-python.tar.gz" in text and "$LABS_DATA" in text
    with pytest.raises(DataError):
        cifar10.find()


@pytest.mark.parametrize("name", ["data_batch_4", "batches.meta"])
def test_cifar10_one_file_missing(cifar, name):
    (cifar / name).unlink()
    assert str(cifar / name) in message(data.load, "cifar10")


@pytest.mark.parametrize("like", [2, 4, 5])
def test_cifar10_files_saved_again_by_python3(cifar, like):
    (cifar / "test_batch").unlink()
    again = {key.encode(): value for key, value in batch(6).items()}
    write(cifar / "test_batch", again, like)
    assert (data.load("cifar10", split="test").labels == batch(6)["labels"]).all()


def wrong(**changed):
    return lambda path: write(path, batch(6, **changed))


class Evil:
    """Runs a program when a careless reader loads it."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('ran')",))


def truncate(path):
    write(path, batch(6))
    path.write_bytes(path.read_bytes()[:1_000_000])


@pytest.mark.parametrize(
    "spoil",
    [
        truncate,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\x89PNG\r\n not a pickle"),
        lambda path: path.write_text("<html>404</html>"),
        lambda path: path.mkdir(),
        lambda path: write(path, [1, 2, 3]),
        lambda path: write(path, {"fine_labels": [1], "data": 5}),
        lambda path: write(path, {"labels": Evil(), "data": Evil()}, 4),
        lambda path: write(path, {"labels": [1], "data": Path("x")}, 4),
        wrong(data=np.zeros((9_999, 3072), np.uint8)),
        wrong(data=np.zeros((10_000, 3071), np.uint8)),
        wrong(data=np.zeros((10_000, 3072), np.float32)),
        wrong(data=[[0] * 3072]),
        wrong(labels=[0] * 9_999),
        wrong(labels=[0] * 9_999 + [10]),
        wrong(labels=[0] * 9_999 + [-1]),
        wrong(labels=[0.5] * 10_000),
        wrong(labels=[[0], [1, 2]]),
    ],
)
def test_cifar10_spoilt_file_is_named(cifar, spoil):
    path = cifar / "test_batch"
    path.unlink()
    spoil(path)
    text = message(data.load, "cifar10", split="test")
    assert str(path) in text and "Unpack" in text


def test_cifar10_classes_are_ten(cifar):
    (cifar / "batches.meta").unlink()
    for names in (NAMES[:9], 7):
        write(cifar / "batches.meta", {"label_names": names})
        assert "batches.meta" in message(data.load, "cifar10", split="test")


# Folders


@pytest.fixture
def folder(tmp_path):
    from PIL import Image

    for label, name in enumerate(["cat", "dog"]):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(4):
            kind = "png" if i % 2 else "JPG"
            colour = (250, 10 * i, 0) if label else (0, 10 * i, 250)
            Image.new("RGB", (30 + i, 50), colour).save(tmp_path / "photos" / name / f"{i}.{kind}")
    return tmp_path / "photos"


def test_folder(folder):
    from PIL import Image

    Image.new("L", (5, 5), 255).save(folder / "dog" / "grey.png")
    (folder / "dog" / "notes.txt").write_text("no image")
    (folder / "dog" / "._0.jpg").write_bytes(b"left by a Mac")
    (folder / ".cache").mkdir()
    photos = data.load(f"folder:{folder}")
    assert photos.images.shape == (9, 64, 64, 3) and photos.images.dtype == np.uint8
    assert photos.classes == ["cat", "dog"] and list(photos.labels) == [0] * 4 + [1] * 5
    assert photos.labels.dtype == np.int64
    assert (photos.images[:4, ..., 2] > 240).all() and (photos.images[4:, ..., 0] > 240).all()
    assert (photos.images[8] == 255).all()
    assert list(data.load(f"folder:{folder}", images=4).labels) == [0, 0, 1, 1]
    assert "10" in message(data.load, f"folder:{folder}", images=10)


def test_folder_missing(tmp_path):
    path = tmp_path / "nowhere"
    assert str(path) in message(data.load, f"folder:{path}")


def test_folder_with_an_empty_class(folder):
    (folder / "emu").mkdir()
    assert str(folder / "emu") in message(data.load, f"folder:{folder}")


def test_folder_with_one_class(folder):
    assert "fewer than two subfolders" in message(data.load, f"folder:{folder / 'cat'}")
    only = folder.parent / "only"
    only.mkdir()
    (folder / "cat").rename(only / "cat")
    text = message(data.load, f"folder:{only}")
    assert str(only) in text and "fewer than two subfolders" in text


def test_folder_with_an_unreadable_image(folder):
    for content in (b"", b"no image", b"\x89PNG\r\n\x1a\n"):
        (folder / "dog" / "bad.png").write_bytes(content)
        assert str(folder / "dog" / "bad.png") in message(data.load, f"folder:{folder}")


def test_folder_with_a_cut_image(folder):
    from PIL import Image

    path = folder / "dog" / "cut.jpg"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 90, 3), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:-2000])
    assert str(path) in message(data.load, f"folder:{folder}")


# Batches


def test_batches_must_count():
    digits = data.load("digits", images=50)
    for size in (0, -8, True, False, 8.0, "8", None, np.float32(8), np.bool_(True), [8]):
        assert "global_batch" in message(data.pipeline, digits, size)
        assert "workers" in message(data.pipeline, digits, 8, workers=size)


def test_bad_batches():
    digits = data.load("digits", images=50)
    assert "50" in message(data.pipeline, digits, 51)
    text = message(data.pipeline, digits, 2, workers=4)
    assert "2" in text and "4 workers" in text
    text = message(data.pipeline, digits, 10, workers=4)
    assert "10" in text and "4 workers" in text and "8 or 12" in text
    assert "seed" in message(data.pipeline, digits, 8, seed=-1)


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


def test_drop_leaves_out_the_rest():
    batches = data.pipeline(marked(1000), 64)
    seen = epoch(batches)
    assert batches.cardinality() == 15 and batches.element_spec[0].shape == (64, 4, 5, 3)
    assert [len(b) for b in seen] == [64] * 15 and len(set(flat(seen))) == 960
    assert set(flat(seen)) != set(flat(epoch(batches)))  # others are left out the next time


def test_order_is_new_each_epoch_and_repeats_with_the_seed():
    import tensorflow as tf

    first = data.pipeline(marked(500), 50, seed=7)
    epochs = [flat(epoch(first)) for _ in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    tf.random.set_seed(99)  # no hidden randomness: the global seed changes nothing
    again = data.pipeline(marked(500), 50, seed=7, workers=2)
    assert [flat(epoch(again)) for _ in range(3)] == epochs
    assert epochs[2] == list(np.random.default_rng([7, 2]).permutation(500))
    assert flat(epoch(data.pipeline(marked(500), 50, seed=8))) != epochs[0]


def test_order_can_begin_with_a_later_epoch():
    every = data.order(marked(500), 50, seed=7)
    epochs = [list(every.as_numpy_iterator()) for _ in range(3)]
    later = data.order(marked(500), 50, seed=7, first=1)
    assert [list(later.as_numpy_iterator()) for _ in range(2)] == epochs[1:]
    with pytest.raises(DataError, match="first is -1"):
        data.order(marked(500), 50, first=-1)


def test_an_epoch_left_early_does_not_disturb_the_next():
    batches = data.pipeline(marked(500), 50, seed=7)
    next(iter(batches))
    assert flat(epoch(batches)) == list(np.random.default_rng([7, 1]).permutation(500))


def test_graph_does_not_hold_the_images():
    batches = data.pipeline(data.load("synthetic:2000"), 64)  # 6 MB of images
    todo, found = [batches], 0
    while todo:
        node = todo.pop()
        todo += node._inputs()
        for function in node._functions():
            found += 1
            assert function.function.graph.as_graph_def().ByteSize() < 100_000
    assert found >= 2


# What MirroredStrategy makes of the pipeline, on 2 and on 4 logical devices of one process
DISTRIBUTED = """
import json
import numpy as np
import tensorflow as tf
from labs import data, devices
from tensorflow.python.data.ops import multi_device_iterator_ops

cpus = devices.workers(4, pin=False, kind="cpu")
def resident():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1]) * 1024

def epoch(batches):
    results = strategy.experimental_local_results
    return [[share.numpy().tolist() for share in results(labels)] for _, labels in batches]

out = {}
for workers in (2, 4):
    strategy = tf.distribute.MirroredStrategy(cpus[:workers])
    numbered = data.Dataset("numbered", np.zeros((62, 8, 8, 3), np.uint8), np.arange(62), list("0123456789"))
    shared = strategy.experimental_distribute_dataset(data.pipeline(numbered, 16, workers=workers, seed=5))
    out[workers] = [epoch(shared) for _ in range(2)]

digits = data.load("digits", images=62)
large = data.load("synthetic:20000")
shared = strategy.experimental_distribute_dataset(data.pipeline(large, 500, workers=workers))
grown = []
for _ in range(4):
    for _ in shared:
        pass
    grown.append(resident())
out["grown"], out["bytes"] = grown[-1] - grown[0], large.images.nbytes

made, original = [], multi_device_iterator_ops._create_device_dataset
def watch(*args):
    made.append(original(*args))
    return made[-1]
multi_device_iterator_ops._create_device_dataset = watch
epoch(strategy.experimental_distribute_dataset(data.pipeline(digits, 16, workers=workers)))
out["tuned"] = [buffer.options().autotune.enabled for buffer in made]
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def distributed():
    """What the program printed, and its standard error."""
    done = subprocess.run([sys.executable, "-c", DISTRIBUTED], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.mark.parametrize("workers", [2, 4])
def test_mirrored_strategy_shares_batches_equally(distributed, workers):
    local = 16 // workers
    for k, steps in enumerate(distributed[0][str(workers)]):
        assert flat(flat(steps)) == np.random.default_rng([5, k]).permutation(62)[:48].tolist()  # consecutive slices
        assert all([len(share) for share in step] == [local] * workers for step in steps)
    assert "shard" not in distributed[1].lower().replace("getnextfromshard", "")


def test_epochs_copy_no_images(distributed):
    assert distributed[0]["grown"] < distributed[0]["bytes"] / 2


def test_no_iterator_of_an_epoch_has_a_tuning_thread(distributed):
    """Neither the pipeline nor the buffers that tf.distribute adds on the devices (see labs.compat)."""
    pipeline = data.pipeline(data.load("digits", images=64), 16)
    assert pipeline.options().autotune.enabled is False
    assert distributed[0]["tuned"] == [False] * 4
