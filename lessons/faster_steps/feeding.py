"""An image folder whose images must be decoded and made small, the network that reads them, and how long it waits."""

import random
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from labs import jobs
from labs.data.datasets import Dataset
from lessons import formats
from lessons.faster_steps import networks

SIDE = 256  # pixels of an image in its file; the network sees 32


def larger(dataset, numbers):
    """These samples of a data set with their images enlarged to SIDE x SIDE."""
    images = np.kron(dataset.images[numbers], np.ones((1, SIDE // 32, SIDE // 32, 1), np.uint8))
    return Dataset(dataset.name, images, dataset.labels[numbers], dataset.classes)


def folder(dataset, images, runs):
    """(paths of so many images as PNGs in RUNS/digits_large, (images, labels) of the others, for validation).

    Always the same images, of mixed classes. The folder is written unless it exists already.
    """
    order = np.random.default_rng(0).permutation(len(dataset.labels))
    place = Path(runs) / f"digits_large_{images}"
    files = sorted(map(str, place.glob("*/*.png")))
    if len(files) != images:
        files = formats.write_folder(larger(dataset, order[:images]), place)
    rest = order[images:]
    return random.Random(0).sample(files, images), (dataset.images[rest], dataset.labels[rest])


def read(file):
    """(image uint8 SIDE x SIDE x 3, label int64) of a file."""
    image = tf.io.decode_png(tf.io.read_file(file), channels=3)
    return tf.ensure_shape(image, (SIDE, SIDE, 3)), tf.strings.to_number(tf.strings.split(file, "/")[-2], tf.int64)


def small(images):
    """One image or a batch of them, uint8, made 32 x 32."""
    return tf.cast(tf.image.resize(images, (32, 32)), tf.uint8)


def as_written(pipeline):
    """The same pipeline without TensorFlow's own additions: parallel calls of `map`, prefetching, and the thread that
    tunes it, for which the beginning of the next epoch would wait (labs.compat.no_tuning_thread)."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    return pipeline.with_options(options)


def network():
    """The network, for uint8 images of 32 x 32 x 3."""
    return networks.classifier(*networks.convolutions([(16, 2), (32, 2)]), keras.layers.Flatten(), name="small")


def measure(pipelines, step, rounds):
    """{name: [(seconds of waiting for a batch, seconds of its step), ... of each round]}, means over an epoch.

    pipelines: {name: tf.data.Dataset of (images, labels)}, run as they are written; step: function of a batch, which
    waits until the batch is done. A first epoch of each is not counted: it fills caches and traces. Then the pipelines
    take turns, in random order in each round.
    """
    pipelines = {name: as_written(pipeline) for name, pipeline in pipelines.items()}
    found = {name: [] for name in pipelines}
    for number, order in zip(range(rounds + 1), jobs.orders(0, len(pipelines)), strict=False):
        for name in (list(pipelines)[place] for place in order):
            waited = computed = count = 0
            batches, begin = iter(pipelines[name]), time.perf_counter()
            for batch in batches:
                ready = time.perf_counter()
                step(*batch)
                end = time.perf_counter()
                waited, computed, count, begin = waited + ready - begin, computed + end - ready, count + 1, end
            if number:
                found[name].append((waited / count, computed / count))
    return found
