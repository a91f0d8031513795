"""Answers to the self-checks of 24_faster_steps: right ones, and wrong ones that students give."""

from functools import partial

import numpy as np
import tensorflow as tf

from labs.results.run import Configuration, Epoch, Run
from lessons.faster_steps import feeding
from lessons.faster_steps.samples import Samples


def watched(*images):
    """Ranks that take so many images in half a second; each can do 5e10 operations a second."""
    about = {"operations_of_an_image": 6e7, "most_operations_per_second": 5e10}
    samples = [[{"seconds": 0.5, "images": count, "cores": 0.9}] * 4 for count in images]
    return ([Samples(rank, "measured", about, each) for rank, each in enumerate(samples)],)


def rows(**shares):
    return ([{"operation": name, "seconds": share / 8, "share": share} for name, share in shares.items()],)


SAMPLES = {
    "faster.8": [watched(50, 30), watched(40, 22)],
    "faster.9": [
        rows(Conv2DBackpropFilter=0.45, _FusedConv2D=0.2, FusedBatchNormV3=0.25, AddV2=0.1),
        rows(Conv2D=0.28, MatMul=0.27, Conv2DBackpropInput=0.23, Conv2DBackpropFilter=0.16, Relu=0.06),
    ],
}

LIMITS = {"A": "input", "B": "exchange", "C": "validation", "D": "computation", "E": "slow rank", "F": "small batch"}

# Pipelines

FROM = tf.data.Dataset.from_tensor_slices


def pipelines(*each):
    """Pipelines with the given stages, behind reading in parallel."""
    return [(partial(_pipeline, names.split(", ")),) for names in each]


def _pipeline(names, files, read, small, batch):
    stages = {
        "one by one": lambda _: FROM(files).map(read),
        "interleaved": lambda _: FROM(files).interleave(lambda file: FROM([file]).map(read), 4, num_parallel_calls=4),
        "in any order": lambda _: FROM(files).map(read, num_parallel_calls=4, deterministic=False),
        "not these": lambda _: FROM(files).map(feeding.read),
        "some": lambda it: it.take(16),
        "small": lambda it: it.map(lambda image, label: (small(image), label), num_parallel_calls=2),
        "twice": lambda it: tf.data.Dataset.zip(
            (it.map(lambda image, _: small(image)), it.map(lambda _, label: label))
        ),
        "float": lambda it: it.map(lambda image, label: (tf.cast(image, tf.float32) / 255, label)),
        "cache": lambda it: it.cache(),
        "shuffle": lambda it: it.shuffle(len(files)),
        "shuffle(2)": lambda it: it.shuffle(2),
        "batch(8)": lambda it: it.batch(8, drop_remainder=True),
        "batch": lambda it: it.batch(batch, drop_remainder=True),
        "with rest": lambda it: it.batch(batch),
        "endless": lambda it: it.repeat(),
        "ahead": lambda it: it.prefetch(2),
        "options": lambda it: it.with_options(tf.data.Options()),
    }
    made = FROM(files).map(read, num_parallel_calls=4)
    for name in names:
        made = stages[name](made)
    return made


# The closing task


def run(script="faster.py", options=(), accuracy=0.95, images=1024, state="finished"):
    epochs = [Epoch(epoch=n, seconds=9.0, images=images, metrics={"val_accuracy": accuracy}) for n in (0, 1)]
    given = {"state": state, "epochs": epochs, "dataset_images": images, "observed": {"parameters": 1}}
    given |= {"command": [f"scripts/{script}", *options], "script_sha256": script}
    return Run(configuration=Configuration(dataset="digits", image_size=32), **given)


def steps(*others):
    return ({"as given": run("slow.py"), **{f"change {n}": other for n, other in enumerate(others, 1)}},)


FED, LARGE = run(), run(options=["--batch_size", "64"])


