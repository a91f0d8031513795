"""Start Horovod, and notice ranks that cannot see each other."""

import os

from horovod import tensorflow as horovod

from labs.hvd.optimizer import HorovodError


def init():
    """Start Horovod in this process: from now on `rank()` and `size()` are known. All processes must call it.

    Raises HorovodError if a launcher started several processes but Horovod sees one alone in each.
    """
    horovod.init()
    # Number of processes by the environment of MPICH, Open MPI and srun; a batch script alone sets none of them.
    started = [os.environ.get(name, "") for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")]
    most = max([int(count) for count in started if count.isdecimal()], default=1)
    if horovod.size() == 1 and most > 1:
        raise HorovodError(
            f"{most} processes were started, but each sees itself alone: they would train {most} unconnected "
            "networks. The launcher is of another MPI than Horovod: use the environment's own mpiexec or horovodrun."
        )
