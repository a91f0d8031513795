"""A small network with Horovod, for experiments: right, wrong on purpose, slowed down, or with a rank that dies.

Started as `python -m lessons.horovod_training.experiment OPTIONS` in each rank; `--help` lists the options.

--batch_size is the global batch and --rate the learning rate that is used, whatever the number of ranks is.
"""

import argparse
import time

from labs import data, devices, hvd, models, ranks, training  # import this first: it sets up TensorFlow

# isort: split
import keras


class Disturb(keras.callbacks.Callback):
    """Pauses one rank in each step, and lets rank 1 fail at the beginning of its second epoch, as `args` say."""

    def __init__(self, args):
        super().__init__()
        self.slow, self.accident = args.slow, args.accident

    def on_train_batch_begin(self, batch, logs=None):
        if hvd.rank() == self.slow[0]:
            time.sleep(self.slow[1] / 1000)

    def on_epoch_begin(self, epoch, logs=None):
        if self.accident and hvd.rank() == 1 and epoch == 1:
            raise RuntimeError("rank 1 cannot go on (this experiment wants it so)")


def main():
    """One training, as the command line says; prints its loss and whether the weights of all ranks are identical."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--epochs", type=int, default=5)
    add("--batch_size", type=int, default=32, help="images per step, over all ranks")
    add("--rate", type=float, default=0.01, help="learning rate, as it is used")
    add("--model", default="dense", help="dense, which has no batch normalisation, or one of labs.models")
    add("--optimizer", choices=("averaging", "horovods_own"), default="averaging")
    add("--unchecked", action="store_true", help="without the callbacks of labs.hvd, which check")
    add("--slow", nargs=2, type=int, default=(-1, 0), metavar=("RANK", "MS"), help="RANK pauses in each step")
    add("--accident", action="store_true", help="one of the ranks fails at the beginning of its second epoch")
    training.arguments(parser)
    args = training.parse(parser)

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    keras.utils.set_random_seed(args.seed)  # here all ranks begin with equal weights, also without a broadcast

    dataset = data.load(args.dataset, images=args.images)
    numbers = data.order(dataset, args.batch_size, seed=args.seed).shard(hvd.size(), hvd.rank())
    ranks.check_shards(numbers, len(dataset.labels), dropped=len(dataset.labels) % args.batch_size)
    train = data.batches(dataset, numbers, args.batch_size // hvd.size())

    wrap = hvd.DistributedOptimizer
    if args.optimizer == "horovods_own":
        from horovod.tensorflow.keras import DistributedOptimizer as wrap
    optimizer = wrap(keras.optimizers.SGD(args.rate))

    hidden, last = keras.layers.Dense(32, "relu"), keras.layers.Dense(len(dataset.classes), "softmax")
    dense = keras.Sequential([keras.layers.Flatten(), hidden, last], name="dense")
    network = dense if args.model == "dense" else models.network(args.model, args.image_size, len(dataset.classes))
    model = keras.Sequential([models.preprocessing(args.image_size), network])
    model.build((None, *dataset.images.shape[1:]))
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)

    callbacks: list = [Disturb(args)]
    if not args.unchecked:
        callbacks += [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
        callbacks += [training.Recorder(args, model, images=len(dataset.labels))]

    before = ranks.compare_weights(model)
    verbose = 0 if hvd.rank() else 2
    history = model.fit(train, epochs=args.epochs, shuffle=False, verbose=verbose, callbacks=callbacks)
    after = ranks.compare_weights(model)

    first = float(model.trainable_weights[0].numpy().flat[0])
    print(f"rank {hvd.rank()}: loss {history.history['loss'][-1]:.6f}, first weight {first:+.8f}", flush=True)
    if hvd.rank() == 0:
        print(f"Weights identical on all ranks: {before['identical']} before, {after['identical']} after the training")


if __name__ == "__main__":
    main()
