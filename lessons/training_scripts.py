"""What the course asks of its training scripts. A script is tried out, and judged by what it did, in whatever style it
is written: by its facts (lessons.tryout.play), by its run record, or by what TensorFlow, Keras or the kit refused.

The functions that say something yield cases, as a judge does.
"""

import re
from functools import partial
from pathlib import Path

from labs import devices as hardware
from labs import ranks as comparisons
from labs.checks.reading import near
from labs.printed import an, several
from labs.results import log
from lessons.scripts import stops, whole
from lessons.sharding import coverage, some
from lessons.tryout import Performance, try_out_script

RATE = 0.01  # of one worker
IMAGES, LOCAL_BATCH, IMAGE_SIZE = 100, 12, 40  # of a try-out; the scripts' own defaults differ
WORKERS = {1: 2, 3: 3}  # with which a script for workers is tried out, and the epochs that it is asked for
SIZE, LOCAL_SIZE, IMAGES_OF_RANKS, LOCAL_BATCH_OF_RANKS = 6, 3, 48, 4  # ranks, ranks on each node, images, local batch
GROUPS = (1, 1), (SIZE, LOCAL_SIZE)  # (ranks, ranks on each node) with which a Horovod script is tried out
RANKS, LOCAL_RANKS = list(range(SIZE)), [rank % LOCAL_SIZE for rank in range(SIZE)]
BROADCAST, AVERAGE = "BroadcastGlobalVariablesCallback", "MetricAverageCallback"


def _options(**options):
    options["image_size"] = IMAGE_SIZE
    return tuple(word for name, value in options.items() for word in (f"--{name}", str(value)))


def another_optimizer(optimizer):
    """Cases of an optimizer that is not the scripts' plain SGD."""
    name = optimizer["name"]
    yield name != "SGD", f"The optimizer is {name}: runs with different optimizers cannot be compared. Take SGD."
    for option, value in optimizer.items():
        other = option not in ("name", "learning_rate")
        yield other, f"SGD is given {option}={value}: the other scripts use an optimizer without it."


# On several workers of one process


def not_mirrored(path, network):
    """Cases of a script that does not train `network` on 1 and on 3 workers as it is told to.

    Raises NotDone for a script with blanks.
    """
    yield from whole(path)
    options = [{"n_gpus": each, "batch_size": LOCAL_BATCH * each, "epochs": epochs} for each, epochs in WORKERS.items()]
    plays = try_out_script(path, [Performance(_options(**each), IMAGES) for each in options])
    for cases in (_networks, _strategies, _trainings, _stops, _left):
        for workers, facts in zip(WORKERS, plays, strict=True):
            yield from cases(facts, workers, network)


def _networks(facts, workers, wanted):
    """Cases of another network than the one that is wanted, or of one that does not fit the data set."""
    built = [network["name"] for network in facts["networks"]]
    yield built and built != [wanted], f"It builds {', '.join(built)}, but this script is for one {wanted}."
    for network in facts["networks"]:
        given, shape = network["weights"], network["input_shape"]
        yield given is not None, f"The network is made with weights={given!r}: pass weights=None and train it yourself."
        takes = f"With --image_size {IMAGE_SIZE} the network takes images of {shape}"
        other = shape != [IMAGE_SIZE, IMAGE_SIZE, 3]
        yield other, f"{takes}: its `input_shape` must follow `args.image_size`, and the 3 colours come last."
        for fit in facts["fits"]:
            apart = "The network gives no probabilities where the loss expects them, or the reverse"
            yield network["logits"] != fit["from_logits"], f"{apart} (`classifier_activation`, `from_logits`)."
    for fit in facts["fits"]:
        gives = f"The network gives {' x '.join(map(str, fit['outputs']))} numbers for an image"
        top = f"but the data set has {IMAGES} classes. Is the top layer there, and made for as many?"
        yield fit["outputs"] != [IMAGES], f"{gives}, {top}"


