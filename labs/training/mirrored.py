"""What differs under tf.distribute.MirroredStrategy: optimizers, said before the training, and iterators."""

import warnings

import keras

from labs import compat
from labs.errors import LabsError


class MirroredError(LabsError):
    """Keras cannot train so under MirroredStrategy; the message says what to do instead."""


def check(model):
    """Look at the optimizer of a compiled Keras model, whatever strategy it is under; see to its iterators.

    Raises MirroredError for gradients that are to be summed over steps: Keras cannot, with one replica or many. Warns
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
        raise MirroredError(
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
