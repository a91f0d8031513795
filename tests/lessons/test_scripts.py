"""Training scripts in many styles: what does the right thing is right, and a mistake gets the hint that names it."""

import re

import pytest
from making import swapped

from labs import checks, devices

pytestmark = pytest.mark.slow

MIRRORED = "scripts/ResNet50.py"
HOROVOD = "scripts/ResNet50_horovod.py"

LARGE = "scripts/ResNet152V2.py"

STRATEGY = "strategy = tf.distribute.MirroredStrategy(devices=workers)"
RATE = "learning_rate = 0.01 * args.n_gpus"
FIT = "model.fit(train, epochs=args.epochs, shuffle=False, verbose=2, callbacks=[recorder])"
SIZES = "classes=len(dataset.classes), input_shape=(args.image_size, args.image_size, 3)"
NETWORK = f"network = keras.applications.ResNet50V2(\n        include_top=True, weights=None, {SIZES}\n    )"
IMPORT = "import tensorflow as tf\n"
SCOPE = "with strategy.scope():"
OPTIMIZER = "optimizer=keras.optimizers.SGD(learning_rate)"
LOSS = 'loss="sparse_categorical_crossentropy"'
MODEL = "model = keras.Sequential([models.preprocessing(args.image_size), network])"


def network(text, *more):
    return (NETWORK, text), *more


def with_import(line):
    return IMPORT, f"{IMPORT}{line}\n"


def in_a_function(name):
    """A script whose statements after the imports stand in main(), which a guard calls."""

    def write(folder):
        (path,) = swapped(name)(folder)
        head, middle, body = path.read_text().partition("parser = argparse")
        lines = "\n".join(f"    {line}" if line.strip() else line for line in (middle + body).split("\n"))
        path.write_text(f'{head}def main() -> None:\n{lines}\n\nif __name__ == "__main__":\n    main()\n')
        return (path,)

    return write


