"""Where the seconds of a training step go, measured by differences: one rank alone, all at once, exchanging, reading.

Four kinds of steps, on real Horovod ranks, with the same images per rank:

    alone       one rank steps, the others rest; one batch that lies in memory
    together    all ranks step, each for itself, without exchange
    exchange    all ranks step and average their gradients
    input       the same, and each batch comes from the input pipeline

python -m labs.measure.breakdown OPTIONS      what each rank runs (OPTIONS: JSON)
"""

import json
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from labs import devices, files, jobs, models
from labs.devices import moment, others
from labs.errors import LabsError
from labs.jobs.local import unwritable
from labs.results import intervals, metrics

KINDS = ("alone", "together", "exchange", "input")
EFFICIENCY = ("alone", "exchange")  # the kinds whose ratio it is
AHEAD = 3  # batches that lie ready after other steps: prefetched, and one in the making; they say nothing of reading
PARTS = ("computation", "sharing the machine", "exchange and waiting", "input")


class BreakdownError(LabsError):
    """The steps cannot be measured, or the measurement does not hold what is asked; the message says what to do."""


def measure(
    model: str,
    *,
    strategy: str = "horovod",
    ranks: int = 2,
    local_batch: int = 64,
    others: Sequence[int] = (),
    kinds: Sequence[str] = KINDS,
    image_size: int = 32,
    images: int = 512,
    rounds: int = 4,
    steps: int = 2,
    launcher: str | None = None,
    name: str | None = None,
    runs: str | Path | None = None,
    show: bool = True,
) -> dict[str, Any]:
    """Time the steps of a network alone, together, with exchange and with input.

    model: one of labs.models.NAMES
    strategy: "horovod", or "mirrored" for MirroredStrategy, which needs no Horovod (labs.measure.side_by_side): a rank
        is then one of its replicas and, in the steps alone and together, a process that trains for itself
    ranks: how many step together; launcher: of Horovod's, see labs.jobs.launch
    local_batch: images per rank, of all `kinds`; others: local batches of alone and exchange only
    kinds: alone and exchange are enough for `efficiency`; `parts` needs all KINDS
    image_size: pixels per side; images: in the data set
    rounds: how often each kind has its turn; steps: of each turn
    name: of the job and of the result's file; runs: their folder (default: labs.jobs.folder()); show: a progress bar

    All kinds take turns in each of `rounds` rounds, in an order that is drawn (labs.jobs.orders), so that a slow minute
    of the machine is in all of them, and nothing that it repeats is always in the same one.
    Returns a dict, kept as <runs>/<name>.breakdown.json: kind "measured", model, ranks, local_batch, seconds {local
    batch as text: {kind: [[seconds of a step, ...] of each round]}}, order_seed, pipeline_seconds and
    all_reduce_seconds [of each round] (a batch read alone; one message of the gradient's size), others (see `others`),
    gradient_bytes, image_size, classes, machine, versions, notes.
    Raises BreakdownError, models.ModelError, or labs.jobs.launch.LaunchError for ranks that cannot be started.
    """
    models.check_size(model, image_size)
    if strategy not in ("horovod", "mirrored"):
        raise BreakdownError(f"Strategy {strategy!r}: a breakdown knows horovod and mirrored.")
    wanted = [(ranks, 2, "ranks"), (rounds, 2, "rounds"), (steps, 1, "steps")]
    for value, least, what in [*wanted, *((size, 1, "images per rank") for size in (local_batch, *others))]:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BreakdownError(f"{value!r} {what}: a breakdown needs a whole number, {least} or more.")
    if not set(EFFICIENCY) <= set(kinds) <= set(KINDS):
        raise BreakdownError(f"Kinds {tuple(kinds)}: choose of {', '.join(KINDS)}, with {' and '.join(EFFICIENCY)}.")
    if "input" in kinds and images < ranks * local_batch:
        raise BreakdownError(
            f"{images} images do not fill one step of {ranks} ranks with {local_batch} each: give more."
        )
    runs, name = Path(runs) if runs is not None else jobs.folder(), name or f"breakdown_{model}"
    file = (runs / f"{name}.breakdown.json").resolve()
    part = file.with_suffix(".part")  # an earlier measurement stays until there is a new one
    try:
        part.unlink(missing_ok=True)
    except OSError as problem:
        raise unwritable(runs, problem) from None
    options = {"file": str(part), "model": model, "image_size": image_size, "images": images, "rounds": rounds}
    options |= {"order_seed": secrets.randbelow(2**31)}  # all ranks draw the same orders
    options |= {"steps": steps, "local_batches": [local_batch, *others], "kinds": [k for k in KINDS if k in kinds]}
    if strategy == "mirrored":
        program, processes = "labs.measure.side_by_side", {}
        options["workers"] = ranks
    else:
        program, processes = "labs.measure.breakdown", {"ranks": ranks, "launcher": launcher}
    job = jobs.start("-m", program, json.dumps(options), name=name, runs=runs, **processes)
    job.wait(show=show)
    if job.state != "finished" or not part.is_file():
        raise BreakdownError(f"The steps were not measured. {job.explain()}")
    found = json.loads(part.read_text(encoding="utf-8"))
    part.unlink()
    if ranks > devices.cores() and not found["machine"]["gpus"]:
        found["notes"].append(f"oversubscribed: more ranks ({ranks}) than cores ({devices.cores()})")
    found["notes"] += [note for note in [_counted(found)[1]] if note]
    found["notes"] += too_noisy(parts(found)) if set(kinds) == set(KINDS) else []
    files.write(file, json.dumps(found, indent=1))
    return found


