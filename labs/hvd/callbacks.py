"""Horovod's callbacks for Keras 3, for `fit(..., callbacks=[...])`."""

import contextlib
import functools
import math
import os
import sys
import threading
import warnings

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
SECOND = (
    "The model holds one more optimizer, {where}, that does not average gradients over the ranks: what it trains would "
    "differ from rank to rank, without any error. Wrap it too, with hvd.DistributedOptimizer, or remove it."
)
XLA = "The model is compiled with XLA, which cannot compile Horovod's operations. Compile it with jit_compile=False."
SCALED = (
    "Keras has put its loss scaling around the distributed optimizer: a rank whose gradients overflow would skip the "
    "average and leave the others waiting. Wrap it the other way round: "
    "hvd.DistributedOptimizer(keras.optimizers.LossScaleOptimizer(...))."
)
SYNCHRONIZED = (
    "{layer} is a BatchNormalization(synchronized=True), which shares its statistics under MirroredStrategy only: with "
    "Horovod each rank would use those of its own batch. Leave synchronized out."
)
STEPS = (
    "The number of steps per epoch is not known, and ranks with different numbers would wait for each other for ever. "
    "Pass steps_per_epoch=..., the same on all ranks."
)
ORDER = (
    "{first} stands after the recorder in callbacks=[...]: the recorder would compare and keep values that differ "
    "between the ranks. The order: BroadcastGlobalVariablesCallback, MetricAverageCallback, your own, the recorder."
)
NO_WEIGHTS = (
    "The model has no weights yet, so there is nothing to broadcast: each rank would draw its own in the first "
    "step. Begin it with keras.Input(...), or call model.build((None, ...)) before `fit`."
)
# Attributes with the paths of those callbacks of Keras that several ranks cannot share. TensorBoard's files can.
WRITES = {"ModelCheckpoint": "filepath", "BackupAndRestore": "backup_dir", "CSVLogger": "filename"}
UNEVEN = (
    "The loss is a sum, and the mean of its gradients over K ranks is K times too small; or it is a mean over masked "
    "or weighted values, whose count may differ between ranks. Divide the summed loss by a number equal on all ranks."
)
PATIENCE = 30.0  # seconds for the others, where a rank leaves an epoch before its last step


class _Callback(keras.callbacks.Callback):
    """What both callbacks share: those of one `fit` find each other, and know how much this rank has measured.

    measured: {name of a metric in the logs: the weight of this rank's value in a mean over the ranks} of an epoch; for
    "loss" and "val_loss" that is the number of samples.
    """

    begun = False
    measured, test_steps = {}, 0

    def set_params(self, params):
        # Keras gives all callbacks of a `fit` the same dict, before the first of them begins.
        super().set_params(params)
        self.begun = False
        params.setdefault("labs.hvd", []).append(self)

    def on_train_begin(self, logs=None):
        self.begun = True
        if self is self.params["labs.hvd"][0]:
            check(self.model, self.params)

    def on_epoch_begin(self, epoch, logs=None):
        self.measured, self.test_steps = None, 0

    def on_test_begin(self, logs=None):
        self._end_of_training()

    def on_test_batch_begin(self, batch, logs=None):
        self.test_steps += 1

    def on_test_end(self, logs=None):
        self.measured = self.measured | {f"val_{name}": each for name, each in _measured(self.model).items()}

    def on_epoch_end(self, epoch, logs=None):
        self._end_of_training()

    def _end_of_training(self):
        if self.measured is None:  # Keras' metrics are those of the training, and not yet of the validation
            self.measured = _measured(self.model)