ON_WORKERS = {
    "main() and its guard": in_a_function(MIRRORED),
    "imported names, a loop over devices, a list of callbacks": network(
        f"network = Net(weights=None, {SIZES})",
        with_import("from keras.applications.resnet_v2 import ResNet50V2 as Net\nfrom tensorflow import distribute"),
        (STRATEGY, "strategy = distribute.MirroredStrategy([name for name in workers])"),
        (RATE, "learning_rate = 0.01 * strategy.num_replicas_in_sync"),
        (FIT, f"callbacks = []\n    callbacks.append(recorder)\n    {FIT.replace('[recorder]', 'callbacks')}"),
    ),
    "tf.keras, numbers of devices, options in a dict": network(
        f"network = tf.keras.applications.ResNet50V2(weights=None, {SIZES})",
        (STRATEGY, 'strategy = tf.distribute.MirroredStrategy(devices=[f"CPU:{i}" for i in range(args.n_gpus)])'),
        (RATE, "learning_rate: float = 0.01\nlearning_rate *= len(workers)"),
        (FIT, "how = dict(epochs=args.epochs, verbose=2, callbacks=[recorder])\n    model.fit(train, **how)"),
        (MODEL, f"{MODEL}\n    sgd = keras.optimizers.SGD(learning_rate=learning_rate)"),
        (OPTIMIZER, "optimizer=sgd"),
    ),
    "positional arguments, an option, a class": network(
        "shape = args.image_size, args.image_size, 3\n"
        "    network = keras.applications.ResNet50V2(True, None, None, shape, None, len(dataset.classes))",
        (
            "training.arguments(parser)",
            'parser.add_argument("--rate", type=float, default=0.01)\ntraining.arguments(parser)',
        ),
        (RATE, "learning_rate = args.rate * args.n_gpus"),
        (
            "for _ in training.repeats(args, recorder, model):",
            "class Trainer:\n    def __init__(self, model):\n        self.model = model\n\n"
            "    def train(self, data, **options):\n"
            "        return self.model.fit(data, epochs=args.epochs, **options)\n\n\n"
            "for _ in training.repeats(args, recorder, model):",
        ),
        (FIT, "Trainer(model).train(train, verbose=2, callbacks=recorder)"),
    ),
    "functools.partial, a functional model, a schedule that begins with the rate": network(
        f"make = partial(keras.applications.ResNet50V2, weights=None)\n    network = make({SIZES})",
        with_import("from functools import partial"),
        (
            MODEL,
            "inputs = keras.Input(dataset.images.shape[1:])\n"
            "    model = keras.Model(inputs, network(models.preprocessing(args.image_size)(inputs)))",
        ),
        (OPTIMIZER, "optimizer=keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(learning_rate, 1000))"),
        (FIT, FIT.replace("shuffle=False, ", "")),
    ),
    "input_tensor, logits with their loss": network(
        "network = keras.applications.ResNet50V2(\n        weights=None, classes=len(dataset.classes), "
        "classifier_activation=None, input_tensor=keras.Input((args.image_size, args.image_size, 3))\n    )",
        (LOSS, "loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)"),
    ),
    "the kit's own function, a rate by match": network(
        "network = models.network('ResNet50V2', args.image_size, len(dataset.classes))",
        (
            RATE,
            "match args.n_gpus:\n    case 1:\n        learning_rate = 0.01\n"
            "    case count:\n        learning_rate = count * 0.01",
        ),
    ),
    "a top layer of one's own": network(
        "base = keras.applications.ResNet50V2(\n        include_top=False, weights=None, pooling='avg', "
        "input_shape=(args.image_size, args.image_size, 3)\n    )\n"
        "    network = keras.Sequential([base, keras.layers.Dense(len(dataset.classes), 'softmax')])"
    ),
    "network made by a function in a scope of its own": [
        (
            SCOPE,
            "def build(strategy: tf.distribute.Strategy) -> keras.Model:\n    with strategy.scope():\n"
            f"        return getattr(keras.applications, 'ResNet50V2')(weights=None, {SIZES})\n\n\n"
            "with strategy.scope():",
        ),
        (NETWORK, "network = build(strategy)"),
    ],
}


@pytest.mark.parametrize("style", ON_WORKERS)
def test_a_script_for_workers_is_right_in_every_style(style, tmp_path):
    edits = ON_WORKERS[style]
    path = (edits if callable(edits) else swapped(MIRRORED, *edits))(tmp_path)
    assert checks.judge("resnet50.3", *path) == ("right", checks.task("resnet50.3").why)


def test_names_of_gpus_are_right_on_a_machine_that_has_them(tmp_path, monkeypatch):
    path = swapped(MIRRORED, ("devices=workers", '[f"GPU:{n}" for n in range(args.n_gpus)]'))(tmp_path)
    for gpus, state in (["GPU:0", "GPU:1"], "right"), ([], "wrong"):
        monkeypatch.setattr(devices, "gpus", lambda gpus=gpus: gpus)
        assert checks.judge("resnet50.3", *path)[0] == state


