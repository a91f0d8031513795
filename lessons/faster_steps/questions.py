"""Judges of 24_faster_steps."""

import re
import time

import numpy as np

from labs.checks.judging import TooNoisy, judges
from labs.checks.reading import PER_CENT, close, near
from labs.checks.student_code import tried
from labs.printed import an
from lessons.scripts import sentence
from lessons.sharding import coverage, some


@judges("faster.8")
def share_of_peak(share, watched):
    yield _no_number(share), "Give one number, from 0 to 1."
    shares = [
        rank.images_per_second * rank.about["operations_of_an_image"] / rank.about["most_operations_per_second"]
        for rank in watched
    ]
    rank, wanted = watched[0], shares[0]
    yield close(share, wanted, 0.02), None
    yield near(share, float(f"{wanted:.1g}"), 1e-9), "This is rounded to one digit. Give two significant digits."
    yield near(share, 100 * wanted, 0.02), PER_CENT
    yield (
        near(share, 1000 * wanted, 0.02),
        "The table has millions and billions: divide by another 1000, or take both numbers from `slow[0].about`.",
    )
    yield near(share, wanted / 3, 0.02), "This counts only the forward pass: how many passes does a training step take?"
    twice = "A multiply-add is two operations, and `operations_of_an_image` counts both."
    yield (
        len(shares) > 1 and near(share, sum(shares), 0.02),
        "This is the sum over the ranks. Give the share of rank 0." + f" {twice}" * near(share, 2 * wanted, 0.02),
    )
    yield (
        any(near(share, other, 0.02) for other in shares[1:]),
        "This is the share of another rank. Which element of `slow` is rank 0?",
    )
    yield near(share, 2 * wanted, 0.02), twice
    yield near(share, rank.mean("cores"), 0.02), "This is how busy the core is. How many operations did it complete?"
    yield near(1 / share if share else 0, wanted, 0.02), "Turn the fraction over: divide what was done by the most."
    yield (
        True,
        "Multiply the images per second by the operations of one image, and divide by the most operations per second: "
        "see `slow[0]`.",
    )


def _no_number(value):
    return not isinstance(value, int | float | np.number)


HINTS = {
    "input": "its core works hard for a batch of 64, yet does few of the network's operations. Its number of "
    "images grows evenly, so nothing interrupts it now and then",
    "exchange": "two ranks over MPI, both fully busy, yet they do only a small share of the operations. Over MPI, "
    "two ranks that only wait keep about one core busy together. What keeps both cores busy all the time?",
    "validation": "its number of images grows like a staircase. What does the core compute while it is level?",
    "computation": "its core is busy all the time, and it does the highest share of the operations that it could do",
    "slow rank": "two ranks over Gloo, where a waiting rank sleeps. Most of the time, neither core is in use, but "
    "sending messages would need a core. Which rank pauses, and which one waits?",
    "small batch": "its core is busy and there is no other rank, yet it does few operations. What does a step cost "
    "if it has next to nothing to compute?",
}


@judges("faster.2")
def limits(named):
    from lessons.faster_steps import limited

    yield (
        not isinstance(named, dict) or not named,
        'Give a dict: {"A": "...", "B": "...", ...}, with a word for each letter.',
    )
    named = {str(case).strip().upper(): str(word).strip().lower() for case, word in named.items()}
    for case in limited.CASES:
        yield case not in named, f"There is no answer for run {case} yet."
        word = named[case]
        yield word not in limited.LIMITS, f"{case}: {word!r} is not one of {', '.join(sorted(limited.LIMITS))}."
    if len(set(named.values())) < len(limited.CASES):
        twice = next(word for word in named.values() if list(named.values()).count(word) > 1)
        yield True, f"You named {twice!r} more than once, but each of the six has a limit of its own."
    for case in limited.CASES:
        right = limited.SETTINGS[case].limit
        yield named[case] != right, sentence(f"{case}, which you call {named[case]!r}: {HINTS[right]}")


@judges("faster.9")
def convolutions(share, rows):
    yield _no_number(share), "Give one number, from 0 to 1."
    of_10_3 = any("run" in row for row in rows)
    yield (
        of_10_3,
        "`rows` is still the table above 10.3. Run the profile first (the two cells above), then this cell again.",
    )
    taken = [row for row in rows if "Conv2D" in row["operation"]]
    wanted = sum(row["share"] for row in taken)
    yield close(share, wanted, 0.01), None
    yield near(share, 100 * wanted), PER_CENT
    yield near(share, sum(row["seconds"] for row in taken)), "These are seconds. What share of all operations is it?"
    yield any(near(share, row["share"]) for row in taken), "This is one row. Which other rows are convolutions?"
    yield near(share, 1 - wanted), "This is the share of all the other operations."
    yield True, "Add up the shares of all the rows with Conv2D in their name: the forward pass and the two gradients."


