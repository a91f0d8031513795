"""Horovod's callbacks for Keras 3, for `fit(..., callbacks=[...])`."""

import keras
import numpy as np
import tensorflow as tf
from horovod import tensorflow as horovod

from labs import compat, ranks
from labs.hvd.optimizer import HOROVODS_OWN, HorovodError, averages

NOT_WRAPPED = (
    "The optimizer does not average gradients over the ranks: every rank would train a network of its own, without "
    "any error. Compile with optimizer=hvd.DistributedOptimizer(...)."
)
XLA = "The model is compiled with XLA, which cannot compile Horovod's operations. Compile it with jit_compile=False."
SCALED = (
    "Keras has put its loss scaling around the distributed optimizer: a rank whose gradients overflow would skip the "
    "average and leave the others waiting. Turn it round: "
    "hvd.DistributedOptimizer(keras.optimizers.LossScaleOptimizer(...))."
)


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """At the begin of every `fit`, all ranks take the weights and the optimizer's state of `root_rank`.

    Before that it compares the ranks. Raises HorovodError for an optimizer that does not average gradients and for
    XLA, labs.ranks.RankError for ranks that would take different numbers of steps or train different networks.
    """

    def __init__(self, root_rank=0):
        super().__init__()
        if not 0 <= root_rank < horovod.size():
            raise HorovodError(f"No rank {root_rank} to take weights from. Give one from 0 to {horovod.size() - 1}.")
        self.root_rank = root_rank

    def on_train_begin(self, logs=None):
        check(self.model, self.params)
        if not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_weights)
        state = [*self.model.weights, *self.model.optimizer.variables]  # seeds of dropout stay each rank's own
        for number, variable in enumerate(state):
            value = tf.convert_to_tensor(variable.value)
            variable.assign(horovod.broadcast(value, self.root_rank, name=f"broadcast_{number:04d}"))


class MetricAverageCallback(keras.callbacks.Callback):
    """At the end of each epoch, averages over the ranks what each has measured on its own share of the data.

    These are the metrics in `logs` (for all callbacks that come after this one) and the moving statistics of batch
    normalisation, which no gradient keeps equal. Equal shards, equal weights of all ranks.
    """

    def on_epoch_end(self, epoch, logs=None):
        if horovod.size() == 1:
            return
        measured = [v for v in self.model.non_trainable_weights if "float" in v.dtype]
        for dtype in sorted({variable.dtype for variable in measured}):  # one message for each, not one per variable
            alike = [variable for variable in measured if variable.dtype == dtype]
            tensors = [tf.convert_to_tensor(variable.value) for variable in alike]
            for variable, value in zip(alike, horovod.grouped_allreduce(tensors, op=horovod.Average), strict=True):
                variable.assign(value)
        keys = sorted(key for key, value in (logs or {}).items() if np.ndim(value) == 0)
        values = tf.constant([float(logs[key]) for key in keys], tf.float64)
        for key, value in zip(keys, horovod.allreduce(values, op=horovod.Average, name="metrics").numpy(), strict=True):
            logs[key] = float(value)


def check(model, params):
    """Raise HorovodError or RankError if `fit` of this compiled model would fail, hang, or not train one network.

    params: a callback's `params`, with the steps and epochs of this `fit`. All ranks must call it.
    """
    optimizer = model.optimizer
    inner = getattr(optimizer, "inner_optimizer", None)
    if not averages(optimizer) and averages(inner):
        raise HorovodError(SCALED)
    if compat.wrapped_by_horovod(optimizer):
        raise HorovodError(HOROVODS_OWN)
    if not averages(optimizer):
        raise HorovodError(NOT_WRAPPED)
    if compat.compiled_by_xla(model):
        raise HorovodError(XLA)
    steps = params.get("steps")
    ranks.agree("some would wait for ever in an all-reduce for the others", steps=steps, epochs=params.get("epochs"))
    shapes = [tuple(weight.shape) for weight in model.trainable_weights]
    ranks.agree("their gradients do not fit together", network=shapes)
    if steps is None and horovod.size() > 1:
        raise HorovodError(
            "The number of steps per epoch is not known, and ranks with different numbers would wait for each other "
            "for ever. Pass steps_per_epoch=..., the same on all ranks."
        )
