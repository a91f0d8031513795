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
from pathlib import Path
from statistics import fmean, median

from labs import devices, files, jobs
from labs.errors import LabsError, UseError
from labs.jobs import launch
from labs.measure.breakdown import too_noisy
from labs.measure.step import over_ranks, timed
from labs.results import intervals, metrics
from lessons import step_model
from lessons.reduce import ring_seconds

GLOBAL_BATCH = 32
PARTS = ("start of operations", "computing", "sharing the machine", "exchange and waiting")
EXCHANGES_BY = {"mpiexec": "MPI", "horovodrun": "Gloo"}
NOISY = "too noisy: measure again"
SPREAD = 0.03  # assumed in `predicted`: standard deviation of a rank's step times / their mean


class StepsError(LabsError):
    """The steps were not measured; the message says why."""


def network(filters):
    """Three convolutions with filters, 2 x filters and 4 x filters, and a dense layer, for uint8 images 32x32x3."""
    import keras

    layers = [keras.Input((32, 32, 3)), keras.layers.Rescaling(1 / 127.5, offset=-1.0)]
    for factor in (1, 2, 4):
        layers.append(keras.layers.Conv2D(factor * filters, 3, strides=2, padding="same", activation="relu"))
    layers += [keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10, activation="softmax")]
    return keras.Sequential(layers)


def measure(ranks, sizes, *, rounds, steps, launcher=None, show=True):
    """Time the steps of networks with `sizes` filters on some ranks of this machine.

    Returns {ranks, launcher, oversubscribed, tensor_bytes {filters: [bytes of each gradient]}, seconds {filters: {kind:
    [median step of each round]}}}; kinds: "alone 32", "alone 16" (images), "together", "exchange". On one rank steps
    are taken alone, with 32, 16 and 8 images. Rounds in which other programs ran are left out as in a study
    (labs.results.metrics.quiet), which is printed. Raises StepsError.
    """
    name = f"steps_{ranks}"
    file = (jobs.folder() / f"{name}.steps.json").resolve()
    file.unlink(missing_ok=True)
    options = json.dumps({"file": str(file), "sizes": sizes, "rounds": rounds, "steps": steps})
    job = jobs.start("-m", "lessons.when_workers_do_not_help.steps", options, name=name, ranks=ranks, launcher=launcher)
    job.wait(show=show)
    if job.state != "finished" or not file.is_file():
        raise StepsError(f"The steps were not measured. {job.explain()}")
    found = json.loads(file.read_text(encoding="utf-8"))
    counted, note = metrics.quiet(dict(enumerate(found["others"])), "a step")
    if note:
        print(f"Mind that {note}.")
    found["launcher"] = launcher or launch.LAUNCHERS[0]
    found["tensor_bytes"] = {int(filters): sizes for filters, sizes in found["tensor_bytes"].items()}
    found["seconds"] = {
        int(filters): {kind: [rounds[n] for n in counted] for kind, rounds in kinds.items()}
        for filters, kinds in found["seconds"].items()
    }
    return found


def named(found):
    """The ranks of a measurement, and by what they exchange: the two may not be told apart where both differ."""
    by = EXCHANGES_BY.get(found["launcher"], found["launcher"])
    return f"{found['ranks']} ranks over {by}" + (", oversubscribed" if found["oversubscribed"] else "")


def share(ranks):
    """The kind of step that a rank takes alone with its share of the batch."""
    return f"alone {GLOBAL_BATCH // ranks}"


def times_as_long(found):
    """{filters: labs.results.intervals.Estimate}: a step on all ranks / one on a single rank, within rounds."""
    whole = f"alone {GLOBAL_BATCH}"
    return {filters: intervals.paired(of["exchange"], of[whole]) for filters, of in found["seconds"].items()}


def parts(found):
    """{filters: {part: [seconds in each round]}} of a step on all ranks, for PARTS. The first two are a line through
    the steps of one rank alone, with the whole batch and with a share of it: what is left at 0 images, and what grows
    with them. They are differences, and come out below 0 where they are smaller than the noise."""
    divided = {}
    for filters, kinds in found["seconds"].items():
        of_rounds = []
        whole, own = kinds[f"alone {GLOBAL_BATCH}"], kinds[share(found["ranks"])]
        for one, alone, together, exchange in zip(whole, own, kinds["together"], kinds["exchange"], strict=True):
            computing = (one - alone) / (found["ranks"] - 1)
            of_rounds.append((alone - computing, computing, together - alone, exchange - together))
        divided[filters] = dict(zip(PARTS, map(list, zip(*of_rounds, strict=True)), strict=True))
    return divided


def shares(found):
    """{filters: {part: (share, its 95 % interval over rounds)}} of the step on all ranks in the same round."""
    return {
        filters: {
            part: (fmean(values), intervals.plain(values))
            for part, values in (
                (part, [s / step for s, step in zip(seconds, found["seconds"][filters]["exchange"], strict=True)])
                for part, seconds in of.items()
            )
        }
        for filters, of in parts(found).items()
    }


