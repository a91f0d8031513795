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
# **Time: 38 minutes, including 4 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `08_horovod_training`), *everything*; *an afternoon* leaves this notebook out.
#
# In each epoch, exactly one worker should read each sample (a few may be left out). A program that gets this wrong
# shows no error: its loss falls, but its training gets no faster. You divide the samples among the workers, *count*
# what each of them reads, and repair a colleague's script. You hand in task **S1**. (Horovod starts the same program
# once for each worker.)
#
# ## 1 to 100
#
# The samples are numbered from 1 to 100. With two workers, worker 0 takes 1, 3, 5, ... and worker 1 takes 2, 4, 6, ...
# These are their **shares**, which TensorFlow calls **shards**. With three workers, each takes every third number. How
# many numbers does each of the three get? Give a list.

# %% labs={"id": "sharding.1"}
from labs.checks import answered, check, outcome, predict

### BEGIN SOLUTION
sizes_of_3 = [34, 33, 33]
### END SOLUTION
check("sharding.1", sizes_of_3)

# %% [markdown]
# A `tf.data.Dataset` has a method for this: `.shard(num_shards, index)` keeps the elements at positions `index`,
# `index + num_shards`, and so on. Write a function that returns the share of one **rank** out of `size` workers. (The
# rank is a worker's number, counted from 0. The worker itself is also called a rank.)

# %%
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
tf.autograph.set_verbosity(0)  # no warnings about lambdas that only Python can run


# %% labs={"id": "sharding.2"}
def shard_of(numbers, rank, size):
    """numbers: a tf.data.Dataset; returns the tf.data.Dataset of this rank's share."""
    ### BEGIN SOLUTION
    return numbers.shard(size, rank)
    ### END SOLUTION


check("sharding.2", shard_of)

# %%
from lessons import sharding

if answered("sharding.2"):
    for rank in range(3):
        share = list(shard_of(tf.data.Dataset.range(1, 101), rank, 3).as_numpy_iterator())
        print(f"rank {rank} of 3: {len(share)} samples: {sharding.some(share, 6)}")

# %% [markdown]
# ## Which order of operations?
#
# Real data are often sorted: an image folder lists all images of class 0, then all those of class 1, and so on. Here
# are 480 digits, sorted in this way, and three ways to divide them between two workers. The workers then cut their
# shares into batches of 16:

# %%
import numpy as np

from labs import data

labels = np.sort(data.load("digits", images=480).labels)
numbers = np.arange(480)
shuffled = np.random.default_rng(seed=1).permutation(480)
ways = {
    "1: one half each": [numbers[:240], numbers[240:]],
    "2: shard": [numbers[0::2], numbers[1::2]],
    "3: shuffle with a common seed, then shard": [shuffled[0::2], shuffled[1::2]],
}

# %% [markdown]
# **Predict:** in which of these ways is every batch a random mix of the ten classes? Write the numbers of the ways,
# for example `"12"`.

# %% labs={"id": "sharding.3"}
### BEGIN SOLUTION
fair_orders = "3"
### END SOLUTION
predict("sharding.3", fair_orders)

# %% [markdown]
# Each column is a batch, and each row is a class. The colour shows how many samples of that class the batch contains.

# %%
from labs.show import plots
from lessons.horovod_sharding import pictures

plots.show(pictures.balance(labels, ways, batch=16))
mixed = []
for way, (first, _) in ways.items():
    classes = np.mean([len(set(labels[batch])) for batch in first.reshape(-1, 16)])
    print(f"{way}: a batch of worker 0 has {classes:.1f} classes on average")
    if classes > 5:
        mixed.append(way[0])
outcome("sharding.3", mixed, how="counted")

# %% [markdown]
# What is wrong with way 2?
#
# - **a**: the workers see different classes
# - **b**: some of the samples are read by both workers
# - **c**: each worker sees all classes, but in each step all workers see almost only one class
# - **d**: nothing: each worker has a fair sample

# %% labs={"id": "sharding.4"}
### BEGIN SOLUTION
wrong_with_2 = "c"
### END SOLUTION
check("sharding.4", wrong_with_2)

# %% [markdown]
# ## The seed trap
#
# Here is a common mistake: each worker is a process of its own, and shuffles with its own seed before it shards.

# %%
n = 1000


