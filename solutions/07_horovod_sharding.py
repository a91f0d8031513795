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
# **Time: 80 minutes, including 4 minutes of computing on 2 cores.** Nine optional parts take about 45 minutes more.
#
# **Paths:** *the practical* (next: `08_horovod_training`), *everything*; *an afternoon* leaves this notebook out.
#
# Several workers train one network. In each epoch, each sample should be read by exactly one of them (a few may be left
# out). A program that gets this wrong shows no error: its loss falls, but its training does not get any faster. You
# learn to divide the samples among the workers, and to *count* them to see whether the division is right. Then you
# repair a colleague's script. You hand in task **S1**.

# %%
from labs import data, jobs, presets  # first: it silences TensorFlow's start-up messages
from labs.checks import answered, check, outcome, predict
from labs.data import formats
from labs.data import shares as sharding
from labs.show import plots, tables, widgets
from lessons.horovod_sharding import experiments, pictures

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
tf.autograph.set_verbosity(0)  # no page of warnings where a lambda cannot be compiled; Python runs it then

# %% [markdown]
# ## 1 to 100, by hand
#
# The samples are numbered from 1 to 100. With two workers, each takes every second number: worker 0 takes 1, 3, 5 and
# so on, and worker 1 takes 2, 4, 6 and so on. These are their **shares**, which TensorFlow calls **shards**.
#
# With three workers, each takes every third number. How many numbers does each worker get? Give your answer as a list
# of three numbers.

# %% labs={"id": "sharding.1"}
### BEGIN SOLUTION
sizes_of_3 = [34, 33, 33]
### END SOLUTION
check("sharding.1", sizes_of_3)

# %% [markdown]
# The shares are *uneven*. This will matter later.
#
# ## The same with tf.data
#
# A `tf.data.Dataset` has the method `.shard(num_shards, index)`. It keeps the elements at positions `index`,
# `index + num_shards`, and so on. Write a function that returns the share of one **rank** out of `size` workers. (The rank is a
# worker's number, counted from 0; the worker itself is often called a rank, too.)


# %% labs={"id": "sharding.2"}
def shard_of(numbers, rank, size):
    """numbers: a tf.data.Dataset; returns the tf.data.Dataset of this rank's share."""
    ### BEGIN SOLUTION
    return numbers.shard(size, rank)
    ### END SOLUTION


check("sharding.2", shard_of)

# %%
if answered("sharding.2"):
    for rank in range(3):
        share = list(shard_of(tf.data.Dataset.range(1, 101), rank, 3).as_numpy_iterator())
        print(f"rank {rank} of 3: {len(share)} samples: {sharding.some(share, 6)}")

# %% [markdown]
# ## Which order of operations?
#
# Real data are often sorted. An image folder, for example, lists all images of class 0 first, then all those of class
# 1, and so on. Here are 480 digits, sorted in this way:

# %%
dataset = data.load("digits", images=480)
by_class = np.argsort(dataset.labels, kind="stable")
source = data.Dataset("sorted digits", dataset.images[by_class], dataset.labels[by_class], dataset.classes)
batch = 16
print(source.labels[:3], "...", source.labels[-3:])

# %% [markdown]
# Here are four ways to give two workers their batches of 16:
#
# 1. each worker takes one half of the samples, in order, then batches them
# 2. `shard`, then batch
# 3. `shard`, then shuffle the share with the worker's own seed, then batch
# 4. shuffle everything with one common seed, then `shard`, then batch
#
# **Predict:** in which of these ways is every batch a random mix of the ten classes? Look at one batch of one worker at
# a time. Write the numbers of the ways, for example `"12"`.

# %% labs={"id": "sharding.3"}
### BEGIN SOLUTION
fair_orders = "34"
### END SOLUTION
predict("sharding.3", fair_orders)

# %% [markdown]
# The picture shows all four ways. Each column is a batch, each row is a class, and the colour (its scale is not linear)
# shows how many samples of that class the batch contains. Above each panel are two mean *distances* from the mix of
# classes in the whole data set. *workers*: of what one worker reads in an epoch. *batches*: of a single batch. A
# distance is the share of samples that would have to be exchanged for others to get the same mix: 0 means the same mix,
# and 0.9 a single class out of ten.

