"""Answers to the self-checks of 24_faster_steps: right ones, and wrong ones that students give."""

import numpy as np
import tensorflow as tf

from labs.results.run import Configuration, Epoch, Run
from lessons.faster_steps.samples import Samples

# faster.8: 100 images/s of 6e7 operations on a worker that can do 5e10: 0.12
ABOUT = {"operations_of_an_image": 6e7, "most_operations_per_second": 5e10}
SAMPLES = [{"seconds": 0.5, "images": 50, "cores": 0.9, "memory": 1, "faults": 0, "phases": {}}] * 4
WATCHED = [Samples(0, "measured", ABOUT, SAMPLES)]
TWO = [*WATCHED, Samples(1, "measured", ABOUT, [sample | {"images": 30} for sample in SAMPLES])]

LIMITS = {"A": "input", "B": "exchange", "C": "validation", "D": "computation", "E": "slow rank", "F": "small batch"}


def swapped_limits(one, other):
    return ({**LIMITS, one: LIMITS[other], other: LIMITS[one]},)


SHARES = {"Conv2DBackpropFilter": 0.4, "_FusedConv2D": 0.2, "FusedBatchNormV3": 0.3, "AddV2": 0.1}
ROWS = [{"operation": name, "seconds": share / 8, "calls": 9, "share": share} for name, share in SHARES.items()]
TABLE_OF_10_3 = [{"run": "A", "rank": 0, "batch": 64, "cores": 0.9, "images": 1948.0, "share": "1.2%"}]

# Pipelines

FROM = tf.data.Dataset.from_tensor_slices
AUTO = tf.data.AUTOTUNE


def each(function):
    return lambda image, label: (function(image), label)


def stages(names):
    """A pipeline of these stages, behind reading in parallel."""

    def pipeline(files, read, small, batch):
        images = FROM(files).map(read, num_parallel_calls=AUTO)
        made = {
            "one by one": lambda it: FROM(files).map(read),
            "in any order": lambda it: FROM(files).map(read, num_parallel_calls=4, deterministic=False),
            "some": lambda it: it.take(16),
            "small": lambda it: it.map(each(small)),
            "smaller at once": lambda it: it.map(each(small), num_parallel_calls=2),
            "float": lambda it: it.map(lambda image, label: (tf.cast(image, tf.float32) / 255, label)),
            "cache": lambda it: it.cache(),
            "shuffle": lambda it: it.shuffle(len(files)),
            "shuffle(2)": lambda it: it.shuffle(2),
            "same": lambda it: it.shuffle(len(files), seed=1, reshuffle_each_iteration=False),
            "batch(8)": lambda it: it.batch(8, drop_remainder=True),
            "batch(4)": lambda it: it.batch(4),
            "batch": lambda it: it.batch(batch, drop_remainder=True),
            "with rest": lambda it: it.batch(batch),
            "unbatch": lambda it: it.unbatch(),
            "ahead": lambda it: it.prefetch(2),
        }
        for name in names.split(", "):
            images = made[name](images)
        return images

    return (pipeline,)


def interleaved(files, read, small, batch):
    images = FROM(files).interleave(lambda file: tf.data.Dataset.from_tensors(file).map(read), 4, num_parallel_calls=4)
    return images.map(each(small)).batch(batch, drop_remainder=True)


def joined(files, read, small, batch):
    images = FROM(files).map(read, num_parallel_calls=AUTO).batch(batch, drop_remainder=True)
    return tf.data.Dataset.zip((images.map(lambda image, _: small(image)), images.map(lambda _, label: label)))


def with_options(*given):
    options = tf.data.Options()
    options.deterministic = False
    return stages("small, cache, shuffle, batch, ahead")[0](*given).with_options(options)


# The closing task


def run(script="faster.py", options=(), rate=100.0, accuracy=0.95, images=1024, parameters=1000, **more):
    epochs = [Epoch(epoch=n, seconds=images / rate, images=images, metrics={"val_accuracy": accuracy}) for n in (0, 1)]
    configuration = Configuration(dataset=more.pop("dataset", "digits"), image_size=32)
    given = {"state": "finished", "epochs": epochs, "dataset_images": images, "observed": {"parameters": parameters}}
    given |= {"command": [f"scripts/{script}", *map(str, options)], "script_sha256": script}
    return Run(configuration=configuration, **(given | more))


