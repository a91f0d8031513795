"""Questions of 06_horovod_sharding, first half: shares, orders and seeds."""

import numpy as np

from labs.checks.judging import choice, prediction, question
from labs.data.shares import coverage, some

HERE = "06_horovod_sharding"

prediction("06.4", "Order of operations that gives each worker a fair sample (a, b, c or d)", HERE)
prediction("06.7", "Share of the samples that nobody reads", HERE)


@question(
    "06.1",
    "1 to 100 for two workers, by hand",
    HERE,
    why="Every second number, from the worker's own place on: no number twice, none left out.",
)
def by_hand(zero, one):
    zero, one = [int(x) for x in zero], [int(x) for x in one]
    both, missing = sorted(set(zero) & set(one)), sorted(set(range(1, 101)) - set(zero) - set(one))
    if zero == list(range(1, 101, 2)) and one == list(range(2, 101, 2)):
        return None
    if both:
        return f"Both workers read {some(both)}. At which place does the second worker begin?"
    if missing:
        return f"No worker reads {some(missing)}. Together they must read all numbers from 1 to 100."
    if set(zero + one) != set(range(1, 101)):
        return f"{some(sorted(set(zero + one) - set(range(1, 101))))} is not among the numbers from 1 to 100."
    if len(zero) != len(one):
        return f"One worker reads {len(zero)} numbers and the other {len(one)}: shares must be as equal as possible."
    if zero == list(range(2, 101, 2)):
        return "Two fair shares, but exchanged: worker 0 takes the first number."
    if zero == list(range(1, 51)):
        return "These are two blocks: complete, but neighbours stay together. Take every second number."
    return "Take every second number, in order; worker 0 begins at the first, worker 1 at the second."


@question(
    "06.2",
    "1 to 100 for three workers: how many each",
    HERE,
    why="100 is no multiple of 3: the worker that begins at the first number gets one more.",
)
def sizes(counts):
    counts = [int(count) if float(count).is_integer() else float(count) for count in counts]
    if counts == [34, 33, 33]:
        return None
    if len(counts) != 3:
        return f"This is a list of {len(counts)}: give one number for each of the three workers."
    if sum(counts) == 100 and any(isinstance(count, float) for count in counts):
        return "A worker reads whole samples: the shares cannot be equal. Which worker gets one more?"
    if sorted(counts) == [33, 33, 34]:
        return "The three shares are right, but not in the order of the workers. Which worker reads number 100?"
    if sum(counts) < 100:
        return f"These are {sum(counts)} samples together: some of the 100 would never be read."
    if sum(counts) > 100:
        return f"These are {sum(counts)} samples together, and there are 100: some would be read twice."
    return "The shares differ by one sample at the most: count 1, 4, 7, ..., then 2, 5, 8, ... and 3, 6, 9, ..."


def _numbers(dataset):
    return [int(x) for x in dataset.as_numpy_iterator()]


@question(
    "06.3",
    "The share of a rank, with tf.data",
    HERE,
    points=2,
    why="shard(size, rank) keeps every size-th element, from place rank on: disjoint and complete.",
)
def shard_of(function):
    import tensorflow as tf

    shares = {}
    for size in (1, 2, 3):
        for rank in range(size):
            try:
                given = function(tf.data.Dataset.range(24), rank, size)
                if not hasattr(given, "as_numpy_iterator"):
                    return f"Your function returns a {type(given).__name__}: return a tf.data.Dataset of `numbers`."
                shares.setdefault(size, []).append(_numbers(given))
            except tf.errors.OpError as problem:
                return (
                    f"For rank {rank} of {size} TensorFlow stops with {type(problem).__name__}. Are the arguments "
                    "in the order that the method wants?"
                )
    for size, reads in shares.items():
        found = coverage(reads, 24)
        if len(found.foreign):
            return f"Of the samples 0 to 23, your shares hold {some(found.foreign)}. Return elements of `numbers`."
        if len(found.unseen) and len(found.repeated):
            return (
                f"For {size} ranks, {some(found.repeated)} are read more than once and {some(found.unseen)} by "
                "nobody. Does each rank begin at a place of its own?"
            )
        if len(found.repeated):
            return f"For {size} ranks, {some(found.repeated)} are read by more than one. What tells a rank its share?"
        if len(found.unseen):
            return f"For {size} ranks, nobody reads {some(found.unseen)}. Into how many shares must you divide?"
    if shares[3] != [list(range(rank, 24, 3)) for rank in range(3)]:
        return "Disjoint and complete, but not every size-th sample: neighbours stay together, or ranks are exchanged."


@question(
    "06.5",
    "Classes of a worker, classes of a batch",
    HERE,
    points=2,
    why="What the epoch of a worker holds and what one batch of it holds are two questions.",
)
def classes(function):
    counts = np.zeros((2, 4, 5), int)  # 2 workers, 4 batches, 5 classes
    counts[0, [0, 0, 1, 2, 3], [0, 1, 1, 2, 2]] = 3, 1, 4, 4, 4
    counts[1, :, 3] = 4
    seen, per_batch = map(float, function(counts))
    if np.isclose(seen, 3) and np.isclose(per_batch, 1.25):
        return None
    if np.isclose(seen, 1.25) and np.isclose(per_batch, 3):
        return "Both numbers are there, in the other order: first the classes of the epoch, then those of a batch."
    if np.isclose(seen, 3) and np.isclose(per_batch, 4):
        return "The second number counts samples. In a batch, count the classes with at least one sample."
    if np.isclose(seen, 3) and np.isclose(per_batch, 5):
        return "The second is a sum over the batches: take the mean."
    if np.isclose(seen, 16):
        return "The first number counts samples of worker 0. How many classes have at least one sample?"
    if np.isclose(seen, 4) or np.isclose(per_batch, 9 / 8):
        return "This holds both workers. `counts[0]` is worker 0's, with one row for each batch."
    return "For worker 0: a class is seen if its count is above 0. First over the whole epoch, then in each batch."