def means(found: dict[str, Any], local_batch: int | None = None) -> dict[str, list[float]]:
    """{kind: mean seconds of a step in each round, as a list} at a local batch (default: the one with all KINDS).

    Rounds in which other programs ran are left out as in a study (labs.results.metrics.quiet).
    """
    kinds = found["seconds"].get(str(local_batch or found["local_batch"]))
    if not kinds:
        raise BreakdownError(f"Batch {local_batch} was not measured, only {', '.join(found['seconds'])}.")
    counted, _ = _counted(found)
    return {kind: [fmean(rounds[n]) for n in counted] for kind, rounds in kinds.items()}


def _counted(found):
    """(the rounds that count, a note or None), see labs.results.metrics.quiet."""
    rounds = len(next(iter(found["seconds"][str(found["local_batch"])].values())))
    return metrics.quiet(dict(enumerate(found.get("others") or [None] * rounds)), "a step")


def too_noisy(parts: dict[str, tuple]) -> list[str]:
    """A sentence, without its full stop, for each part that came out below 0; parts: {part: (value, interval)}."""
    return [
        f"too noisy to tell {part!r}, which came out below 0, as no part of a step can be: measure again when the "
        "machine is quiet"
        for part, (value, _) in parts.items()
        if value < 0
    ]


def parts(found: dict[str, Any]) -> dict[str, tuple[float, tuple[float, float] | None]]:
    """{part: (seconds of a step, (low, high))} for PARTS: the difference of each kind of step to the one before it.

    The 95 % interval is a t interval over rounds, of differences within a round. A part comes out below 0 where it is
    smaller than the noise; `too_noisy` says so.
    """
    kinds, before, result = means(found), None, {}
    if missing := set(KINDS) - set(kinds):
        raise BreakdownError(f"The parts need all kinds of steps; not measured: {', '.join(sorted(missing))}.")
    for kind, part in zip(KINDS, PARTS, strict=True):
        values = kinds[kind] if before is None else [b - a for a, b in zip(before, kinds[kind], strict=True)]
        result[part], before = (fmean(values), intervals.plain(values)), kinds[kind]
    return result


def efficiency(found: dict[str, Any], local_batch: int | None = None) -> tuple[float, tuple[float, float] | None]:
    """(step alone / step with exchange, (low, high)) at a local batch: the efficiency of all ranks. The mean over
    rounds of the ratio within a round; the 95 % t interval is one of its logarithm."""
    kinds = means(found, local_batch)
    ratios = [alone / exchange for alone, exchange in zip(*(kinds[kind] for kind in EFFICIENCY), strict=True)]
    return fmean(ratios), intervals.mean(ratios).interval


def observations(found: dict[str, Any]) -> list:
    """The steps as a list of labs.costs.observe.Observation: one rank (alone), and all ranks (exchange), for each local
    batch. Their batch lies in memory; what reading takes stands beside them."""
    from labs.costs.observe import Observation, input_seconds

    made, shared = [], any(note.startswith("oversubscribed") for note in found["notes"])
    known = {key: found[key] for key in ("model", "image_size", "classes")}
    known |= {"hardware": devices.hardware(found["machine"]), "precision": "float32", "fed": False}
    known |= {"input": input_seconds(found) if found["pipeline_seconds"] else ()}
    for local_batch, kinds in found["seconds"].items():
        for kind, workers in (("alone", 1), ("exchange", found["ranks"])):
            rounds = [kinds[kind][n] for n in _counted(found)[0]]
            singles = [step / fmean(round_) for round_ in rounds for step in round_]
            made.append(
                Observation(
                    workers=workers,
                    local_batch=float(local_batch),
                    seconds=tuple(map(fmean, rounds)),
                    spread=pstdev(singles) if len(singles) > 3 else None,
                    steps=len(rounds[0]),
                    oversubscribed=shared and workers > 1,
                    **known,
                )
            )
    return made


