"""Horovod's callbacks for Keras 3, for `fit(..., callbacks=[...])`."""

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from horovod import tensorflow as horovod

from labs import compat, ranks
from labs.errors import HorovodError
from labs.hvd.fit import check_fit


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """Gives all ranks the weights of `root_rank` when `fit` begins.

    They also take the state of its optimizer. Before that the callback compares the ranks (`check_fit`). It does so
    again before the first step of every epoch and at the end: whether all ranks still train, their learning rates,
    trained weights. These are two small messages.

    Raises HorovodError for a model that the ranks would not train together, labs.ranks.RankError for ranks that would
    take different numbers of steps, at unlike rates, or that train different networks.
    """

    model: keras.Model  # set by Keras before it calls any of these
    _epoch = 0

    def __init__(self, root_rank: int = 0):
        super().__init__()
        if not 0 <= root_rank < horovod.size():
            raise HorovodError(f"There is no rank {root_rank} for weights: give one from 0 to {horovod.size() - 1}.")
        self.root_rank = root_rank

    def on_train_begin(self, logs=None):
        check_fit(self.model, self.params)
        optimizer = self.model.optimizer
        if not optimizer.built:
            optimizer.build(self.model.trainable_weights)
        # The seeds of dropout, which model.variables holds, too, stay each rank's own.
        state = [*self.model.weights, *optimizer.variables]
        ranks.agree("they cannot be broadcast", **{"the number of weights and optimizer variables": len(state)})
        for number, variable in enumerate(state):
            value = tf.convert_to_tensor(variable.value)
            variable.assign(horovod.broadcast(value, self.root_rank, name=f"broadcast_{number:04d}"))

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch, self._compared = epoch + 1, False

    def on_train_batch_begin(self, batch, logs=None):
        if not self._compared:  # by now every callback has had its say on the rate
            self._compared = True
            self._compare(f"before epoch {self._epoch}", ended=False)

    def on_train_end(self, logs=None):
        self._compare(f"after epoch {self._epoch}", ended=True)

    def _compare(self, when, ended):
        """Raise RankError unless all ranks go on, or have all ended, at the same rate, and with the same network."""
        rate = np.float32(float(self.model.optimizer.learning_rate))
        by_rank = ranks.gather((ended, str(rate)), "whether it goes on, and its rate")
        if difference := ranks.first_difference([ended for ended, _ in by_rank]):
            goes_on, stops = sorted([0, difference[0]], key=lambda rank: by_rank[rank][0])
            raise ranks.RankError(
                f"Rank {stops} has ended its training, and rank {goes_on} goes on, and would wait for it for ever "
                f"({when}). What stops a training, such as EarlyStopping, must decide alike on all ranks: give it to "
                "all of them, after MetricAverageCallback."
            )
        if difference := ranks.first_difference([rate for _, rate in by_rank]):
            raise ranks.RankError(
                f"The learning rate of rank 0 is {by_rank[0][1]} and of rank {difference[0]} {difference[1]}, {when}: "
                "equal gradients then make different networks. Whatever sets it must run on all ranks, and after "
                "MetricAverageCallback if it uses a metric."
            )
        if len(by_rank) > 1:
            ranks.require_equal(self.model.trainable_weights, when)


class MetricAverageCallback(keras.callbacks.Callback):
    """Averages the ranks' metrics at the end of each epoch.

    Each rank has measured on its own share of the data. The callback averages the metrics in `logs` (for all callbacks
    that come after this one) and the moving statistics of batch normalisation, which no gradient keeps equal. Each
    rank's metrics weigh as much as the samples that it has trained on, those of the validation as much as its samples
    there. So a metric that is a mean over samples (accuracy) is the mean of all.

    Raises HorovodError where it stands after the recorder, labs.ranks.RankError for ranks that have measured different
    things, or have trained on different numbers of samples.
    """

    model: keras.Model
    params: dict[str, Any]

    def on_train_begin(self, logs=None):
        if self.params.get("recorded"):
            raise HorovodError(
                "MetricAverageCallback stands after the recorder in callbacks=[...]: the recorder would keep values "
                "that differ between the ranks. The order: BroadcastGlobalVariablesCallback, MetricAverageCallback, "
                "your own, the recorder."
            )

    def on_epoch_begin(self, epoch, logs=None):
        self._trained = self._validated = 0  # samples of this rank

    def on_test_begin(self, logs=None):
        self._trained = compat.samples(self.model)  # Keras counts anew for the validation

    def on_test_end(self, logs=None):
        self._validated = compat.samples(self.model)

    def on_epoch_end(self, epoch, logs=None):
        if horovod.size() == 1:
            return
        logs = {} if logs is None else logs
        metrics = {key: float(value) for key, value in logs.items() if np.ndim(value) == 0}
        trained = self._trained or compat.samples(self.model)
        by_rank = ranks.gather((metrics, trained, self._validated), "its metrics")
        _same_metrics(by_rank, epoch + 1)
        if measured := [v for v in self.model.non_trainable_weights if "float" in v.dtype]:
            tensors = [tf.convert_to_tensor(variable.value) for variable in measured]
            for variable, value in zip(measured, horovod.grouped_allreduce(tensors, op=horovod.Average), strict=True):
                variable.assign(value)
        for key in metrics:
            samples = [validated if key.startswith("val_") else trained for _, trained, validated in by_rank]
            # Keras does not count those of a loss of one's own: then all ranks weigh alike.
            weights = samples if any(samples) else [1] * len(by_rank)
            values = [other[key] for other, *_ in by_rank]
            logs[key] = math.fsum(map(math.prod, zip(values, weights, strict=True))) / sum(weights)


def _same_metrics(by_rank, epoch):
    """Raise RankError unless all ranks have measured the same metrics, and trained on equally many samples."""
    first, first_samples, _ = by_rank[0]
    for rank, (metrics, samples, _) in enumerate(by_rank):
        for key in sorted(first.keys() ^ metrics.keys()):
            has, lacks = (0, rank) if key in first else (rank, 0)
            raise ranks.RankError(
                f"Rank {has} has measured {key} in epoch {epoch} and rank {lacks} has not: there is no mean. Give all "
                "ranks the same metrics and callbacks, their shards of the validation data, and the same "
                "validation_freq."
            )
        if samples != first_samples:
            raise ranks.RankError(
                f"Rank 0 has trained on {first_samples} samples in epoch {epoch} and rank {rank} on {samples}: the "
                "mean of their gradients is not that of the whole batch, for each rank counts the same. Give all ranks "
                "equal batches."
            )
