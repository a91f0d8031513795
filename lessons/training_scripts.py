"""What the course asks of its training scripts: a script is tried out, and the cases look at what it did.

The functions that say something yield cases, as a judge does. They tell what was seen, in whatever style it is written.
"""

import re
import tempfile
from pathlib import Path

from labs import devices as hardware
from labs.checks import tryout
from labs.checks.reading import near
from labs.checks.scripts import no_script, refuse_blanks, stops, tried
from labs.data.shares import coverage, some
from labs.printed import an, several
from labs.results import log

RATE = 0.01  # of one worker
IMAGES, LOCAL_BATCH, IMAGE_SIZE = 100, 12, 40  # of a try-out; the scripts' own defaults differ
WORKERS = 4
SIZE, LOCAL_SIZE, IMAGES_OF_RANKS, LOCAL_BATCH_OF_RANKS = 6, 3, 48, 4  # ranks, ranks on each node, images, local batch
GROUPS = (1, 1), (SIZE, LOCAL_SIZE)  # (ranks, ranks on each node) with which a script is tried out


# On several workers of one process


def not_mirrored(path, network):
    """Cases of a script that does not train `network` on 1 and on 4 workers as it is told to.

    Raises NotDone for a script with blanks.
    """
    yield from no_script(path)
    refuse_blanks(path)
    numbers = 1, WORKERS
    plays = tried(path, [_on_workers(workers) for workers in numbers])
    for cases in (_networks, _strategies, _rates, _recorders, _fits):
        for workers, facts in zip(numbers, plays, strict=True):
            yield from cases(facts, workers, network)
    for workers, facts in zip(numbers, plays, strict=True):
        for stopped, hint in stops(facts, f"With {several(workers, 'worker')}"):
            no_list = re.search(r"MirroredStrategy\(.*not iterable", hint)
            yield stopped, f"{hint} It takes the list `workers`." if no_list else hint
    yield from _left(plays, network)


def _on_workers(workers):
    sizes = {"n_gpus": workers, "batch_size": LOCAL_BATCH * workers, "epochs": _epochs(workers)}
    return tryout.Performance(_options(**sizes, image_size=IMAGE_SIZE), IMAGES)


def _epochs(workers):
    return 2 if workers == 1 else 3


def _options(**options):
    return tuple(word for name, value in options.items() for word in (f"--{name}", str(value)))


def _networks(facts, workers, wanted):
    """Cases of another network than the one that is wanted."""
    built = [network["name"] for network in facts["networks"]]
    yield built and built != [wanted], f"It builds {', '.join(built)}, but this script is for one {wanted}."
    for network in facts["networks"]:
        given = network["weights"]
        yield given is not None, f"The network is made with weights={given!r}: pass weights=None and train it yourself."
        for fit in facts["fits"]:
            top = network["include_top"] or (fit["output"] or [0])[1:] == [IMAGES]
            yield not top, "The network is made without its top layer: nothing turns features into classes."
        if network["include_top"]:
            yield from _top(network, facts["fits"])
        size, shape = [IMAGE_SIZE, IMAGE_SIZE, 3], network["input_shape"]
        asked = f"With --image_size {IMAGE_SIZE} the network takes images of {shape}"
        yield shape == size[:2], f"{asked}: the 3 colours are missing in its `input_shape`."
        yield shape == size[::-1], f"{asked}: the 3 colours come last."
        yield shape != size, f"{asked}: does its `input_shape` follow `args.image_size`?"


def _top(network, fits):
    has = network["classes"]
    listed = isinstance(has, list)
    yield listed, f"`classes` is a list of {len(has) if listed else 0}. The network needs to know how many there are."
    yield has != IMAGES, f"The network has {has} classes, but the data set has {IMAGES}. Which argument says how many?"
    logits = network["activation"] == "linear"
    for fit in fits:
        says = "probabilities, but the loss is told `from_logits=True`"
        says = "no probabilities (`classifier_activation`), but the loss expects them" if logits else says
        yield logits != fit["from_logits"], f"The network's last layer gives {says}."


def _strategies(facts, workers, network):
    """Cases of replicas that are not one on each of the workers."""
    came = facts["networks"] or facts["fits"]
    yield came and not facts["strategies"], "No MirroredStrategy is created: the model would live on one device."
    given = facts["devices"]
    for devices in facts["strategies"][-1:]:
        others = [device for device in devices if device.startswith("GPU")]
        named = f"MirroredStrategy is given {', '.join(others)}, and this machine has no GPUs"
        no_gpus = others and not hardware.gpus()
        yield no_gpus, f"{named}. TensorFlow accepts such names, but with two or more, `fit` hangs. Give it `workers`."
        devices = [device.replace("GPU", "CPU") for device in devices]  # which play the GPUs in a try-out
        asked = f"With --n_gpus {workers} MirroredStrategy has {several(len(devices), 'replica')}"
        all_there = f"{asked}: without arguments it takes every device it finds. Tell it the `workers`."
        yield len(devices) > len(given), all_there
        yield len(devices) < len(given), f"{asked}: give it all of the `workers`."
        yield set(devices) != set(given), f"The replicas are on {', '.join(devices)}, the workers {', '.join(given)}."
    outside = any(not made["in_scope"] for made in facts["networks"])
    yield outside, "The network is created outside `strategy.scope()`: it would have one copy only."
    for fit in facts["fits"]:
        yield not fit["devices"], "The model is made outside `strategy.scope()`: it would train on one device."


