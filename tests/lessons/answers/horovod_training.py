"""Answers to the self-checks of 08_horovod_training: right ones, and wrong ones that students give."""

PIN, SHARD, SILENT = "devices.pin(hvd.local_rank(), hvd.local_size())", ".shard(hvd.size(), hvd.rank())", "== 0 else 0"
BROADCASTS, AVERAGES = "hvd.callbacks.BroadcastGlobalVariablesCallback(0)", "hvd.callbacks.MetricAverageCallback()"
SENT, AVERAGED = "hvd.broadcast(variable, root_rank=0)", "hvd.grouped_allreduce(gradients)"
SGD = "keras.optimizers.SGD(learning_rate)"
STEP, COUNTED = f"super().apply({AVERAGED}, variables)", "batch=$((64 * ranks))"
AFTER = "super().apply(gradients, variables); [each.assign(hvd.allreduce(each)) for each in variables]"

SAMPLES = {"horovod.2": [([0.1, 0.2],), ([0.3, -0.08],)]}
STYLES = [("horovod.3", STEP, "...  # your code here"), ("horovod.4", f"variable.assign({SENT})", "...")]
MISTAKES = [
    ("horovod.7", "hvd.init()\n", "\n"),
    ("horovod.7", "hvd.init()\n", "\n", "import keras\n", "import keras\nprint(hvd.rank())\nhvd.init()\n"),
    ("horovod.8", PIN, "devices.pin(0, hvd.local_size())"),
    ("horovod.8", PIN, "devices.pin(hvd.local_rank())"),
    ("horovod.9", SHARD, ""),
    ("horovod.9", "epochs=args.epochs,", "epochs=args.epochs * hvd.size(),"),
    ("horovod.10", "0.01 * hvd.size()", "0.1 * hvd.size()"),
    ("horovod.10", "hvd.DistributedOptimizer(", "("),
    ("horovod.10", SGD, f"hvd.DistributedOptimizer({SGD})"),
    ("horovod.10", "import keras\n", "import keras\nimport horovod.keras as hvd\n"),
    ("horovod.11", f"{BROADCASTS}, ", ""),
    ("horovod.11", f", {AVERAGES}", ""),
    ("horovod.11", ", recorder]", "]"),
    ("horovod.12", f"2 if hvd.rank() {SILENT}", "2"),
    ("horovod.12", SILENT, "== 0 and hvd.size() > 1 else 0"),
    ("horovod.3", "in model.variables", "in model.trainable_variables"),
    ("horovod.3", SENT, "hvd.allreduce(variable)"),
    ("horovod.3", f"variable.assign({SENT})", SENT),
    ("horovod.3", "def begin_equal", "def begin"),
    ("horovod.4", AVERAGED, "gradients"),
    ("horovod.4", "return Distributed.from", "Distributed.from"),
    ("horovod.4", AVERAGED, "hvd.grouped_allreduce(gradients, op=hvd.Sum)"),
    ("horovod.4", AVERAGED, "[hvd.allreduce(gradients[0]), *gradients[1:]]"),
    ("horovod.4", AVERAGED, f"hvd.grouped_allreduce({AVERAGED})"),
    ("horovod.4", STEP, AFTER),
    ("horovod.4", STEP, AVERAGED),
    ("horovod.4", "from_config(optimizer.get_config())", "from_config({})"),
    ("horovod.16", "--ntasks-per-node=2", "--ntasks-per-node=1"),
    ("horovod.16", COUNTED, "batch=128"),
]
