"""Who reads which samples: shares of the workers under different orders of operations, and how fair they are.

NumPy only, so that thousands of shares are counted while a slider moves. What tf.data does with `.shuffle` and
`.shard`, these functions do with arrays of sample numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from labs.errors import UseError

# How the workers come to their shares. Every name says in which order what is done.
ORDERS = (
    "block of each worker, batch",
    "shard, batch",
    "shard, shuffle, batch",
    "shuffle with one seed, shard, batch",
    "shuffle with own seeds, shard, batch",
)


class ShardError(UseError):
    """Shares that cannot be made; the text says why and what to do."""


@dataclass(frozen=True)
class Coverage:
    """Sample numbers, sorted: read by a worker; by none; more than once; read although no sample has this number."""

    seen: np.ndarray
    unseen: np.ndarray
    repeated: np.ndarray
    foreign: np.ndarray

    @property
    def right(self) -> bool:
        """True if every sample was read exactly once."""
        return not (len(self.unseen) or len(self.repeated) or len(self.foreign))


def shares(n: int, workers: int, order: str, *, seed: int = 0, epoch: int = 0) -> list[np.ndarray]:
    """What each worker reads in one epoch: a list of `workers` arrays of sample numbers out of 0 to n-1.

    order: one of ORDERS. "block" gives each worker a run of neighbours, as files do that hold a data set in its
    order; "shard" gives worker r every K-th sample from r on. A seed of its own for each worker is drawn from
    `seed`, the worker and the epoch; one common seed from `seed` and the epoch.
    Raises ShardError for an unknown order and for fewer than 1 worker.
    """
    if order not in ORDERS:
        raise ShardError(f"No order of operations is called {order!r}. Use one of: {'; '.join(ORDERS)}.")
    if workers < 1:
        raise ShardError(f"{workers} workers read nothing. Ask for 1 or more.")
    numbers, own = np.arange(n), [np.random.default_rng([seed, epoch, 1 + worker]) for worker in range(workers)]
    if order.startswith("block"):
        return np.array_split(numbers, workers)
    if order.startswith("shuffle with one seed"):
        numbers = np.random.default_rng([seed, epoch]).permutation(n)
    if order.startswith("shuffle with own seeds"):
        return [own[worker].permutation(n)[worker::workers] for worker in range(workers)]
    parts = [numbers[worker::workers] for worker in range(workers)]
    return [own[worker].permutation(part) for worker, part in enumerate(parts)] if ", shuffle" in order else parts


def coverage(reads: Sequence[ArrayLike], n: int) -> Coverage:
    """Coverage of the samples 0 to n-1 by `reads`: one list of sample numbers for each worker."""
    every = np.concatenate([np.asarray(read, np.int64).ravel() for read in reads]) if len(reads) else np.array([], int)
    numbers, counts = np.unique(every, return_counts=True)
    inside = (numbers >= 0) & (numbers < n)
    return Coverage(numbers[inside], np.setdiff1d(np.arange(n), numbers), numbers[counts > 1], numbers[~inside])


def expected_unseen(workers: float) -> float:
    """Share of samples that nobody reads in an epoch if K workers shuffle with seeds of their own, then shard.

    Each worker keeps the places r, r+K, ... of its own random order: 1/K of them. So it leaves out a given sample with
    probability 1 - 1/K; the orders are independent, and nobody reads it with probability (1 - 1/K)**K. That is 1/4
    for K = 2 and tends to 1/e = 0.368 as K grows, since (1 - x/K)**K tends to exp(-x).
    """
    return (1 - 1 / workers) ** workers


def class_counts(shares: Sequence[ArrayLike], labels: ArrayLike, local_batch: int, classes: int) -> np.ndarray:
    """Samples of each class in each batch of each worker: int array (workers, batches, classes).

    shares: list of arrays of sample numbers; labels: (N,) class of each sample; local_batch: samples per step and
    worker. A last, smaller batch counts; a worker with fewer batches than another has zeros there.
    """
    labels = np.asarray(labels)
    shares = [np.asarray(share, np.int64) for share in shares]
    most = max((-(-len(share) // local_batch) for share in shares), default=0)
    counts = np.zeros((len(shares), most, classes), np.int64)
    for worker, share in enumerate(shares):
        rows = labels[share]
        np.add.at(counts[worker], (np.arange(len(rows)) // local_batch, rows), 1)
    return counts


def distance(counts: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """How far the class mix of `counts` (..., classes) is from that of all labels: 0 equal, towards 1 one class only.

    The total variation distance, half the sum of |p - q| over the classes: the share of the samples that would
    have to be exchanged for others. Where there are no samples it is not a number.
    """
    counts = np.asarray(counts, float)
    every = np.bincount(np.asarray(labels), minlength=counts.shape[-1])
    with np.errstate(invalid="ignore"):
        return np.abs(counts / counts.sum(-1, keepdims=True) - every / every.sum()).sum(-1) / 2


def some(numbers: Sequence[int] | np.ndarray, show: int = 4) -> str:
    """The first few of some sample numbers, as text: "3, 5, 8, 13, ..."."""
    return ", ".join(map(str, numbers[:show])) + (", ..." if len(numbers) > show else "")


def sentence(found: Coverage, n: int) -> str:
    """What a Coverage says, in one sentence with some of the sample numbers."""
    if found.right:
        return f"All {n} samples are read, each once."
    parts = [
        f"{len(numbers)} of {n} samples are {what} ({some(numbers)})"
        for numbers, what in ((found.repeated, "read more than once"), (found.unseen, "never read"))
        if len(numbers)
    ]
    if len(found.foreign):
        parts.append(f"{some(found.foreign)} is no sample at all")
    return "; ".join(parts) + "."