def _strategies(facts, workers, network):
    """Cases of replicas that are not one on each of the workers."""
    came = facts["networks"] or facts["fits"]
    yield came and not facts["strategies"], "No MirroredStrategy is created: the model would live on one device."
    for replicas in facts["strategies"][-1:]:
        gpus = [name for name in replicas if name.startswith("GPU")]
        named = f"MirroredStrategy is given {', '.join(gpus)}, and this machine has no GPUs"
        no_gpus = gpus and not hardware.gpus()
        yield no_gpus, f"{named}. TensorFlow accepts such names, but with two or more, `fit` hangs. Give it `workers`."
        has = f"With --n_gpus {workers} MirroredStrategy has {several(len(replicas), 'replica')}"
        every = "give it all of the `workers`, and only these. Without arguments it takes every device it finds"
        yield len(replicas) != workers, f"{has}: {every}."
    outside = not all(made["in_scope"] for made in facts["networks"]) or not all(f["mirrored"] for f in facts["fits"])
    yield outside, "The model is made outside `strategy.scope()`: it would have one copy only, on one device."


def _trainings(facts, workers, network):
    """Cases of a training with another optimizer, a rate that breaks the linear rule, other steps, or another time."""
    epochs, global_batch = WORKERS[workers], LOCAL_BATCH * workers
    for fit in facts["fits"]:
        yield from another_optimizer(fit["optimizer"])
        begins = f"With {several(workers, 'worker')} the learning rate begins with {fit['rate']:.4g}"
        rule = f"That of one worker is {RATE}: what does the linear rule say?"
        yield not near(fit["rate"], RATE * workers), f"{begins}. {rule}"
        if fit["passes"][0] is not None:
            yield from _other_steps(fit, global_batch)
        asked = f"With --epochs {epochs}, `fit` is asked for {several(fit['epochs'], 'epoch')}"
        yield fit["epochs"] != epochs, f"{asked}. The option must decide how long it trains: name it, `epochs=`."
        yield fit["verbose"] != 2, "Pass verbose=2 to `fit`: one line per epoch, which is your log."
    count = len(facts["fits"])
    yield count > 1, f"`fit` is called {count} times, and each call begins with a warm-up epoch. Train in one call."


def _other_steps(fit, global_batch):
    """Cases of a `fit` whose steps do not all take the global batch, or which leaves out that many images or more."""
    steps = fit["passes"][0]
    odd = [len(step) for step in steps if len(step) != global_batch]
    takes = f"With --batch_size {global_batch}, `fit` gets {an(fit['x'])}, and takes {odd and odd[0]} images in a step"
    yield odd, f"{takes}. Give it `train`, which holds full batches only."
    read = [number for step in steps for number in step]
    yield len(set(read)) < len(read), "In one epoch images are read more than once."
    yield len(read) <= IMAGES - global_batch, f"An epoch reads {len(read)} of {IMAGES} images."


def _stops(facts, workers, network):
    """Case of a script that ended in an error."""
    for stopped, hint in stops(facts, f"With {several(workers, 'worker')}"):
        no_list = re.search(r"MirroredStrategy\(.*not iterable", hint)
        yield stopped, f"{hint} It takes the list `workers`." if no_list else hint


def _left(facts, workers, network):
    """Cases of what a script never did, and of a log or record that does not say what was trained."""
    yield not facts["networks"], f"No network of keras.applications is created: where is {network}?"
    yield not facts["fits"], "The model is never trained: where is `fit`?"
    first = next((line for line in facts["log"].split("\n") if "model" in log.header_of_line(line)), None)
    missing = "The log's first line is missing: print `Model`, the network and the workers, as ResNet50.py does."
    yield first is None, missing
    begins = f"With {several(workers, 'worker')} of {network} the log begins with `{first}`"
    other = log.header_of_line(first) != {"model": network, "workers": workers}
    yield other, f"{begins}: whoever reads it takes it for another run."
    record = facts["record"]
    yield not record, "The run left no record: where is the recorder?"
    missing = not any("Recorder" in names for fit in facts["fits"] for names in fit["callbacks"])
    yield missing, "`fit` runs without the recorder: pass callbacks=[recorder], or there is no record of your run."
    count = record["dataset_images"]
    seen = f"The record is {record['state']} after {several(len(record['epochs']), 'epoch')} of {count} images"
    whole = record["state"] == "finished" and record["epochs"] and count == IMAGES
    yield not whole, f"{seen}, and the data set has {IMAGES}. Is the recorder made and used as it was?"


# As ranks: the six steps of ResNet50_horovod.py. A check is of one of them, while others may still be blank.