# %%
orders = dict(zip("1234", sharding.ORDERS))
cases = {f"{way}: {order}": sharding.shares(len(source.labels), 2, order) for way, order in orders.items()}
plots.show(pictures.balance(source.labels, cases, batch=batch))
counted = {title[0]: sharding.class_counts(share, source.labels, batch, classes=10) for title, share in cases.items()}
fair_ones = [way for way, counts in counted.items() if (counts > 0).sum(-1).mean() > 5]  # classes of a batch
outcome("sharding.3", fair_ones, how="counted")

# %% [markdown]
# Even a fair batch has a distance above 0: among only 16 random samples, some classes appear more often than others.
# For the same reason, the distance of the workers is not exactly 0 in way 4.
#
# What is wrong with way 2: shard a sorted source, then batch?
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
# There is a fifth order: each worker shuffles with its own seed, then shards. This is a common mistake. Each worker is a
# separate process that runs this code:

# %%
n = 1000


def samples(worker, workers, seed):
    """What one worker reads: the tf.data.Dataset of its sample numbers."""
    return tf.data.Dataset.range(n).shuffle(n, seed=seed).shard(workers, worker)


# %% [markdown]
# Each worker happens to use a different seed. **Predict:** with 2 workers, what fraction of the 1000 samples goes
# unread? Give a number from 0 to 1.

# %% labs={"id": "sharding.5"}
### BEGIN SOLUTION
unread_share = 0.25
### END SOLUTION
predict("sharding.5", unread_share)

# %% [markdown]
# Now count. `reads` contains a list of sample numbers for each worker. Write `never_read`: it returns how many of the
# samples 0 to n-1 do not appear in any of these lists.


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
# This is no accident. The more workers there are, the larger the unread share becomes: it grows to more than a third.
# In one optional part at the end, you find the formula; another part shows that further epochs do not solve the
# problem.
#
# ## Fair in every epoch
#
# There are two remedies. Either all workers `shard` one common order, or they `shard` first and then shuffle their own
# shares. Implement one of them in the function `fair`. Each epoch must have a new order, no sample may be in two
# shares, and no sample may be left out. Every rank calls your function with its own rank number. Before that, it has
# called `keras.utils.set_random_seed(rank)`: as in this course's scripts, each rank has a *global* seed of its own.
#
# The order that `shuffle(n, seed=7)` draws depends on both seeds, on 7 and on the global one. It is a new order each
# time you iterate over the data set.
#
# `shuffle(buffer)` fills a **buffer** with the first `buffer` elements. It draws one of them at random and puts the next
# element in its place. So an element can come out at most `buffer - 1` places earlier than it went in, but it may come
# out much later. Here is the effect on twenty sorted numbers:

# %%
for buffer in (1, 4, 20):
    print(f"shuffle({buffer}):", *tf.data.Dataset.range(20).shuffle(buffer, seed=0).as_numpy_iterator())

# %% [markdown]
# A small buffer leaves a sorted source nearly sorted. To mix all the samples, the buffer must hold all of them.


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
# The two remedies differ a little. With a common order, a sample may go to a different worker in each epoch. With
# `shard` first, each worker keeps the same share for the whole training run. It needs to store only this share, and its
# seeds may be its own.
#
# The kit's `data.order(dataset, global_batch, seed=...)` implements the first remedy: it returns a `tf.data.Dataset` of
# the sample numbers, reshuffled in each epoch and cut to whole global batches. The order depends only on this seed and
# on the number of the epoch, so it is the same on every rank, whatever the global seeds are. You shard it yourself.
#
# ## One extra step
#
# All workers must take the **same number of steps**. With shares of 34, 33 and 33 samples, in batches of 3, they would
# take 12, 11 and 11 steps.
#
# What does Horovod do in step 12? Try it: `scripts/unequal.py` trains on 2 ranks with Horovod, without the kit's
# checks. Each all-reduce has a name, such as `gradient`, and Horovod matches the calls of the ranks by name. All the
# steps use the same name. You choose how many steps each rank takes in each epoch. In each step, the ranks also tell
# each other their epoch and step, so the log shows *which* steps were averaged with each other. A rank that has waited
# for 20 s gives up; this is the script's doing, not Horovod's.
#
# **The other rank is in the next epoch.** There are two epochs: rank 0 takes an extra step in the first, and rank 1
# takes one in the second. The run takes about 20 s. The two lists are the steps of rank 0 and of rank 1 in each epoch.
# In the log, look for a line with two different epochs, and for an error.

