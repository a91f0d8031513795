"""Horovod's own names on Keras 3, and nothing more.

Horovod 0.28.1 does not know Keras 3: its `DistributedOptimizer` averages nothing there, without any error, and its
callbacks fail. Here are the same names, made for Keras 3 on TensorFlow. What has no counterpart here is used from
`horovod.tensorflow` directly, which works beside it.

optimizer    DistributedOptimizer
callbacks    broadcast at the start, averaged metrics
fit          what `fit` must be, so that all ranks train one network
collectives  allreduce, grouped_allreduce, reducescatter, allgather, broadcast

Of Horovod itself:

rank         Number of this process, from 0.
size         Number of all processes.
local_rank   Number of this process among those on its machine, from 0.
local_size   Number of processes on this machine.
cross_rank   Number of this process' machine, from 0.
cross_size   Number of machines.
shutdown     End Horovod in this process.
"""

import os

try:
    import horovod.tensorflow as horovod
except ImportError as problem:
    raise ImportError(
        f"Horovod cannot be imported ({problem}), so nothing can run in many processes. Install a C++ compiler, "
        "then `make horovod`; `labs doctor` says what is missing."
    ) from None
from horovod.tensorflow import cross_rank, cross_size, local_rank, local_size, rank, shutdown, size  # noqa: F401

from labs import stacks
from labs.errors import HorovodError
from labs.hvd import callbacks  # noqa: F401
from labs.hvd.collectives import *  # noqa: F403
from labs.hvd.optimizer import DistributedOptimizer  # noqa: F401


def init() -> None:
    """Start Horovod in this process; all processes must call it.

    From now on `rank()` and `size()` are known. Raises HorovodError if a launcher started several processes but Horovod
    sees one alone in each.
    """
    stacks.register()  # a rank that waits for others here is seen by `labs why`
    horovod.init()
    # Where MPICH, Open MPI and srun tell how many processes they started; in a batch script alone all three are unset.
    started = [os.environ.get(name, "") for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")]
    most = max([int(count) for count in started if count.isdecimal()], default=1)
    if horovod.size() == 1 and most > 1:
        raise HorovodError(
            f"{most} processes were started, but each sees itself alone: they would train {most} unconnected "
            "networks. The launcher belongs to another MPI than Horovod: use the environment's mpiexec or horovodrun."
        )
