"""An optimizer of Keras 3 whose gradients are averaged over all ranks."""

from typing import TypeVar

import keras
import tensorflow as tf
from horovod import tensorflow as horovod

from labs import compat, ranks
from labs.errors import HorovodError

Optimizer = TypeVar("Optimizer", bound=keras.Optimizer)


def DistributedOptimizer(optimizer: Optimizer) -> Optimizer:
    """An optimizer that averages the gradients over all ranks before each update.

    optimizer: one of Keras 3.

    Returns an object of a subclass of the optimizer's class, of the same name, made from its configuration: rates,
    schedules and clipping work as before; clipping sees the averaged gradient. Each gradient is an all-reduce of its
    own, which can start while backward still computes the others; Horovod fuses those that are ready together. The
    state of one that has been used (momentum, iterations) goes with it, so a saved model trains on:

        model = keras.models.load_model(path)
        model.compile(hvd.DistributedOptimizer(model.optimizer), ...)

    In its first step the ranks compare which gradients they bring, their weights and rates; labs.ranks.RankError says
    what differs: until then all must have been made equal.

    Raises HorovodError: not an optimizer of Keras 3, or one that is wrapped already.
    """
    if averages(optimizer):
        raise HorovodError("The optimizer is wrapped twice: gradients would be averaged twice. Wrap it once.")
    if not isinstance(optimizer, keras.Optimizer):
        raise HorovodError(
            f"{type(optimizer).__name__} is not an optimizer of Keras 3, so its gradients cannot be averaged. Pass one "
            "of keras.optimizers, such as keras.optimizers.SGD(0.01)."
        )
    base = type(optimizer)
    # Under the name of its base: a saved or copied model then holds a plain optimizer, and loads without Horovod.
    names = {"__module__": base.__module__, "__qualname__": base.__qualname__}
    averaged = type(base.__name__, (_Averaging, base), names).from_config(optimizer.get_config())
    compat.copy_state(optimizer, averaged)
    return averaged


def averages(optimizer: object) -> bool:
    """True if this optimizer averages its gradients over the ranks."""
    return isinstance(optimizer, _Averaging)


class _Averaging:
    """Mixed into an optimizer's class: averages the gradients over the ranks before they are applied."""

    compared = False  # whether the ranks have been, which they are in the first step

    def apply(self, grads, trainable_variables=None):
        _compare(self, grads, trainable_variables)
        super().apply(_average(grads), trainable_variables)


@tf.autograph.experimental.do_not_convert
def _compare(optimizer, grads, variables):
    """In the first step of `optimizer`, raise RankError on all ranks that would not train one network by these grads.

    Where the step is a graph, the ranks are compared while it is traced: nothing is added to it.
    """
    if optimizer.compared or horovod.size() == 1:
        return
    optimizer.compared, variables = True, variables or compat.trained_by(optimizer)
    with tf.init_scope():  # out of the graph
        pairs = enumerate(zip(variables, grads, strict=False))
        brings = {f"gradient {n} ({v.name})": "None" if grad is None else "a value" for n, (v, grad) in pairs}
        ranks.agree("one would wait for the other's for ever", "Train the same weights by the same loss.", **brings)
        if not optimizer.built:
            optimizer.build(variables)
        ranks.require_equal([*variables, *optimizer.variables], "before the first step")


def _average(grads):
    """The same gradients, averaged over all ranks; None stays None."""
    if horovod.size() == 1:
        return grads
    averaged = []
    for number, gradient in enumerate(grads):
        if gradient is not None:
            gradient = tf.convert_to_tensor(gradient)  # dense: Keras' updates are
            shape = "x".join(map(str, gradient.shape)) or "scalar"
            # The same name on all ranks, even where one rank has built more models than the others.
            name = f"gradient_{number:03d}_{shape}"
            gradient = horovod.allreduce(gradient, op=horovod.Average, name=name, ignore_name_scope=True)
        averaged.append(gradient)
    return averaged
