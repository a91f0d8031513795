"""Questions of 07_horovod_sharding."""

import ast
import contextlib
import random
from itertools import chain
from pathlib import Path

import numpy as np

from labs.checks.judging import NotDone, judges
from labs.checks.reading import near
from labs.checks.student_code import tried
from labs.printed import an, several
from lessons import scripts, training_scripts
from lessons.forms import formula, value
from lessons.sharding import coverage, no_dataset, sentence, some


@judges("sharding.1")
def sizes(counts):
    other = isinstance(counts, dict | set)
    yield other, f"This is {an(type(counts).__name__)}. Give a list, in the order of the workers."
    counts = [float(count) for count in counts]
    yield counts == [34, 33, 33], None
    yield len(counts) != 3, f"Your list has length {len(counts)}. Give one number for each of the three workers."
    yield any(count % 1 for count in counts), "A worker reads whole samples, so the shares cannot all be equal."
    yield sorted(counts) == [33, 33, 34], "The shares are right, but not their order. Who reads number 100?"
    yield sum(counts) != 100, f"These add up to {sum(counts):g} samples, but there are 100."
    yield True, "The shares differ by one sample at most. Count 1, 4, 7, ..., then 2, 5, 8, ... and 3, 6, 9, ..."


def _read(dataset, most):
    """The sample numbers of one pass over a dataset. Yields cases of what is none, and of more than `most` numbers."""
    yield from no_dataset(dataset)
    numbers = dataset.take(most + 1)
    single = getattr(numbers.element_spec, "shape", None) == ()  # such are read in batches, which is quick
    elements = list((numbers.batch(1024) if single else numbers).as_numpy_iterator())
    elements = [x for batch in elements for x in batch] if single else elements
    several_in_one = bool(elements) and np.shape(elements[0])
    yield several_in_one, f"An element has the shape {several_in_one}. Return single numbers: batching comes later."
    endless = f"One pass over your dataset gives more than {most} samples"
    yield len(elements) > most, f"{endless}. It must be one epoch: `fit` itself asks for the next."
    return [int(x) for x in elements]


@judges("sharding.2")
def shard_of(function):
    import tensorflow as tf

    for size in (1, 2, 3):
        reads = []
        for rank in range(size):
            with tried(f"rank {rank} of {size}"):
                reads.append((yield from _read(function(tf.data.Dataset.range(24), rank, size), 24)))
        found = coverage(reads, 24)
        seen = f"With {several(size, 'rank')}: {sentence(found, 24)}"
        yield len(found.repeated), f"{seen} Does each rank begin at a different place?"
        yield len(found.unseen), f"{seen} Into how many shares must you divide?"
    yield (
        reads != [list(range(rank, 24, 3)) for rank in range(3)],
        "Every sample is read once, but neighbours stay together, or ranks are swapped. Take every size-th sample.",
    )


formula(
    "sharding.6",
    right=lambda reads, n: n - len(set().union(*reads)),
    cases=[([[0, 1, 2], [2, 3]], 6), ([[0, 0, 1, 1]], 4), ([[5, 4], [3], [2, 1, 0]], 6), ([[1], [3, 5], [3], [6]], 7)],
    wrong=[
        (lambda reads, n: set(range(n)).difference(*reads), "These are the samples themselves: how many are they?"),
        (lambda reads, n: 1 - len(set().union(*reads)) / n, "This is a share. How many samples is that?"),
        (lambda reads, n: len(set().union(*reads)), "This counts the samples that were read. How many were not?"),
        (lambda reads, n: n - sum(map(len, reads)), "Here, a sample that is read twice counts twice."),
        (
            [lambda reads, n: n - len(set(reads[0])), lambda reads, n: n - len(set(reads[-1]))],
            "This looks at one worker only. A sample counts as read if any of the workers has read it.",
        ),
        (
            [lambda reads, n: len({*range(1, n)}.difference(*reads)), lambda reads, n: n + 1 - len({0}.union(*reads))],
            "Do you go through all n samples? Their numbers are 0 to n-1.",
        ),
    ],
    otherwise="Which samples does nobody read?",
)


def _epochs(function, n, size, passes):
    """What each rank, with a global seed of its own, reads in each epoch (a pass over its data set)."""
    import keras
    import tensorflow as tf

    by_rank = [[] for _ in range(size)]
    try:
        for rank, read in enumerate(by_rank):
            keras.utils.set_random_seed(rank)
            with tried(f"n={n} and size={size}"):
                dataset = function(n, rank, size)
                for _ in range(passes):
                    read.append((yield from _read(dataset, n)))
    finally:  # random again
        for set_seed in (random.seed, np.random.seed, tf.random.set_seed):
            set_seed(None)
    return [*zip(*by_rank, strict=True)]


