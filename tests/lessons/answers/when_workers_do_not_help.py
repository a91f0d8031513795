"""Answers to the self-checks of 22_when_workers_do_not_help that have a judge of their own, and samples for others."""

LOOP = "    for number, (images"

SAMPLES = {"workers.7": [(1000,), (394_634,)]}  # numbers of weights
MISTAKES = [
    ("workers.5", "op=horovod.Average", "op=horovod.Sum"),
    ("workers.5", "op=horovod.Average)", "op=horovod.Sum) / 2"),
    ("workers.5", "[*weights, *optimizer.momentums]", "weights"),
    ("workers.5", LOOP, f"    batches = list(batches)\n{LOOP}"),
]
