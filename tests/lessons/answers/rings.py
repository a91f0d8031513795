"""Answers to the self-checks of 02b_rings: right ones, and wrong ones that students give."""

import numpy as np


def server(workers, size, servers=1):
    return 2 * workers * size / servers


def ring(workers, size):
    return 2 * (workers - 1) / workers * size


# The ring: (chunk that is sent, chunk that the received one belongs to) in each step


def scattered(send=lambda w, t: w - t, put=lambda w, t: w - t - 1, steps=-1, add=lambda a, b: a + b, after=lambda c: c):
    def reduce_scatter(worker, K, chunks, exchange):
        for step in range(K + steps):
            place = put(worker, step) % K
            chunks[place] = add(chunks[place], exchange(chunks[send(worker, step) % K]))
        return after(chunks)

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


def whole_vector(worker, K, chunks, exchange):
    whole = np.concatenate(chunks)
    for _ in range(K - 1):
        whole = exchange(whole) + np.concatenate(chunks)
    return np.split(whole, K)


def rank_0_stops(worker, K, chunks, exchange):
    for step in range(K - 1 if worker else 1):
        chunks[(worker - step - 1) % K] += exchange(chunks[(worker - step) % K])


def never_counts(worker, K, chunks, exchange):
    step = 0
    while step < K - 1:  # without step += 1
        chunks[(worker - step - 1) % K] += exchange(chunks[(worker - step) % K])


def gathered(send=lambda w, t: w + 1 - t, put=lambda w, t: w - t, steps=-1, set=lambda a, b: b):
    def all_gather(worker, K, chunks, exchange):
        for step in range(K + steps):
            place = put(worker, step) % K
            chunks[place] = set(chunks[place], exchange(chunks[send(worker, step) % K]))
        return chunks

    return (all_gather,)


def gathered_in_place(worker, K, chunks, exchange):
    chunk = (worker + 1) % K
    for _ in range(K - 1):
        received = exchange(chunks[chunk])
        chunk = (chunk - 1) % K
        chunks[chunk][:] = received


def gathered_on(worker, K, chunks, exchange):
    found = {(worker + 1) % K: chunks[(worker + 1) % K]}
    passing = chunks[(worker + 1) % K]
    for step in range(K - 1):
        passing = exchange(passing)
        found[(worker - step) % K] = passing
    return [found[chunk] for chunk in range(K)]


ANSWERS = {
    "rings.2": dict(
        right=[
            (server, ring),
            (server, lambda k, size: 2 * (size - size / k)),
            (lambda workers, size, servers=1: np.float64(2 * workers * size) / servers, ring),
        ],
        wrong=[
            (lambda k, size, servers=1: k * size / servers, ring),
            (lambda k, size, servers=1: 2 * k * size, ring),
            (lambda k, size, servers=1: 2 * k * size * servers, ring),
            (lambda k, size, servers=1: (k + 1) * size / servers, ring),
            (lambda k, size, servers=1: 2 * (k - 1) * size / servers, ring),
            (lambda k, size, servers=2: 2 * k * size / servers, ring),
            (lambda k, size, servers=1: size, ring),
            (server, lambda k, size: 2 * (k - 1) * size),
            (server, lambda k, size: (k - 1) / k * size),
            (server, lambda k, size: 2 * size),
            (server, lambda k, size: 4 * (k - 1) / k * size),
            (server, lambda k, size: size / k),
            (lambda k, size, servers=1: 2 * k * size // servers, ring),
            (server, lambda k, size: 2 * (k - 1) * size // k),
            (server, lambda k, size: 2 * (k - 1) / k * 600),
        ],
        secret=r"\b900\b|\b4800\b|2 \* ?\(|/ ?K\b",
    ),
    "rings.5": {
        "right": [scattered(), (scattered_in_place,), (scattered_backwards,)],
        "wrong": [
            scattered(steps=0),
            scattered(steps=-2),
            scattered(add=lambda a, b: b),
            scattered(add=lambda a, b: (a + b) / 2),
            scattered(after=lambda chunks: [chunk / len(chunks) for chunk in chunks]),
            scattered(put=lambda w, t: w - t),
            scattered(send=lambda w, t: w - t - 1, put=lambda w, t: w - t - 2),
            scattered(after=lambda chunks: chunks[0]),
            (whole_vector,),
            (rank_0_stops,),
            scattered(put=lambda w, t: w - t + 2),  # right on 3 workers
            (never_counts,),
        ],
        "secret": r"% ?K|w - t|worker - ",
    },
    "rings.6": {
        "right": [gathered(), (gathered_in_place,), (gathered_on,)],
        "wrong": [
            gathered(steps=0),
            gathered(steps=-2),
            gathered(set=lambda a, b: a + b),
            gathered(put=lambda w, t: w + 1 - t),
            gathered(send=lambda w, t: w - t, put=lambda w, t: w - t - 1),
            gathered(set=lambda a, b: a),
            (lambda worker, K, chunks, exchange: np.concatenate(chunks),),
        ],
        "secret": r"% ?K|w - t|worker - ",
    },
}
