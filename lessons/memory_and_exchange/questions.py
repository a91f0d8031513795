"""Judges of 25_memory_and_exchange. Scripts that exchange are played on ranks of one process."""

import traceback
from math import ceil, prod

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import close, near
from labs.checks.student_code import tried
from labs.printed import an
from lessons import connected


@judges("memory.8")
def loss_scale(scale):
    gradient = 1e-8
    wanted = next(2**power for power in range(60) if np.float16(gradient * 2**power) > 0)
    yield near(scale, wanted, 1e-9), None
    yield scale <= 0, "A scale is a factor above 0."
    yield np.isinf(scale), "This is infinite. In float16, 1e-8 is 0: do you divide by it there?"
    power = np.log2(float(scale))
    yield not near(power, round(power), 1e-9), f"{scale:g} is not a power of two. Only such a factor keeps all digits."
    yield (
        np.float16(gradient * float(scale)) == 0,
        f"np.float16({gradient:g} * {scale:g}) is still 0. Try the next powers of two.",
    )
    yield True, f"With {scale:g} it is not 0. Is there a smaller factor that works as well?"


@judges("memory.4", as_written=True)
def block(size):
    layers = 24
    whole = isinstance(size, int | np.integer)
    yield (
        not whole,
        "Give an int, as `round(...)` gives: a block consists of whole layers, and the next cell builds such blocks.",
    )
    kept = {each: layers / each + each for each in range(1, layers + 1)}
    yield size in kept and kept[size] == min(kept.values()), None
    yield (
        size == 1,
        "Blocks of 1 layer keep the input of every layer, which is nearly everything. Your own run shows this.",
    )
    yield (
        size == layers,
        "A single block keeps only one input, but the backward pass then holds the activations of all layers at once.",
    )
    yield size not in kept, f"There are {layers} layers, so a block has 1 to {layers} of them."
    yield (
        True,
        f"With blocks of {size}, memory holds 24 / {size} inputs and {size} activations: a sum of {kept[size]:.3g}. Is "
        "there a size with a smaller sum?",
    )


# Scripts whose exchange is played on ranks of one process


def _played(world, program):
    """What a program returns on each rank. An import of Horovod inside of its functions finds `world`, too."""
    with connected.placed(world):
        return world.play(program)


def _far(values, wanted):
    return len(values) != len(wanted) or any(
        np.shape(a) != np.shape(b) or not np.allclose(a, b, rtol=1e-4, atol=1e-6)
        for a, b in zip(values, wanted, strict=True)
    )


@judges("memory.5")
def accumulated(path):
    for size, passes in ((1, 1), (2, 3), (4, 2)):
        world = connected.World(size)
        function = yield from connected.defined(path, "accumulated", world)
        try:
            found = _played(world, lambda: _accumulate(world, function, passes))  # noqa: B023
        except connected.ConnectedError as problem:
            yield True, str(problem)
        except NameError as problem:
            if problem.name != "horovod":
                raise
            yield True, "This script imports Horovod under the name `hvd`: write `hvd` where notebook 22 has `horovod`."
        yield from _accumulated_wrong(found, world, passes)


_IMAGES = 12  # of each rank


def _ranks(size):
    return f"{size} rank{'s' * (size > 1)}"


def _passes(passes):
    return f"{passes} pass{'es' * (passes > 1)}"


def _gradient(images, labels):
    """Gradients of a mean over images: of a matrix and of a vector."""
    images, labels = np.asarray(images, np.float32), np.asarray(labels, np.float32)
    return [np.mean(images * labels[:, None, None], 0), np.mean(labels[:, None] * images[:, 0] ** 2, 0)]


def _share(rank):
    random = np.random.default_rng(rank)
    return random.normal(1, 1, (_IMAGES, 2, 3)).astype("float32"), random.integers(1, 10, _IMAGES)


def _accumulate(world, function, passes):
    """(what the function returns, images of each call of `gradient`) on one rank."""
    import tensorflow as tf

    taken = []

    def gradient(images, labels):
        taken.append(len(images))
        return [tf.constant(each) for each in _gradient(images, labels)]

    with tried(f"{_ranks(world.size())} and {_passes(passes)}"):
        return function(gradient, *_share(world.rank()), passes), taken


