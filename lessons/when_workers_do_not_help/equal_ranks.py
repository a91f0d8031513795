"""What a student's `local_sgd` does on 2 ranks, beside what it should do, and beside what usual mistakes would do.

The ranks are played in one process of their own, without Horovod and without a GPU. They begin with equal weights, and
each has batches of its own. The network has a layer that is not trained, and one that is used twice.
"""

import re
import traceback
from functools import cache
from pathlib import Path

import numpy as np

from labs.checks import student_code
from lessons import connected, tryout
from lessons.tryout.play import mistake

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
    "one early": lambda step, k: (step + 1) % k == 0,
    "once": lambda step, k: step == k,
    "not at k": lambda step, k: step % k > 0,
    "at the end": lambda step, k: step == STEPS,
    "gradients at k": lambda step, k: False,
    "repeated": lambda step, k: True,
}
RATES = {"nothing": 0, "rate": RANKS, "uphill": -1}  # times the right one
DIVISORS = {"sum": lambda k: 1, "by k": lambda k: k, "by all": lambda k: RANKS * k, "twice": lambda k: RANKS**2}
OF_MOMENTUM = ("weights alone", "momentum alone", "momentum sum", "momentum of rank 0", "momentum lost", "no momentum")
OTHERS = ("only k-th", "first mean", "collected", "collected sum", "rank 0", "before")
MISTAKES = (*RATES, *filter(None, MEETS), *DIVISORS, *OF_MOMENTUM, *OTHERS)
SECONDS = 30  # that the function may compute between two exchanges
SHAPES = (8, 8), (8,), (8, 8), (8,), (8, 3), (3,)  # weights of three layers; the first is not trained


def facts(script):
    """What happened: {error: None or {line, code, says}, where: it happened, in words, cases: a list}.

    Each of CASES has got: like, a list: "right", or else those of MISTAKES that give the same weights; equal: whether
    both ranks have the same weights at the end; moved_frozen: whether the layer changed that is not trained; ahead: how
    many batches were taken before the first step.
    What raises in a first step on one rank is told at once, without a try-out. Raises NotDone where scripts cannot be
    tried out.
    """
    if error := first_step(str(Path(script).resolve())):
        return {"error": error, "where": "In a first step on 1 rank", "cases": []}
    (found,) = tryout.try_out_script(script, [tryout.Performance(played_by=__name__)])
    return found | {
        "where": "On 2 ranks",
        "cases": [_compared(*pair) for pair in zip(CASES, found.get("cases", ()), strict=False)],
    }


def _compared(case, by_rank):
    """One of the `cases` of facts, from what `train` gave for this case on each rank."""
    found = np.array([rank["weights"] for rank in by_rank])
    like = ["right"] if alike(found, trained(**case)) else []
    like = like or [name for name in MISTAKES if alike(found, trained(**case, mistake=name))]
    moved = any(rank["moved_frozen"] for rank in by_rank)
    return case | {"like": like, "equal": alike(*found), "moved_frozen": moved, "ahead": by_rank[0]["ahead"]}


# What it should do


@cache
def start():
    """The weights with which all ranks begin: those of the layer that is not trained, and those of the others."""
    random = np.random.default_rng(1)
    weights = [random.normal(0, 0.5, shape).astype("float32") for shape in SHAPES]
    return weights[:2], weights[2:]


@cache
def batches(rank):
    """The batches of a rank: 5 samples in each step."""
    random = np.random.default_rng((2, rank))
    return [(random.normal(size=(5, 8)).astype("float32"), random.integers(0, 3, 5)) for _ in range(STEPS)]


def _flat(parts):
    return np.concatenate([np.ravel(part) for part in parts])


def alike(weights, others):
    """Whether two trainings have ended with the same weights, up to rounding."""
    far = np.abs(others - _flat(start()[1])).max()
    return bool(np.abs(weights - others).max() <= TOLERANCE * max(far, 1e-3))


def _gradients(weights, step):
    """Gradients of all ranks for their batches of this step, by hand. Shape, also of weights: (RANKS, n)."""
    (kernel, bias), trained = start()
    parts = np.split(weights, np.cumsum([part.size for part in trained])[:-1], axis=1)
    w, b, v, c = [part.reshape(RANKS, -1, like.shape[-1]) for part, like in zip(parts, trained, strict=True)]
    images, labels = map(np.array, zip(*[batches(rank)[step - 1] for rank in range(RANKS)], strict=True))
    fixed = np.tanh(images @ kernel + bias)
    once = np.tanh(fixed @ w + b)
    twice = np.tanh(once @ w + b)
    scores = np.exp(twice @ v + c)
    of_scores = (scores / scores.sum(2, keepdims=True) - np.eye(3)[labels]) / labels.shape[1]
    of_twice = of_scores @ v.swapaxes(1, 2) * (1 - twice**2)
    of_once = of_twice @ w.swapaxes(1, 2) * (1 - once**2)
    of_w = once.swapaxes(1, 2) @ of_twice + fixed.swapaxes(1, 2) @ of_once
    found = of_w, (of_once + of_twice).sum(1), twice.swapaxes(1, 2) @ of_scores, of_scores.sum(1)
    return np.concatenate([each.reshape(RANKS, -1) for each in found], axis=1)


