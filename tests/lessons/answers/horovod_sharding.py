"""Answers to the self-checks of 07_horovod_sharding: right ones, and wrong ones that students give."""

from functools import partial

import numpy as np
from making import swapped

from labs.results.record import Configuration
from labs.results.run import Run

script = partial(swapped, "scripts/repaired.py")
MINE = "mine = numbers.shard(hvd.size(), hvd.rank())"
BATCHES = "train = data.batches(dataset, mine, args.batch_size // hvd.size())"


RECORD, UNSHARDED = (
    Run(
        state="finished",
        steps=28,
        dataset_images=1797,
        configuration=Configuration(global_batch=64 * ranks, workers=ranks),
        epochs=[],
    )
    for ranks in (1, 2)
)
ODD, EVEN = list(range(1, 101, 2)), list(range(2, 101, 2))


OWN = "data.Dataset(dataset.name, dataset.images[part], dataset.labels[part], dataset.classes)"


def own_images(batch):
    """Answer to sharding.13: each rank keeps its share of the images, and makes an order of its own of them."""
    part = "slice(hvd.rank(), None, hvd.size())"
    order = f"data.order(own, {batch}, seed=args.seed)"
    return script(
        (MINE, f"part = {part}\nown = {OWN}\nmine = {order}"), (BATCHES, f"train = data.batches(own, mine, {batch})")
    )


def mine(line):
    return script((MINE, line))


ORDER = "numbers = data.order(dataset, args.batch_size, seed=args.seed)"


def ordered(line, *more):
    """Answer to sharding.13: `numbers` by this line, of n samples, of which `cut` fill whole global batches."""
    sizes = "n = len(dataset.images)\ncut = n // args.batch_size * args.batch_size"
    tensorflow = "import keras\n", "import keras\nimport tensorflow as tf\n"
    return script(tensorflow, (ORDER, f"{sizes}\nnumbers = {line}"), *more)


def numbers(n):
    import tensorflow as tf

    return tf.data.Dataset.range(n)


def seeded(seed):
    """Give a rank the global seed of all others."""
    import tensorflow as tf

    tf.random.set_seed(seed)


def generated(random, n, rank, size):
    """Answer to sharding.7: a share of an order that a generator of NumPy draws."""
    import tensorflow as tf

    share, number = lambda: random.permutation(n)[rank::size], tf.TensorSpec((), tf.int64)
    return tf.data.Dataset.from_generator(share, output_signature=number)


def block(n, rank, size):
    own = np.array_split(np.arange(n), size)[rank]
    return numbers(n).skip(own[0]).take(len(own)).shuffle(n, seed=1)


def no_end(reads, n):
    count = 0
    while count <= n:
        pass


