"""Answers to the self-checks of 07_horovod_sharding: right ones, and wrong ones that students give."""

from functools import partial

import numpy as np
from making import swapped

from labs.results.run import Configuration, Run

script = partial(swapped, "scripts/repaired.py")
MINE = "mine = numbers.shard(hvd.size(), hvd.rank())"
BATCHES = "train = data.batches(dataset, mine, args.batch_size // hvd.size())"
ORDER = "numbers = data.order(dataset, args.batch_size, seed=args.seed)"
OWN = """part = slice(hvd.rank(), None, hvd.size())
own = data.Dataset(dataset.name, dataset.images[part], dataset.labels[part], dataset.classes)
mine = data.order(own, args.batch_size // hvd.size(), seed=args.seed)"""


def ordered(line, *more):
    """Answer to sharding.14: `numbers` by this line, of n samples, of which `cut` fill whole global batches."""
    sizes = "import tensorflow as tf\nn = len(dataset.images)\ncut = n // args.batch_size * args.batch_size"
    return script((ORDER, f"{sizes}\nnumbers = {line}"), ("args.seed + hvd.rank()", "1"), *more)


def recorded(steps, global_batch):
    return Run(steps=steps, configuration=Configuration(global_batch=global_batch))


def numbers(n, seed=None):
    """The samples, on ranks that have a global seed of their own, or all of them this one."""
    import tensorflow as tf

    if seed:
        tf.random.set_seed(seed)
    return tf.data.Dataset.range(n)


SAMPLES = {"sharding.12": [(recorded(28, 64), recorded(28, 128)), (recorded(11, 32), recorded(11, 96))]}
ANSWERS = {
    "sharding.1": dict(
        right=[([34, 33, 33],), (np.array([34, 33, 33]),), (("34", 33, 33.0),)],
        wrong=[([33, 33, 34],), ([100 / 3] * 3,), ([33, 33, 33],), ([50, 50],)],
        secret=r"\b34\b|\b33\b",
    ),
    "sharding.2": dict(
        right=[
            (lambda d, rank, size: d.shard(size, rank),),
            (lambda d, rank, size: d.enumerate().filter(lambda i, x: i % size == rank).map(lambda i, x: x),),
        ],
        wrong=[
            (lambda d, rank, size: d.shard(rank, size),),
            (lambda d, rank, size: list(d.shard(size, rank).as_numpy_iterator()),),
            (lambda d, rank, size: d.shard(size, 0),),
            (lambda d, rank, size: d.shard(size + 1, rank),),
            (lambda d, rank, size: d.shard(size, size - 1 - rank),),
            (lambda d, rank, size: d.shard(size, rank).batch(4),),
        ],
        raises=(0,),
        secret=r"\.shard\(",
    ),
    "sharding.7": dict(
        right=[
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n),),
            (lambda n, rank, size: numbers(n, 7).shuffle(n, seed=1).shard(size, rank),),
        ],
        wrong=[
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n, 1, reshuffle_each_iteration=False),),
            (lambda n, rank, size: numbers(n, 1).shuffle(n // 3).shard(size, rank),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(256),),
            (lambda n, rank, size: numbers(n).take(1000).shard(size, rank).shuffle(n, seed=0),),
            (lambda n, rank, size: numbers(n).filter(lambda x: x * size // n == rank).shuffle(n),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n, seed=1).repeat(),),
            (lambda n, rank, size: numbers(n).shuffle(n, seed=7).shard(size, rank),),  # each rank has a global seed
        ],
        secret=r"seed=1|reshuffle|\bseed\b",
    ),
    "sharding.14": dict(
        right=[
            script(),
            script(
                (MINE, f"{MINE}.repeat()"),
                ("epochs=args.epochs,", "epochs=args.epochs, steps_per_epoch=len(dataset.labels) // args.batch_size,"),
            ),
            ordered("tf.data.Dataset.range(n).shuffle(n, seed=args.seed).take(cut)"),
        ],
        wrong=[
            script((MINE, "mine = numbers.take(48 // hvd.size())")),
            script((MINE, MINE + ".cache()")),
            script((MINE, OWN), (BATCHES, BATCHES.replace("dataset", "own"))),
            script(("data.order(dataset, args.batch_size,", "data.order(dataset, args.batch_size // hvd.size(),")),
            script(("0.01 * hvd.size()", "0.01")),
            ordered("tf.data.Dataset.range(cut).shuffle(n, seed=args.seed)"),
        ],
        secret=r"\.shard\(|mine",
    ),
}
