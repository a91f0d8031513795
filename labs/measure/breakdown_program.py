"""The steps that labs.measure.breakdown compares: what each process takes, and the rounds in which they take turns.

With Horovod each rank runs this program. With MirroredStrategy it starts a process for each worker, which trains for
itself, on a core or GPU of its own, for the steps alone and together, and one more that trains on all of them, for
those with exchange and input. All are set up first.

python -m labs.measure.breakdown_program OPTIONS      OPTIONS: JSON; the result is written into a file
"""

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Any

from labs import data, devices, files, jobs, models
from labs.measure.breakdown import EFFICIENCY, WORKERS
from labs.measure.step import compiled, over_ranks, timed

AHEAD = 3  # batches that lie ready after other steps: prefetched, and one in the making; they say nothing of reading
ALL = WORKERS  # the number of the process that trains on all workers with MirroredStrategy; the others are 0, 1, ...


def take_turns(
    take: Callable, local_batches: list[int], kinds: list[str], rounds: int, order_seed: int, report: Callable = print
) -> dict[str, Any]:
    """Take all kinds of steps in each round; returns the result of `breakdown.measure` but for what is known of the
    network and the machine. Of several local batches only the first one is taken with all kinds.

    take(kind, local batch, number of the round): a list with what each process has measured, None for one at rest.
        Besides steps it is asked to "read" batches alone, to "reduce" messages of the gradient's size (seconds of
        each), and for the "moment" before the first round and after each (labs.devices.moment).
    report: is called with a line for each round, and flush=True
    """
    seconds = {size: {kind: [] for kind in EFFICIENCY} for size in local_batches}
    seconds[local_batches[0]] = {kind: [] for kind in kinds}
    turns = [(size, kind) for size, by_kind in seconds.items() for kind in by_kind]
    reading, reducing, moments = [], [], [take("moment", None, 0)]
    for number, order in zip(range(rounds), jobs.orders(order_seed, len(turns)), strict=False):
        report(f"Round {number + 1} of {rounds}", flush=True)
        for size, kind in (turns[place] for place in order):
            seconds[size][kind].append(over_ranks(take(kind, size, number)))
            if kind == "input" and reading:
                time.sleep(AHEAD * reading[-1])  # the pipeline reads ahead again, and would do so in the next kind
        if "input" in kinds:
            reading.append(fmean(over_ranks(take("read", local_batches[0], number))))
        reducing.append(fmean(over_ranks(take("reduce", None, number))))
        moments.append(take("moment", None, number))
    result = {"version": 2, "kind": "measured", "ranks": WORKERS, "local_batch": local_batches[0], "seconds": seconds}
    result |= {"pipeline_seconds": reading, "all_reduce_seconds": reducing, "order_seed": order_seed}
    return result | {"others": devices.others(zip(*moments, strict=True)), "notes": []}


class Process:
    """What one process measures in its turns. strategy: of tf.distribute, in whose scope the network is built.

    Whoever makes it sets `train`(kind, batch), which takes a step and waits for it, and `reduce`(), which exchanges
    `gradient` numbers likewise; then it calls `prepare`.
    """

    train: Callable
    reduce: Callable

    def __init__(self, strategy: Any, model: str, image_size: int):
        import keras

        keras.utils.set_random_seed(0)
        self.strategy, self.dataset, self.memory = strategy, data.load("digits"), {}
        classes = len(self.dataset.classes)
        with strategy.scope():
            self.network = models.build(model, image_size, classes)
        self.gradient = sum(weight.shape.num_elements() for weight in self.network.trainable_variables)
        self.about = {"model": model, "image_size": image_size, "classes": classes}
        self.about |= {"machine": devices.machine(), "versions": devices.versions()}
        self.about["gradient_bytes"] = 4 * self.gradient

    def batches(self, size: int, numbers: Any) -> Any:
        """Iterator without end of batches with `size` images for each replica; numbers: of the samples."""
        batches = data.batches(self.dataset, numbers, size * self.strategy.num_replicas_in_sync).repeat()
        return iter(self.strategy.experimental_distribute_dataset(batches))

    def prepare(self, local_batches: list[int], steps: int, order: Any = None) -> None:
        """Trace; order: numbers of the samples as the pipeline reads them, where it has to; steps: of each turn."""
        import numpy as np
        import tensorflow as tf

        self.steps = steps
        for size in local_batches:
            numbers = np.arange(size * self.strategy.num_replicas_in_sync) % len(self.dataset.labels)
            self.memory[size] = next(self.batches(size, tf.data.Dataset.from_tensor_slices(numbers)))
            for kind in EFFICIENCY:  # tracing, and what a first step of a size allocates
                self.take(kind, size)
        self.reduce()
        if order is not None:
            self.pipeline = self.batches(local_batches[0], order)
            next(self.pipeline)

    def take(self, kind: str, size: int | None) -> Any:
        """Seconds of each step of a kind with a local batch; for other words see `take_turns`."""
        if kind == "moment":
            return devices.moment()
        if kind == "reduce":
            return timed(self.reduce, 2)
        if kind == "read":
            timed(lambda: next(self.pipeline), AHEAD)
            return timed(lambda: next(self.pipeline), self.steps)
        return timed(lambda: self.train(kind, self.batch(kind, size)), self.steps)

    def batch(self, kind, size):
        """The batch of a step: the next one of the pipeline, or one that lies in memory."""
        return next(self.pipeline) if kind == "input" else self.memory[size]


