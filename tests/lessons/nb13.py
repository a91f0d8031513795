"""Answers to the self-checks of 13_write_the_schedule: right ones, and wrong ones that students give."""

from labs.lessons.nb13.programs import (
    activation,
    all_gather,
    all_reduce,
    backward,
    forward,
    free,
    gradient,
    load,
    program,
    receive,
    reduce_scatter,
    send,
    update,
    wait,
    weights,
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
    """13.1: which micro-batches a rank computes, which layers are exchanged together, and how many updated."""

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
    """13.1: what is written in the call of all_reduce."""

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
    """13.2: layers in a bucket; does it wait before the updates, and exchange the last bucket?"""

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
    """13.2: within the bar of the example, but not where L is larger."""
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
    """13.3: when the gradients are exchanged: during the last pass, after it, or in each pass; layers in a message."""

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
def everything_everywhere(rank, K, L, M):
    """13.4 and others: each rank computes all micro-batches, so no gradient need be exchanged."""
    for batch in range(M):
        forwards(L, batch)
        backwards(L, batch)
    for layer in range(L):
        update(layer)
        if K > 1:
            all_gather(weights(layer))


def zero_1(exchange=reduce_scatter, gathers=True, before=False, at_once=False):
    """13.4."""

    @program
    def sharded(rank, K, L, M):
        forwards(L, rank)
        backwards(L, rank)
        layers = [range(L)] if at_once else [[layer] for layer in range(L)]
        for each in layers:
            if exchange:
                exchange(*map(gradient, each))
            if before:
                all_gather(*map(weights, each))
            for layer in each:
                update(layer)
            if gathers and not before:
                all_gather(*map(weights, each))

    return (sharded,)


def zero_2(exchange=reduce_scatter, updates_at_once=False, frees=None):
    """13.5."""

    @program
    def sharded(rank, K, L, M):
        forwards(L, rank)
        for layer in reversed(range(L)):
            backward(layer, rank)
            exchange(gradient(layer))
            if frees:
                free(gradient(layer), keep=frees(rank))
            if updates_at_once:
                update(layer)
                all_gather(weights(layer))
        for layer in range(L) if not updates_at_once else []:
            update(layer)
            all_gather(weights(layer))

    return (sharded,)


@program
def forward_again(rank, K, L, M):
    """13.5: activations are freed and computed again, and layers updated early, to hold less than the bound says."""
    load(rank)
    for layer in range(L):
        forward(layer, rank)
        if layer > 1:
            free(activation(layer - 2, rank))
    for layer in reversed(range(L)):
        for each in range(layer) if layer < L - 1 else ():
            forward(each, rank)
            if each:
                free(activation(each - 1, rank))
        backward(layer, rank)
        reduce_scatter(gradient(layer))
        update(layer)
        all_gather(weights(layer))


@program
def one_layer_late(rank, K, L, M):
    """13.5: each reduce-scatter is waited for after the next backward pass, so there are two whole gradients."""
    forwards(L, rank)
    summed = None
    for layer in reversed(range(L)):
        backward(layer, rank)
        if summed is not None:
            wait(summed)
        summed = reduce_scatter(gradient(layer), wait=False)
    wait(summed)
    for layer in range(L):
        update(layer)
        all_gather(weights(layer))


@program
def started_and_not_awaited(rank, K, L, M):
    """13.5: all reduce-scatters are started, and waited for at the end of the backward pass."""
    forwards(L, rank)
    started = []
    for layer in reversed(range(L)):
        backward(layer, rank)
        started.append(reduce_scatter(gradient(layer), wait=False))
    for each in started:
        wait(each)
    for layer in range(L):
        update(layer)
        all_gather(weights(layer))


def zero_3(prefetch=True, frees=True, all_first=False, keep=True, again=True):
    """13.6."""

    @program
    def sharded(rank, K, L, M):
        def gather(layer):
            return all_gather(weights(layer), wait=not prefetch) if 0 <= layer < L and not all_first else None

        def compute(what, layer, after, arriving):
            if prefetch and arriving is not None:
                wait(arriving)
            arriving = gather(after) if prefetch else None
            if not prefetch:
                gather(layer)
            what(layer, rank)
            if frees and not all_first and not (prefetch and what is forward and layer == L - 1):
                free(weights(layer), keep=rank if keep else None)
            return arriving

        if all_first:
            all_gather(*map(weights, range(L)))
        arriving = gather(0) if prefetch else None
        load(rank)
        for layer in range(L):
            arriving = compute(forward, layer, layer + 1, arriving)
        started = None
        for layer in reversed(range(L)):
            arriving = compute(backward, layer, layer - 1 if again else L, arriving)
            if started is not None:
                wait(started)
                update(layer + 1)
            started = reduce_scatter(gradient(layer), wait=False)
        wait(started)
        update(0)

    return (sharded,)


@program
def other_order(rank, K, L, M):
    forwards(L, rank)
    backwards(L, rank)
    for layer in range(L) if rank else reversed(range(L)):
        reduce_scatter(gradient(layer))
        update(layer)
        all_gather(weights(layer))


@program
def by_hand(rank, K, L, M):
    forwards(L, rank)
    backwards(L, rank)
    if rank:
        send(gradient(0), 0)
    else:
        receive(gradient(0), 1, add=True)


ANSWERS = {
    "13.1": {
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
    "13.2": {
        "right": [buckets(3), buckets(4)],
        "wrong": [
            buckets(1), buckets(99), buckets(waits=False), buckets(7, last=False), buckets(before=True),
            (waits_at_once,), (in_thirds,), buckets(2), buckets(6),
        ],
        "secret": r"\b[345] layers",
    },
    "13.3": {
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
    "13.4": {
        "right": [zero_1(), zero_1(at_once=True)],
        "wrong": [
            zero_1(all_reduce), zero_1(gathers=False), zero_1(before=True), zero_1(None), (other_order,),
            (everything_everywhere,),
        ],
        "same": [(1, 2)],
        "secret": None,
    },
    "13.5": {
        "right": [zero_2(), zero_2(updates_at_once=True)],
        "wrong": [zero_1(), zero_2(all_reduce, frees=lambda rank: rank), zero_2(frees=lambda rank: 0),
            (started_and_not_awaited,), (forward_again,)],
        "secret": None,
    },
    "13.6": {
        "right": [zero_3()],
        "wrong": [
            zero_3(prefetch=False),
            zero_3(all_first=True),
            zero_3(keep=False),
            zero_3(frees=False),
            zero_3(again=False),
        ],
        "secret": None,
    },
}  # fmt: skip
