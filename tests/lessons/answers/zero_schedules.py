"""Answers to the self-checks of 32_zero_schedules: right ones, and wrong ones that students give."""

from answers.write_the_schedule import backwards, forwards

from lessons.write_the_schedule.programs import (
    activation,
    all_gather,
    all_reduce,
    backward,
    forward,
    free,
    gradient,
    load,
    program,
    reduce_scatter,
    update,
    wait,
    weights,
)  # fmt: skip


@program
def everything_everywhere(rank, K, L, M):
    """zero.1 and others: each rank computes all micro-batches, so no gradient need be exchanged."""
    for batch in range(M):
        forwards(L, batch)
        backwards(L, batch)
    for layer in range(L):
        update(layer)
        if K > 1:
            all_gather(weights(layer))


def zero_1(exchange=reduce_scatter, gathers=True, before=False, at_once=False):
    """zero.1."""

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
    """zero.2."""

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
    """zero.2: activations are freed and computed again, and layers updated early, to hold less than the bound says."""
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
    """zero.2: each reduce-scatter is waited for after the next backward pass, so there are two whole gradients."""
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
    """zero.2: all reduce-scatters are started, and waited for at the end of the backward pass."""
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
    """zero.3."""

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


ANSWERS = {
    "zero.1": {
        "right": [zero_1(), zero_1(at_once=True)],
        "wrong": [
            zero_1(all_reduce), zero_1(gathers=False), zero_1(before=True), zero_1(None), (other_order,),
            (everything_everywhere,),
        ],
        "same": [(1, 2)],
        "secret": None,
    },
    "zero.2": {
        "right": [zero_2(), zero_2(updates_at_once=True)],
        "wrong": [zero_1(), zero_2(all_reduce, frees=lambda rank: rank), zero_2(frees=lambda rank: 0),
            (started_and_not_awaited,), (forward_again,)],
        "secret": None,
    },
    "zero.3": {
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