# %%
experiments.unequal("epochs", [3, 2], [2, 3])

# %% [markdown]
# Two more cases are **recorded**: the lines below are what the script printed on 2 cores with Horovod 0.28.1. To run a
# case yourself, put its call into a new cell.
#
# **The other rank has finished.** There is one epoch, and rank 0 takes an extra step:
# `experiments.unequal("end", [3], [2])`
#
# ```
# averaged rank 0: epoch 1 step 1, rank 1: epoch 1 step 1,
# averaged rank 0: epoch 1 step 2, rank 1: epoch 1 step 2,
# rank 1 is done
# Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to allreduce, allgather
# or broadcast a tensor after one of the ranks finished execution.
# ```
#
# **The other rank calls something else.** There are two epochs as above, and after each epoch the ranks average their
# loss, in an all-reduce with a different name. The log says in which all-reduce each rank was waiting:
# `experiments.unequal("loss", [3, 2], [2, 3], "--average_loss")`
#
# ```
# averaged rank 0: epoch 1 step 1, rank 1: epoch 1 step 1,
# averaged rank 0: epoch 1 step 2, rank 1: epoch 1 step 2,
# rank 1 has waited 20 s in the all-reduce of the loss of epoch 1, and gives up
# rank 0 has waited 20 s in the all-reduce of epoch 1 step 3, and gives up
# ```
#
# In each run, some epoch has an extra step on one rank, but each run ends differently. What decides how a run ends?
#
# - **a**: nothing: Horovod always stops all ranks at once, with an error
# - **b**: what the others call next: if it is nothing, there is an error; if it is an all-reduce with the same name, the
#   average is wrong, without an error; if it has a different name, every rank waits until somebody stops the job
# - **c**: the number of extra steps: Horovod waits for one, and stops at two
# - **d**: chance: whichever rank is faster goes on alone

# %% labs={"id": "sharding.8"}
### BEGIN SOLUTION
what_decides = "b"
### END SOLUTION
check("sharding.8", what_decides)

# %% [markdown]
# There are two ways to repair this. The first is **equal steps**: all ranks take as many steps as the rank with the
# fewest. Recorded: `experiments.unequal("equal", [3, 2], [2, 3], "--average_loss", "--repair", "equal")`
#
# ```
# averaged rank 0: epoch 1 step 1, rank 1: epoch 1 step 1,
# averaged rank 0: epoch 1 step 2, rank 1: epoch 1 step 2,
# rank 1: mean loss of epoch 1 2.282
# rank 0: mean loss of epoch 1 2.282
# averaged rank 0: epoch 2 step 1, rank 1: epoch 2 step 1,
# averaged rank 0: epoch 2 step 2, rank 1: epoch 2 step 2,
# rank 1: mean loss of epoch 2 2.110
# rank 1 is done
# rank 0: mean loss of epoch 2 2.110
# rank 0 is done
# ```
#
# The second is **join**: a rank that has no more batches calls `hvd.join()`. Until all ranks have done so, it
# contributes zeros to every average. So on 2 ranks, the last update is (g + 0) / 2, half of one gradient. With Horovod
# 0.28.1 and `join` after each of two epochs, rank 0's second `join` did not wait for rank 1, in 11 runs of 11. Rank 1's
# last step then ended with `Horovod has been shut down` where rank 0 had finished, and hung where rank 0 went on to
# average the loss.
#
# This course uses equal steps: it shortens the shuffled list of samples to a whole number of *global* batches before
# it shards the list. Write `steps_of`: it returns the number of steps that each worker then takes in an epoch, and the
# number of samples that the cut leaves out.


# %% labs={"id": "sharding.9"}
def steps_of(n, workers, local_batch):
    """(steps that each worker takes in an epoch, samples left out)"""
    ### BEGIN SOLUTION
    return n // (workers * local_batch), n % (workers * local_batch)
    ### END SOLUTION


