"""Seconds of the steps of small and large networks with one global batch, on one rank and divided among several.

    python -m lessons.when_workers_do_not_help.steps OPTIONS      what each rank runs (OPTIONS: JSON)

The networks differ in one number, the filters of the first of three convolutions. All kinds of steps take turns in each
round, in random order, so that a slow minute of the machine is in all of them:

    alone       one rank steps, the others rest; with the whole batch, and with a rank's share of it
    together    all ranks step with their share of the batch, each for itself
    exchange    the same, and they average their gradients
"""

import json
import random
import sys
from functools import partial
from pathlib import Path
from statistics import fmean, median

import numpy as np

from labs import devices, files, jobs
from labs.errors import UseError
from labs.measure.breakdown import BreakdownError, too_noisy
from labs.measure.step import compiled, over_ranks, timed
from labs.results import intervals, metrics
from lessons import step_model
from lessons.reduce import ring_seconds
from lessons.when_workers_do_not_help.compared import bounded

GLOBAL_BATCH = 32
WHOLE = f"alone {GLOBAL_BATCH}"  # the kind of step that one rank takes with the whole batch
PARTS = ("start of operations", "computing", "sharing the machine", "exchange and waiting")
EXCHANGES_BY = {"mpiexec": "MPI", "horovodrun": "Gloo"}
NOISY = "too noisy: measure again"
SPREAD = 0.03  # assumed in `predicted`: standard deviation of a rank's step times / their mean


def network(filters):
    """Three convolutions with filters, 2 x filters and 4 x filters, and a dense layer, for uint8 images 32x32x3."""
    import keras

    from lessons.faster_steps import networks

    layers = networks.convolutions([(factor * filters, 2) for factor in (1, 2, 4)])
    return networks.classifier(*layers, keras.layers.GlobalAveragePooling2D())


def measure(ranks, sizes, *, rounds, steps, launcher):
    """Time the steps of networks with `sizes` filters on some ranks of this machine.

    Returns {ranks, launcher, oversubscribed, tensor_bytes {filters: [bytes of each gradient]}, seconds {filters: {kind:
    [median step of each round]}}}; kinds: "alone 32", "alone 16" (images), "together", "exchange". On one rank steps
    are taken alone, with 32, 16 and 8 images. Rounds in which other programs ran are left out as in a study
    (labs.results.metrics.quiet), which is printed. Raises labs.measure.breakdown.BreakdownError.
    """
    name = f"steps_{ranks}"
    file = (jobs.folder() / f"{name}.steps.json").resolve()
    options = json.dumps({"file": str(file), "sizes": sizes, "rounds": rounds, "steps": steps})
    job = jobs.start("-m", "lessons.when_workers_do_not_help.steps", options, name=name, ranks=ranks, launcher=launcher)
    if job.wait().state != "finished":
        raise BreakdownError(f"The steps were not measured. {job.explain()}")
    found = json.loads(file.read_text(encoding="utf-8"))
    counted, note = metrics.quiet(dict(enumerate(found["others"])), "a step")
    if note:
        print(f"Mind that {note}.")
    found |= {"launcher": launcher, "tensor_bytes": dict(found["tensor_bytes"])}
    found["seconds"] = {
        filters: {kind: [rounds[n] for n in counted] for kind, rounds in kinds.items()}
        for filters, kinds in found["seconds"]
    }
    return found


def named(found):
    """The ranks of a measurement, and by what they exchange: the two may not be told apart where both differ."""
    by = f"{found['ranks']} ranks over {EXCHANGES_BY[found['launcher']]}"
    return by + (", oversubscribed" if found["oversubscribed"] else "")


def times_as_long(found):
    """{filters: labs.results.intervals.Estimate}: a step on all ranks / one on a single rank, within rounds."""
    return {filters: intervals.paired(of["exchange"], of[WHOLE]) for filters, of in found["seconds"].items()}


def parts(found):
    """{filters: {part: seconds in each round, an array}} of a step on all ranks, for PARTS. The first two are a line
    through the steps of one rank alone, with the whole batch and with a share of it: what is left at 0 images, and what
    grows with them. They are differences, and come out below 0 where they are smaller than the noise."""
    divided = {}
    for filters, kinds in found["seconds"].items():
        whole, own, together, exchange = map(np.array, kinds.values())
        computing = (whole - own) / (found["ranks"] - 1)
        seconds = own - computing, computing, together - own, exchange - together
        divided[filters] = dict(zip(PARTS, seconds, strict=True))
    return divided


