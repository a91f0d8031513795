"""What the course asks of its training scripts. A script is tried out, and judged by what it did, in whatever style it
is written: by its facts (lessons.tryout.play), by its run record, or by what TensorFlow, Keras or the kit refused.

The functions that say something yield cases, as a judge does.
"""

import re
import tempfile
from functools import wraps
from pathlib import Path

from labs import devices as hardware
from labs import ranks as comparisons
from labs.checks.reading import near
from labs.printed import an, several
from labs.results import log
from lessons.scripts import no_script, refuse_blanks, stops
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
    return tuple(word for name, value in options.items() for word in (f"--{name}", str(value)))


def another_optimizer(optimizer):
    """Cases of an optimizer that is not the scripts' plain SGD."""
    name = optimizer["name"]
    yield name != "SGD", f"The optimizer is {name}: runs with different optimizers cannot be compared. Take SGD."
    for option in ("momentum", "nesterov", "weight_decay", "use_ema", "clipnorm", "clipvalue", "global_clipnorm"):
        value = optimizer.get(option)
        yield value, f"SGD is given {option}={value}: the other scripts use an optimizer without it."
    passes = optimizer.get("gradient_accumulation_steps")
    yield passes, f"Gradients of {passes} steps are added up: the weights change only once in {passes} steps."


# On several workers of one process


def not_mirrored(path, network):
    """Cases of a script that does not train `network` on 1 and on 3 workers as it is told to.

    Raises NotDone for a script with blanks.
    """
    yield from no_script(path)
    refuse_blanks(path)
    plays = try_out_script(path, [_on_workers(*asked) for asked in WORKERS.items()])
    for cases in (_networks, _strategies, _trainings):
        for workers, facts in zip(WORKERS, plays, strict=True):
            yield from cases(facts, workers, network)
    for workers, facts in zip(WORKERS, plays, strict=True):
        for stopped, hint in stops(facts, f"With {several(workers, 'worker')}"):
            no_list = re.search(r"MirroredStrategy\(.*not iterable", hint)
            yield stopped, f"{hint} It takes the list `workers`." if no_list else hint
    for workers, facts in zip(WORKERS, plays, strict=True):
        yield from _left(facts, workers, network)


def _on_workers(workers, epochs):
    sizes = {"n_gpus": workers, "batch_size": LOCAL_BATCH * workers, "epochs": epochs}
    return Performance(_options(**sizes, image_size=IMAGE_SIZE), IMAGES)


def _networks(facts, workers, wanted):
    """Cases of another network than the one that is wanted, or of one that does not fit the data set."""
    built = [network["name"] for network in facts["networks"]]
    yield built and built != [wanted], f"It builds {', '.join(built)}, but this script is for one {wanted}."
    size = [IMAGE_SIZE, IMAGE_SIZE, 3]
    for network in facts["networks"]:
        given, shape = network["weights"], network["input_shape"]
        yield given is not None, f"The network is made with weights={given!r}: pass weights=None and train it yourself."
        listed = isinstance(network["classes"], list)
        yield listed, "`classes` is a list. The network needs to know how many there are."
        takes = f"With --image_size {IMAGE_SIZE} the network takes images of {shape}"
        yield shape == size[:2], f"{takes}: the 3 colours are missing in its `input_shape`."
        yield shape == size[::-1], f"{takes}: the 3 colours come last."
        yield shape != size, f"{takes}: does its `input_shape` follow `args.image_size`?"
        for fit in facts["fits"]:
            says = "probabilities, but the loss is told `from_logits=True`"
            says = (
                "no probabilities (`classifier_activation`), but the loss expects them" if network["logits"] else says
            )
            yield network["logits"] != fit["from_logits"], f"The network's last layer gives {says}."
    for outputs in [fit["outputs"] for fit in facts["fits"] if fit["outputs"]]:
        yield len(outputs) != 1, "The network is made without its top layer: nothing turns features into classes."
        gives = f"The network gives {several(outputs[0], 'number')} for an image, but the data set has {IMAGES} classes"
        yield outputs[0] != IMAGES, f"{gives}. Which argument says how many?"


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
        yield (
            len(replicas) > workers,
            f"{has}: without arguments it takes every device it finds. Tell it the `workers`.",
        )
        yield len(replicas) < workers, f"{has}: give it all of the `workers`."
    outside = not all(made["in_scope"] for made in facts["networks"]) or not all(f["mirrored"] for f in facts["fits"])
    yield outside, "The model is made outside `strategy.scope()`: it would have one copy only, on one device."