check("sharding.9", steps_of)

# %%
if answered("sharding.9"):
    rows = []
    for workers, local in ((1, 64), (2, 64), (4, 64), (8, 64), (8, 256)):
        steps, left = steps_of(1797, workers, local)
        row = {"workers": workers, "local batch": local, "steps": steps}
        rows.append(row | {"samples left out of 1797": left, "share": f"{left / 1797:.1%}"})
    tables.show(rows)

# %% [markdown]
# Which samples are left out? The last ones in this epoch's order. With a new order in each epoch, different samples are
# left out each time. Without shuffling, they would always be the same ones, and the network would never learn from
# them. In the last row, the global batch is larger than the data set.
#
# ## Files
#
# In an image folder, one file is one sample: shard the *list of files*, and each rank reads only its own. With many
# samples packed into a few large files, that is fair only if the samples were shuffled *before* they were written, and if
# there are many more files than workers. (Two optional parts at the end try out both.)
#
# ## A colleague's script
#
# A colleague has written a Horovod script, `scripts/colleague.py`, and says: "It runs with any number of processes,
# without any errors, and the loss falls. But two processes are no faster than one. Is Horovod really that slow?" The
# local batch is the same on 1 and 2 ranks.
#
# **Predict:** if the script were correct, what would be the ratio of the epoch time on 2 ranks to that on 1 rank?

# %% labs={"id": "sharding.10"}
### BEGIN SOLUTION
epoch_on_2_ranks = 0.5
### END SOLUTION
predict("sharding.10", epoch_on_2_ranks)

# %% [markdown]
# Run the script on 1 and on 2 ranks. A rank is one process, with its own core. The two runs take turns, as in notebook
# 05, so each round gives its own ratio.

# %%
images, side, epochs = (256, 32, 2) if presets.choose().name == "test" else (1792, 64, 6)
options = ["--images", images, "--image_size", side, "--epochs", epochs]
local_batch = 64
runs = experiments.on_1_and_2_ranks("scripts/colleague.py", "colleague", local_batch, *options)
measured = bool(runs)

# %%
if measured:
    plots.show(pictures.epoch_times({"colleague.py": list(runs.values())}))

# %% [markdown]
# Your colleague is right: two ranks are no faster than one. Now look at the evidence. The run record of each job shows
# what its ranks did.

# %%
if measured:
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
    for record in runs.values():
        print(f"loss on {record.workers}:", *(f"{epoch.metrics['loss']:.3f}" for epoch in record.epochs))

# %% [markdown]
# How many images did all ranks together process in one epoch, in the run on 1 rank and in the run on 2? Compute both
# numbers from the two records. The columns of the table are `record_1.workers`, `record_1.configuration.local_batch`,
# `record_1.global_batch`, `record_1.steps` and `record_1.dataset_images`.

# %% labs={"id": "sharding.11"}
record_1, record_2 = runs.get(("colleague", 1)), runs.get(("colleague", 2))
### BEGIN SOLUTION
processed_1 = record_1.steps * record_1.global_batch if measured else ...
processed_2 = record_2.steps * record_2.global_batch if measured else ...
### END SOLUTION
check("sharding.11", processed_1, processed_2, record_1, record_2, without="horovod")

# %% [markdown]
# Compare these numbers with the number of images in the data set. Why is the epoch not shorter on 2 ranks?
#
# - **a**: the all-reduce over 2 ranks takes as long as the computation
# - **b**: the global batch is twice as large, so each rank's step takes twice as long
# - **c**: both ranks share the memory of one machine
# - **d**: each rank goes through all the images by itself

# %% labs={"id": "sharding.12"}
### BEGIN SOLUTION
why_not_shorter = "d"
### END SOLUTION
check("sharding.12", why_not_shorter)

