"""An optimizer of Keras 3 whose gradients are averaged over all ranks."""

from typing import TypeVar

import keras
import tensorflow as tf
from horovod import tensorflow as horovod

from labs import compat, files, ranks
from labs.errors import HorovodError

SAYS = files.beside(__file__, "says.toml")
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

    Raises HorovodError: not an optimizer of Keras 3, one that is wrapped already, a used one that counted other passes.
    """
    if averages(optimizer):
        raise HorovodError("The optimizer is wrapped twice: gradients would be averaged twice. Wrap it once.")
    if not isinstance(optimizer, keras.Optimizer):
        raise HorovodError(SAYS["no_optimizer"].format(name=type(optimizer).__name__))
    if compat.wrapped_by_horovod(optimizer):
        raise HorovodError(SAYS["horovods_own"])
    passes = backward_passes_per_step
    if isinstance(passes, bool) or not isinstance(passes, int) or passes < 1:
        raise HorovodError(f"backward_passes_per_step is {passes!r}: no step would ever end. Give 1, 2, 3, ...")
    base, settings = type(optimizer), optimizer.get_config()
    if passes > 1 and "gradient_accumulation_steps" not in settings:
        raise HorovodError(SAYS["cannot_sum"].format(name=base.__name__, passes=passes))
    before = settings.get("gradient_accumulation_steps") or 1
    if passes > 1 and optimizer.built and before != passes:
        raise HorovodError(SAYS["other_passes"].format(before=before, passes=passes))
    if passes > 1:
        settings["gradient_accumulation_steps"] = passes
    averaging = _EveryStep
    if settings.get("gradient_accumulation_steps"):
        compat.clips_summed_gradients(base)
        averaging = _EveryKthStep
    # Under the name of its base: a saved or copied model then holds a plain optimizer, and loads without Horovod.
    named = {"__module__": base.__module__, "__qualname__": base.__qualname__}
    averaged = type(base.__name__, (averaging, base), named).from_config(settings)
    compat.copy_exclusions(optimizer, averaged)
    if hasattr(optimizer, "inner_optimizer"):
        compat.copy_exclusions(optimizer.inner_optimizer, averaged.inner_optimizer)
    compat.copy_state(optimizer, averaged)
    return averaged


def averages(optimizer: object) -> bool:
    """True if this optimizer averages its gradients over the ranks."""
    return isinstance(optimizer, _EveryStep)


class _EveryStep:
    number = 0  # of several in one model (check.check): their gradients must not be taken for each other's
    met = False  # whether the ranks have been compared

    def apply(self, grads, trainable_variables=None):
        _meet(self, grads, trainable_variables)
        super().apply(_average(grads, self.number), trainable_variables)


class _EveryKthStep(_EveryStep):
    # Keras sums the gradients of k passes itself; in the k-th it clips their mean and updates. Averaging over the ranks
    # comes in between. All ranks count the same steps, so all come here together.
    def apply(self, grads, trainable_variables=None):
        _meet(self, grads, trainable_variables)
        super(_EveryStep, self).apply(grads, trainable_variables)

    def _clip_gradients(self, grads):
        return super()._clip_gradients(_average(grads, self.number))


@tf.autograph.experimental.do_not_convert
def _meet(optimizer, grads, variables):
    """In the first step of `optimizer`, raise RankError on all ranks that would not train one network by these grads.

    Where the step is a graph, the ranks are compared while it is traced: nothing is added to it.
    """
    if optimizer.met or horovod.size() == 1:
        return
    optimizer.met, variables = True, variables or compat.trained_by(optimizer)
    with tf.init_scope():  # out of the graph
        brings = [(v.name, "None" if g is None else "a value") for g, v in zip(grads, variables, strict=False)]
        why = "one rank would wait for the other's for ever. Train the same weights by the same loss"
        ranks.agree(why, **{f"gradient {number} ({name})": has for number, (name, has) in enumerate(brings)})
        if not optimizer.built:
            optimizer.build(variables)
        state = [*variables, *optimizer.variables]
        by_rank = ranks.gather(ranks.fingerprints(state), "its weights before the first step")
        ranks.equal(state, by_rank, "before the first step")


def _average(grads, optimizer):
    """The same gradients, averaged over all ranks; None stays None."""
    if horovod.size() == 1:
        return grads
    averaged = []
    for number, gradient in enumerate(grads):
        if gradient is not None:
            gradient = tf.convert_to_tensor(gradient)  # dense: Keras' updates are
            shape = "x".join(map(str, gradient.shape)) or "scalar"
            # The same name on all ranks, even where one rank has built more models than the others.
            name = f"{'' if optimizer == 0 else f'optimizer_{optimizer}_'}gradient_{number:03d}_{shape}"
            gradient = horovod.allreduce(gradient, op=horovod.Average, name=name, ignore_name_scope=True)
        averaged.append(gradient)
    return averaged
