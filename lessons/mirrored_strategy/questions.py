"""Judges of 03_mirrored_strategy."""

import re

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import called, close, near
from labs.checks.student_code import tried


@judges("mirrored.2")
def plain(count):
    yield count == 4, "That is how many devices there are in total. Count only those that `plain.device` names."
    yield count == 0, "A variable is always stored somewhere: print `plain.device`."
    yield count != 1, "Count the devices that the output above names for this one variable."


@judges("mirrored.3")
def mirrored(variable):
    import tensorflow as tf

    copies = getattr(variable, "values", None)
    if not isinstance(copies, tuple | list):
        if isinstance(variable, tf.Variable):
            yield True, f"This variable has one copy, on {variable.device[-5:]}. Which block must you create it inside?"
        yield (
            True,
            f"Your value is of type {type(variable).__name__}, not tf.Variable. Create a variable inside the scope.",
        )
    devices = {getattr(copy, "device", None) for copy in copies}
    places = "1 device" if len(devices) == 1 else f"{len(devices)} devices"
    yield len(devices) < 4, f"Its copies are on {places}, but `strategy` has 4. In which scope did you create it?"
    yield (
        variable.shape != (3,),
        f"The copies are there, but the shape is {tuple(variable.shape)}: create it from [1.0, 2.0, 3.0].",
    )
    yield (
        any([float(x) for x in copy] != [1.0, 2.0, 3.0] for copy in copies),
        "The copies are there, but they do not contain the numbers 1.0, 2.0, 3.0.",
    )


@judges("mirrored.4")
def local_batch(sizes):
    sizes = [int(s) for s in sizes] if hasattr(sizes, "__len__") else [int(sizes)]
    yield set(sizes) == {4}, None
    yield set(sizes) == {16}, "16 is the global batch. Look at what each replica received in the output."
    yield set(sizes) == {64}, "The batch is not multiplied by the number of replicas: the replicas share it."
    yield True, "Divide the global batch by the number of replicas, or read the sizes in the table above."


@judges("mirrored.5")
def scaled_loss(function):
    losses = np.array([1.0, 2.0, 3.0, 6.0], np.float32)  # of one replica out of 4, each with 4 images
    value = np.asarray(called(function, losses, 16)[0], float)
    yield value.shape, f"For 4 losses your function gives an array of shape {value.shape}: return one number."
    if np.isclose(value, losses.sum() / 16):
        yield np.isclose(float(function(losses[:3], 24)), losses[:3].sum() / 24), None
        yield (
            True,
            "Right for 4 losses and a batch of 16, but wrong for 3 losses and a batch of 24. Use both arguments.",
        )
    yield (
        np.isclose(value, losses.mean()),
        "This is the mean over the replica's own images. Summed over K replicas, the gradient becomes K times "
        "too large. By the size of which batch must you divide the sum?",
    )
    yield (
        np.isclose(value, losses.sum()),
        "You do not divide this sum at all, so the gradient would grow with the batch.",
    )
    yield np.isclose(value, losses.mean() / 16), "You divide twice: `mean` has already divided by the local batch."
    yield True, "Sum the losses of the replica's images, then divide once. What must you divide by?"


@judges("mirrored.6")
def copies(function):
    same, apart = [np.array([[1.0, -2.0], [0.5, 0.0]])] * 4, np.array([[3.0, -4.0], [0.0, 0.0]])
    value, changed = called(function, same)
    yield float(value) != 0.0, "Your function does not give 0 for equal copies. Compare each copy with the first one."
    factors = [(0, 1, 0.25, 0.5), (0, 0.5, 1, 0.25), (0, 0.25, 0.5, 1)]  # which copy is farthest from the first
    trials = [[same[0] + sign * factor * apart for factor in each] for sign in (1, -1) for each in factors]
    got = [float(called(function, trial)[0]) for trial in trials]
    if np.allclose(got, 4.0):
        yield changed, changed
        one_more = [*trials[0], same[0] + 2 * apart]
        counts = {len(trial): float(called(function, trial)[0]) for trial in (one_more, same[:2])}
        yield np.isclose(counts[5], 8) and counts[2] == 0, None
        yield (
            True,
            "Right for four copies, but wrong for other numbers of copies. Compare every copy with the first one.",
        )
    yield np.allclose(got, 5.0), "This is the length of a difference. Return the largest single entry instead."
    yield (
        not np.allclose(got[:3], got[3:]),
        "A larger copy and a smaller one must not cancel each other out: take the absolute difference.",
    )
    missed = [place for place, value in enumerate(got[:3], 1) if value < 3.9]
    if missed and len(missed) < 3:
        yield True, f"Where copy {missed[0]} (counted from 0) is farthest from the first one, your result is too small."
    yield True, "Take the largest absolute difference over all copies and all their entries."