# %% [markdown]
# Open `scripts/colleague.py`. You need only the three lines from `dataset = ...`: every rank runs them alike. So both
# ranks even take the same batch at the same time, and each gradient is averaged with a copy of itself. That also
# explains why nobody noticed: the loss falls, and all ranks agree.
#
# Still, the losses above differ. The script multiplies the *rate* by the number of ranks, as if each step used 128
# different images, but it uses only 64, each of them twice. A single rank with twice the rate would do the same, so the
# second rank has contributed nothing. Leave the rate as it is: it fits the repaired script.
#
# **Repair it.** `scripts/repaired.py` is a copy of the script. `hvd.rank()` is the rank, `hvd.size()` the number of
# ranks. Fix what is wrong, save the file, and run the check. (Each rank may keep its own global seed: `data.order` does
# not depend on it.) The check plays each rank of jobs with 1, 2 and 3 ranks. It stops at `fit` and examines the *sample
# numbers* that each rank would read. In the job with 2 ranks, each rank is on a node (machine) of its own.

# %% labs={"id": "sharding.13"}
script = "scripts/repaired.py"
check("sharding.13", script)

# %% [markdown]
# Next, the repaired script runs with the same options as your colleague's, and so with the same global batch and rate.
# What will be different on 2 ranks? **Decide before it runs:** will each of these numbers be lower than your colleague's
# (`"<"`), the same (`"="`) or higher (`">"`)?
#
# | name | number |
# |---|---|
# | `steps_then` | steps in an epoch |
# | `images_then` | images that all ranks together process in an epoch |
# | `loss_then` | loss in the last epoch |

# %% labs={"id": "sharding.14"}
### BEGIN SOLUTION
steps_then, images_then = "<", "<"
loss_then = ">"
### END SOLUTION
check("sharding.14", steps_then, images_then, loss_then)

# %%
if answered("sharding.13", "sharding.14") and measured:
    runs |= experiments.on_1_and_2_ranks(script, "repaired", local_batch, *options)
repaired = runs.get(("repaired", 2))

# %%
if repaired:
    plots.show(
        pictures.epoch_times({"colleague.py": [record_1, record_2], "repaired.py": [runs["repaired", 1], repaired]})
    )
    outcome("sharding.10", experiments.epoch_seconds(repaired) / experiments.epoch_seconds(runs["repaired", 1]))

# %% [markdown]
# (On 1 rank, both scripts do the same thing.) Here are the numbers for 2 ranks:

# %%
if repaired:
    tables.show(
        [
            {
                "script": name,
                "global_batch": record.global_batch,
                "learning_rate": record.configuration.learning_rate,
                "steps": record.steps,
                "processed": record.steps * record.global_batch,
                "loss": record.epochs[-1].metrics["loss"],
                "epoch (s)": experiments.epoch_seconds(record),
                "step (ms)": 1000 * experiments.epoch_seconds(record) / record.steps,
            }
            for name, record in (("colleague.py", record_2), ("repaired.py", repaired))
        ]
    )

# %% [markdown]
# There are half as many steps, and every image is read once. A step takes as long as before, since each rank still
# processes one local batch per step. (If the two step times differ a lot, another program was running on this machine.)
#
# The loss is higher, but nothing has got worse: in the same number of epochs, the weights were updated half as often.
# Each update is now better: its gradient comes from 128 different images instead of the same 64 on both ranks, and the
# doubled rate now fits the doubled batch. So more workers make an epoch shorter. Whether they make the whole *training
# run* shorter is the question of notebook 04.
#
# Inside a running job, `labs.ranks.check_shards(mine, n)` compares the sample numbers of all ranks. If a sample would
# be read twice or not at all, it names the first five of these samples, says how many more there are, and stops the
# job. The script in notebook 08 calls it before training.
#
# ## S1
#
# How do you shard a data set for K workers, and how do you know that the shards are right? Write 5 to 7 sentences,
# precise enough for a colleague to write the program. Answer these questions:
#
# - In which order do you shuffle, shard and batch, and with which seeds? Why is each sample that remains in exactly one
#   share?
# - How do all ranks get the same number of steps, and which samples does this leave out?
# - What do you *count* afterwards, and which result shows that the shards are right?

