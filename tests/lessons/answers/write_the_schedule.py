"""Answers to the self-checks of 31_write_the_schedule: right ones, and wrong ones that students give."""

from lessons.write_the_schedule.programs import (
    all_reduce,
    backward,
    forward,
    gradient,
    load,
    program,
    receive,
    send,
    update,
    wait,
)  # fmt: skip


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


def plain(batch=lambda rank, batches: [rank], exchanged=lambda layers: [range(layers)], after=lambda: None,
          updated=lambda layers: layers):  # fmt: skip
    """schedule.1: which micro-batches a rank computes, which layers are exchanged together, and how many updated."""

    @program
    def data_parallel(rank, K, L, M):
        for each in batch(rank, M):
            forwards(L, each)
            backwards(L, each)
        for layers in exchanged(L):
            all_reduce(*map(gradient, layers))
        updates(updated(L))
        after()

    return (data_parallel,)


def one_by_one(layers):
    return [[layer] for layer in range(layers)]


def nothing(layers):
    return []


@program
def typed(rank, K, L, M):
    load(rank)
    for layer in (0, 1, 2, 3, 4, 5):
        forward(layer, rank)
    for layer in (5, 4, 3, 2, 1, 0):
        backward(layer, rank)
    all_reduce(*map(gradient, range(6)))
    updates(6)


@program
def endless(rank, K, L, M):
    while True:
        load(rank)


def not_a_program(rank, K, L, M):
    return [("forward", (0, 0, None), "line 1")]


def outside(rank, K, L, M):
    load(rank)


@program
def yields(rank, K, L, M):
    yield load(rank)


@program
def fractions(rank, K, L, M):
    load(rank / 1)


def exchanging(what):
    """schedule.1: what is written in the call of all_reduce."""

    @program
    def data_parallel(rank, K, L, M):
        forwards(L, rank)
        backwards(L, rank)
        all_reduce(what(L))
        updates(L)

    return (data_parallel,)


@program
def without_layers(rank, K):
    load(rank)


@program
def started_in_13_1(rank, K, L, M):
    forwards(L, rank)
    backwards(L, rank)
    all_reduce(*map(gradient, range(L)), wait=False)
    updates(L)


def buckets(size=3, waits=True, last=True, before=False):
    """schedule.2: layers in a bucket; does it wait before the updates, and exchange the last bucket?"""

    @program
    def in_buckets(rank, K, L, M):
        forwards(L, rank)
        bucket, started = [], []
        for layer in reversed(range(L)):
            if not before:
                backward(layer, rank)
            bucket.append(gradient(layer))
            if len(bucket) == size or layer == 0 and last:
                started.append(all_reduce(*bucket, wait=False))
                bucket = []
            if before:
                backward(layer, rank)
        for each in started if waits else []:
            wait(each)
        updates(L)

    return (in_buckets,)


@program
def in_thirds(rank, K, L, M):
    """schedule.2: within the bar of the example, but not where L is larger."""
    buckets(L // 3)[0].__wrapped__(rank, K, L, M)


@program
def waits_at_once(rank, K, L, M):
    forwards(L, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
        if layer % 3 == 0:
            started = all_reduce(*map(gradient, range(layer, min(layer + 3, L))), wait=False)
            wait(started)
    updates(L)


def accumulation(exchanges="last", together=False, mine=lambda rank, K, M: range(rank, M, K), size=1):
    """schedule.3: when gradients are exchanged: during the last pass, after it, in each pass; layers in a message."""

    @program
    def accumulated(rank, K, L, M):
        batches, started = list(mine(rank, K, M)), []
        if together:
            for batch in batches:
                forwards(L, batch)
        for batch in batches:
            if not together:
                forwards(L, batch)
            for layer in reversed(range(L)):
                backward(layer, batch)
                if (exchanges == "each" or exchanges == "last" and batch == batches[-1]) and layer % size == 0:
                    full = map(gradient, range(layer, min(layer + size, L)))
                    started.append(all_reduce(*full, wait=exchanges == "each"))
        for each in started if exchanges == "last" else []:
            wait(each)
        if exchanges == "after":
            all_reduce(*map(gradient, range(L)))
        updates(L)

    return (accumulated,)


@program
def by_hand(rank, K, L, M):
    forwards(L, rank)
    backwards(L, rank)
    if rank:
        send(gradient(0), 0)
    else:
        receive(gradient(0), 1, add=True)


ANSWERS = {
    "schedule.1": {
        "right": [plain()],
        "wrong": [
            plain(exchanged=one_by_one),
            plain(batch=lambda rank, batches: range(batches), exchanged=nothing),
            plain(exchanged=nothing),
            plain(batch=lambda rank, batches: [0]),
            plain(batch=lambda rank, batches: [rank + 1]),
            plain(after=lambda: update(0)),
            plain(updated=lambda layers: layers - 1),
            (typed,),
            (endless,),
            (not_a_program,),
            (outside,),
            (yields,),
            (fractions,),
            exchanging(lambda layers: [gradient(layer) for layer in range(layers)]),
            exchanging(lambda layers: gradient),
            (without_layers,),
            (started_in_13_1,),
            (by_hand,),
        ],
        "secret": None,
    },
    "schedule.2": {
        "right": [buckets(3), buckets(4)],
        "wrong": [
            buckets(1), buckets(99), buckets(waits=False), buckets(7, last=False), buckets(before=True),
            (waits_at_once,), (in_thirds,), buckets(2), buckets(6),
        ],
        "secret": r"\b[345] layers",
    },
    "schedule.3": {
        "right": [accumulation()],
        "wrong": [
            accumulation("after"),
            accumulation(together=True),
            accumulation("each"),
            accumulation(mine=lambda rank, K, M: range(rank * K, (rank + 1) * K)),
            accumulation(mine=lambda rank, K, M: [rank]),
            accumulation(size=2),
            accumulation("none", mine=lambda rank, K, M: range(M)),
        ],
        "secret": None,
    },
}  # fmt: skip
