"""Private parts of TensorFlow, Keras and Horovod that the kit relies on, each behind a function of its own.

A new version may rename or drop one without notice. tests/test_compat.py asks each for what it is expected to do.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras


def no_tuning_thread() -> None:
    """Keep tf.distribute's iterators from waiting, at the end of an epoch, for a thread that sleeps.

    tf.data tunes a pipeline from a thread that sleeps ever longer, up to 60 s, between its rounds. In TensorFlow
    2.18 and 2.21 the end of an iterator does not wake it but waits for it. Strategies make new iterators for every
    epoch: with one core per worker, the first step of an epoch of ResNet50V2 took 8 to 57 s where the others took 1 s.
    A pipeline can switch tuning off for itself (tf.data.Options); the buffer that tf.distribute adds on each
    device cannot be reached by options, so its constructor is wrapped here. Nothing in it needs tuning: it has
    one element.
    """
    import tensorflow as tf
    from tensorflow.python.data.ops import multi_device_iterator_ops as module

    original = module._create_device_dataset
    if getattr(original, "labs", False):
        return

    def untuned(*args, **kwargs):
        options = tf.data.Options()
        options.autotune.enabled = False
        return original(*args, **kwargs).with_options(options)

    untuned.labs = True
    module._create_device_dataset = untuned


def wrapped_by_horovod(optimizer: object) -> bool:
    """True for an optimizer of Horovod's own `DistributedOptimizer`, whose class is made at run time."""
    return hasattr(optimizer, "_allreduce_grads") or type(optimizer).__module__.startswith("horovod")


def strategy(model: "keras.Model") -> Any:
    """The tf.distribute strategy in whose scope a Keras model was made; of one on JAX, Keras' distribution or None."""
    import keras

    if keras.backend.backend() == "jax":
        return keras.distribution.distribution()
    return model.distribute_strategy


def replicas(model: "keras.Model") -> int:
    """Number of replicas that a Keras model was made for, by the strategy of its scope."""
    scope = strategy(model)
    return getattr(scope, "num_replicas_in_sync", None) or getattr(scope, "num_model_replicas", 1)


def samples(model: "keras.Model") -> int:
    """Samples since the metrics of a compiled Keras model were reset: by them it weighs its loss. 0 if not known.

    A step of one's own that does not keep Keras' loss does not count them. Each replica counts its own; read as one
    variable, Keras 3.3 would give their mean.
    """
    tracker = model._loss_tracker if model.compiled else None
    if tracker is None:
        return 0
    count = tracker.count.value
    return round(sum(float(copy) for copy in getattr(count, "values", [count])))


def trained_by(optimizer: "keras.Optimizer") -> "list[keras.Variable]":
    """The variables for which a Keras optimizer was built."""
    inner = getattr(optimizer, "inner_optimizer", None)  # of one that scales the loss; in Keras 3.3 it alone knows
    return list(optimizer._trainable_variables) or (trained_by(inner) if inner else [])


def state(optimizer: "keras.Optimizer") -> "list[keras.Variable]":
    """The variables of a Keras optimizer, some of them twice: also the one that Nadam does not list."""
    import keras

    inner = getattr(optimizer, "inner_optimizer", optimizer)  # of one that scales the loss
    return [*optimizer.variables, *(each for each in vars(inner).values() if isinstance(each, keras.Variable))]


def copy_state(optimizer: "keras.Optimizer", other: "keras.Optimizer") -> None:
    """Give `other`, made of the configuration of a Keras optimizer, what the configuration does not hold: what weight
    decay leaves out, and the state of one that has been used."""
    decays, copy = (getattr(each, "inner_optimizer", each) for each in (optimizer, other))  # of one that scales losses
    for name in ("_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern"):
        if hasattr(decays, name):
            setattr(copy, name, getattr(decays, name))
    if optimizer.built:
        other.build(trained_by(optimizer))
        for variable, used in zip(other.variables, optimizer.variables, strict=True):
            variable.assign(used.value)


def graph(model: "keras.Layer") -> Any:
    """The graph of layers behind a Keras model, a Functional model, or None (also for a layer): for `calls`.

    A Sequential model keeps one inside once it has seen a shape; a model of one's own class has none.
    """
    import keras

    if isinstance(model, keras.Sequential):
        model = model._functional
    return model if hasattr(model, "operations") else None


def calls(graph: Any) -> list[Any]:
    """The calls of layers in a Functional model, inputs first: nodes with operation, input_tensors, output_tensors."""
    return [node for _, nodes in sorted(graph._nodes_by_depth.items(), reverse=True) for node in nodes]
