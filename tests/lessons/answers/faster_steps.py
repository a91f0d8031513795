"""Answers to the self-checks of 24_faster_steps: right ones, and wrong ones that students give."""

import tensorflow as tf

from labs.results.record import Configuration
from labs.results.run import Epoch, Run
from labs.results.watched import Watched
from lessons.faster_steps import feeding

# faster.8: 100 images/s of 6e7 operations on a worker that can do 5e10: 0.12
ABOUT = {"operations_of_an_image": 6e7, "most_operations_per_second": 5e10}
SAMPLES = [{"seconds": 0.5, "images": 50, "cores": 0.9, "memory": 1, "faults": 0, "phases": {}}] * 4
WATCHED = [Watched(0, "measured", ABOUT, SAMPLES)]
SLOWER = Watched(1, "measured", ABOUT, [sample | {"images": 30} for sample in SAMPLES])
TWO, ALIKE = [*WATCHED, SLOWER], WATCHED * 2

LIMITS = {"A": "input", "B": "exchange", "C": "validation", "D": "computation", "E": "slow rank", "F": "small batch"}


def swapped_limits(one, other):
    return {**LIMITS, one: LIMITS[other], other: LIMITS[one]}


ROWS = [
    {"operation": "Conv2DBackpropFilter", "seconds": 0.05, "calls": 9, "share": 0.4},
    {"operation": "_FusedConv2D", "seconds": 0.025, "calls": 9, "share": 0.2},
    {"operation": "FusedBatchNormV3", "seconds": 0.0375, "calls": 9, "share": 0.3},
    {"operation": "AddV2", "seconds": 0.0125, "calls": 9, "share": 0.1},
]

TABLE_OF_10_3 = [{"run": "A", "rank": 0, "batch": 64, "cores": 0.9, "images": 1948.0, "share": "1.2%"}]

# Pipelines

FROM = tf.data.Dataset.from_tensor_slices
AUTO = tf.data.AUTOTUNE


def each(function):
    return lambda image, label: (function(image), label)


def starving(files, read, small, batch):
    return FROM(files).map(read).map(each(small)).batch(batch, drop_remainder=True)


def in_parallel(files, read, small, batch):
    return FROM(files).map(read, num_parallel_calls=4).map(each(small)).batch(batch, drop_remainder=True)


def shuffled(files, read, small, batch):
    return in_parallel(tf.random.shuffle(files), read, small, batch)


def in_any_order(files, read, small, batch):
    images = FROM(files).map(read, num_parallel_calls=4, deterministic=False)
    return images.map(each(small)).batch(batch, drop_remainder=True)


def with_rest(files, read, small, batch):
    return FROM(files).map(read, num_parallel_calls=4).map(each(small)).batch(batch)


def interleaved(files, read, small, batch):
    images = FROM(files).interleave(lambda file: tf.data.Dataset.from_tensors(file).map(read), 4, num_parallel_calls=4)
    return images.map(each(small)).batch(batch, drop_remainder=True)


def one_map(files, read, small, batch):
    def both(file):
        image, label = read(file)
        return small(image), label

    return FROM(files).map(both, num_parallel_calls=AUTO).batch(batch, drop_remainder=True)


def batches_first(files, read, small, batch):
    return FROM(files).map(read, num_parallel_calls=AUTO).batch(batch, drop_remainder=True).map(each(small))


def batches_first_ahead(files, read, small, batch):
    return batches_first(files, read, small, batch).prefetch(1)


def batches_parallel(files, read, small, batch):
    images = FROM(files).map(read, num_parallel_calls=3).batch(batch, drop_remainder=True)
    return images.map(each(small), num_parallel_calls=2)


def stages(*names):
    """A pipeline of these stages, behind reading in parallel."""

    def pipeline(files, read, small, batch):
        images = FROM(files).map(read, num_parallel_calls=AUTO)
        made = {
            "small": lambda it: it.map(each(small)),
            "cache": lambda it: it.cache(),
            "shuffle": lambda it: it.shuffle(len(files)),
            "shuffle(2)": lambda it: it.shuffle(2),
            "batch(8)": lambda it: it.batch(8, drop_remainder=True),
            "same": lambda it: it.shuffle(len(files), seed=1, reshuffle_each_iteration=False),
            "batch": lambda it: it.batch(batch, drop_remainder=True),
            "with rest": lambda it: it.batch(batch),
            "unbatch": lambda it: it.unbatch(),
            "ahead": lambda it: it.prefetch(2),
            "repeat": lambda it: it.repeat(),
        }
        for name in names:
            images = made[name](images)
        return images

    return pipeline


