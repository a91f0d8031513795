"""The training program of `labs study`: one model on a number of workers. Prints a log, leaves a record.

The scripts that students write (notebooks/scripts) say the same in plain sight, for one model each.
"""

import argparse
import contextlib

import keras

from labs import data, devices, models, presets, ranks, training


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m labs.training.program", description=__doc__)
    parser.add_argument("--model", default="ResNet50V2", help=f"one of {', '.join(models.NAMES)}")
    parser.add_argument("--strategy", default="mirrored", choices=presets.STRATEGIES)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=256, help="images per step, over all workers")
    parser.add_argument("--learning_rate", type=float, default=0.01, help="rate of one worker (default: 0.01)")
    training.arguments(parser)
    args = parser.parse_args(argv)

    if args.strategy == "single" and args.workers != 1:
        parser.error(f"--strategy single uses one worker, not {args.workers}; use --strategy mirrored.")
    rank, scope, callbacks, learning_rate = 0, contextlib.nullcontext(), [], args.learning_rate * args.workers
    if args.strategy == "horovod":
        from labs import hvd

        hvd.init()
        rank = hvd.rank()
        if hvd.size() != args.workers:
            parser.error(f"--workers {args.workers}, but started on {hvd.size()}: start one rank for each worker.")
        devices.pin(hvd.local_rank(), hvd.local_size())
        callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
    elif args.strategy == "jax":
        names = devices.workers_on_jax(args.workers)
        if args.workers > 1:  # on a single device Keras would compile the step two times more
            keras.distribution.set_distribution(keras.distribution.DataParallel(devices=names))
    else:
        names = devices.workers(args.workers)
    keras.utils.set_random_seed(ranks.own_seed(args.seed) if args.strategy == "horovod" else args.seed)
    dataset = data.load(args.dataset, images=args.images)
    if args.strategy == "horovod":
        images = _shard(args, dataset)
    else:
        images = data.pipeline(dataset, args.batch_size, workers=args.workers, seed=args.seed)
    if args.strategy == "mirrored":
        import tensorflow as tf

        scope = tf.distribute.MirroredStrategy(devices=names).scope()
    if rank == 0:
        print(f"Model {args.model} {args.workers} workers\nStrategy: {args.strategy}")
        print(f"Batch_size: {args.batch_size}\nN_replicas: {args.workers}\nImages: {len(dataset.images)}")
        print(f"Learning_rate: {learning_rate}", flush=True)
    with scope:
        model = models.build(args.model, args.image_size, len(dataset.classes))
        optimizer = keras.optimizers.SGD(learning_rate)
        model.compile(
            optimizer=hvd.DistributedOptimizer(optimizer) if args.strategy == "horovod" else optimizer,
            loss="sparse_categorical_crossentropy",
            metrics=["accuracy"],
            # As on one GPU, so on many: XLA must not speed up only the baseline. JAX compiles on any number with XLA.
            jit_compile=args.strategy == "jax",
        )
    recorder = training.Recorder(args, model, images=len(dataset.images))
    verbose = 2 if rank == 0 else 0
    for _ in training.repeats(args, recorder, model):
        model.fit(images, epochs=args.epochs, shuffle=False, verbose=verbose, callbacks=[*callbacks, recorder])


def _shard(args, dataset):
    """This rank's batches."""
    from labs import hvd

    ranks.agree(**vars(args))
    data.check_batch(len(dataset.labels), args.batch_size, hvd.size())
    numbers = data.order(dataset, args.batch_size, seed=args.seed).shard(hvd.size(), hvd.rank())
    ranks.check_shards(numbers, len(dataset.labels), dropped=len(dataset.labels) % args.batch_size)
    return data.batches(dataset, numbers, args.batch_size // hvd.size())


if __name__ == "__main__":
    main()
