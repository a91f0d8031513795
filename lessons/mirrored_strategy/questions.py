"""Questions of 03_mirrored_strategy."""

from itertools import pairwise

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import called, near
from labs.checks.student_code import tried
from labs.printed import an
from lessons.forms import as_array, formula, value

value(
    "mirrored.2",
    right=60,
    wrong=[
        (240, "This would be right if all four GPUs had computed. On how many devices did `plain` and `result` live?"),
        (15, "Faster with fewer GPUs? How many of the four computed?"),
    ],
    otherwise="How many of the four GPUs does a program use without a strategy? See the output above.",
)


@judges("mirrored.3")
def mirrored(variable):
    copies = getattr(variable, "values", None)
    if not isinstance(copies, tuple):
        yield True, f"This is {an(type(variable).__name__)} without copies. In which block must you create it?"
    constant = not hasattr(variable, "assign")
    yield constant, f"This is {an(type(variable).__name__)}, which cannot be updated. Is it a `tf.Variable`?"
    places = len({copy.device for copy in copies})
    yield places < 4, f"Its copies are on {places} of the 4 devices of `strategy`. In which scope did you create it?"
    other = any(copy.numpy().tolist() != [1.0, 2.0, 3.0] for copy in copies)
    yield other, f"The copies are there, but each of them is {copies[0].numpy().tolist()}."


@judges("mirrored.4")
def local_batch(sizes):
    sizes = set(np.ravel(sizes).tolist())  # one number, or one for each replica
    yield sizes == {16}, "16 is the global batch. Look at what each replica received in the output."
    yield sizes == {64}, "The batch is not multiplied by the number of replicas: the replicas share it."
    yield sizes != {4}, "Divide the global batch by the number of replicas, or read the sizes in the table above."


LOSSES = np.array([1.0, 2.0, 4.0, 6.0], np.float32)

formula(
    "mirrored.5",
    right=lambda losses, global_batch: np.sum(losses) / global_batch,
    cases=[(LOSSES, 8), (LOSSES[:3], 30)],
    wrong=[
        (lambda losses, _: np.mean(losses), "K such means add up to K times too much. Which batch must you divide by?"),
        (lambda losses, _: np.sum(losses), "Nothing is divided here: the gradient would grow with the batch."),
        (
            [lambda losses, _: np.mean(losses) / 2, lambda losses, _: np.mean(losses) / 4],
            "A mean, divided by a number of replicas: right only if all of them have equally many images.",
        ),
        (lambda losses, batch: np.mean(losses) / batch, "You divide twice: a mean is divided by the local batch."),
    ],
    otherwise="Sum the losses of the replica's images, then divide once. What must you divide by?",
)


def _largest(size=lambda apart: np.max(np.abs(apart)), pairs=lambda copies: [(copy, copies[0]) for copy in copies]):
    """A function of the copies: the largest size of the differences in these pairs of them."""
    return lambda copies: max(size(one - other) for one, other in pairs(copies))


START, APART = np.array([[1.0, -2.0], [0.5, 0.0]]), np.array([[3.0, -4.0], [0.0, 0.0]])
# How far the copies are from the first one: on one side of it each time, so to compare all pairs is right, too.
PARTS = [(0, 1, 0.25, 0.5), (0, -0.5, -1, -0.25), (0, 0.25, 0.5, 1), (0, -0.25, -0.5, -1, -2), (0, 0.5)]

formula(
    "mirrored.6",
    right=lambda copies: max(np.max(np.abs(copy - copies[0])) for copy in copies),
    cases=[([START] * 4,)]
    + [([START + part * apart for part in parts],) for parts in PARTS for apart in (APART, APART.T)],
    wrong=[
        (_largest(np.max), "A copy may also be smaller than the first one. Does such a difference count here?"),
        (_largest(np.linalg.norm), "This is the length of a difference. Return the largest single entry."),
        (_largest(pairs=lambda copies: [copies[:2]]), "This compares two copies. What about the others?"),
        (
            _largest(pairs=pairwise),
            "This compares each copy with the one before it. Which one must it be compared with?",
        ),
    ],
    otherwise="Take the largest absolute difference over all copies and all their entries.",
)


def _gradient(weights, images, labels):
    """A gradient that depends on all three."""
    return 0.1 * weights + np.mean(images) ** 2 + np.outer([1.0, -1.0], np.mean(labels) * np.array([1, 2]))