class BroadcastGlobalVariablesCallback(_Callback):
    """At the beginning of every `fit`, all ranks take the weights and the optimizer's state of `root_rank`.

    Before that it compares the ranks (`check`). It does so again before the first step of every epoch: learning rates,
    samples per epoch, trained weights, and whether all ranks still train. That is one small message.

    Raises HorovodError for a model that the ranks would not train together, labs.ranks.RankError for ranks that would
    take different numbers of steps, train on unlike batches, at unlike rates, or that train different networks.
    """

    def __init__(self, root_rank=0):
        super().__init__()
        if not 0 <= root_rank < horovod.size():
            raise HorovodError(f"There is no rank {root_rank} for weights: give one from 0 to {horovod.size() - 1}.")
        self.root_rank = root_rank

    def on_train_begin(self, logs=None):
        super().on_train_begin()
        self._epoch = self._first_batch = None
        _fit_callbacks().append(keras.callbacks.LambdaCallback(on_train_end=self._after_all))
        optimizers = [optimizer for _, optimizer in _optimizers(self.model)]
        if len(optimizers) == 1 and not optimizers[0].built:  # of several, each knows itself what it trains
            optimizers[0].build(self.model.trainable_weights)
        # The seeds of dropout, which model.variables holds, too, stay each rank's own.
        state = [*self.model.weights, *(variable for optimizer in optimizers for variable in optimizer.variables)]
        ranks.agree("they cannot be broadcast", **{"the number of weights and optimizer variables": len(state)})
        for number, variable in enumerate(state):
            value = tf.convert_to_tensor(variable.value)
            variable.assign(horovod.broadcast(value, self.root_rank, name=f"broadcast_{number:04d}"))

    def on_epoch_begin(self, epoch, logs=None):
        self._before = self._left()
        super().on_epoch_begin(epoch)
        self._epoch, self._calls, self._done = epoch, 0, 0

    def on_train_batch_begin(self, batch, logs=None):
        self._calls += 1
        self._done = batch + self.model.steps_per_execution
        if horovod.size() == 1:
            return
        if self._calls == 1:  # by now every callback has had its say on the rate
            self._meet(self._epoch + 1, self._before)
        elif self._calls == 2 and self._first_batch is None:
            self._first_batch = compat.samples(self.model)
            _same_samples(ranks.gather(self._first_batch, "its first batch"), "in its first step")

    def on_train_end(self, logs=None):
        self._meet(None, self._left())

    def _end_of_training(self):
        early = self.measured is None and horovod.size() > 1 and self._done < self.params["steps"]
        super()._end_of_training()
        if early and not _all_come():
            raise ranks.RankError(
                f"Rank {horovod.rank()} has left epoch {self._epoch + 1} after step {self._done} of "
                f"{self.params['steps']}, and the others wait for its gradients: its data have ended, or a callback "
                "has stopped it. Give all ranks equally many batches, and stop all of them at the same step."
            )

    def _left(self):
        """What an epoch has left behind, which must be the same on all ranks."""
        if horovod.size() == 1 or self._epoch is None:
            return {"epoch": 0, "samples": 0, "weights": []}
        weights = ranks.fingerprints(self.model.trainable_weights)
        return {"epoch": self._epoch + 1, "samples": round(self.measured.get("loss", 0)), "weights": weights}

    def _meet(self, epoch, before):
        """Compare the ranks, once per epoch. One that has finished comes once more, with None, so that nobody waits."""
        rates = [str(np.float32(float(optimizer.learning_rate))) for _, optimizer in _optimizers(self.model)]
        by_rank = ranks.gather({"epoch": epoch, "rates": ", ".join(rates), "before": before}, "what an epoch left")
        ended = [rank for rank, other in enumerate(by_rank) if other["epoch"] is None]
        if 0 < len(ended) < len(by_rank):
            goes_on = next(rank for rank in range(len(by_rank)) if rank not in ended)
            raise ranks.RankError(
                f"Rank {ended[0]} has ended its training after epoch {by_rank[ended[0]]['before']['epoch']}, and rank "
                f"{goes_on} goes on, and would wait for it for ever. What stops a training, such as EarlyStopping, "
                "must decide alike on all ranks: give it to all of them, after MetricAverageCallback."
            )
        if pair := ranks.differ([other["epoch"] for other in by_rank]):
            raise ranks.RankError(
                f"Rank 0 begins epoch {by_rank[0]['epoch']} and rank {pair[0]} epoch {pair[1]}: they would not train "
                "equally long. Give `fit` the same initial_epoch on all ranks."
            )
        last = before["epoch"]
        _same_samples([other["before"]["samples"] for other in by_rank], f"in epoch {last}")
        if pair := ranks.differ([other["rates"] for other in by_rank]):
            raise ranks.RankError(
                f"The learning rate of rank 0 is {by_rank[0]['rates']} and of rank {pair[0]} {pair[1]}, "
                f"{f'before epoch {epoch}' if epoch else f'after epoch {last}'}: equal gradients then make different "
                "networks. Whatever sets it must run on all ranks, and after MetricAverageCallback if it uses a metric."
            )
        weights = [other["before"]["weights"] for other in by_rank]
        ranks.equal(self.model.trainable_weights, weights, f"after epoch {last}")

    def _after_all(self, logs):
        """When all other callbacks have ended, one of which may have restored the best weights."""
        weights = self.model.trainable_weights
        ranks.equal(weights, ranks.gather(ranks.fingerprints(weights), "its weights at the end"), "at the end of fit")


