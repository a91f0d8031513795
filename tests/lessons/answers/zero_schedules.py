"""Answers to the self-checks of 32_zero_schedules: right ones, and wrong ones that students give."""

# ruff: noqa: F403, F405
from answers.write_the_schedule import backwards, forwards

from lessons.write_the_schedule.programs import *


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


def zero_2(late=0):
    """zero.2; late: how many exchanges are started and not yet waited for."""

    @program
    def sharded(rank, K, L, M):
        forwards(L, rank)
        started = []
        for layer in reversed(range(L)):
            backward(layer, rank)
            started.append(reduce_scatter(gradient(layer), wait=False))
            while len(started) > late * (layer > 0):
                wait(started.pop(0))
        for layer in range(L):
            update(layer)
            all_gather(weights(layer))

    return (sharded,)


def zero_3(prefetch=True, frees=True):
    """zero.3."""

    @program
    def sharded(rank, K, L, M):
        def gather(layer):
            return all_gather(weights(layer), wait=not prefetch) if 0 <= layer < L else None

        def compute(what, layer, after, arriving):
            if prefetch and arriving is not None:
                wait(arriving)
            arriving = gather(after if prefetch else layer)
            what(layer, rank)
            if frees and not (prefetch and what is forward and layer == L - 1):
                free(weights(layer), keep=rank)
            return arriving

        arriving = gather(0) if prefetch else None
        load(rank)
        for layer in range(L):
            arriving = compute(forward, layer, layer + 1, arriving)
        started = None
        for layer in reversed(range(L)):
            arriving = compute(backward, layer, layer - 1, arriving)
            if started is not None:
                wait(started)
                update(layer + 1)
            started = reduce_scatter(gradient(layer), wait=False)
        wait(started)
        update(0)

    return (sharded,)


ANSWERS = {
    "zero.1": {
        "right": [zero_1(), zero_1(at_once=True)],
        "wrong": [zero_1(all_reduce), zero_1(before=True), zero_1(None)],
    },
    "zero.2": {"right": [zero_2()], "wrong": [zero_1(), zero_2(late=1)]},
    "zero.3": {"right": [zero_3()], "wrong": [zero_3(prefetch=False), zero_3(frees=False)]},
}
