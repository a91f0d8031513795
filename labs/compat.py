"""Private parts of TensorFlow, Keras and Horovod that the kit relies on, each behind a function of its own.

A new version may rename or drop one without notice. Then the function raises CompatError, and tests/test_compat.py,
which asks for each of them and for what each is expected to do, fails by its name.
"""

from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any

from labs.errors import LabsError

if TYPE_CHECKING:
    import keras


class CompatError(LabsError):
    """A private part that the kit relies on is not in the installed version; the message names both."""


def _part(owner, name, package):
    """The attribute `name` of `owner`, a private part of `package`. Raises CompatError where there is none."""
    try:
        return getattr(owner, name)
    except AttributeError:
        where = getattr(owner, "__name__", type(owner).__name__)
        raise CompatError(
            f"{package} {_version(package)} has no {where}.{name} any more, on which the course relies. "
            "Install the locked versions (`make setup`), or adapt labs/compat.py to the new one."
        ) from None


def _version(package):
    for distribution in (package, f"{package}-cpu"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return "(of unknown version)"


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

    original = _part(module, "_create_device_dataset", "tensorflow")
    if getattr(original, "labs", False):
        return

    def untuned(*args, **kwargs):
        options = tf.data.Options()
        options.autotune.enabled = False
        return original(*args, **kwargs).with_options(options)

    untuned.labs = True
    module._create_device_dataset = untuned


def clips_summed_gradients(optimizer_class: "type[keras.Optimizer]") -> None:
    """Make sure that this class of Keras optimizers clips in `_clip_gradients`, which labs.hvd overrides.

    With gradient_accumulation_steps=k Keras calls it in every k-th step only, with the mean of the k gradients. A
    class that did not call it would train without averaging over the ranks, and without any error.
    """
    _part(optimizer_class, "_clip_gradients", "keras")


def wrapped_by_horovod(optimizer: object) -> bool:
    """True for an optimizer of Horovod's own `DistributedOptimizer`, whose class is made at run time."""
    return hasattr(optimizer, "_allreduce_grads") or type(optimizer).__module__.startswith("horovod")


def compiled_by_xla(model: "keras.Model") -> bool:
    """True if the steps of a compiled Keras model go through XLA, as `jit_compile="auto"` lets most of them."""
    return bool(_part(model, "jit_compile", "keras"))


def strategy(model: "keras.Model") -> Any:
    """The tf.distribute strategy in whose scope a Keras model was made; of one on JAX, Keras' distribution or None."""
    import keras

    if keras.backend.backend() == "jax":
        return keras.distribution.distribution()
    return _part(model, "distribute_strategy", "keras")


def replicas(model: "keras.Model") -> int:
    """Number of replicas that a Keras model was made for, by the strategy of its scope."""
    scope = strategy(model)
    return getattr(scope, "num_replicas_in_sync", None) or getattr(scope, "num_model_replicas", 1)


def layers(model: "keras.Model") -> "list[keras.Layer]":
    """A Keras model, and all layers and models in it, at any depth."""
    return list(_part(model, "_flatten_layers", "keras")())


def samples(model: "keras.Model") -> int:
    """Samples since the metrics of a compiled Keras model were reset: by them it weighs its loss. 0 if not known.

    A step of one's own that does not keep Keras' loss does not count them. Each replica counts its own; read as one
    variable, Keras 3.3 would give their mean.
    """
    tracker = _part(model, "_loss_tracker", "keras") if model.compiled else None
    if tracker is None:
        return 0
    count = _part(tracker, "count", "keras").value
    return round(sum(float(copy) for copy in getattr(count, "values", [count])))


def masked(model: "keras.Model") -> bool:
    """Whether a mask reaches the loss of a Keras model, as far as its graph of layers tells."""
    return any(hasattr(tensor, "_keras_mask") for tensor in getattr(model, "outputs", None) or [])


def trained_by(optimizer: "keras.Optimizer") -> "list[keras.Variable]":
    """The variables for which a Keras optimizer was built."""
    inner = getattr(optimizer, "inner_optimizer", None)  # of one that scales the loss; in Keras 3.3 it alone knows
    return list(_part(optimizer, "_trainable_variables", "keras")) or (trained_by(inner) if inner else [])


def copy_state(optimizer: "keras.Optimizer", other: "keras.Optimizer") -> None:
    """Give `other`, made of the configuration of a Keras optimizer, what that one has kept, if it has been used."""
    if optimizer.built:
        other.build(trained_by(optimizer))
        for variable, used in zip(other.variables, optimizer.variables, strict=True):
            variable.assign(used.value)


def copy_exclusions(optimizer: "keras.Optimizer", other: "keras.Optimizer") -> None:
    """Leave out of `other`'s weight decay what exclude_from_weight_decay left out of `optimizer`'s (no config)."""
    for name in ("_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern"):
        if hasattr(optimizer, name):
            setattr(other, name, getattr(optimizer, name))


def graph(model: "keras.Layer") -> Any:
    """The graph of layers behind a Keras model, a Functional model, or None (also for a layer): for `calls`.

    A Sequential model keeps one inside once it has seen a shape; a model of one's own class has none.
    """
    import keras

    if isinstance(model, keras.Sequential):
        model = _part(model, "_functional", "keras")
    return model if hasattr(model, "operations") else None


def calls(graph: Any) -> list[Any]:
    """The calls of layers in a Functional model, inputs first: nodes with operation, input_tensors, output_tensors."""
    by_depth = _part(graph, "_nodes_by_depth", "keras")
    return [node for _, nodes in sorted(by_depth.items(), reverse=True) for node in nodes]


def xplane() -> ModuleType:
    """The module that reads TensorFlow's profiles (`XSpace`)."""
    try:
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    except ImportError:
        raise CompatError(
            f"tensorflow {_version('tensorflow')} has no tensorflow.tsl.profiler.protobuf.xplane_pb2 any more, which "
            "reads its profiles. Install the locked versions (`make setup`), or adapt labs/compat.py to the new one."
        ) from None
    return xplane_pb2