def _trainings(facts, workers, network):
    """Cases of a training with another optimizer, a rate that breaks the linear rule, other steps, or another time."""
    epochs, global_batch = WORKERS[workers], LOCAL_BATCH * workers
    for fit in facts["fits"]:
        yield from another_optimizer(fit["optimizer"])
        begins = f"With {several(workers, 'worker')} the learning rate begins with {fit['rate']:.4g}"
        yield workers == 1 and not near(fit["rate"], RATE), f"{begins}: that of one worker is {RATE}."
        yield workers > 1 and near(fit["rate"], RATE), f"{begins}, as with one. What does the linear rule say?"
        yield not near(fit["rate"], RATE * workers), f"{begins}. The linear rule gives another one."
        yield from _other_steps(fit, global_batch)
        asked = f"With --epochs {epochs}, `fit` is asked for {several(fit['epochs'], 'epoch')}"
        yield fit["epochs"] != epochs, f"{asked}. The option must decide how long it trains: name it, `epochs=`."
        yield fit["verbose"] != 2, "Pass verbose=2 to `fit`: one line per epoch, which is your log."
    count = len(facts["fits"])
    yield count > 1, f"`fit` is called {count} times, and each call begins with a warm-up epoch. Train in one call."


def _other_steps(fit, global_batch):
    """Cases of a `fit` whose steps do not all take the global batch, or which leaves out that many images or more."""
    steps = fit["passes"][0] or []
    yield not steps and fit["passes"][0] is not None, "`fit` gets no images with labels."
    odd = [len(step) for step in steps if len(step) != global_batch]
    takes = f"With --batch_size {global_batch}, `fit` gets {an(fit['x'])}, and takes {odd and odd[0]} images in a step"
    yield odd, f"{takes}. Give it `train`, which holds full batches only."
    read = [number for step in steps for number in step]
    yield len(set(read)) < len(read), "In one epoch images are read more than once."
    yield steps and len(read) <= IMAGES - global_batch, f"An epoch reads {len(read)} of {IMAGES} images."


def _left(facts, workers, network):
    """Cases of what a script never did, and of a log or record that does not say what was trained."""
    yield not facts["networks"], f"No network of keras.applications is created: where is {network}?"
    yield not facts["fits"], "The model is never trained: where is `fit`?"
    run, record = _logged(facts["log"]), facts["record"]
    missing = run is None or run.model is None
    yield missing, "The log's first line is missing: print `Model`, the network and the workers, as ResNet50.py does."
    other = run.model != network
    yield other, f"The log's first line names {run.model}: whoever reads the .out mistakes one network for the other."
    first = next((line for line in facts["log"].split("\n") if "Model " in line), "")
    begins = f"With {several(workers, 'worker')} the log begins with `{first}`"
    yield run.workers != workers, f"{begins}: whoever reads it takes it for another run."
    yield not record, "The run left no record: where is the recorder?"
    whole = record["state"] == "finished" and record["epochs"]
    missing = not any("Recorder" in names for fit in facts["fits"] for names in fit["callbacks"])
    yield missing, "`fit` runs without the recorder: pass callbacks=[recorder], or there is no record of your run."
    yield not whole, f"The record is {record['state']} after {several(len(record['epochs']), 'epoch')}."
    count = record["dataset_images"]
    yield count != IMAGES, f"The recorder is told images={count}, but the data set has {IMAGES}."


