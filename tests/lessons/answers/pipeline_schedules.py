"""Answers to the self-checks of 34_pipeline_schedules: right ones, and wrong ones that students give."""

# ruff: noqa: F403, F405
from lessons.write_the_schedule.programs import *


def into(rank, batch):
    if rank == 0:
        load(batch)
    else:
        receive(activation(rank - 1, batch), rank - 1)


def pipeline(ahead=lambda rank, K, M: K - rank, waits=False, halves=None):
    """pipeline.1 to 3: forward passes before the first backward pass; by how many micro-batches second halves lag."""

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
            if halves and batch >= halves(rank, K):
                backward_weights(rank, batch - halves(rank, K))
            if batch + first < M:
                forward_part(batch + first)
        for batch in range(max(0, M - halves(rank, K)), M) if halves else ():
            backward_weights(rank, batch)
        update(rank)

    return (stages,)


def everything(rank, K, M):
    return M


ANSWERS = {
    "pipeline.1": {
        "right": [pipeline(everything), pipeline(everything, waits=True), pipeline()],
        "wrong": [pipeline(lambda rank, K, M: 1), pipeline(waits=True)],
    },
    "pipeline.2": {"right": [pipeline()], "wrong": [pipeline(everything), pipeline(lambda rank, K, M: K - rank + 1)]},
    "pipeline.3": {
        "right": [pipeline(halves=lambda rank, K: rank)],
        "wrong": [
            pipeline(),
            pipeline(everything, halves=lambda rank, K: rank),
            pipeline(halves=lambda rank, K: max(0, rank - 1)),
        ],
    },
}
