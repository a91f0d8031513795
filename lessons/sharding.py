"""Who reads which samples, counted: what the shares of the workers cover, and which classes are in their batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lessons.forms import kind


@dataclass(frozen=True)
class Coverage:
    """Sample numbers, sorted: read by no worker; more than once; read although no sample has this number."""

    unseen: np.ndarray
    repeated: np.ndarray
    foreign: np.ndarray

    @property
    def right(self) -> bool:
        """True if every sample was read exactly once."""
        return not (len(self.unseen) or len(self.repeated) or len(self.foreign))


def no_dataset(made):
    """Case of what a student's function returns in place of a tf.data.Dataset."""
    yield not hasattr(made, "as_numpy_iterator"), f"Your function returns {kind(made)}: return a tf.data.Dataset."


def coverage(reads: Sequence[ArrayLike], n: int) -> Coverage:
    """Coverage of the samples 0 to n-1 by `reads`: one list of sample numbers for each worker."""
    numbers, counts = np.unique(np.concatenate([np.asarray(read, np.int64) for read in reads]), return_counts=True)
    samples = np.arange(n)
    return Coverage(np.setdiff1d(samples, numbers), numbers[counts > 1], np.setdiff1d(numbers, samples))


def class_counts(shares: Sequence[ArrayLike], labels: ArrayLike, local_batch: int, classes: int) -> np.ndarray:
    """Samples of each class in each batch of each worker: int array (workers, batches, classes).

    shares: list of arrays of sample numbers; labels: (N,) class of each sample; local_batch: samples per step and
    worker. A last, smaller batch counts; a worker with fewer batches than another has zeros there.
    """
    most = max(-(-len(share) // local_batch) for share in shares)
    counts = np.zeros((len(shares), most, classes), np.int64)
    for worker, share in enumerate(shares):
        of_share = np.asarray(labels)[np.asarray(share, np.int64)]
        np.add.at(counts[worker], (np.arange(len(share)) // local_batch, of_share), 1)
    return counts


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