def _logged(text):
    """The first run in the text that a script printed, or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.out")
        path.write_text(text)
        try:
            runs = log.read(path)
        except log.LogError as problem:
            runs = problem.runs
    return runs[0] if runs else None


# As ranks: the six steps of ResNet50_horovod.py. A check is of one of them, while others may still be blank.


def lines_of(path, step):
    """The lines of a step as a range, from its comment `# 1. ...` to the next; without such comments all lines."""
    text = Path(path).read_text()
    begins = {int(m[1]): text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"^# ([1-6])\. ", text, re.M)}
    return range(begins.get(step, 0), begins.get(step + 1, 10**6) if step in begins else 10**6)


def _step(number):
    """Decorator: turns a judge of what the ranks do into one of a path, which looks at the blanks of one step only."""

    def decorate(judge):
        @wraps(judge)
        def judged(path):
            yield from no_script(path)
            refuse_blanks(path, lines=lines_of(path, number))
            yield from judge(ranks(path))

        return judged

    return decorate


def ranks(path, groups=GROUPS, images=IMAGES_OF_RANKS, local_batch=LOCAL_BATCH_OF_RANKS):
    """For each (ranks, ranks on each node), the facts of rank 0, 1, ... of a Horovod script, each up to its `fit`."""
    performances = []
    for size, local_size in groups:
        options = _options(batch_size=local_batch * size, epochs=2, image_size=IMAGE_SIZE)
        performances += [Performance(options, images, rank, size, local_size) for rank in range(size)]
    facts = iter(try_out_script(path, performances))
    return [[next(facts) for _ in range(size)] for size, _ in groups]


def stop(plays):
    """Case of the first of the performances as ranks (`ranks`) that ended in an error."""
    for by_rank in reversed(plays):
        for rank, facts in enumerate(by_rank):
            yield from stops(facts, f"As rank {rank} of {len(by_rank)}" if len(by_rank) > 1 else "As the only rank")


def fits(plays):
    """For each group of ranks the `fit` of each. Yields cases where one does not come to it."""
    if not all(facts["fits"] for by_rank in plays for facts in by_rank):
        yield from stop(plays)
        yield True, "It ends without calling `fit`: nothing is trained."
    return [[facts["fits"][0] for facts in by_rank] for by_rank in plays]


@_step(1)
def start(plays):
    """Cases of a script that does not start Horovod, or asks it before."""
    hvd = plays[-1][0]["hvd"]
    if not hvd.get("started"):
        yield not plays[-1][0]["error"], "Horovod is never started. Without that, every process believes it is alone."
        yield from stop(plays)
    early = "Something asks Horovod for a rank or the size before Horovod is started. Start it first."
    yield hvd.get("early"), early


@_step(2)
def pin(plays):
    """Cases of ranks that do not pin a worker of their own on each node."""
    pins = [facts["hvd"].get("pins", []) for facts in plays[-1]]
    if not all(pins):
        yield from stop(plays)
        yield True, "`devices.pin` is not called, so all ranks of a node would share one device."
    local = [calls[-1].get("local_rank") for calls in pins]
    yield (
        local == RANKS,
        f"This number counts over all nodes: rank {SIZE - 1} is on the second node, and would ask for worker "
        f"{SIZE - 1} of {LOCAL_SIZE}, which does not exist. Which number starts again at 0 on each node?",
    )
    yield (
        local in ([LOCAL_SIZE] * SIZE, [SIZE] * SIZE),
        "This is the number of ranks, which is the same on every rank: all of them would use the same worker.",
    )
    yield (
        local != LOCAL_RANKS,
        f"Ranks 0 to {SIZE - 1} ask for workers {local}. On each node, these must be different and must exist.",
    )
    sharing = [calls[-1].get("local_size") for calls in pins]
    yield (
        None in sharing,
        "`devices.pin` is not told how many ranks share this machine, so it cannot refuse to put two on one GPU.",
    )
    yield (
        sharing != [LOCAL_SIZE] * SIZE,
        "The second number says how many ranks share *this machine*, not how many there are in total.",
    )


@_step(3)
def shard(plays):
    """Cases of shares that do not divide the samples among the ranks."""
    yield from unfair(plays)


def unfair(plays, groups=GROUPS):
    """Cases of shares, seen by the sample numbers of one epoch, that do not divide the data set among the ranks."""
    for by_rank, (size, local_size) in zip((yield from fits(plays)), groups, strict=True):
        yield from _unfair(by_rank, size, local_size)


def _unfair(fits, size, local_size):
    for fit in fits:
        other = fit["passes"][0] is None or not fit["x"].endswith("Dataset")
        yield other, f"`fit` gets {an(fit['x'])}, not a tf.data.Dataset of batches."
    reads = [[number for step in fit["passes"][0] for number in step] for fit in fits]
    nodes = f" on {size // local_size} nodes" * (size > local_size)
    where = f"With {several(size, 'rank')}{nodes}"
    by_node = size > local_size and reads == reads[:local_size] * (size // local_size)
    by_node = by_node and (local_size == 1 or reads[0] != reads[1])
    shares = coverage(reads, IMAGES_OF_RANKS)
    lost = f", and nobody reads {some(shares.unseen)}" if len(shares.unseen) else ""
    again = "Which of a rank's numbers begin at 0 again on each node?"
    yield by_node, f"{where}, the first ranks of both, 0 and {local_size}, read the same samples{lost}. {again}"
    whole = size > 1 and all(len(read) == IMAGES_OF_RANKS for read in reads)
    every = f"{where}, each of them reads all {IMAGES_OF_RANKS} samples"
    yield whole, f"{every}. What divides them? (Methods of a Dataset leave it as it is, and return a new one.)"
    alike = size > 1 and all(read == reads[0] for read in reads)
    yield alike, f"{where}, all ranks read the same part{lost}. Which part should each one take?"
    seeds = "Do all divide one order? `shuffle(seed=...)` depends on the global seed, too (`set_random_seed`)."
    twice = f"{where}, {some(shares.repeated)} are read more than once{lost}. {seeds}"
    yield len(shares.repeated), twice
    problem = comparisons.shard_problem(reads, IMAGES_OF_RANKS)
    yield problem, f"{where}: {problem}"
    uncounted = not all(fit["counted"] for fit in fits)
    yield uncounted, "The data set does not know how many steps it has: labs.hvd would refuse to train. Use `shard`."
    sizes = {len(step) for fit in fits for step in fit["passes"][0]}
    takes = f"with --batch_size {LOCAL_BATCH_OF_RANKS * size} on {size} ranks, a rank takes {max(sizes)} in a step"
    yield sizes != {LOCAL_BATCH_OF_RANKS}, f"The shares are right, but {takes}. What is left for each rank?"
    asked = f"{where}, `--epochs 2` asks `fit` for {several(fits[0]['epochs'], 'epoch')}"
    yield fits[0]["epochs"] != 2, f"{asked}. Leave their number as it is: an epoch reads each sample once."


@_step(4)
def optimizer(plays):
    """Cases of gradients that are not averaged, and of a rate that is not that of the linear rule."""
    (alone,), fits_ = yield from fits(plays)
    yield (
        any(fit["wrapped"] == "horovod" for fit in fits_),
        "With Keras 3, Horovod's own Keras classes average nothing, without any error, and every rank trains a "
        "network of its own. Take the classes from `labs.hvd`.",
    )
    for fit in fits_:
        yield from another_optimizer(fit["optimizer"])
    rate, one = fits_[0]["rate"], alone["rate"]
    other = [fit["rate"] for fit in fits_ if not near(fit["rate"], rate)]
    yield other, f"The ranks start with different rates: {rate:.4g}, and {', '.join(f'{r:.4g}' for r in other)}."
    fixed = "The rate does not depend on the ranks, and Horovod does not scale it. What does the linear rule say?"
    yield near(rate, RATE), fixed
    yield not near(one, RATE), f"With one rank the learning rate must be {RATE}; it is {one:.4g}."
    nodes = f"With {SIZE} ranks, {LOCAL_SIZE} on each node, the rate is that for {LOCAL_SIZE}. Which batch grows?"
    yield near(rate, RATE * LOCAL_SIZE), nodes
    divided = (
        "You divide: with more ranks, the batch is larger and the gradient less noisy, so an update may be larger."
    )
    yield near(rate, RATE / SIZE), divided
    yield not near(rate, RATE * SIZE), f"With {SIZE} ranks, the linear rule does not give your script's rate."
    yield (
        not all(fit["wrapped"] for fit in fits_),
        "The optimizer is not wrapped: the gradients are not averaged, and each rank would train its own network.",
    )


@_step(5)
def callbacks(plays):
    """Cases of a broadcast, averaged metrics or a record that are missing, or in the wrong order."""
    _, fits_ = yield from fits(plays)
    for fit in fits_:
        kinds = [kind for names in fit["callbacks"] for kind in names]
        yield (
            BROADCAST not in kinds,
            "There is no broadcast: the ranks begin with different random weights. Adding equal gradients to "
            "different weights leaves them different forever.",
        )
        yield AVERAGE not in kinds, "Metrics are not averaged: your log would show the loss on rank 0's share only."
        yield "Recorder" not in kinds, "`fit` runs without the recorder: there would be no record of your run."
        yield (
            {BROADCAST, AVERAGE} & set(kinds[kinds.index("Recorder") :]),
            "The recorder comes before Horovod's callbacks, so it would record values that are not averaged yet.",
        )
    other = len({fit["roots"][0] for fit in fits_}) > 1
    yield other, "Each rank names a different root, so they do not get the same weights. All must name the same one."


@_step(6)
def verbosity(plays):
    """Cases of a log in which not rank 0 alone prints, a line for each epoch."""
    (alone,), fits_ = yield from fits(plays)
    here, *others = [fit["verbose"] for fit in fits_]
    yield here == 2 and set(others) == {2}, "Each rank would print each epoch: with K ranks, each line appears K times."
    yield here != 2 and 2 in others, "This is the wrong way round: one rank prints, and all the others are silent."
    yield here == 1, "1 is a progress bar, which fills a log with broken lines. Which value gives one line per epoch?"
    yield here != 2, f"Rank 0 trains with verbose={here}. Which value gives one line per epoch?"
    node = others[LOCAL_SIZE - 1] != 0 and others[0] == 0
    yield node, "One rank of each node would print. Which number is 0 on only one rank of the whole job?"
    yield any(others), "The other ranks still print. Which value of verbose makes `fit` silent?"
    yield alone["verbose"] != 2, f"A single rank trains with verbose={alone['verbose']}, but it is rank 0 as well."


STEPS = start, pin, shard, optimizer, callbacks, verbosity
