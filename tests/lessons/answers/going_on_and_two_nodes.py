"""Answers to the self-checks of 20_going_on_and_two_nodes: right ones, and wrong ones that students give."""

from functools import partial
from textwrap import indent

from making import swapped, tried_out

batch = partial(swapped, "slurm/local/ResNet50_horovod_nodes.sh")
hasty = partial(swapped, "scripts/four_mistakes.py")
goes_on = partial(swapped, "scripts/goes_on.py")
RATE, CALLBACKS = "learning_rate = 0.01 * hvd.size()", "hvd.callbacks.MetricAverageCallback(), recorder]"
COUNTED = "batch=$((64 * SLURM_NTASKS))"
STATE, ON_0 = "model.variables + model.optimizer.variables", "    if hvd.rank() == 0:\n        state"
WRITTEN = "write(partial, state, epochs)\n        partial.replace(path)\n"
ASSIGNED = """    for part in state:
        part.assign(hvd.broadcast(part, root_rank=0))
"""
IF_ANY = f"    done = int(hvd.broadcast(done))\n    if done:\n{indent(ASSIGNED, '    ')}"
LEFT, BATCHES = "left = range(done, args.epochs)", "batches = share(dataset, args, first=done)"
MEAN, SAVES = "mean = hvd.allreduce(mine)", "save(path, model, epoch + 1)"
PASSED = """batches = share(dataset, args, first=0)
    for _ in range(done):
        list(batches)
"""

ANSWERS = {
    "nodes.1": dict(
        right=[hasty(), hasty((RATE, "rate, learning_rate = 0.01, hvd.size() / 100"))],
        wrong=[
            hasty(("seed=args.seed)\n### END", "seed=args.seed + hvd.rank())\n### END")),
            hasty((RATE, "learning_rate = 0.01")),
            hasty((f"hvd.callbacks.BroadcastGlobalVariablesCallback(0), {CALLBACKS}", CALLBACKS)),
            hasty((CALLBACKS, "recorder, hvd.callbacks.MetricAverageCallback()]")),
        ],
        secret=r"hvd\.size\(\)|seed=args",
    ),
    "nodes.4": dict(
        right=[
            goes_on(),
            goes_on(
                (LEFT, "left = list(range(args.epochs))[done:]"),
                (BATCHES, PASSED),
                (f"{MEAN}\n        {SAVES}", f"{SAVES}\n        (mean,) = hvd.grouped_allreduce([mine])"),
            ),
        ],
        wrong=[
            goes_on((ON_0, ON_0.replace("hvd.rank() == 0", "True"))),
            goes_on((WRITTEN, "write(path, state, epochs)\n")),
            goes_on((STATE, "model.trainable_variables + model.optimizer.variables")),
            goes_on((ASSIGNED, "")),
            goes_on((ASSIGNED, IF_ANY)),
            goes_on((ASSIGNED, ASSIGNED.replace("in state", "in model.variables"))),
            goes_on(("int(hvd.broadcast(done, root_rank=0))", "done")),
            goes_on((LEFT, "left = range(args.epochs)")),
            goes_on((BATCHES, "batches = share(dataset, args, first=0)")),
            goes_on((SAVES, f"if epoch + 1 < args.epochs:\n            {SAVES}")),
            goes_on((MEAN, "mean = mine")),
        ],
        secret=r"broadcast\(|allreduce\(|epoch \+ 1|range\(|first=|rank\(\) ==",
    ),
    "nodes.7": dict(
        right=[batch(), batch((COUNTED, "batch=$((SLURM_NNODES * 2 * 64))"))],
        wrong=[
            batch(("--ntasks-per-node=2", "--ntasks-per-node=1")),
            batch(("--cpus-per-task=2", "--cpus-per-task=4")),
            *tried_out(batch, COUNTED, "batch=$((64 * SLURM_NNODES))", "batch=256"),
        ],
    ),
}
