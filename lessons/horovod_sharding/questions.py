"""Judges of 07_horovod_sharding."""

import ast
import contextlib
import random
from pathlib import Path

import numpy as np

from labs.checks.judging import NotDone, judges
from labs.checks.reading import called, near
from labs.checks.student_code import tried
from labs.printed import an, several
from lessons import scripts, training_scripts
from lessons.sharding import coverage, some


@judges("sharding.1")
def sizes(counts):
    counts = [int(count) if float(count).is_integer() else float(count) for count in counts]
    yield counts == [34, 33, 33], None
    yield len(counts) != 3, f"Your list has length {len(counts)}. Give one number for each of the three workers."
    yield (
        sum(counts) == 100 and any(isinstance(count, float) for count in counts),
        "A worker reads whole samples, so the shares cannot be equal. Which worker gets one more?",
    )
    yield (
        sorted(counts) == [33, 33, 34],
        "The three shares are right, but not in the order of the workers. Which worker reads number 100?",
    )
    yield sum(counts) < 100, f"These add up to {sum(counts)} samples, so some of the 100 would never be read."
    yield (
        sum(counts) > 100,
        f"These add up to {sum(counts)} samples, but there are only 100, so some would be read twice.",
    )
    yield True, "The shares differ by one sample at most. Count 1, 4, 7, ..., then 2, 5, 8, ... and 3, 6, 9, ..."


def _numbers(dataset, most):
    """The sample numbers of one pass over a dataset; of an endless one, one number more than `most`.

    Yields a case for elements that are no single numbers.
    """
    elements = list(dataset.take(most + 1).as_numpy_iterator())
    several_in_one = bool(elements) and np.shape(elements[0])
    yield several_in_one, f"An element has the shape {several_in_one}. Return single numbers: batching comes later."
    return [int(x) for x in elements]


@judges("sharding.2")
def shard_of(function):
    import tensorflow as tf

    shares = {}
    for size in (1, 2, 3):
        for rank in range(size):
            try:
                with tried(f"rank {rank} of {size}"):
                    given = function(tf.data.Dataset.range(24), rank, size)
                yield given is None, "Your function returns nothing. Does its last line begin with `return`?"
                yield (
                    not hasattr(given, "as_numpy_iterator"),
                    f"Your function returns {an(type(given).__name__)}: return a tf.data.Dataset of `numbers`.",
                )
                shares.setdefault(size, []).append((yield from _numbers(given, 24)))
                endless = len(shares[size][-1]) > 24
                yield (
                    endless,
                    "The share is longer than `numbers`. Make only one pass: `fit` itself asks for the next epoch.",
                )
            except tf.errors.OpError as problem:
                stops = f"For rank {rank} of {size} TensorFlow stops with {type(problem).__name__}."
                yield "Index must be" in str(problem), f"{stops} `index` counts from 0, and so do the ranks."
                yield True, f"{stops} Are the arguments in the order that the method expects?"
    for size, reads in shares.items():
        found = coverage(reads, 24)
        yield (
            len(found.foreign),
            f"The samples are 0 to 23, but you return {some(found.foreign)}. Return elements of `numbers`.",
        )
        read = f"With {size} ranks, {some(found.repeated)} are read more than once and {some(found.unseen)} by nobody."
        yield len(found.unseen) and len(found.repeated), f"{read} Does each rank begin at a different place?"
        yield (
            len(found.repeated),
            f"With {size} ranks, {some(found.repeated)} are read more than once. How does a rank find its share?",
        )
        if len(found.unseen):
            lost = f"With {several(size, 'rank')}, nobody reads {some(found.unseen)}."
            yield True, f"{lost} Into how many shares must you divide?"
    yield (
        shares[3] != [list(range(rank, 24, 3)) for rank in range(3)],
        "Every sample is read once, but neighbours stay together, or ranks are swapped. Take every size-th sample.",
    )


