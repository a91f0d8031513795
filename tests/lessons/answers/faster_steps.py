"""Answers to the self-checks of 24_faster_steps: right ones, and wrong ones that students give."""

import numpy as np
from making import edited

from labs import data
from labs.results.run import Configuration, Epoch, Run
from lessons import formats


def rows(**shares):
    return ([{"operation": name, "seconds": share / 8, "share": share} for name, share in shares.items()],)


SAMPLES = {
    "faster.8": [
        rows(Conv2DBackpropFilter=0.45, _FusedConv2D=0.2, FusedBatchNormV3=0.25, AddV2=0.1),
        rows(Conv2D=0.28, MatMul=0.27, Conv2DBackpropInput=0.23, Conv2DBackpropFilter=0.16, Relu=0.06),
    ]
}

LIMITS = {"A": "input", "B": "exchange", "C": "validation", "D": "computation", "E": "slow rank", "F": "small batch"}

# Pipelines

READ = ".map(read, num_parallel_calls=tf.data.AUTOTUNE)"
BATCHED = ".batch(batch, drop_remainder=True)"
SMALL = ".map(lambda image, label: (small(image), label))"
SHUFFLED, AHEAD = ".shuffle(len(files))", ".prefetch(2)"
OF_BATCHES = ".map(lambda images, labels: (small(images), labels))"
TWICE = "tf.data.Dataset.zip((images.map(lambda image, _: small(image)), images.map(lambda _, label: label)))"
SHARD, BY_FILE = ".shard(size, rank)", "lambda file: tf.data.Dataset.from_tensor_slices([file]).map(read)"


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


def folder(*texts):
    """Answer to faster.11 on ten PNGs: the solution with these texts replaced."""

    def write(path):
        images, labels = np.zeros((10, 4, 4, 3), np.uint8), np.arange(10) // 2
        files = formats.write_folder(data.Dataset("small", images, labels, list("01234")), path / "png")
        (share,), reads = edited("faster.11", *texts), formats.Reads()
        share.__globals__["read_png"] = lambda file: (reads.image(reads.file(file)), 0)
        return share, files, reads

    return write


RIGHT = [
    ("faster.2", (LIMITS,)),
    ("faster.7", ladder(FED, LARGE)),
    ("faster.7", ladder(FED, LARGE, gains=((1.8, None), (2.5, None)))),
    ("faster.7", ladder(LARGE, FED, gains=((2.5, (2.2, 2.8)), (2.6, (1.1, 4.0))))),
    ("faster.7", ladder(LARGE, run(accuracy=0.8), gains=((2.5, (2.2, 2.8)), (4.0, (3.5, 4.5))))),
    ("faster.11", folder()),
    ("faster.11", folder(SHARD, f".shuffle(10, seed=1){SHARD}")),
    ("faster.11", folder(SHARD, f"{SHARD}.shuffle(10)")),
]
WRONG = [
    ("faster.2", (LIMITS | {"F": "small"},)),
    ("faster.2", (LIMITS | {"A": "slow rank", "E": "input"},)),
    ("faster.7", ladder(LARGE)),
    ("faster.7", ladder(FED, FED)),
    ("faster.7", ladder(FED, LARGE, gains=((1.8, (1.7, 1.9)), (1.9, (1.6, 2.2))))),
    ("faster.7", ladder(FED, run(options="x", accuracy=0.8))),
    ("faster.7", ladder(FED, run(options="x", images=64))),
    ("faster.7", ladder(FED, run(options="x", state="failed"))),
    ("faster.11", folder(SHARD, "", "(read_png)", f"(read_png){SHARD}")),
    ("faster.11", folder(".map(read_png)", "")),
    ("faster.11", folder(SHARD, ".skip(-(-10 // size) * rank).take(-(-10 // size))")),
    ("faster.11", folder("(read_png)", "(read_png).repeat()")),
]
STYLES = [
    ("faster.5", "AUTOTUNE)", "AUTOTUNE, deterministic=False)"),
    ("faster.5", READ, f".interleave({BY_FILE}, 4, num_parallel_calls=4)"),
    ("faster.6", AHEAD, f"{AHEAD}.with_options(tf.data.Options())"),
]
MISTAKES = [
    ("faster.5", ".map(read", ".map(feeding.read"),
    ("faster.5", READ, ".map(read)"),
    ("faster.5", SMALL + BATCHED, BATCHED + SMALL),
    ("faster.5", BATCHED, ""),
    ("faster.5", SMALL, f".take(16){SMALL}"),
    ("faster.5", BATCHED, f"{BATCHED}.map(lambda image, label: (tf.cast(image, tf.float32) / 255, label))"),
    ("faster.5", BATCHED, ".batch(batch)"),
    ("faster.5", BATCHED, f"{BATCHED}.as_numpy_iterator()"),
    ("faster.5", BATCHED, f"{BATCHED}.repeat()"),
    ("faster.9", "return images", "images = images", OF_BATCHES, f"\n    return {TWICE}"),
    ("faster.9", BATCHED + OF_BATCHES, OF_BATCHES + BATCHED),
    ("faster.6", ".cache()", ""),
    ("faster.6", SHUFFLED, "", ".cache()", f"{SHUFFLED}.cache()"),
    ("faster.6", SHUFFLED + BATCHED, BATCHED + SHUFFLED),
    ("faster.6", AHEAD, ""),
    ("faster.6", SHUFFLED, ".shuffle(2)"),
    ("faster.6", SMALL, "", BATCHED, BATCHED + SMALL),  # the large images are kept
]
