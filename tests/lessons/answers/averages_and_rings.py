"""Answers to the self-checks of 02_averages_and_rings: right ones, and wrong ones that students give."""

from functools import reduce
from operator import iadd, imul

import numpy as np


def server(workers, size, servers=1):
    return 2 * workers * size / servers


def ring(workers, size):
    return 2 * (workers - 1) / workers * size


# The ring: (chunk that is sent, chunk that the received one belongs to) in each step


def scattered(send=lambda w, t: w - t, put=lambda w, t: w - t - 1, add=lambda a, b: a + b, after=lambda c: c):
    def reduce_scatter(worker, K, chunks, exchange):
        for step in range(K - 1):
            place = put(worker, step) % K
            chunks[place] = add(chunks[place], exchange(chunks[send(worker, step) % K]))
        return after(chunks)

    return (reduce_scatter,)


def gathered(send=lambda w, t: w + 1 - t, put=lambda w, t: w - t):
    return scattered(send, put, lambda a, b: b)


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


def whole_vector(worker, K, chunks, exchange):
    whole = np.concatenate(chunks)
    for _ in range(K - 1):
        whole = exchange(whole) + np.concatenate(chunks)
    return np.split(whole, K)


def rank_0_stops(worker, K, chunks, exchange):
    for step in range(K - 1 if worker else 1):
        chunks[(worker - step - 1) % K] += exchange(chunks[(worker - step) % K])


def never_ends(worker, K, chunks, exchange):
    while True:
        exchange(chunks[0])


def gathered_on(worker, K, chunks, exchange):
    found = {(worker + 1) % K: chunks[(worker + 1) % K]}
    passing = chunks[(worker + 1) % K]
    for step in range(K - 1):
        passing = exchange(passing)
        found[(worker - step) % K] = passing
    return [found[chunk] for chunk in range(K)]


ANSWERS = {
    "averages.1": dict(
        right=[(lambda g: np.mean(g, 0),), (lambda g: np.mean(g, 0).tolist(),)],
        wrong=[(np.mean,), (lambda g: reduce(iadd, g) / len(g),), (lambda g: sum(g) / 3,)],
        secret=r"\.mean|axis|len\(",
    ),
    "averages.3": dict(
        right=[(lambda g, n: np.average(g, 0, n),), (lambda g, n: np.tensordot(n, g, 1) / sum(n),)],
        wrong=[(lambda g, n: np.tensordot(n, g, 1) / 17,), (lambda g, n: sum(map(imul, g, n)) / sum(n),)],
        secret=r"\b17\b|sum\(",
    ),
    "averages.5": dict(
        right=[(lambda t: t.max(axis=1).mean(),), (lambda t: sum(max(row) for row in t) / len(t),)],
        wrong=[
            (lambda t: t.max(axis=0),),
            (lambda t: t[:2, :3].max(axis=1).mean(),),  # right for 2 steps of 3 workers only
        ],
        secret=r"\b6\.5\b|axis=|\.max|\.mean",
    ),
    "averages.9": dict(
        right=[
            (lambda work, one: sum(one.begin < other.end < one.end for other in work),),
            (lambda work, one: len([w for w in work if w.end > one.begin and w.end < one.end]),),
        ],
        wrong=[
            (lambda work, one: one.staleness,),
            (lambda work, one: [other for other in work if one.begin < other.end < one.end],),
        ],
        secret=r"one\.begin <|other\.end",
    ),
    "averages.13": dict(
        right=[(server, ring), (lambda k, size, servers=1: np.float64(2 * k * size) / servers, ring)],
        wrong=[
            (lambda k, size, servers=2: 2 * k * size / servers, ring),
            (lambda k, size, servers=1: 2 * k * size // servers, ring),
            (server, lambda k, size: 2 * (k - 1) * size // k),
        ],
        secret=r"\b900\b|\b4800\b|2 \* ?\(|/ ?K\b",
    ),
    "averages.16": dict(
        right=[scattered(), (scattered_in_place,), (scattered_backwards,)],
        wrong=[
            scattered(send=lambda w, t: w - t - 1, put=lambda w, t: w - t - 2),
            scattered(after=lambda chunks: chunks[0]),
            (whole_vector,),
            (rank_0_stops,),
            scattered(put=lambda w, t: w - t + 2),  # right on 3 workers
            (never_ends,),
        ],
        secret=r"% ?K|w - t|worker - ",
    ),
    "averages.17": dict(
        right=[gathered(), (gathered_on,)],
        wrong=[
            gathered(send=lambda w, t: w - t, put=lambda w, t: w - t - 1),
            (lambda worker, K, chunks, exchange: np.concatenate(chunks),),
        ],
        secret=r"% ?K|w - t|worker - ",
    ),
}
