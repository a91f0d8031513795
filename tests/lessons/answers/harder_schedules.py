"""Answers to the self-checks of 33_harder_schedules: the first wrong answer of a puzzle is right, but plain."""

from making import edited

from lessons.write_the_schedule.programs import gradient, program, receive, send

BACK, SUMMED = "reversed(rounds)", "        all_reduce(activation(layer + 1, 0))\n"


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


WRONG = [("harder.1", (once_round,)), ("harder.2", edited("harder.1"))]
MISTAKES = [
    ("harder.1", "right, wait=False)", "right)"),
    ("harder.1", ", add=True", ""),
    ("harder.2", "given = [part for part in mine if part not in kept]", "kept = given = mine", BACK, "()"),
    ("harder.2", BACK, "()"),
    ("harder.3", '"rows"', '"columns"', "all_reduce(activation", "all_gather(activation")
    + ("        forward(layer + 1", "        all_gather(activation(layer, 0))\n        forward(layer + 1")
    + ("        backward(layer, 0", "        all_reduce(error(layer, 0))\n        backward(layer, 0"),
    ("harder.3", "all_reduce(error(layer - 1, 0))", "pass"),
    ("harder.3", SUMMED, 2 * SUMMED),
    ("harder.3", SUMMED, ""),
]
