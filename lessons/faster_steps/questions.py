"""Questions of 24_faster_steps."""

import itertools
import time

import numpy as np

from labs.checks.judging import TooNoisy, judges
from labs.checks.student_code import tried
from lessons.forms import value
from lessons.sharding import coverage, no_dataset, sentence

HINTS = {
    "input": "its core works hard for a batch of 64, yet does few of the network's operations, and it never pauses.",
    "exchange": "both cores are busy, yet do few operations. Over MPI, two ranks that only wait use one core together.",
    "validation": "its number of images grows like a staircase. What does the core compute while it is level?",
    "computation": "its core is busy all the time, and it does the highest share of the operations that it could do.",
    "slow rank": "a rank that waits over Gloo sleeps. Mostly neither core is in use: which rank pauses, which waits?",
    "small batch": "its core is busy and there is no other rank, yet it does few operations. What does any step cost?",
}


@judges("faster.2")
def limits(named):
    from lessons.faster_steps import limited

    yield not isinstance(named, dict), 'Give a dict: {"A": "...", "B": "...", ...}, with a word for each letter.'
    named = {str(case).strip().upper(): str(word).strip().lower() for case, word in named.items()}
    for case, setting in limited.SETTINGS.items():
        yield case not in named, f"There is no word for {case}."
        word = named[case]
        yield word not in HINTS, f"{case} is {word!r}, which is not one of {', '.join(HINTS)}."
        yield word != setting.limit, f"{case}, which you call {word!r}: {HINTS[setting.limit]}"


def _convolutions(rows, key="share"):
    return sum(row[key] for row in rows if "Conv2D" in row["operation"])


value(
    "faster.8",
    right=lambda rows: _convolutions(rows),
    wrong=[
        (lambda rows: _convolutions(rows, "seconds"), "These are seconds. What share of the time of all rows is it?"),
        (lambda rows: sum(row["share"] for row in rows), "These are all the rows. Which of them are convolutions?"),
        (lambda rows: 1 - _convolutions(rows), "This is the share of all the other operations."),
        (lambda rows: _convolutions(rows[:1]), "This is one row. Which other rows are convolutions?"),
    ],
    otherwise="Add up the shares of all the rows with Conv2D in their name: the forward pass and the two gradients.",
    tolerance=0.01,
)


# Input pipelines: tried with files that count who reads them

FILES, SIDE, PAUSE = 26, 8, 0.02
BATCHES = 13, 8  # the second leaves a rest of the files


class Probe:
    """The arguments of a pipeline: a `read` and a `small` that count their calls."""

    def __init__(self):
        self.files = [str(number) for number in range(FILES)]
        self.reading = self.most = self.read_in_all = 0
        self.made_small = []  # the dimensions of what `small` got: 3 are one image, 4 a batch

    def read(self, file):
        """(image uint8 8 x 8 x 3 of the file's number, the number)."""
        import tensorflow as tf

        def load(name):
            number = self.files.index(name.decode())
            self.reading += 1
            self.most = max(self.most, self.reading)
            self.read_in_all += 1
            time.sleep(PAUSE)
            self.reading -= 1
            return np.full((SIDE, SIDE, 3), number, np.uint8), np.int64(number)

        image, label = tf.numpy_function(load, [tf.ensure_shape(file, ())], (tf.uint8, tf.int64))
        return tf.ensure_shape(image, (SIDE, SIDE, 3)), tf.ensure_shape(label, ())

    def small(self, images):
        import tensorflow as tf

        def every_second(given):
            self.made_small.append(given.ndim)
            return given[..., ::2, ::2, :]

        return tf.ensure_shape(tf.numpy_function(every_second, [images], images.dtype), images[..., ::2, ::2, :].shape)


NOT_READ = "None of the given files was read. Use the arguments `files` and `read`, not `feeding.read`."