choice(
    "06.6",
    "Sorted source: shard, then batch",
    HERE,
    right="c",
    wrong={
        "a": "Each worker takes every K-th sample of each class: look at the rows of one worker in the picture.",
        "b": "Every sample has one place in the order, and one worker takes it: nothing is read twice.",
        "d": "Look at single columns of the picture: what does one batch hold?",
    },
    why="Each worker's epoch is a fair sample, but in each step all workers see nearly one class.",
)


@question(
    "06.8",
    "How many samples does nobody read?",
    HERE,
    points=2,
    why="All samples minus those that any worker has read.",
)
def never_read(function):
    trials = [([[0, 1, 2], [2, 3]], 6), ([[0, 0, 1, 1]], 4), ([[5, 4], [3], [2, 1, 0]], 6)]
    got = [function([list(read) for read in reads], n) for reads, n in trials]
    if any(isinstance(value, (list, set, tuple, np.ndarray)) for value in got):
        return "These are the samples themselves: return how many there are."
    got = [float(value) for value in got]
    if got == [2, 2, 0]:
        return None
    if got == [4, 2, 6]:
        return "This counts the samples that were read. How many were not?"
    if got == [1, 0, 0]:
        return "A sample that is read twice counts once here: subtracting the lengths of the lists is not enough."
    if got[0] == 3:
        return "This looks at one worker only. A sample counts as read if any of the workers has read it."
    return f"For the reads [0, 1, 2] and [2, 3] of 6 samples your function gives {got[0]:g}. Which did nobody read?"


@question(
    "06.9",
    "The expected share of unread samples",
    HERE,
    points=2,
    why="One worker leaves a sample out with probability 1 - 1/K; all K with its K-th power.",
)
def expected(function):
    got = [float(function(k)) for k in (1, 2, 4, 10)]
    if np.allclose(got, [(1 - 1 / k) ** k for k in (1, 2, 4, 10)]):
        return None
    if np.allclose(got[1:], [1 / k**2 for k in (2, 4, 10)]) or np.allclose(got, 1 / 4):
        return "This fits your count for two workers. Count for four: then it is more, not less."
    if np.allclose(got, [1 - 1 / k for k in (1, 2, 4, 10)]):
        return "With this probability one worker leaves the sample out. All of them must."
    if np.allclose(got, [1 / k for k in (1, 2, 4, 10)]):
        return "With this probability one worker reads the sample. With which probability does it not?"
    if np.allclose(got, np.exp(-1)):
        return "This is where it tends to for many workers. Your count for two is below it."
    if np.isclose(got[0], 0) and np.isclose(got[1], 0.75):
        return "This is the share that is read. Which share is not?"
    if not np.isclose(got[0], 0):
        return f"A single worker reads everything, but your formula leaves out {got[0]:.3g} of it."
    return "Begin with one worker and one sample: with which probability is the sample not in its share? Then all K."


choice(
    "06.10",
    "After five epochs",
    HERE,
    right="b",
    wrong={
        "a": "Look at the third column: it does not get smaller from epoch to epoch.",
        "c": "Each worker takes its half of its own order, in each epoch: the lengths are equal.",
        "d": "A new order is drawn in each epoch: the samples that are left out are not the same ones.",
    },
    why="The shares overlap in each epoch: some samples weigh twice, some not at all.",
)


@question(
    "06.11",
    "Fair in every epoch",
    HERE,
    points=3,
    why="In each epoch every sample is read once, by one rank, and in a new order.",
)
def fair(function):
    n, made = 60, {}
    for size in (2, 3):
        datasets = [function(n, rank, size) for rank in range(size)]
        wrong = [type(d).__name__ for d in datasets if not hasattr(d, "as_numpy_iterator")]
        if wrong:
            return f"Your function returns a {wrong[0]}: return a tf.data.Dataset of sample numbers."
        made[size] = [[_numbers(d) for d in datasets] for _ in range(3)]  # passes over the same datasets: epochs
    for size, epochs in made.items():
        for epoch, reads in enumerate(epochs, 1):
            found = coverage(reads, n)
            if found.right:
                continue
            if all(len(read) == n for read in reads):
                return f"Each of {size} ranks reads all {n} samples: nothing divides them."
            if len(found.foreign):
                return f"With n={n} there is no sample {some(found.foreign)}."
            if epoch > 1:
                return f"Epoch 1 is right, but in epoch {epoch} with {size} ranks nobody reads {some(found.unseen)}."
            return (
                f"In epoch 1 with {size} ranks, {some(found.repeated)} are read more than once and "
                f"{some(found.unseen)} by nobody. What must all ranks have in common to divide?"
            )
    first, second, _ = made[2]
    if first == second and any(read != sorted(read) for read in first):
        return "Disjoint and complete, but every epoch has the same order. Which argument of `shuffle` draws a new one?"
    if first == second:
        return "Disjoint and complete, but nothing is shuffled: a sorted source would stay sorted."