def _rank(file, model, image_size, images, local_batches, kinds, rounds, steps, order_seed):
    """Trace the step of a network with and without exchange, then time all kinds of steps, in turns, in this rank.

    Rank 0 writes `file`.
    """
    import horovod.tensorflow as horovod
    import keras
    import numpy as np
    import tensorflow as tf

    from labs import data, hvd, ranks
    from labs.measure.step import compiled

    local_batch = local_batches[0]
    hvd.init()
    if hvd.size() == 1:
        sys.exit("This rank is alone: start 2 or more, under the launcher of Horovod's own MPI.")
    devices.pin(hvd.local_rank(), hvd.local_size())
    keras.utils.set_random_seed(0)
    dataset = data.load("digits", images=images)
    network = models.build(model, image_size, len(dataset.classes))
    pipeline = None
    if "input" in kinds:
        numbers = data.order(dataset, hvd.size() * local_batch).shard(hvd.size(), hvd.rank())
        pipeline = iter(data.batches(dataset, numbers, local_batch).repeat())
    fixed = {}
    for size in local_batches:
        numbers = np.arange(size) % len(dataset.labels)  # a batch may be larger than the data set
        fixed[size] = tf.constant(dataset.images[numbers]), tf.constant(dataset.labels[numbers])
    own = compiled(network, keras.optimizers.SGD(0.0))  # ranks that step alone must not drift apart
    shared = compiled(network, hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)))
    gradient_bytes = 4 * sum(weight.shape.num_elements() for weight in network.trainable_variables)
    gradient = tf.ones([gradient_bytes // 4])

    def say(text):
        if hvd.rank() == 0:
            print(text, flush=True)

    def together():
        horovod.allreduce(tf.ones([]), name="together")  # all ranks go on from here

    def steps_of(kind, size):
        """Seconds of each step of one kind."""
        step = own if kind in KINDS[:2] else shared
        return timed(lambda: float(step(*batch_of(kind, size, pipeline, fixed))), steps)

    say(f"Model {model} {hvd.size()} workers: tracing")
    for size in local_batches:  # tracing, and what a first step of a size allocates
        for kind in EFFICIENCY:
            steps_of(kind, size)
    horovod.allreduce(gradient, name="gradient")
    if pipeline:
        next(pipeline)

    def take(kind, size, number):
        together()
        rests = kind == "alone" and hvd.rank() != number % hvd.size()  # each rank has its turn
        return None if rests else steps_of(kind, size)

    def read():
        together()
        return read_from(pipeline, steps)

    def reduce():
        together()
        return timed(lambda: horovod.allreduce(gradient, name="gradient"), 2)

    def mark():
        together()
        moments.append(moment())

    moments = []
    found = in_rounds(rounds, order_seed, local_batches, kinds, say, take, read, reduce, mark)
    gathered, of_ranks = zip(*ranks.gather((found["seconds"], moments), "its steps"), strict=True)
    if hvd.rank() == 0:
        found["seconds"] = {
            size: {kind: over_ranks([of[size][kind] for of in gathered]) for kind in by_kind}
            for size, by_kind in found["seconds"].items()
        }
        found |= {"model": model, "ranks": hvd.size(), "image_size": image_size, "classes": len(dataset.classes)}
        found |= {"gradient_bytes": gradient_bytes, "machine": devices.machine(), "others": others(of_ranks)}
        files.write(Path(file), json.dumps(found, indent=1))


def in_rounds(rounds, order_seed, local_batches, kinds, say, take, read, reduce, mark) -> dict[str, Any]:
    """Take all kinds of steps in each round, with the functions of the caller; returns its part of `measure`'s result.

    say(text): print it; take(kind, local batch, number of the round): what is to stand in `seconds` for this round;
    read(), reduce(): seconds of each batch read alone, and of each message of the gradient's size; mark(): called
    before the first round and after each. Of several local batches only the first one is taken with all kinds.
    """
    seconds = {size: {kind: [] for kind in EFFICIENCY} for size in local_batches}
    seconds[local_batches[0]] = {kind: [] for kind in kinds}
    turns = [(size, kind) for size, by_kind in seconds.items() for kind in by_kind]
    reading, reducing = [], []
    mark()
    for number, order in zip(range(rounds), jobs.orders(order_seed, len(turns)), strict=False):
        say(f"Round {number + 1} of {rounds}")
        for size, kind in (turns[place] for place in order):
            seconds[size][kind].append(take(kind, size, number))
            if kind == "input" and reading:
                time.sleep(AHEAD * reading[-1])  # the pipeline reads ahead again, and would do so in the next kind
        reading += [fmean(read())] if "input" in kinds else []
        reducing.append(fmean(reduce()))
        mark()
    found = {"version": 2, "kind": "measured", "local_batch": local_batches[0], "seconds": seconds, "notes": []}
    found |= {"pipeline_seconds": reading, "all_reduce_seconds": reducing, "order_seed": order_seed}
    return found | {"versions": devices.versions()}


def read_from(pipeline, steps):
    """Seconds of each of so many batches read alone, behind those that lie ready."""
    timed(lambda: next(pipeline), AHEAD)
    return timed(lambda: next(pipeline), steps)


def batch_of(kind, size, pipeline, fixed):
    """The batch of a step: the next one of the pipeline, or one that lies in memory. fixed: {local batch: batch}."""
    return next(pipeline) if kind == "input" else fixed[size]


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
    _rank(**json.loads(sys.argv[1]))
