"""The program of labs.measure.breakdown for MirroredStrategy: its four kinds of steps, without Horovod.

A process for each worker trains for itself, on a core or GPU of its own, for the steps alone and together; one more
process trains on all of them with MirroredStrategy, for those with exchange and input. All are set up first; then they
take turns, and whoever has none waits for a line on its standard input.

python -m labs.measure.side_by_side OPTIONS            starts the others, gives turns, and writes the result
python -m labs.measure.side_by_side OPTIONS WORKER     one of them; WORKER is "all" for that of all workers
"""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import IO, cast

from labs import devices, files
from labs.measure.breakdown import batch_of, in_rounds, moment, others, over_ranks, read_from, timed


class Process:
    """A process that waits for its turns. `ask` gives it one; `seconds` waits for what it measured in it."""

    def __init__(self, options, worker, environment):
        command = [sys.executable, "-m", "labs.measure.side_by_side", json.dumps(options), str(worker)]
        pipe, environment = subprocess.PIPE, os.environ | environment
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
        self.asks, self.answers = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)

    def ask(self, *turn):
        self.asks.write(json.dumps(turn) + "\n")
        self.asks.flush()

    def seconds(self):
        line = self.answers.readline()
        if not line:  # it has said why on the standard error, which is this program's too
            sys.exit(f"A process of the measurement ended (exit code {self.process.wait()}).")
        return json.loads(line)


def main(file, workers, local_batches, kinds, rounds, order_seed, **options):
    """Start all processes, give turns round after round, and write the result of `breakdown.measure` to `file`."""
    options |= {"workers": workers, "local_batches": local_batches, "kinds": kinds}
    print(f"{workers} workers, each for itself, and all with MirroredStrategy: tracing", flush=True)
    grow = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}  # a GPU is shared by its own process and that of all
    apart = [Process(options, worker, grow) for worker in range(workers)]
    connected = Process(options, "all", grow)
    about = [process.seconds() for process in (*apart, connected)][-1]
    moments = {process: [] for process in (*apart, connected)}

    def mark():
        for process, own in moments.items():
            process.ask("moment", None)
            own.append(process.seconds())

    def take(kind, size, number):
        if kind == "alone":
            asked = [apart[number % workers]]  # each has its turn
        else:
            asked = apart if kind == "together" else [connected]
        for process in asked:
            process.ask(kind, size)
        return over_ranks([[process.seconds()] for process in asked])[0]

    def ask(what):
        connected.ask(what, local_batches[0])
        return connected.seconds()

    say, read, reduce = partial(print, flush=True), partial(ask, "read"), partial(ask, "reduce")
    found = in_rounds(rounds, order_seed, local_batches, kinds, say, take, read, reduce, mark)
    for process in (*apart, connected):
        process.asks.close()
        process.process.wait()
    found |= {"strategy": "mirrored", "ranks": workers, "others": others(moments.values()), **about}
    files.write(Path(file), json.dumps(found, indent=1))


def worker(place, workers, local_batches, kinds, steps, model, image_size, images):
    """Build and trace in this process, then time what each line of the standard input asks for: a kind, a batch."""
    import keras
    import numpy as np
    import tensorflow as tf

    from labs import data, models
    from labs.measure.step import compiled

    machine_of = devices.machine()
    if place == "all":
        strategy = tf.distribute.MirroredStrategy(devices=devices.workers(workers))
    else:
        devices.pin(int(place), workers)
        strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    keras.utils.set_random_seed(0)
    dataset = data.load("digits", images=images)
    with strategy.scope():
        network = models.build(model, image_size, len(dataset.classes))
        step = compiled(network, keras.optimizers.SGD(0.01))

    @tf.function(reduce_retracing=True)
    def connected(batch):
        return strategy.run(step.python_function, args=batch)

    def batches_of(size, numbers):
        found = strategy.experimental_distribute_dataset(data.batches(dataset, numbers, size * replicas).repeat())
        return iter(found)

    def fixed(size):
        """A batch that lies in memory, one for each replica."""
        numbers = np.arange(size * replicas) % len(dataset.labels)
        return next(batches_of(size, tf.data.Dataset.from_tensor_slices(numbers.astype("int64"))))

    def trained(batch):
        if place == "all":
            return [float(loss) for loss in strategy.experimental_local_results(connected(batch))]
        return float(step(*batch))

    gradient_bytes = 4 * sum(weight.shape.num_elements() for weight in network.trainable_variables)

    @tf.function
    def reduce():
        def on_replica():
            return tf.distribute.get_replica_context().all_reduce("SUM", tf.ones([gradient_bytes // 4]))[0]

        return strategy.run(on_replica)

    memory, pipeline = {size: fixed(size) for size in local_batches}, None
    for size in local_batches:  # tracing, and what a first step of a size allocates
        timed(lambda: trained(memory[size]), 2)  # noqa: B023, called at once
    if place == "all":
        strategy.experimental_local_results(reduce())
        if "input" in kinds:
            pipeline = batches_of(local_batches[0], data.order(dataset, local_batches[0] * replicas))
            next(pipeline)
    about = {"model": model, "image_size": image_size, "classes": len(dataset.classes)}
    print(json.dumps(about | {"gradient_bytes": gradient_bytes, "machine": machine_of}), flush=True)
    for line in sys.stdin:
        kind, size = json.loads(line)
        if kind == "read":
            found = read_from(pipeline, steps)
        elif kind == "moment":
            found = moment()
        elif kind == "reduce":
            found = timed(lambda: [float(x) for x in strategy.experimental_local_results(reduce())], 2)
        else:
            found = timed(lambda: trained(batch_of(kind, size, pipeline, memory)), steps)  # noqa: B023
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(**given) if len(sys.argv) == 2 else worker(sys.argv[2], **given)