@judges("sharding.7")
def fair(function):
    # 301 is not a multiple of 2 or 3; a buffer of a fixed size, such as 10000, may hold 301 samples, but not 16001
    for n, size, passes in ((301, 2, 3), (301, 3, 3), (16001, 2, 1)):
        epochs = yield from _epochs(function, n, size, passes)
        for epoch, reads in enumerate(epochs, 1):
            found = coverage(reads, n)
            seen = f"In epoch {epoch} with n={n} and {size} ranks: {sentence(found, n)}"
            lost = len(found.unseen) and not len(found.repeated)
            yield lost, f"{seen} Is every sample in a share, even if n is no multiple of {size}?"
            one = "Do all ranks divide one order? A shuffled one also depends on their global seeds."
            yield not found.right, f"{seen} {one}"
        again = epochs[:1] == epochs[1:2]
        yield again, "Every sample is read once, but two passes have the same order. Does each pass draw a new one?"
    blocks = all(max(read) - min(read) < len(read) for read in reads)
    yield blocks, "Each rank reads a block of neighbours: of a sorted source, it would see few classes."
    early = max(x - place * size - rank for rank, read in enumerate(reads) for place, x in enumerate(read))
    yield (
        early < 0.75 * n,
        f"Of {n} sorted samples, each moves forward by at most {early} places. How large must `shuffle`'s buffer be?",
    )


value(
    "sharding.8",
    right=(13, 2),
    wrong=[
        ((12, ...), "These are the full batches. The remaining elements make one more."),
        ((12.5, ...), "There is no half batch: one batch is smaller than the others."),
    ],
    otherwise=("Divide and round up.", "The number of batches is right. How many elements are left for the last one?"),
)

formula(
    "sharding.10",
    right=lambda n, workers, local_batch: (n // (workers * local_batch), n % (workers * local_batch)),
    cases=[(100, 3, 8), (50, 1, 4), (1797, 4, 64), (64, 2, 8), (110, 3, 8)],
    wrong=[
        (lambda n, k, b: (n % (k * b), n // (k * b)), "The two numbers are swapped: steps first."),
        (lambda n, k, b: (n / (k * b), ...), "Steps are whole numbers, but your function gives a fraction."),
        (lambda n, k, b: (-(-n // (k * b)), ...), "Rounded up: who would have no full batch in the last step?"),
        (lambda n, k, b: (n // b, ...), "One worker alone takes this many steps. In each, every worker takes a batch."),
        (
            [lambda n, k, b: (n // (k * b), n % b), lambda n, k, b: (n // (k * b), n - n // (k * b) * b)],
            "The steps are right. But this remainder is for one worker alone: how many samples do all of them read?",
        ),
    ],
    otherwise="How many samples does one step of all workers take?",
)

value(
    "sharding.12",
    right=lambda one, two: (one.steps * one.global_batch, two.steps * two.global_batch),
    wrong=[
        (lambda one, two: (one.steps, two.steps), "These are steps. How many images does each of them take?"),
        (lambda one, two: (two.steps * two.global_batch, one.steps * one.global_batch), "The records are swapped."),
        (
            lambda one, two: (one.steps * one.global_batch, one.steps * one.global_batch),
            "As many images on 2 ranks as on 1? What do the steps and the global batch of the second record say?",
        ),
    ],
    otherwise="In each step all ranks together process the global batch. Multiply two fields of the record.",
)


@judges("sharding.14")
def repaired(path):
    yield from scripts.whole(path)
    path = Path(path)
    original = path.with_name("colleague.py")
    with contextlib.suppress(SyntaxError, FileNotFoundError):
        same = ast.dump(ast.parse(path.read_text())) == ast.dump(ast.parse(original.read_text()))
        if same and original != path:
            raise NotDone(f"{path.name} still does what {original.name} does. Repair it and run this cell again.")
    groups = (1, 1), (3, 3), (2, 1)  # (ranks, ranks on each node)
    plays = training_scripts.ranks(path, groups)
    yield from training_scripts.unfair(plays, groups)
    (alone,) = plays[0]
    first, second = ([*chain(*steps)] for steps in alone["fits"][0]["passes"])
    yield first == second, "Two epochs read the samples in the same order. Is a new one drawn in each epoch?"
    for by_rank in plays:
        rate, wanted = by_rank[0]["fits"][0]["rate"], training_scripts.RATE * len(by_rank)
        was = f"With {several(len(by_rank), 'rank')} the learning rate was {wanted:.4g}, and now it is {rate:.4g}."
        yield not near(rate, wanted), f"{was} Leave the rate as it is: the repair is about which samples a rank reads."
    # A number of samples that is not a multiple of the global batch: shares of 16, 16 and 15
    (fits,) = yield from training_scripts.fits(training_scripts.ranks(path, [(3, 3)], 47, 4))
    by_rank = [fit["passes"][0] for fit in fits]
    where = "With 47 samples, --batch_size 12 and 3 ranks"
    counts, last = [len(steps) for steps in by_rank], [len(steps[-1]) for steps in by_rank]
    yield len(set(counts)) > 1, f"{where}, they take {counts} steps: some would wait for others."
    whole = "The order is cut to whole batches. How large must such a batch be?"
    yield set(last) != {4}, f"{where}, their last steps contain {last} samples. {whole}"
    left = coverage([[*chain(*steps)] for steps in by_rank], 47).unseen
    cut = f"{where}, nobody reads {some(left)}: the last of the data set. Are they the same in each epoch?"
    yield len(left) and len(left) == 47 - min(left), cut
