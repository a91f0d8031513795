"""Six training runs, each with its own bottleneck, and what removes it; watched by a sampler.

    python -m lessons.faster_steps.limited CASE [--remedy REMEDY] [--seconds 6]

It runs in one process, or in as many ranks as `SETTINGS` says. It trains for some seconds in a loop that times every
phase, and writes runs/NAME.rankR.samples. Their head says how many operations an image takes, and how many this worker
can do.
"""

import argparse
import dataclasses
import os
import time
from pathlib import Path

from labs import data, devices, jobs  # import this first: it sets up TensorFlow
from lessons import counts
from lessons.faster_steps.sampler import Sampler

CASES = "ABCDEF"
MULTIPLY_ADDS = 3  # of a step, in units of those forward: backward takes twice as many


@dataclasses.dataclass(frozen=True)
class Setting:
    """One training. network: convolutions, tiny (fewer) or dense (large, with few operations for its weights); batch:
    of each rank; files: whether each image is read and decoded when it is needed; validate: after so many steps (0:
    never); slow: seconds for which the last rank pauses in each step; launcher: of several ranks."""

    limit: str
    network: str = "convolutions"
    batch: int = 64
    files: bool = False
    validate: int = 0
    slow: float = 0.0
    ranks: int | None = None
    launcher: str | None = None


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
LIMITS = {setting.limit for setting in SETTINGS.values()}


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
    setting, more = SETTINGS[case], ["--remedy", remedy] if remedy else []
    name = name or f"limited_{case}{'_' + remedy.replace(' ', '_') if remedy else ''}"
    if setting.ranks:
        options = {"ranks": setting.ranks, "launcher": setting.launcher} | options
    arguments = [case, *more, "--seconds", seconds]
    return jobs.start("-m", "lessons.faster_steps.limited", *arguments, name=name, **options)


def build(kind):
    """The network for uint8 images of 32 x 32 x 3, with 10 classes."""
    import keras
    from keras import layers

    model = keras.Sequential([keras.Input((32, 32, 3)), layers.Rescaling(1 / 255)])
    if kind == "dense":
        for layer in (layers.Flatten(), layers.Dense(2048, "relu"), layers.Dense(2048, "relu")):
            model.add(layer)
    else:
        for filters, stride in ((8, 2), (8, 2), (8, 2)) if kind == "tiny" else ((32, 1), (64, 2), (128, 2)):
            model.add(layers.Conv2D(filters, 3, strides=stride, padding="same", activation="relu"))
        model.add(layers.GlobalAveragePooling2D())
    model.add(layers.Dense(10, activation="softmax"))
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--remedy", choices=REMEDIES)
    parser.add_argument("--seconds", type=float, default=6.0)
    args = parser.parse_args()
    setting = dataclasses.replace(SETTINGS[args.case], **REMEDIES.get(args.remedy, {}))
    train(setting, args.seconds, jobs.folder() / os.environ.get("LABS_RUN", f"limited_{args.case}"))


def train(setting, seconds, stem):
    """Train as the setting says, and write the samples of this rank to STEM.rankR.samples."""
    import keras
    import tensorflow as tf

    from lessons.faster_steps import peak

    rank, size, hvd = 0, 1, None
    if setting.ranks:
        from labs import hvd

        hvd.init()
        rank, size = hvd.rank(), hvd.size()
    devices.pin(rank if setting.ranks else 0, size)
    keras.utils.set_random_seed(0)
    model, loss = build(setting.network), keras.losses.SparseCategoricalCrossentropy()
    optimizer = keras.optimizers.SGD()
    optimizer.build(model.trainable_variables)
    digits = data.load("digits")

    @tf.function
    def gradient(images, labels):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        return tape.gradient(value, model.trainable_variables), value

    @tf.function
    def update(gradients):
        optimizer.apply(gradients, model.trainable_variables)

    @tf.function
    def validate(images):
        return tf.reduce_mean(model(images))

    images, labels = tf.constant(digits.images[: setting.batch]), tf.constant(digits.labels[: setting.batch])
    batches = iter(from_files(digits, setting.batch, stem.parent)) if setting.files else None

    def step(sampler):
        sampler.phase("input")
        some, of_them = next(batches) if batches else (images, labels)
        sampler.phase("computation")
        if setting.slow and rank == size - 1:
            time.sleep(setting.slow)
        gradients, value = gradient(some, of_them)
        value.numpy()
        if hvd:
            sampler.phase("exchange")
            gradients = hvd.grouped_allreduce(gradients)
            sampler.phase("computation")
        update(gradients)
        sampler.images(len(of_them))

    maximum = peak.operations_per_second()
    per_image = 2 * MULTIPLY_ADDS * counts.from_model(model).multiply_adds
    about = {"limit": setting.limit, "batch": setting.batch, "ranks": size}
    about |= {"operations_of_an_image": per_image, "most_operations_per_second": maximum}
    sampler = Sampler(Path(f"{stem}.rank{rank}.samples"), 0.2, rank, **about)
    for _ in range(3):  # traced, and what comes first
        step(_Nobody())
    validate(digits.images[:256])
    number, wanted = 0, 4
    if hvd:
        hvd.allreduce([0.0])  # all begin together
    sampler.start()
    begin = time.perf_counter()
    while number < wanted:
        step(sampler)
        number += 1
        if setting.validate and number % setting.validate == 0:
            sampler.phase("validation")
            for first in range(0, 1792, 256):
                validate(digits.images[first : first + 256]).numpy()
        if number == 3:  # all ranks take equally many steps
            pace = (time.perf_counter() - begin) / 3
            wanted = max(4, round(seconds / (float(hvd.allreduce([pace])[0]) if hvd else pace)))
    sampler.stop()
    print(f"rank {rank}: {number} steps of {setting.batch} images in {time.perf_counter() - begin:.1f} s", flush=True)


class _Nobody:
    """A sampler that writes nothing."""

    def phase(self, name):
        pass

    def images(self, count):
        pass


def from_files(dataset, batch, runs):
    """Batches for ever, of an image folder: each image is decoded and made small when it is needed, by one thread."""
    import tensorflow as tf

    from lessons.faster_steps import feeding

    files, _ = feeding.folder(dataset, 256, runs)
    images = tf.data.Dataset.from_tensor_slices(files).repeat().map(feeding.read)
    return feeding.as_written(images.map(lambda image, label: (feeding.small(image), label)).batch(batch))


if __name__ == "__main__":
    main()
