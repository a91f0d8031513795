# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Sharding: every sample once
#
# **Time: 50 minutes, of which 4 minutes on 2 cores are computing.**
#
# Several workers train one network. In each epoch, every sample should be read by exactly one of them. A program that gets this
# wrong shows no error: its loss falls, and only its time does not. You learn to divide the samples and to *count* whether it is
# right, and you repair a colleague's script.

# %%
from labs import data, devices, jobs, presets  # first: it silences TensorFlow's start-up messages
from labs.checks import answered, check, outcome, predict
from labs.data import formats
from labs.data import shares as sharding
from labs.lessons.nb06 import pictures
from labs.results import record as run_record
from labs.show import plots, tables, widgets

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")

# %% [markdown]
# ## 1 to 100, by hand
#
# The samples have the numbers 1 to 100. Two workers: each takes every second number, worker 0 from the first on,
# worker 1 from the second on. Write both lists, with Python's slices.

# %% labs={"id": "06.1"}
numbers = list(range(1, 101))
### BEGIN SOLUTION
of_worker_0 = numbers[0::2]
of_worker_1 = numbers[1::2]
### END SOLUTION
check("06.1", of_worker_0, of_worker_1)

# %% [markdown]
# Now three workers, each takes every third number. How many does each get? Give a list of three.

# %% labs={"id": "06.2"}
### BEGIN SOLUTION
sizes_of_3 = [34, 33, 33]
### END SOLUTION
check("06.2", sizes_of_3)

# %% [markdown]
# The shares are *uneven*. Keep that in mind: it will matter.
#
# ## The same with tf.data
#
# A `tf.data.Dataset` has the method `.shard(num_shards, index)`: it keeps the elements at the places `index`,
# `index + num_shards`, and so on. Write the share of one **rank** (a worker's number, from 0 on) out of `size` workers.


# %% labs={"id": "06.3"}
def shard_of(numbers, rank, size):
    """numbers: a tf.data.Dataset; returns the tf.data.Dataset of this rank's share."""
    ### BEGIN SOLUTION
    return numbers.shard(size, rank)
    ### END SOLUTION


check("06.3", shard_of)

# %%
if answered("06.3"):
    for rank in range(3):
        share = list(shard_of(tf.data.Dataset.range(1, 101), rank, 3).as_numpy_iterator())
        print(f"rank {rank} of 3: {len(share)} samples: {sharding.some(share, 6)}")

# %% [markdown]
# ## Which order of operations?
#
# Real data lie in an order. An image folder has all images of class 0 first, then all of class 1. Here are 480 digits,
# sorted in this way:

# %%
dataset = data.load("digits", images=480)
by_class = np.argsort(dataset.labels, kind="stable")
source = data.Dataset("sorted digits", dataset.images[by_class], dataset.labels[by_class], dataset.classes)
n, batch = len(source.labels), 16
print(source.labels[:3], "...", source.labels[-3:])

# %% [markdown]
# Four ways to give two workers their batches of 16:
#
# - **a**: each worker takes one half of the files, in their order; batch
# - **b**: `shard`, batch
# - **c**: `shard`, then shuffle the share with a seed of the worker's own, batch
# - **d**: shuffle everything with one common seed, then `shard`, batch
#
# **Predict:** in which of them is each single batch of a worker a fair sample of the ten classes? (Not what both workers read in
# a step together, nor what one reads in the whole epoch.) Write the letters, such as `"ab"`.

# %% labs={"id": "06.4"}
### BEGIN SOLUTION
fair_orders = "cd"
### END SOLUTION
predict("06.4", fair_orders)

# %% [markdown]
# A picture of all four. Each column is one batch, each row a class; the colour says how many samples of the class the
# batch holds. Above each, the *distance* from the mix of all samples: 0 is the same mix, 0.9 is one class out of ten.