def speedups(found, function, ranks):
    """{filters: text} of what `function(start, per_image, exchange, ranks)` computes from the parts of each round, with
    its 95 % interval over them; NOISY where a part came out below 0."""
    told, images = {}, GLOBAL_BATCH // found["ranks"]
    for filters, of in parts(found).items():
        rounds = [(s, c / images, shared + exchanged) for s, c, shared, exchanged in zip(*of.values(), strict=True)]
        values = [function(*of_round, ranks) for of_round in rounds]
        noisy = min(values) <= 0 or too_noisy(shares(found)[filters])
        told[filters] = NOISY if noisy else ratio(intervals.mean(values))
    return told


def measured(found):
    """{filters: text} of the speedup on all ranks, within rounds; NOISY where it is larger than the ranks."""
    of = {
        filters: intervals.paired(kinds[f"alone {GLOBAL_BATCH}"], kinds["exchange"])
        for filters, kinds in found["seconds"].items()
    }
    return {filters: NOISY if e.value > found["ranks"] else ratio(e) for filters, e in of.items()}


def ratio(estimate):
    """An estimate as a cell of a table."""
    span = " [{:.2f}, {:.2f}]".format(*estimate.interval) if estimate.interval else ""
    return f"{estimate.value:.2f}{span}"


def predicted(alone, benchmark, ranks):
    """{filters: seconds of a step on several ranks}, by lessons.step_model from steps on one rank and an all-reduce
    benchmark. It knows nothing of ranks that share a core.

    On a busy machine steps of few milliseconds may not grow with the batch: such a network is left out, and said so.
    """
    latency, bandwidth = (benchmark[key]["value"] for key in ("latency", "bandwidth"))
    seconds = {}
    for filters, kinds in alone["seconds"].items():
        pairs = [(int(kind.split()[1]), mean) for kind, rounds in kinds.items() for mean in rounds]
        try:
            computation = step_model.fitted_line(*zip(*pairs, strict=True)).seconds(GLOBAL_BATCH / ranks)
        except UseError as problem:
            print(f"Nothing is predicted for {filters} filters: {problem}")
            continue
        exchange = step_model.exposed(
            alone["tensor_bytes"][filters],
            lambda size: ring_seconds(ranks, size, latency, bandwidth),
            step_model.BACKWARD * computation,
        )
        seconds[filters] = computation * step_model.slowest(ranks, SPREAD) + exchange
    return seconds


def _rank(file, sizes, rounds, steps):
    """Trace all steps, then time them in turns, in this rank. Rank 0 writes `file`."""
    from labs import data, hvd  # import this first: it sets up TensorFlow

    # isort: split
    import horovod.tensorflow as horovod
    import keras
    import tensorflow as tf

    from labs.measure.step import compiled

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    ranks = hvd.size()
    keras.utils.set_random_seed(0)
    dataset = data.load("digits", images=GLOBAL_BATCH)
    batches = {n: (tf.constant(dataset.images[:n]), tf.constant(dataset.labels[:n])) for n in (32, 16, 8)}
    turns = {f"alone {n}": n for n in batches}
    if ranks > 1:
        turns = {kind: turns[kind] for kind in (f"alone {GLOBAL_BATCH}", share(ranks))}
        turns |= dict.fromkeys(("together", "exchange"), GLOBAL_BATCH // ranks)
    functions, tensor_bytes = {}, {}
    for filters in sizes:
        model = network(filters)
        own = compiled(model, keras.optimizers.SGD(0.0))  # ranks that step alone must not drift apart
        shared = compiled(model, hvd.DistributedOptimizer(keras.optimizers.SGD(0.01))) if ranks > 1 else own
        functions[filters] = {kind: shared if kind == "exchange" else own for kind in turns}
        tensor_bytes[filters] = [4 * weight.shape.num_elements() for weight in model.trainable_variables]

    def together():
        horovod.allreduce(tf.ones([]), name="together")  # all ranks go on from here

    def seconds(filters, kind):
        step, batch = functions[filters][kind], batches[turns[kind]]
        return timed(lambda: float(step(*batch)), steps)

    taken, moments = {filters: {kind: [] for kind in turns} for filters in sizes}, []
    order = random.Random(0)  # the same on all ranks
    for number in range(rounds + 1):
        if hvd.rank() == 0:
            print(f"Round {number} of {rounds}" if number else "Tracing", flush=True)
        for filters, kinds in taken.items():
            for kind, values in order.sample(list(kinds.items()), len(kinds)):
                together()
                # The first round traces, on all ranks; then each rank has its turn to step alone.
                rests = number and kind.startswith("alone") and hvd.rank() != number % ranks
                found = None if rests else seconds(filters, kind)
                if number:
                    values.append(found)
        together()
        moments.append(devices.moment())
    gathered, moments = ([each] if ranks == 1 else horovod.allgather_object(each) for each in (taken, moments))
    if hvd.rank() == 0:

        def medians(filters, kind):
            rounds = zip(*(of[filters][kind] for of in gathered), strict=True)
            return [median(over_ranks(steps)) for steps in rounds]

        means = {filters: {kind: medians(filters, kind) for kind in turns} for filters in sizes}
        crowded = devices.oversubscribed(ranks)
        found = {"kind": "measured", "ranks": ranks, "oversubscribed": crowded, "tensor_bytes": tensor_bytes}
        found |= {"seconds": means, "others": devices.others(moments), "machine": devices.machine()}
        files.write(Path(file), json.dumps(found))


if __name__ == "__main__":
    _rank(**json.loads(sys.argv[1]))
