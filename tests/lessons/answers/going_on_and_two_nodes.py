"""Answers to the self-checks of 20_going_on_and_two_nodes: right ones, and wrong ones that students give."""

RATE, CALLBACKS = "learning_rate = 0.01 * hvd.size()", "hvd.callbacks.MetricAverageCallback(), recorder]"
WRITTEN = "write(partial, state, epochs)\n        partial.replace(path)\n"
ASSIGNED = """    for part in state:
        part.assign(hvd.broadcast(part, root_rank=0))
"""
LEFT, BATCHES = "left = range(done, args.epochs)", "batches = share(dataset, args, first=done)"
MEAN, SAVES = "mean = hvd.allreduce(mine)", "save(path, model, epoch + 1)"
IF_ANY = "    done = int(hvd.broadcast(done))\n" + ASSIGNED.replace("in state", "in state[: 99 * done]")
BOTH, OTHER_WAY = f"{MEAN}\n        {SAVES}", f"{SAVES}\n        (mean,) = hvd.grouped_allreduce([mine])"
PASSED = "batches = share(dataset, args, first=0)\n    [list(batches) for _ in range(done)]"

STYLES = [
    ("nodes.1", RATE, "rate, learning_rate = 0.01, hvd.size() / 100"),
    ("nodes.4", LEFT, "left = list(range(args.epochs))[done:]", BATCHES, PASSED, BOTH, OTHER_WAY),
]
MISTAKES = [
    ("nodes.1", "seed=args.seed)\n### END", "seed=args.seed + hvd.rank())\n### END"),
    ("nodes.1", RATE, "learning_rate = 0.01"),
    ("nodes.1", f"hvd.callbacks.BroadcastGlobalVariablesCallback(0), {CALLBACKS}", CALLBACKS),
    ("nodes.1", CALLBACKS, "recorder, hvd.callbacks.MetricAverageCallback()]"),
    ("nodes.4", "    if hvd.rank() == 0:\n        state", "    if True:\n        state"),
    ("nodes.4", WRITTEN, "write(path, state, epochs)\n"),
    ("nodes.4", "model.variables + model.optimizer", "model.trainable_variables + model.optimizer"),
    ("nodes.4", ASSIGNED, ""),
    ("nodes.4", ASSIGNED, IF_ANY),
    ("nodes.4", ASSIGNED, ASSIGNED.replace("in state", "in model.variables")),
    ("nodes.4", "int(hvd.broadcast(done, root_rank=0))", "done"),
    ("nodes.4", LEFT, "left = range(args.epochs)"),
    ("nodes.4", BATCHES, "batches = share(dataset, args, first=0)"),
    ("nodes.4", SAVES, f"if epoch + 1 < args.epochs:\n            {SAVES}"),
    ("nodes.4", MEAN, "mean = mine"),
    ("nodes.7", "--ntasks-per-node=2", "--ntasks-per-node=1"),
    ("nodes.7", "--cpus-per-task=2", "--cpus-per-task=4"),
]
