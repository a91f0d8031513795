"""Answers to the self-checks of 22_when_workers_do_not_help that have a judge of their own, and samples for others."""

from making import swapped

LOOP = "    for number, (images"


def script(*pairs):
    return swapped("scripts/local_sgd.py", *pairs)


SAMPLES = {"workers.7": [(1000,), (394_634,)]}  # numbers of weights

ANSWERS = {
    "workers.5": dict(
        right=[script()],
        wrong=[
            script(("op=horovod.Average", "op=horovod.Sum")),
            script(("op=horovod.Average)", "op=horovod.Sum) / 2")),
            script(("[*weights, *optimizer.momentums]", "weights")),
            script((LOOP, f"    batches = list(batches)\n{LOOP}")),
        ],
        secret=r"momentums|Average|number % k",
    )
}
