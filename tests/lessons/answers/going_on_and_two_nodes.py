"""Answers to the self-checks of 20_going_on_and_two_nodes: right ones, and wrong ones that students give."""

from functools import partial
from textwrap import indent

from making import swapped, tried_out

batch = partial(swapped, "slurm/local/ResNet50_horovod_nodes.sh")
hasty = partial(swapped, "scripts/four_mistakes.py")
HASTY_ORDER = "numbers = data.order(dataset, args.batch_size, seed=args.seed + hvd.rank())"
RIGHT_RATE = "learning_rate = 0.01 * hvd.size()"
CALLBACKS = "hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()"
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


ANSWERS = {
    "nodes.1": dict(
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
    "nodes.2": dict(right=[(1,)], wrong=[(0,), (2,)], secret=r"rank 1|\b1\b"),
    "nodes.4": dict(
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
    "nodes.5": dict(right=[("a",)], wrong=[("b",), ("c",), ("d",)], secret=r"NCCL"),
    "nodes.6": dict(right=[(40,), (40.0,)], wrong=[(160,), (4,), (1,), (20,)], secret=r"\b40\b", same=[(1, 2)]),
    "nodes.7": dict(
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
