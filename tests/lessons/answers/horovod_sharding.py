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
RECORD, UNSHARDED = (Run(steps=28, configuration=Configuration(global_batch=64 * ranks)) for ranks in (1, 2))
ODD, EVEN = list(range(1, 101, 2)), list(range(2, 101, 2))


def mine(line):
    return script((MINE, line))


def ordered(line, *more):
    """Answer to sharding.14: `numbers` by this line, of n samples, of which `cut` fill whole global batches."""
    sizes = "import tensorflow as tf\nn = len(dataset.images)\ncut = n // args.batch_size * args.batch_size"
    return script((ORDER, f"{sizes}\nnumbers = {line}"), *more)


def numbers(n):
    import tensorflow as tf

    return tf.data.Dataset.range(n)


def seeded(seed):
    """Give a rank the global seed of all others."""
    import tensorflow as tf

    tf.random.set_seed(seed)


ANSWERS = {
    "sharding.1": dict(
        right=[([34, 33, 33],), (np.array([34, 33, 33]),), (("34", 33, 33.0),)],
        wrong=[([33, 33, 34],), ([100 / 3] * 3,)],
        secret=r"\b34\b|\b33\b",
    ),
    "sharding.2": dict(
        right=[
            (lambda d, rank, size: d.shard(size, rank),),
            (lambda d, rank, size: d.enumerate().filter(lambda i, x: i % size == rank).map(lambda i, x: x),),
        ],
        wrong=[
            (lambda d, rank, size: list(d.shard(size, rank).as_numpy_iterator()),),
            (lambda d, rank, size: d.shard(size, size - 1 - rank),),
            (lambda d, rank, size: d.shard(size, rank).map(lambda x: x + 100),),
            (lambda d, rank, size: d.shard(size, rank).repeat(),),
            (lambda d, rank, size: d.shard(size, rank).batch(4),),
        ],
        secret=r"\.shard\(",
    ),
    "sharding.6": dict(
        right=[
            (lambda reads, n: n - len(set().union(*reads)),),
            (lambda reads, n: sum(not any(i in r for r in reads) for i in range(n)),),
        ],
        wrong=[
            (lambda reads, n: n - sum(map(len, reads)),),
            (lambda reads, n: n - len(set().union(*reads[:3])),),
            (lambda reads, n: set(range(n)) - set().union(*reads),),
            (lambda reads, n: n - len({reads[0].pop() for _ in reads[0][:]}.union(*reads)),),
        ],
        secret=r"union",
    ),
    "sharding.7": dict(
        right=[
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n),),
            (lambda n, rank, size: seeded(7) or numbers(n).shuffle(n, seed=1).shard(size, rank),),
        ],
        wrong=[
            (lambda n, rank, size: numbers(n).shard(size, rank),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n, 1, reshuffle_each_iteration=False),),
            (lambda n, rank, size: seeded(1) or numbers(n).shuffle(n // 3).shard(size, rank),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(256),),
            (lambda n, rank, size: numbers(n).take(1000).shard(size, rank).shuffle(n, seed=0),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n, seed=1).repeat(),),
            (lambda n, rank, size: numbers(n).shuffle(n, seed=7).shard(size, rank),),  # each rank has a global seed
        ],
        secret=r"seed=1|reshuffle|\bseed\b",
    ),
    "sharding.8": dict(right=[(13, 2), ("13", 2.0)], wrong=[(12.5, 2), (13, 4)], secret=r"\b13\b|\b12\b"),
    "sharding.10": dict(
        right=[
            (lambda n, k, b: (n // (k * b), n % (k * b)),),
            (lambda n, k, b: (n // k // b, n - n // k // b * k * b),),
        ],
        wrong=[
            (lambda n, k, b: (-(-n // (k * b)), 0),),
            (lambda n, k, b: n // (k * b),),
            (lambda n, k, b: (n // (k * b), n % b),),
        ],
        secret=r"//|\*",
    ),
    "sharding.12": dict(
        right=[(1792, 3584, RECORD, UNSHARDED)],
        wrong=[(*given, RECORD, UNSHARDED) for given in ((1797, 1797), (3584, 1792))],
        secret=r"\b1792\b|\b3584\b|twice",
    ),
    "sharding.14": dict(
        right=[
            script(),
            script(
                (MINE, f"{MINE}.repeat()"),
                ("epochs=args.epochs,", "epochs=args.epochs, steps_per_epoch=len(dataset.labels) // args.batch_size,"),
            ),
            ordered("tf.data.Dataset.range(n).shuffle(n, seed=args.seed).take(cut)", ("args.seed + hvd.rank()", "1")),
        ],
        wrong=[
            mine("mine = numbers.take(48 // hvd.size())"),
            mine(MINE + ".cache()"),
            script((MINE, OWN), (BATCHES, BATCHES.replace("dataset", "own"))),
            script(("data.order(dataset, args.batch_size,", "data.order(dataset, args.batch_size // hvd.size(),")),
            script(("epochs=args.epochs", "epochs=args.epochs * hvd.size()")),
            ordered("tf.data.Dataset.range(cut)"),
            ordered("tf.data.Dataset.range(cut).shuffle(n, seed=args.seed)", ("args.seed + hvd.rank()", "1")),
        ],
        secret=r"\.shard\(|mine",
    ),
}
