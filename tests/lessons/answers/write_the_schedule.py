"""Answers to the self-checks of 31_write_the_schedule: right ones, and wrong ones that students give."""

# ruff: noqa: F403, F405
from lessons.write_the_schedule.programs import *


def forwards(layers, batch):
    load(batch)
    for layer in range(layers):
        forward(layer, batch)


def backwards(layers, batch):
    for layer in reversed(range(layers)):
        backward(layer, batch)


def updates(layers):
    for layer in range(layers):
        update(layer)


def plain(batch=lambda rank: rank, exchanged=lambda layers: [range(layers)]):
    """schedule.1: which micro-batch a rank computes, and which layers are exchanged together."""

    @program
    def data_parallel(rank, K, L, M):
        forwards(L, batch(rank))
        backwards(L, batch(rank))
        for layers in exchanged(L):
            all_reduce(*map(gradient, layers))
        updates(L)

    return (data_parallel,)


def one_by_one(layers):
    return [[layer] for layer in range(layers)]


def nothing(layers):
    return []


@program
def without_layers(rank, K):
    load(rank)


def exchanging(what):
    """schedule.1: what is written in the call of all_reduce."""

    @program
    def data_parallel(rank, K, L, M):
        all_reduce(what(L))

    return (data_parallel,)


@program
def by_hand(rank, K, L, M):
    receive(gradient(0), 1 - rank, add=True)


def buckets(size=lambda layers: 3, at_once=False):
    """schedule.2: layers in a bucket; does it wait at once?"""

    @program
    def in_buckets(rank, K, L, M):
        forwards(L, rank)
        bucket, started = [], []
        for layer in reversed(range(L)):
            backward(layer, rank)
            bucket.append(gradient(layer))
            if len(bucket) == size(L) or layer == 0:
                started.append(all_reduce(*bucket, wait=False))
                bucket = []
            if at_once and started:
                wait(started.pop())
        for each in started:
            wait(each)
        updates(L)

    return (in_buckets,)


def of_size(size):
    return buckets(lambda layers: size)


def accumulation(exchanges="last", together=False):
    """schedule.3: when gradients are exchanged: during the last pass, after it, in each pass."""

    @program
    def accumulated(rank, K, L, M):
        batches, started = range(rank, M, K), []
        for batch in batches if together else []:
            forwards(L, batch)
        for batch in batches:
            if not together:
                forwards(L, batch)
            for layer in reversed(range(L)):
                backward(layer, batch)
                if exchanges == "each" or exchanges == "last" and batch == batches[-1]:
                    started.append(all_reduce(gradient(layer), wait=exchanges == "each"))
        for each in started if exchanges == "last" else []:
            wait(each)
        if exchanges == "after":
            all_reduce(*map(gradient, range(L)))
        updates(L)

    return (accumulated,)


TYPED = plain(exchanged=lambda layers: [range(6)])

ANSWERS = {
    "schedule.1": {
        "right": [plain()],
        "wrong": [plain(exchanged=one_by_one), plain(batch=lambda rank: rank + 1), TYPED],
    },
    "schedule.2": {
        "right": [buckets(), of_size(4)],
        "wrong": [of_size(1), buckets(at_once=True)],
        "secret": r"\b[345] layers",
    },
    "schedule.3": {
        "right": [accumulation()],
        "wrong": [accumulation("after"), accumulation(together=True), accumulation("each")],
    },
}
