"""Judges of 03_mirrored_strategy."""

from labs.checks.judging import judges
from labs.checks.reading import bytes_of_resnet50v2, near


@judges("03.2")
def plain(count):
    yield count == 4, "That is how many devices exist. Count those that `plain.device` names."
    yield count == 0, "A variable always lives somewhere: print `plain.device`."
    yield count != 1, "Count the devices that the output above names for this one variable."


@judges("03.3")
def mirrored(variable):
    import tensorflow as tf

    if not hasattr(variable, "values"):
        if isinstance(variable, tf.Variable):
            return "This variable has one copy: it was created outside the scope. Where must its creation stand?"
        return f"This is a {type(variable).__name__}, not a variable. Create a tf.Variable inside the scope."
    if len({v.device for v in variable.values}) < 4:
        return f"It has {len(variable.values)} copies: the strategy was made for fewer devices than the 4 given."
    if variable.shape != (3,):
        return f"The copies are there, but the shape is {tuple(variable.shape)}: create it from [1.0, 2.0, 3.0]."
    if [float(x) for x in variable.values[-1]] != [1.0, 2.0, 3.0]:
        return "The copies are there, but they hold other numbers than 1.0, 2.0, 3.0."


@judges("03.4")
def local_batch(sizes):
    sizes = [int(s) for s in sizes] if hasattr(sizes, "__len__") else [int(sizes)]
    yield set(sizes) == {4}, None
    yield set(sizes) == {16}, "16 is the global batch. Look at what each replica received in the output."
    yield set(sizes) == {64}, "The batch given is not multiplied by the replicas: it is the sum over all of them."
    return "Global batch divided by replicas: read the sizes that the replicas printed."


@judges("03.5")
def scaled_loss(function):
    import numpy as np

    losses = np.array([1.0, 2.0, 3.0, 6.0])  # of one replica out of 4, each with 4 images
    value = float(function(losses, 16))
    yield np.isclose(value, losses.sum() / 16), None
    if np.isclose(value, losses.mean()):
        return (
            "This is the mean over the replica's own images. Summed over K replicas, the gradient becomes K times "
            "too large. By which batch must the sum be divided?"
        )
    yield np.isclose(value, losses.sum()), "This sum is not divided at all: the gradient would grow with the batch."
    yield np.isclose(value, losses.mean() / 16), "Divided twice: `mean` has divided by the local batch already."
    return "Sum the losses of the replica's images, then divide once. By what?"


@judges("03.6")
def copies(function):
    import numpy as np

    same, apart = [np.array([1.0, -2.0])] * 3, [np.array([1.0, -2.0]), np.array([1.0, 3.0]), np.array([1.5, -2.0])]
    if float(function(same)) != 0.0:
        return "Your function does not give 0 for equal copies. Compare each copy with the first one."
    value, mirrored = float(function(apart)), float(function([-copy for copy in apart]))
    if np.isclose(value, 5.0) and np.isclose(mirrored, 5.0):
        return None
    if np.isclose(value, 0.5) and np.isclose(mirrored, 0.5):
        return "Your function misses a copy in the middle: compare all of them, not only the first and the last."
    if not np.isclose(value, mirrored):
        return "A copy that is larger and one that is smaller must not cancel: take the absolute difference."
    return "Take the largest absolute difference over all copies and all their elements."


@judges("03.7")
def gradient_bytes(size):
    gradient, weights = bytes_of_resnet50v2()
    yield near(size, gradient, 0.001), None
    yield near(size, gradient / 4, 0.001), "This is the number of gradients. How many bytes has a float32?"
    if near(size, weights, 0.001):
        return "These are all variables. Moving means of batch normalisation are not trained and have no gradient."
    if any(near(size, gradient * factor, 0.001) for factor in (2, 4, 8)):
        return "Ask for the gradient of one replica; do not multiply by workers, nor count bits."
    return "Trainable weights times bytes per weight. `network.trainable_weights` holds them."


@judges("03.9")
def model_in_scope(model):
    yield not hasattr(model, "variables"), f"This is a {type(model).__name__}, not a Keras model."
    plain = [v.path for v in model.variables if not hasattr(v.value, "values")]
    if not model.variables:
        return "The model has no variables yet: build it for images of a known size, as in the program above."
    yield len(plain) == len(model.variables), "No variable is mirrored: the model was built outside the scope."
    if plain:
        return f"{plain[0]} and perhaps others have one copy only: that part was built outside the scope."
    if not getattr(model, "optimizer", None):
        return "The model is mirrored, but not compiled: the optimizer must be created in the scope as well."
    if any(not hasattr(v.value, "values") for v in model.optimizer.variables):
        return "The network is mirrored, its optimizer is not: create and compile it inside the scope, too."
    if getattr(model, "jit_compile", False):
        return "Compiled with XLA (jit_compile): the course compares without it: jit_compile=False."


@judges("03.11")
def clipnorm(bound, changes):
    clipped, on_4 = 0.005, changes[4]  # what the notebook clipped with, and the change of W that it saw
    farther = on_4 / changes[1]
    yield near(bound, clipped / 4, 1e-3), None
    if near(bound, clipped, 1e-3):
        return f"With this clipnorm W changed by {on_4:.3g} on 4 replicas: your own run above shows it."
    if bound > clipped:
        return f"With a smaller clipnorm, {clipped:g}, W changed by {on_4:.3g} on 4 replicas. Which way must it go?"
    yield bound <= 0, "A clipnorm is a length above 0: with 0 nothing would be learned."
    if bound < clipped / 4:
        return "W would stay within the bound, and steps would be shorter than they need be: give the largest clipnorm."
    return f"On 4 replicas W changed {farther:.3g} times as far as on 1 above. What must each replica's share be?"
