"""Which samples would each rank read? A Horovod script is run up to its `fit`, once as each rank, without Horovod.

The script runs in this process, with stand-ins: `labs.hvd` answers with the rank and size that are tried, the data set
holds n empty images whose labels are their own numbers, and `fit` hands over its batches instead of training.
"""

import contextlib
import io
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

from labs.errors import LabsError


class RehearsalError(LabsError):
    """The script did not come to its `fit`; the text says as which rank, and why."""


class _Reached(BaseException):  # no `except Exception` of a script may catch it
    """`fit` was called with these batches and this steps_per_epoch."""


def sample_numbers(script, size, *, n=48, local_batch=4):
    """What ranks 0 to size-1 of a script read in one epoch: a list with the batches of each rank.

    Each batch is an int64 array of sample numbers (0 to n-1); the script is started with --batch_size size*local_batch.
    Raises RehearsalError: the script fails or ends before `fit`, or does not train on a tf.data.Dataset.
    """
    return [_batches(Path(script), rank, size, n, local_batch) for rank in range(size)]


def _batches(script, rank, size, n, local_batch):
    who = f"As rank {rank} of {size}, {script.name}"
    argv = [str(script), "--batch_size", str(size * local_batch)]
    try:
        with _stage(rank, size, n), mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(script), run_name="__main__")
    except _Reached as reached:
        train, steps = reached.args
    except (Exception, SystemExit) as problem:
        text = str(problem).strip().split("\n")[0][:200]
        raise RehearsalError(f"{who} stops before `fit` with {type(problem).__name__}: {text}") from None
    else:
        raise RehearsalError(f"{who} ends without calling `fit`: nothing is trained.")
    if not hasattr(train, "as_numpy_iterator"):
        raise RehearsalError(f"{who} calls `fit` with a {type(train).__name__}, not with a tf.data.Dataset of batches.")
    batches = train.take(steps or 10 * n)  # a repeated data set has no end
    return [np.atleast_1d(labels) for _, labels in batches.as_numpy_iterator()]


def horovod(size, rank, local_size, local_rank, made):
    """What stands for `hvd` on a rank; made(name) stands for its class of this name."""
    names = "BroadcastGlobalVariablesCallback", "MetricAverageCallback"
    return SimpleNamespace(
        init=lambda: None,
        shutdown=lambda: None,
        size=lambda: size,
        rank=lambda: rank,
        local_rank=lambda: local_rank,
        local_size=lambda: local_size,
        cross_size=lambda: size // local_size,
        callbacks=SimpleNamespace(**{name: made(name) for name in names}),
        DistributedOptimizer=made("DistributedOptimizer"),
    )


@contextlib.contextmanager
def _stage(rank, size, n):
    """All stand-ins, for as long as the script runs."""
    import keras

    import labs
    from labs import data, devices, models, training

    def nothing(*args, **kwargs):
        return keras.callbacks.Callback()

    def fit(model, x=None, *args, steps_per_epoch=None, **kwargs):
        raise _Reached(x, steps_per_epoch)

    hvd = horovod(size, rank, size, rank, lambda name: nothing)
    hvd.DistributedOptimizer = lambda optimizer, **kwargs: optimizer
    tiny = [keras.Input((1, 1, 3)), keras.layers.Flatten()]
    numbered = data.Dataset("numbered", np.zeros((n, 1, 1, 3), np.uint8), np.arange(n), list("0123456789"))
    ranks = mock.MagicMock()  # comparisons with the other ranks, which are not there
    with contextlib.ExitStack() as stage:
        for name, module in (("hvd", hvd), ("ranks", ranks)):
            stage.enter_context(mock.patch.dict(sys.modules, {f"labs.{name}": module}))
            stage.enter_context(mock.patch.object(labs, name, module, create=True))
        for owner, name, instead in (
            (data, "load", lambda *args, **kwargs: numbered),
            (devices, "pin", lambda *args: "core 0"),
            (models, "build", lambda *args, **kwargs: keras.Sequential(tiny)),
            (training, "Recorder", nothing),
            (keras.utils, "set_random_seed", lambda seed: None),  # the notebook keeps its own
            (keras.Model, "fit", fit),
        ):
            stage.enter_context(mock.patch.object(owner, name, instead))
        yield