def folder(share):
    """Answer to sharding.21: share(dataset of paths, rank, size, read) on ten PNGs."""

    def write(path):
        from labs import data
        from labs.data import formats

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
    "sharding.15": dict(
        right=[(ODD, EVEN), (range(1, 101, 2), np.arange(2, 101, 2))],
        wrong=[
            (ODD, ODD),
            (EVEN, ODD),
            (list(range(1, 51)), list(range(51, 101))),
            (ODD[1:], EVEN),
            (list(range(0, 100, 2)) + [100], ODD),
            (list(range(1, 70)), list(range(70, 101))),
            (ODD[::-1], EVEN),
        ],
        secret=r"\b2::2|1::2|0::2",
    ),
    "sharding.1": dict(
        right=[([34, 33, 33],), (np.array([34, 33, 33]),), (["34", "33", "33"],), ((34, 33, 33.0),)],
        wrong=[([33, 33, 34],), ([33, 33, 33],), ([34, 34, 34],), ([50, 50],), ([35, 33, 32],), ([100 / 3] * 3,)],
        secret=r"\b34\b|\b33\b",
    ),
    "sharding.2": dict(
        right=[
            (lambda d, rank, size: d.shard(size, rank),),
            (lambda d, rank, size: d.skip(rank).window(1, size).flat_map(lambda w: w),),
            (lambda d, rank, size: d.enumerate().filter(lambda i, x: i % size == rank).map(lambda i, x: x),),
        ],
        wrong=[
            (lambda d, rank, size: d,),
            (lambda d, rank, size: d.shard(size, 0),),
            (lambda d, rank, size: d.shard(3, rank),),
            (lambda d, rank, size: list(d.shard(size, rank).as_numpy_iterator()),),
            (lambda d, rank, size: d.shard(size, size - 1 - rank),),
            (lambda d, rank, size: d.shard(size, rank).map(lambda x: x + 100),),
            (lambda d, rank, size: d.shard(rank, size),),
            (lambda d, rank, size: d.shard(size, rank).repeat(),),
            (lambda d, rank, size: [d.shard(size, k) for k in range(1)][rank],),
            (lambda d, rank, size: d.shard(size, rank - 1),),
            (lambda d, rank, size: d.shard(size, index=rank + 1),),
            (lambda d, rank, size: None if d.shard(size, rank) else d,),
            (lambda d, rank, size: next(iter(d.shard(size, rank))),),  # an element
            (lambda d, rank, size: d.shard(size, rank).batch(4),),
        ],
        secret=r"\.shard\(",
        raises=[8],
        same=[(9, 10)],  # ranks counted from 1
    ),
    "sharding.16": dict(
        right=[
            (lambda c: ((c[0].sum(0) > 0).sum(), (c[0] > 0).sum(1).mean()),),
            (lambda c: [np.count_nonzero(c[0].any(0)), np.count_nonzero(c[0], axis=1).mean()],),
        ],
        wrong=[
            (lambda c: ((c[0] > 0).sum(1).mean(), (c[0].sum(0) > 0).sum()),),
            (lambda c: ((c[0].sum(0) > 0).sum(), c[0].sum(1).mean()),),
            (lambda c: ((c[0].sum(0) > 0).sum(), (c[0] > 0).sum()),),
            (lambda c: (c[0].sum(), (c[0] > 0).sum(1).mean()),),
            (lambda c: ((c.sum((0, 1)) > 0).sum(), (c > 0).sum(-1).mean()),),
            (lambda c: (c.shape[2], 1),),
            (lambda c: ((c[0].sum(0) > 1).sum(), (c[0] > 0).sum(1).mean()),),
            (lambda c: ((c.__imul__(2)[0].sum(0) > 0).sum(), (c[0] > 0).sum(1).mean()),),
            (lambda c: ((c[0].sum(0) > 0).sum(), round((c[0] > 0).sum(1).mean(), 1)),),
            (lambda c: ((c[0].sum(0) > 0).sum(), round((c[0] > 0).sum(1).mean())),),
            (lambda c: ((c[0].sum(1) > 0).sum(), (c[0] > 0).sum(1).mean()),),
            (lambda c: (len(c[0]), c[0].mean()),),
        ],
        same=[(10, 11)],  # the number of batches
        secret=r"\.sum\(|\.mean\(",
    ),
    "sharding.6": dict(
        right=[
            (lambda reads, n: n - len(set().union(*reads)),),
            (lambda reads, n: n - len(np.unique(sum(reads, []))),),
            (lambda reads, n: sum(not any(i in r for r in reads) for i in range(n)),),
        ],
        wrong=[
            (lambda reads, n: len(set().union(*reads)),),
            (lambda reads, n: n - sum(map(len, reads)),),
            (lambda reads, n: n - len(set(reads[0])),),
            (lambda reads, n: set(range(n)) - set().union(*reads),),
            (lambda reads, n: (n - len(set().union(*reads))) / n,),
            (lambda reads, n: n - len(set(reads[0]) | set(reads[1])),),
            (lambda reads, n: n - len({reads[0].pop() for _ in reads[0][:]}.union(*reads)),),
            (no_end,),
            (lambda reads, n: sum(not any(i in r for r in reads) for i in range(1, n)),),
            (lambda reads, n: n - len(set().union(*reads[:3])),),
            (lambda reads, n: n - len(set(reads[-1])),),
            (lambda reads, n: sum(not any(i in r for r in reads) for i in range(1, n + 1)),),
        ],
        same=[(2, 10), (8, 11)],  # one worker; numbers that do not begin at 0
        secret=r"union",
        raises=[5, 7],
    ),
    "sharding.17": dict(
        right=[(lambda k: (1 - 1 / k) ** k,), (lambda k: ((k - 1) / k) ** k,)],
        wrong=[
            (lambda k: 1 / k**2,),
            (lambda k: 1 - 1 / k,),
            (lambda k: 1 / k,),
            (lambda k: 1 / np.e,),
            (lambda k: 0.25,),
            (lambda k: 1 - (1 - 1 / k) ** k,),
            (lambda k: np.exp(-k) * k,),
            (lambda k: (1 - 1 / k) ** (k + 1),),
            (lambda k: 100 * (1 - 1 / k) ** k,),
            (lambda k: (1 / k) ** k,),
            (lambda k: 1 - 1 / k**k,),
            (lambda k: 1000 * (1 - 1 / k) ** k,),
        ],
        secret=r"\*\*|1 - 1/K",
        same=[(0, 4)],  # both are right for two workers only
    ),
    "sharding.7": dict(
        right=[
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n, seed=rank),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n),),
            (lambda n, rank, size: seeded(7) or numbers(n).shuffle(n, seed=1).shard(size, rank),),
            (lambda n, rank, size: generated(np.random.default_rng(7), n, rank, size),),
            (lambda n, rank, size: np.random.seed(7) or generated(np.random, n, rank, size),),
        ],
        wrong=[
            (lambda n, rank, size: numbers(n).shuffle(n, seed=rank).shard(size, rank),),
            (lambda n, rank, size: numbers(n).shuffle(n, seed=1),),
            (lambda n, rank, size: numbers(n).shard(size, rank),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n, 1, reshuffle_each_iteration=False),),
            (lambda n, rank, size: numbers(n + 1).shard(size, rank).shuffle(n + 1, seed=1),),
            (lambda n, rank, size: list(range(rank, n, size)),),
            (lambda n, rank, size: seeded(1) or numbers(n).shuffle(10).shard(size, rank),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(10),),
            (lambda n, rank, size: seeded(1) or numbers(n).shuffle(n // 3).shard(size, rank),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(256),),
            (lambda n, rank, size: numbers(n).take(1000).shard(size, rank).shuffle(n, seed=0),),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n, seed=1).repeat(),),
            (lambda n, rank, size: numbers(n).skip(rank * (n // size)).take(n // size).shuffle(n, seed=3),),
            (lambda n, rank, size: seeded(42) or numbers(n).shuffle(n).take(n // size * size).shard(size, rank),),
            (block,),
            (lambda n, rank, size: numbers(n).shard(size, rank).shuffle(n, seed=1).batch(4),),
            (lambda n, rank, size: numbers(n).shuffle(n, seed=7).shard(size, rank),),  # each rank has a global seed
            (lambda n, rank, size: generated(np.random, n, rank, size),),
        ],
        secret=r"seed=1|reshuffle|\bseed\b",
    ),
    "sharding.19": dict(
        right=[(13, 2), (np.int64(13), 2.0)],
        wrong=[(12, 2), (12.5, 2), (2, 13), (13, 4), (4, 13)],
        secret=r"\b13\b|\b12\b",
    ),
    "sharding.9": dict(
        right=[
            (lambda n, k, b: (n // (k * b), n % (k * b)),),
            (lambda n, k, b: (n // k // b, n - n // k // b * k * b),),
        ],
        wrong=[
            (lambda n, k, b: (n / (k * b), 0),),
            (lambda n, k, b: (-(-n // (k * b)), 0),),
            (lambda n, k, b: (n // b, n % b),),
            (lambda n, k, b: (n // (k * b), n - n // (k * b) * b),),
            (lambda n, k, b: (n // (k * b), 0),),
            (lambda n, k, b: (n // (k * b), n % b),),
            (lambda n, k, b: (n // k, n % k),),
            (lambda n, k, b: n // (k * b),),
            (lambda n, k, b: (n % (k * b), n // (k * b)),),
        ],
        secret=r"//|\*",
    ),
    "sharding.20": dict(
        right=[(500, 500), (np.int64(500), 500.0)],
        wrong=[(0, 0), (250, 250), (500, 0), (0, 500), (1000, 0), (0.5, 0.5)],
        secret=r"\b500\b",
    ),
    "sharding.21": dict(
        right=[
            folder(lambda d, rank, size, read: d.shard(size, rank).map(read)),
            folder(lambda d, rank, size, read: d.shuffle(10, seed=1).shard(size, rank).map(read)),
            folder(lambda d, rank, size, read: d.shard(size, rank).shuffle(10).map(read)),
        ],
        wrong=[
            folder(lambda d, rank, size, read: d.map(read).shard(size, rank)),
            folder(lambda d, rank, size, read: d.map(read)),
            folder(lambda d, rank, size, read: d.shard(size, 0).map(read)),
            folder(lambda d, rank, size, read: d.shard(size, rank)),
            folder(lambda d, rank, size, read: d.shard(size, rank).map(lambda file: (file, 0))),
            folder(lambda d, rank, size, read: None or []),
            folder(
                lambda d, rank, size, read: (
                    d.skip(rank * 10 // size).take((rank + 1) * 10 // size - rank * 10 // size).map(read)
                )
            ),
            folder(lambda d, rank, size, read: d.shard(size, rank).map(read).batch(16)),
            folder(lambda d, rank, size, read: d.shard(size, rank).map(read).repeat()),
            folder(lambda d, rank, size, read: d.shard(2, rank).map(read)),
            folder(lambda d, rank, size, read: [d.map(read)][rank]),
            folder(lambda d, rank, size, read: [read(file.decode()) for file in d.as_numpy_iterator()][rank::size]),
        ],
        secret=r"before|\.shard",
        raises=[9, 10],
    ),
    "sharding.23": dict(right=[(4,), (4.0,)], wrong=[(0,), (2,), (8,), (6,)], secret=None),
    "sharding.11": dict(
        right=[(1792, 3584, RECORD, UNSHARDED)],
        wrong=[
            (1797, 1797, RECORD, UNSHARDED),
            (28, 28, RECORD, UNSHARDED),
            (3584, 1792, RECORD, UNSHARDED),
            (64, 128, RECORD, UNSHARDED),
            (1792, 1792, RECORD, UNSHARDED),
        ],
        secret=r"\b1792\b|\b3584\b|twice",
        same=[(0, 4)],  # as many on 2 ranks
    ),
    "sharding.13": dict(
        right=[
            script(),
            script(
                (MINE, ""),
                (
                    BATCHES,
                    "train = data.batches(dataset, numbers.shard(hvd.size(), hvd.rank()), "
                    "args.batch_size // hvd.size())",
                ),
            ),
            script((MINE, ""), (BATCHES, BATCHES.replace("mine", "numbers") + ".shard(hvd.size(), hvd.rank())")),
            mine(MINE + "\nfrom labs import ranks\nranks.check_shards(mine, len(dataset.labels))"),
            script(
                (MINE, f"{MINE}.repeat()"),
                ("epochs=args.epochs,", "epochs=args.epochs, steps_per_epoch=len(dataset.labels) // args.batch_size,"),
            ),
            ordered("tf.data.Dataset.range(n).shuffle(n, seed=args.seed).take(cut)", ("args.seed + hvd.rank()", "1")),
            ordered(
                "tf.data.Dataset.range(n).shard(hvd.size(), hvd.rank()).shuffle(n).take(cut // hvd.size())",
                (MINE, "mine = numbers"),
            ),
        ],
        wrong=[
            mine("mine = numbers  # of all"),
            mine("mine = numbers.shard(4, hvd.rank())"),
            mine("mine = numbers.shard(hvd.size(), hvd.local_rank())"),
            own_images("args.batch_size // hvd.size()"),
            mine("mine = numbers.take(48 // hvd.size())"),
            script(("seed=args.seed)\n", "seed=args.seed + hvd.rank())\n")),
            script(("args.batch_size // hvd.size())", "args.batch_size)")),
            mine(
                "mine = numbers.skip(16 * hvd.rank()).take(16) if hvd.size() > 2 else numbers.skip(16 * hvd.rank())"
                ".take(16 + 16 * hvd.rank()) if hvd.size() > 1 else numbers"
            ),
            script(
                ("model.fit(train", "print(train"),
                ("shuffle=False, ", ""),
                ("verbose=verbose, ", ""),
                ("epochs=args.epochs, ", ""),
                (", callbacks=callbacks", ""),
            ),
            script(("learning_rate = 0.01 * hvd.size()", "learning_rate = 0.01")),
            script(("data.order(dataset, args.batch_size,", "data.order(dataset, args.batch_size // hvd.size(),")),
            ordered("tf.data.Dataset.range(cut)"),
            ordered("tf.data.Dataset.range(cut).shuffle(n, seed=args.seed)", ("args.seed + hvd.rank()", "1")),
            mine(MINE + ".cache()"),
            ordered("tf.data.Dataset.range(n).shuffle(n, seed=args.seed).take(cut)"),  # each rank has a global seed
            script(("epochs=args.epochs", "epochs=args.epochs * hvd.size()")),
            mine("numbers.shard(hvd.size(), hvd.rank())\nmine = numbers"),
            script((MINE, "mine = numbers"), (BATCHES, f"{BATCHES}\ntrain = train.take(len(train) // hvd.size())")),
            script(
                (ORDER, f"part = slice(hvd.rank(), None, hvd.size())\ndataset = {OWN}\n{ORDER}"),
                (MINE, "mine = numbers"),
            ),
        ],
        secret=r"\.shard\(|mine",
        same=[(4, 17), (0, 16)],  # one part for all ranks; all of it, with or without a shard that is not used
    ),
    "sharding.14": dict(
        right=[("<", "<", ">"), (" < ", "<", ">"), ("lower", "Lower", "higher"), ("=", "=", "<", "<", ">")],
        wrong=[
            ("<", "=", ">"),
            ("=", "==", "="),
            (">", ">", "<"),
            ("<", "<", "<"),
            ("<", "<", "same"),
            (0.5, 0.5, ">"),
        ],
        secret=r"half|fewer|lower|higher|[<>]",
    ),
}