def lines_of(path, step):
    """The lines of a step as a range, from its comment `# 1. ...` to the next; without such comments all lines."""
    text = Path(path).read_text()
    begins = {int(m[1]): text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"^# ([1-6])\. ", text, re.M)}
    return range(begins.get(step, 0), begins.get(step + 1, 10**6) if step in begins else 10**6)


def _judged(step, cases, path):
    """Cases of what the ranks do, of a script in which the lines of this step hold no blank."""
    yield from whole(path, lambda path: lines_of(path, step))
    yield from cases(ranks(path))


def ranks(path, groups=GROUPS, images=IMAGES_OF_RANKS, local_batch=LOCAL_BATCH_OF_RANKS):
    """For each (ranks, ranks on each node), the facts of rank 0, 1, ... of a Horovod script, each up to its `fit`."""
    performances = []
    for size, local_size in groups:
        options = _options(batch_size=local_batch * size, epochs=2)
        performances += [Performance(options, images, rank, size, local_size) for rank in range(size)]
    facts = iter(try_out_script(path, performances))
    return [[next(facts) for _ in range(size)] for size, _ in groups]


def _stop(plays, otherwise):
    """Case of a script that did not come so far: the first error of a rank, or `otherwise`."""
    for by_rank in reversed(plays):
        for rank, facts in enumerate(by_rank):
            yield from stops(facts, f"As rank {rank} of {len(by_rank)}")
    yield True, otherwise


def fits(plays):
    """For each group of ranks the `fit` of each. Yields cases where one does not come to it."""
    if not all(facts["fits"] for by_rank in plays for facts in by_rank):
        yield from _stop(plays, "It ends without calling `fit`: nothing is trained.")
    return [[facts["fits"][0] for facts in by_rank] for by_rank in plays]


def start(plays):
    """Cases of a script that does not start Horovod, or asks it before."""
    hvd = plays[-1][0]["hvd"]
    if not hvd["started"]:
        yield from _stop(plays, "Horovod is never started. Without that, every process believes it is alone.")
    yield hvd["early"], "Something asks Horovod for a rank or the size before Horovod is started. Start it first."


def pin(plays):
    """Cases of ranks that do not pin a worker of their own on each node."""
    pins = [facts["hvd"]["pins"] for facts in plays[-1]]
    if not all(calls and "local_rank" in calls[-1] for calls in pins):
        yield from _stop(plays, "`devices.pin` is not called, so all ranks of a node would share one device.")
    local, sharing = ([calls[-1][name] for calls in pins] for name in ("local_rank", "local_size"))
    asks = f"rank {SIZE - 1} is on the second node, and would ask for worker {SIZE - 1} of {LOCAL_SIZE}"
    again = "Which number starts again at 0 on each node?"
    yield local == RANKS, f"This number counts over all nodes: {asks}, which does not exist. {again}"
    asked = f"Ranks 0 to {SIZE - 1} ask for workers {local}. On each node, these must be different and must exist."
    yield local != LOCAL_RANKS, asked
    told = f"With {LOCAL_SIZE} ranks on each of 2 nodes, `devices.pin` is told that {sharing[0]} share this machine"
    yield sharing != [LOCAL_SIZE] * SIZE, f"{told}, so it could not refuse to put two on one GPU."


def unfair(plays, groups=GROUPS):
    """Cases of shares, seen by the sample numbers of one epoch, that do not divide the data set among the ranks."""
    for by_rank, of_ranks in zip((yield from fits(plays)), groups, strict=True):
        yield from _unfair(by_rank, *of_ranks)