class MetricAverageCallback(_Callback):
    """At the end of each epoch, averages over the ranks what each has measured on its own share of the data.

    These are the metrics in `logs` (for all callbacks that come after this one) and the moving statistics of batch
    normalisation, which no gradient keeps equal. A metric that is a mean (accuracy) weighs on each rank as much as it
    was measured on: samples, without what is masked, or the sum of their weights (weighted_metrics). So it is the mean
    of all. The loss weighs the rank's samples; of others (AUC) it is the mean of the ranks.

    Raises labs.ranks.RankError for ranks that have measured different things, or on unknown numbers of samples.
    """

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch)
        if horovod.size() == 1:
            return
        metrics = {key: float(value) for key, value in (logs or {}).items() if np.ndim(value) == 0}
        mine = {"metrics": metrics, "measured": self.measured, "steps": self.test_steps}
        by_rank = ranks.gather(mine, "its metrics")
        _same_metrics(by_rank, epoch)
        measured = [v for v in self.model.non_trainable_weights if "float" in v.dtype]
        for dtype in sorted({variable.dtype for variable in measured}):  # one message for each, not one per variable
            alike = [variable for variable in measured if variable.dtype == dtype]
            tensors = [tf.convert_to_tensor(variable.value) for variable in alike]
            for variable, value in zip(alike, horovod.grouped_allreduce(tensors, op=horovod.Average), strict=True):
                variable.assign(value)
        for key in metrics:
            loss = "val_loss" if key.startswith("val_") else "loss"
            weights = [other["measured"].get(key, other["measured"].get(loss, 0)) for other in by_rank]
            logs[key] = _mean([other["metrics"][key] for other in by_rank], weights)


def check(model, params, last=False):
    """Raise HorovodError or RankError if `fit` of this compiled model would fail, hang, or not train one network.

    What trains, but perhaps not what is meant, rank 0 warns of, once.

    params: a callback's `params`, with the steps and epochs of this `fit`. All ranks must call it.
    last: whether who calls it must stand after Horovod's callbacks, as the recorder.
    """
    others = params.get("labs.hvd", [])
    waiting = [type(callback).__name__ for callback in others if not callback.begun] if last else []
    problem = ORDER.format(first=waiting[0]) if waiting else _problem(model, params)
    own = [(type(each).__name__, each) for each in _fit_callbacks() if type(each).__module__.startswith("keras.")]
    own = [(name, os.path.realpath(getattr(callback, WRITES[name]))) for name, callback in own if name in WRITES]
    seeds = [variable for variable in model.variables if variable.path.endswith("seed_generator_state")]
    own += enumerate(ranks.fingerprints(seeds) if horovod.size() > 1 else [])
    by_rank = ranks.gather({"problem": problem, "own": own}, "what it is to train")
    problems = [other["problem"] for other in by_rank]
    for rank, problem in enumerate(problems):
        if problem:
            raise HorovodError(problem if all(problems) else f"Rank {rank}: {problem}")
    owned = [each for other in by_rank for each in set(other["own"])]
    for name, what in {each for each in owned if owned.count(each) > 1}:
        if isinstance(name, str):
            raise HorovodError(
                f"{name} would write to {what} on several ranks at once, and damage it. Give it to rank 0 only (if "
                "hvd.rank() == 0); BackupAndRestore, which all need, gets a path for each rank."
            )
        _warn(
            "Several ranks draw the same random numbers: dropout leaves out the same units on them. Give each its own "
            "seed before it makes the model: keras.utils.set_random_seed(ranks.own_seed(seed)); then broadcast."
        )
    names = ", ".join(type(callback).__name__ for callback in others)
    settings = {"steps": params.get("steps"), "epochs": params.get("epochs"), "callbacks": names}
    settings["steps_per_execution"] = model.steps_per_execution
    settings |= {f"network weight {n}": tuple(weight.shape) for n, weight in enumerate(model.trainable_weights)}
    for number, (_, optimizer) in enumerate(_optimizers(model)):
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
        _warn(UNEVEN)


