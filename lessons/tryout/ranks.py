"""The stand-ins of one Horovod rank: a script runs up to its `fit` as if others did the same, also on other nodes.

Horovod itself is not needed, nor is an exchange: what a rank would do is seen from what it gives to `fit`. Real ranks
of one machine could not tell a rank from its local rank, which is the mistake that matters on two nodes.
"""

import sys
from types import SimpleNamespace
from unittest import mock

import keras

from labs import compat, devices, ranks, training
from lessons.tryout import standins
from lessons.tryout.client import horovod_numbers


def put(facts, rank, size, local_size, leave):
    """Put the stand-ins in place, for the rest of this process; leave() is called at the first `fit`."""
    sys.modules.update(_horovod(horovod_numbers(rank, size, local_size), facts["hvd"]))
    from labs import hvd

    class Recorder(keras.callbacks.Callback):
        """Starts no record: `fit` is never reached by all ranks."""

        rank, record, path = 0, mock.MagicMock(), mock.MagicMock()

        def __init__(self, *args, **options):
            super().__init__()

    def compiled(given):
        if isinstance(given["optimizer"], mock.Mock):  # a blank
            given["optimizer"] = "sgd"

    def fitted(given):
        fact, optimizer = standins.given(**given), given["self"].optimizer
        fact["wrapped"] = "horovod" if compat.wrapped_by_horovod(optimizer) else hvd.optimizer.averages(optimizer)
        fact["roots"] = [each.root_rank for each in standins.listed(given["callbacks"]) if hasattr(each, "root_rank")]
        facts["fits"].append(fact)
        leave()

    training.Recorder = Recorder
    devices.pin = standins.before(devices.pin, lambda given: facts["hvd"]["pins"].append(dict(given)))
    ranks.check_shards = lambda numbers, n, dropped=0: None  # of ranks that are not there
    keras.Model.compile = standins.before(keras.Model.compile, compiled)
    keras.Model.fit = standins.before(keras.Model.fit, fitted)


def _horovod(numbers, seen):
    """{name: module} of a Horovod on which labs.hvd stands: it knows its numbers, and other ranks bring what this one
    brings. Its own Keras classes are there, too, since a script may take them by mistake."""

    def number(value):
        def ask():
            seen["early"] = seen["early"] or not seen["started"]
            return value

        return ask

    def DistributedOptimizer(optimizer, **options):
        optimizer._allreduce_grads = True  # by which compat knows it
        return optimizer

    def same(tensor, *_, **options):
        return tensor

    names = "BroadcastGlobalVariablesCallback", "MetricAverageCallback"
    kinds = {name: type(name, (keras.callbacks.Callback,), {"__init__": lambda self, *_: None}) for name in names}
    horovod = SimpleNamespace(
        **{name: number(value) for name, value in numbers.items()},
        **dict.fromkeys(("allreduce", "grouped_allreduce", "broadcast"), same),
        init=lambda: seen.update(started=True),
        is_initialized=lambda: seen["started"],
        shutdown=lambda: None,
        allgather_object=lambda value: [value] * numbers["size"],
        Average=0,
        Sum=1,
        DistributedOptimizer=DistributedOptimizer,
        callbacks=SimpleNamespace(**kinds),
    )
    horovod.tensorflow = horovod.keras = horovod
    modules = dict.fromkeys(("horovod", "horovod.tensorflow", "horovod.keras", "horovod.tensorflow.keras"), horovod)
    modules |= {f"{name}.callbacks": horovod.callbacks for name in ("horovod.keras", "horovod.tensorflow.keras")}
    return modules | {"horovod.common.exceptions": SimpleNamespace(HorovodInternalError=RuntimeError)}
