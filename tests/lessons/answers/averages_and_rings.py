"""Answers to the checks of 02_averages_and_rings that have judges of their own: the functions of the ring."""

import numpy as np


def scattered(send=lambda w, t: w - t, put=lambda w, t: w - t - 1, add=lambda a, b: a + b):
    """send, put: which chunk is sent, and which one the received one belongs to, in step t"""

    def reduce_scatter(worker, K, chunks, exchange):
        for step in range(K - 1):
            place = put(worker, step) % K
            chunks[place] = add(chunks[place], exchange(chunks[send(worker, step) % K]))
        return chunks

    return (reduce_scatter,)


def scattered_in_place(worker, K, chunks, exchange):
    chunk = worker
    for _ in range(K - 1):
        received = exchange(chunks[chunk])
        chunk = (chunk - 1) % K
        chunks[chunk] += received


def scattered_backwards(worker, K, chunks, exchange):
    total, new = chunks[worker], list(chunks)
    for back in range(1, K):
        total = exchange(total) + chunks[worker - back]
    new[(worker + 1) % K] = total
    return new


def gathered_on(worker, K, chunks, exchange):
    found = {(worker + 1) % K: chunks[(worker + 1) % K]}
    passing = chunks[(worker + 1) % K]
    for step in range(K - 1):
        passing = exchange(passing)
        found[(worker - step) % K] = passing
    return [found[chunk] for chunk in range(K)]


ANSWERS = {
    "averages.16": dict(
        right=[scattered(), (scattered_in_place,), (scattered_backwards,)],
        wrong=[
            scattered(send=lambda w, t: w - t - 1, put=lambda w, t: w - t - 2),
            scattered(put=lambda w, t: w - t + 2),  # right on 3 workers
            scattered(add=lambda a, b: (a + b) / 2),
            (lambda worker, *rest: [np.resize(each, rest[1][1].size) for each in scattered_backwards(worker, *rest)],),
            (lambda worker, K, chunks, exchange: [exchange(np.concatenate(chunks)) for _ in chunks[1:]],),
            (lambda worker, K, chunks, exchange: exchange(chunks[0]) if worker else chunks,),
        ],
        secret=r"% ?K|w - t|worker - ",
    ),
    "averages.17": dict(
        right=[scattered(lambda w, t: w + 1 - t, lambda w, t: w - t, lambda a, b: b), (gathered_on,)],
        wrong=[
            scattered(add=lambda a, b: b),
            (lambda worker, K, chunks, exchange: np.concatenate([exchange(chunks[0]) for _ in chunks[1:]]),),
        ],
        secret=r"% ?K|w - t|worker - ",
    ),
}