# %%
orders = dict(zip("abcd", sharding.ORDERS))
cases = {f"{letter}: {order}": sharding.shares(n, 2, order) for letter, order in orders.items()}
plots.show(pictures.balance(source.labels, cases, batch=batch))
counted = {title[0]: sharding.class_counts(share, source.labels, batch, classes=10) for title, share in cases.items()}
fair_ones = [letter for letter, counts in counted.items() if (counts > 0).sum(-1).mean() > 5]  # classes of a batch
outcome("06.4", fair_ones, how="counted")

# %% [markdown]
# Even a fair batch of 16 is not at distance 0: it is a random sample of ten classes.
#
# Now count it yourself. `counts` has three axes: worker, batch, class. For worker 0, how many classes does its whole
# epoch hold, and how many does one of its batches hold on average?


# %% labs={"id": "06.5"}
def classes(counts):
    """(classes in the epoch of worker 0, mean number of classes in one of its batches)"""
    ### BEGIN SOLUTION
    return (counts[0].sum(0) > 0).sum(), (counts[0] > 0).sum(1).mean()
    ### END SOLUTION


check("06.5", classes)

# %%
if answered("06.5"):
    rows = []
    for title, share in cases.items():
        epoch, one = classes(sharding.class_counts(share, source.labels, batch, classes=10))
        rows.append({"order": title, "classes of worker 0": int(epoch), "classes per batch (mean)": float(one)})
    tables.show(rows)

# %% [markdown]
# What is wrong with **b**, shard and batch from a sorted source?
#
# - **a**: the workers see different classes
# - **b**: some samples are read by both workers
# - **c**: each worker sees all classes, but in each step all workers see nearly one class only
# - **d**: nothing, each worker has a fair sample

# %% labs={"id": "06.6"}
### BEGIN SOLUTION
wrong_with_b = "c"
### END SOLUTION
check("06.6", wrong_with_b)

# %% [markdown]
# Try it out: more workers, other batches, a source that is *not* sorted. Tab moves between the controls, arrow keys
# move a control. Which orders need no shuffled source? Which one leaves samples unread?

# %%
widgets.explore(
    pictures.explorer(source.labels),
    workers=(2, 4),
    batch=(8, 64, 8),
    order=list(sharding.ORDERS),
    source=["sorted by class", "shuffled once"],
)

# %% [markdown]
# ## The seed trap
#
# One order of the sliders left samples unread. It is a common one: `shuffle`, then `shard`. Each worker is a process
# of its own and runs this:

# %%
n = 1000


def samples(worker, workers, seed):
    """What one worker reads: the tf.data.Dataset of its sample numbers."""
    return tf.data.Dataset.range(n).shuffle(n, seed=seed).shard(workers, worker)


# %% [markdown]
# Two workers, and nobody thought of the seed: each process draws its own order. **Predict:** which share of the 1000
# samples is read by nobody? A number from 0 to 1.

# %% labs={"id": "06.7"}
### BEGIN SOLUTION
unread_share = 0.25
### END SOLUTION
predict("06.7", unread_share)

# %% [markdown]
# Do not believe, count. `reads` holds one list of sample numbers for each worker. How many of the samples 0 to n-1 are
# in none of them?


# %% labs={"id": "06.8"}
def never_read(reads, n):
    ### BEGIN SOLUTION
    return n - len(set().union(*reads))
    ### END SOLUTION


check("06.8", never_read)

# %%
if answered("06.8"):
    for seeds in ((10, 11), (10, 10)):
        reads = [list(samples(worker, 2, seed).as_numpy_iterator()) for worker, seed in enumerate(seeds)]
        print(f"seeds {seeds}: {never_read(reads, n)} of {n} samples are read by nobody")
        if seeds == (10, 11):
            outcome("06.7", never_read(reads, n) / n, how="counted")

# %% [markdown]
# Why this number? Each worker keeps 1/K of *its own* random order. With which probability does one worker leave out a
# given sample? And all K of them, independently? Write the share as a formula.