def ladder(*others, gains=((1.8, (1.7, 1.9)), (2.5, (2.2, 2.8)))):
    """The steps, with how many times as fast as given each is, and its interval."""
    return (*steps(*others), {f"change {n}": gain for n, gain in enumerate(gains[: len(others)], 1)})


def folder(share):
    """Answer to faster.12: share(dataset of paths, rank, size, read) on ten PNGs."""

    def write(path):
        from labs import data
        from lessons import formats

        images, labels = np.zeros((10, 4, 4, 3), np.uint8), np.arange(10) // 2
        files = formats.write_folder(data.Dataset("small", images, labels, list("01234")), path / "png")
        reads = formats.Reads()

        def answer(files, rank, size):
            return share(FROM(files), rank, size, lambda file: (reads.image(reads.file(file)), 0))

        return answer, files, reads

    return write


ANSWERS = {
    "faster.2": dict(
        right=[(LIMITS,), ({case.lower(): f"{limit.title()} " for case, limit in LIMITS.items()},)],
        wrong=[(LIMITS | {"F": "small"},), (LIMITS | {"A": "slow rank", "E": "input"},), (LIMITS | {"F": "exchange"},)],
    ),
    "faster.5": dict(
        right=pipelines("in any order, small, batch", "interleaved, small, batch"),
        wrong=[
            *pipelines("not these, small, batch", "one by one, small, batch", "batch, small", "small", "batch"),
            *pipelines("some, small, batch", "small, batch, float", "small, batch(8)", "small, with rest"),
            *pipelines("small, batch, endless"),
        ],
        secret=r"num_parallel_calls",
    ),
    "faster.10": dict(
        right=pipelines("batch, small", "in any order, batch, small, ahead"),
        wrong=pipelines("batch, twice", "small, batch", "one by one, batch, small", "with rest, small"),
        secret=r"\.batch",
    ),
    "faster.6": dict(
        right=pipelines("small, cache, shuffle, batch, ahead", "small, cache, shuffle, batch, ahead, options"),
        wrong=[
            *pipelines("small, shuffle, batch, ahead", "small, shuffle, cache, batch, ahead"),
            *pipelines("small, cache, batch, ahead", "small, cache, batch, shuffle, ahead"),
            *pipelines("small, cache, shuffle, batch", "small, cache, shuffle(2), batch, ahead"),
            *pipelines("cache, shuffle, batch, small, ahead"),  # the large images
        ],
        secret=r"cache|prefetch",
    ),
    "faster.7": dict(
        right=[
            ladder(FED, LARGE),
            ladder(FED, LARGE, gains=((1.8, None), (2.5, None))),
            ladder(LARGE, FED, gains=((2.5, (2.2, 2.8)), (2.6, (1.1, 4.0)))),
            ladder(LARGE, run(accuracy=0.8), gains=((2.5, (2.2, 2.8)), (4.0, (3.5, 4.5)))),
        ],
        wrong=[
            ladder(LARGE),
            ladder(FED, FED),
            ladder(FED, LARGE, gains=((1.8, (1.7, 1.9)), (1.9, (1.6, 2.2)))),
            ladder(FED, run(options="x", accuracy=0.8)),
            ladder(FED, run(options="x", images=64)),
            ladder(FED, run(options="x", state="failed")),
        ],
    ),
    "faster.12": dict(
        right=[
            folder(lambda d, rank, size, read: d.shuffle(10, seed=1).shard(size, rank).map(read)),
            folder(lambda d, rank, size, read: d.shard(size, rank).shuffle(10).map(read)),
        ],
        wrong=[
            folder(lambda d, rank, size, read: d.map(read).shard(size, rank)),
            folder(lambda d, rank, size, read: d.shard(size, rank)),
            folder(lambda d, rank, size, read: d.skip(-(-10 // size) * rank).take(-(-10 // size)).map(read)),
            folder(lambda d, rank, size, read: d.shard(size, rank).map(read).repeat()),
            folder(lambda d, rank, size, read: d.shard(size, rank).map(read).batch(2)),
        ],
        secret=r"before|\.shard",
    ),
}
