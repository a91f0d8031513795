"""The stand-ins of one Horovod rank: a script runs up to its `fit` as if others did the same, also on other nodes.

Horovod itself is not needed, nor is an exchange: what a rank would do is seen from what it gives to `fit`. Real ranks
of one machine could not tell a rank from its local rank, which is the mistake that matters on two nodes.
"""

import inspect
import sys
from functools import wraps
from unittest import mock

import keras
import tensorflow as tf

import labs
from labs import data, devices, training
from labs.checks import stand_in
from labs.checks.tryout import standins
from labs.errors import HorovodError


def put(facts, rank, size, local_size, leave):
    """Put the stand-ins in place, for the rest of this process; leave() is called at the first `fit`."""
    facts["hvd"] = seen = {"started": False, "early": False, "pins": [], "shards": []}
    place = stand_in.numbers(rank, size, local_size)
    numbers = {name: _asked(value, seen) for name, value in place.items()}

    def init():
        seen["started"] = True

    common = {"init": init, "shutdown": lambda: None, "is_initialized": lambda: seen["started"], **numbers}
    averaging, own = _wrapper("labs"), _wrapper("horovod")
    placed, module = {}, stand_in.module
    callbacks = module("labs.hvd.callbacks", **_callbacks(size))
    names = {"DistributedOptimizer": averaging, "HorovodError": HorovodError}
    names |= {"optimizer": module("labs.hvd.optimizer", **names), "callbacks": callbacks}
    labs.hvd = module("labs.hvd", **common, **names, __getattr__=_elsewhere(callbacks))
    placed |= {f"labs.hvd.{name}": names[name] for name in ("optimizer", "callbacks")}
    for name in ("horovod.tensorflow.keras", "horovod.keras"):
        theirs = placed[f"{name}.callbacks"] = module(f"{name}.callbacks", **_callbacks(size))
        placed[name] = module(name, **common, DistributedOptimizer=own, callbacks=theirs)
    plain = module("horovod.tensorflow", **common, keras=placed["horovod.tensorflow.keras"])
    stand_in.put(placed | stand_in.modules(labs.hvd, plain, keras=placed["horovod.keras"]))
    # Comparisons with ranks that are not there.
    labs.ranks = sys.modules["labs.ranks"] = mock.MagicMock(__spec__=None, own_seed=lambda seed: seed + rank)

    standins.replace(
        {
            devices.pin: _pin(devices.pin, seen),
            training.Recorder: _recorder(facts),
            data.batches: _batched(data.batches),
        }
    )
    tf.data.Dataset.shard = _shard(tf.data.Dataset.shard, seen)
    keras.Model.compile = standins.before(keras.Model.compile, _compile)
    keras.Model.fit = standins.before(keras.Model.fit, lambda given: _fit(given, facts, leave))


def _elsewhere(callbacks):
    """What labs.hvd says of a name that it has not, as the real one does."""

    def __getattr__(name):
        if name in vars(callbacks) and not name.startswith("_"):
            raise AttributeError(f"labs.hvd itself has no {name}: it lives in labs.hvd.callbacks")
        raise AttributeError(f"module 'labs.hvd' has no attribute {name!r}")

    return __getattr__


def _asked(value, seen):
    def asked():
        seen["early"] = seen["early"] or not seen["started"]
        return value

    return asked


def _wrapper(whose):
    """What stands for a DistributedOptimizer: it gives the optimizer itself, marked with whose it is."""

    def DistributedOptimizer(optimizer, backward_passes_per_step=1, **options):
        stand_in.refuse_optimizer(optimizer)
        optimizer.labs_wrapped = {"by": whose, "passes": backward_passes_per_step}
        return optimizer

    DistributedOptimizer.__qualname__ = "DistributedOptimizer"
    return DistributedOptimizer


def _callbacks(size):
    def begin(self, root_rank=0):
        keras.callbacks.Callback.__init__(self)
        stand_in.refuse_root(root_rank, size)
        self.root_rank = root_rank

    kinds = {"BroadcastGlobalVariablesCallback": {"__init__": begin}, "MetricAverageCallback": {}}
    return {name: type(name, (keras.callbacks.Callback,), content) for name, content in kinds.items()}


def _pin(real, seen):
    signature = inspect.signature(real)

    @wraps(real)
    def pin(*args, **options):
        seen["pins"].append(
            {key: standins.plain(value) for key, value in signature.bind(*args, **options).arguments.items()}
        )
        return real(*args, **options)

    return pin


def _recorder(facts):
    real = inspect.signature(training.Recorder.__init__)

    class PlayedRecorder(keras.callbacks.Callback):
        rank = 0

        def __init__(self, *args, **options):
            super().__init__()
            given = real.bind(self, *args, **options).arguments
            facts["recorders"].append(standins.told(given))
            self.record, self.path = mock.MagicMock(), mock.MagicMock()

    PlayedRecorder.__name__ = training.Recorder.__name__  # by which the facts name it
    return PlayedRecorder


def _batched(real):
    @wraps(real)
    def batches(dataset, numbers, batch):
        return real(dataset, numbers, batch) if isinstance(numbers, tf.data.Dataset) else numbers  # a blank

    return batches


def _shard(real, seen):
    @wraps(real)
    def shard(self, num_shards, index, name=None):
        seen["shards"].append([standins.plain(num_shards), standins.plain(index)])
        return real(self, num_shards, index, name)

    return shard


def _compile(given):
    if given["optimizer"] == []:  # a blank
        given["optimizer"] = "sgd"


def _fit(given, facts, leave):
    fact = standins.given(**given)
    fact["wrapped"] = getattr(given["self"].optimizer, "labs_wrapped", None)
    fact["roots"] = [c.root_rank for c in standins.listed(given["callbacks"]) if hasattr(c, "root_rank")]
    facts["fits"].append(fact)
    leave()
