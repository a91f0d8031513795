"""Answers to the self-checks of 33_harder_schedules: right ones, and wrong ones that students give."""

from lessons.write_the_schedule.programs import (
    activation,
    all_gather,
    all_reduce,
    backward,
    error,
    forward,
    free,
    gradient,
    load,
    program,
    receive,
    send,
    update,
    wait,
    weights,
)  # fmt: skip


def ring(waits=False, add=True, second=True, steps=-1, shift=0, right=lambda rank, K: (rank + 1) % K):
    """harder.1: the ring, with one thing changed."""

    @program
    def summed(rank, K, L, M):
        for step in range(K + steps):
            send(gradient(0, (rank - step) % K), right(rank, K), wait=waits)
            receive(gradient(0, (rank - step - 1 - shift) % K), (rank - 1) % K, add=add)
        for step in range(K - 1) if second else ():
            send(gradient(0, (rank + 1 - step) % K), right(rank, K), wait=False)
            receive(gradient(0, (rank - step) % K), (rank - 1) % K)

    return (summed,)


@program
def even_ranks_send_first(rank, K, L, M):
    right, left = (rank + 1) % K, (rank - 1) % K
    for step in range(2 * K - 2):
        first = step < K - 1
        out = gradient(0, (rank - step) % K) if first else gradient(0, (rank + 1 - (step - K + 1)) % K)
        into = gradient(0, (rank - step - 1) % K) if first else gradient(0, (rank - (step - K + 1)) % K)
        handle = receive(into, left, add=first, wait=False)
        send(out, right)
        wait(handle)


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


@program
def collective(rank, K, L, M):
    all_reduce(gradient(0))


@program
def to_itself(rank, K, L, M):
    send(gradient(0), rank, wait=False)
    receive(gradient(0), rank, add=True)


@program
def negative(rank, K, L, M):
    send(gradient(0), -1)


@program
def no_such_part(rank, K, L, M):
    send(gradient(0, K), (rank + 1) % K, wait=False)


@program
def waits_for_a_list(rank, K, L, M):
    wait([send(gradient(0, 0), (rank + 1) % K, wait=False)])


@program
def waits_for_nothing(rank, K, L, M):
    wait(0)


@program
def raw(rank, K, L, M):
    send(("gradient", 0, None, "all"), 0)


@program
def one_ends(rank, K, L, M):
    if rank:
        receive(gradient(0), 0, add=True)


def halves(whole=False, gather=True, same=False):
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
            if same:  # both partners go on with the same half
                kept, given = mine[: len(mine) // 2], mine[len(mine) // 2 :]
            send(gradient(0, *given), partner, wait=False)
            receive(gradient(0, *kept), partner, add=True)
            rounds.append((partner, kept, given))
            mine, distance = kept, distance // 2
        for partner, kept, given in reversed(rounds) if gather and not whole else ():
            send(gradient(0, *kept), partner, wait=False)
            receive(gradient(0, *given), partner)

    return (summed,)


def tensor(splits=("columns", "rows"), out=all_reduce, back=True, again=False):
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
                out(activation(layer, 0))
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


@program
def gathers_weights(rank, K, L, M):
    load(0)
    for layer in range(L):
        all_gather(weights(layer))
        forward(layer, 0)
    for layer in reversed(range(L)):
        backward(layer, 0)
        free(weights(layer), keep=rank)
    for layer in range(L):
        update(layer)


ANSWERS = {
    "harder.1": {
        "right": [ring(), (even_ranks_send_first,)],
        "wrong": [
            (once_round,),
            ring(waits=True),
            ring(add=False),
            ring(second=False),
            ring(steps=0),
            ring(shift=1),
            (collective,),
            (to_itself,),
            (negative,),
            (no_such_part,),
            (waits_for_nothing,),
            (waits_for_a_list,),
            (raw,),
            (one_ends,),
        ],
        "same": [(2, 3)],
        "secret": None,
    },
    "harder.2": {
        "right": [halves()],
        "wrong": [ring(), halves(whole=True), halves(gather=False), halves(same=True)],
        "secret": r"\bxor\b|\^",
    },
    "harder.3": {
        "right": [tensor()],
        "wrong": [
            tensor(("columns", "columns")),
            tensor(("rows", "columns")),
            tensor(out=None),
            tensor(back=False),
            tensor(again=True),
            tensor((None, None), out=None),
            (gathers_weights,),
        ],
        "secret": None,
    },
}
