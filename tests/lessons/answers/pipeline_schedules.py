"""Answers to the self-checks of 34_pipeline_schedules: right ones, and wrong ones that students give."""

from lessons.write_the_schedule.programs import (
    activation,
    backward,
    backward_inputs,
    backward_weights,
    error,
    forward,
    free,
    gradient,
    load,
    program,
    receive,
    send,
    update,
    weights,
)  # fmt: skip


def into(rank, batch):
    if rank == 0:
        load(batch)
    else:
        receive(activation(rank - 1, batch), rank - 1)


def pipeline(ahead=lambda rank, K, M: K - rank, waits=False, halves=None, last=True, after=False):
    """pipeline.1 to 3: forward passes before the first backward pass; by how many micro-batches second halves lag, and
    whether they come after the next forward pass."""

    @program
    def stages(rank, K, L, M):
        def forward_part(batch):
            into(rank, batch)
            forward(rank, batch)
            if rank < K - 1:
                send(activation(rank, batch), rank + 1, wait=waits)

        first = min(ahead(rank, K, M), M)
        for batch in range(first):
            forward_part(batch)
        for batch in range(M):
            if rank < K - 1:
                receive(error(rank, batch), rank + 1)
            (backward_inputs if halves else backward)(rank, batch)
            if rank > 0:
                send(error(rank - 1, batch), rank - 1, wait=waits)
            if batch + first < M and after:
                forward_part(batch + first)
            if halves and batch >= halves(rank, K):
                backward_weights(rank, batch - halves(rank, K))
            if batch + first < M and not after:
                forward_part(batch + first)
        for batch in range(max(0, M - halves(rank, K)), M) if halves and last else ():
            backward_weights(rank, batch)
        update(rank)

    return (stages,)


def everything(rank, K, M):
    return M


@program
def one_at_a_time(rank, K, L, M):
    for batch in range(M):
        into(rank, batch)
        forward(rank, batch)
        if rank < K - 1:
            send(activation(rank, batch), rank + 1)
            receive(error(rank, batch), rank + 1)
        backward(rank, batch)
        if rank > 0:
            send(error(rank - 1, batch), rank - 1)
    update(rank)


@program
def all_layers_everywhere(rank, K, L, M):
    load(0)
    for layer in range(L):
        forward(layer, 0)


@program
def used_after_sending(rank, K, L, M):
    into(rank, 0)
    forward(rank, 0)
    if rank < K - 1:
        send(activation(rank, 0), rank + 1)
        free(activation(rank, 0))


@program
def weights_are_sent_round(rank, K, L, M):
    """pipeline.1: every rank gets all weights, and computes whole micro-batches."""
    for layer in range(L):
        for other in range(K):
            if rank == layer and other != rank:
                send(weights(layer), other)
            elif rank == other and layer != rank:
                receive(weights(layer), layer)
    for batch in range(rank, M, K):
        load(batch)
        for layer in range(L):
            forward(layer, batch)
        for layer in reversed(range(L)):
            backward(layer, batch)
    for layer in range(L):
        for other in range(K):
            if rank == layer and other != rank:
                receive(gradient(layer), other, add=True)
            elif rank == other and layer != rank:
                send(gradient(layer), layer)
    update(rank)


@program
def second_half_first(rank, K, L, M):
    for batch in range(M):
        into(rank, batch)
        forward(rank, batch)
        if rank < K - 1:
            send(activation(rank, batch), rank + 1)
        else:
            backward_weights(rank, batch)


@program
def sent_and_kept(rank, K, L, M):
    into(rank, 0)
    forward(rank, 0)
    if rank < K - 1:
        send(activation(rank, 0), rank + 1)
        send(activation(rank, 0), rank + 1)


ANSWERS = {
    "pipeline.1": {
        "right": [pipeline(everything), pipeline(everything, waits=True), pipeline()],
        "wrong": [
            (one_at_a_time,),
            pipeline(lambda rank, K, M: 1),
            pipeline(waits=True),
            (all_layers_everywhere,),
            (used_after_sending,),
            (sent_and_kept,),
            (weights_are_sent_round,),
        ],
        "same": [(0, 1)],
        "secret": None,
    },
    "pipeline.2": {
        "right": [pipeline()],
        "wrong": [
            pipeline(everything),
            pipeline(waits=True),
            pipeline(lambda rank, K, M: 1),
            pipeline(lambda rank, K, M: K),
            pipeline(lambda rank, K, M: K - rank + 1),
            pipeline(lambda rank, K, M: rank + 1),
        ],
        "secret": None,
    },
    "pipeline.3": {
        "right": [pipeline(halves=lambda rank, K: rank)],
        "wrong": [
            pipeline(),
            pipeline(halves=lambda rank, K: 0),
            pipeline(everything, halves=lambda rank, K: rank),
            pipeline(halves=lambda rank, K: rank, last=False),
            (second_half_first,),
            pipeline(halves=lambda rank, K: 99),
            pipeline(halves=lambda rank, K: rank, after=True),
            pipeline(halves=lambda rank, K: rank + 2),
            pipeline(halves=lambda rank, K: max(0, rank - 1)),
        ],
        "secret": None,
    },
}
