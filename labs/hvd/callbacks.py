"""Horovod's callbacks for Keras 3, for `fit(..., callbacks=[...])`."""

import contextlib
import math
import threading
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from horovod import tensorflow as horovod

from labs import compat, ranks
from labs.hvd.check import check, fit_callbacks, optimizers
from labs.hvd.optimizer import SAYS, HorovodError

PATIENCE = 30.0  # seconds for the others, where a rank leaves an epoch before its last step


class _Callback(keras.callbacks.Callback):
    """What both callbacks share: those of one `fit` find each other, and know how much this rank has measured.

    measured: {name of a metric in the logs: the weight of this rank's value in a mean over the ranks} of an epoch; for
    "loss" and "val_loss" that is the number of samples. trains: an epoch has begun, and its training is not over.
    """

    model: keras.Model  # set by Keras before it calls any of these
    params: dict[str, Any]
    begun, trains, test_steps = False, False, 0
    measured: dict[str, float] = {}

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
        self.trains, self.test_steps = True, 0

    def on_test_begin(self, logs=None):
        self._end_of_training()

    def on_test_batch_begin(self, batch, logs=None):
        self.test_steps += 1

    def on_test_end(self, logs=None):
        self.measured = self.measured | {f"val_{name}": each for name, each in _measured(self.model).items()}

    def on_epoch_end(self, epoch, logs=None):
        self._end_of_training()

    def _end_of_training(self):
        if self.trains:  # Keras' metrics are those of the training, and not yet of the validation
            self.measured, self.trains = _measured(self.model), False


class BroadcastGlobalVariablesCallback(_Callback):
    """At the beginning of every `fit`, all ranks take the weights and the optimizer's state of `root_rank`.

    Before that it compares the ranks (`check`). It does so again before the first step of every epoch: learning rates,
    samples per epoch, trained weights, and whether all ranks still train. That is one small message.

    Raises HorovodError for a model that the ranks would not train together, labs.ranks.RankError for ranks that would
    take different numbers of steps, train on unlike batches, at unlike rates, or that train different networks.
    """

    def __init__(self, root_rank: int = 0):
        super().__init__()
        if not 0 <= root_rank < horovod.size():
            raise HorovodError(f"There is no rank {root_rank} for weights: give one from 0 to {horovod.size() - 1}.")
        self.root_rank = root_rank

    def on_train_begin(self, logs=None):
        super().on_train_begin()
        self._epoch, self._first_batch = 0, None
        fit_callbacks().append(keras.callbacks.LambdaCallback(on_train_end=self._after_all))
        own = [optimizer for _, optimizer in optimizers(self.model)]
        if len(own) == 1 and not own[0].built:  # of several, each knows itself what it trains
            own[0].build(self.model.trainable_weights)
        # The seeds of dropout, which model.variables holds, too, stay each rank's own.
        state = [*self.model.weights, *(variable for optimizer in own for variable in optimizer.variables)]
        ranks.agree("they cannot be broadcast", **{"the number of weights and optimizer variables": len(state)})
        for number, variable in enumerate(state):
            value = tf.convert_to_tensor(variable.value)
            variable.assign(horovod.broadcast(value, self.root_rank, name=f"broadcast_{number:04d}"))

    def on_epoch_begin(self, epoch, logs=None):
        self._before = self._left()
        super().on_epoch_begin(epoch)
        self._epoch, self._calls, self._done = epoch + 1, 0, 0

    def on_train_batch_begin(self, batch, logs=None):
        self._calls += 1
        self._done = batch + self.model.steps_per_execution
        if horovod.size() == 1:
            return
        if self._calls == 1:  # by now every callback has had its say on the rate
            self._meet(self._epoch, self._before)
        elif self._calls == 2 and self._first_batch is None:
            self._first_batch = compat.samples(self.model)
            _same_samples(ranks.gather(self._first_batch, "its first batch"), "in its first step")

    def on_train_end(self, logs=None):
        self._meet(None, self._left())

    def _end_of_training(self):
        early = self.trains and horovod.size() > 1 and self._done < self.params["steps"]
        super()._end_of_training()
        if early and not _all_come():
            done, steps = self._done, self.params["steps"]
            _refuse("left_early", rank=horovod.rank(), epoch=self._epoch, done=done, steps=steps)

    def _left(self):
        """What an epoch has left behind, which must be the same on all ranks."""
        if horovod.size() == 1 or not self._epoch:
            return {"epoch": 0, "samples": 0, "weights": []}
        weights = ranks.fingerprints(self.model.trainable_weights)
        return {"epoch": self._epoch, "samples": round(self.measured.get("loss", 0)), "weights": weights}

    def _meet(self, epoch, before):
        """Compare the ranks, once per epoch. One that has finished comes once more, with None, so that nobody waits."""
        rates = [str(np.float32(float(optimizer.learning_rate))) for _, optimizer in optimizers(self.model)]
        by_rank = ranks.gather({"epoch": epoch, "rates": ", ".join(rates), "before": before}, "what an epoch left")
        ended = [rank for rank, other in enumerate(by_rank) if other["epoch"] is None]
        if 0 < len(ended) < len(by_rank):
            goes_on = next(rank for rank in range(len(by_rank)) if rank not in ended)
            _refuse("ended", rank=ended[0], epoch=by_rank[ended[0]]["before"]["epoch"], other=goes_on)
        if pair := ranks.differ([other["epoch"] for other in by_rank]):
            _refuse("other_epoch", first=by_rank[0]["epoch"], rank=pair[0], epoch=pair[1])
        last = before["epoch"]
        _same_samples([other["before"]["samples"] for other in by_rank], f"in epoch {last}")
        if pair := ranks.differ([other["rates"] for other in by_rank]):
            when = f"before epoch {epoch}" if epoch else f"after epoch {last}"
            _refuse("other_rate", first=by_rank[0]["rates"], rank=pair[0], rate=pair[1], when=when)
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
        logs = {} if logs is None else logs
        metrics = {key: float(value) for key, value in logs.items() if np.ndim(value) == 0}
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


def _measured(model):
    """{name in the logs: sum of weights over which it is a mean} for those metrics of a Keras model that are means."""
    found = {}
    for metric in model.metrics:
        several = getattr(metric, "metrics", None)  # those that the model was compiled with
        named = zip(metric.result(), several, strict=True) if several else [(metric.name, metric)]
        found |= {name: float(each.count) for name, each in named if isinstance(each, keras.metrics.Mean)}
    return found


def _refuse(name, **gaps):
    """Raise the RankError that says.toml has under this name."""
    raise ranks.RankError(SAYS[name].format(**gaps))


def _same_samples(samples, when):
    """Raise RankError unless all ranks have trained on equally many samples."""
    if pair := ranks.differ(samples):
        _refuse("other_samples", first=samples[0], when=when, rank=pair[0], samples=pair[1])


def _same_metrics(by_rank, epoch):
    """Raise RankError unless all ranks have measured the same metrics, on known numbers of samples."""
    for rank, other in enumerate(by_rank):
        for key in sorted(by_rank[0]["metrics"].keys() ^ other["metrics"].keys()):
            has, lacks = (0, rank) if key in by_rank[0]["metrics"] else (rank, 0)
            what = "validation" if key.startswith("val_") else "metric"
            _refuse(f"lacks_{what}", has=has, key=key, epoch=epoch + 1, lacks=lacks)
    if (pair := ranks.differ([each["steps"] for each in by_rank])) and not by_rank[0]["measured"].get("val_loss"):
        _refuse("other_validation", first=by_rank[0]["steps"], rank=pair[0], steps=pair[1])


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
