"""Answers to the self-checks of 20_going_on_and_two_nodes: right ones, and wrong ones that students give."""

from functools import partial
from textwrap import indent

from answers.memory_and_exchange import solution
from making import swapped, tried_out

batch = partial(swapped, "slurm/local/ResNet50_horovod_nodes.sh")
hasty = partial(swapped, "scripts/four_mistakes.py")
HASTY_ORDER = "numbers = data.order(dataset, args.batch_size, seed=args.seed + hvd.rank())"
RIGHT_RATE = "learning_rate = 0.01 * hvd.size()"
BROADCASTS, AVERAGES = "hvd.callbacks.BroadcastGlobalVariablesCallback(0)", "hvd.callbacks.MetricAverageCallback()"
RIGHT_CALLBACKS = f"callbacks = [{BROADCASTS}, {AVERAGES}, recorder]"
COUNTED = "batch=$((64 * SLURM_NTASKS))"
goes_on = partial(swapped, "scripts/goes_on.py")
SAVE, RESUME = (solution("scripts/goes_on.py", number) for number in (0, 1))
STATE = "model.variables + model.optimizer.variables"
GIVE_ALL = """    for part in state:
        part.assign(hvd.broadcast(part, root_rank=0))
"""
DEEPER = indent(GIVE_ALL, "    ")
LEFT, BATCHES = "left = range(done, args.epochs)", "batches = share(dataset, args, first=done)"
MEAN, SAVES = "mean = hvd.allreduce(mine)", "save(path, model, epoch + 1)"
PASSED = """batches = share(dataset, args, first=0)
    for _ in range(done):
        list(batches)
"""


def resuming(old, new):
    assert old in RESUME
    return goes_on((RESUME, RESUME.replace(old, new)))


def saving(old, new):
    assert old in SAVE
    return goes_on((SAVE, SAVE.replace(old, new)))


def calling(*callbacks):
    return hasty((RIGHT_CALLBACKS, f"callbacks = [{', '.join(callbacks)}]"))


TENSORS, BYTES = 174, 4 * 23_539_850  # trainable variables of ResNet50V2 with 10 classes, and bytes of its gradient

ANSWERS = {
    "nodes.1": dict(
        right=[hasty(), hasty((RIGHT_RATE, "rate, learning_rate = 0.01, hvd.size() / 100"))],
        wrong=[
            hasty(("numbers = data.order(dataset, args.batch_size, seed=args.seed)", HASTY_ORDER)),
            hasty(("numbers.shard(hvd.size(), hvd.rank())", "numbers")),
            hasty((RIGHT_RATE, "learning_rate = 0.01")),
            calling("recorder", AVERAGES),
            calling(BROADCASTS, "recorder"),
            calling(BROADCASTS, AVERAGES),
        ],
        secret=r"hvd\.size\(\)|seed=args",
    ),
    "nodes.2": dict(right=[(1,)], wrong=[(0,), (2,)], secret=r"rank 1|\b1\b"),
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
            saving("    if hvd.rank() == 0:\n", "    if True:\n"),
            saving("write(partial, state, epochs)\n        partial.replace(path)\n", "write(path, state, epochs)\n"),
            goes_on((STATE, "model.trainable_variables + model.optimizer.variables")),
            resuming(GIVE_ALL, ""),
            resuming(GIVE_ALL, f"    done = int(hvd.broadcast(done))\n    if done:\n{DEEPER}"),
            resuming("in state:", "in model.variables:"),
            resuming("int(hvd.broadcast(done, root_rank=0))", "done"),
            goes_on((LEFT, "left = range(args.epochs)")),
            goes_on((BATCHES, "batches = share(dataset, args, first=0)")),
            goes_on((SAVES, f"if epoch + 1 < args.epochs:\n            {SAVES}")),
            goes_on((SAVES, "save(path, model, epoch)")),
            goes_on((MEAN, "mean = mine")),
        ],
        secret=r"broadcast\(|allreduce\(|epoch \+ 1|range\(|first=|rank\(\) ==",
    ),
    "nodes.6": dict(right=[(40,)], wrong=[(160,), (4,)], secret=r"\b40\b"),
    "nodes.7": dict(
        right=[batch(), batch((COUNTED, "batch=$((SLURM_NNODES * 2 * 64))"))],
        wrong=[
            batch(("--ntasks-per-node=2", "--ntasks-per-node=1")),
            *tried_out(batch, COUNTED, "batch=$((64 * SLURM_NNODES))", "batch=256"),
        ],
    ),
    "nodes.9": dict(right=[(4,)], wrong=[(1,), (2,)], secret=r"\b4\b|\bfour\b"),
    "nodes.10": dict(
        right=[(TENSORS, BYTES), ("174", "94e6")],
        wrong=[(272, BYTES), (TENSORS, BYTES // 4)],
        secret=r"\b174\b|94[.,\s]?1\d\d",
    ),
    "nodes.11": dict(right=[(0,)], wrong=[(1,), (2,)], secret=r"rank 0|\b0\b"),
}
