"""What a student's `local_sgd` does on 2 ranks, beside what it should do, and beside what usual mistakes would do.

The ranks are played without Horovod. They begin with equal weights, and each has batches of its own. The network has a
layer that is not trained.
"""

from functools import cache

import numpy as np

from labs.checks.student_code import tried
from lessons import connected
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
NO_GRADIENT = "The tape recorded nothing that leads from the weights to the loss. What belongs inside its `with`?"
_random = np.random.default_rng(2)
IMAGES = _random.normal(size=(RANKS, STEPS, 5, 64)).astype("float32")  # 5 for each rank in each step
LABELS = _random.integers(0, 10, IMAGES.shape[:3])
START = small.begin(1)  # the weights with which all ranks begin


def facts(path):
    """What happened, a list with one dict for each of CASES. Functions run eagerly. Before that the cases of a script
    that cannot be played, as a judge yields them.

    Each has got: like, a list: "right", or else those of MISTAKES that give the same weights; equal: whether both ranks
    have the same weights at the end; moved_frozen: whether the layer changed that is not trained; ahead: how many
    batches were taken before the first step.
    """
    found = []
    for case in CASES:

        def program(world, function, case=case):
            return train(function, world.rank(), **case)

        _, by_rank = yield from connected.played(path, "local_sgd", RANKS, program)
        weights = np.array([rank["weights"] for rank in by_rank])
        like = ["right"] if alike(weights, trained(**case)) else []
        like = like or [name for name in MISTAKES if alike(weights, trained(**case, mistake=name))]
        moved = any(rank["moved_frozen"] for rank in by_rank)
        ahead = by_rank[0]["ahead"]
        found.append(case | {"like": like, "equal": alike(*weights), "moved_frozen": moved, "ahead": ahead})
    return found


def alone(path, graphs):
    """(whether the function is right on 1 rank, the kinds of its exchanges there) in the last of CASES; before that the
    cases of one that cannot be played. graphs: a `tf.function` is one, as with Horovod; else it runs eagerly."""
    world, case = connected.World(1, graphs=graphs), CASES[-1]
    function = yield from connected.defined(path, "local_sgd", world)
    try:
        with connected.placed(world), tried("1 rank"):
            (rank,) = world.play(lambda: train(function, 0, **case))
    except connected.ConnectedError as problem:
        yield True, str(problem)
    right = alike(np.array(rank["weights"]), trained(**case, mistake="never")[0])
    return right, [exchange.kind for exchange in world.exchanges]


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

    try:
        function(model, optimizer, keras.losses.SparseCategoricalCrossentropy(), one_by_one(), k)
    except ValueError as problem:
        if "No gradients provided" not in str(problem):
            raise
        raise connected.ConnectedError(NO_GRADIENT) from None
    moved = (model.non_trainable_variables[0].numpy() != np.eye(64)).any()
    return {"weights": weights().tolist(), "moved_frozen": bool(moved), "ahead": len(ahead)}
