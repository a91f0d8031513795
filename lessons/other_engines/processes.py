"""Two processes of JAX that train one network over Gloo: `python -m lessons.other_engines.processes [RANK ADDRESS]`.

Without arguments it starts both, as `srun` or `torchrun` would. Each takes its own half of each batch.
"""

import socket
import subprocess
import sys

from lessons.other_engines import small  # first: it says what to do where there is no JAX

# isort: split
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

SIZE, RATE = 2, 0.1


def train(rank, address):
    """Train as one of the processes, on the device that it has."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, num_processes=SIZE, process_id=rank)
    here = f"process {jax.process_index()} of {jax.process_count()}"
    print(f"{here}: {jax.local_devices()} of {jax.devices()}", flush=True)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    by_rows = NamedSharding(mesh, P("data"))
    whole = NamedSharding(mesh, P())

    def step(weights, images, labels):
        value, gradient = jax.value_and_grad(small.loss)(weights, images, labels)
        return jax.tree.map(lambda w, g: w - RATE * g, weights, gradient), value

    step, weights = jax.jit(step, out_shardings=(whole, whole)), jax.device_put(small.weights(), whole)
    own = slice(rank * small.BATCH // SIZE, (rank + 1) * small.BATCH // SIZE)
    for images, labels in small.batches():
        batch = [jax.make_array_from_process_local_data(by_rows, each[own]) for each in (images, labels)]
        weights, value = step(weights, *batch)
    print(f"process {rank}: loss of the last batch {float(value):.6f}", flush=True)
    jax.distributed.shutdown()


def main():
    if len(sys.argv) == 3:
        return train(int(sys.argv[1]), sys.argv[2])
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "lessons.other_engines.processes"]
    both = [subprocess.Popen([*command, str(rank), address]) for rank in range(SIZE)]
    return max(abs(process.wait()) for process in both)


if __name__ == "__main__":
    sys.exit(main())
