"""The kit against a bare loop, and against another TensorFlow: images/second of ResNet50V2, in turns in one run.

    python benchmarks/versions.py [--other PYTHON] [--strategies mirrored horovod] [--workers 1 2] [--rounds 8] [--json]

For each strategy and number of workers up to three trainings take turns, an epoch of each in a round, after one of
warm-up (labs.jobs.Turns; the order changes from round to round):

    kit    Keras' fit as `labs study` runs it, with the recorder, and for Horovod with broadcast and averaged metrics
    bare   a tf.function with a GradientTape and plain SGD: strategy.run, or Horovod's DistributedGradientTape
    other  the kit's again, by the Python of another environment: PYTHON, with another TensorFlow and, for Horovod,
           a Horovod and MPI of its own

Horovod's ranks are started with mpiexec. Ratios are of images/second, with 95 % intervals by Student's t on the
logarithms of the rounds' ratios.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]


def bare_mirrored(args, dataset, rate):
    """One epoch after another, as a function: all its steps, up to the loss of the last."""
    import keras
    import tensorflow as tf

    from labs import data, devices, models

    strategy = tf.distribute.MirroredStrategy(devices=devices.workers(args.workers))
    with strategy.scope():
        model = models.build("ResNet50V2", args.image_size, len(dataset.classes))
        weights = [weight.value for weight in model.trainable_weights]
    batches = strategy.experimental_distribute_dataset(
        data.pipeline(dataset, args.batch_size, workers=args.workers, seed=0)
    )
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(reduction="sum")

    def replica(images, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True)) / args.batch_size
        gradients = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, weights))
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.assign_sub(rate * gradient)
        return loss

    @tf.function(jit_compile=False)
    def step(images, labels):
        return strategy.reduce("sum", strategy.run(replica, (images, labels)), axis=None)

    def epoch():
        for images, labels in batches:
            loss = step(images, labels)
        return float(loss)

    return epoch


def bare_horovod(args, dataset, rate):
    """The same on the ranks of Horovod."""
    from horovod_path import bare_step

    from labs import data, devices, hvd, models

    devices.pin(hvd.local_rank(), hvd.local_size())
    share = data.order(dataset, args.batch_size).shard(hvd.size(), hvd.rank())
    batches = data.batches(dataset, share, args.batch_size // hvd.size())
    step = bare_step(models.build("ResNet50V2", args.image_size, len(dataset.classes)), rate)

    def epoch():
        for images, labels in batches:
            loss = step(images, labels)
        return float(loss)

    return epoch


def bare(args):
    """The training "bare": rank 0 writes {round: seconds} to args.out; round 0 is warm-up."""
    from labs import data, hvd, waiting  # import this first: it sets up TensorFlow

    rank, ranks = 0, 1
    if args.strategy == "horovod":
        hvd.init()
        rank, ranks = hvd.rank(), hvd.size()
    dataset = data.load("digits", images=args.images)
    make = bare_horovod if args.strategy == "horovod" else bare_mirrored
    epoch, gate, found = make(args, dataset, 0.01 * args.workers), waiting.join(rank, ranks), {}
    for _ in range(args.epochs):
        turn = gate.wait()["round"]
        begin = time.perf_counter()
        epoch()
        found[turn] = time.perf_counter() - begin
    gate.close()
    if rank == 0:
        Path(args.out).write_text(json.dumps(found))


@contextlib.contextmanager
def by(python):
    """What is started in here is started by this Python, with the programs beside it; None: the one that runs this."""
    with mock.patch.object(sys, "executable", python) if python else contextlib.nullcontext():
        yield


def measure(args, strategy, workers):
    """{training: images/second of each round} of one strategy and number of workers."""
    from labs import jobs
    from labs.results.run import load_record

    batch = args.local_batch * workers
    images, epochs = args.steps * batch, args.rounds + 1
    asked = {"strategy": strategy, "workers": workers, "batch_size": batch, "images": images, "epochs": epochs}
    asked |= {"image_size": args.image_size}
    ranks = {"ranks": workers, "launcher": "mpiexec"} if strategy == "horovod" else {}
    with tempfile.TemporaryDirectory() as folder:
        kit = ["-m", "labs.training.program", *(f"--{key}={value}" for key, value in asked.items()), "--repeats=1"]
        own = [f"--{key.replace('_', '-')}={value}" for key, value in asked.items()]
        own = [__file__, "--program", f"--out={folder}/bare.found", *own]
        trainings = {"kit": (kit, None), "bare": (own, None)} | ({"other": (kit, args.other)} if args.other else {})
        with jobs.Turns(show=False, explain=False) as turns:
            for name, (words, python) in trainings.items():
                env = {"PYTHONPATH": str(ROOT)}
                with by(python):
                    turns.start(*words, name=name, runs=folder, env=env, **ranks)
        for job in turns.jobs:
            if job.state != "finished":
                sys.exit(f"{strategy}, {workers} workers, {job.name}: {job.explain()}\n{job.err.read_text()}")
        rounds = {job.name: load_record(job.record).rounds for job in turns.jobs if job.name != "bare"}
        told = json.loads(Path(folder, "bare.found").read_text())
        rounds["bare"] = {int(number): seconds for number, seconds in told.items()}
        common = sorted(set.intersection(*map(set, rounds.values())))
        return {name: [images / rounds[name][number] for number in common] for name in trainings}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", metavar="PYTHON", help="the Python of an environment with another TensorFlow")
    parser.add_argument("--strategies", nargs="+", default=["mirrored", "horovod"], choices=("mirrored", "horovod"))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="replicas or ranks (default: 1 2)")
    parser.add_argument("--rounds", type=int, default=8, help="rounds after the warm-up (default: 8)")
    parser.add_argument("--steps", type=int, default=6, help="steps of an epoch (default: 6)")
    parser.add_argument("--local-batch", type=int, default=64, help="images per step and worker (default: 64)")
    parser.add_argument("--image-size", type=int, default=32, help="pixels per side (default: 32)")
    parser.add_argument("--json", action="store_true", help="print every measurement")
    args = parser.parse_args()
    from labs.results import intervals

    found = {}
    for python in filter(None, [sys.executable, args.other]):
        said = (
            "from importlib.metadata import version as v; print('TensorFlow', v('tensorflow-cpu'), 'Keras', v('keras'))"
        )
        print(subprocess.run([python, "-c", said], capture_output=True, text=True, check=True).stdout.strip())
    print("| strategy, workers | kit, images/s | kit / bare | kit / other |\n|---|---|---|---|")
    for strategy in args.strategies:
        for workers in args.workers:
            rates = found[f"{strategy} {workers}"] = measure(args, strategy, workers)

            def ratio(name, rates=rates):
                if name not in rates:
                    return "-"
                estimate = intervals.paired(rates["kit"], rates[name])
                return f"{estimate.value:.3f} ({' to '.join(f'{x:.3f}' for x in estimate.interval or ())})"

            print(
                f"| {strategy}, {workers} | {fmean(rates['kit']):.1f} | {ratio('bare')} | {ratio('other')} |",
                flush=True,
            )
    if args.json:
        print(json.dumps(found))


def program():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--strategy", required=True)
    for name in ("workers", "batch-size", "images", "image-size", "epochs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    bare(parser.parse_args([word for word in sys.argv[1:] if word != "--program"]))


if __name__ == "__main__":
    program() if "--program" in sys.argv else main()
