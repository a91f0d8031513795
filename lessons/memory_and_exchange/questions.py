"""Questions of 25_memory_and_exchange. Scripts that exchange are played on ranks of one process."""

from functools import partial
from math import ceil, prod

import numpy as np

from labs.checks.judging import judges
from lessons import connected
from lessons.forms import value


@judges("memory.4", as_written=True)  # the next cell goes on with it
def block(size):
    yield not isinstance(size, int | np.integer), "Give an int, as `round` gives: a block has whole layers."
    yield size == 5, None
    yield size == 1, "Blocks of 1 layer keep the input of every layer, which is nearly everything, as in your own run."
    yield size == 24, "A single block keeps only one input. But how many activations does its backward pass hold?"
    yield not 0 < size < 24, "There are 24 layers, so a block has 1 to 24 of them."
    seen = f"24 / {size} inputs and {size} activations: a sum of {24 / size + size:.3g}"
    yield True, f"With blocks of {size}, memory holds {seen}. Is there a size with a smaller sum?"


def _alike(values, wanted):
    """Whether there are as many arrays as wanted, of the same shapes and with the same values up to rounding."""
    return len(values) == len(wanted) and all(
        np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-4, atol=1e-6)
        for one, other in zip(values, wanted, strict=True)
    )


def _sent(world, values):
    """What the ranks send, divided by what an all-reduce of so many values sends."""
    once = 2 * (world.size() - 1) / world.size() * values
    return sum(exchange.sent() for exchange in world.exchanges) / max(once, 1)


_MOST = 1.3  # times as much as is sent in one exchange, since its rows may be uneven
_IMAGES = 12  # of each rank