def samples(worker, workers, seed):
    """What one worker reads: the tf.data.Dataset of its sample numbers."""
    return tf.data.Dataset.range(n).shuffle(n, seed=seed).shard(workers, worker)


# %% [markdown]
# **Predict:** with 2 workers and two different seeds, what fraction of the 1000 samples goes unread? Give a number from
# 0 to 1.

# %% labs={"id": "sharding.5"}
### BEGIN SOLUTION
unread_share = 0.25
### END SOLUTION
predict("sharding.5", unread_share)

# %% [markdown]
# Now count. `reads` contains a list of sample numbers for each worker. Write `never_read`: it returns how many of the
# samples 0 to n-1 are in none of these lists.


# %% labs={"id": "sharding.6"}
def never_read(reads, n):
    ### BEGIN SOLUTION
    return n - len(set().union(*reads))
    ### END SOLUTION


check("sharding.6", never_read)

# %%
if answered("sharding.6"):
    for seeds in ((10, 11), (10, 10)):
        taken = [list(samples(worker, 2, seed).as_numpy_iterator()) for worker, seed in enumerate(seeds)]
        print(f"seeds {seeds}: {never_read(taken, n)} of {n} samples are read by nobody")
        if seeds == (10, 11):
            outcome("sharding.5", never_read(taken, n) / n, how="counted")

# %% [markdown]
# Each of K workers keeps 1/K of *its own* random order, so it leaves out a given sample with probability 1 - 1/K. In
# each epoch, all K leave it out with probability $(1 - 1/K)^K$: this is 1/4 for two workers, and grows to more than a
# third. With two workers, another quarter of the samples is read twice.
#
# ## Fair in every epoch
#
# There are two remedies. Either all workers `shard` one common order, or they `shard` first and then shuffle their own
# shares. Write the second one as `fair`. Each epoch must have a new order, and each sample must be in exactly one
# share.
#
# As in this course's scripts, each rank has set a random seed of its own, with `keras.utils.set_random_seed(rank)`. So
# `shuffle(n)` draws a different order on each rank, and a new one each time the rank iterates over the data set. After
# `shard`, this does no harm.
#
# `shuffle(buffer)` fills a **buffer** with the first `buffer` elements, draws one of them at random, and puts the next
# element in its place. Twenty sorted numbers, shuffled with three buffers:

# %%
for buffer in (1, 4, 20):
    print(f"shuffle({buffer}):", *tf.data.Dataset.range(20).shuffle(buffer, seed=0).as_numpy_iterator())

# %% [markdown]
# To mix all the samples, the buffer must hold all of them.


# %% labs={"id": "sharding.7"}
def fair(n, rank, size):
    """tf.data.Dataset of the sample numbers (0 to n-1) that this rank reads; each iteration over it is one epoch."""
    ### BEGIN SOLUTION
    return tf.data.Dataset.range(n).shard(size, rank).shuffle(n)
    ### END SOLUTION


check("sharding.7", fair)

# %%
if answered("sharding.7"):
    parts = [fair(n, rank, 3) for rank in range(3)]
    for epoch in (1, 2):
        found = sharding.coverage([list(part.as_numpy_iterator()) for part in parts], n)
        print(f"epoch {epoch}: {sharding.sentence(found, n)}")

# %% [markdown]
# With `shard` first, each worker keeps its share for the whole run, and needs to store only this. (The share must then
# be a fair sample of all classes, which it is not in way 1.) The kit's `data.order(dataset, global_batch, seed=...)` is
# a common order: a `tf.data.Dataset` of the sample numbers, cut to whole global batches. It depends only on this seed
# and on the epoch, so it is the same on every rank. You shard it yourself.
#
# ## One extra step
#
# All workers must take the **same number of steps**. How many batches of 4 do 50 elements make, and how many elements
# does the last batch contain?

# %% labs={"id": "sharding.8"}
### BEGIN SOLUTION
batches_of_50, last_batch = 13, 2
### END SOLUTION
check("sharding.8", batches_of_50, last_batch)

# %% [markdown]
# With shares of 34, 33 and 33 samples, in batches of 3, three workers would take 12, 11 and 11 steps. What does Horovod
# do in step 12? Try it with `scripts/unequal.py`, on 2 ranks and without the kit's check of this (about 20 s). Rank 0
# takes 3 steps in the first epoch and 2 in the second; rank 1 takes 2 and then 3. The log shows *which* steps were
# averaged with each other.