def _accumulated_wrong(found, world, passes):
    """Cases of what `accumulated` returned on all ranks that is not right."""
    size = world.size()
    whole = _gradient(*map(np.concatenate, zip(*map(_share, range(size)), strict=True)))
    how = f"With {_ranks(size)} and {_passes(passes)}"
    for rank, (values, taken) in enumerate(found):
        listed = isinstance(values, list | tuple)
        yield (
            not listed,
            f"{how} your function returns {an(type(values).__name__)}. Return a list with a gradient for each weight.",
        )
        yield (
            len(values) != len(whole),
            f"{how} your function returns a list of length {len(values)}, for {len(whole)} weights.",
        )
        values = [np.asarray(value) for value in values]
        if _far(values, whole):
            calls = f" You call `gradient` {len(taken)} times." if len(taken) != passes else ""
            yield True, f"{how} {_what_it_is(values, whole, rank, size, passes)}{calls}"
        if size > 1:  # a reduce-scatter and an all-gather, with uneven rows, are one exchange
            once = 2 * (size - 1) / size * sum(each.size for each in whole)
            sent = sum(exchange.sent() for exchange in world.exchanges) / once
            yield (
                sent > 1.3,
                f"{how} the result is right, but the ranks send {sent:.2g} times as much as in one exchange.",
            )
        yield (
            passes > 1 and max(taken) > _IMAGES // passes,
            f"{how} the result is right, but `gradient` gets {max(taken)} of {_IMAGES} images at once, which saves no "
            "memory.",
        )
        yield len(taken) != passes, f"{how} you call `gradient` {len(taken)} times."


def _what_it_is(values, whole, rank, size, passes):
    """The mistake that a wrong gradient shows."""
    own = _gradient(*_share(rank))
    parts = [[np.split(each, passes) for each in _share(other)] for other in range(size)]
    of_passes = [[_gradient(*of_pass)[0] for of_pass in zip(*of_rank, strict=True)] for of_rank in parts]
    by_pass = np.mean(of_passes, 0)  # of the first weight

    def times(factor, of=whole):
        return not _far(values, [factor * each for each in of])

    if size > 1 and (times(1, own) or times(passes, own)):
        return f"rank {rank} returns the gradient of its own images: the ranks exchange nothing."
    if passes > 1 and times(passes):
        return f"the gradient is {passes} times too large: you sum over the passes, but need the mean."
    if size > 1 and times(size):
        return f"the gradient is {size} times too large: you sum over the ranks, but need the mean."
    if times(size * passes):
        return f"the gradient is {size * passes} times too large: you sum over both passes and ranks."
    if times(1 / passes) or times(1 / size):
        return "the gradient is too small: you divide twice by the number of passes or of ranks."
    if times(passes / _IMAGES):
        return "you divide the gradient by the number of images, but `gradient` already returns a mean over images."
    if not _far(values[:1], [by_pass[-1]]):
        return "the gradient is that of the last pass: those before it are lost."
    if not _far(values[:1], [by_pass[0]]):
        return "the gradient is that of the first pass only."
    if passes > 2 and not _far(values[:1], [by_pass[:-1].mean(0)]):
        return "the gradient is that of all passes but the last."
    running = by_pass[0]
    for each in by_pass[1:]:
        running = (running + each) / 2
    if not _far(values[:1], [running]):
        return "the last pass counts for half of the gradient, the one before it for a quarter. All must count equally."
    return "the gradient is not that of the mean loss over all images."


_SHAPES = ((3, 5), (7,), (2, 2, 2), (1,))
_COUNT = sum(map(prod, _SHAPES))
_COPIES = 2  # of a share: the velocity, and the weights in float32 as mixed precision keeps them
_RATE, _MOMENTUM, _STEPS = 0.1, 0.9, 3


@judges("memory.6")
def sharded(path):
    import tensorflow as tf

    for size in (1, 2, 4):
        world = connected.World(size)
        optimizer = yield from connected.defined(path, "ShardedSGD", world)
        try:
            found = _played(world, lambda: _train(world, optimizer))  # noqa: B023
        except connected.ConnectedError as problem:
            yield True, str(problem)
        except (tf.errors.InvalidArgumentError, ValueError) as problem:
            yield from _does_not_fit(problem, world)
            raise
        yield from _sharded_wrong(found, world)


