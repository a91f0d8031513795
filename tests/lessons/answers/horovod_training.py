"""Answers to the self-checks of 08_horovod_training: right ones, and wrong ones that students give."""

from functools import partial

from making import swapped, tried_out

script = partial(swapped, "scripts/ResNet50_horovod.py")
own = partial(swapped, "scripts/own_optimizer.py")
batch = partial(swapped, "slurm/local/ResNet50_horovod.sh")
PIN, SHARD, SILENT = "devices.pin(hvd.local_rank(), hvd.local_size())", ".shard(hvd.size(), hvd.rank())", "== 0 else 0"
BROADCASTS, AVERAGES = "hvd.callbacks.BroadcastGlobalVariablesCallback(0)", "hvd.callbacks.MetricAverageCallback()"
SENT, AVERAGED = "hvd.broadcast(variable, root_rank=0)", "hvd.grouped_allreduce(gradients)"
STEP = f"super().apply({AVERAGED}, variables)"
AFTER = "super().apply(gradients, variables); [each.assign(hvd.allreduce(each)) for each in variables]"
COUNTED = "batch=$((64 * ranks))"

SAMPLES = {"horovod.2": [([0.1, 0.2],), ([0.3, -0.08],)]}

STEPS = {  # wrong scripts, and what no hint says
    "horovod.7": (
        [
            script(("hvd.init()\n", "\n")),
            script(("hvd.init()\n", "\n"), ("import keras\n", "import keras\nprint(hvd.rank())\nhvd.init()\n")),
        ],
        r"hvd\.init",
    ),
    "horovod.8": (
        [script((PIN, "devices.pin(0, hvd.local_size())")), script((PIN, "devices.pin(hvd.local_rank())"))],
        r"hvd\.local_rank\(\)",
    ),
    "horovod.9": (
        [script((SHARD, "")), script(("epochs=args.epochs,", "epochs=args.epochs * hvd.size(),"))],
        r"hvd\.(size|rank)\(\)",
    ),
    "horovod.10": (
        [
            script(("0.01 * hvd.size()", "0.1 * hvd.size()")),
            script(("hvd.DistributedOptimizer(", "(")),
            script(("import keras\n", "import keras\nimport horovod.keras as hvd\n")),
        ],
        r"0\.06|hvd\.size\(\)",
    ),
    "horovod.11": (
        [script((f"{BROADCASTS}, ", "")), script((f", {AVERAGES}", "")), script((", recorder]", "]"))],
        r"\(0\)",
    ),
    "horovod.12": (
        [script((f"2 if hvd.rank() {SILENT}", "2")), script((SILENT, "== 0 and hvd.size() > 1 else 0"))],
        r"hvd\.rank",
    ),
}
ANSWERS = {id: dict(right=[script()], wrong=wrong, secret=secret) for id, (wrong, secret) in STEPS.items()}
ANSWERS |= {
    "horovod.3": dict(
        right=[own((STEP, "...  # your code here"))],  # the next item's
        wrong=[
            own(("in model.variables", "in model.trainable_variables")),
            own((SENT, "hvd.allreduce(variable)")),
            own((f"variable.assign({SENT})", SENT)),
            own(("def begin_equal", "def begin")),
        ],
        secret=r"broadcast\(",
    ),
    "horovod.4": dict(
        right=[own((f"variable.assign({SENT})", "..."))],
        wrong=[
            own((AVERAGED, "gradients")),
            own((AVERAGED, "hvd.grouped_allreduce(gradients, op=hvd.Sum)")),
            own((AVERAGED, "[hvd.allreduce(gradients[0]), *gradients[1:]]")),
            own((AVERAGED, f"hvd.grouped_allreduce({AVERAGED})")),
            own((STEP, AFTER)),
            own((STEP, AVERAGED)),
            own(("from_config(optimizer.get_config())", "from_config({})")),
        ],
        secret=r"grouped_allreduce\(|op=",
    ),
    "horovod.16": dict(
        right=[batch(), batch((COUNTED, "batch=$((ranks * 64))"))],
        wrong=[
            batch(("--ntasks-per-node=2", "--ntasks-per-node=1")),
            batch(("--cpus-per-task=2", "--cpus-per-task=4")),
            *tried_out(batch, COUNTED, "batch=64", "batch=128"),
        ],
        secret=r"64 \* ranks",
    ),
}
