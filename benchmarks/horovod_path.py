"""The kit's Horovod path (Keras' fit with labs.hvd) against a bare loop of tf.function and horovod.tensorflow.

    python benchmarks/horovod_path.py [--ranks 1 2] [--rounds 10] [--launcher horovodrun] [--json]

For each number of ranks one launch. In it, both train ResNet50V2 at 32x32 on the digits, with the same pipeline, local
batch and rate, in turn: a round is an epoch of each, the order changing from round to round, after one round of
warm-up. The kit's epoch is timed as the run record does it (from on_epoch_begin to on_epoch_end, with the recorder
and the averaging of metrics and moving statistics); the bare one from its first step to the loss of its last.

In the same rounds rank 0 trains alone, with Keras' fit and a plain optimizer, while the others wait ("alone"), and all
ranks train at once without any connection ("unconnected"). So kit / alone is the speedup, and unconnected / alone what
the machine allows at most: cores share memory, caches and sometimes the time of a real core.

All ratios are of images/second over all ranks, with 95 % intervals by Student's t on the logarithms of the rounds'
ratios.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def timer():
    """A callback that keeps the seconds of the last epoch, as the run record counts them."""
    import keras

    class Timer(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.begin = time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            dict(logs)["loss"] + 0.0  # waits for the device
            self.seconds = time.perf_counter() - self.begin

    return Timer()


def bare_step(model, rate):
    """A step of plain SGD that averages over the ranks by Horovod alone; all begin with the weights of rank 0."""
    import horovod.tensorflow as hvd
    import keras
    import tensorflow as tf

    cross_entropy = keras.losses.SparseCategoricalCrossentropy()
    weights = [weight.value for weight in model.trainable_weights]
    for weight in model.weights:
        weight.assign(hvd.broadcast(weight.value, 0))

    @tf.function(jit_compile=False)
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        tape = hvd.DistributedGradientTape(tape)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(rate * gradient)
        return loss

    return step


def rank_program(args):
    """One rank: {"kit": [images/s, ...], "bare": [...]} over all ranks; rank 0 writes it to args.out."""
    import keras

    from labs import data, devices, hvd, models, ranks, training

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    batch, rate = args.local_batch * hvd.size(), 0.01 * hvd.size()
    dataset = data.load("digits", images=args.steps * batch)
    shard = data.order(dataset, batch).shard(hvd.size(), hvd.rank())
    batches = data.batches(dataset, shard, args.local_batch)

    keras.utils.set_random_seed(hvd.rank())
    model = models.build("ResNet50V2", 32, 10)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(rate))
    model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)
    settings = {
        "dataset": "digits",
        "image_size": 32,
        "images": len(dataset.labels),
        "repeats": 10**9,
        "seed": 0,
        "run": "bench",
        "runs": args.out + ".runs",
        "epochs": 1,
        "batch_size": batch,
    }
    recorder = training.Recorder(argparse.Namespace(**settings), model, images=len(dataset.labels))
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(), recorder]

    def kit():
        model.fit(batches, epochs=1, shuffle=False, verbose=0, callbacks=callbacks)
        return recorder.record.epochs[-1].seconds

    step = bare_step(models.build("ResNet50V2", 32, 10), rate)

    def bare():
        begin = time.perf_counter()
        for images, labels in batches:
            loss = step(images, labels)
        loss.numpy()
        return time.perf_counter() - begin

    third = models.build("ResNet50V2", 32, 10)
    third.compile(
        keras.optimizers.SGD(rate), loss="sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False
    )
    clock = timer()

    def alone():
        third.fit(batches, epochs=1, shuffle=False, verbose=0, callbacks=[clock])
        return clock.seconds

    paths = {"kit": kit, "bare": bare, "alone": alone if hvd.rank() == 0 else lambda: 0.0, "unconnected": alone}
    if hvd.size() == 1:
        del paths["unconnected"]
    if hvd.rank():
        third.fit(batches, epochs=1, shuffle=False, verbose=0)  # compiled, as rank 0 has it from "alone"
    seconds = {name: [] for name in paths}
    for number in range(args.rounds + 1):
        for name in sorted(seconds, reverse=number % 2 == 1):
            ranks.agree(round=number)  # all ranks begin together
            seconds[name].append(paths[name]())
    # The same weights on all ranks, or it was no training of one network.
    identical = ranks.compare_weights(model)["identical"]
    if hvd.rank() == 0:
        images = {name: args.steps * (args.local_batch if name == "alone" else batch) for name in seconds}
        rates = {name: [images[name] / s for s in values[1:]] for name, values in seconds.items()}
        Path(args.out).write_text(json.dumps({"images_per_second": rates, "identical": identical}))


def measure(args, count, launcher):
    """Start `count` ranks; returns what rank 0 wrote."""
    from labs.jobs import launch

    with tempfile.TemporaryDirectory() as folder:
        own = [
            sys.executable,
            __file__,
            "--rank-program",
            "--out",
            f"{folder}/found.json",
            "--rounds",
            args.rounds,
            "--steps",
            args.steps,
            "--local-batch",
            args.local_batch,
        ]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*launch.command(count, launcher), *map(str, own)], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{count} ranks with {launcher} failed:\n{done.stderr}\n{done.stdout}")
        return json.loads(Path(folder, "found.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2], help="numbers of ranks (default: 1 2)")
    parser.add_argument("--rounds", type=int, default=10, help="epochs of each path (default: 10)")
    parser.add_argument("--steps", type=int, default=6, help="steps of an epoch (default: 6)")
    parser.add_argument("--local-batch", type=int, default=64, help="images per step and rank (default: 64)")
    parser.add_argument("--launcher", nargs="+", default=["horovodrun"], help="horovodrun, mpiexec, or both")
    parser.add_argument("--json", action="store_true", help="print every measurement")
    parser.add_argument("--rank-program", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank_program:
        return rank_program(args)
    from labs.results.intervals import plain

    found = {}
    print("| ranks, launcher | kit, images/s | kit / bare (aim: 0.95) | speedup, kit / alone | unconnected / alone |")
    print("|---|---|---|---|---|")
    for launcher in args.launcher:
        for count in args.ranks:
            result = found[f"{count} {launcher}"] = measure(args, count, launcher)
            rates = result["images_per_second"]

            def ratio(upper, lower, rates=rates):
                """`upper` / `lower` with its interval, as text."""
                if upper not in rates:
                    return "-"
                logs = [math.log(a / b) for a, b in zip(rates[upper], rates[lower], strict=True)]
                middle = f"{math.exp(statistics.fmean(logs)):.3f}"
                bounds = [f"{math.exp(x):.3f}" for x in plain(logs) or ()]
                return f"{middle} ({' to '.join(bounds)})" if bounds else middle

            weights = "" if result["identical"] else " (weights differ between ranks!)"
            print(
                f"| {count}, {launcher}{weights} | {statistics.fmean(rates['kit']):.1f} | {ratio('kit', 'bare')} | "
                f"{ratio('kit', 'alone')} | {ratio('unconnected', 'alone')} |",
                flush=True,
            )
    if args.json:
        print(json.dumps(vars(args) | {"load": os.getloadavg()[0], "results": found}, indent=1))


if __name__ == "__main__":
    main()