# %% [markdown] labs={"id": "S1", "kind": "answer"}
# ### S1: your answer
# ### BEGIN SOLUTION
# In each epoch I shuffle the sample numbers into one order that all ranks share: it depends on a common seed and the
# epoch, and not on a rank's global seed, as `shuffle(seed=...)` does. I cut the order to whole global batches, give rank
# r every K-th number from position r onwards, and batch with the local batch, which is the global batch / K. So every
# number that is not cut off is in exactly one share; with a different order on each rank *before* the shard, 2 ranks
# would leave a quarter of all samples unread in every epoch. Because of the cut, all ranks take the same number of steps;
# without it, an extra step would find no partner, be averaged with a step of another epoch, or wait for ever. The cut
# leaves out less than one global batch, and in each epoch the samples left out are different ones. To check the shards,
# I collect the sample numbers of all ranks for an epoch: no number may appear twice, only those that were cut off may
# be missing, and all shards must have the same length. In the record, steps x global batch must not exceed the number
# of images in the data set. With the same local batch, K ranks must take 1/K as many steps as one rank; if they take
# the same number, the data are not sharded.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# - Shuffle into an order that all ranks share, cut, shard and batch; or shard first, then shuffle.
# - Count the sample numbers that are read, not read, or read twice. A falling loss proves nothing.
# - All ranks must take the same number of steps. An extra step ends in an error, in a wrong average that nobody
#   notices, or in waiting.
# - Check in every record that steps x global batch does not exceed the number of images.
#
# Next: `08_horovod_training`. Nine optional parts follow.

# %% [markdown]
# ## Optional: shares by slices
#
# Lists and arrays have no `.shard` method, but Python's slices do the same thing. The samples are numbered from 1 to
# 100. Worker 0 takes every second number, starting with the first; worker 1 takes every second number, starting with
# the second. Write both lists.

# %% labs={"id": "sharding.15"}
numbers = list(range(1, 101))
### BEGIN SOLUTION
of_worker_0 = numbers[0::2]
of_worker_1 = numbers[1::2]
### END SOLUTION
check("sharding.15", of_worker_0, of_worker_1)

# %% [markdown]
# ## Optional: count the classes
#
# `counts` has three axes: worker, batch and class. Write `classes`: how many classes does worker 0 read in a whole
# epoch, and how many are in one of its batches, on average?


# %% labs={"id": "sharding.16"}
def classes(counts):
    """(classes in the epoch of worker 0, mean number of classes in one of its batches)"""
    ### BEGIN SOLUTION
    return (counts[0].sum(0) > 0).sum(), (counts[0] > 0).sum(1).mean()
    ### END SOLUTION


check("sharding.16", classes)

# %%
if answered("sharding.16"):
    rows = []
    for title, share in cases.items():
        epoch, one = classes(sharding.class_counts(share, source.labels, batch, classes=10))
        rows.append({"order": title, "classes of worker 0": int(epoch), "classes per batch (mean)": float(one)})
    tables.show(rows)

# %% [markdown]
# ## Optional: more workers, other batches
#
# Try more workers, other batch sizes, and a source that is *not* sorted. (Tab moves from one control to the next,
# and the arrow keys adjust a control.) Which orders give fair batches even when the source is sorted? Which order
# leaves samples unread?

# %%
widgets.explore(
    pictures.explorer(source.labels),
    workers=(2, 4),
    batch=(8, 64, 8),
    order=list(sharding.ORDERS),
    source=["sorted by class", "shuffled once"],
)

# %% [markdown]
# ## Optional: the formula for the unread samples
#
# If every worker shuffles with its own seed and then shards, each of K workers keeps 1/K of *its own* random order.
# What is the probability that one worker leaves out a given sample? And what is the probability that all K workers
# leave it out, if they shuffle independently of each other? Write the expected share of unread samples as a formula.


# %% labs={"id": "sharding.17"}
def expected(workers):
    """Expected share of samples that nobody reads, if all K workers shuffle with seeds of their own."""
    ### BEGIN SOLUTION
    return (1 - 1 / workers) ** workers
    ### END SOLUTION


check("sharding.17", expected)

# %% [markdown]
# The next cell compares your formula with counts from five epochs for each number of workers.