# %%
from lessons.horovod_sharding import experiments

experiments.unequal([3, 2], [2, 3])

# %% [markdown]
# What happened to the extra step that rank 0 took in the first epoch?
#
# - **a**: Horovod stopped both ranks with an error
# - **b**: it was averaged with a step of the *next* epoch of rank 1, and no error says so
# - **c**: rank 0 waited until the end of the run
# - **d**: rank 0 used its own gradient alone in this step

# %% labs={"id": "sharding.9"}
### BEGIN SOLUTION
extra_step = "b"
### END SOLUTION
check("sharding.9", extra_step)

# %% [markdown]
# Horovod matches the calls of the ranks by name, and each step uses the same names. So everything depends on what the
# other rank calls next. Three runs with Horovod 0.28.1 ended like this:
#
# | what rank 1 does next | how it ends |
# |---|---|
# | takes a step of its next epoch | a wrong average, and no error |
# | has finished | an error on rank 0: `Horovod has been shut down` |
# | averages something else, such as the loss | both ranks wait until somebody stops the job |
#
# The remedy is to take **equal steps**: cut the samples to a whole number of *global* batches, then shard them. Write
# `steps_of`: it returns the steps that each worker then takes in an epoch, and the number of samples left out.


# %% labs={"id": "sharding.10"}
def steps_of(n, workers, local_batch):
    """(steps that each worker takes in an epoch, samples left out)"""
    ### BEGIN SOLUTION
    return n // (workers * local_batch), n % (workers * local_batch)
    ### END SOLUTION


check("sharding.10", steps_of)

# %%
from labs.show import tables

if answered("sharding.10"):
    rows = []
    for workers, local in ((1, 64), (2, 64), (4, 64), (8, 64), (8, 256)):
        steps, left = steps_of(1797, workers, local)
        row = {"workers": workers, "local batch": local, "steps": steps}
        rows.append(row | {"samples left out of 1797": left, "share": f"{left / 1797:.1%}"})
    tables.show(rows)

# %% [markdown]
# The cut leaves out the last samples of the order: different ones in each epoch, as long as you shuffle.
#
# With image files, shard the *list of files*: each rank then reads only its own (notebook 24).
#
# ## A colleague's script
#
# A colleague has written a Horovod script, `scripts/colleague.py`, and says: "It runs without any errors, and the loss
# falls. But two processes are no faster than one. Is Horovod really that slow?" The local batch is the same on 1 and 2
# ranks.
#
# **Predict:** on your machine, with a correct script, what is the ratio of the epoch time on 2 ranks to that on 1 rank?

# %% labs={"id": "sharding.11"}
### BEGIN SOLUTION
epoch_on_2_ranks = 0.5
### END SOLUTION
predict("sharding.11", epoch_on_2_ranks)

# %% [markdown]
# Run the script on 1 and on 2 ranks. Each rank is a process with its own core, and the two runs take turns, as in
# notebook 05.

# %%
local_batch = 64
runs = experiments.on_1_and_2_ranks("scripts/colleague.py", "colleague", local_batch)

# %%
if runs:
    plots.show(plots.scaling(list(runs.values()), ["epoch time"]))

# %% [markdown]
# Two ranks are indeed no faster than one. The run records show what the ranks did:

# %%
if runs:
    tables.show(
        [
            {
                "workers": record.workers,
                "local_batch": record.configuration.local_batch,
                "global_batch": record.global_batch,
                "steps": record.steps,
                "dataset_images": record.dataset_images,
            }
            for record in runs.values()
        ]
    )

# %% [markdown]
# How many images did all ranks together process in one epoch, on 1 rank and on 2? Compute both numbers from the fields
# of `record_1` and `record_2`.

# %% labs={"id": "sharding.12"}
record_1, record_2 = runs.get(("colleague", 1)), runs.get(("colleague", 2))
### BEGIN SOLUTION
processed_1 = record_1.steps * record_1.global_batch if runs else ...
processed_2 = record_2.steps * record_2.global_batch if runs else ...
### END SOLUTION
check("sharding.12", processed_1, processed_2, record_1, record_2, without="horovod")

