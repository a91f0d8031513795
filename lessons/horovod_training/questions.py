"""Judges of 08_horovod_training. The six steps of the script: lessons.training_scripts."""

from math import prod

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import near
from labs.checks.student_code import tried
from lessons import batch_scripts, connected, training_scripts


@judges("horovod.2")
def average(after, whole, before):
    mean, total = sum(before) / 2, sum(before)
    yield near(after, total) and not near(mean, total), "This is the sum. An average divides it by the number of ranks."
    yield any(near(after, each) for each in before), "This is the gradient of one rank. Both ranks count alike."
    yield not near(after, mean), "Add the two numbers of the cell above, and divide by the number of ranks."
    yield (
        near(whole, total),
        "A loss is a *mean* over images. What does that make of the gradients of two equal halves?",
    )
    yield (
        not near(whole, mean),
        "The loss of all the images is the mean of the losses of the two halves. So are gradients.",
    )


@judges("horovod.6")
def place(node, local):
    yield local == 6, "No node has a GPU with this number, since each has 4. Start again at 0 on each node."
    yield (
        (node, local) in ((0, 2), (2, 2)),
        "The local rank is right. Which node is it, if the first one is node 0 and has ranks 0 to 3?",
    )
    yield (node, local) == (2, 1), "The two numbers are swapped: first the node, then the local rank."
    yield node == 1 and local == 3, "Both counts begin at 0: the first rank of a node has local rank 0."
    yield (node, local) != (1, 2), "Write ranks 0 to 7 in two rows of four, one row for each node, and find 6."


for number, judge in enumerate(training_scripts.STEPS, 7):
    judges(f"horovod.{number}")(judge)


@judges("horovod.14")
def strong(images, steps, updates):
    yield images == 64, "This is the number of images that both ranks together take in a step. How many does one take?"
    yield images == 128, "This would be weak scaling on both ranks together. Here, both ranks share a batch of 64."
    yield not near(images, 32), "The batch of 64 is for both ranks, and each takes an equal part of it."
    yield steps == 4, "That is weak scaling: each step takes 128 images. How many does a step take here?"
    yield steps == 16, "All ranks take a step together: count the images that both of them take in it."
    yield steps != 8, "Divide the images of an epoch by those that both ranks take together in a step."
    letter = str(updates).strip("()., ").lower()[:1]
    yield (
        letter == "a",
        "The images and the steps are the same. But what does step 4 of the script do to the rate on 2 ranks?",
    )
    yield letter == "b", "That is weak scaling."
    yield (
        letter == "d",
        "An update uses the images of all ranks. How many are there here, and how many in the run on 1 rank?",
    )
    yield letter != "c", f"{str(updates)[:20]!r} is not one of the choices: a, b, c, d."


@judges("horovod.16")
def batch_script(path):
    yield from batch_scripts.judge(path, trains="ResNet50_horovod.py")


# The student's own DistributedOptimizer


@judges("horovod.3")
def begin_equal(path):
    for size in (1, 3):
        world = connected.World(size)
        function = yield from connected.defined(path, "begin_equal", world)
        try:
            found = world.play(lambda: _begun(world, function))  # noqa: B023
        except connected.ConnectedError as problem:
            yield True, str(problem)
        yield from _unequal(found, size)


def _unequal(found, size):
    """Cases of weights that are not those of rank 0."""
    how, wanted = f"With {size} ranks,", found[0][0]
    wrong = [
        (rank, number, trained[number], np.array_equal(new, before[number]))
        for rank, (before, after, trained) in enumerate(found)
        for number, new in enumerate(after)
        if not np.array_equal(new, wanted[number])
    ]
    if not wrong:
        return
    yield size == 1, "A single rank is rank 0, so nothing should change. Your function changes its weights."
    for other in range(1, size):
        same = all(np.array_equal(a, b) for _, after, _ in found for a, b in zip(after, found[other][0], strict=True))
        yield same, f"{how} all ranks have the weights of rank {other} afterwards, not those of rank 0."
    yield (
        not any(trained for _, _, trained, _ in wrong),
        f"{how} the trained weights are equal, but those of a frozen layer, or moving means, are not.",
    )
    rank, number, _, before = wrong[0]
    yield before, f"{how} some weights of rank {rank} have not changed."
    equal = all(np.array_equal(after[number], found[0][1][number]) for _, after, _ in found)
    yield equal, f"{how} all ranks have equal weights afterwards, but they are not those of rank 0."
    yield True, f"{how} some weights of rank {rank} are neither its own nor those of rank 0."


def _begun(world, function):
    """(weights before, weights after, whether each is trained) of a small model on one rank."""
    import keras

    keras.utils.set_random_seed(world.rank())
    layers = [keras.Input((3,)), keras.layers.Dense(2, trainable=False), keras.layers.BatchNormalization()]
    model = keras.Sequential([*layers, keras.layers.Dense(1)])
    for variable in model.variables:
        variable.assign(variable + world.rank())
    before = model.get_weights()
    with tried(f"{world.size()} ranks"):
        function(model)
    trained = [any(each is weight for weight in model.trainable_weights) for each in model.weights]
    return before, model.get_weights(), trained