# %%
if answered("sharding.6", "sharding.17"):
    own = "shuffle with own seeds, shard, batch"
    counted = {}
    for k in (2, 3, 4, 6, 8, 12, 16):
        counted[k] = [never_read(sharding.shares(n, k, own, epoch=epoch), n) / n for epoch in range(5)]
    plots.show(pictures.unseen(counted))
    print(f"2 workers: {np.mean(counted[2]):.3f} counted, {expected(2):.3f} expected")
    assert all(abs(np.mean(shares) - expected(k)) < 0.03 for k, shares in counted.items())

# %% [markdown]
# The more workers there are, the larger the unread share becomes: it grows towards $1/e$, which is more than a third.
#
# ## Optional: does it even out over the epochs?
#
# `shuffle` draws a new order for each epoch (`reshuffle_each_iteration=True` is the default). So a sample that is
# missed in one epoch may be read in the next. Here are five epochs of two workers, each with its own seed:

# %%
two = [samples(worker, 2, seed=10 + worker) for worker in range(2)]
rows, so_far = [], []
for epoch in range(1, 6):
    taken = [list(worker.as_numpy_iterator()) for worker in two]
    so_far += taken
    now, total = sharding.coverage(taken, n), sharding.coverage(so_far, n)
    row = {"epoch": epoch, "read by nobody": len(now.unseen), "read by both": len(now.repeated)}
    rows.append(row | {"never read so far": len(total.unseen)})
tables.show(rows)

# %% [markdown]
# After a few epochs, nearly every sample has been read. What is still wrong?
#
# - **a**: nothing: it only takes a few more epochs
# - **b**: in each epoch the shares overlap: some samples count twice, others not at all
# - **c**: the workers take different numbers of steps
# - **d**: the same samples are left out in each epoch

# %% labs={"id": "sharding.18"}
### BEGIN SOLUTION
still_wrong = "b"
### END SOLUTION
check("sharding.18", still_wrong)

# %% [markdown]
# ## Optional: the last batch
#
# You divide 50 elements into batches of 4. How many batches are there, and how many elements does the last one contain?

# %% labs={"id": "sharding.19"}
### BEGIN SOLUTION
batches_of_50, last_batch = 13, 2
### END SOLUTION
check("sharding.19", batches_of_50, last_batch)

# %%
if answered("sharding.19"):
    for drop in (False, True):
        sizes = [len(b) for b in tf.data.Dataset.range(50).batch(4, drop_remainder=drop).as_numpy_iterator()]
        print(f"drop_remainder={drop}: {len(sizes)} batches {sizes}, {50 - sum(sizes)} elements left out")

# %% [markdown]
# With `drop_remainder`, all batches have the same size, but the elements of the last, smaller batch are lost.
#
# ## Optional: a shortcut that saves nothing
#
# A tempting shortcut: each of K ranks runs the same generator and takes `steps_per_epoch / K` steps. On two ranks, this
# also halves the number of steps. Both ranks run the same program, so they create their generators with the same seed:


# %%
def generator(seed, batch=10):
    """Batches of sample numbers, for ever; each pass over the 1000 samples in a new order."""
    random = np.random.default_rng(seed)
    while True:
        yield from random.permutation(n).reshape(-1, batch)


# %% [markdown]
# In one epoch, each of the two ranks takes half of the 100 steps. How many of the 1000 samples does neither rank read,
# and how many do both ranks read?

# %% labs={"id": "sharding.20"}
### BEGIN SOLUTION
read_by_nobody, read_by_both = 500, 500
### END SOLUTION
check("sharding.20", read_by_nobody, read_by_both)