@judges("mirrored.7")
def replicas_step(function):
    for count, apart, rate in ((4, 0, 0.5), (2, 0, 0.25), (3, 1, 0.5)):
        copies = [START + apart * number**2 for number in range(count)]
        shares = [(np.full((2, 2), number + 1.0), np.array([number, 2 * number])) for number in range(count)]
        with tried(f"{count} replicas"):
            after, changed = called(lambda *given, rate=rate: function(*given, _gradient, rate), copies, shares)
        other = np.shape(as_array(after)) != (count, 2, 2)
        yield other, f"For {count} replicas, return {count} copies of the same shape as before."
        of_all = [[_gradient(copy, *share) for share in shares] for copy in copies]
        own = [of_all[number][number] for number in range(count)]
        mean, moved = np.mean(own, axis=0), np.subtract(copies, after) / rate
        if np.allclose(moved, mean):
            yield changed, f"The step is right. {changed}"
            continue
        seen = f"With {count} {'different' if apart else 'equal'} copies"
        times = np.mean(moved * mean) / np.mean(mean**2)
        long = f"{seen}, the step is {times:.3g} times what it must be. Sum or mean? Rate? Sign?"
        yield np.allclose(moved, times * mean), long
        yield np.allclose(moved, own), f"{seen}, each is updated with its own gradient: nothing was exchanged."
        one = any(np.allclose(moved, np.mean(each, axis=0)) for each in zip(*of_all, strict=True))
        yield one, f"{seen}, only the share of one replica is used. Each replica must use its own share."
        from_all = np.mean(of_all, axis=1)
        one = np.allclose(moved, from_all) or any(np.allclose(moved, each) for each in from_all)
        yield one, f"{seen}, the gradient for a share was not computed from the copy of the same replica."
        one = apart and np.ptp(after, axis=0).max() < 1e-9
        yield one, f"{seen}, all are equal after the step. Which copy does each replica update?"
        alike = np.ptp(moved, axis=(1, 2)).max() < 1e-9
        yield alike, f"{seen}, all entries of a copy change equally: do you average over more than the replicas?"
        yield True, f"{seen}, a copy does not change by the rate times the mean of the {count} gradients."


TRAINABLE, FROZEN = 23_539_850, 45_440  # parameters of ResNet50V2 with 10 classes, as the notebook prints them

value(
    "mirrored.8",
    right=[4 * TRAINABLE, 94e6],
    wrong=[
        ([TRAINABLE, 23.5e6], "This is the number of gradients. How many bytes does a float32 take up?"),
        ([4 * (TRAINABLE + FROZEN), 94.3e6], "These are all variables. Which of them have a gradient?"),
        ([94.2, 89.8], "This is in megabytes: give the number of bytes."),
        ([8 * TRAINABLE, 16 * TRAINABLE, 32 * TRAINABLE], "For one replica, and in bytes: what did you multiply by?"),
    ],
    otherwise="Multiply the trainable weights (see the output above) by the number of bytes per weight.",
)


@judges("mirrored.10")
def model_in_scope(model, batches):
    yield not hasattr(model, "variables"), f"`model` is {an(type(model).__name__)}. It must be a Keras model."
    mirrored = [hasattr(variable.value, "values") for variable in model.variables]
    seen = f"{sum(mirrored)} of the model's {len(mirrored)} variables are mirrored"
    yield not mirrored or not all(mirrored), f"{seen}. Are all its layers built, and inside the scope?"
    optimizer = getattr(model, "optimizer", None)
    outside = not optimizer or not all(hasattr(variable.value, "values") for variable in optimizer.variables)
    yield outside, "The network is mirrored, its optimizer is not: create it and compile the model in the scope, too."
    yield getattr(model, "jit_compile", False), "The model is compiled with XLA; in the sequential script it is not."
    images = _images(batches)
    yield images is None, "`batches` holds no batches: `data.pipeline` makes what `fit` reads."
    yield images != 64, f"`batches` gives {images} images at a time, which the replicas share. How many does each get?"
    kind, given = type(optimizer).__name__, optimizer.get_config()
    yield kind != "SGD", f"The optimizer is {kind}; the sequential script uses SGD. Change only what must change."
    yield given.get("momentum"), "The optimizer has momentum; the one in the sequential script does not."
    rate = given["learning_rate"]
    yield not isinstance(rate, float), "The rate follows a schedule; in the sequential script it is one number."
    yield not near(rate, 4 * 0.01, 1e-3), f"The learning rate is {rate:.4g}. By what factor did the global batch grow?"
    loss = model.loss if isinstance(model.loss, str) else getattr(model.loss, "__name__", type(model.loss).__name__)
    other = loss.replace("_", "").lower() != "sparsecategoricalcrossentropy"
    yield other, "The loss is not the one in the sequential script."


def _images(batches):
    """Images of the first batch, over all replicas; None if these are no batches."""
    try:
        images, _ = next(iter(batches))
        return sum(len(each) for each in getattr(images, "values", [images]))
    except (TypeError, ValueError, StopIteration):
        return None