# Input pipelines: tried with files that count who reads them

FILES, SIDE, PAUSE = 26, 8, 0.02
BATCH, OTHER_BATCH = 8, 13  # the first leaves a rest of the files, the second takes all


class Probe:
    """What a pipeline does: a `read` and a `small` that count their calls."""

    def __init__(self):
        self.files = [str(number) for number in range(FILES)]
        self.reading = self.most = self.read_in_all = self.small_in_all = 0
        self.ranks = set()  # of what `small` got: 3 is one image, 4 a batch
        self.other_files = False  # whether it read one that is not in `files`

    def read(self, file):
        """(image uint8 8 x 8 x 3 of the file's number, the number)."""
        import tensorflow as tf

        if tf.convert_to_tensor(file).shape.rank:  # its rank is None, unknown, in some data sets
            raise ValueError("`read` takes the name of one file, but got several.")

        def load(name):
            self.other_files |= name.decode() not in self.files
            self.reading += 1
            self.most = max(self.most, self.reading)
            self.read_in_all += 1
            time.sleep(PAUSE)
            self.reading -= 1
            return np.full((SIDE, SIDE, 3), int(name), np.uint8), np.int64(name)

        image, label = tf.numpy_function(load, [file], (tf.uint8, tf.int64))
        return tf.ensure_shape(image, (SIDE, SIDE, 3)), tf.ensure_shape(label, ())

    def small(self, images):
        import tensorflow as tf

        self.ranks.add(len(images.shape))
        made = images[..., ::2, ::2, :]

        def count(given):
            self.small_in_all += 1
            return given

        return tf.ensure_shape(tf.numpy_function(count, [made], made.dtype), made.shape)


def _tried(function, batch=BATCH):
    """(Probe, what the function returns, its first epoch as [(images, labels)], empty unless it is a dataset).

    Yields a case where it reads in its own way.
    """
    import tensorflow as tf

    probe = Probe()
    try:
        with tried(f"{FILES} files and batch {batch}"):
            made = function(probe.files, probe.read, probe.small, batch)
            epoch = []
            if isinstance(made, tf.data.Dataset):
                epoch = list(made.take(2 * FILES).as_numpy_iterator())
    except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError):  # whichever operation of `feeding.read` is first
        yield not probe.read_in_all, _NOT_READ
        yield probe.other_files, "A file was read that is not in the argument `files`. Which name holds your files?"
        raise
    except TypeError as problem:
        one = re.search(r"(small|<lambda>)\(\) takes (\d) positional arguments? but (\d) were given", str(problem))
        yield (
            one and int(one[3]) == int(one[2]) + 1,
            "`map` calls its function with one argument too many for it: an element is a pair (image, label), so write "
            "a lambda that takes both and returns both.",
        )
        raise
    yield epoch and not probe.read_in_all, _NOT_READ
    return probe, made, epoch


_NOT_READ = "No file was read with the argument `read`. Do you call `feeding.read` instead?"