def _tried(function, batch):
    """(Probe, what a pipeline returns, the labels of its first epoch); yields the cases in which it does not give full
    batches of small images, each file once, read in parallel."""
    import tensorflow as tf

    probe = Probe()
    try:
        with tried(f"{FILES} files and batch {batch}"):
            made = function(probe.files, lambda file: probe.read(file), lambda images: probe.small(images), batch)
            yield from no_dataset(made)
            epoch = list(made.take(2 * FILES).as_numpy_iterator())
    except TypeError as problem:
        yield "<lambda>() takes" in str(problem), "`map` passes an image and its label: take both, and return both."
        raise
    except tf.errors.OpError:  # `feeding.read` found no such file, or `read` no number in another name
        yield not probe.read_in_all, NOT_READ
        raise
    yield not probe.read_in_all, NOT_READ
    yield len(epoch) == 2 * FILES, "The pipeline never ends. An epoch contains each file once."
    shapes = [[np.shape(part) for part in tf.nest.flatten(element)] for element in epoch]
    wanted, rest = [(batch, SIDE // 2, SIDE // 2, 3), (batch,)], FILES % batch
    yield shapes and shapes[-1][-1] == (rest,), f"The last batch has only {rest} images. What does `starving` do?"
    other = next((shape for shape in shapes if shape != wanted), wanted)
    yield other != wanted, f"For a `batch` of {batch}, an element has the shapes {other}: {wanted} are asked for."
    labels = _labels(epoch)
    count, files = sum(map(len, labels)), len(set(itertools.chain(*labels)))
    yield not count == files == FILES - rest, f"An epoch has {count} images, from {files} of the {FILES} files."
    kept = all((images == labels[:, None, None, None]).all() for images, labels in epoch)
    yield not kept, "The images are not as `small` returns them, or no longer belong to their labels."
    again = f"One epoch reads {probe.read_in_all} files, but there are only {FILES}: reading each once is enough."
    yield probe.read_in_all >= 2 * FILES, again
    yield probe.most < 2, "No two files were read at the same time. Which argument of `map` changes that?"
    return probe, made, labels


def _labels(epoch):
    """The labels of its batches."""
    return tuple(tuple(map(int, labels)) for _, labels in epoch)


@judges("faster.5")
def parallel(function):
    for batch in BATCHES:
        probe, _, _ = yield from _tried(function, batch)
        yield 4 in probe.made_small, "`small` gets whole batches. Here, still resize each image separately."


@judges("faster.9")
def by_batch(function):
    for batch in BATCHES:
        probe, _, _ = yield from _tried(function, batch)
        yield 3 in probe.made_small, "`small` gets single images. After which stage does it get whole batches?"


@judges("faster.6")
def fed(function):
    for batch in BATCHES:
        probe, made, first = yield from _tried(function, batch)
    read, small = probe.read_in_all, len(probe.made_small)
    epochs = [first, *(_labels(made.as_numpy_iterator()) for _ in range(6))]
    yield probe.read_in_all > read, "Later epochs read the files again. Which stage keeps what it gets, and where?"
    yield len(probe.made_small) > small, "Later epochs make the images small again. Which ones do you keep?"
    yield len(set(epochs)) == 1, "All epochs have the same order. Is there a `shuffle`, and after the images are kept?"
    together = {frozenset(map(frozenset, epoch)) for epoch in epochs}
    yield len(together) == 1, "All epochs have the same batches, in a different order: shuffle images, not batches."
    early = max(number - place for epoch in epochs for place, number in enumerate(itertools.chain(*epoch)))
    yield early < FILES // 2, f"Images move up by at most {early} of {FILES} places. How many does `shuffle` hold?"
    while "Options" in type(made).__name__:  # no stage
        (made,) = made._inputs()
    ahead = "Prefetch" in type(made).__name__
    yield not ahead, "No batch is ready ahead of time: your last stage makes one only when asked for it."


def _task(run):
    """What must not change in the closing task."""
    task = {"data set": run.configuration.dataset, "image size": run.configuration.image_size}
    return task | {"number of images": run.dataset_images, "network": run.observed.get("parameters")}


@judges("faster.7")
def ladder(steps, gains):
    """steps: {name: run}; gains: {name: (how many times as fast as given, its interval, or None of recorded runs)}."""
    yield len(steps) < 3, f"You have {len(steps)} of three runs: the given script's, and one after each of two changes."
    given, first = next(iter(steps.items()))
    for (before, old), (name, new) in itertools.pairwise(steps.items()):
        yield new.state != "finished" or len(new.epochs) < 2, f"{name!r} did not finish, or has only one epoch."
        same = (old.script_sha256, old.command[1:]) == (new.script_sha256, new.command[1:])
        yield same, f"{name!r} is the same program with the same options as {before!r}. What did you change?"
        others = [what for what, own in _task(new).items() if own != _task(first)[what]]
        yield others, f"{name!r} has another {' and '.join(others)} than {given!r}."
    accuracy = {name: run.epochs[-1].metrics.get("val_accuracy") for name, run in steps.items()}
    yield None in accuracy.values(), "A run has no val_accuracy. On which images would you compare the accuracy?"
    equal = [name for name in gains if accuracy[name] >= accuracy[given] - 0.03]  # False for NaN
    fast = {name: gains[name] for name in equal if gains[name][0] >= 2}
    yield any(interval is None or interval[0] >= 2 for _, interval in fast.values()), None
    best = max(fast or gains, key=lambda name: gains[name][0])
    gain, interval = gains[best]
    times = f"{best!r} is {gain:.3g} times as fast as the given script"
    if fast:
        low, high = interval
        raise TooNoisy(f"{times}, but its interval is {low:.3g} to {high:.3g}. Is the machine quiet?")
    yield gain < 2, f"Your fastest run: {times}, less than twice. What limits it now?"
    learns = f"its accuracy is {accuracy[best]:.3f} instead of {accuracy[given]:.3f}"
    yield True, f"{times}, but {learns}. How must the rate, or the number of epochs, change with a larger batch?"


@judges("faster.11")
def folder_share(function, files, reads):
    places, count = {file: place for place, file in enumerate(files)}, len(files)
    for size in (2, 3):
        shares = []
        for rank in range(size):
            reads.reset()
            with tried(f"rank {rank} of {size}"):
                dataset = function(list(files), rank, size)
            yield from no_dataset(dataset)
            elements = list(dataset.take(count + 1).as_numpy_iterator())
            yield len(elements) > count, "The share has no end. One pass over it must be one epoch."
            single = all(isinstance(each, tuple) and len(each) == 2 and np.ndim(each[1]) == 0 for each in elements)
            yield not single, "An element must be one image and its label: map `read_png`, and leave out `batch`."
            shares.append([places.get(file, -1) for file in reads.opened])
        yield not all(shares), f"One of {size} ranks opens none of the files. Does `read_png` read its share?"
        found = coverage(shares, count)
        yield not found.right, f"Files opened by {size} ranks: {sentence(found, count)} Where does the shard belong?"
        blocks = all(max(share) - min(share) + 1 == len(share) for share in shares)
        yield blocks, "Each rank takes a block of the sorted files, so it sees few classes. Take files from everywhere."