# %% labs={"id": "06.9"}
def expected(workers):
    """Expected share of samples that nobody reads, if all K workers shuffle with seeds of their own."""
    ### BEGIN SOLUTION
    return (1 - 1 / workers) ** workers
    ### END SOLUTION


check("06.9", expected)

# %% [markdown]
# The proof, with counts: five epochs for each number of workers.

# %%
if answered("06.8", "06.9"):
    own = "shuffle with own seeds, shard, batch"
    counted = {}
    for k in (2, 3, 4, 6, 8, 12, 16):
        counted[k] = [never_read(sharding.shares(n, k, own, epoch=epoch), n) / n for epoch in range(5)]
    plots.show(pictures.unseen(counted))
    print(f"2 workers: {np.mean(counted[2]):.3f} counted, {expected(2):.3f} expected")
    assert all(abs(np.mean(shares) - expected(k)) < 0.03 for k, shares in counted.items())

# %% [markdown]
# More workers make it worse, up to $1/e$, more than a third.
#
# ## Does it even out over the epochs?
#
# `shuffle` draws a new order for each epoch (`reshuffle_each_iteration=True` is its default). So a sample that is
# missed today may be read tomorrow. Five epochs of two workers with seeds of their own:

# %%
two = [samples(worker, 2, seed=10 + worker) for worker in range(2)]
rows, so_far = [], []
for epoch in range(1, 6):
    reads = [list(worker.as_numpy_iterator()) for worker in two]
    so_far += reads
    now, total = sharding.coverage(reads, n), sharding.coverage(so_far, n)
    row = {"epoch": epoch, "read by nobody": len(now.unseen), "read by both": len(now.repeated)}
    rows.append(row | {"never read so far": len(total.unseen)})
tables.show(rows)

# %% [markdown]
# After a few epochs nearly every sample has been read. What is still wrong?
#
# - **a**: nothing, it only takes some epochs more
# - **b**: in each epoch the shares overlap: some samples weigh twice, others not at all
# - **c**: the workers take different numbers of steps
# - **d**: the same samples are left out in each epoch

# %% labs={"id": "06.10"}
### BEGIN SOLUTION
still_wrong = "b"
### END SOLUTION
check("06.10", still_wrong)

# %% [markdown]
# ## Fair in every epoch
#
# There are two remedies: one common seed for the shuffle before `shard`; or `shard` first, then shuffle each share.
# Write one of them: for each epoch a new order, disjoint shares, nothing left out. All ranks call your function, each
# with its rank.
#
# `shuffle(size)` fills a **buffer** with the next `size` elements, draws one of them, and puts the one that follows in its
# place. So an element cannot come earlier than `size - 1` places before its own. Twenty sorted numbers:

# %%
for size in (1, 4, 20):
    print(f"shuffle({size}):", *tf.data.Dataset.range(20).shuffle(size, seed=0).as_numpy_iterator())

# %% [markdown]
# A small buffer leaves the classes of a sorted source where they are. The buffer must hold all that is to be mixed.


# %% labs={"id": "06.11"}
def fair(n, rank, size):
    """tf.data.Dataset of the sample numbers (0 to n-1) that this rank reads; each pass is one epoch."""
    ### BEGIN SOLUTION
    return tf.data.Dataset.range(n).shuffle(n, seed=1).shard(size, rank)
    ### END SOLUTION


check("06.11", fair)

# %%
if answered("06.11"):
    parts = [fair(n, rank, 3) for rank in range(3)]
    for epoch in (1, 2):
        found = sharding.coverage([list(part.as_numpy_iterator()) for part in parts], n)
        print(f"epoch {epoch}: {sharding.sentence(found, n)}")

# %% [markdown]
# The two remedies differ a little. With the common seed, the samples move between the workers from epoch to epoch.
# With `shard` first, each worker keeps its share for the whole training; it needs to store only this share, and
# a seed of its own per worker does no harm.
#
# The kit's `data.order(dataset, global_batch, seed=...)` does the first: it gives sample numbers, newly shuffled in
# each epoch, in the same order on every rank. You shard it yourself.
#
# ## What remains
#
# 50 elements in batches of 4: how many batches, and how many elements has the last one?

