"""The all-reduce of a step: how long it takes, and how much of it backward does not hide."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log2

from labs.costs.chosen import CHOSEN
from labs.costs.parameter import CostError
from labs.simulate.given import number, whole
from labs.simulate.reduce import ring_bytes, ring_seconds

ALGORITHMS = ("two-level", "ring", "tree")
THRESHOLD = 128 * 2**20  # bytes; Horovod's default from 0.21 on (64 MiB before), see its changelog
CYCLE = 0.001  # seconds; Horovod's default from 0.21 on (0.005 before)
OVERLAP = CHOSEN.overlap  # of the way from none to full
BACKWARD = 2 / 3  # share of the computation: backward is two of the three products that each layer needs


@dataclass(frozen=True)
class Fabric:
    """Nodes of `devices` workers each; latency in seconds for each message, bandwidth in bytes/s: inside a node of one
    worker's link, between nodes of all links of a node together."""

    devices: int = 1
    latency_inside: float = 0.0
    bandwidth_inside: float = 1.0
    latency_between: float = 0.0
    bandwidth_between: float = 1.0
    algorithm: str = "two-level"


@lru_cache(65536)
def all_reduce_seconds(workers: int, size: float, fabric: Fabric) -> float:
    """Seconds of one all-reduce of `size` bytes over K workers; 0 for one worker.

    two-level: a ring in each node, 2 (g - 1) (latency + size / g / bandwidth) for g workers, then one over the m nodes
        with their own latency and bandwidth (P. Patarasuk and X. Yuan, JPDC 69, 2009; on two levels: X. Jia and
        others, arXiv 1807.11205, 2018).
    ring: one ring over all K workers, as NCCL's; every step waits for the slowest link on it.
    tree: NCCL's from 2.4 on; 2 log2(m) messages deep between nodes, pipelined, so the slower level's bytes count
        (S. Jeaugey, "Massively scale your deep learning training with NCCL 2.4", NVIDIA, 2019; P. Sanders, J. Speck and
        J. Traeff, Parallel Computing 35, 2009).
    Raises SimulationError, or CostError for an unknown algorithm.
    """
    workers, size = whole("workers", workers), number("size", size)
    devices = whole("devices per node", fabric.devices)
    if fabric.algorithm not in ALGORITHMS:
        raise CostError(f"Algorithm {fabric.algorithm!r} is not known: choose one of {', '.join(ALGORITHMS)}.")
    per_node, nodes = min(workers, devices), ceil(workers / devices)
    inside = fabric.latency_inside, fabric.bandwidth_inside
    between = fabric.latency_between, fabric.bandwidth_between
    within = ring_seconds(per_node, size, *inside)
    if nodes == 1:
        return within
    if fabric.algorithm == "two-level":
        return within + ring_seconds(nodes, size, *between)
    slow = between if per_node == 1 else (max(inside[0], between[0]), min(inside[1], between[1]))
    if fabric.algorithm == "ring":
        return ring_seconds(workers, size, *slow)
    hops = 2 * (per_node - 1) * inside[0] + 2 * ceil(log2(nodes)) * between[0]
    return hops + ring_bytes(workers, size) / slow[1]


def buckets(tensor_bytes: Iterable[float], threshold: float = THRESHOLD) -> list[float]:
    """Bytes of each fused message when all gradients are ready: from the last tensor on, as backward makes them,
    tensors go together while they fit into `threshold` bytes; a larger one goes alone. threshold 0: no fusion.

    Source: A. Sergeev and M. Del Balso, Horovod, arXiv 1802.05799, 2018 ("tensor fusion").
    """
    threshold, found, room = number("threshold", threshold), [], 0
    for size in reversed(tuple(tensor_bytes)):
        if found and size <= room:
            found[-1] += size
            room -= size
        else:
            found.append(size)
            room = threshold - size
    return found


def exposed(workers, tensor_bytes, fabric, backward, threshold=THRESHOLD, cycle=CYCLE):
    """(all, none, full): seconds of the step's all-reduces, and of the part that lengthens the step without any overlap
    with backward and with full overlap.

    none: all messages of `buckets`, one after the other, when backward has ended. full: during backward (`backward`
    seconds) the gradients become ready at even distances, the last tensor's first; two of Horovod's cycles later
    (one finds it ready, in one all workers agree) it may go, and as soon as the link is free, one message takes all
    that may go and fit. What ends after backward is exposed; the first layer's gradient always is. Source: A. Sergeev
    and M. Del Balso, arXiv 1802.05799; even distances and two cycles are this model's assumptions.
    """
    tensor_bytes = tuple(tensor_bytes)
    if whole("workers", workers) == 1 or not tensor_bytes:
        return 0.0, 0.0, 0.0
    total = sum(all_reduce_seconds(workers, size, fabric) for size in buckets(tensor_bytes, threshold))
    sizes, count = tensor_bytes[::-1], len(tensor_bytes)
    may_go = [backward * number / count + 2 * cycle for number in range(1, count + 1)]
    free, first = 0.0, 0
    while first < count:
        start = max(free, may_go[first])
        last, size = first + 1, sizes[first]
        while last < count and may_go[last] <= start and size + sizes[last] <= threshold:
            size, last = size + sizes[last], last + 1
        free, first = start + all_reduce_seconds(workers, size, fabric), last
    none = total + 2 * cycle
    return total, none, min(none, max(0.0, free - backward))
