"""Local SGD: each rank trains by itself, and after every k-th step all ranks take the mean of their weights.

--batch_size is the global batch. The script trains once for each value of --k, from the same weights and on the same
batches; rank 0 prints a line of JSON for each training.
"""

import argparse
import json
import time

from labs import data, devices, hvd, ranks, training  # import this first: it sets up TensorFlow

import horovod.tensorflow as horovod
import keras
import tensorflow as tf

HELD_BACK = 297  # images that no rank trains on


def local_sgd(model, optimizer, loss, batches, k):
    """Train `model` on this rank's batches; after every k-th batch all ranks take the mean of what a step changes.

    model: a Keras model, built; a step changes its trainable_variables
    optimizer: keras.optimizers.SGD, built; a step changes its momentums, a list of variables (empty without momentum)
    loss: a function of (labels, predictions)
    batches: an iterable of (images, labels); their number is the same on all ranks, and a multiple of k
    k: a whole number, 1 or more
    """
    weights = model.trainable_variables

    @tf.function
    def step(images, labels):
        """Take one step on this rank alone: the gradient of this batch, then the optimizer's update."""
        ### BEGIN SOLUTION
        ### GIVEN: ...  # your code here
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        optimizer.apply(tape.gradient(value, weights), weights)
        ### END SOLUTION

    # Take a step for each batch. After every k-th, take the mean over the ranks of all that a step changes.
    ### BEGIN SOLUTION
    ### GIVEN: ...  # your code here
    for number, (images, labels) in enumerate(batches, 1):
        step(images, labels)
        if number % k == 0:
            for variable in [*weights, *optimizer.momentums]:
                variable.assign(horovod.allreduce(variable.value, op=horovod.Average))
    ### END SOLUTION


def network():
    """Return a dense network with little to compute and 1.6 MB of weights to exchange."""
    layers = [keras.Input((32, 32, 3)), keras.layers.Rescaling(1 / 127.5, offset=-1.0), keras.layers.Flatten()]
    layers += [keras.layers.Dense(128, "relu"), keras.layers.Dense(10, "softmax")]
    return keras.Sequential(layers)


def timed(batches, seconds):
    """Yield the batches one by one; `seconds` gets how many seconds each was in use."""
    for batch in batches:
        begin = time.perf_counter()
        yield batch
        seconds.append(time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, nargs="+", default=[1], help="steps from one mean to the next")
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--batch_size", type=int, default=32, help="images per step, over all ranks")
    parser.add_argument("--rate", type=float, default=0.02)
    training.arguments(parser)
    args = training.parse(parser)

    hvd.init()
    worker = devices.pin(hvd.local_rank(), hvd.local_size())
    print(f"Rank {hvd.rank()} of {hvd.size()} on {worker}", flush=True)
    dataset = data.load(args.dataset, images=args.images)
    kept = data.Dataset(dataset.name, dataset.images[:-HELD_BACK], dataset.labels[:-HELD_BACK], dataset.classes)
    loss = keras.losses.SparseCategoricalCrossentropy()

    for repeat in range(args.repeats):
        for k in args.k:
            keras.utils.set_random_seed(args.seed + repeat)  # the same weights on all ranks
            numbers = data.order(kept, args.batch_size, seed=args.seed + repeat).shard(hvd.size(), hvd.rank())
            batches = data.batches(kept, numbers, args.batch_size // hvd.size()).repeat().take(args.steps)
            model, optimizer, seconds = network(), keras.optimizers.SGD(args.rate), []
            optimizer.build(model.trainable_variables)
            local_sgd(model, optimizer, loss, timed(batches, seconds), k)
            scores = model.predict_on_batch(dataset.images[-HELD_BACK:])
            steady = seconds[k:]  # the steps up to the first mean are warm-up
            result = {"k": k, "means": args.steps // k, "step_seconds": sum(steady) / len(steady)}
            result["accuracy"] = float((scores.argmax(1) == dataset.labels[-HELD_BACK:]).mean())
            result["identical"] = ranks.compare_weights(model)["identical"]
            if hvd.rank() == 0:
                print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
