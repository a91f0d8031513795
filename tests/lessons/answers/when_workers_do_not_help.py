"""Answers to the self-checks of 22_when_workers_do_not_help that have a judge of their own, and samples for others."""

LOOP, EVERY = "    for number, (images", "if number % k == 0:"
UPDATE = "optimizer.apply(tape.gradient(value, weights), weights)"
TRACED = f"""{UPDATE}
        seen.append(1)  # only while TensorFlow traces the step
        if len(seen) % k == 0:
            [each.assign(horovod.allreduce(each.value)) for each in [*weights, *optimizer.momentums]]"""

SAMPLES = {"workers.7": [(1000,), (394_634,)]}  # numbers of weights
MISTAKES = [
    ("workers.5", "op=horovod.Average", "op=horovod.Sum"),
    ("workers.5", "op=horovod.Average)", "op=horovod.Sum) / 2"),
    ("workers.5", "[*weights, *optimizer.momentums]", "weights"),
    ("workers.5", EVERY, "if number % k == 0 and hvd.rank() == 0:"),
    ("workers.5", "    @tf", "    seen = []\n    @tf", UPDATE, TRACED, EVERY, "if False:"),
    ("workers.5", LOOP, f"    batches = list(batches)\n{LOOP}"),
]