def names_cached(files, read, small, batch):
    return (
        FROM(files)
        .cache()
        .shuffle(99)
        .map(read, num_parallel_calls=4)
        .map(each(small))
        .batch(batch, drop_remainder=True)
        .prefetch(2)
    )


def of_several(files, read, small, batch):
    """Each call of map reads a batch of files."""

    def load(some):
        return tf.map_fn(lambda file: each(small)(*read(file)), some, fn_output_signature=(tf.uint8, tf.int64))

    return FROM(files).batch(batch, drop_remainder=True).map(load, num_parallel_calls=3)


def joined(files, read, small, batch):
    images = FROM(files).map(read, num_parallel_calls=AUTO).batch(batch, drop_remainder=True)
    return tf.data.Dataset.zip((images.map(lambda image, _: small(image)), images.map(lambda _, label: label)))


def with_options(files, read, small, batch):
    options = tf.data.Options()
    options.deterministic = False
    return stages("small", "cache", "shuffle", "batch", "ahead")(files, read, small, batch).with_options(options)


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

ANSWERS = {
    "faster.8": dict(
        right=[(0.12, WATCHED), (100 * 6e7 / 5e10, WATCHED), ("0.12", WATCHED), (0.12, TWO), (0.12, ALIKE)],
        wrong=[
            *[(12, WATCHED), (0.04, WATCHED), (0.24, WATCHED), (0.9, WATCHED), (8.33, WATCHED), (0.5, WATCHED)],
            *[
                (0.1, WATCHED),
                (0.192, TWO),
                (0.072, TWO),
                (0.24, ALIKE),
                ("a tenth", WATCHED),
                ([0.12], WATCHED),
                (120, WATCHED),
            ],
        ],
        secret=r"0\.12\b|Watched",
        same=[(10, 11)],  # no number
    ),
    "faster.2": dict(
        right=[
            (LIMITS,),
            (dict(reversed(LIMITS.items())),),
            ({case: f"{limit.title()} " for case, limit in LIMITS.items()},),
            ({case.lower(): limit for case, limit in LIMITS.items()},),
        ],
        wrong=[
            ("input",),
            ({**LIMITS, "A": "the disk"},),
            ({case: "input" for case in LIMITS},),
            ({case: limit for case, limit in LIMITS.items() if case != "F"},),
            (swapped_limits("A", "D"),),
            (swapped_limits("B", "E"),),
            (swapped_limits("C", "D"),),
            (swapped_limits("D", "F"),),
            (swapped_limits("E", "F"),),
            ({case: [limit] for case, limit in LIMITS.items()},),
        ],
        secret=None,
    ),
    "faster.9": dict(
        right=[(0.6, ROWS), (0.4 + 0.2, ROWS)],
        wrong=[(60, ROWS), (0.4, ROWS), (0.075, ROWS), (0.7, ROWS), (0, TABLE_OF_10_3), ("most", ROWS)],
        secret=r"\b0?\.6\b",
    ),
    "faster.5": dict(
        right=[(in_parallel,), (interleaved,), (one_map,), (of_several,), (shuffled,), (in_any_order,)],
        wrong=[
            (starving,),
            (batches_first,),
            (lambda files, read, small, batch: FROM(files).map(read, 4).map(each(small)),),
            (lambda files, read, small, batch: FROM(files).map(read, 4).batch(batch),),
            (lambda files, read, small, batch: in_parallel(files[:16], read, small, batch),),
            (lambda files, read, small, batch: in_parallel(files, read, small, 2 * batch),),
            (lambda files, read, small, batch: in_parallel(files, read, small, batch).repeat(),),
            (lambda files, read, small, batch: FROM(files).map(read, 4).map(lambda x, y: small(x)).batch(batch),),
            (lambda files, read, small, batch: files,),
            (lambda *given: in_parallel(*given).map(lambda image, label: (label, image)),),
            (lambda *given: in_parallel(*given).map(lambda image, label: (tf.cast(image, tf.float32) / 255, label)),),
            (lambda *given: in_parallel(*given).map(each(given[2])),),
            (lambda files, read, small, batch: in_parallel(files, feeding.read, small, batch),),
            (stages("small", "batch(8)"),),
            (with_rest,),
            (lambda files, read, small, batch: FROM(files).map(read, 4).map(small).batch(batch, drop_remainder=True),),
            (lambda files, read, small, batch: in_parallel(["runs/7/a.png"] * 26, read, small, batch),),
        ],
        secret=r"num_parallel_calls",
    ),
    "faster.10": dict(
        right=[(batches_first,), (batches_first_ahead,), (batches_parallel,)],
        wrong=[
            (in_parallel,),
            (lambda files, read, small, batch: FROM(files).map(read).batch(batch).map(each(small)),),
            (lambda files, read, small, batch: FROM(files).map(read, 4).batch(batch),),
            (lambda files, read, small, batch: FROM(files).map(read, 4).batch(4).map(each(small)),),
            (lambda files, read, small, batch: FROM(files).batch(batch).map(read, 4).map(each(small)),),
            (joined,),
            (stages("batch(8)", "small"),),
            (stages("with rest", "small"),),
        ],
        secret=r"\.batch",
        raises=[4],
    ),
    "faster.6": dict(
        right=[
            (stages("small", "cache", "shuffle", "batch", "ahead"),),
            (stages("with rest", "small", "unbatch", "cache", "shuffle", "batch", "ahead"),),
            (with_options,),
        ],
        wrong=[
            (stages("small", "shuffle", "batch", "ahead"),),
            (names_cached,),
            (stages("small", "shuffle", "cache", "batch", "ahead"),),
            (stages("small", "cache", "batch", "ahead"),),
            (stages("small", "cache", "same", "batch", "ahead"),),
            (stages("small", "shuffle", "batch", "cache", "shuffle", "ahead"),),
            (stages("small", "cache", "batch", "shuffle", "ahead"),),
            (stages("small", "cache", "shuffle", "batch"),),
            (stages("small", "cache", "shuffle", "batch", "repeat", "ahead"),),
            (stages("cache", "shuffle", "batch", "small", "ahead"),),  # the large images
            (stages("small", "cache", "shuffle(2)", "batch", "ahead"),),
            (stages("small", "cache", "shuffle", "batch(8)", "ahead"),),
            (stages("small", "cache", "shuffle", "with rest", "ahead"),),
        ],
        secret=r"cache|prefetch",
        same=[(0, 1), (2, 4), (5, 6)],  # the files are read again; all epochs in one order; batches are shuffled
    ),
    "faster.7": dict(
        right=[
            steps(FED, LARGE),
            steps(LARGE, run(options=["--precision", "mixed_bfloat16"], rate=300.0)),
            (*steps(FED, LARGE), {"change 2": (2.5, (2.2, 2.8))}),
            (*steps(FED, LARGE), {"change 2": (2.5, None)}),
            steps(LARGE, run(options=["--precision", "mixed_bfloat16"], rate=150.0)),  # which did not help
            steps(LARGE, run(options=["--batch_size", 256], rate=400.0, accuracy=0.8)),
            (*steps(LARGE, FED), {"change 1": (2.5, (2.2, 2.8)), "change 2": (2.6, (1.1, 4.0))}),
        ],
        wrong=[
            ([],),
            steps(LARGE),
            steps(FED, FED),
            steps(FED, run(options=["--batch_size", 64], rate=190.0)),
            steps(FED, run(options=["--batch_size", 64], rate=300.0, accuracy=0.8)),
            steps(FED, run(options=["--images", 64], rate=300.0, images=64)),
            steps(FED, run(options=["--dataset", "synthetic"], rate=300.0, dataset="synthetic")),
            steps(FED, run(options=["--small"], rate=300.0, parameters=10)),
            steps(FED, run(options=["--batch_size", 64], rate=300.0, state="failed")),
            (*steps(FED, LARGE), {"change 2": (1.7, (1.5, 1.9))}),
        ],
        secret=None,
    ),
}
