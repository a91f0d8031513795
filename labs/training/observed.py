"""What the recorder sees of the training itself: where a script told it something else, and what Keras' optimizers do
differently under MirroredStrategy.

What was only declared is not measured: images per second would follow from a batch size that was never used.
"""

import math
import re
import warnings

import keras

from labs import compat
from labs.errors import LabsError
from labs.printed import several


def check_strategy(model):
    """Look at the optimizer of a compiled Keras model, whatever strategy it is under; see to its iterators.

    Raises LabsError for gradients that are to be summed over steps: Keras cannot, with one replica or many. Warns
    of clipping on several replicas: Keras clips there before it adds up.
    """
    if keras.backend.backend() == "jax":
        return  # it has neither; TensorFlow may not be installed
    import tensorflow as tf

    compat.no_tuning_thread()  # the pipeline may be the script's own, and not of labs.data
    if not isinstance(compat.strategy(model), tf.distribute.MirroredStrategy):
        return
    optimizer, replicas = getattr(model.optimizer, "inner_optimizer", model.optimizer), compat.replicas(model)
    if getattr(optimizer, "gradient_accumulation_steps", None):
        raise LabsError(
            f"gradient_accumulation_steps={optimizer.gradient_accumulation_steps} does not work under "
            "MirroredStrategy: Keras would fail in the first step. Leave it out, or train with Horovod."
        )
    for name in ("clipnorm", "global_clipnorm", "clipvalue"):
        bound = getattr(optimizer, name, None)
        if bound and replicas > 1:
            warnings.warn(
                f"{name}={bound:g} bounds no step here: Keras clips on each of the {replicas} replicas, before "
                f"it adds up their gradients, so that the sum may reach {replicas} x {bound:g}. For the bound of one "
                f"worker divide by the number of replicas: {name}={bound / replicas:g}. Or train with Horovod, where "
                "labs.hvd averages first and clips the average.",
                stacklevel=2,
            )


def start(model, declared):
    """What is seen before the first step, as fields of the record: network, optimizer, learning_rate_schedule.

    model: compiled Keras model; declared: labs.results.run.Configuration. Raises LabsError.
    """
    if model.steps_per_execution != 1:
        raise LabsError(
            f"The model was compiled with steps_per_execution={model.steps_per_execution}: single steps cannot be "
            "timed or counted, since Keras tells of the first one of each group only. Leave this option out."
        )
    replicas = compat.replicas(model)
    wanted = declared.workers if declared.strategy in ("mirrored", "jax") else 1
    if replicas != wanted:
        raise LabsError(
            f"The recorder was told {several(declared.workers, 'worker')}, strategy {declared.strategy!r}, but the "
            f"model was made for {several(replicas, 'replica')}: its times would be recorded for the wrong number of "
            "workers. Pass all of them to MirroredStrategy(devices=...), and build and compile the model in its "
            "scope()."
        )
    name = network(model)
    if name and name != _named(declared.model or ""):
        raise LabsError(
            f"The recorder was told model={declared.model!r}, but the network that trains is {name}: its times would "
            "stand under a wrong name. Give the recorder the network's own name."
        )
    optimizer, seen = model.optimizer, {"network": name, "optimizer": type(model.optimizer).__name__}
    if isinstance(schedule := optimizer.get_config().get("learning_rate"), dict):
        seen["learning_rate_schedule"] = schedule.get("class_name")
    rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
    if declared.learning_rate is not None and not math.isclose(
        rate, declared.learning_rate, rel_tol=1e-4, abs_tol=1e-9
    ):
        raise LabsError(
            f"The recorder was told a learning rate of {declared.learning_rate:g}, but the optimizer begins with "
            f"{rate:g}. Give both the same one: the rate after scaling."
        )
    return seen


def images(model, declared, steps, processes=1):
    """Images that this process and its equals took in the epoch that ends, from Keras' own count; None if not counted.

    steps: steps of the epoch; processes: ranks, each with its share of the batch. Raises LabsError if the steps
    took other numbers of images than declared.
    """
    seen = compat.samples(model)
    local_batch = declared.global_batch // processes
    if not seen:
        return None
    if not (steps - 1) * local_batch < seen <= steps * local_batch:
        per_rank = " on each rank" if processes > 1 else ""
        raise LabsError(
            f"The recorder was told {declared.global_batch} images a step (batch_size), which is "
            f"{local_batch}{per_rank}; but {seen} images were taken in {steps} steps, {seen / steps:.4g} a step: "
            "images per second would be wrong. Make the pipeline with this batch size; with arrays, pass batch_size to "
            "fit."
        )
    return seen * processes


def network(model):
    """The name of the network of keras.applications in this model, or None if it holds no such network."""
    names = (_named(layer.name) for layer in [model, *getattr(model, "layers", [])] if isinstance(layer, keras.Model))
    return next(filter(None, names), None)


def _named(text):
    """The network of keras.applications that a text names, the longest name in it; None if it names none of them."""
    plain = _plain(text)
    found = [name for name in dir(keras.applications) if name[0].isupper() and _plain(name) in plain]
    return max(found, key=len, default=None)


def _plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())