def _unfair(fits, size, local_size):
    for fit in fits:
        other = not fit["x"].endswith("Dataset")
        yield other, f"`fit` gets {an(fit['x'])}, not a tf.data.Dataset of batches."
    reads = [[number for step in fit["passes"][0] for number in step] for fit in fits]
    nodes = size // local_size
    where = f"With {several(size, 'rank')}" + f" on {nodes} nodes" * (nodes > 1)
    shares, kinds = coverage(reads, IMAGES_OF_RANKS), len({*map(tuple, reads)})
    lost = f", and nobody reads {some(shares.unseen)}" if len(shares.unseen) else ""
    by_node = nodes > 1 and kinds == local_size and reads == reads[:local_size] * nodes
    again = "Which of a rank's numbers begin at 0 again on each node?"
    yield by_node, f"{where}, the first ranks of both, 0 and {local_size}, read the same samples{lost}. {again}"
    alike = size > 1 and all(sorted(read) == sorted(reads[0]) for read in reads)
    every = f"{where}, each of them reads the same {len(reads[0])} of {IMAGES_OF_RANKS} samples{lost}"
    yield alike, f"{every}. What divides them? (Methods of a Dataset leave it as it is, and return a new one.)"
    seeds = "Do all divide one order? `shuffle(seed=...)` depends on the global seed, too (`set_random_seed`)."
    twice = f"{where}, {some(shares.repeated)} are read more than once{lost}. {seeds}"
    yield len(shares.repeated), twice
    problem = comparisons.shard_problem(reads, IMAGES_OF_RANKS)
    yield problem, f"{where}: {problem}"
    uncounted = not all(fit["counted"] for fit in fits)
    yield uncounted, "The data set does not know how many steps it has: labs.hvd would refuse to train. Use `shard`."
    sizes = {len(step) for fit in fits for step in fit["passes"][0]}
    takes = f"{where} and --batch_size {LOCAL_BATCH_OF_RANKS * size}, a rank takes {max(sizes)} in a step"
    yield sizes != {LOCAL_BATCH_OF_RANKS}, f"The shares are right. But {takes.lower()}. What is left for each rank?"
    asked = f"{where}, `--epochs 2` asks `fit` for {several(fits[0]['epochs'], 'epoch')}"
    yield fits[0]["epochs"] != 2, f"{asked}. Leave their number as it is: an epoch reads each sample once."


def optimizer(plays):
    """Cases of gradients that are not averaged, and of a rate that is not that of the linear rule."""
    (alone,), fits_ = yield from fits(plays)
    own = any(fit["wrapped"] == "horovod" for fit in fits_)
    nothing = "With Keras 3, Horovod's own Keras classes average nothing, without any error"
    yield own, f"{nothing}, and every rank trains a network of its own. Take the classes from `labs.hvd`."
    for fit in fits_:
        yield from another_optimizer(fit["optimizer"])
    one, rates = alone["rate"], [fit["rate"] for fit in fits_]
    yield not near(one, RATE), f"With one rank the learning rate must be {RATE}; it is {one:.4g}."
    given = ", ".join(sorted({f"{rate:.4g}" for rate in rates}))
    rule = f"Horovod does not scale the rate, which is {given} on {SIZE} ranks. What does the linear rule say?"
    yield not all(near(rate, RATE * SIZE) for rate in rates), rule
    apart = "The optimizer is not wrapped: no gradients are averaged, and each rank would train its own network."
    yield not all(fit["wrapped"] for fit in fits_), apart


def callbacks(plays):
    """Cases of a broadcast, averaged metrics or a record that are missing, or in the wrong order."""
    _, fits_ = yield from fits(plays)
    for fit in fits_:
        kinds = [kind for names in fit["callbacks"] for kind in names]
        random = "There is no broadcast: ranks begin with other random weights, and equal gradients keep them apart."
        yield BROADCAST not in kinds, random
        yield AVERAGE not in kinds, "Metrics are not averaged: your log would show the loss on rank 0's share only."
        yield "Recorder" not in kinds, "`fit` runs without the recorder: there would be no record of your run."
        late = {BROADCAST, AVERAGE} & set(kinds[kinds.index("Recorder") :])
        yield late, "The recorder comes before Horovod's callbacks: it would record values that are not averaged yet."
    other = len({tuple(fit["roots"]) for fit in fits_}) > 1
    yield other, "Each rank names a different root, so they do not get the same weights. All must name the same one."


def verbosity(plays):
    """Cases of a log in which not rank 0 alone prints, a line for each epoch."""
    (alone,), fits_ = yield from fits(plays)
    given = [fit["verbose"] for fit in fits_]
    wanted = "Rank 0 is to print a line for each epoch (1 is a progress bar, which fills a log), the others nothing"
    yield given[0] != 2 or any(given[1:]), f"Ranks 0 to {SIZE - 1} train with verbose={given}. {wanted}."
    yield alone["verbose"] != 2, f"A single rank trains with verbose={alone['verbose']}, but it is rank 0 as well."


_CASES = start, pin, unfair, optimizer, callbacks, verbosity
STEPS = [partial(_judged, step, cases) for step, cases in enumerate(_CASES, 1)]