def horovod(model, image_size, local_batches, kinds, steps, **turns):
    """The measurement of all ranks, in this one of them."""
    import keras
    import tensorflow as tf
    from horovod.tensorflow import allreduce

    from labs import hvd, ranks

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    report = print if hvd.rank() == 0 else lambda *_, **__: None
    report(f"Model {model} {hvd.size()} workers: tracing", flush=True)
    process = Process(tf.distribute.get_strategy(), model, image_size)
    own = compiled(process.network, keras.optimizers.SGD(0.0))  # ranks that step alone must not drift apart
    shared = compiled(process.network, hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)))
    gradient, order = tf.ones([process.gradient]), None
    process.train = lambda kind, batch: float((own if kind in ("alone", "together") else shared)(*batch))
    process.reduce = lambda: allreduce(gradient, name="gradient")
    if "input" in kinds:
        order = data.order(process.dataset, hvd.size() * local_batches[0]).shard(hvd.size(), hvd.rank())
    process.prepare(local_batches, steps, order)

    def take(kind, size, number):
        allreduce(tf.ones([]), name="together")  # all ranks go on from here
        rests = kind == "alone" and hvd.rank() != number % hvd.size()  # each rank has its turn
        return ranks.gather(None if rests else process.take(kind, size), "its steps")

    measured = take_turns(take, local_batches, kinds, report=report, **turns) | process.about
    return measured if hvd.rank() == 0 else None


def mirrored(model, image_size, local_batches, kinds, steps, **turns):
    """The measurement of processes that this one starts."""
    print(f"Model {model} {WORKERS} workers, each for itself, and all with MirroredStrategy: tracing", flush=True)
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # a GPU is shared by its own process and that of all
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        processes = [stack.enter_context(ProcessPoolExecutor(1, spawn)) for _ in range(WORKERS + 1)]
        setting = model, image_size, local_batches, kinds, steps
        ready = [each.submit(begin_process, number, *setting) for number, each in enumerate(processes)]
        about = [each.result() for each in ready][ALL]
        alone = processes[:ALL]

        def take(kind, size, number):
            on = {"alone": [alone[number % WORKERS]], "together": alone, "moment": processes}
            answers = [each.submit(measured_here, kind, size) for each in on.get(kind, [processes[ALL]])]
            return [each.result() for each in answers]

        return take_turns(take, local_batches, kinds, **turns) | about


def measured_here(kind, size):
    """What this process of `mirrored` measures in a turn."""
    return here.take(kind, size)


def begin_process(number, model, image_size, local_batches, kinds, steps):
    """Build and trace in this process of `mirrored`, the one of this number; returns what is known of network and
    machine. `here` is its Process from now on, for `measured_here`."""
    global here
    import keras
    import tensorflow as tf

    if number == ALL:
        strategy = tf.distribute.MirroredStrategy(devices=devices.workers(WORKERS))
    else:
        devices.pin(number, WORKERS)
        strategy = tf.distribute.get_strategy()
    here = Process(strategy, model, image_size)
    with strategy.scope():
        step = compiled(here.network, keras.optimizers.SGD(0.01))
    gradient, order = here.gradient, None

    @tf.function(reduce_retracing=True)
    def connected(batch):
        return strategy.run(step.python_function, args=batch)

    @tf.function
    def reduced():
        def on_replica():
            return tf.distribute.get_replica_context().all_reduce("SUM", tf.ones([gradient]))[0]

        return strategy.run(on_replica)

    def wait(values):
        return [float(value) for value in strategy.experimental_local_results(values)]

    here.train = lambda kind, batch: wait(connected(batch) if number == ALL else step(*batch))
    here.reduce = lambda: wait(reduced())
    if number == ALL and "input" in kinds:
        order = data.order(here.dataset, local_batches[0] * WORKERS)
    here.prepare(local_batches, steps, order)
    return here.about


def main(file, strategy, **options):
    """Measure, and write the result into `file`."""
    if measured := {"horovod": horovod, "mirrored": mirrored}[strategy](**options):
        files.write(Path(file), json.dumps(measured | {"strategy": strategy}, indent=1))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