# %%
if answered("sharding.20"):
    ranks, rows = [generator(seed=7), generator(seed=7)], []
    for epoch in (1, 2):
        taken = [np.concatenate([next(rank) for _ in range(100 // 2)]) for rank in ranks]
        found = sharding.coverage(taken, n)
        row = {"epoch": epoch, "read by nobody": len(found.unseen), "read by both": len(found.repeated)}
        rows.append(row | {"both ranks read the same": np.array_equal(*taken)})
    tables.show(rows)

# %% [markdown]
# Identical generators do identical work. Here the generators continue in epoch 2, so they then deliver the other half
# of the samples, again to both ranks. If they restarted in each epoch, nobody would ever read that half. In both cases,
# two ranks do only what one could do. `shard` gives them different samples.
#
# ## Optional: an image folder
#
# Large data sets are read from files during training, in a pipeline: files → decode → preprocess → shuffle → batch →
# prefetch. Here are the sorted digits as a folder of PNG files, with one subfolder for each class:

# %%
files = formats.write_folder(source, jobs.folder() / "digits_png")
print(len(files), "files:", *("/".join(file.split("/")[-3:]) for file in (files[0], files[-1])))

# %% [markdown]
# `reads` counts the files that are opened and decoded: `reads.file` wraps `tf.io.read_file`, and `reads.image` wraps
# `tf.io.decode_png`.

# %%
reads = formats.Reads()


def read(file):
    """One file to (image, label): read, decode, preprocess."""
    image = reads.image(reads.file(file))
    label = tf.strings.to_number(tf.strings.split(file, "/")[-2], tf.int64)
    return tf.cast(image, tf.float32) / 255, label


# %% [markdown]
# Where in this pipeline does the shard belong? Write `folder_share`: it returns the share of one rank as a
# `tf.data.Dataset` of (image, label) pairs. Use `from_tensor_slices(files)`, `.shard` and `.map(read)`. No rank may
# open a file that it does not need.


# %% labs={"id": "sharding.21"}
def folder_share(files, rank, size):
    ### BEGIN SOLUTION
    return tf.data.Dataset.from_tensor_slices(files).shard(size, rank).map(read)
    ### END SOLUTION


check("sharding.21", folder_share, files, reads)

# %%
if answered("sharding.21"):
    reads.reset()
    train = folder_share(files, 0, 2).shuffle(240, seed=0).batch(16).prefetch(2)
    labels = [label for _, batch_of_labels in train.as_numpy_iterator() for label in batch_of_labels]
    print(f"rank 0 of 2: opened {len(reads.opened)} files, {reads.read:,} bytes; decoded {reads.decoded} images")
    print("images of each class:", np.bincount(labels))

# %% [markdown]
# ## Optional: TFRecord files
#
# Many small files are slow on a cluster's file system, so samples are often packed, as **records**, into a few large
# files. Here are the digits again, written to four TFRecord files in sorted order. `reads.records` reads the records of
# files, and `reads.example` decodes one record. Now there are three places where you can shard:

# %%
records = formats.write_tfrecords(source, jobs.folder() / "digits_tfrecord", files=4)
names = tf.data.Dataset.from_tensor_slices(records)
places = {
    "the files": lambda rank, size: reads.records(names.shard(size, rank)).map(reads.example),
    "the records, before decoding": lambda rank, size: reads.records(names).shard(size, rank).map(reads.example),
    "the samples, after decoding": lambda rank, size: reads.records(names).map(reads.example).shard(size, rank),
}

# %% [markdown]
# **Predict** for two ranks: what share of the 480 images does rank 0 *decode* if you shard the samples after decoding?
# And what share does it decode if you shard the files? Give two numbers from 0 to 1.

# %% labs={"id": "sharding.22"}
### BEGIN SOLUTION
decoded_of_samples, decoded_of_files = 1, 0.5
### END SOLUTION
predict("sharding.22", [decoded_of_samples, decoded_of_files])

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
outcome("sharding.22", [decoded["the samples, after decoding"], decoded["the files"]], how="counted")

# %% [markdown]
# If you shard the files, a rank reads only half the bytes, but its share is only as fair as its files are. Each of
# these files contains neighbouring classes, so the two ranks train on different classes. If you shard the records, the
# shares are fair, but every rank reads everything. If you shard after decoding, every rank also has to decode
# everything.
#
# Suppose that eight workers shard these four *files*. How many workers get nothing at all?

# %% labs={"id": "sharding.23"}
### BEGIN SOLUTION
workers_without_data = 4
### END SOLUTION
check("sharding.23", workers_without_data)

# %%
if answered("sharding.23"):
    print([sum(1 for _ in places["the files"](rank, 8)) for rank in range(8)], "samples for ranks 0 to 7")

# %% [markdown]
# So shuffle *before* you write the files, write many more files than workers (a multiple of the number of workers), and
# shard the files. If you cannot do that, shard the records before they are decoded.
