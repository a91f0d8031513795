"""How K workers add up their gradients: a ring, step by step, and what it costs beside parameter servers."""

from collections import namedtuple

import numpy as np
from numpy.typing import ArrayLike

# One message of a step: numbers of the sending and the receiving worker and of the chunk; its size in numbers.
Send = namedtuple("Send", "sender receiver chunk size")

# One step of the ring: "reduce-scatter" or "all-gather", its Sends, and all vectors after it, shape (K, n).
Step = namedtuple("Step", "phase sends vectors")


def ring(vectors: ArrayLike) -> list[Step]:
    """Ring all-reduce of `vectors`, shape (K, n): the 2 (K - 1) Steps after which each worker has the sum.

    A chunk is as np.array_split cuts it: the first ones may have one number more. In step t of the reduce-scatter
    worker w sends its part of chunk w - t to worker w + 1, which adds it; then worker w holds the sum of chunk w + 1.
    In the all-gather the sums go round. Source: P. Patarasuk and X. Yuan, JPDC 69 (2009).
    """
    state = np.array(vectors)
    workers, steps = len(state), []
    for phase, first in (("reduce-scatter", 0), ("all-gather", 1)):
        for t in range(workers - 1):
            before = np.array_split(state, workers, axis=1)
            state, sends = state.copy(), []
            after = np.array_split(state, workers, axis=1)
            for sender in range(workers):
                chunk, receiver = (sender + first - t) % workers, (sender + 1) % workers
                kept = before[chunk][receiver] if phase == "reduce-scatter" else 0
                after[chunk][receiver] = kept + before[chunk][sender]
                sends.append(Send(sender, receiver, chunk, after[chunk].shape[1]))
            steps.append(Step(phase, sends, state))
    return steps


def ring_bytes(workers: int, size: float) -> float:
    """Bytes that each worker sends in a ring all-reduce of `size` bytes: 2 (K - 1) / K of them."""
    return 2 * (workers - 1) / workers * size


def ring_seconds(workers: int, size: float, latency: float, bandwidth: float) -> float:
    """Seconds of a ring all-reduce: 2 (K - 1) messages, one after the other, of size / K bytes each.

    size in bytes, latency in seconds for each message, bandwidth in bytes/s of each worker's link.
    """
    return 2 * (workers - 1) * (latency + size / workers / bandwidth)


def server_seconds(workers: int, size: float, latency: float, bandwidth: float, servers: int = 1) -> float:
    """Seconds until all workers, at least 2, have the sum from parameter servers, each of which holds an equal part.

    A server's link carries the parts of all workers in turn, first in, then out; a worker's own link carries the whole
    gradient: what takes longer counts. Units as in `ring_seconds`. Source: M. Li and others, OSDI 2014.
    """
    return 2 * (latency + max(workers / servers, 1) * size / bandwidth)
