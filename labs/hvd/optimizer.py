"""An optimizer of Keras 3 whose gradients are averaged over all ranks."""

from typing import TypeVar

import keras
import tensorflow as tf
from horovod import tensorflow as horovod

from labs import compat, ranks
from labs.errors import HorovodError

Optimizer = TypeVar("Optimizer", bound=keras.Optimizer)


def DistributedOptimizer(optimizer: Optimizer, backward_passes_per_step: int = 1) -> Optimizer:
    """`optimizer` (one of Keras 3), whose gradients are averaged over all ranks before each update.

    An object of a subclass of the optimizer's class, of the same name, made from its configuration: rates, schedules
    and clipping work as before; clipping sees the averaged gradient. Each gradient is an all-reduce of its own, which
    can start while backward still computes the others; Horovod fuses those that are ready together. The state of one
    that has been used (momentum, iterations) goes with it, so a saved model trains on:

        model = keras.models.load_model(path)
        model.compile(hvd.DistributedOptimizer(model.optimizer), ...)

    In its first step the ranks compare which gradients they bring, their weights and rates; labs.ranks.RankError says
    what differs: until then all must have been made equal.

    backward_passes_per_step: k > 1 sums k gradients on each rank first, and averages over passes and ranks in every
        k-th step only; weights change in these steps only, as by one step on a k times larger batch.

    Raises HorovodError: not an optimizer of Keras 3, or one that is wrapped already.
    """
    if averages(optimizer):
        raise HorovodError("The optimizer is wrapped twice: gradients would be averaged twice. Wrap it once.")
    if not isinstance(optimizer, keras.Optimizer):
        raise HorovodError(
            f"{type(optimizer).__name__} is not an optimizer of Keras 3, so its gradients cannot be averaged. Pass one "
            "of keras.optimizers, such as keras.optimizers.SGD(0.01)."
        )
    base, settings, passes = type(optimizer), optimizer.get_config(), backward_passes_per_step
    if passes > 1 and "gradient_accumulation_steps" not in settings:
        raise HorovodError(
            f"{base.__name__} cannot sum gradients over {passes} passes. Use 1, or an optimizer without loss scaling."
        )
    if passes > 1:
        settings["gradient_accumulation_steps"] = passes
    averaging = _EveryStep
    if settings.get("gradient_accumulation_steps"):
        averaging = _EveryKthStep
    # Under the name of its base: a saved or copied model then holds a plain optimizer, and loads without Horovod.
    names = {"__module__": base.__module__, "__qualname__": base.__qualname__}
    averaged = type(base.__name__, (averaging, base), names).from_config(settings)
    compat.copy_state(optimizer, averaged)
    return averaged


def averages(optimizer: object) -> bool:
    """True if this optimizer averages its gradients over the ranks."""
    return isinstance(optimizer, _EveryStep)


class _EveryStep:
    compared = False  # whether the ranks have been, which they are in the first step

    def apply(self, grads, trainable_variables=None):
        _compare(self, grads, trainable_variables)
        super().apply(_average(grads), trainable_variables)


class _EveryKthStep(_EveryStep):
    # Keras sums the gradients of k passes itself; in the k-th it clips their mean and updates. Averaging over the ranks
    # comes in between. All ranks count the same steps, so all come here together.
    def apply(self, grads, trainable_variables=None):
        _compare(self, grads, trainable_variables)
        super(_EveryStep, self).apply(grads, trainable_variables)

    def _clip_gradients(self, grads):
        return super()._clip_gradients(_average(grads))


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
        ranks.agree("one rank would wait for the other's for ever. Train the same weights by the same loss", **brings)
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
