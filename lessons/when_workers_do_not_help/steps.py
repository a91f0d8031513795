"""Seconds of the steps of small and large networks with one global batch, on one rank and divided between two.

    python -m lessons.when_workers_do_not_help.steps OPTIONS      what each rank runs (OPTIONS: JSON)

The networks differ in one number, the filters of the first of three convolutions. All kinds of steps take turns in each
round, in random order, so that a slow minute of the machine is in all of them:

    alone       one rank steps, the other rests; with the whole batch, and with a rank's share of it
    together    both ranks step with their share of the batch, each for itself
    exchange    the same, and they average their gradients
"""

import json
import random
import sys
from pathlib import Path
from statistics import fmean, median

import numpy as np

from labs import devices, files, jobs
from labs.measure.breakdown import BreakdownError, too_noisy
from labs.measure.step import compiled, over_ranks, timed
from labs.results import intervals, metrics
from lessons.when_workers_do_not_help.compared import bounded

RANKS, GLOBAL_BATCH = 2, 32
SHARE = GLOBAL_BATCH // RANKS
WHOLE = f"alone {GLOBAL_BATCH}"  # the kind of step that one rank takes with the whole batch
PARTS = ("start of operations", "computing", "sharing the machine", "exchange and waiting")
NOISY = "too noisy: measure again"


def network(filters):
    """Three convolutions with filters, 2 x filters and 4 x filters, and a dense layer, for uint8 images 32x32x3."""
    import keras

    from lessons.faster_steps import networks

    layers = networks.convolutions([(factor * filters, 2) for factor in (1, 2, 4)])
    return networks.classifier(*layers, keras.layers.GlobalAveragePooling2D())


def measure(sizes, *, rounds, steps):
    """Time the steps of networks with `sizes` filters on two ranks of this machine.

    Returns {oversubscribed, seconds {filters: {kind: [median step of each round]}}}; kinds: "alone 32", "alone 16"
    (images), "together", "exchange". Rounds in which other programs ran are left out as in a study
    (labs.results.metrics.undisturbed), which is printed. Raises labs.measure.breakdown.BreakdownError.
    """
    file = (jobs.folder() / "steps.steps.json").resolve()
    options = json.dumps({"file": str(file), "sizes": sizes, "rounds": rounds, "steps": steps})
    ranks = {"ranks": RANKS, "launcher": "mpiexec"}
    job = jobs.start("-m", "lessons.when_workers_do_not_help.steps", options, name="steps", **ranks)
    if job.wait().state != "finished":
        raise BreakdownError(f"The steps were not measured. {job.explain()}")
    found = json.loads(file.read_text(encoding="utf-8"))
    counted, note = metrics.undisturbed(dict(enumerate(found["others"])))
    if note:
        print(f"Mind that {note}.")
    found["seconds"] = {
        filters: {kind: [rounds[n] for n in counted] for kind, rounds in kinds.items()}
        for filters, kinds in found["seconds"]
    }
    return found


def named(found):
    """The ranks of a measurement, by what they exchange, and whether they share a core."""
    return f"{RANKS} ranks over MPI" + (", oversubscribed" if found["oversubscribed"] else "")


def times_as_long(found):
    """{filters: labs.results.intervals.Estimate}: a step on both ranks / one on a single rank, within rounds."""
    return {filters: intervals.paired(of["exchange"], of[WHOLE]) for filters, of in found["seconds"].items()}


def parts(found):
    """{filters: {part: seconds in each round, an array}} of a step on both ranks, for PARTS. The first two are a line
    through the steps of one rank alone, with the whole batch and with a share of it: what is left at 0 images, and what
    grows with them. They are differences, and come out below 0 where they are smaller than the noise."""
    divided = {}
    for filters, kinds in found["seconds"].items():
        whole, own, together, exchange = map(np.array, kinds.values())
        computing = whole - own  # of half of the images
        seconds = own - computing, computing, together - own, exchange - together
        divided[filters] = dict(zip(PARTS, seconds, strict=True))
    return divided


def shares(found):
    """{filters: {part: (share, its 95 % interval over rounds)}} of the step on both ranks in the same round."""
    divided = {}
    for filters, of in parts(found).items():
        of_rounds = {part: list(seconds / found["seconds"][filters]["exchange"]) for part, seconds in of.items()}
        divided[filters] = {part: (fmean(values), intervals.plain(values)) for part, values in of_rounds.items()}
    return divided


def speedups(found, function, ranks):
    """{filters: text} of what `function(start, per_image, exchange, ranks)` computes from the parts of each round, with
    its 95 % interval over them; NOISY where a part came out below 0."""
    told = {}
    for filters, of in parts(found).items():
        start, computing, shared, exchanged = of.values()
        rounds = zip(start, computing / SHARE, shared + exchanged, strict=True)
        values = [function(*of_round, ranks) for of_round in rounds]
        noisy = min(values) <= 0 or too_noisy(shares(found)[filters])
        told[filters] = NOISY if noisy else bounded(intervals.mean(values), ".2f")
    return told


def _rank(file, sizes, rounds, steps):
    """Trace all steps, then time them in turns, in this rank. Rank 0 writes `file`."""
    from labs import data, hvd, ranks  # import this first: it sets up TensorFlow

    # isort: split
    import horovod.tensorflow as horovod
    import keras
    import tensorflow as tf

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    rank = hvd.rank()
    keras.utils.set_random_seed(0)
    dataset = data.load("digits", images=GLOBAL_BATCH)
    turns = {WHOLE: GLOBAL_BATCH, f"alone {SHARE}": SHARE, "together": SHARE, "exchange": SHARE}
    batches = {kind: (tf.constant(dataset.images[:n]), tf.constant(dataset.labels[:n])) for kind, n in turns.items()}
    functions = {}
    for filters in sizes:
        model = network(filters)
        own = compiled(model, keras.optimizers.SGD(0.0))  # ranks that step alone must not drift apart
        shared = compiled(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)))
        functions[filters] = {kind: shared if kind == "exchange" else own for kind in turns}

    def together():
        horovod.allreduce(tf.ones([]), name="together")  # all ranks go on from here

    def seconds(filters, kind):
        step = functions[filters][kind]
        return timed(lambda: float(step(*batches[kind])), steps)

    taken, moments = {filters: {kind: [] for kind in turns} for filters in sizes}, []
    order = random.Random(0)  # the same on all ranks
    for number in range(rounds + 1):
        if rank == 0:
            print(f"Round {number} of {rounds}" if number else "Tracing", flush=True)
        for filters, kinds in taken.items():
            for kind, values in order.sample(list(kinds.items()), len(kinds)):
                together()
                # The first round traces, on all ranks; then each rank has its turn to step alone.
                rests = number and kind.startswith("alone") and rank != number % RANKS
                of_ranks = ranks.gather(None if rests else seconds(filters, kind), "its steps")
                if number:
                    values.append(median(over_ranks(of_ranks)))
        together()
        moments.append(devices.moment())
    others = devices.others(ranks.gather(moments, "its moments"))
    if rank == 0:
        found = {"oversubscribed": devices.oversubscribed(RANKS), "others": others, "seconds": list(taken.items())}
        files.write(Path(file), json.dumps(found))


if __name__ == "__main__":
    _rank(**json.loads(sys.argv[1]))