# %% labs={"id": "06.12"}
### BEGIN SOLUTION
batches_of_50, last_batch = 13, 2
### END SOLUTION
check("06.12", batches_of_50, last_batch)

# %%
if answered("06.12"):
    for drop in (False, True):
        sizes = [len(b) for b in tf.data.Dataset.range(50).batch(4, drop_remainder=drop).as_numpy_iterator()]
        print(f"drop_remainder={drop}: {len(sizes)} batches {sizes}, {50 - sum(sizes)} elements left out")

# %% [markdown]
# With `drop_remainder` all batches are equal, and the price is what the last one held. With several workers there is a
# second question: all must take the **same number of steps**. 100 samples on 3 workers are 34, 33 and 33. In batches
# of 3, that is 12, 11 and 11 steps.
#
# ## One step more
#
# With Horovod, what happens in step 12? Cause it: `scripts/unequal.py` trains on 2 ranks with Horovod alone, without what
# `labs.hvd` checks. You say how many steps each rank takes in each epoch. A second all-reduce in each step carries who is where,
# so the log says *which* steps were averaged with each other. A rank that has waited 20 s for the other one gives up.

# %%
told = "averaged ", "is done", "mean loss", "has been shut down", "has waited"


def unequal(name, steps_0, steps_1, *options):
    """Train with these steps of rank 0 and of rank 1 in each epoch, and show what the ranks and Horovod say."""
    if not devices.has("horovod"):
        return
    asked = ["--rank0", *steps_0, "--rank1", *steps_1, *options]
    job = jobs.run("scripts/unequal.py", *asked, name=f"unequal_{name}", ranks=2, launcher="horovodrun")
    lines = [line[:230] for file in (job.out, job.err) for line in file.read_text().splitlines()]
    print(*dict.fromkeys(line for line in lines if any(word in line for word in told)), sep="\n")


# %% [markdown]
# **The others have finished.** One epoch, rank 0 takes a step more:

# %%
unequal("end", [3], [2])

# %% [markdown]
# **The others are in the next epoch.** Two epochs, in turn one rank has a step more. Look for a line with two different epochs. Was
# there an error?

# %%
unequal("epochs", [3, 2], [2, 3])

# %% [markdown]
# **The others call something else.** The same, and after each epoch the ranks average their loss. That is an all-reduce of
# another name. Which all-reduce is each rank in?

# %%
unequal("loss", [3, 2], [2, 3], "--average_loss")

# %% [markdown]
# Three runs, one cause: a rank takes a step more. What decides what comes of it?
#
# - **a**: nothing: each time Horovod stops all ranks with an error, at once
# - **b**: what the others call next: nothing (an error), an all-reduce of the same name (a wrong average, and no error), or one of
#   another name (all wait, until somebody ends them)
# - **c**: how many steps it has more: Horovod waits for one step, and stops at two
# - **d**: chance: whichever rank is faster goes on alone

# %% labs={"id": "06.13"}
### BEGIN SOLUTION
what_decides = "b"
### END SOLUTION
check("06.13", what_decides)

# %% [markdown]
# Two repairs. **Equal steps**: all take as many as the rank with the fewest. Or **join**: who has no batch left calls `hvd.join()`
# at the epoch's end, and until all are there adds zeros to what the others average (here epoch 0, step 0). What is averaged with what now? (With
# `join` the last update is an average over 2 ranks of which one had nothing: only half of a step.)

# %%
unequal("equal", [3, 2], [2, 3], "--average_loss", "--repair", "equal")

# %%
unequal("join", [3], [2], "--average_loss", "--repair", "join")

# %% [markdown]
# (One epoch only: with Horovod 0.28.1 and `join` after each of two epochs, the second one stood still when this was tried.) Equal
# steps it is, in this course: cut the order to whole *global* batches, before you shard. Write how many steps each worker
# takes, and how many samples this leaves out.