def _not_the_batches(made, epoch):
    """Cases of a pipeline whose batches are not those of all files, each once."""
    import tensorflow as tf

    kind = an(type(made).__name__)
    yield not isinstance(made, tf.data.Dataset), f"Your function returns {kind}, not a tf.data.Dataset."
    pairs = all(isinstance(each, tuple) and len(each) == 2 for each in epoch)
    yield not pairs, "Each element must be a pair: images and labels."
    yield len(epoch) >= 2 * FILES, "The pipeline never ends. An epoch contains each file once."
    exchanged = epoch and all(np.ndim(images) == 1 and np.ndim(labels) == 4 for images, labels in epoch)
    yield exchanged, "The labels come first, and then the images: the network expects images and labels."
    flat = all(np.ndim(labels) == 1 for _, labels in epoch)
    yield not flat, "The labels are not a batch: call `batch` exactly once."
    labels = [int(label) for _, batch in epoch for label in batch]
    yield len(set(labels)) < len(labels), "A file appears twice in one epoch."
    yield from _other_sizes(epoch, BATCH)
    for images, batch in epoch:
        yield images.shape[1:] == (SIDE // 4, SIDE // 4, 3), "Each image is made small twice."
        yield (
            images.shape[1:] != (SIDE // 2, SIDE // 2, 3),
            f"The images have the shape {images.shape[1:]}: are they small?",
        )
        other = (images != batch[:, None, None, None]).any() and images.dtype != np.uint8
        yield other, f"The images are {images.dtype}, with different values. Leave them as `small` returns them."
        yield (images != batch[:, None, None, None]).any(), "The labels no longer belong to their images."


def _other_sizes(epoch, batch):
    sizes, rest = {len(labels) for _, labels in epoch}, FILES % batch
    given = " or ".join(map(str, sorted(sizes)))
    yield sizes != {batch} and sizes != {batch, rest}, f"The batches have {given} images; `batch` is {batch}."
    count = sum(len(labels) for _, labels in epoch)
    yield count < FILES - rest, f"With a `batch` of {batch}, an epoch contains {count} of the {FILES} files."


def _fixed_batch(function, epoch):
    """Cases of a pipeline with a rest in its first epoch, or whose batches do not follow its argument."""
    least = min(len(labels) for _, labels in epoch)
    yield (
        least < BATCH,
        f"With {FILES} files, the last batch has only {least} images, for a `batch` of {BATCH}. `starving` leaves such "
        "a batch out: which argument of its last stage does that?",
    )
    _, _, epoch = yield from _tried(function, OTHER_BATCH)
    yield from _other_sizes(epoch, OTHER_BATCH)


def _read_otherwise(probe):
    """Yields the cases in which a pipeline never reads two files at once, or reads a file more than once per epoch."""
    yield (
        probe.read_in_all >= 2 * FILES,
        f"One epoch reads {probe.read_in_all} files, but there are only {FILES}: reading each once is enough.",
    )
    yield probe.most < 2, "No two files were read at the same time. Which argument of `map` changes that?"


@judges("faster.5")
def parallel(function):
    probe, made, epoch = yield from _tried(function)
    yield from _not_the_batches(made, epoch)
    yield from _read_otherwise(probe)
    yield probe.ranks == {4}, "`small` gets whole batches. Here, still resize each image separately."
    yield from _fixed_batch(function, epoch)


@judges("faster.10")
def by_batch(function):
    probe, made, epoch = yield from _tried(function)
    yield from _not_the_batches(made, epoch)
    yield probe.ranks == {3}, "`small` gets single images. It takes whole batches, too: after which stage must it come?"
    yield probe.ranks != {4}, "You call `small` on single images and on batches: once is enough."
    yield from _read_otherwise(probe)
    yield from _fixed_batch(function, epoch)


@judges("faster.6")
def fed(function):
    import tensorflow as tf

    probe, made, epoch = yield from _tried(function)
    yield from _not_the_batches(made, epoch)
    yield from _read_otherwise(probe)
    first, small = probe.read_in_all, probe.small_in_all
    again = list(made.as_numpy_iterator())
    yield (
        probe.read_in_all > first,
        f"The second epoch read {probe.read_in_all - first} files again. Which stage keeps what it gets, and what "
        "must come before it?",
    )
    yield (
        probe.small_in_all > small,
        "The second epoch made the images small again: you keep the large ones, which take up 64 times as much "
        "memory. Which stage must come before the one that keeps?",
    )
    more = [list(made.as_numpy_iterator()) for _ in range(5)]  # a few batches may come in one order twice by chance
    epochs = [epoch, again, *more]
    labels = [[label for _, batch in each for label in batch] for each in epochs]
    in_order = all(each == sorted(each) for each in labels)
    yield in_order, "Every epoch has the images in the order of the files: no stage shuffles."
    alike = all(each == labels[0] for each in labels)
    yield alike, "All epochs have the same order: do you shuffle before the images are kept?"
    together = [{frozenset(map(int, batch)) for _, batch in each} for each in epochs]
    same = all(each == together[0] for each in together)
    yield same, "All epochs have the same batches, in a different order: shuffle images, not batches."
    early = max(number - place for each in labels for place, number in enumerate(map(int, each)))
    moved = f"The order changes, but each of the {FILES} images moves forward by at most {early} places."
    yield early < FILES // 2, f"{moved} How many must the buffer of `shuffle` hold to mix all of them?"
    yield from _fixed_batch(function, epoch)
    some = tf.data.Dataset.range(1)
    while isinstance(made, type(some.with_options(tf.data.Options()))):  # options are not a stage
        (made,) = made._inputs()
    ahead = isinstance(made, type(some.prefetch(1)))
    yield not ahead, "No batch is ready ahead of time: your last stage makes one only when asked for it."


@judges("faster.7")
def ladder(steps, gains=None):
    """gains: {name: (how many times as fast as given, its interval)}, measured in turns; without it the speeds of the
    runs decide."""
    from labs.results.run import Run

    right_kind = isinstance(steps, dict) and all(isinstance(run, Run) for run in steps.values())
    yield not right_kind or not steps, "Give {name of the change: run record}, as the cell above collects them."
    yield (
        len(steps) < 3,
        f"Runs so far: {len(steps)}. You need three or more: the given script's, and one after each change.",
    )
    for name, run in steps.items():
        yield run.state != "finished" or len(run.epochs) < 2, f"{name!r} did not finish, or has only one epoch."
    (given, first), *others = steps.items()
    for (before, old), (name, new) in zip([(given, first), *others], others, strict=False):
        same = (old.script_sha256, old.command[1:]) == (new.script_sha256, new.command[1:])
        yield same, f"{name!r} is the same program with the same options as {before!r}. What did you change?"
        for what in ("dataset", "image_size"):
            one, other = (getattr(run.configuration, what) for run in (first, new))
            yield one != other, f"{name!r} trains with a different {what} from {given!r}: {other} and {one}."
        yield new.dataset_images != first.dataset_images, f"{name!r} has a different number of images from {given!r}."
        parameters = [run.observed.get("parameters") for run in (first, new)]
        yield parameters[0] != parameters[1], f"{name!r} trains a different network from {given!r}."
    accuracy = {name: run.epochs[-1].metrics.get("val_accuracy") for name, run in steps.items()}
    yield None in accuracy.values(), "A run has no val_accuracy. On which images would you compare the accuracy?"
    found = {name: (gains or {}).get(name) or (speed(run) / speed(first), None) for name, run in others}
    equal = [name for name in found if accuracy[name] >= accuracy[given] - 0.03]  # False for NaN
    fast = sorted((name for name in equal if found[name][0] >= 2), key=lambda name: -found[name][0])
    yield any(found[name][1] is None or found[name][1][0] >= 2 for name in fast), None
    best = (fast or sorted(found, key=lambda name: -found[name][0]))[0]
    gain, interval = found[best]
    if fast:
        low, high = interval
        raise TooNoisy(
            f"{best!r} is {gain:.3g} times as fast as the given script, with an interval of {low:.3g} to {high:.3g}. "
            "So you cannot tell whether it is twice as fast. Run it again on a quiet machine, or make it faster."
        )
    times = f"Your fastest run, {best!r}, is {gain:.4g} times as fast as the given script"
    yield gain < 2, f"{times}, which is less than twice. What limits it now?"
    learns = f"its accuracy is {accuracy[best]:.3f} instead of {accuracy[given]:.3f}"
    yield True, f"{times}, but {learns}. How must the rate, or the number of epochs, change with a larger batch?"


def speed(run):
    """Images/s of a run record, without its first epoch."""
    epochs = run.epochs[1:]
    return sum(epoch.images for epoch in epochs) / sum(epoch.seconds for epoch in epochs)


@judges("faster.12")
def folder_share(function, files, reads):
    for size in (2, 3):
        shares, delivered = [], 0
        for rank in range(size):
            reads.reset()
            try:
                with tried(f"rank {rank} of {size}"):
                    dataset = function(list(files), rank, size)
            except AttributeError as problem:
                yield (
                    "'str' object has no attribute 'dtype'" in str(problem),
                    "`read_png` gets a path as a Python str. Make a tf.data.Dataset of the paths, then map.",
                )
                raise
            yield (
                not hasattr(dataset, "as_numpy_iterator"),
                f"Your function returns {an(type(dataset).__name__)}: return a tf.data.Dataset of (image, label).",
            )
            elements = list(dataset.take(len(files) + 1).as_numpy_iterator())
            yield (
                not elements or not isinstance(elements[0], tuple) or len(elements[0]) != 2,
                "An element must be (image, label): map the given function `read_png` over the files.",
            )
            for count in np.shape(elements[0][1]):
                yield True, f"An element contains {count} labels. Return single samples: batching comes later."
            yield (
                len(elements) > len(files),
                "The share has no end. One pass over it must be one epoch, so leave out `repeat`.",
            )
            places = {file: place for place, file in enumerate(files)}
            shares.append([places.get(file, -1) for file in reads.opened])
            delivered += len(elements)
        found = coverage(shares, len(files))
        if all(len(share) == len(files) for share in shares):
            waste = f"each of the {size} ranks opens and decodes all {len(files)} files and then drops most of them"
            yield delivered == len(files), f"The shares are right, but {waste}. Where does the shard belong?"
            yield True, f"Each rank reads all {len(files)} files: nothing divides them."
        yield not any(shares), "No file was opened: read the files with the given `read_png`, which counts them."
        if not found.right:
            twice, never = some(found.repeated), some(found.unseen)
            yield (
                True,
                f"With {size} ranks, the files at positions {twice} are read twice, and those at {never} by nobody.",
            )
        yield (
            all(max(share) - min(share) + 1 == len(share) for share in shares),
            "Each rank takes one block of the sorted files, so it sees few classes. Take files from everywhere.",
        )


@judges("faster.14")
def idle(count):
    yield count == 4, None
    yield count == 0, "`shard` hands out whole files, so two workers cannot share one. Count the empty shares."
    yield count == 8, "Some workers do get a file. How many get none?"
    yield count == 2, "This is the number of workers for each file. How many of the 8 workers get none?"
    yield True, "There are 4 files and 8 workers. What is left of a list of 4 after shard(8, r)?"
