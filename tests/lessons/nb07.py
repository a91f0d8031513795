"""Answers to the self-checks of 07_horovod_training: right ones, and wrong ones that students give."""

from functools import partial
from textwrap import indent

from making import swapped, tried_out

from labs.results.record import Configuration, Record

script = partial(swapped, "scripts/ResNet50_horovod.py")
batch = partial(swapped, "slurm/local/ResNet50_horovod_nodes.sh")
SGD = "hvd.DistributedOptimizer(keras.optimizers.SGD(learning_rate))"
CALLBACKS = "hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()"
TENSORS, BYTES = 174, 4 * 23_539_850  # trainable variables of ResNet50V2 with 10 classes, and bytes of its gradient


def record(workers=1, batch=64):
    """A run on 512 images with 64 on each rank."""
    configuration = Configuration(strategy="horovod", workers=workers, global_batch=batch * workers, local_batch=batch)
    return Record(state="finished", configuration=configuration, epochs=[], dataset_images=512, steps=512 // batch)


RUNS = record(), record(workers=2)


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


hasty = partial(swapped, "scripts/four_mistakes.py")
HASTY_ORDER = "numbers = data.order(dataset, args.batch_size, seed=args.seed + hvd.rank())"
RIGHT_RATE = "learning_rate = 0.01 * hvd.size()"
RIGHT_CALLBACKS = f"callbacks = [{CALLBACKS}, recorder]"
EACH_CALLBACK = """callbacks = [hvd.callbacks.MetricAverageCallback()]
callbacks.insert(0, hvd.callbacks.BroadcastGlobalVariablesCallback(0))
callbacks.append(recorder)"""


goes_on = partial(swapped, "scripts/goes_on.py")
SAVE = """    if hvd.rank() == 0:
        state = [each.numpy() for each in model.variables + model.optimizer.variables]
        partial = path.with_name(f"{path.name}.partial")
        write(partial, state, epochs)
        partial.replace(path)
"""
STATE = "model.variables + model.optimizer.variables"
GIVE_ALL = """    for part in state:
        part.assign(hvd.broadcast(part, root_rank=0))
"""
DEEPER = indent(GIVE_ALL, "    ")
RESUME = f"""    state, done = {STATE}, 0
    if hvd.rank() == 0 and path.exists():
        kept, done = read(path)
        for part, value in zip(state, kept):
            part.assign(value)
{GIVE_ALL}    return int(hvd.broadcast(done, root_rank=0))
"""
LEFT, BATCHES = "left = range(done, args.epochs)", "batches = share(dataset, args, first=done)"
MEAN, SAVES = "mean = hvd.allreduce(mine)", "save(path, model, epoch + 1)"
BY_THE_KIT = """    buffer = io.BytesIO()
    np.savez(buffer, *model.get_weights(), *model.optimizer.momentums, epochs=epochs)
    if not hvd.rank():
        files.write(path, buffer.getvalue())
"""
FROM_LISTS = """    values, done = [*model.get_weights(), *[each.numpy() for each in model.optimizer.momentums]], 0
    if hvd.rank() == 0 and path.is_file():
        values, done = read(path)
    values = [hvd.broadcast(each).numpy() for each in values]
    model.set_weights(values[: len(model.weights)])
    for variable, value in zip(model.optimizer.momentums, values[len(model.weights) :]):
        variable.assign(value)
    return int(hvd.broadcast(done))
"""
PICKLED = """    if hvd.rank() > 0:
        return
    weights, momentum = model.get_weights(), [each.numpy() for each in model.optimizer.variables]
    (path.parent / "new").write_bytes(pickle.dumps({"epochs": epochs, "weights": weights, "momentum": momentum}))
    os.replace(path.parent / "new", path)
"""
UNPICKLED = """    done = 0
    with contextlib.suppress(FileNotFoundError):
        kept = pickle.loads(path.read_bytes())
        model.set_weights(kept["weights"])
        for variable, value in zip(model.optimizer.variables, kept["momentum"]):
            variable.assign(value)
        done = kept["epochs"]
    for variable in [*model.weights, *model.optimizer.variables]:
        variable.assign(hvd.broadcast(variable))
    return int(hvd.broadcast([done])[0])
"""
PASSED = """batches = share(dataset, args, first=0)
    for _ in range(done):
        list(batches)
"""


def resuming(new):
    return goes_on((RESUME, new))


verbose = instead("2 if hvd.rank() == 0 else 0")

ANSWERS = {
    "07.2": dict(right=[(8,), (2 * 4,)], wrong=[(2,), (4,), (6,), (16,)], secret=r"\b8\b|\beight\b"),
    "07.3": dict(right=[(1, 2)], wrong=[(1, 6), (0, 2), (2, 1), (1, 3), (0, 0)], secret=None),
    "07.4": dict(
        right=[script()],
        wrong=[
            script(("hvd.init()\n", "\n")),
            script(("hvd.init()\n", "\n"), ("import keras\n", "import keras\nprint(hvd.rank())\nhvd.init()\n")),
        ],
        secret=r"hvd\.init",
    ),
    "07.5": dict(
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
    "07.6": dict(
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
        ],
        secret=r"hvd\.(size|rank)\(\)",
    ),
    "07.7": dict(
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
    "07.8": dict(
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
    "07.9": dict(
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
    "07.11": dict(
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
    "07.13": dict(right=[("a",)], wrong=[("b",), ("c",), ("d",)], secret=r"NCCL"),
    "07.15": dict(right=[(4,)], wrong=[(1,), (2,), (0,), (8,)], secret=r"\b4\b|\bfour\b"),
    "07.24": dict(
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
    "07.25": dict(
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
    "07.27": dict(
        right=[
            hasty(),
            hasty((RIGHT_CALLBACKS, EACH_CALLBACK)),
            hasty((RIGHT_RATE, "rate, learning_rate = 0.01, hvd.size() / 100")),
        ],
        wrong=[
            hasty(("numbers = data.order(dataset, args.batch_size, seed=args.seed)", HASTY_ORDER)),
            hasty((RIGHT_RATE, "learning_rate = 0.01")),
            hasty((RIGHT_CALLBACKS, "callbacks = [recorder, hvd.callbacks.MetricAverageCallback()]")),
            hasty((RIGHT_CALLBACKS, RIGHT_CALLBACKS.replace(", recorder]", "]").replace("[hvd", "[recorder, hvd"))),
            hasty((RIGHT_CALLBACKS, RIGHT_CALLBACKS.replace(" hvd.callbacks.MetricAverageCallback(),", ""))),
            hasty((RIGHT_CALLBACKS, f"callbacks = [{CALLBACKS}]")),
            hasty((RIGHT_RATE, "learning_rate = 0.01 / hvd.size()")),
            hasty(("numbers.shard(hvd.size(), hvd.rank())", "numbers")),
            hasty((RIGHT_CALLBACKS, f"callbacks = [{CALLBACKS.replace(', ', ', recorder, ')}]")),
        ],
        secret=r"hvd\.size\(\)|seed=args",
        same=[(3, 8)],
    ),
    "07.28": dict(
        right=[
            goes_on(),
            goes_on(
                ("import argparse\n", "import argparse\nimport io\n"),
                ("import data,", "import data, files,"),
                (SAVE, BY_THE_KIT),
                (RESUME, FROM_LISTS),
            ),
            goes_on(
                ("import argparse\n", "import argparse\nimport contextlib\nimport os\nimport pickle\n"),
                (SAVE, PICKLED),
                (RESUME, UNPICKLED),
            ),
            goes_on(
                (LEFT, "left = list(range(args.epochs))[done:]"),
                (BATCHES, PASSED),
                (MEAN, "mean = hvd.allreduce(mine, op=hvd.Sum).numpy() / hvd.size()"),
            ),
            goes_on((f"{MEAN}\n        {SAVES}", f"{SAVES}\n        (mean,) = hvd.grouped_allreduce([mine])")),
        ],
        wrong=[
            goes_on((SAVE, SAVE.replace("    if hvd.rank() == 0:\n", "    if True:\n"))),
            goes_on((STATE, "model.variables")),
            resuming(RESUME.replace(GIVE_ALL, "")),
            resuming(RESUME.replace("in state:", "in model.variables:")),
            resuming(RESUME.replace("int(hvd.broadcast(done, root_rank=0))", "done")),
            goes_on((LEFT, "left = range(args.epochs)")),
            goes_on((BATCHES, "batches = share(dataset, args, first=0)")),
            goes_on((SAVE, SAVE.replace("write(partial", "write(path").replace("        partial.replace(path)\n", ""))),
            goes_on((SAVES, f"if epoch + 1 < args.epochs:\n            {SAVES}")),
            goes_on((MEAN, "mean = mine")),
            goes_on((SAVES, "save(path, model, epoch)")),
            resuming(RESUME.replace("if hvd.rank() == 0 and path.exists():", "if True:")),
            resuming(RESUME.replace("hvd.rank() == 0 and path", "path").replace(GIVE_ALL, DEEPER)),
            goes_on((MEAN, "mean = hvd.allreduce(mine, op=hvd.Sum)")),
            goes_on((SAVES, f"if epoch + 1 == args.epochs:\n            {SAVES}")),
            resuming(RESUME.replace(GIVE_ALL, f"    done = int(hvd.broadcast(done))\n    if done:\n{DEEPER}")),
            goes_on((STATE, "model.trainable_variables + model.optimizer.variables")),
            goes_on((SAVE, SAVE.replace("replace(path)", "replace(path.with_name('kept'))"))),
            resuming(RESUME.replace("    return int(", "    int(")),
            goes_on((LEFT, "left = range(done + 1, args.epochs)")),
            goes_on((MEAN, "mean = hvd.allreduce(mine) if hvd.rank() == 0 else mine")),
            goes_on((LEFT, "left = range(done, args.epochs - 1)")),
            goes_on((BATCHES, "batches = list(share(dataset, args, first=done))")),
            goes_on((BATCHES, "batches = share(dataset, args, first=done + 1)")),
            goes_on((SAVES, "save(path, model, args.epochs)")),
            goes_on(("def resume", "def load"), ("resume(path, model)\n", "load(path, model)\n")),
        ],
        secret=r"broadcast\(|allreduce\(|epoch \+ 1|range\(|first=|rank\(\) ==",
    ),
    "07.16": dict(right=[(32,), (32.0,)], wrong=[(8,), (2,), (4,), (64,)], secret=r"\b32\b"),
    "07.17": dict(
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
    "07.19": dict(
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
    "07.20": dict(right=[(0,)], wrong=[(1,), (2,)], secret=r"rank 0|\b0\b"),
    "07.21": dict(right=[(1,)], wrong=[(0,), (2,)], secret=r"rank 1|\b1\b"),
    "07.22": dict(right=[(40,), (40.0,)], wrong=[(160,), (4,), (1,), (20,)], secret=r"\b40\b", same=[(1, 2)]),
    "07.23": dict(
        right=[
            batch(),
            batch(("batch=$((64 * SLURM_NTASKS))", "batch=$((SLURM_NNODES * 2 * 64))")),
            batch(("batch=$((64 * SLURM_NTASKS))", "batch=$(expr 64 \\* $SLURM_NTASKS)")),
        ],
        wrong=[
            batch(("--ntasks-per-node=2", "--ntasks-per-node=1")),
            batch(("--cpus-per-task=2", "--cpus-per-task=4")),
            batch(("batch=$((64 * SLURM_NTASKS))", "batch=$((64 * SLURM_NTASKS + 2))")),
            batch(("--nodes=2", "--nodes=3")),
            batch(("srun ", "# srun "), ('    "${python', '"${python')),
            batch(("--time=00:30:00", "--time=00:30")),
            *tried_out(
                batch,
                "batch=$((64 * SLURM_NTASKS))",
                "batch=64*SLURM_NTASKS",
                "batch=$((64 * SLURM_NNODES))",
                "batch=$((128 * SLURM_NTASKS))",
                "batch=$((64 * SLURM_NTASK))",
                "batch=$((64 * SLURM_TASKS_PER_NODE))",
                "batch=256",
                "batch=$((SLURM_NTASKS > 4 ? 512 : 256))",
            ),
        ],
        secret=None,
    ),
}