# %% labs={"id": "06.14"}
def steps_of(n, workers, local_batch):
    """(steps that each worker takes in an epoch, samples left out)"""
    ### BEGIN SOLUTION
    return n // (workers * local_batch), n % (workers * local_batch)
    ### END SOLUTION


check("06.14", steps_of)

# %%
if answered("06.14"):
    rows = []
    for workers, local in ((1, 64), (2, 64), (4, 64), (8, 64), (8, 256)):
        steps, left = steps_of(1797, workers, local)
        row = {"workers": workers, "local batch": local, "steps": steps}
        rows.append(row | {"samples left out of 1797": left, "share": f"{left / 1797:.1%}"})
    tables.show(rows)

# %% [markdown]
# Which ones are left out? The last of this epoch's order. With a new order in each epoch these are others each time;
# without shuffling they would always be the same, and never be learned. The last row shows a batch that is too large
# for the data.
#
# ## A shortcut that is none
#
# "Each rank runs the same generator and takes `steps_per_epoch / n` steps": that halves the steps on two ranks, too.
# Here both ranks make their generator with one seed, as the same program does.


# %%
def generator(seed, batch=10):
    """Batches of sample numbers, for ever; each pass over the 1000 samples in a new order."""
    random = np.random.default_rng(seed)
    while True:
        yield from random.permutation(n).reshape(-1, batch)


# %% [markdown]
# Two ranks, one epoch: each takes half of the 100 steps. How many of the 1000 samples does nobody read, and how many
# are read by both?

# %% labs={"id": "06.15"}
### BEGIN SOLUTION
read_by_nobody, read_by_both = 500, 500
### END SOLUTION
check("06.15", read_by_nobody, read_by_both)