WRONG_ON_WORKERS = {
    "weights=None is missing": ([("weights=None, ", "")], "weights='imagenet': pass weights=None"),
    "no top layer": ([("include_top=True", "include_top=False")], "without its top layer"),
    "a number for devices": (
        [("devices=workers", "devices=args.n_gpus")],
        r"line \d+: .*Error: .*takes the list `workers`",
    ),
    "half of the workers": ([("devices=workers", "devices=workers[:1]")], "With --n_gpus 3 .* 1 replica: give it all"),
    "fixed epochs": ([("epochs=args.epochs", "epochs=5")], "With --epochs 2, `fit` is asked for 5 epochs"),
    "arrays": ([("model.fit(train", "model.fit(dataset.images, dataset.labels")], "takes 32 images in a step"),
    "arrays with their batch": (
        [("model.fit(train", "model.fit(dataset.images, dataset.labels, batch_size=args.batch_size")],
        "takes 4 images in a step",
    ),
    "rate of the batch": (
        [("0.01 * args.n_gpus", "0.01 * args.batch_size / 256")],
        "begins with 0.000.*: that of one worker is 0.01",
    ),
    "rate of an unknown name": ([("0.01 * args.n_gpus", "0.01 * args.workers")], "AttributeError: .*workers"),
    "rate divided": ([("0.01 * args.n_gpus", "0.01 / args.n_gpus")], "0.003333. The linear rule gives another one"),
    "ten classes": ([("classes=len(dataset.classes)", "classes=10")], "gives 10 numbers for an image"),
    "another optimizer": ([("optimizers.SGD(", "optimizers.Adam(")], "The optimizer is Adam"),
    "momentum": ([("SGD(learning_rate)", "SGD(learning_rate, momentum=0.9)")], "momentum=0.9"),
    "fit once per epoch": (
        [(FIT, f"for _ in range(args.epochs):\n        {FIT.replace('args.epochs', '1')}")],
        r"asked for 1 epoch\.",
    ),
    "epochs in the place of labels": ([("epochs=args.epochs", "args.epochs")], r"asked for 1 epoch\. .* name it"),
    "names of the classes": ([("len(dataset.classes)", "dataset.classes")], "`classes` is a list"),
    "the data twice": ([("model.fit(train", "model.fit(train.repeat(2)")], "read more than once"),
    "one step": ([("model.fit(train", "model.fit(train.take(1)")], "reads 12 of 100 images"),
    "smaller steps": ([("model.fit(train", "model.fit(train.unbatch().batch(6)")], "takes 6 images in a step"),
    "a helper without scope": (
        [
            (SCOPE, "network = build()\n" + SCOPE),
            (
                "# One copy",
                f"def build():\n    return keras.applications.ResNet50V2(weights=None, {SIZES})\n\n\n# One copy",
            ),
            (NETWORK, "pass"),
        ],
        "outside `strategy.scope\\(\\)`",
    ),
    "recorder told no number of images": ([("images=len(dataset.images)", "images=args.images")], "told images=None"),
    "recorder told one worker": ([("workers=args.n_gpus,\n", "workers=1,\n")], "told 1 worker, .* made for 3 replicas"),
    "recorder told the fixed rate": (
        [("learning_rate=learning_rate", "learning_rate=0.01")],
        "told a learning rate of 0.01",
    ),
    "no line in the log": ([("verbose=2", "verbose=0")], "verbose=2"),
    "an index too far": (
        [("devices=workers", "devices=[workers[i] for i in range(9)]")],
        "IndexError: list index out of range",
    ),
    "a mistake of syntax": ([(RATE, "learning_rate = = 0.01")], "line 32: `learning_rate = = 0.01`: SyntaxError"),
    "no end, and nothing gets through": (
        [(RATE, f"{RATE}\nwhile True:\n    try:\n        learning_rate += 0\n    except BaseException:\n        pass")],
        r"line 3[3-7]: `.*`: does not come to an end",
    ),
}


@pytest.mark.parametrize("mistake", WRONG_ON_WORKERS)
def test_a_mistake_of_a_script_for_workers_is_named(mistake, tmp_path, monkeypatch):
    from labs.checks.tryout import client

    monkeypatch.setattr(client, "CPU_SECONDS", 4 if mistake.startswith("no end") else 8)
    edits, says = WRONG_ON_WORKERS[mistake]
    (path,) = swapped(MIRRORED, *edits)(tmp_path)
    state, hint = checks.judge("resnet50.3", path)
    assert state == "wrong"
    assert re.search(says, hint), hint


SHARD = "mine = numbers.shard(hvd.size(), hvd.rank())"
SCALED = "learning_rate = 0.01 * hvd.size()"
AVERAGED = "optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(learning_rate))"
CALLBACKS = "callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]"
VERBOSE = "verbose = 2 if hvd.rank() == 0 else 0"
PIN = "worker = devices.pin(hvd.local_rank(), hvd.local_size())"
STEPS = [f"horovod.{number}" for number in range(4, 10)]