def shares(found):
    """{filters: {part: (share, its 95 % interval over rounds)}} of the step on all ranks in the same round."""
    divided = {}
    for filters, of in parts(found).items():
        of_rounds = {part: list(seconds / found["seconds"][filters]["exchange"]) for part, seconds in of.items()}
        divided[filters] = {part: (fmean(values), intervals.plain(values)) for part, values in of_rounds.items()}
    return divided


def speedups(found, function, ranks):
    """{filters: text} of what `function(start, per_image, exchange, ranks)` computes from the parts of each round, with
    its 95 % interval over them; NOISY where a part came out below 0."""
    told, images = {}, GLOBAL_BATCH // found["ranks"]
    for filters, of in parts(found).items():
        start, computing, shared, exchanged = of.values()
        rounds = zip(start, computing / images, shared + exchanged, strict=True)
        values = [function(*of_round, ranks) for of_round in rounds]
        noisy = min(values) <= 0 or too_noisy(shares(found)[filters])
        told[filters] = NOISY if noisy else bounded(intervals.mean(values), ".2f")
    return told


def measured(found):
    """{filters: text} of the speedup on all ranks, within rounds; NOISY where it is larger than the ranks."""
    of = {filters: intervals.paired(kinds[WHOLE], kinds["exchange"]) for filters, kinds in found["seconds"].items()}
    return {filters: NOISY if e.value > found["ranks"] else bounded(e, ".2f") for filters, e in of.items()}


def predicted(alone, benchmark, ranks):
    """{filters: seconds of a step on several ranks}, by lessons.step_model from steps on one rank and an all-reduce
    benchmark. It knows nothing of ranks that share a core.

    On a busy machine steps of few milliseconds may not grow with the batch: such a network is left out, and said so.
    """
    latency, bandwidth = (benchmark[key]["value"] for key in ("latency", "bandwidth"))
    all_reduce = partial(ring_seconds, ranks, latency=latency, bandwidth=bandwidth)
    seconds = {}
    for filters, kinds in alone["seconds"].items():
        pairs = [(int(kind.split()[1]), mean) for kind, rounds in kinds.items() for mean in rounds]
        try:
            computation = step_model.fitted_line(*zip(*pairs, strict=True)).seconds(GLOBAL_BATCH / ranks)
        except UseError as problem:
            print(f"Nothing is predicted for {filters} filters: {problem}")
            continue
        backward = step_model.BACKWARD * computation
        exchange = step_model.exposed(alone["tensor_bytes"][filters], all_reduce, backward)
        seconds[filters] = computation * step_model.slowest(ranks, SPREAD) + exchange
    return seconds


def _rank(file, sizes, rounds, steps):
    """Trace all steps, then time them in turns, in this rank. Rank 0 writes `file`."""
    from labs import data, hvd, ranks  # import this first: it sets up TensorFlow

    # isort: split
    import horovod.tensorflow as horovod
    import keras
    import tensorflow as tf

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    rank, size = hvd.rank(), hvd.size()
    keras.utils.set_random_seed(0)
    dataset = data.load("digits", images=GLOBAL_BATCH)
    turns = {f"alone {n}": n for n in ((32, 16, 8) if size == 1 else (GLOBAL_BATCH, GLOBAL_BATCH // size))}
    if size > 1:
        turns |= dict.fromkeys(("together", "exchange"), GLOBAL_BATCH // size)
    batches = {kind: (tf.constant(dataset.images[:n]), tf.constant(dataset.labels[:n])) for kind, n in turns.items()}
    functions, tensor_bytes = {}, {}
    for filters in sizes:
        model = network(filters)
        own = compiled(model, keras.optimizers.SGD(0.0))  # ranks that step alone must not drift apart
        shared = compiled(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)))
        functions[filters] = {kind: shared if kind == "exchange" else own for kind in turns}
        tensor_bytes[filters] = [4 * weight.shape.num_elements() for weight in model.trainable_variables]

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
                rests = number and kind.startswith("alone") and rank != number % size
                of_ranks = ranks.gather(None if rests else seconds(filters, kind), "its steps")
                if number:
                    values.append(median(over_ranks(of_ranks)))
        together()
        moments.append(devices.moment())
    others = devices.others(ranks.gather(moments, "its moments"))
    if rank == 0:
        found = {"ranks": size, "oversubscribed": devices.oversubscribed(size), "others": others}
        found |= {"tensor_bytes": list(tensor_bytes.items()), "seconds": list(taken.items())}  # JSON has no int as key
        files.write(Path(file), json.dumps(found))


if __name__ == "__main__":
    _rank(**json.loads(sys.argv[1]))