# %%
if answered("06.15"):
    ranks, rows = [generator(seed=7), generator(seed=7)], []
    for epoch in (1, 2):
        reads = [np.concatenate([next(rank) for _ in range(100 // 2)]) for rank in ranks]
        found = sharding.coverage(reads, n)
        row = {"epoch": epoch, "read by nobody": len(found.unseen), "read by both": len(found.repeated)}
        rows.append(row | {"both ranks read the same": np.array_equal(*reads)})
    tables.show(rows)

# %% [markdown]
# Equal generators, equal work. If they go on in epoch 2, as here, the other samples come then, again twice; if they
# begin anew in each epoch, these never come. Either way, two ranks do what one could do. `shard` gives them different
# samples.
#
# ## Files: an image folder
#
# Large data sets are read from files while the training runs: files → decode → preprocess → shuffle → batch → prefetch.
# These are the sorted digits as a folder of PNGs, one subfolder for each class:

# %%
files = formats.write_folder(source, jobs.folder() / "digits_png")
print(len(files), "files:", *("/".join(file.split("/")[-3:]) for file in (files[0], files[-1])))

# %% [markdown]
# `reads` counts what is opened and decoded: `reads.file` is `tf.io.read_file`, `reads.image` is `tf.io.decode_png`.

# %%
reads = formats.Reads()


def read(file):
    """One file to (image, label): read, decode, preprocess."""
    image = reads.image(reads.file(file))
    label = tf.strings.to_number(tf.strings.split(file, "/")[-2], tf.int64)
    return tf.cast(image, tf.float32) / 255, label


# %% [markdown]
# Where does the shard stand? Write the share of one rank, as (image, label), with `from_tensor_slices(files)`,
# `.shard` and `.map(read)`, so that no rank opens a file in vain.


# %% labs={"id": "06.16"}
def folder_share(files, rank, size):
    ### BEGIN SOLUTION
    return tf.data.Dataset.from_tensor_slices(files).shard(size, rank).map(read)
    ### END SOLUTION


check("06.16", folder_share, files, reads)

# %%
if answered("06.16"):
    reads.reset()
    train = folder_share(files, 0, 2).shuffle(240, seed=0).batch(16).prefetch(2)
    labels = [label for _, batch_of_labels in train.as_numpy_iterator() for label in batch_of_labels]
    print(f"rank 0 of 2: opened {len(reads.opened)} files, {reads.read:,} bytes; decoded {reads.decoded} images")
    print("images of each class:", np.bincount(labels))

# %% [markdown]
# In an image folder, one file is one sample: sharding the *list of files* costs nothing, and each rank reads its half
# only.
#
# ## Files: TFRecord
#
# Many small files are slow on a cluster's file system, so samples are packed into a few large TFRecord files. Here are
# four, written in the sorted order. Now there are three places for the shard:

# %%
records = formats.write_tfrecords(source, jobs.folder() / "digits_tfrecord", files=4)
names = tf.data.Dataset.from_tensor_slices(records)
places = {
    "the files": lambda rank, size: reads.records(names.shard(size, rank)).map(reads.example),
    "the records, before decoding": lambda rank, size: reads.records(names).shard(size, rank).map(reads.example),
    "the samples, after decoding": lambda rank, size: reads.records(names).map(reads.example).shard(size, rank),
}

# %% [markdown]
# Two ranks. **Predict:** which share of the 480 images does rank 0 *decode* if the samples are sharded, after decoding?
# And which share if the files are sharded? Two numbers from 0 to 1.

# %% labs={"id": "06.23"}
### BEGIN SOLUTION
decoded_of_samples, decoded_of_files = 1, 0.5
### END SOLUTION
predict("06.23", [decoded_of_samples, decoded_of_files])

# %%
rows, decoded = [], {}
for place, share in places.items():
    reads.reset()
    labels = [label for _, label, _ in share(0, 2).as_numpy_iterator()]
    row = {"rank 0 of 2 shards ...": place, "files opened": len(reads.opened), "bytes read": reads.read}
    row |= {"images decoded": reads.decoded, "samples kept": len(labels)}
    rows.append(row | {"of the classes 0 to 9": " ".join(map(str, np.bincount(labels, minlength=10)))})
    decoded[place] = reads.decoded / len(source.labels)
tables.show(rows)
outcome("06.23", [decoded["the samples, after decoding"], decoded["the files"]], how="counted")

# %% [markdown]
# Sharding files reads half the bytes, but it is only as fair as the files: these hold neighbouring classes, so two
# ranks train on different classes. Sharding samples is fair, but every rank reads everything; after decoding, it also
# decodes everything.
#
# Eight workers shard these four *files*. How many workers get nothing at all?

# %% labs={"id": "06.17"}
### BEGIN SOLUTION
workers_without_data = 4
### END SOLUTION
check("06.17", workers_without_data)

# %%
if answered("06.17"):
    print([sum(1 for _ in places["the files"](rank, 8)) for rank in range(8)], "samples for ranks 0 to 7")

# %% [markdown]
# So: shuffle *before* you write the files, write many more files than workers, as a multiple of their number, and
# shard the files. Without that, shard the records before they are decoded.
#
# ## A colleague's script
#
# A colleague has a Horovod script, `scripts/colleague.py`: "It runs with any number of processes, without an error,
# and the loss falls. But two are not faster than one. Is Horovod that slow?" The local batch is the same on 1 and 2
# ranks.
#
# **Predict:** if all were well, how long would an epoch on 2 ranks take, as a multiple of one on 1 rank?

# %% labs={"id": "06.18"}
### BEGIN SOLUTION
epoch_on_2_ranks = 0.5
### END SOLUTION
predict("06.18", epoch_on_2_ranks)

# %% [markdown]
# Run it on 1 and on 2 ranks: a rank is one process, with a core of its own.

# %%
images, side, epochs = (256, 32, 2) if presets.choose().name == "test" else (1792, 64, 4)
options = ["--images", images, "--image_size", side, "--epochs", epochs]
local_batch = 64


def train_on(ranks, script, name):
    """Run a script on some ranks; its run record, or None if it did not finish."""
    global_batch = ranks * local_batch
    job = jobs.run(script, "--batch_size", global_batch, *options, name=f"{name}_w{ranks}", ranks=ranks)
    return run_record.load(job.record) if job.state == "finished" else None


def epoch_seconds(record):
    """Mean seconds of an epoch of a run; the first one is left out."""
    return float(np.mean([epoch.seconds for epoch in record.epochs[1:]]))


# %%
runs = {}
if devices.has("horovod"):
    for ranks in (1, 2):
        runs["colleague", ranks] = train_on(ranks, "scripts/colleague.py", "colleague")
measured = bool(runs) and all(runs.values())

# %%
if measured:
    plots.show(pictures.epoch_times({"colleague.py": list(runs.values())}))

# %% [markdown]
# Your colleague is right. Now read the evidence: the run record of each job holds what its ranks did.

# %%
fields = ("workers", "local_batch", "global_batch", "steps", "dataset_images")
if measured:
    tables.show([vars(record.configuration) | vars(record) for record in runs.values()], fields)
    for record in runs.values():
        print(f"loss on {record.configuration.workers}:", *(f"{epoch.metrics['loss']:.3f}" for epoch in record.epochs))

# %% [markdown]
# How many images did all ranks together process in one epoch, on 1 rank and on 2? Compute both from the fields of
# `record_1` and `record_2`, such as `record_1.dataset_images` or, of how it was run, `record_1.configuration.workers`.

# %% labs={"id": "06.19"}
record_1, record_2 = runs.get(("colleague", 1)), runs.get(("colleague", 2))
### BEGIN SOLUTION
processed_1 = record_1.steps * record_1.configuration.global_batch if measured else ...
processed_2 = record_2.steps * record_2.configuration.global_batch if measured else ...
### END SOLUTION
check("06.19", processed_1, processed_2, record_1, record_2, without="horovod")

# %% [markdown]
# Compare with the images that exist. Why is the epoch not shorter on 2 ranks?
#
# - **a**: the all-reduce over 2 ranks takes as long as the computation
# - **b**: the global batch is twice as large, so each rank's step takes twice as long
# - **c**: both ranks share the memory of one machine
# - **d**: each rank goes through all images by itself

# %% labs={"id": "06.20"}
### BEGIN SOLUTION
why_not_shorter = "d"
### END SOLUTION
check("06.20", why_not_shorter)

# %% [markdown]
# That also explains why nobody noticed: the loss falls, and all ranks agree. Both ranks even take the same batch at
# the same time, so each gradient is averaged with its own copy: two ranks compute what one would have computed. The losses above
# differ all the same, for the script also multiplies the *rate* by the number of ranks, as for a larger batch. The batch was
# not larger. So do not take a lower loss on 2 ranks for what the second rank brought: one rank with the doubled rate gets it, too.
#
# **Repair it.** `scripts/repaired.py` is a copy of the script. Change what must be changed, save it, and run the
# check. The check runs your script up to `fit` as each rank of 1, 2 and 3, and looks at the *sample numbers* that each
# rank would read.

# %% labs={"id": "06.21"}
script = "scripts/repaired.py"
check("06.21", script)

# %% [markdown]
# The repaired script runs next, by the command of your colleague's run on 2 ranks. What will be different? **Decide
# before it runs**, for five numbers of its log and its record: lower than your colleague's (`"<"`), the same (`"="`) or
# higher (`">"`)?
#
# | name | number |
# |---|---|
# | `batch_then` | global batch, `Batch_size` in the log |
# | `rate_then` | `Learning_rate` in the log |
# | `steps_then` | steps of an epoch |
# | `images_then` | images that all ranks process in an epoch |
# | `loss_then` | loss in the last epoch, as the log prints it |

# %% labs={"id": "06.22"}
### BEGIN SOLUTION
batch_then, rate_then = "=", "="
steps_then, images_then = "<", "<"
loss_then = ">"
### END SOLUTION
check("06.22", batch_then, rate_then, steps_then, images_then, loss_then)

# %%
if answered("06.21", "06.22") and measured:
    runs["repaired", 2] = train_on(2, script, "repaired")
repaired = runs.get(("repaired", 2))

# %%
if repaired:
    plots.show(pictures.epoch_times({"colleague.py": [record_1, record_2], "repaired.py": [record_1, repaired]}))
    outcome("06.18", epoch_seconds(repaired) / epoch_seconds(record_1))

# %% [markdown]
# (On 1 rank both scripts do the same, so the first point is shared.) And your five numbers, with two more:

# %%
if repaired:
    rows = []
    for name, record in (("colleague.py", record_2), ("repaired.py", repaired)):
        found = vars(record.configuration) | vars(record) | {"script": name, "loss": record.epochs[-1].metrics["loss"]}
        found["processed"] = record.steps * record.configuration.global_batch
        found["epoch (s)"] = epoch_seconds(record)
        rows.append(found | {"step (ms)": 1000 * found["epoch (s)"] / record.steps})
    fields = ("script", "global_batch", "learning_rate", "steps", "processed", "loss", "epoch (s)", "step (ms)")
    tables.show(rows, fields)

# %% [markdown]
# Half the steps, and every image once. A step takes as long as before, since each rank still computes one local batch
# in it. (If the two step times differ much, another program was busy on this machine.)
#
# The loss is higher, and nothing is worse: in as many epochs the weights were updated half as often. Two epochs of the
# repaired script make as many updates as one of your colleague's, in about the same time. What is gained is in each
# update: its gradient comes from 128 different images, and no longer from 64 that both ranks have computed; and the
# doubled rate has its larger batch. An epoch on more workers is shorter; whether the *training* is, notebook 04 asks.
#
# `labs.ranks.check_shards(mine, n)` compares sample numbers inside a running job, over all its ranks, and stops it
# with the numbers that are read twice or not at all. The script of notebook 07 calls it before it trains.
#
# ## S1
#
# How do you shard a data set for K workers, and how do you know that it is right? 5 to 10 sentences: name the order of
# operations and the seeds, what you do about uneven shares, what you shard when the data lie in files, and what you
# *count* afterwards.

# %% [markdown] labs={"id": "S1", "kind": "answer"}
# ### S1: your answer
# ### BEGIN SOLUTION
# I shuffle the sample numbers once per epoch with a seed that all ranks share, cut the order to whole global batches,
# give rank r every K-th number from place r on, and batch with the local batch, global batch / K. Or I shard first and
# shuffle each share with a seed of the rank's own; then the shares stay the same in all epochs. Shuffling with
# different seeds *before* sharding leaves a share of (1 - 1/K)^K unread in every epoch, a quarter of the samples on 2
# ranks. A sorted source must be shuffled somewhere, or each step sees nearly one class. All ranks must take equally
# many steps, or an extra step meets nobody, another epoch's step, or another all-reduce, and waits: I cut to whole global
# batches, and the order changes in each epoch, so that other samples are left out each time. An image folder I shard by its list of files; TFRecord files
# only if they were written from shuffled data and are many more than ranks; else the records, before they are decoded.
# I know that it is right when I have collected the sample numbers of all ranks for an epoch: no number twice, none
# missing but those cut off, equal lengths. In the record, steps x global batch must not exceed the images that exist.
# With K ranks the epoch must have 1/K of the steps; if it has as many as on one rank, the data are not sharded.
# ### END SOLUTION

# %% [markdown]
# ## What you take along
#
# - Shuffle with one common seed, cut, shard, batch; or shard, then shuffle.
# - Count sample numbers: seen, unseen, seen twice. A falling loss proves nothing.
# - Equal steps on all ranks: an extra one ends in an error, in a wrong average that nobody sees, or stands still.
# - Steps x global batch = images: check it in every record.
#
# Next: `07_horovod_training`.
