"""The kit's Horovod path (Keras' fit with labs.hvd) against a bare loop of tf.function and horovod.tensorflow.

    python benchmarks/horovod_path.py [--ranks 1 2] [--rounds 10] [--launcher horovodrun] [--json]

For each number of ranks one launch. In it, both train ResNet50V2 at 32x32 on the digits, with the same pipeline, local
batch and rate, in turn: a round is an epoch of each, the order changing from round to round, after two rounds of
warm-up. The kit's epoch is timed as the run record does it (from on_epoch_begin to on_epoch_end, with the recorder
and the averaging of metrics and moving statistics); the bare one from its first step to the loss of its last.

The ratio is of images/second, kit / bare, with a 95 % interval by Student's t on the logarithms of the rounds' ratios.
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


def rank_program(args):
    """One rank: {"kit": [images/s, ...], "bare": [...]} over all ranks; rank 0 writes it to args.out."""
    import horovod.tensorflow as bare_hvd
    import keras
    import tensorflow as tf

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
    settings = {"dataset": "digits", "image_size": 32, "images": len(dataset.labels), "repeats": 10**9, "seed": 0,
                "run": "bench", "runs": args.out + ".runs", "epochs": 1, "batch_size": batch}  # fmt: skip
    recorder = training.Recorder(argparse.Namespace(**settings), model="ResNet50V2", strategy="horovod",
                                 workers=hvd.size(), images=len(dataset.labels), learning_rate=rate)  # fmt: skip
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(), recorder]

    def kit():
        model.fit(batches, epochs=1, shuffle=False, verbose=0, callbacks=callbacks)
        return recorder.record["epochs"][-1]["seconds"]

    other = models.build("ResNet50V2", 32, 10)
    cross_entropy = keras.losses.SparseCategoricalCrossentropy()
    weights = [weight.value for weight in other.trainable_weights]
    for weight in other.weights:
        weight.assign(bare_hvd.broadcast(weight.value, 0))

    @tf.function(jit_compile=False)
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, other(images, training=True))
        tape = bare_hvd.DistributedGradientTape(tape)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(rate * gradient)
        return loss

    def bare():
        begin = time.perf_counter()
        for images, labels in batches:
            loss = step(images, labels)
        loss.numpy()
        return time.perf_counter() - begin

    seconds = {"kit": [], "bare": []}
    for number in range(args.rounds + 2):
        for name in sorted(seconds, reverse=number % 2 == 1):
            ranks.agree(round=number)  # all ranks begin together
            seconds[name].append({"kit": kit, "bare": bare}[name]())
    # The same weights on all ranks, or it was no training of one network.
    identical = ranks.compare_weights(model)["identical"]
    if hvd.rank() == 0:
        rates = {name: [args.steps * batch / s for s in values[2:]] for name, values in seconds.items()}
        Path(args.out).write_text(json.dumps({"images_per_second": rates, "identical": identical}))


def measure(args, count, launcher):
    """Start `count` ranks; returns what rank 0 wrote."""
    from labs import launch

    with tempfile.TemporaryDirectory() as folder:
        own = [sys.executable, __file__, "--rank-program", "--out", f"{folder}/found.json", "--rounds", args.rounds,
               "--steps", args.steps, "--local-batch", args.local_batch]  # fmt: skip
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": str(ROOT)}
        done = subprocess.run([*launch.command(count, launcher), *map(str, own)], env=environment,
                              capture_output=True, text=True)  # fmt: skip
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
    from labs.intervals import plain

    found = {}
    print("| ranks, launcher | kit, images/s | bare, images/s | kit / bare | 95 % interval | aim |")
    print("|---|---|---|---|---|---|")
    for launcher in args.launcher:
        for count in args.ranks:
            result = found[f"{count} {launcher}"] = measure(args, count, launcher)
            kit, bare = (result["images_per_second"][name] for name in ("kit", "bare"))
            logs = [math.log(a / b) for a, b in zip(kit, bare, strict=True)]
            low, high = (f"{math.exp(x):.3f}" for x in plain(logs)) if len(logs) > 1 else ("-", "-")
            ratio = math.exp(statistics.fmean(logs))
            weights = "" if result["identical"] else " (weights differ between ranks!)"
            rates = f"{statistics.fmean(kit):.1f} | {statistics.fmean(bare):.1f}"
            line = f"| {count}, {launcher}{weights} | {rates} | {ratio:.3f} | {low} to {high} | 0.95 or more |"
            print(line, flush=True)
    if args.json:
        print(json.dumps(vars(args) | {"load": os.getloadavg()[0], "results": found}, indent=1))


if __name__ == "__main__":
    main()
