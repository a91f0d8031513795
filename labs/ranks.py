"""What ranks must have in common, and how they find out that they do not: equal weights, equal settings, disjoint
shards.

All ranks must call `gather` and what uses it: require_equal, agree, where_ranks_run, check_shards, compare_weights,
require_same_weights.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.errors import LabsError
from labs.printed import few

if TYPE_CHECKING:
    import keras
    import tensorflow as tf


class RankError(LabsError):
    """Ranks differ where they must not; the message names the ranks and what differs."""


def gather(value: Any, what: str) -> list:
    """[value of rank 0, value of rank 1, ...] on every rank.

    value: what can be pickled; what: its name in messages, the same on all ranks that compare it.

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
        reason = problem.message.split("}} ")[-1].split("\n")[0]
        raise HorovodInternalError(
            f"Rank {hvd.rank()} waited for another rank that has ended; its output tells the cause. Horovod: {reason}"
        ) from None
    if difference := first_difference([what for what, _ in by_rank]):
        raise RankError(
            f"Rank 0 compares {by_rank[0][0]} and rank {difference[0]} {difference[1]}: they are at different places "
            "in the program and would wait for each other for ever. Let all ranks do the same, in the same order."
        )
    return [value for _, value in by_rank]


def first_difference(values: Sequence) -> tuple[int, Any] | None:
    """(rank, its value) of the first rank that differs from rank 0, or None."""
    return next(((rank, value) for rank, value in enumerate(values) if value != values[0]), None)


def fingerprints(variables: "Iterable[keras.Variable]") -> list[int]:
    """For each variable the sum of its values' bits, read as whole numbers: a look that is cheaper than
    `compare_weights`. Equal sums do not prove equal values."""
    values = [np.ascontiguousarray(variable.numpy()).reshape(-1) for variable in variables]
    return [int(each.view(f"u{each.itemsize}").sum(dtype=np.uint64)) for each in values]


def require_equal(variables: "Iterable[keras.Variable]", when: str) -> None:
    """Raise RankError, on every rank, unless all ranks have equal variables.

    when: time of the comparison, for the message, such as "after epoch 2".
    """
    variables = list(variables)
    by_rank = gather(fingerprints(variables), f"its weights {when}")
    if difference := first_difference(by_rank):
        pairs = zip(variables, by_rank[0], difference[1], strict=False)
        raise _different_networks(difference[0], when, next((v.path for v, a, b in pairs if a != b), "their number"))


def _different_networks(rank, when, variable):
    return RankError(
        f"Rank {rank} and rank 0 have different networks {when} (first difference: {variable}): each rank trains its "
        "own. Broadcast at the start, wrap the optimizer with hvd.DistributedOptimizer, and let callbacks that follow "
        "a metric stand after MetricAverageCallback."
    )


def own_seed(seed: int) -> int:
    """This rank's own seed, made of one that all ranks share: for what each is to draw by itself, such as dropout.

    Rank 0 keeps the shared one, so that one process draws what it draws without Horovod.
    """
    import horovod.tensorflow as hvd

    return int(np.random.SeedSequence([seed, hvd.rank()]).generate_state(1)[0]) if hvd.rank() else seed


def where_ranks_run() -> tuple[int, bool]:
    """(number of nodes, oversubscribed: whether any ranks, each pinned to a core, share cores).

    Nodes may be simulated on one machine (its boot id tells): ranks on different ones can share cores there.
    """
    import horovod.tensorflow as hvd

    from labs import devices

    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
    places = gather((hvd.cross_rank(), boot_id, os.sched_getaffinity(0)), "places")
    cores_of_ranks = {}
    for _, machine, cores in places:
        cores_of_ranks.setdefault(machine, []).append(cores)
    shared = any(len(each) > len(set.union(*each)) for each in cores_of_ranks.values())
    return len({node for node, _, _ in places}), shared and not devices.gpus()


_SAME = "Start all ranks with the same options and the same data."


def agree(why: str = "they would not train the same network", cure: str = _SAME, /, **values) -> None:
    """Raise RankError, on every rank, unless all ranks pass equal values.

    why, cure: what would follow otherwise and what to do, as the message says it; values: any that can be pickled and
    compared, by the names that the message calls them.
    """
    by_rank = gather(values, "its settings")
    for name in dict.fromkeys(name for settings in by_rank for name in settings):
        if difference := first_difference([settings.get(name) for settings in by_rank]):
            raise RankError(
                f"Ranks disagree on {name}: rank 0 has {by_rank[0].get(name)}, rank {difference[0]} has "
                f"{difference[1]}; {why}. {cure}"
            )


