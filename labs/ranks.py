"""Comparisons across ranks: what must be equal on all of them, and what must be disjoint. All ranks must call them."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labs import files
from labs.errors import LabsError
from labs.printed import few

if TYPE_CHECKING:
    import keras
    import tensorflow as tf


class RankError(LabsError):
    """Ranks differ where they must not; the message names the ranks and what differs."""


_SAYS = files.beside(__file__)


def gather(value: Any, what: str) -> list:
    """[value of rank 0, value of rank 1, ...] on every rank.

    value: what can be pickled; what: it is, in words, equal on all ranks that are to be compared.

    Raises RankError, on every rank, where the ranks compare different things (Horovod takes them for one another), and
    HorovodInternalError where another rank has ended.
    """
    import horovod.tensorflow as hvd
    import tensorflow as tf
    from horovod.common.exceptions import HorovodInternalError

    if hvd.size() == 1:
        return [value]
    try:
        by_rank = hvd.allgather_object((what, value))
    except tf.errors.OpError as problem:
        said = problem.message.split("}} ")[-1].split("\n")[0]
        raise HorovodInternalError(_SAYS["alone"].format(rank=hvd.rank(), said=said)) from None
    for rank, (other, _) in enumerate(by_rank):
        if other != by_rank[0][0]:
            raise RankError(_SAYS["other_place"].format(first=by_rank[0][0], rank=rank, other=other))
    return [value for _, value in by_rank]


def fingerprints(variables: "Iterable[keras.Variable]") -> list[int]:
    """A whole number for each variable, equal for equal bits: a look that is cheaper than `compare_weights`."""
    sums = []
    for variable in variables:
        raw = np.ascontiguousarray(variable.numpy()).reshape(-1).view(np.uint8)
        even = len(raw) // 8 * 8
        sums.append(int(raw[:even].view(np.uint64).sum()) + int.from_bytes(raw[even:].tobytes()))
    return sums


def differ(values: Sequence) -> tuple[int, Any] | None:
    """(rank, its value) of the first rank that differs from rank 0, or None."""
    return next(((rank, value) for rank, value in enumerate(values) if value != values[0]), None)


def equal(variables: "Iterable[keras.Variable]", by_rank: Sequence[list[int]], when: str) -> None:
    """Raise RankError, on every rank, unless all ranks have equal variables.

    variables: of this rank, to name the first that differs; by_rank: the `fingerprints` of them on each rank; when: as
    the message says it, such as "after epoch 2".
    """
    if pair := differ(by_rank):
        both = zip(variables, pair[1], by_rank[0], strict=False)
        first = next((variable.path for variable, here, there in both if here != there), "their number")
        raise RankError(_SAYS["apart"].format(rank=pair[0], when=when, first=first))


def own_seed(seed: int) -> int:
    """This rank's own seed, made of one that all ranks share: for what each is to draw by itself, such as dropout.

    Rank 0 keeps the shared one, so that one process draws what it draws without Horovod.
    """
    import horovod.tensorflow as hvd

    return int(np.random.SeedSequence([seed, hvd.rank()]).generate_state(1)[0]) if hvd.rank() else seed


def place() -> tuple[int, int, bool]:
    """(this rank, number of nodes, oversubscribed): the last one if any ranks share cores, without GPUs.

    Nodes may be simulated on one machine (its boot id tells): ranks on different ones can share cores there.
    """
    import horovod.tensorflow as hvd

    from labs import devices

    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        machine = None
    limit = 0 if devices.gpus() else devices.cores()
    by_node, by_machine = {}, {}
    mine = (hvd.cross_rank(), machine or hvd.cross_rank(), sorted(os.sched_getaffinity(0)), limit)
    for node, machine, affinity, limit in gather(mine, "places"):
        by_node.setdefault(node, []).append(limit)  # of a rank that has not been bound, or a container's
        by_machine.setdefault(machine, []).append(affinity if limit else None)
    crowded = any(1 < max(limits) < len(limits) for limits in by_node.values())
    for bound in by_machine.values():
        bound = [affinity for affinity in bound if affinity is not None]
        crowded |= len(bound) > len({core for affinity in bound for core in affinity})
    return hvd.rank(), len(by_node), crowded


def agree(why: str = "they would not train the same network", /, **values) -> None:
    """Raise RankError, on every rank, unless all ranks pass equal values.

    why: what would follow otherwise, as the message says it; values: any that can be pickled and compared, by the names
    that the message calls them.
    """
    by_rank = gather(values, "its settings")
    for name in dict.fromkeys(name for values in by_rank for name in values):
        value = by_rank[0].get(name)
        different = [rank for rank, others in enumerate(by_rank) if others.get(name) != value]
        if different:
            rank = different[0]
            more = f" ({len(different)} of {len(by_rank)} ranks differ from rank 0)" if len(different) > 1 else ""
            both = {"first": value, "rank": rank, "other": by_rank[rank].get(name)}
            raise RankError(_SAYS["disagree"].format(name=name, **both, more=more, why=why))


def check_shards(numbers: "tf.data.Dataset", n: int, dropped: int = 0) -> list[np.ndarray]:
    """Read one pass of the sample numbers of every rank; raise RankError, on every rank, if they are no fair shards.

    numbers: this rank's tf.data.Dataset of sample numbers, 0 to n - 1; n: samples in the data set;
    dropped: samples that an epoch leaves out, so that all steps are full. See `shard_problem`.
    Returns the numbers of all ranks, as a list of int64 arrays.
    """
    mine = np.fromiter(numbers.as_numpy_iterator(), np.int64)
    by_rank = gather(mine, "shards")
    if problem := shard_problem(by_rank, n, dropped):
        raise RankError(problem)
    return by_rank


def shard_problem(by_rank: Sequence, n: int, dropped: int = 0) -> str | None:
    """What is wrong with the shards of n samples, in one sentence, or None if nothing is.

    by_rank: for each rank the sample numbers that it reads in an epoch. Right are shards in which no sample comes
    twice, which are equally long, and which leave out at most `dropped` samples.
    """
    by_rank = [np.asarray(numbers, np.int64) for numbers in by_rank]
    for rank, numbers in enumerate(by_rank):
        outside = numbers[(numbers < 0) | (numbers >= n)]
        if len(outside):
            return f"Rank {rank} reads {_some(outside)}, but the {n} samples have the numbers 0 to {n - 1}."
    lost = np.setdiff1d(np.arange(n), np.concatenate(by_rank))
    unread = f" No rank reads {_some(lost)}." if len(lost) > dropped else ""
    reader = np.full(n, -1)  # rank that reads each sample
    for rank, numbers in enumerate(by_rank):
        unique, count = np.unique(numbers, return_counts=True)
        if (count > 1).any():
            return f"Rank {rank} reads twice in one epoch: {_some(unique[count > 1])}. Each sample counts once."
        shared = unique[reader[unique] >= 0]
        if len(shared):
            first = reader[shared[0]]
            both = shared[reader[shared] == first]
            return _SAYS["not_sharded"].format(first=first, rank=rank, both=_some(both), unread=unread)
        reader[unique] = rank
    lengths = [len(numbers) for numbers in by_rank]
    if len(set(lengths)) > 1:
        few, many = int(np.argmin(lengths)), int(np.argmax(lengths))
        return _SAYS["uneven"].format(rank=many, most=max(lengths), other=few, least=min(lengths))
    return f"{unread[1:]} Is the number of shards the number of ranks ({len(by_rank)})?" if unread else None


def _some(numbers):
    return f"sample{'s' if len(numbers) > 1 else ''} {few(list(map(str, numbers)), 5)}"


def compare_weights(model: "keras.Model") -> dict[str, Any]:
    """Compare the weights of all ranks, bit by bit: {"ranks", "identical", "sha256", "different"}.

    identical: whether all weights of all ranks are equal; sha256: hex digest of rank 0's; different: for each rank that
    differs from rank 0 {"rank", "variable" (path of the first that differs, a trained one if there is any),
    "trainable"}. Moving statistics of batch normalisation are weights, but not trained: each rank has its own, unless
    they are averaged (labs.hvd.callbacks.MetricAverageCallback).
    """
    mine = [hashlib.sha256(np.ascontiguousarray(weight.numpy())).hexdigest() for weight in model.weights]
    by_rank = gather(mine, "weights")
    different = []
    for rank, digests in enumerate(by_rank[1:], 1):
        apart = [w for w, here, first in zip(model.weights, digests, by_rank[0], strict=True) if here != first]
        if apart:
            first = max(apart, key=lambda weight: weight.trainable)
            different.append({"rank": rank, "variable": first.path, "trainable": first.trainable})
    whole = hashlib.sha256("".join(by_rank[0]).encode()).hexdigest()
    return {"ranks": len(by_rank), "identical": not different, "sha256": whole, "different": different}


def same_weights(model: "keras.Model", when: str = "after the training") -> dict[str, Any]:
    """`compare_weights`; raises RankError, on every rank, if weights that are trained differ between ranks.

    when: they were compared, as the message says it.
    """
    result = compare_weights(model)
    for other in result["different"]:
        if other["trainable"]:
            raise RankError(_SAYS["apart"].format(rank=other["rank"], when=when, first=other["variable"]))
    return result