@judges("mirrored.7")
def replicas_step(function):
    start = np.array([[1.0, -2.0, 0.5], [4.0, 0.0, 1.0]])
    for count, same, rate in ((4, True, 0.5), (2, True, 0.25), (3, False, 0.5)):
        copies = [start + (0 if same else number**2) for number in range(count)]
        shares = [(np.full((2, 2), number + 1.0), np.array([number, 2 * number])) for number in range(count)]
        seen = []

        def gradient(weights, images, labels, seen=seen):
            seen.append((np.mean(weights), np.mean(images), len(images)))
            return 0.1 * weights + np.mean(images) ** 2 + np.outer([1.0, -1.0], np.mean(labels) * np.array([1, 2, 3]))

        with tried(f"{count} replicas"):
            value, changed = called(lambda a, b: function(a, b, gradient, rate), copies, shares)  # noqa: B023
        asked = [list(each) for each in seen]
        if not isinstance(value, list | tuple | np.ndarray) or len(value) != count:
            many = f"{len(value)} of them" if isinstance(value, list | tuple | np.ndarray) else type(value).__name__
            yield True, f"For {count} replicas your function returns {many}: return a list of {count} copies."
        for shape in map(np.shape, value):
            yield shape != start.shape, f"A copy of shape {start.shape} has the shape {shape} after the step."
        own = [gradient(copy, *share) for copy, share in zip(copies, shares, strict=True)]
        all_of, apart = (
            f"With {count} {'equal' if same else 'different'} copies",
            [a - b for a, b in zip(copies, value, strict=True)],
        )
        mean = np.mean(own, axis=0)
        if all(np.allclose(each, rate * mean) for each in apart):
            yield changed, f"The step is right. {changed}"
            yield (
                len(asked) > count,
                f"The step is right, but for {count} replicas `gradient` was called {len(asked)} times.",
            )
            continue

        def each_is(*wanted, apart=apart):
            return all(np.allclose(a, b) for a, b in zip(apart, wanted * (len(apart) // len(wanted)), strict=True))

        yield (
            each_is(*(rate * each for each in own)),
            f"{all_of}, each is updated with its own gradient: nothing was exchanged.",
        )
        yield (
            each_is(rate * count * mean),
            f"{all_of}, the step is {count} times too long: the gradients are summed, not averaged.",
        )
        yield each_is(rate * mean / count), f"{all_of}, the step is {count} times too short: by what do you divide?"
        yield each_is(-rate * mean), f"{all_of}, the weights go up the slope, but a step must go against the gradient."
        yield each_is(mean), f"{all_of}, the step is as long as the mean gradient: where is the learning rate?"
        yield (
            len({images for _, images, _ in asked}) < min(count, len(asked)),
            f"{all_of}, `gradient` got the same replica's share {len(asked)} times, but each replica has its own.",
        )
        for number in range(count):
            yield each_is(rate * own[number]), f"{all_of}, all are updated with the gradient of replica {number} only."
        yield (
            each_is(rate * mean, *[0 * mean] * (count - 1)) or not any(map(np.any, apart[1:])),
            f"{all_of}, only the first one has changed, but every replica updates its own copy.",
        )
        yield (
            not same and all(np.allclose(new, value[0]) for new in value),
            f"{all_of}, all are equal after the step, but each replica should only update its *own* copy.",
        )
        yield (
            len({round(weights, 6) for weights, *_ in asked}) == 1 and not same,
            f"{all_of}, all the gradients were computed from one copy: each replica must use its own.",
        )
        yield (
            all(np.ptp(each) < 1e-9 for each in apart),
            f"{all_of}, all entries of a copy change equally: do you average over more than the replicas?",
        )
        yield True, f"{all_of}, a copy does not change by the rate times the mean of the {count} gradients."


@judges("mirrored.8")
def gradient_bytes(size):
    from labs import models
    from lessons import counts

    parts = counts.memory(models.network("ResNet50V2", 32, 10), batch=1)
    gradient, weights = parts["gradients"], parts["weights"]  # bytes: of what is trained, and of all variables
    yield close(size, gradient), None
    yield near(size, gradient / 4), "This is the number of gradients. How many bytes does a float32 take up?"
    yield (
        close(size, weights),
        "These are all variables. The moving averages of batch normalisation are not trained and have no gradient.",
    )
    yield any(near(size, gradient / unit) for unit in (1e6, 2**20)), "This is in megabytes: give the number of bytes."
    yield (
        any(near(size, gradient * factor) for factor in (2, 4, 8)),
        "Give the size for one replica: do not multiply by the number of workers, and do not count bits.",
    )
    yield True, "Multiply the trainable weights (see the output above) by the number of bytes per weight."


@judges("mirrored.10")
def model_in_scope(model, batches):
    yield not hasattr(model, "variables"), f"`model` is of type {type(model).__name__}. It must be a Keras model."
    plain = [v.path for v in model.variables if not hasattr(v.value, "values")]
    yield (
        not model.variables,
        "The model has no variables yet: build it for a known image size, as in the program above.",
    )
    yield len(plain) == len(model.variables), "No variable is mirrored: the model was built outside the scope."
    if plain:
        yield True, f"{plain[0]} and perhaps other variables have only one copy: that part was built outside the scope."
    yield (
        not getattr(model, "optimizer", None),
        "The model is mirrored, but not compiled: the optimizer must be created in the scope as well.",
    )
    yield (
        any(not hasattr(v.value, "values") for v in model.optimizer.variables),
        "The network is mirrored, but its optimizer is not: create it and compile the model in the scope as well.",
    )
    yield (
        getattr(model, "jit_compile", False),
        "The model is compiled with XLA. This course does not use XLA for comparisons: set jit_compile=False.",
    )
    images = _images(batches)
    yield (
        images is None,
        f"`batches` is of type {type(batches).__name__}: use `data.pipeline` to make what `fit` reads.",
    )
    yield images == 16, "`batches` gives 16 images at a time, which the four replicas share, so each gets only 4."
    yield images != 64, f"`batches` gives {images} images at a time. Each of the four replicas takes 16."
    kind, given = type(model.optimizer).__name__, model.optimizer.get_config()
    yield kind != "SGD", f"The optimizer is {kind}; the sequential script uses SGD. Change only what must change."
    yield given.get("momentum"), "The optimizer has momentum; the one in the sequential script does not."
    rate = given["learning_rate"]
    yield not isinstance(rate, float), "The rate follows a schedule; in the sequential script it is one number."
    yield near(rate, 0.01), "This is the rate for one worker. The global batch is larger now: how must the rate change?"
    yield not near(rate, 4 * 0.01, 1e-3), f"The rate is {rate:.4g}. By what factor did the global batch grow?"
    yield (
        "sparse_categorical_crossentropy" not in re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _loss(model)).lower(),
        "The loss is not the one in the sequential script.",
    )


def _images(batches):
    """Images of the first batch, over all replicas; None if these are no batches."""
    try:
        images, _ = next(iter(batches))
        return sum(len(each) for each in getattr(images, "values", [images]))
    except (TypeError, ValueError, StopIteration):
        return None


def _loss(model):
    """Name of the loss that a model was compiled with."""
    return model.loss if isinstance(model.loss, str) else getattr(model.loss, "__name__", type(model.loss).__name__)