AS_RANKS = {
    "main() and its guard": in_a_function(HOROVOD),
    "rank and size as variables, in several lines": [
        (SHARD, "rank, size = hvd.rank(), hvd.size()\nmine = numbers.shard(size, rank)"),
        (SCALED, "learning_rate = 0.01\nlearning_rate *= size"),
        (AVERAGED, "sgd = keras.optimizers.SGD(learning_rate)\noptimizer = hvd.DistributedOptimizer(sgd)"),
        (
            CALLBACKS,
            "callbacks = []\ncallbacks.append(hvd.callbacks.BroadcastGlobalVariablesCallback(root_rank=0))\n"
            "callbacks.append(hvd.callbacks.MetricAverageCallback())",
        ),
        (VERBOSE, "verbose = 0\nif rank == 0:\n    verbose = 2"),
    ],
    "names imported from labs.hvd, horovod.tensorflow beside it": [
        (
            "import keras\n",
            "import horovod.tensorflow as horovod\nimport keras\n"
            "from labs.hvd import DistributedOptimizer, rank, size\n"
            "from labs.hvd.callbacks import BroadcastGlobalVariablesCallback, MetricAverageCallback\n",
        ),
        (SHARD, "mine = numbers.shard(index=rank(), num_shards=size())"),
        (SCALED, "learning_rate = 0.01 * horovod.size()"),
        (AVERAGED, AVERAGED.replace("hvd.", "")),
        (CALLBACKS, CALLBACKS.replace("hvd.callbacks.", "")),
        (VERBOSE, "if hvd.rank() == 0:\n    verbose = 2\nelse:\n    verbose = 0"),
    ],
    "functions, a tuple with a callback of one's own, keywords": [
        (
            PIN,
            "worker = devices.pin(local_size=hvd.local_size(), local_rank=hvd.local_rank())\n"
            "hvd.broadcast(hvd.allreduce([1.0]), root_rank=0)  # all have come here",
        ),
        (SHARD, "def share(numbers):\n    return numbers.shard(hvd.size(), hvd.rank())\n\n\nmine = share(numbers)"),
        (
            AVERAGED,
            "def averaged(make=keras.optimizers.SGD, **options):\n"
            "    return hvd.DistributedOptimizer(make(**options))\n\n\n"
            "optimizer = averaged(learning_rate=learning_rate)",
        ),
        (CALLBACKS, f"{CALLBACKS.replace('[', '(').replace(']', ', keras.callbacks.TerminateOnNaN())')}"),
    ],
    "wrapped in compile, without comments": [
        ("# 1. ", "# "),
        ("# 2. ", "# "),
        ("# 3. ", "# "),
        (AVERAGED, "optimizer = keras.optimizers.SGD(learning_rate)"),
        ("optimizer=optimizer,", "optimizer=hvd.DistributedOptimizer(optimizer),"),
    ],
}


@pytest.mark.parametrize("style", AS_RANKS)
def test_a_horovod_script_is_right_in_every_style(style, tmp_path):
    edits = AS_RANKS[style]
    path = (edits if callable(edits) else swapped(HOROVOD, *edits))(tmp_path)
    assert {id: checks.judge(id, *path) for id in STEPS} == {id: ("right", checks.task(id).why) for id in STEPS}