def _does_not_fit(problem, world):
    """Cases of an exception that a length brings about: one that the values exceed, or that the ranks cannot share."""
    how, called = f"With {_ranks(world.size())}", [step.name for step in traceback.extract_tb(problem.__traceback__)]
    yield (
        "flat" in called and "must be non-negative" in str(problem),
        f"{how}, you ask `flat` for fewer values than there are. A share that is rounded down leaves some without a "
        "rank.",
    )
    scattered = [each.brought[0][0] for each in world.exchanges if each.kind == "reducescatter"]
    uneven = [len(vector) for vector in scattered if len(vector) % world.size()]
    yield (
        uneven,
        f"{how}, `reducescatter` gets {uneven[0] if uneven else 0} values, so not all shares have the same size, and "
        "the next shapes do not fit. Which length must the vector have?",
    )


def _gradients(rank, step):
    random = np.random.default_rng((rank, step))
    return [random.normal(0, 1, shape).astype("float32") for shape in _SHAPES]


def _train(world, optimizer):
    """(weights after each step, {attribute: sizes of the arrays that the optimizer keeps in it}) of one rank."""
    import keras
    import tensorflow as tf

    start = np.random.default_rng(0)
    weights = [keras.Variable(start.normal(0, 1, shape).astype("float32")) for shape in _SHAPES]
    after = []
    with tried(_ranks(world.size())):
        made = optimizer(weights, _RATE, _MOMENTUM)
        for step in range(_STEPS):
            made.step([tf.constant(gradient) for gradient in _gradients(world.rank(), step)])
            after.append([weight.numpy() for weight in weights])
    return after, {name: _kept(value, weights) for name, value in vars(made).items()}


def _kept(value, weights):
    """Sizes of the arrays and variables that an object holds, without the weights themselves."""
    if isinstance(value, dict | list | tuple):
        parts = value.values() if isinstance(value, dict) else value
        return [size for each in parts for size in _kept(each, weights)]
    if hasattr(value, "variables"):  # an optimizer of Keras
        return _kept(list(value.variables), weights)
    if any(value is weight for weight in weights) or "float" not in str(getattr(value, "dtype", "")):
        return []
    return [prod(value.shape)]


def _sgd(size, momentum=_MOMENTUM, rate=_RATE, reduce=np.mean, of=None):
    """Weights after each step of the optimizer that is not sharded; of: the rank whose gradient alone is taken."""
    start = np.random.default_rng(0)
    weights = [start.normal(0, 1, shape).astype("float32") for shape in _SHAPES]
    velocity, after = [np.zeros(shape) for shape in _SHAPES], []
    for step in range(_STEPS):
        by_rank = [_gradients(rank, step) for rank in (range(size) if of is None else [of])]
        gradients = [reduce(each, axis=0) for each in zip(*by_rank, strict=True)]
        velocity = [momentum * v - rate * g for v, g in zip(velocity, gradients, strict=True)]
        weights = [w + v for w, v in zip(weights, velocity, strict=True)]
        after.append(weights)
    return after


def _sharded_wrong(found, world):
    """Cases of weights, state or traffic of a sharded optimizer that are not right."""
    size, wanted = world.size(), _sgd(world.size())
    how = f"With {_ranks(size)}"
    for step in range(_STEPS):
        for rank, (after, _) in enumerate(found):
            if _far(after[step], wanted[step]):
                yield True, f"{how}, after step {step + 1}, " + _what_differs(found, wanted, rank, step, size)
    if size == 1:
        return
    sums = [{name: sum(sizes) for name, sizes in kept.items() if sizes} for _, kept in found]
    kept = max(sums, key=lambda each: sum(each.values()))
    most, least = (reduce(sum(each.values()) for each in sums) for reduce in (max, min))
    where = ", ".join(f"{name}: {count}" for name, count in kept.items())
    keeps = f"{how} the weights are right, but a rank keeps {most} numbers for {_COUNT} weights ({where})"
    largest = max((size for _, kept in found for sizes in kept.values() for size in sizes), default=0)
    yield largest >= _COUNT, keeps + ", which saves nothing."
    yield most > least + _COPIES * len(_SHAPES), f"{keeps}, another {least}. Are the shares as equal as they can be?"
    yield most > _COPIES * ceil(_COUNT / size) + len(_SHAPES), keeps + ". What does it keep besides its share?"
    yield (
        {exchange.kind for exchange in world.exchanges} <= {"allreduce", "grouped_allreduce"} and most < _COUNT // size,
        f"{how} the weights are right, but each rank gets the whole gradient, and no weights from the others. So each "
        "rank updates all the weights, and must keep the whole of v somewhere.",
    )
    sent = sum(exchange.sent() for exchange in world.exchanges) / (2 * (size - 1) / size * _COUNT * _STEPS)
    yield (
        sent > 1.3,
        f"{how} the weights are right, but the ranks send {sent:.2g} times as much as in an all-reduce. Which "
        "collective gives a rank its own part of the mean, and no more?",
    )