_SHAPES, _STEPS = ((3, 4), (4,), (1,)), 3
_SETTINGS = {
    "SGD": lambda optimizers: optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda optimizers: optimizers.Adam(0.1),
    "SGD with clipnorm": lambda optimizers: optimizers.SGD(0.1, clipnorm=0.5),
}


@judges("horovod.4")
def distributed(path):
    import keras

    for size in (1, 2, 3):
        for name, make in _SETTINGS.items():
            world = connected.World(size)
            function = yield from connected.defined(path, "distributed", world)
            try:
                found = world.play(lambda: _stepped(world, function(make(keras.optimizers))))  # noqa: B023
            except connected.ConnectedError as problem:
                yield True, str(problem)
            wanted, whole = _alone(make, size), sum(map(prod, _SHAPES))
            sent = sum(exchange.values for exchange in world.exchanges) / _STEPS
            for rank, after in enumerate(found):
                if not _equal(after, wanted):
                    how = f"With {size} rank{'s' * (size > 1)} and {name}, "
                    yield True, how + _what_it_does(found, rank, make, size, sent / whole)
            times = f"each step exchanges {sent / whole:.3g} times as many values as the gradients contain"
            yield size > 1 and sent > 1.01 * whole, f"With {size} ranks, the weights are right, but {times}."


def _gradients_of(rank, number):
    random = np.random.default_rng((7, rank, number))
    return [random.normal(0, 1 + rank, shape).astype("float32") for shape in _SHAPES]


def _stepped(world, optimizer):
    """Weights after the steps of one rank."""
    import keras
    import tensorflow as tf

    weights = [keras.Variable(np.ones(shape, "float32")) for shape in _SHAPES]
    with tried(f"{world.size()} ranks"):
        for number in range(_STEPS):
            optimizer.apply([tf.constant(each) for each in _gradients_of(world.rank(), number)], weights)
    return [weight.numpy() for weight in weights]


def _alone(make, size, factor=1.0, ranks=None):
    """Weights after the same steps in one process, with the mean gradient times a factor; ranks: whose gradients."""
    import keras

    optimizer = make(keras.optimizers)
    weights = [keras.Variable(np.ones(shape, "float32")) for shape in _SHAPES]
    for number in range(_STEPS):
        by_rank = [_gradients_of(rank, number) for rank in (range(size) if ranks is None else ranks)]
        optimizer.apply([factor * np.mean(each, axis=0) for each in zip(*by_rank, strict=True)], weights)
    return [weight.numpy() for weight in weights]


def _equal(values, wanted):
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(values, wanted, strict=True))


def _momentum_averaged(make, size):
    """Weights of each rank after the same steps, each by its own gradients, with momentum averaged after each step."""
    import keras

    own = [make(keras.optimizers) for _ in range(size)]
    weights = [[keras.Variable(np.ones(shape, "float32")) for shape in _SHAPES] for _ in range(size)]
    for number in range(_STEPS):
        for rank, optimizer in enumerate(own):
            optimizer.apply(_gradients_of(rank, number), weights[rank])
        for same in zip(
            *(optimizer.variables[2:] for optimizer in own), strict=True
        ):  # after the iterations and the rate
            mean = np.mean([each.numpy() for each in same], axis=0)
            for each in same:
                each.assign(mean)
    return [[weight.numpy() for weight in each] for each in weights]


def _what_it_does(found, rank, make, size, sent):
    """Which mistake wrong weights show. sent: values exchanged in a step, in those of the gradients."""
    got = found[rank]
    if _equal(got, [np.ones(shape) for shape in _SHAPES]):
        return f"no weight of rank {rank} has changed after {_STEPS} steps."
    if size == 1:
        return "the steps are not those of the optimizer that was given: was yours made from its settings?"
    own = [_alone(make, size, ranks=[other]) for other in range(size)]
    if all(_equal(each, own[0]) for each in found):
        return "all ranks use the gradient of rank 0, and the gradients of the others are lost."
    if _equal(got, own[rank]):
        return f"rank {rank} uses its own gradient: nothing that was exchanged has reached its weights."
    if _equal(got, _alone(make, size, factor=size)):
        return f"the weights are those of a gradient {size} times too large: this is the sum, and you need the mean."
    if _equal(got, _alone(make, size, factor=1 / size)):
        return f"the weights are those of a gradient {size} times too small: did you divide once too often?"
    if all(map(_equal, found, _momentum_averaged(make, size))):
        return "each rank uses its own gradient, and you average the *momentum*. The weights drift apart all the same."
    if 0 < sent < 0.99:
        return f"only {sent:.0%} of the gradients' values are exchanged: for the rest, each rank uses its own."
    if any(not _equal(got, other) for other in found):
        return f"rank {rank} has different weights from the others after {_STEPS} steps."
    mean = [np.mean(each, axis=0) for each in zip(*own, strict=True)]
    if _equal(got, mean):
        return (
            "each rank takes its own step, and then you average the *weights*. Average the gradients before the step."
        )
    return "all ranks agree, but their step is not that of the mean gradient: what do you average, and when?"