def _rates(facts, workers, network):
    """Cases of a rate that is not that of the linear rule, and of another optimizer."""
    for fit in facts["fits"]:
        yield from another_optimizer(fit["optimizer"])
        rate = first_rate(fit)
        given = f"it begins with {rate:.4g} at {LOCAL_BATCH} images a step"
        alone = workers == 1 and not near(rate, RATE)
        yield alone, f"With one worker the learning rate must be {RATE}; {given}."
        fixed = workers > 1 and near(rate, RATE)
        yield fixed, "The learning rate does not depend on the workers: what does the linear rule say?"
        wrong = not near(rate, RATE * workers)
        yield wrong, f"With {workers} workers the linear rule gives a rate other than {rate:.4g}."


def first_rate(fit):
    """The rate of the first step, or of the optimizer where none was taken."""
    return (fit["rates"] or [fit["optimizer"]["learning_rate"]])[0]


def another_optimizer(optimizer):
    """Cases of an optimizer that is not the scripts' plain SGD."""
    name = optimizer["name"]
    yield name != "SGD", f"The optimizer is {name}: runs with different optimizers cannot be compared. Take SGD."
    for option in ("momentum", "nesterov", "weight_decay", "use_ema", "clipnorm", "clipvalue", "global_clipnorm"):
        value = optimizer.get(option)
        yield value, f"SGD is given {option}={value}: the other scripts use an optimizer without it."
    passes = optimizer.get("gradient_accumulation_steps")
    yield passes, f"With gradient_accumulation_steps={passes} the weights change in every {passes}th step only."


def _recorders(facts, workers, network):
    """Cases of a recorder that is not told what is trained."""
    for told in facts["recorders"]:
        model, strategy, many, images, rate = told.values()
        named = f"The recorder is told model={model!r}, and this script is for {network}."
        yield model != network, f"{named} The recorder stops a run under the name of another network."
        other = f"The recorder is told strategy={strategy!r}. Which one does this script use?"
        yield strategy != "mirrored", other
        yield many != workers, f"With {workers} workers the recorder is told workers={many}."
        yield images != IMAGES, f"The recorder is told images={images}, but the data set has {IMAGES}."
        for fit in facts["fits"]:
            rates = f"{rate}, and the training begins with {first_rate(fit):.4g}"
            unlike = not isinstance(rate, float | int) or not near(rate, first_rate(fit))
            yield unlike, f"With {workers} workers the recorder is told a learning rate of {rates}."


def _fits(facts, workers, network):
    """Cases of a training on other steps, for another time, without record or log."""
    epochs = _epochs(workers)
    for fit in facts["fits"]:
        yield from unlike_steps(fit, LOCAL_BATCH * workers)
        missing = not any("Recorder" in names for names in fit["callbacks"])
        yield missing, "`fit` runs without the recorder: pass callbacks=[recorder], or there is no record of your run."
        yield fit["verbose"] != 2, "Pass verbose=2 to `fit`: one line per epoch, which is your log."
        asked = f"With --epochs {epochs}, `fit` is asked for {several(fit['epochs'], 'epoch')}"
        yield fit["epochs"] != epochs, f"{asked}. The option must decide how long it trains: name it, `epochs=`."
    count = len(facts["fits"])
    yield count > 1, f"`fit` is called {count} times, and each call begins with a warm-up epoch. Train in one call."


def unlike_steps(fit, global_batch):
    """Cases of a `fit` whose steps do not all take the global batch, or which leaves out that many images or more."""
    if fit["batches"] is None:
        return
    sizes = [len(step) for step in fit["batches"]]
    given = f"`fit` gets a {fit['x']} in steps of {max(sizes, default=0)} images"
    yield not sizes, "`fit` gets no images with labels."
    yield (
        max(sizes) != global_batch,
        f"With --batch_size {global_batch}, {given}. Give it `train`, which holds the batches.",
    )
    last = f"{given}, and the last step has {sizes[-1]}: its images would count more, or a worker would have no images"
    yield sizes[-1] != global_batch, f"{last}. Give it `train`."
    read = [number for step in fit["batches"] for number in step]
    twice = sorted({number for number in read if read.count(number) > 1})
    yield twice, f"In one epoch images are read more than once: {some(twice)}."
    yield len(read) <= IMAGES - global_batch, f"An epoch reads {len(read)} of {IMAGES} images."


def _left(plays, network):
    """Cases of what a script never did, and of a log or record that does not say what was trained."""
    for workers, facts in zip((1, WORKERS), plays, strict=True):
        yield not facts["networks"], f"No network of keras.applications is created: where is {network}?"
        yield not facts["recorders"], "No recorder is created: the run would leave no record."
        yield not facts["fits"], "The model is never trained: where is `fit`?"
        yield from unnamed(facts["log"], network, workers)
        record, epochs = facts["record"], _epochs(workers)
        whole = record and record["state"] == "finished" and len(record["epochs"]) == epochs
        yield not whole, f"With --epochs {epochs} the run left no record of {epochs} finished epochs."


