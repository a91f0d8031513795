"""What `fit` must be, so that all ranks train one network: compared and refused before the first step."""

import contextlib
import functools
import os
import sys
import warnings

import keras
from horovod import tensorflow as horovod

from labs import compat, ranks
from labs.hvd.optimizer import SAYS, HorovodError, averages

# Attributes with the paths of those callbacks of Keras that several ranks cannot share. TensorBoard's files can.
WRITES = {"ModelCheckpoint": "filepath", "BackupAndRestore": "backup_dir", "CSVLogger": "filename"}


def check(model, params, last=False):
    """Raise HorovodError or RankError if `fit` of this compiled model would fail, hang, or not train one network.

    What trains, but perhaps not what is meant, rank 0 warns of, once.

    params: a callback's `params`, with the steps and epochs of this `fit`. All ranks must call it.
    last: whether who calls it must stand after Horovod's callbacks, as the recorder.
    """
    others = params.get("labs.hvd", [])
    waiting = [type(callback).__name__ for callback in others if not callback.begun] if last else []
    problem = SAYS["order"].format(first=waiting[0]) if waiting else _problem(model, params)
    own = [(type(each).__name__, each) for each in fit_callbacks() if type(each).__module__.startswith("keras.")]
    own = [(name, os.path.realpath(getattr(callback, WRITES[name]))) for name, callback in own if name in WRITES]
    seeds = [variable for variable in model.variables if variable.path.endswith("seed_generator_state")]
    own = [*own, *enumerate(ranks.fingerprints(seeds) if horovod.size() > 1 else [])]
    by_rank = ranks.gather({"problem": problem, "own": own}, "what it is to train")
    problems = [other["problem"] for other in by_rank]
    for rank, problem in enumerate(problems):
        if problem:
            raise HorovodError(problem if all(problems) else f"Rank {rank}: {problem}")
    owned = [each for other in by_rank for each in set(other["own"])]
    for name, what in {each for each in owned if owned.count(each) > 1}:
        if isinstance(name, str):
            raise HorovodError(SAYS["one_file"].format(name=name, what=what))
        _warn(SAYS["same_seeds"])
    names = ", ".join(type(callback).__name__ for callback in others)
    settings = {"steps": params.get("steps"), "epochs": params.get("epochs"), "callbacks": names}
    settings["steps_per_execution"] = model.steps_per_execution
    settings |= {f"network weight {n}": tuple(weight.shape) for n, weight in enumerate(model.trainable_weights)}
    for number, (_, optimizer) in enumerate(optimizers(model)):
        optimizer.number = number
        name = f"optimizer {number + 1}" if number else "the optimizer"
        settings |= {name: type(optimizer).__name__} | _settings(optimizer.get_config(), f"{name}'s ")
    for number, layer in enumerate(each for each in compat.layers(model) if not isinstance(each, keras.Model)):
        name = f"layer {number} ({type(layer).__name__})"
        settings |= {f"layer {number}": type(layer).__name__, f"{name}'s precision": layer.dtype_policy.name}
        with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):  # a layer of one's own
            settings |= _settings(layer.get_config(), f"{name}'s ")
    settings |= _settings({"loss": model.loss}, "the ")
    ranks.agree("they would wait for each other for ever, or train different networks", **settings)
    reductions = {value for key, value in settings.items() if key.startswith("the loss")}
    if reductions & {"sum", "mean_with_sample_weight"} or compat.masked(model):
        _warn(SAYS["uneven"])


@functools.cache
def _warn(text):
    """Say it on rank 0, in the standard error; each text once."""
    if horovod.size() > 1 and horovod.rank() == 0:
        print(f"Warning: {text}", file=sys.stderr, flush=True)


def _problem(model, params):
    """Why this rank's model cannot be trained with others, or None."""
    for where, optimizer in optimizers(model):
        if compat.wrapped_by_horovod(optimizer):
            return SAYS["horovods_own"]
        if averages(getattr(optimizer, "inner_optimizer", None)) and not averages(optimizer):
            return SAYS["scaled"]
        if not averages(optimizer):
            return SAYS["not_wrapped"] if optimizer is model.optimizer else SAYS["second"].format(where=where)
    if compat.compiled_by_xla(model):
        return SAYS["xla"]
    if not model.weights:
        return SAYS["no_weights"]
    for layer in compat.layers(model):
        if isinstance(layer, keras.layers.BatchNormalization) and layer.synchronized:
            return SAYS["synchronized"].format(layer=layer.name)
    return SAYS["steps"] if params.get("steps") is None and horovod.size() > 1 else None


def optimizers(model):
    """[(where, optimizer)]: what the model is compiled with, and what else it could train with, in a fixed order."""
    found, owners = [("optimizer", model.optimizer)], [("", model)]
    if getattr(model.train_step, "__func__", None) is not keras.Model.train_step:  # it may use those of models in it
        inner = [layer for layer in compat.layers(model) if isinstance(layer, keras.Model) and layer is not model]
        owners += [(f"{part.name}.", part) for part in inner if part.trainable_weights]

    def look(where, value, depth=0):
        if isinstance(value, keras.Optimizer) and not any(value is other for _, other in found):
            found.append((where, value))
        elif isinstance(value, (list, tuple, dict)) and depth < 3:
            for key, each in value.items() if isinstance(value, dict) else enumerate(value):
                look(f"{where}[{key!r}]", each, depth + 1)

    for prefix, owner in owners:
        for name in sorted(vars(owner), key=lambda name: (name.startswith("_"), name)):
            look(prefix + name, vars(owner)[name])
    return found


def _settings(config, prefix):
    """The plain values in a configuration, at any depth, with the names of what they set.

    Left out is what ranks need not share: names, which count what this process has made; seeds; and what is broadcast,
    which are rates that are numbers and how weights are drawn. Code of a lambda differs from process to process.
    """
    values = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        if key in ("name", "module", "registered_name", "build_config", "seed", "code") or name.endswith("initializer"):
            continue
        if hasattr(value, "get_config"):  # a loss of Keras, whose configuration does not hold all
            value = {"class": type(value).__name__} | vars(value)
        value = dict(enumerate(value)) if isinstance(value, (list, tuple)) else getattr(value, "__name__", value)
        if isinstance(value, dict):
            values |= _settings(value, f"{name}.")
        elif value is None or isinstance(value, (bool, int, float, str)) and key != "learning_rate":
            values[name] = value
    return values


def fit_callbacks():
    """The callbacks of the Keras `fit` that calls this, in a list to which one may be added; [] elsewhere."""
    frame = sys._getframe()
    while frame and not isinstance(frame.f_locals.get("self"), keras.callbacks.CallbackList):
        frame = frame.f_back
    return frame.f_locals["self"].callbacks if frame else []
