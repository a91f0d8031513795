"""Stand-ins for what takes long or is not here: data, devices, networks. They write down how they were called."""

import inspect
import re
import sys
from functools import wraps

import keras
import numpy as np
import tensorflow as tf

from labs import compat, data, devices
from labs.data.datasets import Dataset


def put(facts, images):
    """Put the stand-ins in place, for the rest of this process."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})  # it costs more than it saves here
    data.load, devices.workers = _load(images), _workers(devices.workers)
    networks = {name: made for name, made in vars(keras.applications).items() if inspect.isfunction(made)}
    networks = {name: _application(name, real, facts) for name, real in networks.items()}
    for name, module in list(sys.modules.items()):
        if "keras" in name and "applications" in name:  # TensorFlow and Keras have them under several names
            vars(module).update({name: networks[name] for name in networks.keys() & vars(module).keys()})
    _mirrored(tf.distribute.MirroredStrategy, facts)

    def fitted(arguments):
        facts["fits"].append(given(**arguments))
        arguments.update(epochs=1, steps_per_epoch=1)  # the first step shows whether it trains

    keras.Model.fit = before(keras.Model.fit, fitted)


def _load(n):
    def load(name="digits", *, images=None):
        """n small images, each of a class of its own: the label of an image is its number."""
        count = images or n
        return Dataset("numbered", np.zeros((count, 8, 8, 3), np.uint8), np.arange(count), list(map(str, range(count))))

    return load


def _workers(real):
    @wraps(real)
    def workers(count, **options):
        """One more is there than is asked for: as on a machine with many GPUs, of which a part is asked for."""
        return real(count + 1, pin=False)[:count]

    return workers


def _application(name, real, facts):
    """A function that makes a tiny network with the signature of `real`, a function of keras.applications."""

    def build(options):
        tensor, top, classes = options["input_tensor"], options["include_top"], options["classes"]
        shape, activation = options["input_shape"], options["classifier_activation"]
        if tensor is not None:
            shape = tuple(tensor.shape[1:])
        made = {"name": name, "weights": options["weights"], "input_shape": shape}
        logits = bool(top) and keras.activations.get(activation).__name__ == "linear"
        facts["networks"].append(made | {"logits": logits, "in_scope": tf.distribute.has_strategy()})
        inputs = tensor if tensor is not None else keras.Input(shape or (224, 224, 3))
        outputs = keras.layers.Identity()(inputs)
        if top or options["pooling"]:
            outputs = keras.layers.GlobalAveragePooling2D()(inputs)
        if top:
            outputs = keras.layers.Dense(classes, activation=activation)(outputs)
        return keras.Model(inputs, outputs, name=options["name"] or name.lower())

    return before(real, build)


def _mirrored(kind, facts):
    """Write down the devices of each MirroredStrategy. CPU devices play the GPUs that it asks for by name: on devices
    that do not exist, `fit` would never end."""
    real = kind.__init__

    @wraps(real)
    def made(self, devices=None, *more, **options):
        names = list(devices) if isinstance(devices, list | tuple) else []
        real(self, [re.sub("gpu", "CPU", str(name), flags=re.I) for name in names] or devices, *more, **options)
        there = {device.name.rpartition("device:")[2] for device in tf.config.list_logical_devices()}
        replicas = [device.rpartition("device:")[2] for device in self.extended.worker_devices]
        if missing := set(replicas) - there:
            raise ValueError(f"There is no device {', '.join(sorted(missing))} on this machine.")
        gpus = any("gpu" in str(name).lower() for name in names)
        facts["strategies"].append([name.replace("CPU", "GPU") if gpus else name for name in replicas])

    kind.__init__ = made


def before(real, act):
    """The function `real`; its arguments, {name: value} with all defaults, go through act(arguments) first. What that
    returns, if anything, is returned instead."""
    signature = inspect.signature(real)

    @wraps(real)
    def called(*args, **options):
        bound = signature.bind_partial(*args, **options)
        bound.apply_defaults()
        instead = act(bound.arguments)
        return real(*bound.args, **bound.kwargs) if instead is None else instead

    return called


def given(self, x, y, batch_size, epochs, verbose, callbacks, steps_per_epoch, **_):
    """What a `fit` is given, as facts. passes: two epochs, each a list of steps, each a list of sample numbers."""
    optimizer, usual = self.optimizer, keras.optimizers.SGD().get_config()
    changed = {key: value for key, value in optimizer.get_config().items() if value and value != usual.get(key)}
    return {
        "x": type(x).__name__,
        "passes": [_batches(x, y, batch_size, steps_per_epoch) for _ in range(2)],
        "counted": bool(steps_per_epoch) or not isinstance(x, tf.data.Dataset) or int(x.cardinality()) >= 0,
        "epochs": epochs,
        "verbose": 1 if verbose == "auto" else verbose,
        "callbacks": [[kind.__name__ for kind in type(callback).__mro__] for callback in listed(callbacks)],
        "mirrored": isinstance(compat.strategy(self), tf.distribute.MirroredStrategy),
        "optimizer": changed | {"name": type(optimizer).__name__},
        "rate": float(keras.ops.convert_to_numpy(optimizer.learning_rate)),  # in the first step
        "from_logits": getattr(self.loss, "from_logits", False),
        "outputs": self.compute_output_shape((None, 8, 8, 3))[1:],
    }


def listed(callbacks):
    """The callbacks that a `fit` is given, as a list."""
    return keras.tree.flatten(callbacks) if callbacks else []


def _batches(x, y, batch_size, steps):
    """The sample numbers of each step of an epoch; None for what can be read once only."""
    if isinstance(x, tf.data.Dataset):
        elements = x.take(steps or 1000).as_numpy_iterator()
        return [_numbers(element[1]) for element in elements if isinstance(element, tuple)]
    if isinstance(x, np.ndarray | tf.Tensor) and y is not None:
        numbers, batch = _numbers(y), batch_size or 32
        return [numbers[start : start + batch] for start in range(0, len(numbers), batch)]
    return None


def _numbers(labels):
    return np.ravel(labels).astype(int).tolist()


def plain(value):
    """A value as JSON can hold it, of a type that it does not know."""
    return value.item() if isinstance(value, np.generic) else repr(value)[:80]