# %% [markdown]
# Compare these numbers with the size of the data set. Why is the epoch not shorter on 2 ranks?
#
# - **a**: the all-reduce over 2 ranks takes as long as the computation
# - **b**: the global batch is twice as large, so each rank's step takes twice as long
# - **c**: both ranks share the memory of one machine
# - **d**: each rank goes through all the images by itself

# %% labs={"id": "sharding.13"}
### BEGIN SOLUTION
why_not_shorter = "d"
### END SOLUTION
check("sharding.13", why_not_shorter)

# %% [markdown]
# Open `scripts/colleague.py`, and look at the three lines from `dataset = ...`: every rank runs them alike. Both ranks
# take the same batch at the same time, and each gradient is averaged with a copy of itself. (The rate grows with the
# number of ranks. Leave that: it suits the repaired script.)
#
# **Repair it.** `scripts/repaired.py` is a copy of the script. `hvd.rank()` is the rank, `hvd.size()` the number of
# ranks. Fix what is wrong, save the file, and run the check. It simulates each rank of jobs with 1, 2 and 3 ranks up to
# `fit`, and examines the *sample numbers* that each would read. The job with 2 ranks has two nodes.

# %% labs={"id": "sharding.14"}
script = "scripts/repaired.py"
check("sharding.14", script)

# %% [markdown]
# The repaired script now runs with the same options, and so with the same global batch and rate.

# %%
if answered("sharding.14") and runs:
    runs |= experiments.on_1_and_2_ranks(script, "repaired", local_batch)
repaired = runs.get(("repaired", 2))

# %% [markdown]
# On 1 rank, both scripts do the same. What differs on 2?

# %%
if repaired:
    outcome("sharding.11", repaired.epoch_seconds.value / runs["repaired", 1].epoch_seconds.value)
    tables.show(
        [
            {
                "script": f"{name}.py",
                "ranks": ranks,
                "global_batch": record.global_batch,
                "learning_rate": record.configuration.learning_rate,
                "steps": record.steps,
                "processed": record.steps * record.global_batch,
                "loss": record.epochs[-1].metrics["loss"],
                "epoch (s)": record.epoch_seconds.value,
                "step (ms)": 1000 * record.epoch_seconds.value / record.steps,
            }
            for (name, ranks), record in runs.items()
        ]
    )

# %% [markdown]
# On 2 ranks, there are half as many steps, and every image is read once. The epoch time need not fall to one half, and
# may even rise: two ranks share the machine and wait for each other.
#
# The loss is higher than your colleague's because the weights were updated half as often. But each update is better:
# its gradient comes from 128 different images instead of the same 64 on both ranks.
#
# In a running job, `labs.ranks.check_shards(mine, n)` compares the sample numbers of all ranks, and stops the job if a
# sample would be read twice or not at all.
#
# ## S1
#
# How do you shard a data set for K workers, and how do you know that the shards are right? Write four sentences or
# more, precise enough for a colleague to write the program:
#
# - In which order do you shuffle, shard and batch, and with which seeds? Why is each sample that remains in exactly one
#   share?
# - How do all ranks get the same number of steps, and which samples does this leave out?
# - What do you *count* afterwards, and which result shows that the shards are right?

# %% [markdown] labs={"id": "S1", "kind": "answer"}
# ### S1: your answer
# ### BEGIN SOLUTION
# In each epoch I shuffle the sample numbers into one order that all ranks share: it depends on a common seed and the
# epoch, and not on a rank's global seed, as `shuffle(seed=...)` does. I cut the order to whole global batches, give
# rank r every K-th number from position r onwards, and batch with the local batch, which is the global batch / K. So
# every number that is not cut off is in exactly one share; with a different order on each rank *before* the shard, 2
# ranks would leave a quarter of all samples unread in every epoch. Because of the cut, all ranks take the same number
# of steps; without it, an extra step would find no partner, be averaged with a step of another epoch, or wait for ever.
# The cut leaves out less than one global batch, and in each epoch the samples left out are different ones. To check the
# shards, I collect the sample numbers of all ranks for an epoch: no number may appear twice, only those that were cut
# off may be missing, and all shards must have the same length. In the record, steps x global batch must not exceed the
# number of images in the data set. With the same local batch, K ranks must take 1/K as many steps as one rank; if they
# take the same number, the data are not sharded.
# ### END SOLUTION

# %% [markdown]
# Next: `08_horovod_training`.
