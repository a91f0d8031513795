"""Six training runs, each with its own bottleneck, and what removes it; watched by a sampler.

    python -m lessons.faster_steps.limited OPTIONS      OPTIONS: JSON, a Setting and seconds

It runs in one process, or in as many ranks as the Setting says. It trains for some seconds in a loop that times every
phase, and writes runs/NAME.rankR.samples. Their head says how many operations an image takes, and how many this worker
can do.
"""

import itertools
import json
import os
import sys
import time
from collections import namedtuple
from statistics import fmean

from labs import data, devices, jobs  # import this first: it sets up TensorFlow
from labs.measure.step import timed
from lessons import counts
from lessons.faster_steps import by_hand, feeding, networks
from lessons.faster_steps.sampler import Sampler

# isort: split
import keras
import tensorflow as tf

# One training. network: convolutions, tiny (fewer) or dense (large, with few operations for its weights); batch: of
# each rank; files: whether each image is read and decoded when it is needed; validate: after so many steps (0: never);
# slow: seconds for which the last rank pauses in each step; ranks: None without Horovod; launcher: of several ranks.
Setting = namedtuple(
    "Setting",
    "limit network batch files validate slow ranks launcher",
    defaults=["convolutions", 64, False, 0, 0.0, None, None],
)

SETTINGS = {
    "A": Setting("input", network="tiny", files=True),
    "B": Setting("exchange", network="dense", batch=8, ranks=2, launcher="mpiexec"),
    "C": Setting("validation", validate=4),
    "D": Setting("computation"),
    "E": Setting("slow rank", batch=32, slow=0.15, ranks=2, launcher="horovodrun"),
    "F": Setting("small batch", network="tiny", batch=1),
}
REMEDIES = {  # what each of them changes
    "feed": {"files": False},
    "exchange less": {"batch": 128},
    "validate less": {"validate": 64},
    "equal ranks": {"slow": 0.0},
    "larger batch": {"batch": 64},
}


def chosen(case, remedy):
    """(case, remedy) as SETTINGS and REMEDIES spell them; (None, None) for others, which a printed line names."""
    found = str(case).strip().upper(), str(remedy).strip().lower()
    if found[0] in SETTINGS and found[1] in REMEDIES:
        return found
    if case is not ... and remedy is not ...:
        print(f"Nothing was run: case is {case!r} and remedy {remedy!r}. A case is one of {', '.join(SETTINGS)}, and a "
              f"remedy one of {', '.join(REMEDIES)}.")  # fmt: skip
    return None, None


def start(case, remedy=None, name=None, seconds=6, **options):
    """Start a case as a job, watched; returns labs.jobs.Job. options: of jobs.start."""
    setting = SETTINGS[case]._replace(**REMEDIES.get(remedy, {}))
    name = name or f"limited_{case}{'_' + remedy.replace(' ', '_') if remedy else ''}"
    options = {"name": name, "ranks": setting.ranks, "launcher": setting.launcher} | options
    return jobs.start("-m", "lessons.faster_steps.limited", json.dumps([setting, seconds]), **options)


def build(kind):
    """The network for uint8 images of 32 x 32 x 3, with 10 classes."""
    if kind == "dense":
        hidden = (keras.layers.Dense(2048, "relu") for _ in range(2))
        return networks.classifier(keras.layers.Flatten(), *hidden)
    layers = networks.convolutions([(8, 2)] * 3) if kind == "tiny" else networks.convolutions()
    return networks.classifier(*layers, keras.layers.GlobalAveragePooling2D())


def train(setting, seconds):
    """Train as the setting says, and write the samples of this rank beside the job's log, as NAME.rankR.samples."""
    rank, size, hvd = 0, 1, None
    if setting.ranks:
        from labs import hvd

        hvd.init()
        rank, size = hvd.rank(), hvd.size()
    devices.pin(rank, size)
    keras.utils.set_random_seed(0)
    model, digits = build(setting.network), data.load("digits")
    gradient, optimizer = by_hand.gradient_of(model), keras.optimizers.SGD()
    optimizer.build(model.trainable_variables)
    update = tf.function(lambda gradients: optimizer.apply(gradients, model.trainable_variables))
    validate = tf.function(lambda images: tf.reduce_mean(model(images)))
    if setting.files:
        batches = iter(from_files(digits, setting.batch))
    else:
        fixed = tf.constant(digits.images[: setting.batch]), tf.constant(digits.labels[: setting.batch])
        batches = itertools.repeat(fixed)

    def step():
        sampler.phase("input")
        images, labels = next(batches)
        sampler.phase("computation")
        if setting.slow and rank == size - 1:
            time.sleep(setting.slow)
        gradients = gradient(images, labels)
        gradients[-1].numpy()  # waits for the device
        if hvd:
            sampler.phase("exchange")
            gradients = hvd.grouped_allreduce(gradients)
            sampler.phase("computation")
        update(gradients)
        sampler.images(len(labels))

    per_image = 6 * counts.from_model(model).multiply_adds  # each is two, and backward takes twice as many as forward
    about = {"limit": setting.limit, "batch": setting.batch, "ranks": size}
    about |= {"operations_of_an_image": per_image, "most_operations_per_second": most_operations()}
    sampler = Sampler(jobs.folder() / f"{os.environ['LABS_RUN']}.rank{rank}.samples", 0.2, rank, **about)
    for _ in range(3):  # traced, and what comes first
        step()
    validate(digits.images[:256])
    pace = fmean(timed(step, 3))
    if hvd:  # all ranks take equally many steps, and begin together
        pace = float(hvd.allreduce([pace])[0])
    steps = max(4, round(seconds / pace))
    sampler.start()
    begin = time.perf_counter()
    for number in range(1, steps + 1):
        step()
        if setting.validate and number % setting.validate == 0:
            sampler.phase("validation")
            for first in range(0, 1792, 256):
                validate(digits.images[first : first + 256]).numpy()
    sampler.stop()
    print(f"rank {rank}: {steps} steps of {setting.batch} images in {time.perf_counter() - begin:.1f} s", flush=True)


def most_operations():
    """float32 operations a second (a multiply-add is two) of TensorFlow's product of two large matrices here.

    The fastest counts: the others were disturbed.
    """
    side = 1024
    matrix = tf.random.stateless_normal((side, side), seed=(0, 1))
    product = tf.function(lambda: tf.reduce_sum(matrix @ matrix))
    return 2 * side**3 / min(timed(lambda: float(product()), 25))


def from_files(dataset, batch):
    """Batches for ever, of an image folder: each image is decoded and made small when it is needed, by one thread."""
    files, _ = feeding.folder(dataset, 256, jobs.folder())
    images = tf.data.Dataset.from_tensor_slices(files).repeat().map(feeding.read)
    return feeding.as_written(images.map(lambda image, label: (feeding.small(image), label)).batch(batch))


if __name__ == "__main__":
    setting, seconds = json.loads(sys.argv[1])
    train(Setting(*setting), seconds)
