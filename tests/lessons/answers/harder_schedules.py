"""Answers to the self-checks of 33_harder_schedules: right ones, and wrong ones that students give."""

# ruff: noqa: F403, F405
from lessons.write_the_schedule.programs import *


def ring(waits=False, add=True):
    """harder.1: the ring, with one thing changed."""

    @program
    def summed(rank, K, L, M):
        for step in range(K - 1):
            send(gradient(0, (rank - step) % K), (rank + 1) % K, wait=waits)
            receive(gradient(0, (rank - step - 1) % K), (rank - 1) % K, add=add)
        for step in range(K - 1):
            send(gradient(0, (rank + 1 - step) % K), (rank + 1) % K, wait=False)
            receive(gradient(0, (rank - step) % K), (rank - 1) % K)

    return (summed,)


@program
def once_round(rank, K, L, M):
    """The sum travels round, then the result."""
    if rank:
        receive(gradient(0), rank - 1, add=True)
    if rank < K - 1:
        send(gradient(0), rank + 1)
        receive(gradient(0), (rank - 1) % K)
    if rank != K - 2:
        send(gradient(0), (rank + 1) % K)


def halves(whole=False, gather=True):
    """harder.2."""

    @program
    def summed(rank, K, L, M):
        mine, rounds, distance = list(range(K)), [], K // 2
        while distance:
            partner = rank ^ distance
            kept = [part for part in mine if part & distance == rank & distance]
            given = [part for part in mine if part not in kept]
            if whole:
                kept = given = mine
            send(gradient(0, *given), partner, wait=False)
            receive(gradient(0, *kept), partner, add=True)
            rounds.append((partner, kept, given))
            mine, distance = kept, distance // 2
        for partner, kept, given in reversed(rounds) if gather and not whole else ():
            send(gradient(0, *kept), partner, wait=False)
            receive(gradient(0, *given), partner)

    return (summed,)


def tensor(splits=("columns", "rows"), out=True, back=True, again=False):
    """harder.3."""

    @program
    def parallel(rank, K, L, M):
        load(0)
        for layer in range(L):
            split = splits[layer % 2]
            forward(layer, 0, split)
            if split == "columns" and splits[(layer + 1) % 2] == "columns":
                all_gather(activation(layer, 0))
            if split == "rows" and out:
                all_reduce(activation(layer, 0))
                if again:
                    all_reduce(activation(layer, 0))
        for layer in reversed(range(L)):
            split = splits[layer % 2]
            backward(layer, 0, split)
            if split == "columns" and layer and back:
                all_reduce(error(layer - 1, 0))
        for layer in range(L):
            update(layer)

    return (parallel,)


ANSWERS = {
    "harder.1": {"right": [ring()], "wrong": [(once_round,), ring(waits=True), ring(add=False)]},
    "harder.2": {
        "right": [halves()],
        "wrong": [ring(), halves(whole=True), halves(gather=False)],
        "secret": r"\bxor\b|\^",
    },
    "harder.3": {
        "right": [tensor()],
        "wrong": [tensor(("columns", "columns")), tensor(back=False), tensor(again=True), tensor(out=False)],
    },
}
