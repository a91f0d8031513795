"""What the recorder sees of the training itself: the network and how it is distributed, the images that the steps took,
and what Keras' optimizers do differently under MirroredStrategy."""

import re
import sys
import warnings

import keras

from labs import compat
from labs.errors import LabsError


def prepare(model):
    """Prepare a compiled Keras model: no thread tunes its pipeline; refuse what MirroredStrategy cannot do with its
    optimizer.

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


def configuration(model):
    """What a compiled Keras model says of its training: {"model", "strategy", "workers", "learning_rate"}, as
    labs.results.run.Configuration has them; the rate is that of the first step. Raises LabsError."""
    if not getattr(model, "optimizer", None):
        raise LabsError("The recorder was given a model that is not compiled. Call model.compile(...) before.")
    horovod, replicas = sys.modules.get("horovod.tensorflow"), compat.replicas(model)
    if keras.backend.backend() == "jax":
        strategy = "jax"
    elif horovod and horovod.is_initialized():
        strategy, replicas = "horovod", horovod.size()
    else:
        import tensorflow as tf

        mirrored = isinstance(compat.strategy(model), tf.distribute.MirroredStrategy)
        strategy = "mirrored" if mirrored else "single"
    rate = float(str(keras.ops.convert_to_numpy(model.optimizer.learning_rate)))  # 0.01, not float32's 0.00999...
    return {"model": network(model), "strategy": strategy, "workers": replicas, "learning_rate": rate}


def optimizer(model):
    """What is seen of the optimizer before the first step: {"optimizer", perhaps "learning_rate_schedule"}, names of
    classes, for `observed` of the record. Raises LabsError for steps that cannot be timed singly (steps_per_execution).
    """
    if model.steps_per_execution != 1:
        raise LabsError(
            f"The model was compiled with steps_per_execution={model.steps_per_execution}: single steps cannot be "
            "timed or counted, since Keras tells of the first one of each group only. Leave this option out."
        )
    seen = {"optimizer": type(model.optimizer).__name__}
    if isinstance(schedule := model.optimizer.get_config().get("learning_rate"), dict):
        seen["learning_rate_schedule"] = schedule.get("class_name")
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
            f"--batch_size asks for {declared.global_batch} images a step, which is {local_batch}{per_rank}; but "
            f"{seen} images were taken in {steps} steps, {seen / steps:.4g} a step: images per second would be wrong. "
            "Make the pipeline with this batch size; with arrays, pass batch_size to fit."
        )
    return seen * processes


def network(model):
    """The name of the network that a Keras model trains: of keras.applications, if it holds one of them; else that of
    the model which stands last in it, else its own."""
    layers = getattr(model, "layers", [])
    known = (_application(layer.name) for layer in [model, *layers] if isinstance(layer, keras.Model))
    return next(filter(None, known), (layers[-1] if layers and isinstance(layers[-1], keras.Model) else model).name)


def _application(name):
    """The network of keras.applications that a name holds, the longest one; None if it holds none of them."""
    names = [each for each in dir(keras.applications) if each[0].isupper() and _plain(each) in _plain(name)]
    return max(names, key=len, default=None)


def _plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())