WRONG_AS_RANKS = {
    "shard of the node": (
        "horovod.6",
        [("hvd.size(), hvd.rank())", "hvd.local_size(), hvd.local_rank())")],
        "the first ranks of both",
    ),
    "own orders": ("horovod.6", [("seed=args.seed)  #", "seed=args.seed + hvd.rank())  #")], "Do all divide one order"),
    "steps that nobody knows": (
        "horovod.6",
        [(SHARD, "mine = numbers.enumerate().filter(lambda i, _: i % hvd.size() == hvd.rank()).map(lambda _, n: n)")],
        "does not know how many steps",
    ),
    "momentum": ("horovod.7", [("SGD(learning_rate)", "SGD(learning_rate, momentum=0.9)")], "momentum=0.9"),
    "several passes": ("horovod.7", [("SGD(learning_rate))", "SGD(learning_rate), 4)")], "only once in 4 steps"),
    "scaled twice": ("horovod.7", [("SGD(learning_rate)", "SGD(learning_rate * hvd.size())")], "a different rate from"),
    "wrapped twice": (
        "horovod.7",
        [(AVERAGED, f"{AVERAGED}\noptimizer = hvd.DistributedOptimizer(optimizer)")],
        "twice",
    ),
    "rate of the node": ("horovod.7", [("0.01 * hvd.size()", "0.01 * hvd.local_size()")], "the rate is that for 3"),
    "no list": (
        "horovod.8",
        [(CALLBACKS, CALLBACKS.split(",")[0].replace("[", ""))],
        r"line \d+: .* must be an iterable",
    ),
    "recorder too early": (
        "horovod.8",
        [("callbacks=[*callbacks, recorder]", "callbacks=[callbacks[0], recorder, callbacks[1]]")],
        "comes before Horovod's",
    ),
    "one log for each node": (
        "horovod.9",
        [("if hvd.rank() == 0 else 0", "if hvd.local_rank() == 0 else 0")],
        "each node",
    ),
    "pinned by the rank": ("horovod.5", [("devices.pin(hvd.local_rank()", "devices.pin(hvd.rank()")], "worker 5 of 3"),
    "no end": (
        "horovod.6",
        [(SHARD, f"while True:\n    pass\n{SHARD}")],
        r"line 3[6-9]: `.*`: does not come to an end",
    ),
}


@pytest.mark.parametrize("mistake", WRONG_AS_RANKS)
def test_a_mistake_of_a_horovod_script_is_named(mistake, tmp_path, monkeypatch):
    from labs.checks.tryout import client

    monkeypatch.setattr(client, "CPU_SECONDS", 4 if mistake.startswith("no end") else 8)
    id, edits, says = WRONG_AS_RANKS[mistake]
    (path,) = swapped(HOROVOD, *edits)(tmp_path)
    state, hint = checks.judge(id, path)
    assert state == "wrong"
    assert re.search(says, hint), hint


PRINTED = 'print(f"Model ResNet152V2 {args.n_gpus} workers")'
LARGE_NETWORK = NETWORK.replace("50V2", "152V2")
LARGER = {
    "names in variables": (
        [
            (PRINTED, 'name = "ResNet152V2"\nprint("Model", name, len(workers), "workers")'),
            ('model="ResNet152V2"', "model=name"),
            (LARGE_NETWORK, f"network = getattr(keras.applications, name)(weights=None, {SIZES})"),
        ],
        None,
    ),
    "name imported": (
        [
            (LARGE_NETWORK, f"network = ResNet152V2(weights=None, {SIZES})"),
            with_import("from tensorflow.keras.applications.resnet_v2 import ResNet152V2"),
        ],
        None,
    ),
    "written to standard output": ([(PRINTED, f'import sys\nsys.stdout.write{PRINTED[5:-2]}\\n")')], None),
    "no activation": ([("weights=None", "weights=None, classifier_activation=None")], "no probabilities"),
    "images that were asked for": ([("images=len(dataset.images)", "images=args.images")], "told images=None"),
    "Keras' name of the network": ([('model="ResNet152V2"', "model=network.name")], "told model='resnet152v2'"),
    "log of one worker": (
        [(PRINTED, 'print("Model ResNet152V2 1 workers")')],
        "begins with `Model ResNet152V2 1 workers`",
    ),
}


@pytest.mark.parametrize("style", LARGER)
def test_every_style_of_the_larger_network_is_judged_by_its_log_and_record_too(style, tmp_path):
    edits, says = LARGER[style]
    state, text = checks.judge("T7", *swapped(LARGE, *edits)(tmp_path))
    assert (state, text) == ("right", checks.task("T7").why) if says is None else re.search(says, text), text
