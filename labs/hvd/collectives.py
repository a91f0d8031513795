"""Horovod's collectives, for a training loop of one's own.

All ranks must call the same ones in the same order, with tensors of the same type; one that is left out waits for ever.
Each takes arrays, tensors or variables, also inside a `tf.function`, and returns dense tensors of TensorFlow. Where a
`tf.function` calls several of one kind, give each a `name`, the same on all ranks. K is the number of ranks.
"""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf
from horovod import tensorflow as horovod
from horovod.tensorflow import Average, Sum

from labs.errors import HorovodError

__all__ = ["Average", "Sum", "allgather", "allreduce", "broadcast", "grouped_allreduce", "reducescatter"]


def allreduce(tensor: Any, op: int = Average, name: str | None = None) -> tf.Tensor:
    """The mean over the ranks (or with op=Sum the sum), on every rank.

    All ranks bring a tensor of one shape, which the result has, too.
    """
    return tf.convert_to_tensor(horovod.allreduce(tf.convert_to_tensor(tensor), op=op, **_named(name)))


def grouped_allreduce(tensors: Iterable, op: int = Average, name: str | None = None) -> list[tf.Tensor]:
    """`allreduce` of a list of tensors in one exchange.

    Returns a list of the same length and shapes.
    """
    summed = horovod.grouped_allreduce([tf.convert_to_tensor(tensor) for tensor in tensors], op=op, **_named(name))
    return [tf.convert_to_tensor(tensor) for tensor in summed]


def reducescatter(tensor: Any, op: int = Average, name: str | None = None) -> tf.Tensor:
    """This rank's part of the mean (or sum) over the ranks.

    Each of K ranks brings shape (n, ...); n / K rows come back. The parts lie in the order of the ranks. Where K does
    not divide n, the first n % K ranks get one row more. Raises HorovodError for a scalar, which has no rows.
    """
    return horovod.reducescatter(_rows(tensor, "reducescatter"), op=op, **_named(name))


def allgather(tensor: Any, name: str | None = None) -> tf.Tensor:
    """The tensors of all ranks, joined in the order of the ranks.

    Ranks may bring different numbers of rows: shapes (n_0, ...), (n_1, ...) become (sum of n, ...). Raises HorovodError
    for a scalar.
    """
    return horovod.allgather(_rows(tensor, "allgather"), **_named(name))


def broadcast(tensor: Any, root_rank: int = 0, name: str | None = None) -> tf.Tensor:
    """The tensor of rank `root_rank`, on every rank.

    All bring one of its shape.
    """
    return horovod.broadcast(tf.convert_to_tensor(tensor), root_rank, **_named(name))


def _named(name):
    return {} if name is None else {"name": name, "ignore_name_scope": True}


def _rows(tensor, what):
    tensor = tf.convert_to_tensor(tensor)
    if tensor.shape.rank == 0:
        raise HorovodError(f"{what} divides or joins rows, and a scalar has no rows. Give it an axis: [value].")
    return tensor