@cache
def trained(k, momentum, mistake=None):
    """Weights of all ranks at the end, shape (RANKS, number of weights): right, or with one of MISTAKES."""
    begin = _flat(start()[1]).astype(np.float64)
    weights, speed = np.tile(begin, (RANKS, 1)), np.zeros((RANKS, len(begin)))
    rate, divisor = RATE * RATES.get(mistake, 1), DIVISORS.get(mistake, lambda k: RANKS)(k)
    momentum, collected = 0.0 if mistake == "no momentum" else momentum, 0.0
    for step in range(1, STEPS + 1):
        at_k, meet = step % k == 0, MEETS.get(mistake, MEETS[None])(step, k)
        if mistake == "only k-th" and not at_k:
            continue
        if meet and mistake == "before":
            weights[:], speed[:] = weights.mean(0), speed.mean(0)
        for _ in range(k if mistake == "repeated" else 1):
            found = _gradients(weights, step)
            if mistake in ("collected", "collected sum"):
                collected = collected + found.mean(0) / (k if mistake == "collected" else 1)
                if not at_k:
                    continue
                found[:], collected = collected, 0.0
            if mistake == "gradients at k" and at_k:
                found[:] = found.mean(0)
            speed = momentum * speed - rate * found
            weights = weights + speed
        if meet and mistake != "before":
            if mistake != "momentum alone":
                weights[:] = weights[0] if mistake == "rank 0" else weights.sum(0) / divisor
            if mistake in ("rank 0", "momentum of rank 0"):
                speed[:] = speed[0]
            elif mistake == "momentum lost":
                speed[:] = 0
            elif mistake != "weights alone":
                speed[:] = speed.sum(0) / (1 if mistake == "momentum sum" else divisor)
            if mistake == "first mean":
                break
    return weights


# What it does


def played(script):
    """{"error": ...} or {"cases": ...} as of `on_ranks`, in the process of a try-out."""
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(2 * RANKS)  # a rank that waits in its graph keeps one
    return on_ranks(script)


def first_step(script, seconds=5):
    """The error that one step raises on one rank, in this process; None where it raises none or does not end."""
    import tensorflow as tf

    world, logger = connected.World(1, seconds, graphs=True), tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")  # each check traces the step anew, and TensorFlow would warn of that
    try:
        _play(script, world, {"k": 1, "momentum": 0.0}, steps=1)
    except Exception as problem:
        return None if isinstance(problem, connected.ConnectedError) else _error(problem, script, world, seconds)
    except student_code.Endless:
        return None
    finally:
        logger.setLevel(level)
    return None


def _play(script, world, *cases, steps=STEPS):
    world.DistributedOptimizer = world.distributed
    with connected.placed(world):  # also for what the function itself imports
        function = connected.definitions(script, world)["local_sgd"]
        return [world.play(lambda: train(function, world.rank(), steps=steps, **case)) for case in cases]  # noqa: B023


def on_ranks(script, seconds=SECONDS):
    """{"error": ...} or {"cases": [[what `train` gives on each rank] for each of CASES]} of a script.

    seconds: how long its function may compute from one exchange to the next
    """
    world = connected.World(RANKS, seconds, graphs=True)
    try:
        return {"cases": _play(script, world, *CASES)}
    except BaseException as problem:
        return {"error": _error(problem, script, world, seconds)}


def _error(problem, script, world, seconds):
    if isinstance(problem, student_code.Endless):
        at = world.rank()
        other = world.lines[1 - at]
        where = "has ended" if other is None else f"waits in line {other}" if other else "has not begun"
        says = f"after {seconds} s rank {at} is still here, and rank {1 - at} {where}. Does every loop end?"
        return mistake(script, world.lines[at], says)
    if isinstance(problem, connected.ConnectedError):
        return mistake(script, next(filter(None, world.lines), None), str(problem))
    lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == script]
    lines += map(int, re.findall(rf'File "{re.escape(script)}", line (\d+)', str(problem)))  # inside of a tf.function
    line = problem.lineno if isinstance(problem, SyntaxError) else lines[-1] if lines else None
    return mistake(script, line, student_code.said(problem))


def network():
    """8 numbers in, 3 probabilities out."""
    import keras

    inputs, tied = keras.Input((8,)), keras.layers.Dense(8, "tanh", name="twice")
    frozen = keras.layers.Dense(8, "tanh", name="frozen", trainable=False)
    model = keras.Model(inputs, keras.layers.Dense(3, "softmax")(tied(tied(frozen(inputs)))))
    model.set_weights([*start()[0], *start()[1]])
    return model


def one_by_one(some, model, ahead):
    """The batches, one by one; `ahead` gets those that are taken before any weight of the model has changed."""
    start = model.get_weights()
    for batch in some:
        if all((a == b).all() for a, b in zip(start, model.get_weights(), strict=True)):
            ahead.append(batch)
        yield batch


def train(function, rank, k, momentum, steps=STEPS):
    """What the function has done on this rank: weights at the end, as a list; moved_frozen and ahead as in facts."""
    import keras

    model, optimizer, ahead = network(), keras.optimizers.SGD(RATE, momentum=momentum), []
    optimizer.build(model.trainable_variables)
    loss = keras.losses.SparseCategoricalCrossentropy()
    function(model, optimizer, loss, one_by_one(batches(rank)[:steps], model, ahead), k)
    weights = _flat([weight.numpy() for weight in model.trainable_variables]).tolist()
    pairs = zip(model.non_trainable_variables, start()[0], strict=True)
    moved = any((weight.numpy() != before).any() for weight, before in pairs)
    return {"weights": weights, "moved_frozen": bool(moved), "ahead": len(ahead)}