@judges("memory.5")
def accumulated(path):
    for size, passes in ((1, 1), (2, 3), (4, 2)):
        program, beside = partial(_accumulate, passes), f" and passes = {passes}"
        world, found = yield from connected.played(path, "accumulated", size, program, beside)
        whole = _gradient_of_all(size)
        how = f"With hvd.size() = {size} and passes = {passes},"
        for values, taken in found:
            listed = isinstance(values, list | tuple) and len(values) == len(whole)
            yield not listed, f"{how} your function does not return a list with a gradient for each weight."
            parts = [_IMAGES // passes] * passes
            yield taken != parts, f"{how} `gradient` gets {taken} of {_IMAGES} images. Are these equal parts of them?"
            yield size > 1 and not world.exchanges, f"{how} the ranks exchange nothing."
            factors = 1, passes, size, size * passes, 1 / passes, 1 / size, passes / _IMAGES
            factor = next((each for each in factors if _alike(values, [each * right for right in whole])), None)
            last = factor is None and _alike(values, _gradient_of_all(size, -parts[0]))
            yield last, f"{how} the gradient is that of the last pass: those before it are lost."
            yield factor is None, f"{how} the gradient is not that of the mean loss over all images."
            yield factor != 1, f"{how} the gradient is {factor:.2g} times the right one. Which sum or mean is wrong?"
        sent = _sent(world, sum(each.size for each in whole))
        yield sent > _MOST, f"{how} the gradient is right, but the ranks send {sent:.2g} times what one exchange needs."


def _gradient(images, labels):
    """Gradients of a mean over images: of a matrix and of a vector."""
    images, labels = np.asarray(images, np.float32), np.asarray(labels, np.float32)
    return [np.mean(images * labels[:, None, None], 0), np.mean(labels[:, None] * images[:, 0] ** 2, 0)]


def _share(rank):
    random = np.random.default_rng(rank)
    return random.normal(1, 1, (_IMAGES, 2, 3)).astype("float32"), random.integers(1, 10, _IMAGES)


def _gradient_of_all(size, begin=0):
    """The gradient of the mean loss over the images of all ranks, or over those of each from a number on."""
    images, labels = zip(*map(_share, range(size)), strict=True)
    return _gradient(*(np.concatenate([each[begin:] for each in of]) for of in (images, labels)))


def _accumulate(passes, world, function):
    """(what the function returns, images of each call of `gradient`) on one rank."""
    import tensorflow as tf

    taken = []

    def gradient(images, labels):
        taken.append(len(images))
        return [tf.constant(each) for each in _gradient(images, labels)]

    return function(gradient, *_share(world.rank()), passes), taken


_SHAPES = ((3, 5), (7,), (2, 2, 2), (1,))
_COUNT = sum(map(prod, _SHAPES))
_COPIES = 2  # of a share: the velocity, and the weights in float32 as mixed precision keeps them
_RATE, _MOMENTUM, _STEPS = 0.1, 0.9, 3


@judges("memory.6")
def sharded(path):
    for size in (1, 2, 4):
        world, found = yield from connected.played(path, "ShardedSGD", size, _train, f" and {_COUNT} weights")
        how, kinds = f"With hvd.size() = {size},", {exchange.kind for exchange in world.exchanges}
        for step, wanted in enumerate(_unsharded(size)):
            after = [weights[step] for weights, _ in found]
            if not _alike(after, [wanted] * size):
                reduced = size == 1 or any("reduce" in kind for kind in kinds)
                yield from _wrong_weights(f"{how} after step {step + 1},", after, wanted, step, reduced)
        if size == 1:
            continue
        how += " the weights are right, but"
        none = kinds <= {"allreduce", "grouped_allreduce"}
        yield none, f"{how} no rank gets weights from the others: so each updates all of them, with the whole of v."
        sent, most = _sent(world, _COUNT * _STEPS), max(kept for _, kept in found)
        seen = f"the ranks send {sent:.2g} times as much as in an all-reduce"
        yield sent > _MOST, f"{how} {seen}. Which collective gives a rank its own part of the mean, and no more?"
        seen = f"a rank keeps {most} numbers for {_COUNT} weights"
        yield most > _COPIES * ceil(_COUNT / size) + len(_SHAPES), f"{how} {seen}. What does it keep besides its share?"


def _wrong_weights(when, after, wanted, step, reduced):
    """Cases of weights of all ranks that are not right. reduced: whether the ranks reduce anything"""
    yield not reduced, f"{when} the weights follow the gradients of one rank alone. Which collective gives their mean?"
    same = _alike(after, after[:1] * len(after))
    yield not same, f"{when} the ranks have different weights. Do all get all parts, in the same order?"
    yield step > 0, f"{when} the weights are wrong for the first time. What must be kept from one step to the next?"
    moved, right = after[0] - _flat(_values(9)), wanted - _flat(_values(9))
    factor = moved @ right / (right @ right)
    seen = f"each weight has changed by {factor:.2g} times what it should"
    yield _alike([moved], [factor * right]), f"{when} {seen}. Which factor or sign is wrong?"
    wrong = np.flatnonzero(~np.isclose(after[0], wanted, rtol=1e-4, atol=1e-6))
    seen = f"{len(wrong)} of {_COUNT} weights are wrong, numbers {wrong[0]} to {wrong[-1]}"
    yield True, f"{when} {seen}. Where does a rank's share begin, and where does it end?"


def _values(*seed):
    """An array of each shape, with values of its own."""
    random = np.random.default_rng(seed)
    return [random.normal(0, 1, shape).astype("float32") for shape in _SHAPES]


def _flat(arrays):
    return np.concatenate([np.ravel(each) for each in arrays])


def _unsharded(size):
    """The weights after each step of an optimizer that is not sharded, in one vector."""
    weights, velocity = _flat(_values(9)), 0
    for step in range(_STEPS):
        mean = np.mean([_flat(_values(rank, step)) for rank in range(size)], axis=0)
        velocity = _MOMENTUM * velocity - _RATE * mean
        weights = weights + velocity
        yield weights


def _train(world, optimizer):
    """(weights after each step, in one vector; how many numbers the optimizer keeps besides them) of one rank."""
    import keras
    import tensorflow as tf

    weights, after = [keras.Variable(each) for each in _values(9)], []
    made = optimizer(list(weights), _RATE, _MOMENTUM)
    for step in range(_STEPS):
        made.step([tf.constant(gradient) for gradient in _values(world.rank(), step)])
        after.append(_flat([weight.numpy() for weight in weights]))
    kept = tf.nest.flatten(vars(made))
    kept += [variable for each in kept if isinstance(each, keras.Optimizer) for variable in each.variables]
    arrays = [each for each in kept if "float" in str(getattr(each, "dtype", ""))]
    return after, sum(prod(each.shape) for each in arrays if not any(each is weight for weight in weights))


value(
    "memory.7",
    right=1.5e9 * (4 + 4 + 8 / 8),
    wrong=[
        (1.5e9 * 16, "Here nothing is sharded. Of which part does a device keep only 1/8?"),
        (1.5e9 * 16 / 8, "Here everything is divided, as in ZeRO-3. ZeRO-1 shards only one part."),
        (1.5e9 * (4 + 12 / 8), "These are 5.5 bytes for each weight: ZeRO-2, which divides the gradients, too."),
        (1.5e9 * (8 + 4 / 8), "This is momentum's state. Adam keeps two numbers for each weight."),
        (1.5e9 * 8 / 8, "This is a share of the optimizer's state alone, without weights and gradients."),
        (2**30 * 13.5, "This would be right for 1.5 * 2**30 weights. How many are 1.5 billion?"),
    ],
    otherwise="A weight, its gradient and Adam's two numbers take up 4 bytes each. Which of them are divided by 8?",
)

value(
    "memory.8",
    right=4,
    wrong=[
        ([2**power for power in range(-3, 2)], "The gradient is still 0 then. Try the next powers of two."),
        ([2**power for power in range(3, 40)], "The gradient is not 0 then. Is there a smaller factor that works?"),
    ],
    otherwise=lambda scale: f"{scale:g} is not a power of two. Only such a factor keeps all digits.",
)
