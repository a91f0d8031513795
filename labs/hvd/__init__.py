"""Horovod's own names on Keras 3, and nothing more.

Horovod 0.28.1 does not know Keras 3: its `DistributedOptimizer` averages nothing there, without any error, and its
callbacks fail. Here are the same names, made for Keras 3 on TensorFlow. What has no counterpart here is used from
`horovod.tensorflow` directly, which works beside it.

start       init
optimizer   DistributedOptimizer
callbacks   broadcast at the start, averaged metrics, and what `fit` must be
"""

try:
    import horovod.tensorflow  # noqa: F401
except ImportError as problem:
    raise ImportError(
        f"Horovod cannot be imported ({problem}), so nothing can run in many processes. Install a C++ compiler, "
        "then `make horovod`; `labs doctor` says what is missing."
    ) from None
from horovod.tensorflow import cross_size, local_rank, local_size, rank, shutdown, size

from labs.hvd import callbacks
from labs.hvd.optimizer import DistributedOptimizer, HorovodError
from labs.hvd.start import init

__all__ = [
    "DistributedOptimizer",
    "HorovodError",
    "callbacks",
    "cross_size",
    "init",
    "local_rank",
    "local_size",
    "rank",
    "shutdown",
    "size",
]