def steps(*others):
    return ({"as given": run("slow.py"), **{f"change {n}": other for n, other in enumerate(others, 1)}},)


FED, LARGE = run(rate=180.0), run(options=["--batch_size", 64], rate=250.0)


def then(rate=300.0, **more):
    """The steps with a third run, of other options."""
    return steps(FED, run(options=["--changed", 1], rate=rate, **more))


def folder(share):
    """Answer to faster.12: share(dataset of paths, rank, size, read) on ten PNGs."""

    def write(path):
        from labs import data
        from lessons import formats

        images, labels = np.zeros((10, 4, 4, 3), np.uint8), np.arange(10) // 2
        files = formats.write_folder(data.Dataset("small", images, labels, list("01234")), path / "png")
        reads = formats.Reads()

        def read(file):
            return reads.image(reads.file(file)), 0

        def answer(files, rank, size):
            import tensorflow as tf

            return share(tf.data.Dataset.from_tensor_slices(files), rank, size, read)

        return answer, files, reads

    return write


ANSWERS = {
    "faster.8": dict(
        right=[(0.12, WATCHED), ("0.12", TWO)],
        wrong=[(12, WATCHED), (0.1, WATCHED), (0.072, TWO)],
        secret=r"0\.12\b|Watched",
    ),
    "faster.2": dict(
        right=[(LIMITS,), ({case.lower(): f"{limit.title()} " for case, limit in LIMITS.items()},)],
        wrong=[({case: limit for case, limit in LIMITS.items() if case != "F"},), *map(swapped_limits, "AE", "DF")],
    ),
    "faster.9": dict(right=[(0.6, ROWS)], wrong=[(60, ROWS), (0.7, ROWS), (0, TABLE_OF_10_3)], secret=r"\b0?\.6\b"),
    "faster.5": dict(
        right=[stages("in any order, small, batch"), (interleaved,)],
        wrong=[
            *map(stages, ("one by one, small, batch", "batch, small", "small", "with rest", "some, small, batch")),
            *map(stages, ("small, batch, float", "small, batch(8)", "small, with rest")),
        ],
        secret=r"num_parallel_calls",
    ),
    "faster.10": dict(
        right=[stages("batch, small"), stages("batch, smaller at once, ahead")],
        wrong=[
            (joined,),
            *map(stages, ("small, batch", "one by one, with rest, small", "batch(4), small", "batch(8), small")),
        ],
        secret=r"\.batch",
    ),
    "faster.6": dict(
        right=[stages("with rest, small, unbatch, cache, shuffle, batch, ahead"), (with_options,)],
        wrong=[
            stages("small, shuffle, batch, ahead"),
            stages("small, shuffle, cache, batch, ahead"),
            stages("small, cache, batch, ahead"),
            stages("small, cache, same, batch, ahead"),
            stages("small, cache, batch, shuffle, ahead"),
            stages("small, cache, shuffle, batch"),
            stages("cache, shuffle, batch, small, ahead"),  # the large images
            stages("small, cache, shuffle(2), batch, ahead"),
            stages("small, cache, shuffle, with rest, ahead"),
        ],
        secret=r"cache|prefetch",
    ),
    "faster.7": dict(
        right=[
            steps(FED, LARGE),
            steps(LARGE, run(options=["--batch_size", 256], rate=400.0, accuracy=0.8)),
            (*steps(LARGE, FED), {"change 1": (2.5, (2.2, 2.8)), "change 2": (2.6, (1.1, 4.0))}),
        ],
        wrong=[
            ([],),
            steps(LARGE),
            steps(FED, FED),
            then(rate=190.0),
            then(accuracy=0.8),
            then(images=64),
            then(dataset="synthetic"),
            then(parameters=10),
            then(state="failed"),
            (*steps(FED, LARGE), {"change 2": (1.7, (1.5, 1.9))}),
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
            folder(lambda d, rank, size, read: [read(file.decode()) for file in d.as_numpy_iterator()][rank::size]),
        ],
        secret=r"before|\.shard",
    ),
    "faster.14": dict(right=[(4,)], wrong=[(2,), (8,)]),
}