@functools.cache
def _warn(text):
    """Say it on rank 0, in the standard error; each text once."""
    if horovod.size() > 1 and horovod.rank() == 0:
        print(f"Warning: {text}", file=sys.stderr, flush=True)


def _problem(model, params):
    """Why this rank's model cannot be trained with others, or None."""
    for where, optimizer in _optimizers(model):
        if compat.wrapped_by_horovod(optimizer):
            return HOROVODS_OWN
        if averages(getattr(optimizer, "inner_optimizer", None)) and not averages(optimizer):
            return SCALED
        if not averages(optimizer):
            return NOT_WRAPPED if optimizer is model.optimizer else SECOND.format(where=where)
    if compat.compiled_by_xla(model):
        return XLA
    if not model.weights:
        return NO_WEIGHTS
    for layer in compat.layers(model):
        if isinstance(layer, keras.layers.BatchNormalization) and layer.synchronized:
            return SYNCHRONIZED.format(layer=layer.name)
    return STEPS if params.get("steps") is None and horovod.size() > 1 else None


def _optimizers(model):
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


def _measured(model):
    """{name in the logs: sum of weights over which it is a mean} for those metrics of a Keras model that are means."""
    found = {}
    for metric in model.metrics:
        several = getattr(metric, "metrics", None)  # those that the model was compiled with
        named = zip(metric.result(), several, strict=True) if several else [(metric.name, metric)]
        found |= {name: float(each.count) for name, each in named if isinstance(each, keras.metrics.Mean)}
    return found


def _fit_callbacks():
    """The callbacks of the Keras `fit` that calls this, in a list to which one may be added; [] elsewhere."""
    frame = sys._getframe()
    while frame and not isinstance(frame.f_locals.get("self"), keras.callbacks.CallbackList):
        frame = frame.f_back
    return frame.f_locals["self"].callbacks if frame else []


def _same_samples(samples, when):
    """Raise RankError unless all ranks have trained on equally many samples."""
    if pair := ranks.differ(samples):
        raise ranks.RankError(
            f"Rank 0 has trained on {samples[0]} samples {when} and rank {pair[0]} on {pair[1]}: the mean of their "
            "gradients is not that of the whole batch, for each rank counts the same. Give all ranks equal batches."
        )


def _same_metrics(by_rank, epoch):
    """Raise RankError unless all ranks have measured the same metrics, on known numbers of samples."""
    for rank, other in enumerate(by_rank):
        for key in sorted(by_rank[0]["metrics"].keys() ^ other["metrics"].keys()):
            has, lacks = (0, rank) if key in by_rank[0]["metrics"] else (rank, 0)
            advice = "Give fit on every rank its shard of the validation data, and the same validation_freq."
            raise ranks.RankError(
                f"Rank {has} has measured {key} in epoch {epoch + 1} and rank {lacks} has not: there is no mean. "
                + (advice if key.startswith("val_") else "Give all ranks the same metrics and callbacks.")
            )
    if (pair := ranks.differ([each["steps"] for each in by_rank])) and not by_rank[0]["measured"].get("val_loss"):
        raise ranks.RankError(
            f"Rank 0 has validated in {by_rank[0]['steps']} steps and rank {pair[0]} in {pair[1]}, with a test_step of "
            "the model's own: the numbers of samples, by which the mean must be weighed, are not known. "
            "Give all ranks equally many samples."
        )


def _mean(values, samples):
    """The mean of the ranks' values, each weighed by its samples; where no rank knows them, all alike."""
    if all(value == values[0] for value in values):
        return values[0]
    samples = samples if any(samples) else [1] * len(values)
    products = (value * count for value, count in zip(values, samples, strict=True) if count)
    return math.fsum(products) / sum(samples)


def _all_come():
    """Whether all ranks have left the epoch here, or some still step, and wait for the others without end."""
    came = []

    def ask():
        with contextlib.suppress(Exception):
            came.append(ranks.gather(None, "why it has left an epoch early"))

    asks = threading.Thread(target=ask, daemon=True)
    asks.start()
    asks.join(PATIENCE)
    return bool(came)