def unnamed(text, network, workers):
    """Cases of a log whose first line does not name the network and the workers."""
    run = _read(text)
    missing = run is None or run.model is None
    yield missing, "The log's first line is missing: print `Model`, the network and the workers, as ResNet50.py does."
    other = run.model != network
    yield other, f"The log's first line names {run.model}: whoever reads the .out mistakes one network for the other."
    if run.workers != workers:
        first = next(line for line in text.split("\n") if "Model " in line)
        yield True, f"With {workers} workers the log begins with `{first}`: whoever reads it takes it for another run."


def _read(text):
    """The first run in the text that a script printed, or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.out")
        path.write_text(text)
        try:
            runs = log.read(path)
        except log.LogError as problem:
            runs = problem.runs
    return runs[0] if runs else None


# As ranks


def ranks(path, groups=GROUPS):
    """For each (ranks, ranks on each node), the facts of rank 0, 1, ... of a Horovod script, each up to its `fit`."""
    asked = [_as_rank(rank, size, local_size) for size, local_size in groups for rank in range(size)]
    facts = iter(tried(path, asked))
    return [[next(facts) for _ in range(size)] for size, _ in groups]


def _as_rank(rank, size, local_size):
    options = _options(batch_size=LOCAL_BATCH_OF_RANKS * size, epochs=2, image_size=IMAGE_SIZE)
    return tryout.Performance(options, IMAGES_OF_RANKS, rank, size, local_size)


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


def unfair(plays, groups=GROUPS):
    """Cases of shares, seen by the sample numbers of one epoch, that do not divide the data set among the ranks."""
    for by_rank, facts, (size, local_size) in zip((yield from fits(plays)), plays, groups, strict=True):
        sharded = all([size, rank] in each["hvd"].get("shards", []) for rank, each in enumerate(facts))
        yield from _unfair(by_rank, size, local_size, sharded)


def _unfair(fits, size, local_size, sharded):
    for fit in fits:
        other = fit["batches"] is None or not fit["x"].endswith("Dataset")
        yield other, f"`fit` gets {an(fit['x'])}, not a tf.data.Dataset of batches."
    reads = [[number for step in fit["batches"] for number in step] for fit in fits]
    found = coverage(reads, IMAGES_OF_RANKS)
    nodes = f" on {size // local_size} nodes" * (size > local_size)
    where = f"With {several(size, 'rank')}{nodes}"
    lost = f" and nobody reads {some(found.unseen)}" if len(found.unseen) else ""
    twice = f"{where}, {some(found.repeated)} are read more than once{lost}."
    by_node = size > local_size and reads == reads[:local_size] * (size // local_size)
    by_node = by_node and (local_size == 1 or reads[0] != reads[1])
    again = "Which of a rank's numbers begin at 0 again on each node?"
    yield by_node, f"{twice} Ranks 0 and {local_size} of two nodes read the same. {again}"
    whole = size > 1 and all(len(read) == IMAGES_OF_RANKS for read in reads)
    all_read = f"each of them reads all {IMAGES_OF_RANKS} samples: {some(found.repeated)} are read {size} times"
    yield whole and sharded, f"{where}, {all_read}. `shard` is called: it returns a new data set. Is that one used?"
    yield whole, f"{where}, {all_read}. What does a rank know that the others do not?"
    alike = all(read == reads[0] for read in reads)
    yield alike and len(found.repeated), f"{twice} All ranks read the same part. Which part should each one take?"
    seeds = "If ranks have different global seeds (`set_random_seed`), `shuffle(seed=...)` gives them different orders."
    yield len(found.repeated), f"{twice} Do all divide one order? {seeds}"
    counts = f"{' + '.join(str(len(read)) for read in reads)} of {IMAGES_OF_RANKS} samples are read"
    question = "Into how many shares do you divide, and what is cut to which batch?"
    yield len(found.unseen), f"{where}, nobody reads {some(found.unseen)}: {counts}. {question}"
    uncounted = not all(fit["counted"] for fit in fits)
    yield uncounted, "The data set does not know how many steps it has: labs.hvd would refuse to train. Use `shard`."
    steps = [len(fit["batches"]) for fit in fits]
    yield len(set(steps)) > 1, f"{where}, they take {', '.join(map(str, steps))} steps: some would wait for others."
    sizes = {len(step) for fit in fits for step in fit["batches"]}
    takes = (
        f"with --batch_size {LOCAL_BATCH_OF_RANKS * size} on {size} ranks, a rank takes {max(sizes)} samples per step"
    )
    yield sizes != {LOCAL_BATCH_OF_RANKS}, f"The shares are right, but {takes}. What is left for each rank?"
    asked = f"{where}, `--epochs 2` asks `fit` for {several(fits[0]['epochs'], 'epoch')}"
    yield fits[0]["epochs"] != 2, f"{asked}. Leave their number as it is: an epoch reads each sample once."
