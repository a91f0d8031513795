"""What each rank runs for labs.measure.breakdown: `python -m labs.measure.breakdown_steps FILE OPTIONS`; rank 0 writes FILE."""

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import fmean

from labs import files
from labs.measure.breakdown import EFFICIENCY, KINDS


def main():
    """Trace the step of a network with and without exchange, then time all kinds of steps, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--model", required=True)
    for option in ("image_size", "images", "rounds", "steps"):
        parser.add_argument(f"--{option}", type=int, required=True)
    parser.add_argument("--batches", type=int, nargs="+", required=True)
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=KINDS)
    args = parser.parse_args()

    import horovod.tensorflow as horovod
    import keras
    import numpy as np
    import tensorflow as tf

    from labs import data, devices, hvd, models

    hvd.init()
    if hvd.size() == 1:
        sys.exit("This rank is alone: start 2 or more, under the launcher of Horovod's own MPI.")
    devices.pin(hvd.local_rank(), hvd.local_size())
    keras.utils.set_random_seed(0)
    dataset, batch = data.load("digits", images=args.images), args.batches[0]
    model = models.build(args.model, args.image_size, len(dataset.classes))
    pipeline = None
    if "input" in args.kinds:
        numbers = data.order(dataset, hvd.size() * batch).shard(hvd.size(), hvd.rank())
        pipeline = iter(data.batches(dataset, numbers, batch).repeat())
    fixed = {}
    for size in args.batches:
        numbers = np.arange(size) % len(dataset.labels)  # a batch may be larger than the data set
        fixed[size] = tf.constant(dataset.images[numbers]), tf.constant(dataset.labels[numbers])
    own = stepper(model, keras.optimizers.SGD(0.01), dataset)
    shared = stepper(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)), dataset)
    gradient_bytes = 4 * sum(weight.shape.num_elements() for weight in model.trainable_variables)
    gradient = tf.ones([gradient_bytes // 4])

    def say(text):
        if hvd.rank() == 0:
            print(text, flush=True)

    def together():
        horovod.allreduce(tf.ones([]), name="together")  # all ranks go on from here

    def steps_of(kind, size):
        """Seconds of each step of one kind."""
        step, images = (own if kind in KINDS[:2] else shared), fixed[size]
        return timed(lambda: float(step(*(next(pipeline) if kind == "input" else images))), args.steps)

    say(f"Model {args.model} {hvd.size()} workers: tracing")
    for size in args.batches:  # tracing, and what a first step of a size allocates
        for kind in ("alone", "exchange"):
            steps_of(kind, size)
    horovod.allreduce(gradient, name="gradient")
    if pipeline:
        next(pipeline)
    seconds = {size: {kind: [] for kind in (args.kinds if size == batch else EFFICIENCY)} for size in args.batches}
    reading, reducing = [], []
    for number in range(args.rounds):
        say(f"Round {number + 1} of {args.rounds}")
        for size, kinds in seconds.items():
            for kind, rounds in kinds.items():
                together()
                rests = kind == "alone" and hvd.rank() != number % hvd.size()  # each rank has its turn
                rounds.append(None if rests else steps_of(kind, size))
        together()
        if pipeline:
            reading.append(fmean(timed(lambda: next(pipeline), args.steps)))
            together()
        reducing.append(fmean(timed(lambda: horovod.allreduce(gradient, name="gradient"), 2)))
    together()
    gathered = horovod.allgather_object(seconds)
    if hvd.rank() == 0:
        found = {
            "version": 1,
            "kind": "measured",
            "model": args.model,
            "ranks": hvd.size(),
            "batch": batch,
            "image_size": args.image_size,
            "classes": len(dataset.classes),
            "gradient_bytes": gradient_bytes,
            "seconds": {
                str(size): {kind: over_ranks([of[size][kind] for of in gathered]) for kind in seconds[size]}
                for size in seconds
            },
            "pipeline_seconds": reading,
            "all_reduce_seconds": reducing,
            "machine": devices.machine(),
            "versions": devices.versions(),
            "notes": [],
        }
        files.write(Path(args.file), json.dumps(found, indent=1))


def stepper(model, optimizer, dataset):
    """A compiled training step: (images, labels) -> loss. One trace serves all batch sizes."""
    import keras
    import tensorflow as tf

    loss, weights = keras.losses.SparseCategoricalCrossentropy(), model.trainable_variables
    optimizer.build(weights)

    @tf.function(
        input_signature=[tf.TensorSpec([None, *dataset.images.shape[1:]], tf.uint8), tf.TensorSpec([None], tf.int64)]
    )
    def step(images, labels):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        optimizer.apply(tape.gradient(value, weights), weights)
        return value

    return step


def timed(function, times):
    """Seconds of each of several calls."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        function()
        found.append(time.perf_counter() - begin)
    return found


def over_ranks(by_rank):
    """[[steps] of each round], averaged over the ranks that stepped in it; by_rank: the same of each rank, or None."""
    return [
        [fmean(step) for step in zip(*(steps for steps in rounds if steps), strict=True)]
        for rounds in zip(*by_rank, strict=True)
    ]


if __name__ == "__main__":
    main()
