"""Answers to the self-checks of 08_horovod_training: right ones, and wrong ones that students give."""

from functools import partial

import numpy as np
from making import swapped, tried_out

script = partial(swapped, "scripts/ResNet50_horovod.py")
SGD = "hvd.DistributedOptimizer(keras.optimizers.SGD(learning_rate))"
CALLBACKS = "hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()"


BEFORE = [0.1, 0.2]  # gradients of two ranks


def instead(old):
    """instead(old)(new): the script with `old` replaced by `new`."""
    return lambda new: script((old, new))


pin = instead("devices.pin(hvd.local_rank(), hvd.local_size())")
shard = instead("numbers.shard(hvd.size(), hvd.rank())")
rate = instead("learning_rate = 0.01 * hvd.size()")
optimizer = instead(SGD)
callbacks = instead(f"[{CALLBACKS}]")
verbose = instead("2 if hvd.rank() == 0 else 0")
own = partial(swapped, "scripts/own_optimizer.py")
batch = partial(swapped, "slurm/local/ResNet50_horovod.sh")
COUNTED = "batch=$((64 * ranks))"
BEGIN = """    for variable in model.variables:
        variable.assign(hvd.broadcast(variable, root_rank=0))
"""
OWN = """    class Distributed(type(optimizer)):
        def apply(self, gradients, variables=None):
            super().apply(hvd.grouped_allreduce(gradients), variables)

    return Distributed.from_config(optimizer.get_config())
"""
AFTER = """    class Wrapper:
        def apply(self, gradients, variables):
            optimizer.apply(gradients, variables)
            for variable in variables:
                variable.assign(hvd.allreduce(variable))

    return Wrapper()
"""
BLANK = "    ...  # your code here\n"


def begun(line):
    return own((BEGIN, line))


def averaging(expression):
    return own(("hvd.grouped_allreduce(gradients)", expression))


ANSWERS = {
    "horovod.2": dict(
        right=[(0.15, 0.15, BEFORE), ("0.15", np.float32(0.15), BEFORE)],
        wrong=[(0.3, 0.15, BEFORE), (0.15, 0.3, BEFORE), (0.1, 0.15, BEFORE), (-0.15, 0.15, BEFORE)],
        secret=r"0\.15\b|/ 2",
    ),
    "horovod.3": dict(
        right=[
            own((OWN, BLANK)),  # the next item's
            begun("    model.set_weights([hvd.broadcast(each) for each in model.get_weights()])\n"),
        ],
        wrong=[
            begun(BEGIN.replace("variables", "trainable_variables")),
            begun(BEGIN.replace("hvd.broadcast(variable, root_rank=0)", "hvd.allreduce(variable)")),
            begun(BEGIN.replace("root_rank=0)", "root_rank=0) + 1")),
            own(("def begin_equal", "def begin")),
        ],
        secret=r"broadcast\(",
    ),
    "horovod.4": dict(
        right=[own((BEGIN, BLANK))],
        wrong=[
            averaging("gradients"),
            averaging("hvd.grouped_allreduce(gradients, op=hvd.Sum)"),
            averaging("gradients if hvd.rank() else hvd.grouped_allreduce(gradients)"),
            averaging("[hvd.allreduce(gradients[0]), *gradients[1:]]"),
            own(("super().apply(hvd.grouped_allreduce(gradients), variables)", "hvd.grouped_allreduce(gradients)")),
            own(("from_config(optimizer.get_config())", "from_config({})")),
            own((OWN, AFTER)),
            own(("def distributed", "def other")),
        ],
        secret=r"grouped_allreduce\(|op=",
    ),
    "horovod.6": dict(right=[(1, 2)], wrong=[(1, 6), (0, 2), (1, 3)]),
    "horovod.7": dict(
        right=[script()],
        wrong=[
            script(("hvd.init()\n", "\n")),
            script(("hvd.init()\n", "\n"), ("import keras\n", "import keras\nprint(hvd.rank())\nhvd.init()\n")),
        ],
        secret=r"hvd\.init",
    ),
    "horovod.8": dict(
        right=[script()],
        wrong=[pin("devices.pin(0, hvd.local_size())"), pin("devices.pin(hvd.local_rank())")],
        secret=r"hvd\.local_rank\(\)",
    ),
    "horovod.9": dict(
        right=[script()],
        wrong=[shard("numbers"), script(("epochs=args.epochs,", "epochs=args.epochs * hvd.size(),"))],
        secret=r"hvd\.(size|rank)\(\)",
    ),
    "horovod.10": dict(
        right=[script()],
        wrong=[
            rate("learning_rate = 0.1 * hvd.size()"),
            rate("learning_rate = 0.01 * (1 + hvd.rank() % 2)"),
            optimizer("keras.optimizers.SGD(learning_rate)"),
            script(("import keras\n", "import keras\nimport horovod.keras as hvd\n")),
        ],
        secret=r"0\.06|hvd\.size\(\)",
    ),
    "horovod.11": dict(
        right=[script()],
        wrong=[
            callbacks("[hvd.callbacks.MetricAverageCallback()]"),
            callbacks("[hvd.callbacks.BroadcastGlobalVariablesCallback(0)]"),
            callbacks(f"[{CALLBACKS.replace('(0)', '(hvd.rank())')}]"),
            script((", recorder]", "]")),
        ],
        secret=r"\(0\)",
    ),
    "horovod.12": dict(
        right=[script()],
        wrong=[verbose("2"), verbose("2 if hvd.rank() == 0 and hvd.size() > 1 else 0")],
        secret=r"hvd\.rank",
    ),
    "horovod.14": dict(
        right=[(32, 8, "c"), ("32", 8.0, "(C)")],
        wrong=[(64, 8, "c"), (128, 8, "c"), (32, 4, "c"), (32, 16, "c"), (32, 8, "a"), (32, 8, "b"), (32, 8, "same")],
        secret=r"\b32\b|\b8\b",
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