@judges("sharding.6")
def never_read(function):
    trials = [
        ([[0, 1, 2], [2, 3]], 6),
        ([[0, 0, 1, 1]], 4),
        ([[5, 4], [3], [2, 1, 0]], 6),
        ([[1], [3, 5], [3], [6]], 7),
    ]
    wanted, read = [2, 2, 0, 3], [4, 2, 6, 4]
    got = []
    for reads, n in trials:
        with tried(f"{n} samples and reads = {reads}"):
            value, changed = called(function, reads, n)
        got.append(value)
    yield (
        any(isinstance(value, (list, set, tuple, np.ndarray)) for value in got),
        "These are the samples themselves: return how many there are.",
    )
    got = [float(value) for value in got]
    yield got == wanted, changed
    yield np.allclose(got, [2 / 6, 2 / 4, 0, 3 / 7]), "This is the share that was not read. How many samples is that?"
    yield got == read, "This counts the samples that were read. How many were not?"
    yield (
        got == [1, 0, 0, 2],
        "A sample that is read twice counts only once, so it is not enough to subtract the lengths of the lists.",
    )
    yield (
        got in ([3, 2, 4, 6], [4, 2, 3, 6]),
        "This looks at one worker only. A sample counts as read if any of the workers has read it.",
    )
    yield got in ([2, 2, 0, 2], [3, 3, 1, 3]), "Do you go through all n samples? Their numbers are 0 to n-1."
    (reads, n), value, _ = next(row for row in zip(trials, got, wanted, strict=True) if row[1] != row[2])
    lists = ", ".join(map(str, reads))
    yield (
        True,
        f"For the reads {lists} of {n} samples, your function returns {value:g}. Which samples does nobody read?",
    )


