"""Answers to the self-checks of 07_horovod_sharding: right ones, and wrong ones that students give."""

import numpy as np

from labs.results.run import Configuration, Run

SHARD, SHUFFLED = "numbers.shard(size, rank)", ".shard(size, rank).shuffle(n)"
EPOCHS, STEPS = "epochs=args.epochs,", "len(dataset.labels) // args.batch_size"
MINE, SIZE = "mine = numbers.shard(hvd.size(), hvd.rank())", "args.batch_size // hvd.size()"
OWN = f"""part = slice(hvd.rank(), None, hvd.size())
own = data.Dataset(dataset.name, dataset.images[part], dataset.labels[part], dataset.classes)
mine = data.order(own, {SIZE}, seed=args.seed)"""


def ordered(line):
    """A change of sharding.14: `numbers` by this line, of n samples, of which `cut` fill whole global batches."""
    sizes = "import tensorflow as tf\nn = len(dataset.images)\ncut = n // args.batch_size * args.batch_size"
    order = "numbers = data.order(dataset, args.batch_size, seed=args.seed)"
    return order, f"{sizes}\nnumbers = {line}", "args.seed + hvd.rank()", "1"


def recorded(steps, global_batch):
    return Run(steps=steps, configuration=Configuration(global_batch=global_batch))


SAMPLES = {"sharding.12": [(recorded(28, 64), recorded(28, 128)), (recorded(11, 32), recorded(11, 96))]}
RIGHT = [("sharding.1", ([34, 33, 33],)), ("sharding.1", (np.array([34, 33, 33]),))]
WRONG = [
    ("sharding.1", ([33, 33, 34],)),
    ("sharding.1", ([100 / 3] * 3,)),
    ("sharding.1", ([33, 33, 33],)),
    ("sharding.1", ([50, 50],)),
]
STYLES = [
    ("sharding.2", SHARD, "numbers.enumerate().filter(lambda i, x: i % size == rank).map(lambda i, x: x)"),
    ("sharding.7", "return", "tf.random.set_seed(7)\n    return", SHUFFLED, ".shuffle(n, seed=1).shard(size, rank)"),
    ("sharding.14", MINE, f"{MINE}.repeat()", EPOCHS, f"{EPOCHS} steps_per_epoch={STEPS},"),
    ("sharding.14", *ordered("tf.data.Dataset.range(n).shuffle(n, seed=args.seed).take(cut)")),
]
MISTAKES = [
    ("sharding.2", SHARD, "numbers.shard(rank, size)"),
    ("sharding.2", SHARD, f"list({SHARD}.as_numpy_iterator())"),
    ("sharding.2", SHARD, "numbers.shard(size, 0)"),
    ("sharding.2", SHARD, "numbers.shard(size + 1, rank)"),
    ("sharding.2", SHARD, "numbers.shard(size, size - 1 - rank)"),
    ("sharding.2", SHARD, f"{SHARD}.batch(4)"),
    ("sharding.7", ".shuffle(n)", ".shuffle(n, 1, reshuffle_each_iteration=False)"),
    ("sharding.7", "return", "tf.random.set_seed(1)\n    return", SHUFFLED, ".shuffle(n // 3).shard(size, rank)"),
    ("sharding.7", ".shuffle(n)", ".shuffle(256)"),
    ("sharding.7", SHUFFLED, ".take(1000).shard(size, rank).shuffle(n, seed=0)"),
    ("sharding.7", ".shard(size, rank)", ".filter(lambda x: x * size // n == rank)"),
    ("sharding.7", ".shuffle(n)", ".shuffle(n, seed=1).repeat()"),
    ("sharding.7", SHUFFLED, ".shuffle(n, seed=7).shard(size, rank)"),  # each rank has a global seed
    ("sharding.14", MINE, "mine = numbers.take(48 // hvd.size())"),
    ("sharding.14", MINE, f"{MINE}.cache()"),
    ("sharding.14", MINE, OWN, f"data.batches(dataset, mine, {SIZE})", f"data.batches(own, mine, {SIZE})"),
    ("sharding.14", "data.order(dataset, args.batch_size,", f"data.order(dataset, {SIZE},"),
    ("sharding.14", "0.01 * hvd.size()", "0.01"),
    ("sharding.14", *ordered("tf.data.Dataset.range(cut).shuffle(n, seed=args.seed)")),
]
