"""Answers to the self-checks of 08_horovod_training: right ones, and wrong ones that students give."""

from functools import partial

from making import swapped

from labs.results.record import Configuration
from labs.results.run import Run

script = partial(swapped, "scripts/ResNet50_horovod.py")
SGD = "hvd.DistributedOptimizer(keras.optimizers.SGD(learning_rate))"
CALLBACKS = "hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()"
TENSORS, BYTES = 174, 4 * 23_539_850  # trainable variables of ResNet50V2 with 10 classes, and bytes of its gradient


def record(workers=1, batch=64):
    """A run on 512 images with 64 on each rank."""
    configuration = Configuration(strategy="horovod", workers=workers, global_batch=batch * workers, local_batch=batch)
    return Run(state="finished", configuration=configuration, epochs=[], dataset_images=512, steps=512 // batch)


RUNS = record(), record(workers=2)
CHANGES = {1: 0.005, 4: 0.02}  # of W in the notebook, by replicas


def instead(old):
    """instead(old)(new): the script with `old` replaced by `new`."""
    return lambda new: script((old, new))


pin = instead("devices.pin(hvd.local_rank(), hvd.local_size())")
shard = instead("numbers.shard(hvd.size(), hvd.rank())")
rate = instead("learning_rate = 0.01 * hvd.size()")
optimizer = instead(SGD)
callbacks = instead(f"[{CALLBACKS}]")
own = partial(swapped, "scripts/own_optimizer.py")
BEGIN = """    for variable in model.variables:
        variable.assign(hvd.broadcast(variable, root_rank=0))
"""
OWN = """    class Distributed(type(optimizer)):
        def apply(self, gradients, variables=None):
            super().apply(hvd.grouped_allreduce(gradients), variables)

    return Distributed.from_config(optimizer.get_config())
"""
WRAPPED = """    class Wrapper:
        def apply(self, gradients, variables):
            optimizer.apply([hvd.allreduce(each) for each in gradients], variables)

    return Wrapper()
"""
PATCHED = """    plain = optimizer.apply

    def apply(gradients, variables=None):
        sums = hvd.grouped_allreduce(gradients, op=hvd.Sum)
        return plain([each / hvd.size() for each in sums], variables)

    optimizer.apply = apply
    return optimizer
"""
AFTER = """    class Wrapper:
        def apply(self, gradients, variables):
            optimizer.apply(gradients, variables)
            for variable in variables:
                variable.assign(hvd.allreduce(variable))

    return Wrapper()
"""
MOMENTUM = """    class Distributed(type(optimizer)):
        def apply(self, gradients, variables=None):
            super().apply(gradients, variables)
            for state in self.variables[2:]:
                state.assign(hvd.allreduce(state))

    return Distributed.from_config(optimizer.get_config())
"""


BLANK = "    ...  # your code here\n"


def begun(line):
    return own((BEGIN, line))


def averaging(expression):
    return own(("hvd.grouped_allreduce(gradients)", expression))


verbose = instead("2 if hvd.rank() == 0 else 0")

ANSWERS = {
    "horovod.2": dict(right=[(8,), (2 * 4,)], wrong=[(2,), (4,), (6,), (16,)], secret=r"\b8\b|\beight\b"),
    "horovod.3": dict(right=[(1, 2)], wrong=[(1, 6), (0, 2), (2, 1), (1, 3), (0, 0)], secret=None),
    "horovod.4": dict(
        right=[script()],
        wrong=[
            script(("hvd.init()\n", "\n")),
            script(("hvd.init()\n", "\n"), ("import keras\n", "import keras\nprint(hvd.rank())\nhvd.init()\n")),
        ],
        secret=r"hvd\.init",
    ),
    "horovod.5": dict(
        right=[script(), pin("devices.pin(local_rank=hvd.local_rank(), local_size=hvd.local_size())")],
        wrong=[
            pin("hvd.local_rank()"),
            pin("devices.pin(hvd.rank(), hvd.local_size())"),
            pin("devices.pin()"),
            pin("devices.pin(hvd.local_size(), hvd.local_rank())"),
            pin("devices.pin(0, hvd.local_size())"),
            pin("devices.pin(hvd.local_rank())"),
            pin("devices.pin(hvd.local_rank(), hvd.size())"),
            pin("devices.pin(args.rank, 2)"),
        ],
        secret=r"hvd\.local_rank\(\)",
    ),
    "horovod.6": dict(
        right=[script(), shard("numbers.shard(num_shards=hvd.size(), index=hvd.rank())")],
        wrong=[
            shard("numbers"),
            shard("numbers.shard(hvd.rank(), hvd.size())"),
            shard("hvd.rank()"),
            shard("numbers.shard(hvd.local_size(), hvd.local_rank())"),
            shard("numbers.shard(2, hvd.rank())"),
            shard("numbers.shard(hvd.size(), hvd.local_rank())"),
            shard("numbers.shard(hvd.size(), 0)"),
            shard("numbers.batch(64).shard(hvd.size(), hvd.rank())"),
            shard("numbers.shard(size(), rank())"),
            shard("numbers[hvd.rank() :: hvd.size()]"),
            script(("epochs=args.epochs,", "epochs=args.epochs * hvd.size(),")),
        ],
        secret=r"hvd\.(size|rank)\(\)",
    ),
    "horovod.7": dict(
        right=[
            script(),
            rate("learning_rate = hvd.size() / 100"),
            rate("learning_rate = 0.01\nlearning_rate *= hvd.size()"),
            optimizer("keras.optimizers.SGD(learning_rate)\noptimizer = hvd.DistributedOptimizer(optimizer)"),
            optimizer("hvd.DistributedOptimizer(keras.optimizers.SGD(learning_rate=learning_rate))"),
            optimizer("hvd.DistributedOptimizer(optimizer=keras.optimizers.SGD(learning_rate))"),
        ],
        wrong=[
            rate("learning_rate = 0.01"),
            rate("learning_rate = 0.1 * hvd.size()"),
            rate("learning_rate = 0.01 * hvd.local_size()"),
            rate("learning_rate = 0.01 / hvd.size()"),
            rate("learning_rate = 0.01 * hvd.size() ** 0.5"),
            rate("learning_rate = 'auto'"),
            optimizer("keras.optimizers.SGD(learning_rate)"),
            optimizer("hvd.DistributedOptimizer()"),
            optimizer("hvd.DistributedOptimizer(keras.optimizers.Adam(learning_rate))"),
            optimizer("hvd.DistributedOptimizer(keras.optimizers.SGD(0.01))"),
            optimizer("'sgd'"),
            script(("import keras\n", "import keras\nimport horovod.keras as hvd\n")),
            script(("import keras\n", "import keras\nimport horovod.tensorflow.keras as hvd\n")),
            script(
                ("import keras\n", "import keras\nfrom horovod.keras import DistributedOptimizer\n"),
                ("hvd.DistributedOptimizer", "DistributedOptimizer"),
            ),
            optimizer("hvd.DistributedOptimizer(keras.optimizers.SGD(learning_rate, momentum=0.9))"),
            optimizer("hvd.DistributedOptimizer(keras.optimizers.SGD(learning_rate), backward_passes_per_step=4)"),
        ],
        secret=r"0\.06|hvd\.size\(\)",
        same=[(9, 10), (11, 12), (11, 13), (12, 13)],  # no rate is given; three ways to Horovod's own classes
    ),
    "horovod.8": dict(
        right=[
            script(),
            callbacks(
                "[hvd.callbacks.MetricAverageCallback(), hvd.callbacks.BroadcastGlobalVariablesCallback(root_rank=0)]"
            ),
            callbacks(
                "[hvd.callbacks.BroadcastGlobalVariablesCallback(0)]\n"
                "callbacks.append(hvd.callbacks.MetricAverageCallback())"
            ),
        ],
        wrong=[
            callbacks("[hvd.callbacks.MetricAverageCallback()]"),
            callbacks(CALLBACKS.split(", ")[0]),
            callbacks("[hvd.callbacks.BroadcastGlobalVariablesCallback(0)]"),
            callbacks(f"[{CALLBACKS.replace('(0)', '(hvd.rank())')}]"),
            callbacks(f"[{CALLBACKS.replace('(0)', '(1)')}]"),
            callbacks("[hvd.BroadcastGlobalVariablesCallback(0), hvd.MetricAverageCallback()]"),
            callbacks("[hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.MetricAverageCallback()]"),
        ],
        secret=r"\(0\)",
    ),
    "horovod.9": dict(
        right=[
            script(),
            verbose("2 * (hvd.rank() == 0)"),
            verbose("0 if hvd.rank() else 2"),
            verbose("0\nif hvd.rank() == 0:\n    verbose = 2\nelse:\n    verbose = 0"),
        ],
        wrong=[
            verbose("2"),
            verbose("0 if hvd.rank() == 0 else 2"),
            verbose("1 if hvd.rank() == 0 else 0"),
            verbose("0"),
            verbose("2 if hvd.rank() == 0 else 1"),
            verbose("2 if hvd.local_rank() == 0 else 0"),
        ],
        secret=r"hvd\.rank",
    ),
    "horovod.11": dict(
        right=[(32, 8, "c", *RUNS), ("32", 8.0, "(c)", *RUNS), (16, 16, "C", record(batch=32), record(2, 32))],
        wrong=[
            (64, 8, "c", *RUNS),
            (128, 8, "c", *RUNS),
            (8, 8, "c", *RUNS),
            (32, 4, "c", *RUNS),
            (32, 16, "c", *RUNS),
            (32, 64, "c", *RUNS),
            (32, 8, "a", *RUNS),
            (32, 8, "b", *RUNS),
            (32, 8, "d", *RUNS),
            (32, 8, "same", *RUNS),
            (32, 8, "c", record(), record(workers=4)),
            (32, 8, "c", "runs/w1.json", "runs/w2.json"),
        ],
        secret=r"\b32\b|\b8\b",
    ),
    "horovod.14": dict(right=[(4,)], wrong=[(1,), (2,), (0,), (8,)], secret=r"\b4\b|\bfour\b"),
    "horovod.18": dict(
        right=[
            own(),
            own((OWN, BLANK)),  # the next item's
            begun("    model.set_weights([hvd.broadcast(each) for each in model.get_weights()])\n"),
            begun(
                "    for each in model.layers:\n        each.set_weights([*map(hvd.broadcast, each.get_weights())])\n"
            ),
        ],
        wrong=[
            begun(BEGIN.replace("variables", "trainable_variables")),
            begun(BEGIN.replace("root_rank=0", "root_rank=hvd.size() - 1")),
            begun(BEGIN.replace("hvd.broadcast(variable, root_rank=0)", "hvd.allreduce(variable)")),
            begun(BEGIN.replace("variable.assign(hvd.broadcast(variable, root_rank=0))", "hvd.broadcast(variable)")),
            begun(
                "    if hvd.rank() == 0:\n" + BEGIN.replace("    ", "        ", 1).replace("        v", "            v")
            ),
            begun(BEGIN.replace("root_rank=0)", "root_rank=0) + hvd.rank()")),
            own(("def begin_equal", "def begin")),
        ],
        secret=r"broadcast\(",
    ),
    "horovod.19": dict(
        right=[own(), own((BEGIN, BLANK)), own((OWN, WRAPPED)), own((OWN, PATCHED))],
        wrong=[
            averaging("gradients"),
            averaging("hvd.grouped_allreduce(gradients, op=hvd.Sum)"),
            averaging("[each / hvd.size() for each in hvd.grouped_allreduce(gradients)]"),
            averaging("[hvd.broadcast(each) for each in gradients]"),
            own(
                (
                    "            super().apply(hvd",
                    "            hvd.grouped_allreduce(gradients)\n            super().apply(hvd",
                )
            ),
            own(("from_config(optimizer.get_config())", "from_config({})")),
            own((OWN, AFTER)),
            own(
                (
                    "            super().apply(hvd.grouped_allreduce(gradients), variables)",
                    "            hvd.grouped_allreduce(gradients)",
                )
            ),
            averaging("gradients if hvd.rank() else hvd.grouped_allreduce(gradients)"),
            own((OWN, MOMENTUM)),
            averaging("[hvd.allreduce(gradients[0]), *gradients[1:]]"),
            own(("def distributed", "def other")),
        ],
        secret=r"grouped_allreduce\(|op=",
    ),
    "horovod.23": dict(
        right=[
            (lambda r, k: (r * k, r * k**0.5, r * k ** (2 / 3)),),
            (lambda r, k: [r * k, r * k**0.5, r * k**0.6666667],),
            (lambda r, k: [f"{r * k**power}" for power in (1, 1 / 2, 2 / 3)],),
        ],
        wrong=[
            (lambda r, k: r * k,),
            (lambda r, k: (r * k**0.5, r * k, r * k ** (2 / 3)),),
            (lambda r, k: (0.1, 0.1, 0.1),),
            (lambda r, k: (r * k, r * k / 2, r * k ** (2 / 3)) if k > 1 else (r, r, r),),
            (lambda r, k: (r * k, r * k**0.5, r * k**2 / 3) if k > 1 else (r, r, r),),
            (lambda r, k: (r * k, r * k**0.5, r * k**2 / 3),),
            (lambda r, k: (r * k, r * k**1 / 2, r * k**2 / 3),),
        ],
        secret=r"\*\* ?0\.5|sqrt",
    ),
    "horovod.16": dict(
        right=[(TENSORS, BYTES), (TENSORS, float(BYTES)), (TENSORS, 94e6), ("174", "94.2e6")],
        wrong=[
            (TENSORS, 94.2),
            (272, BYTES),
            (192, BYTES),
            (53, BYTES),
            (TENSORS, BYTES // 4),
            (TENSORS, 2 * BYTES),
            (TENSORS, 1000),
        ],
        secret=r"\b174\b|94[.,\s]?1\d\d",
    ),
    "horovod.17": dict(right=[(0,)], wrong=[(1,), (2,)], secret=r"rank 0|\b0\b"),
    "horovod.22": dict(
        right=[(0.00125, CHANGES), (0.005 / 4, CHANGES), ("1.25e-3", CHANGES)],
        wrong=[(0.005, CHANGES), (0.02, CHANGES), (0.005 / 2, CHANGES), (0.005 / 16, CHANGES), (0.0, CHANGES)],
        secret=r"0?\.00125|1\.25e-0?3|/ ?4\b",
    ),
}