def check_shards(numbers: "tf.data.Dataset", n: int, dropped: int = 0) -> list[np.ndarray]:
    """Read one pass of the sample numbers of every rank; raise RankError, on every rank, if they are no fair shards.

    numbers: this rank's tf.data.Dataset of sample numbers, 0 to n - 1; n: samples in the data set;
    dropped: samples that an epoch leaves out, so that all steps are full. See `shard_problem`.
    Returns the numbers of all ranks, as a list of int64 arrays.
    """
    by_rank = gather(np.fromiter(numbers.as_numpy_iterator(), np.int64), "shards")
    if problem := shard_problem(by_rank, n, dropped):
        raise RankError(problem)
    return by_rank


def shard_problem(by_rank: Sequence, n: int, dropped: int = 0) -> str | None:
    """What is wrong with the shards of n samples, in one sentence, or None if nothing is.

    by_rank: for each rank the sample numbers, 0 to n - 1, that it reads in an epoch. Right are shards in which no
    sample comes twice, which are equally long, and which leave out at most `dropped` samples.
    """
    counts = np.array([np.bincount(np.asarray(numbers, np.int64), minlength=n) for numbers in by_rank])  # (ranks, n)
    lost = np.flatnonzero(counts.sum(0) == 0)
    unread = f" No rank reads {_some(lost)}." if len(lost) > dropped else ""
    for rank, count in enumerate(counts):
        if (count > 1).any():
            return f"Rank {rank} reads twice in one epoch: {_some(np.flatnonzero(count > 1))}. Each sample counts once."
    shared = np.flatnonzero(counts.sum(0) > 1)
    if len(shared):
        first, second = np.flatnonzero(counts[:, shared[0]])[:2]
        both = np.flatnonzero(counts[first] & counts[second])
        return (
            f"Ranks {first} and {second} both read {_some(both)}: the data are not sharded, or not in one common order."
            f"{unread} Give each rank numbers.shard(size, rank) of the same order."
        )
    lengths = counts.sum(1)
    most, least = lengths.argmax(), lengths.argmin()
    if lengths[most] > lengths[least]:
        return (
            f"Rank {most} reads {lengths[most]} samples and rank {least} {lengths[least]}: one may take a step more "
            "than the other and wait for it for ever. Cut the order to whole global batches."
        )
    return f"{unread[1:]} Is the number of shards the number of ranks ({len(by_rank)})?" if unread else None


def _some(numbers):
    return f"sample{'s' if len(numbers) > 1 else ''} {few(list(map(str, numbers)), 5)}"


def compare_weights(model: "keras.Model") -> dict[str, Any]:
    """Compare the weights of all ranks, bit by bit.

    Returns {"ranks", "identical", "sha256", "different"}. identical: whether all weights of all ranks are equal;
    sha256: of rank 0's, the hex digest of the joined hex digests of its weights in order; different: for each rank that
    differs from rank 0 {"rank", "variable" (path of the first that differs, a trained one if there is any),
    "trainable"}. Moving statistics of batch normalisation are weights, but not trained: each rank has its own, unless
    they are averaged (labs.hvd.callbacks.MetricAverageCallback). Raises RankError, on every rank, where the numbers of
    weights differ.
    """
    digests = [hashlib.sha256(weight.numpy().tobytes()).hexdigest() for weight in model.weights]
    by_rank = gather(digests, "weights")
    if difference := first_difference([len(own) for own in by_rank]):
        raise _different_networks(difference[0], "now", "their number")
    different = []
    for rank, own in enumerate(by_rank[1:], 1):
        differ = [weight for weight, a, b in zip(model.weights, own, by_rank[0], strict=True) if a != b]
        if differ:
            first = max(differ, key=lambda weight: weight.trainable)
            different.append({"rank": rank, "variable": first.path, "trainable": first.trainable})
    whole = hashlib.sha256("".join(by_rank[0]).encode()).hexdigest()
    return {"ranks": len(by_rank), "identical": not different, "sha256": whole, "different": different}


def require_same_weights(model: "keras.Model", when: str = "after the training") -> dict[str, Any]:
    """`compare_weights`; raises RankError, on every rank, if weights that are trained differ between ranks.

    when: time of the comparison, for the message, such as "after epoch 2".
    """
    result = compare_weights(model)
    for other in result["different"]:
        if other["trainable"]:
            raise _different_networks(other["rank"], when, other["variable"])
    return result
