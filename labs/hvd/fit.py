"""What `fit` must be, so that all ranks train one network: refused or compared before the first step."""

from horovod import tensorflow as horovod

from labs import compat, ranks
from labs.errors import HorovodError
from labs.hvd.optimizer import averages


def check_fit(model, params, recorder=False):
    """Raise HorovodError or RankError if `fit` of this compiled model would fail, hang, or not train one network.

    params: a callback's `params`, with the steps and epochs of this `fit`. All ranks must call it.
    recorder: whether the recorder calls it, which is noted in `params`: MetricAverageCallback must not stand after it.
    """
    # Keras gives all callbacks of a `fit` the same dict: what the recorder has noted must stay.
    params["recorded"] = recorder or params.get("recorded", False)
    optimizer = model.optimizer
    if compat.wrapped_by_horovod(optimizer):
        raise HorovodError(
            "This optimizer was wrapped by Horovod's own DistributedOptimizer, which averages nothing on Keras 3: "
            "every rank would train a network of its own, without any error. Wrap it with "
            "labs.hvd.DistributedOptimizer."
        )
    if not averages(optimizer):
        raise HorovodError(
            "The optimizer does not average gradients over the ranks: every rank would train a network of its own, "
            "without any error. Compile with optimizer=hvd.DistributedOptimizer(...); with loss scaling, "
            "hvd.DistributedOptimizer(keras.optimizers.LossScaleOptimizer(...))."
        )
    if model.jit_compile:
        raise HorovodError(
            "The model is compiled with XLA, which cannot compile Horovod's operations. Compile it with "
            "jit_compile=False."
        )
    if not model.weights:
        raise HorovodError(
            "The model has no weights yet, so there is nothing to broadcast: each rank would draw its own in the first "
            "step. Begin it with keras.Input(...), or call model.build((None, ...)) before `fit`."
        )
    if params.get("steps") is None and horovod.size() > 1:
        raise HorovodError(
            "The number of steps per epoch is not known, and ranks with different numbers would wait for each other "
            "for ever. Pass steps_per_epoch=..., the same on all ranks."
        )
    settings = {"steps": params["steps"], "epochs": params["epochs"], "the optimizer": type(optimizer).__name__}
    # The rate is broadcast with the optimizer's state, and the name counts what this process has made.
    plain = {key: value for key, value in optimizer.get_config().items() if isinstance(value, bool | int | float)}
    settings |= {f"the optimizer's {key}": value for key, value in plain.items() if key != "learning_rate"}
    settings |= {f"network weight {n}": tuple(weight.shape) for n, weight in enumerate(model.trainable_weights)}
    ranks.agree("they would wait for each other for ever, or train different networks", **settings)
