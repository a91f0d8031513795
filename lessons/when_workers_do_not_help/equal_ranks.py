"""What a student's `local_sgd` does on 2 ranks, beside what it should do, and beside what usual mistakes would do.

The ranks are played in one process of their own, without Horovod and without a GPU. They begin with equal weights, and
each has batches of its own. The network has a layer that is not trained.
"""

import re
import traceback
from functools import cache
from pathlib import Path

import numpy as np

from labs.checks import student_code
from lessons import connected, tryout
from lessons.tryout.play import mistake
from lessons.when_workers_do_not_help import small

RANKS = 2
RATE = 0.1
STEPS = 6
CASES = ({"k": 1, "momentum": 0.0}, {"k": 3, "momentum": 0.0}, {"k": 2, "momentum": 0.9})
TOLERANCE = 1e-3  # of how far the weights have moved
MEETS = {  # whether the ranks take their mean after this step
    None: lambda step, k: step % k == 0,
    "never": lambda step, k: False,
    "every step": lambda step, k: True,
    "early": lambda step, k: (step - 1) % k == 0,
    "not at k": lambda step, k: step % k > 0,
    "at the end": lambda step, k: step == STEPS,
    "gradients at k": lambda step, k: False,
}
MISTAKES = ("nothing", *filter(None, MEETS), "sum", "weights alone", "only k-th")
SECONDS = 30  # that the function may compute between two exchanges
_random = np.random.default_rng(2)
IMAGES = _random.normal(size=(RANKS, STEPS, 5, 64)).astype("float32")  # 5 for each rank in each step
LABELS = _random.integers(0, 10, IMAGES.shape[:3])
START = small.begin(1)  # the weights with which all ranks begin


def facts(script):
    """What happened: {error: None or {line, code, says}, where: it happened, in words, cases: a list, right_on_1_rank}.

    Each of CASES has got: like, a list: "right", or else those of MISTAKES that give the same weights; equal: whether
    both ranks have the same weights at the end; moved_frozen: whether the layer changed that is not trained; ahead: how
    many batches were taken before the first step.
    What raises on one rank, in this process, is told at once, without a try-out. Raises NotDone where scripts cannot be
    tried out.
    """
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")  # each check traces the step anew, and TensorFlow would warn of that
    case = {"k": 2, "momentum": 0.0}
    alone = on_ranks(str(Path(script).resolve()), 1, [case])
    if "error" in alone:
        return alone | {"where": "On 1 rank", "cases": []}
    (found,) = tryout.try_out_script(script, [tryout.Performance(played_by=__name__)])
    cases = [_compared(*pair) for pair in zip(CASES, found.get("cases", ()), strict=False)]
    ((of_rank,),) = alone["cases"]
    right = alike(np.array(of_rank["weights"]), trained(**case, mistake="never")[0])
    return found | {"where": "On 2 ranks", "cases": cases, "right_on_1_rank": right}


def _compared(case, by_rank):
    """One of the `cases` of facts, from what `train` gave for this case on each rank."""
    found = np.array([rank["weights"] for rank in by_rank])
    like = ["right"] if alike(found, trained(**case)) else []
    like = like or [name for name in MISTAKES if alike(found, trained(**case, mistake=name))]
    moved = any(rank["moved_frozen"] for rank in by_rank)
    return case | {"like": like, "equal": alike(*found), "moved_frozen": moved, "ahead": by_rank[0]["ahead"]}


# What it should do


def alike(weights, others):
    """Whether two trainings have ended with the same weights, up to rounding."""
    far = np.abs(others - START).max()
    return bool(np.abs(weights - others).max() <= TOLERANCE * max(far, 1e-3))


@cache
def trained(k, momentum, mistake=None):
    """Weights of all ranks at the end, shape (RANKS, number of weights): right, or with one of MISTAKES."""
    weights = np.tile(START.astype(np.float64), (RANKS, 1))
    speed = np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        if mistake == "nothing" or (mistake == "only k-th" and step % k):
            continue
        gradients = small.gradient(weights, IMAGES[:, step - 1], LABELS[:, step - 1])
        if mistake == "gradients at k" and step % k == 0:
            gradients[:] = gradients.mean(0)
        speed = momentum * speed - RATE * gradients
        weights = weights + speed
        if MEETS.get(mistake, MEETS[None])(step, k):
            for values in (weights,) if mistake == "weights alone" else (weights, speed):
                values[:] = values.sum(0) if mistake == "sum" else values.mean(0)
    return weights


# What it does


def played(script):
    """{"error": ...} or {"cases": ...} as of `on_ranks`, in the process of a try-out."""
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(2 * RANKS)  # a rank that waits in its graph keeps one
    return on_ranks(script)


def on_ranks(script, size=RANKS, cases=CASES):
    """{"error": ...} or {"cases": [[what `train` gives on each rank] for each of the cases]} of a script."""
    world = connected.World(size, SECONDS, graphs=True)
    try:
        with connected.placed(world):  # also for what the function itself imports
            function = connected.definitions(script, world)["local_sgd"]
            return {"cases": [world.play(lambda: train(function, world.rank(), **case)) for case in cases]}  # noqa: B023
    except (Exception, SystemExit, student_code.Endless) as problem:
        return {"error": _error(problem, script, world)}


def _error(problem, script, world):
    if isinstance(problem, student_code.Endless):
        says = f"after {SECONDS} s rank {world.rank()} is still computing here. Does every loop end?"
        return mistake(script, world.lines[world.rank()], says)
    if isinstance(problem, connected.ConnectedError):
        return mistake(script, next(filter(None, world.lines), None), str(problem))
    text = "".join(traceback.format_exception(problem))  # of a tf.function, its message has the line
    lines = re.findall(rf'File "{re.escape(script)}", line (\d+)', text)
    return mistake(script, int(lines[-1]) if lines else None, student_code.error_text(problem))


def network():
    """The one of lessons.when_workers_do_not_help.small, behind a layer that is not trained and changes nothing."""
    import keras

    unchanged = keras.layers.Dense(64, use_bias=False, kernel_initializer="identity", trainable=False)
    layers = keras.layers.Dense(small.HIDDEN, "tanh"), keras.layers.Dense(10, "softmax")
    model = keras.Sequential([keras.Input((64,)), unchanged, *layers])
    for weight, values in zip(model.trainable_variables, small.layers(START), strict=True):
        weight.assign(values.reshape(weight.shape))
    return model


def train(function, rank, k, momentum):
    """What the function has done on this rank: weights at the end, as a list; moved_frozen and ahead as in facts."""
    import keras

    model, optimizer, ahead = network(), keras.optimizers.SGD(RATE, momentum=momentum), []
    optimizer.build(model.trainable_variables)

    def weights():
        return np.concatenate([np.ravel(weight.numpy()) for weight in model.trainable_variables])

    def one_by_one():
        for batch in zip(IMAGES[rank], LABELS[rank], strict=True):
            if (weights() == START).all():
                ahead.append(batch)
            yield batch

    function(model, optimizer, keras.losses.SparseCategoricalCrossentropy(), one_by_one(), k)
    moved = (model.non_trainable_variables[0].numpy() != np.eye(64)).any()
    return {"weights": weights().tolist(), "moved_frozen": bool(moved), "ahead": len(ahead)}