def _what_differs(found, wanted, rank, step, size):
    """The mistake that wrong weights show."""
    got = found[rank][0][step]
    if any(_far(got, after[step]) for after, _ in found):
        return f"rank {rank} has different weights from the rest. Do all ranks get all parts, in the same order?"
    same = {
        "the weights follow the sum of all gradients, but should follow their mean.": _sgd(size, reduce=np.sum),
        "the weights are those without momentum: the velocity is lost.": _sgd(size, momentum=0.0),
        "the weights are those for a rate of 1. Where do you apply the rate?": _sgd(size, rate=1.0),
        "no weight has changed. Do you assign what the ranks gathered?": _sgd(size, rate=0.0),
        "the weights move in the opposite direction: look at the signs of v and of the gradient.": _sgd(
            size, rate=-_RATE
        ),
        "the steps are too small: you divide by the number of ranks, but the collective returns a mean.": _sgd(
            size, rate=_RATE / size
        ),
    }
    for text, weights in same.items():
        if not _far(got, weights[step]):
            return text
    flat, right, start, *alone = (
        np.concatenate([np.ravel(each) for each in weights])
        for weights in (got, wanted[step], _sgd(size, rate=0.0)[0], *(_sgd(size, of=r)[step] for r in range(size)))
    )

    def equal(a, b):
        return np.isclose(a, b, rtol=1e-4, atol=1e-6)

    if np.any([equal(flat, own) for own in alone], axis=0).all():
        return "each weight follows the gradient of one rank alone: the ranks average nothing."
    if step == 0 and equal((flat - right + start)[:, None], start).any(1).mean() > 0.8:
        return "the update is right, but you add it to the wrong weights. Where does the share of a rank begin?"
    if equal(flat * size, right).all():
        return "the new weights are divided by the number of ranks. Which collective puts parts one after the other?"
    if step == 0 and equal(flat, start - _RATE * _mean_of_other_parts(size)).all():
        return (
            "each rank contributes a different part of its gradient to the mean, which needs the same part from every "
            "rank."
        )
    wrong = np.flatnonzero(~equal(flat, right))
    if len(wrong) < _COUNT:
        return (
            f"{len(wrong)} of {_COUNT} weights are wrong, numbers {wrong[0]} to {wrong[-1]}. Whose share are they, and "
            "where do you put them back?"
        )
    return "no weight has the value that the formula gives. Do you multiply v by the momentum, and apply the rate once?"


def _mean_of_other_parts(size):
    """The mean where each rank brings its own part of the first gradient, repeated for every rank."""
    share = ceil(_COUNT / size)
    whole = [np.concatenate([np.ravel(each) for each in _gradients(rank, 0)]) for rank in range(size)]
    parts = [np.resize(np.pad(each, (0, share)), (size, share))[rank] for rank, each in enumerate(whole)]
    return np.tile(np.mean(parts, 0), size)[:_COUNT]


@judges("memory.7")
def zero_1(size):
    weights, devices = 1.5e9, 8
    yield close(size, weights * (4 + 4 + 8 / devices)), None
    yield (
        any(near(size, weights * (4 + 4 + 8 / devices) / unit) for unit in (1e9, 2**30)),
        "This is in GB or GiB. Give the number of bytes.",
    )
    yield (
        near(size, 13.5 * 2**30),
        "This is 2**30 / 10**9 times too large. 1.5 billion is 1.5e9, and 4 bytes are the number 4.",
    )
    yield near(size, weights * 16), "Here nothing is sharded. Of which part does a device keep only 1/8?"
    yield near(size, weights * 16 / devices), "Here everything is divided, as in ZeRO-3. ZeRO-1 shards only one part."
    yield (
        near(size, weights * (4 + 12 / devices)),
        "This is 5.5 bytes per weight: ZeRO-2, which divides the gradients, too, or mixed precision. Here it is ZeRO-1 "
        "in float32.",
    )
    yield near(size, weights * (8 + 4 / devices)), "This is momentum's state. Adam keeps two numbers for each weight."
    yield (
        near(size, weights * 8 / devices),
        "This is the share of the optimizer's state alone, without weights and gradients.",
    )
    yield True, "A weight, its gradient and Adam's two numbers take up 4 bytes each. Which of them are divided by 8?"
