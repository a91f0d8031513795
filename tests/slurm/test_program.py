"""What a training script in Python does with its workers and its rate."""

from labs.slurm.check import program

PROGRAMS = [
    ("import horovod.keras as hvd\nopt = hvd.DistributedOptimizer(SGD(0.1 * hvd.size()))", "horovod", {"workers"}),
    ("from labs import hvd\nlr = 0.1\nopt = SGD(learning_rate=lr)", "horovod", set()),
    (
        "s = MirroredStrategy()\nlr = 0.1 * s.num_replicas_in_sync\nopt = keras.optimizers.SGD(lr)",
        "mirrored",
        {"workers"},
    ),
    ("s = MirroredStrategy()\nopt = Adam(args.lr * args.n_gpus)", "mirrored", {"workers", "option"}),
    ("s = MirroredStrategy()\nopt = Adam(lr=args.lr)", "mirrored", {"option"}),
    ("model.compile(optimizer='sgd')", None, set()),
    ("learning_rate = ...\nopt = SGD(learning_rate)", None, None),
    ("opt = SGD(schedule())", None, None),
    ("opt = SGD(0.1)\nopt.learning_rate = 0.1 * n", None, None),
    ("def build(rate):\n    return SGD(rate)", None, None),
    ("print(1)", None, None),
    ("not python at all", None, None),
]


def test_kind_and_rate_of_a_program(tmp_path):
    path = tmp_path / "x.py"
    for code, kind, rate in PROGRAMS:
        path.write_text(code)
        read = program.read(path)
        assert (read.kind, read.rate) == (kind, rate), code