@contextlib.contextmanager
def _random_numbers(seed):
    """Random numbers as after keras.utils.set_random_seed(seed), and afterwards as before."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    python, numpy, tensorflow = random.getstate(), np.random.get_state(), context.global_seed()
    for set_seed in (random.seed, np.random.seed, tf.random.set_seed):
        set_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        tf.random.set_seed(tensorflow)


def _epochs(function, n, size, passes, seeds):
    """What each rank reads in each epoch (a pass over its data set), with these global seeds of the ranks."""
    by_rank = [[] for _ in range(size)]
    for rank, seed in enumerate(seeds):
        with _random_numbers(seed):
            with tried(f"n={n} and size={size}"):
                dataset = function(n, rank, size)
            yield (
                not hasattr(dataset, "as_numpy_iterator"),
                f"Your function returns {an(type(dataset).__name__)}: return a tf.data.Dataset of sample numbers.",
            )
            for _ in range(passes):
                by_rank[rank].append((yield from _numbers(dataset, n)))
                endless = f"One pass over your dataset gives more than {n} samples. A pass must be one epoch"
                yield len(by_rank[rank][-1]) > n, f"{endless}, so leave out `repeat`."
    return [*zip(*by_rank, strict=True)]


@judges("sharding.7")
def fair(function):
    made = {}  # 301 is not a multiple of 2 or 3; a buffer of a fixed size may hold 301 samples, but not 3001
    for n, size, passes in ((301, 2, 3), (301, 3, 3), (3001, 2, 1)):
        made[n, size] = yield from _epochs(function, n, size, passes, range(size))
    for (n, size), epochs in made.items():
        for epoch, reads in enumerate(epochs, 1):
            found = coverage(reads, n)
            if found.right:
                continue
            yield (
                all(len(read) == n for read in reads),
                f"Each of the {size} ranks reads all {n} samples: nothing divides them.",
            )
            yield len(found.foreign), f"With n={n}, your dataset must not contain {some(found.foreign)}."
            yield (
                epoch > 1,
                f"Epoch 1 is right, but in epoch {epoch} with {size} ranks nobody reads {some(found.unseen)}.",
            )
            lost = f"In epoch 1 with n={n} and {size} ranks, nobody reads {some(found.unseen)}."
            yield not len(found.repeated), f"{lost} Is every sample in a share, even if n is no multiple of {size}?"
            read = f"{some(found.repeated)} are read more than once and {some(found.unseen)} by nobody"
            (alike,) = yield from _epochs(function, n, size, 1, [0] * size)
            yield (
                coverage(alike, n).right,
                "With equal global seeds, each sample would be read once. But each rank has its own, and in epoch 1 "
                f"with {size} ranks, {read}. What does the order depend on?",
            )
            yield (
                True,
                f"In epoch 1 with {size} ranks, {read}. What must all ranks have in common to divide the samples?",
            )
    first, second, _ = made[301, 2]
    yield (
        first == second and any(read != sorted(read) for read in first),
        "Every sample is read once, but both passes have the same order. Is a new one drawn in each pass?",
    )
    yield first == second, "Every sample is read once, but nothing is shuffled: a sorted source would stay sorted."
    yield (
        all(max(read) - min(read) + 1 == len(read) for epochs in made.values() for reads in epochs for read in reads),
        "Every sample is read once, but each rank reads a block of neighbours: of a sorted source, it would see few "
        "classes. Take samples from everywhere.",
    )
    for (n, _), epochs in made.items():
        early = max(map(_places_early, epochs))
        yield (
            early < 0.75 * n,
            f"Every sample is read once, but neighbours stay close: of {n} sorted samples, each moves forward by at"
            f" most {several(early, 'place')}. `shuffle` draws from a buffer. How large must the buffer be?",
        )


def _places_early(reads):
    """By how many places a sample comes before its place in the sorted order, at most, over all ranks."""
    order = [(place * len(reads) + rank, int(x)) for rank, read in enumerate(reads) for place, x in enumerate(read)]
    return max(number - place for place, number in order)


@judges("sharding.8")
def batches(count, last):
    yield (count, last) == (13, 2), None
    yield (
        (count, last) == (2, 13),
        "The two numbers are swapped: give the number of batches first, then the size of the last one.",
    )
    yield count == 12.5, "There is no half batch: one batch is smaller than the others."
    yield count == 12, "These are the full batches. The remaining elements make one more."
    yield count == 13, "The number of batches is right. How many elements are left for the last one?"
    yield True, "Divide and round up. Then work out how many elements the full batches leave for the last one."


@judges("sharding.10")
def plan(function):
    trials = {(100, 3, 8): (4, 4), (50, 1, 4): (12, 2), (1797, 4, 64): (7, 5), (64, 2, 8): (4, 0), (110, 3, 8): (4, 14)}
    given = {sizes: function(*sizes) for sizes in trials}
    returned = {sizes: (value,) if np.isscalar(value) else tuple(value) for sizes, value in given.items()}
    two = all(len(pair) == 2 for pair in returned.values())
    yield not two, "Return two numbers: the steps, and the samples that these steps leave out."
    got = {sizes: tuple(map(float, pair)) for sizes, pair in returned.items()}
    yield got == trials, None
    yield all(got[sizes] == pair[::-1] for sizes, pair in trials.items()), "The two numbers are swapped: steps first."
    yield (
        any(value != int(value) for pair in got.values() for value in pair),
        "Steps and samples are whole numbers, but your function gives a fraction.",
    )
    yield (
        all(steps == -(-n // (workers * local)) for (n, workers, local), (steps, _) in got.items()),
        "This number of steps is rounded up. In the last step, some workers would have a smaller batch, or none.",
    )
    yield (
        all(steps == n // local for (n, _, local), (steps, _) in got.items()),
        "These are the steps of one worker alone. In each step, every worker takes a local batch.",
    )
    if all(steps == trials[sizes][0] for sizes, (steps, _) in got.items()):
        yield (
            all(rest == n - steps * local for (n, _, local), (steps, rest) in got.items()),
            "The steps are right. But for the remainder, subtract what all workers read, not what one reads.",
        )
        yield (
            all(rest == n % local for (n, _, local), (_, rest) in got.items()),
            "The steps are right. But this remainder is for one worker alone; a step takes a batch for each worker.",
        )
        yield True, "The steps are right. How many of the n samples do these steps leave out?"
    n, workers, local = next(sizes for sizes in trials if got[sizes] != trials[sizes])
    asked = f"For n={n} on {several(workers, 'worker')} with local batch {local} your function gives"
    yield True, f"{asked} {got[n, workers, local][0]:g} steps: how many samples does one step of all workers take?"


def _steps(record, name):
    from labs.results.run import Run

    if not isinstance(record, Run):
        raise TypeError(f"{name} is no run record")
    return record.steps, record.global_batch


@judges("sharding.12")
def processed(on_1, on_2, record_1, record_2):
    steps_1, batch_1 = _steps(record_1, "the first")
    steps_2, batch_2 = _steps(record_2, "the second")
    yield (on_1, on_2) == (steps_1 * batch_1, steps_2 * batch_2), None
    yield (on_1, on_2) == (steps_1, steps_2), "These are steps. How many images does each of them take?"
    yield (on_1, on_2) == (steps_2 * batch_2, steps_1 * batch_1), "The two records are swapped."
    yield (
        on_1 == on_2,
        "Then an epoch would process as many images on 2 ranks as on 1. Do the steps and the global batch of the "
        "second record say so?",
    )
    yield True, "In each step all ranks together process the global batch. Multiply two fields of the record."


def _program(path):
    """A script without its comments and spaces; the text itself if Python cannot read it."""
    try:
        return ast.dump(ast.parse(path.read_text()))
    except SyntaxError:
        return path.read_text()


@judges("sharding.14")
def repaired(path):
    path = Path(path)
    yield from scripts.no_script(path)
    original = path.with_name("colleague.py")
    if original != path and original.is_file():
        if _program(path) == _program(original):
            raise NotDone(
                f"{path.name} still does what your colleague's script does. Repair it, save it and run this cell again."
            )
    groups = (1, 1), (3, 3), (2, 1)  # (ranks, ranks on each node)
    plays = training_scripts.ranks(path, groups)
    yield from training_scripts.unfair(plays, groups)
    (alone,) = plays[0]
    first, second = ([number for step in steps for number in step] for steps in alone["fits"][0]["passes"])
    yield first == sorted(first), "With 1 rank, the samples are read in the order 0, 1, 2, ...: nothing is shuffled."
    for by_rank in plays:
        rate, wanted = by_rank[0]["fits"][0]["rate"], training_scripts.RATE * len(by_rank)
        was = f"With {several(len(by_rank), 'rank')} the learning rate was {wanted:.4g}, and now it is {rate:.4g}."
        yield not near(rate, wanted), f"{was} Leave the rate as it is: the repair is about which samples a rank reads."
    # A number of samples that is not a multiple of the global batch: shares of 16, 16 and 15
    size, images, local_batch = 3, 47, 4
    (fits,) = yield from training_scripts.fits(training_scripts.ranks(path, [(size, size)], images, local_batch))
    where = f"With {images} samples, --batch_size {size * local_batch} and {size} ranks"
    by_rank = [fit["passes"][0] for fit in fits]
    counts = ", ".join(str(len(steps)) for steps in by_rank)
    yield len(set(map(len, by_rank))) > 1, f"{where}, they take {counts} steps: some would wait for others."
    last = [len(steps[-1]) for steps in by_rank]
    held = f"{where}, their last steps contain {', '.join(map(str, last))} samples."
    yield set(last) != {local_batch}, f"{held} The order is cut to whole batches: of which size must these be?"
    left = coverage([[number for step in steps for number in step] for steps in by_rank], images).unseen
    yield (
        len(left) and len(left) == images - min(left),
        f"{where}, nobody reads {some(left)}: the last of the data set. If they are cut off *before* the shuffle, "
        "they are the same in each epoch.",
    )
    yield first == second, "Two epochs read the samples in the same order. Is a new one drawn in each epoch?"
