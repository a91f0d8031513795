"""How K workers add up their gradients: a ring, step by step, and what it costs beside parameter servers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from labs.errors import UseError, number, whole


class Send(NamedTuple):
    """One message of a step: numbers of the sending and the receiving worker and of the chunk; its size in numbers."""

    sender: int
    receiver: int
    chunk: int
    size: int


class Step(NamedTuple):
    """One step of the ring: "reduce-scatter" or "all-gather", its messages, and all vectors after it, shape (K, n)."""

    phase: str
    sends: list[Send]
    vectors: np.ndarray


def chunks(size: int, workers: int) -> list[slice]:
    """Slices that divide a vector of `size` numbers into K chunks; the first ones have one number more."""
    size, workers = whole("size", size, 0), whole("workers", workers)
    bounds = np.cumsum([0] + [size // workers + (k < size % workers) for k in range(workers)])
    return [slice(int(low), int(high)) for low, high in zip(bounds[:-1], bounds[1:], strict=True)]


def ring(vectors: ArrayLike) -> list[Step]:
    """Ring all-reduce of `vectors`, shape (K, n): the 2 (K - 1) Steps after which each worker has the sum.

    In step t of the reduce-scatter worker w sends its part of chunk w - t to worker w + 1, which adds it; then worker w
    holds the sum of chunk w + 1. In the all-gather the sums go round. Source: P. Patarasuk and X. Yuan, JPDC 69 (2009).
    Raises UseError for vectors that are no (K, n) array of finite numbers.
    """
    state = np.array(vectors)
    if state.ndim != 2 or not state.shape[0] or not np.issubdtype(state.dtype, np.number):
        raise UseError(f"vectors has the shape {state.shape}: it must be (workers, numbers), at least 1 worker.")
    if not np.all(np.isfinite(state)):
        raise UseError("vectors holds a number that is not finite: no sum would be right.")
    workers = len(state)
    parts, steps = chunks(state.shape[1], workers), []
    for phase, offset in (("reduce-scatter", 0), ("all-gather", 1)):
        for t in range(workers - 1):
            sends = [((w + offset - t) % workers, w) for w in range(workers)]
            before, state = state, state.copy()
            messages = []
            for chunk, sender in sends:
                receiver, part = (sender + 1) % workers, parts[chunk]
                if phase == "reduce-scatter":
                    state[receiver, part] += before[sender, part]
                else:
                    state[receiver, part] = before[sender, part]
                messages.append(Send(sender, receiver, chunk, part.stop - part.start))
            steps.append(Step(phase, messages, state))
    return steps


def ring_bytes(workers: int, size: float) -> float:
    """Bytes that each worker sends in a ring all-reduce of `size` bytes: 2 (K - 1) / K of them."""
    workers, size = whole("workers", workers), number("size", size)
    return 2 * (workers - 1) / workers * size


def ring_seconds(workers: int, size: float, latency: float, bandwidth: float) -> float:
    """Seconds of a ring all-reduce: 2 (K - 1) messages, one after the other, of size / K bytes each.

    size in bytes, latency in seconds for each message, bandwidth in bytes/s of each worker's link.
    """
    workers, size = whole("workers", workers), number("size", size)
    latency, bandwidth = number("latency", latency), number("bandwidth", bandwidth, above=True)
    return 2 * (workers - 1) * (latency + size / workers / bandwidth)


def server_seconds(workers: int, size: float, latency: float, bandwidth: float, servers: int = 1) -> float:
    """Seconds until all workers have the sum from parameter servers, each of which holds an equal part.

    A server's link carries the parts of all workers in turn, first in, then out; a worker's own link carries the whole
    gradient: what takes longer counts. Units as in `ring_seconds`. One worker has nothing to exchange: 0.
    Source: M. Li and others, OSDI 2014.
    """
    workers, servers, size = whole("workers", workers), whole("servers", servers), number("size", size)
    latency, bandwidth = number("latency", latency), number("bandwidth", bandwidth, above=True)
    if workers == 1:
        return 0.0
    return 2 * (latency + max(workers / servers, 1) * size / bandwidth)
