"""Questions of 08_horovod_training. The six steps of the script: lessons.training_scripts."""

from functools import partial
from itertools import product

import numpy as np

from labs.checks.judging import judges
from labs.printed import several
from lessons import batch_scripts, connected, training_scripts
from lessons.forms import kind, value

value(
    "horovod.2",
    right=lambda before: (sum(before) / 2, sum(before) / 2),
    wrong=[
        (lambda before: (sum(before), ...), "This is the sum. An average divides it by the number of ranks."),
        ([lambda before: (before[0], ...), lambda before: (before[1], ...)], "This is one rank's. Both count alike."),
        (lambda before: (..., sum(before)), "A loss is a *mean* over all the images, not a sum. And its gradient?"),
    ],
    otherwise=(
        "Add the two numbers of the cell above, and divide by the number of ranks.",
        "The loss of all the images is the mean of the losses of the two halves. So are gradients.",
    ),
    tolerance=0.01,
)

value(
    "horovod.6",
    right=(1, 2),
    wrong=[
        ((..., 6), "No node has a GPU with this number, since each has 4. Start again at 0 on each node."),
        ([(0, 2), (2, 2)], "The local rank is right. Which node is it, if node 0 has ranks 0 to 3?"),
        ((1, 3), "Both counts begin at 0: the first rank of a node has local rank 0."),
    ],
    otherwise="Write ranks 0 to 7 in two rows of four, one row for each node, and find 6.",
)

for number, judge in enumerate(training_scripts.STEPS, 7):
    judges(f"horovod.{number}")(judge)

value(
    "horovod.14",
    right=(32, 8, "c"),
    wrong=[
        ((64, ..., ...), "This is what both ranks together take in a step. How many images does one take?"),
        ((128, ..., ...), "This would be weak scaling, on both ranks together. Here, they share a batch of 64."),
        ((32, 4, ...), "That is weak scaling: each step takes 128 images. How many does a step take here?"),
        ((32, 16, ...), "All ranks take a step together: count the images that both of them take in it."),
        ((32, 8, "a"), "What does step 4 of the script do to the rate on 2 ranks?"),
        ([(32, 8, "b"), (32, 8, "d")], "An update uses the images of all ranks: how many here, and on 1 rank?"),
    ],
    otherwise=(
        "The batch of 64 is for both ranks, and each takes an equal part of it.",
        "Divide the images of an epoch by those that both ranks take together in a step.",
        "Give the letter: a, b, c or d.",
    ),
)

judges("horovod.16")(partial(batch_scripts.judge, trains="ResNet50_horovod.py"))


# The student's own DistributedOptimizer


@judges("horovod.3")
def begin_equal(path):
    _, found = yield from connected.played(path, "begin_equal", 3, _begun)
    for rank, (_, after, trained) in enumerate(found):
        right = [np.array_equal(*pair) for pair in zip(after, found[0][0], strict=True)]
        wrong = [number for number, each in enumerate(right) if not each]
        frozen = wrong and not any(trained[number] for number in wrong)
        yield frozen, "The trained weights are those of rank 0, but those of a frozen layer, or moving means, are not."
        same = wrong and all(np.array_equal(other[wrong[0]], after[wrong[0]]) for _, other, _ in found)
        yield same, "All ranks have equal weights afterwards, but not those that rank 0 had before."
        yield wrong, f"With 3 ranks, some weights of rank {rank} still differ from those of rank 0. Do you set all?"


def _begun(world, begin):
    """(weights before, weights after, whether each is trained) of a small model on one rank."""
    import keras

    keras.utils.set_random_seed(world.rank())
    layers = [keras.Input((3,)), keras.layers.Dense(2, trainable=False), keras.layers.BatchNormalization()]
    model = keras.Sequential([*layers, keras.layers.Dense(1)])
    for variable in model.variables:
        variable.assign(variable + world.rank())
    before = model.get_weights()
    begin(model)
    trained = [any(each is weight for weight in model.trainable_weights) for each in model.weights]
    return before, model.get_weights(), trained


_SETTINGS = {"SGD": dict(learning_rate=0.1, momentum=0.9), "Adam": dict(learning_rate=0.1)}
_GRADIENTS = np.random.default_rng(7).normal(0, 1, (3, 3, 2, 4, 5))  # of each rank, in each step, of each weight
_near = partial(np.allclose, rtol=1e-4, atol=1e-5)


@judges("horovod.4")
def distributed(path):
    import keras

    for size, name in product((1, 2, 3), _SETTINGS):
        make = partial(getattr(keras.optimizers, name), **_SETTINGS[name])
        world, found = yield from connected.played(
            path, "distributed", size, lambda world, function, make=make: _stepped(function(make()), [world.rank()])
        )
        for problem, hint in _not_the_mean(np.array(found), make):
            yield problem, f"With {several(size, 'rank')} and {name}, {hint}"
        times = sum(exchange.values for exchange in world.exchanges) / _GRADIENTS[0].size
        more = f"each step exchanges {times:.3g} times as many values as the gradients contain"
        yield size > 1 and times > 1.01, f"With {size} ranks, the weights are right, but {more}."


def _stepped(optimizer, ranks, factor=1.0):
    """Weights after steps with the mean gradient of these ranks, times a factor."""
    import keras
    import tensorflow as tf

    if not hasattr(optimizer, "apply"):
        raise connected.ConnectedError(f"Your function returns {kind(optimizer)}: return an optimizer.")
    weights = [keras.Variable(np.ones((4, 5), "float32")) for _ in range(2)]
    for gradients in factor * _GRADIENTS[ranks].mean(axis=0):
        optimizer.apply([tf.constant(each, "float32") for each in gradients], weights)
    return np.array([weight.numpy() for weight in weights])


def _not_the_mean(found, make):
    """Cases of weights of each rank that are not those after steps with the mean gradient."""
    size, ranks = len(found), list(range(len(found)))
    if _near(found, _stepped(make(), ranks)):
        return
    yield np.all(found[0] == 1), "no weight has changed after 3 steps."
    yield size == 1, "the steps are not those of the optimizer that was given: was yours made from its settings?"
    own = np.array([_stepped(make(), [rank]) for rank in ranks])
    yield _near(found, own), "each rank uses its own gradient: nothing that was exchanged has reached its weights."
    for factor in (size, 1 / size):
        scaled = f"the gradient is {factor:.3g} times the mean of those of the ranks. Is it a sum, or divided twice?"
        yield _near(found, _stepped(make(), ranks, factor)), scaled
    yield not _near(found, found[0]), "the ranks end with different weights: are all gradients averaged?"
    averaged = "each rank takes its own step, and then you average the *weights*. What is to be averaged, and when?"
    yield _near(found[0], own.mean(axis=0)), averaged
    yield True, "all ranks agree, but their step is not that of the mean gradient: what do you average, and when?"
