"""Questions of 06_horovod_sharding, second half: equal steps, files, and the missing shard (S1)."""

from pathlib import Path

import numpy as np

from labs.checks.judging import NotDone, choice, prediction, question, written
from labs.data.shares import coverage, some

HERE = "06_horovod_sharding"

prediction("06.18", "Epoch time on 2 ranks, as a multiple of the one on 1 rank", HERE)


@question(
    "06.12",
    "50 elements in batches of 4",
    HERE,
    why="Twelve full batches hold 48; the two that remain are a batch, too.",
)
def batches(count, last):
    if (count, last) == (13, 2):
        return None
    if (count, last) == (2, 13):
        return "The two numbers are exchanged: first how many batches, then the samples of the last one."
    if count == 12.5:
        return "There is no half batch: one is smaller than the others."
    if count == 12:
        return "Full batches are counted here. The samples that remain make one more."
    if count == 13:
        return "The number of batches is right. How many samples are left for the last one?"
    return "Divide, round up; then see what the full batches leave for the last one."


@question(
    "06.14",
    "Equal steps for all workers",
    HERE,
    points=2,
    why="Whole global batches only: the same number of full steps for every worker.",
)
def plan(function):
    trials = {(100, 3, 8): (4, 4), (50, 1, 4): (12, 2), (1797, 4, 64): (7, 5), (64, 2, 8): (4, 0)}
    got = {sizes: tuple(float(value) for value in function(*sizes)) for sizes in trials}
    if got == trials:
        return None
    if any(value != int(value) for pair in got.values() for value in pair):
        return "A step is whole, and so is a sample: divide without remainder."
    steps, rest = {k: v[0] for k, v in got.items()}, {k: v[1] for k, v in got.items()}
    if all(steps[k] == -(-k[0] // (k[1] * k[2])) for k in trials):
        return "These steps are rounded up: in the last one some workers would have a partial batch or none."
    if all(steps[k] == k[0] // k[2] for k in trials):
        return "These are the steps of one worker alone. In each step, all workers take a local batch."
    if all(steps[k] == trials[k][0] for k in trials):
        if all(rest[k] == k[0] - steps[k] * k[2] for k in trials):
            return "The steps are right. What is left over counts what all workers read, not one of them."
        return "The steps are right. How many of the n samples are in none of these steps?"
    sizes = next(k for k in trials if got[k] != trials[k])
    return (
        f"For n={sizes[0]} on {sizes[1]} workers with local batch {sizes[2]} your function gives "
        f"{got[sizes][0]:g} steps: how many samples does one step of all workers take?"
    )


choice(
    "06.13",
    "One worker has a step more",
    HERE,
    right="b",
    wrong={
        "a": "An update needs the average over all workers, and the others do not take part in it.",
        "c": "Nothing is checked by Horovod itself: it cannot know that the others are done.",
        "d": "No worker knows what another one is missing; whoever has no batch, takes no step.",
    },
    why="The all-reduce needs every worker; the others have left, so it never ends.",
)


@question(
    "06.15",
    "steps_per_epoch / n with equal generators",
    HERE,
    points=2,
    why="Equal generators give equal batches: both ranks read one half, and nobody the other.",
)
def equal_generators(never, twice):
    if (never, twice) == (500, 500):
        return None
    if (never, twice) == (0, 0):
        return "That would be right if the ranks read different halves. What makes the generator of rank 1 different?"
    if (never, twice) == (250, 250):
        return "That is what different orders would give. Here both generators have one seed."
    if never == 500:
        return "What nobody reads is right. And how many samples do both ranks read?"
    if twice == 500 or twice == 1000:
        return "Each rank takes half of the steps. Which samples are in them, and which in none?"
    return "Both ranks begin the same order at its beginning, and stop after half of the steps."


@question(
    "06.16",
    "Shard the list of files",
    HERE,
    points=3,
    why="Each rank opens and decodes its own files only, and together they read each once.",
)
def folder_share(function, files, reads):
    opened, delivered = [], []
    for rank in range(2):
        reads.reset()
        dataset = function(files, rank, 2)
        if not hasattr(dataset, "as_numpy_iterator"):
            return f"Your function returns a {type(dataset).__name__}: return a tf.data.Dataset of (image, label)."
        elements = list(dataset.as_numpy_iterator())
        if not elements or not isinstance(elements[0], tuple) or len(elements[0]) != 2:
            return "An element must be (image, label): map the given function `read` over the files."
        opened.append(list(reads.opened))
        delivered.append(len(elements))
    places = {file: place for place, file in enumerate(files)}
    shares = [[places.get(file, -1) for file in names] for names in opened]
    found = coverage(shares, len(files))
    if all(len(names) == len(files) for names in opened):
        if sum(delivered) == len(files):
            return (
                f"The shares are right, but each rank opens and decodes all {len(files)} files and then drops half "
                "of them. Where must the shard stand?"
            )
        return f"Each rank reads all {len(files)} files: nothing divides them."
    if not any(opened):
        return "No file was opened: read with the given function `read`, which counts."
    if not found.right:
        return f"Files at the places {some(found.repeated)} are read twice, those at {some(found.unseen)} by nobody."


@question(
    "06.17",
    "More workers than files",
    HERE,
    points=2,
    why="A worker without a file has no batch: it would not take part in any all-reduce.",
)
def idle(count):
    if count == 4:
        return None
    if count == 0:
        return "A file cannot be shared: whoever takes part in `shard` gets whole files. Count the empty shares."
    if count == 8:
        return "Some workers do get a file. How many get none?"
    if count == 2:
        return "That is how many workers there would be for each file. How many of the 8 get none?"
    return "There are 4 files and 8 workers: shard(8, r) of a list of 4."


def _steps(record, name):
    from labs.results.record import Record

    if not isinstance(record, Record):
        raise TypeError(f"{name} is no run record")
    return record.steps, record.configuration.global_batch, record.dataset_images


@question(
    "06.19",
    "Images that all ranks process in an epoch",
    HERE,
    points=3,
    why="On 2 ranks an epoch processes twice the images that exist.",
)
def processed(on_1, on_2, record_1, record_2):
    steps_1, batch_1, images = _steps(record_1, "the first")
    steps_2, batch_2, _ = _steps(record_2, "the second")
    if (on_1, on_2) == (steps_1 * batch_1, steps_2 * batch_2):
        return None
    if (on_1, on_2) == (images, images) or on_1 == on_2:
        return "So many images exist, and an epoch ought to process each once. Do steps and batch in the record agree?"
    if (on_1, on_2) == (steps_1, steps_2):
        return "These are steps. Each of them takes a batch."
    if (on_1, on_2) == (steps_2 * batch_2, steps_1 * batch_1):
        return "The two records are exchanged."
    return "In each step all ranks together process the global batch: two fields of the record, multiplied."


choice(
    "06.20",
    "Why the epoch is not shorter on 2 ranks",
    HERE,
    right="d",
    wrong={
        "a": "Look at the steps in the two records: a slow network makes steps longer, not more of them.",
        "b": "In a step, each rank computes its local batch. Is that one larger on 2 ranks, in your records?",
        "c": "Each rank has a core of its own; with less work for each, the epoch would be shorter.",
    },
    why="Every rank reads all images in its local batches: as many steps as on 1 rank.",
)


@question(
    "06.21",
    "scripts/repaired.py, before it runs: the sample numbers of each rank",
    HERE,
    points=4,
    why="For 1, 2 and 3 ranks, every sample is read once, by one rank, in equal steps.",
)
def repaired(path):
    import ast

    from labs.checks import stage

    path = Path(path)
    if not path.is_file():
        return f"There is no script {path}. Give the path of the one that you repair."
    original = path.with_name("colleague.py")
    if original != path and original.is_file():
        same = ast.dump(ast.parse(path.read_text())) == ast.dump(ast.parse(original.read_text()))
        if same:
            raise NotDone(f"{path.name} does what your colleague's script does. Repair it, save it, run this again.")
    n, local_batch = 48, 4
    for size in (1, 2, 3):
        try:
            by_rank = stage.sample_numbers(path, size, n=n, local_batch=local_batch)
        except stage.RehearsalError as problem:
            return f"{problem}."
        found = coverage([np.concatenate(batches) if batches else [] for batches in by_rank], n)
        reads = [sum(map(len, batches)) for batches in by_rank]
        if size > 1 and all(read == n for read in reads):
            return (
                f"With {size} ranks, each of them still reads all {n} samples: {some(found.repeated)} are read "
                f"{size} times. What does a rank know that the others do not?"
            )
        if len(found.repeated):
            lost = f" and nobody reads {some(found.unseen)}" if len(found.unseen) else ""
            return f"With {size} ranks, {some(found.repeated)} are read more than once{lost}. Do all divide one order?"
        if len(found.unseen):
            return f"With {size} rank(s), nobody reads {some(found.unseen)}. Into how many shares do you divide?"
        if len(set(map(len, by_rank))) > 1:
            return f"With {size} ranks, they take {', '.join(str(len(b)) for b in by_rank)} steps: some wait for ever."
        sizes = {len(batch) for batches in by_rank for batch in batches}
        if sizes != {local_batch}:
            return (
                f"The shares are right, but with --batch_size {size * local_batch} on {size} ranks, a rank takes "
                f"{max(sizes)} samples per step. What is left for each rank?"
            )


@question("06.22", "The repaired script's record", HERE, points=2, why="Half the steps, and every image once.")
def repaired_record(before, after):
    (steps_1, _, images), (steps_2, batch_2, _) = _steps(before, "before"), _steps(after, "after")
    ranks = before.configuration.workers, after.configuration.workers
    if ranks[0] != ranks[1]:
        return f"The runs had {ranks[0]} and {ranks[1]} ranks: compare two on as many."
    if after.state != "finished":
        return "The repaired script did not run to its end: look into its .err."
    if steps_2 == steps_1:
        return f"Both records have {steps_1} steps in an epoch. Was the repaired script saved before it ran?"
    if not images - batch_2 < steps_2 * batch_2 <= images:
        return f"{steps_2} steps of {batch_2} images are {steps_2 * batch_2}, but there are {images} images."


written("S1", "How to shard, and how to know that it is right", HERE, points=3)
