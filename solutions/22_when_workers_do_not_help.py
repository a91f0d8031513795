# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Why more workers may not help
#
# **Time: 25 minutes, including 3 minutes of computing on 2 cores.**
#
# **Paths:** only *everything* contains this notebook.
#
# So far, adding workers has saved time. Here you see how that can fail: for a small network, exchanging the gradients
# can cost more time than the workers save by splitting up the computation. To find out why, you break a step of such
# a network down into its parts. Then you write local SGD, in which the workers exchange less often, and you measure
# what this saves and what it costs. Notebook 23, the second part, deals with large batches and late workers.

# %%
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # small experiments: they run on CPU cores, also where there is a GPU

from labs import devices, jobs, presets  # import this first: it sets up TensorFlow
from labs.checks import answered, check, outcome, predict
from labs.results import intervals
from labs.show import plots, tables
from lessons.when_workers_do_not_help import compared, pictures, steps, trials

import numpy as np

plan = presets.choose()
quick = plan.name == "test"
seeds = range(3 if quick else 5)
print(f"preset {plan.name}; a rank computes on one CPU core, and this machine has {devices.cores()}")

# %% [markdown]
# ## 1. The exchange may cost more than it saves
#
# A published lesson on Horovod trains a small network on images of digits. With the same global batch size, one process
# takes 73 s and four processes take 443 s. The lesson says that four processes are "almost eight times slower". How
# many times as long do they actually take?

# %% labs={"id": "workers.1"}
### BEGIN SOLUTION
times_as_long = 443 / 73
### END SOLUTION
check("workers.1", times_as_long)

# %% [markdown]
# The lesson's factor is wrong, but the effect is real: four processes are far slower than one. You now reproduce it
# with networks that differ only in size. Each has three convolutions and a dense layer; the number of filters in the
# first convolution sets its size:

# %%
sizes = [2, 16, 64] if quick else [2, 8, 16, 32, 64]
rows = []
for filters in sizes:
    network = steps.network(filters)
    weights = network.count_params()
    rows.append(
        {"filters": filters, "tensors": len(network.trainable_weights), "weights": weights, "bytes": 4 * weights}
    )
tables.show(rows, ("filters", "tensors", "weights", "bytes"), {"bytes": "bytes to exchange in a step"})

# %% [markdown]
# The global batch size is fixed: all the ranks together process 32 images per step. One rank processes all 32, and two
# ranks process 16 each. (In notebooks 05 and 08, the batch size per worker was fixed, and the global batch grew with
# the number of workers. A fixed global batch is harder to scale. It is called **strong scaling**.)
#
# **Predict** for the smallest network: what is the step time on two ranks, divided by that on one? Give a number;
# below 1 means that two ranks are faster.

# %% labs={"id": "workers.2"}
### BEGIN SOLUTION
two_over_one = 2.0
### END SOLUTION
predict("workers.2", two_over_one)

# %% [markdown]
# Now measure it. In each round, four kinds of step take turns:
#
# - one rank alone, with the whole batch;
# - one rank alone, with its share of the batch;
# - both ranks at the same time, each with its share, without an exchange;
# - both ranks at the same time, each with its share, with the exchange.

# %%
rounds, of_round = (3, 4) if quick else (6, 10)
if devices.has("horovod"):
    found = steps.measure(sizes, rounds=rounds, steps=of_round)
    ratios = steps.times_as_long(found)
    outcome("workers.2", ratios[sizes[0]].value, ratios[sizes[0]].interval)
    plots.show(pictures.pays(found))

# %% [markdown]
# Each point is one network. Above the dashed line, two ranks are slower than one; where the curve crosses the line, a
# second rank begins to pay off.
#
# The next figure divides a step into four parts:
#
# - **start of operations**: the time that a step with 0 images would take, because every operation has to be started,
#   however few images it gets;
# - **computing**: the time that grows with the number of images;
# - **sharing the machine**: how much longer a step takes when both ranks compute at the same time, without an exchange,
#   than when one rank computes alone;
# - **exchange and waiting**: how much the exchange lengthens the step.
#
# The figure shows each part as a share of the complete step (with the exchange) in the same round. The parts are
# differences between measured step times. No part can really take less than 0 seconds, so a network with a negative
# part is marked as too noisy: run the cell with `steps.measure` again when the machine is quiet.

# %%
if devices.has("horovod"):
    plots.show(pictures.step_parts(found))

# %% [markdown]
# Write a function that computes the speedup of a step from its parts: the step time of one rank with all 32 images,
# divided by that of `ranks` ranks. The parts all have the same unit. `start` is the start of operations, `per_image` is
# the computing for one image, and `exchange` is the sum of the two other parts, *sharing the machine* and *exchange and
# waiting*. A single rank has neither of these two: leave `exchange` out of its step.


# %% labs={"id": "workers.3"}
def speedup(start, per_image, exchange, ranks):
    ### BEGIN SOLUTION
    return (start + 32 * per_image) / (start + 32 * per_image / ranks + exchange)
    ### END SOLUTION


check("workers.3", speedup)

# %%
if answered("workers.3") and devices.has("horovod"):
    columns = {f"{ranks} ranks, computed": steps.speedups(found, speedup, ranks) for ranks in (8, 32)}
    rows = [{"filters": filters} | {name: of[filters] for name, of in columns.items()} for filters in sizes]
    tables.show(rows, ("filters", *columns))

# %% [markdown]
# The brackets contain 95 % intervals over the rounds. Your function assumes the best case: the exchange takes no longer
# with more ranks, and each rank has a core of its own. Even then the speedup has a limit, because neither the time to
# start operations nor the exchange is split among the ranks.
#
# Why does a second rank not help the *smallest* network?
#
# - **a**: its gradient takes the longest to exchange
# - **b**: with two ranks, a step processes twice as many images
# - **c**: a second rank halves a small part of its step, but adds an exchange
# - **d**: two processes cannot be faster than one on this machine

# %% labs={"id": "workers.4"}
### BEGIN SOLUTION
why_it_loses = "c"
### END SOLUTION
check("workers.4", why_it_loses)

# %% [markdown]
# ## 2. Exchange less often
#
# If exchanging in every step costs too much, exchange only after every k-th step. In between, each worker trains its
# own copy of the network. At each exchange, all the workers average their *weights*. This is **local SGD**:
#
# $$ w_i \leftarrow w_i - \eta\, g_i(w_i) \quad\text{at every step,}\qquad w_i \leftarrow \frac{1}{K} \sum_{j=1}^{K} w_j
# \quad\text{after every } k\text{-th.} $$
#
# With k = 1 and plain SGD, this is the synchronous training that you know: if all the workers have the same weights
# before a step, averaging the weights after it gives the same result as one step with the mean gradient.
#
# With momentum, a step also changes the velocities $v_i$, which the optimizer keeps in `optimizer.momentums`. Average
# them whenever you average the weights: $v_i \leftarrow \frac{1}{K} \sum_{j=1}^{K} v_j$. Otherwise the workers continue
# with the same weights but different velocities.
#
# Open `scripts/local_sgd.py` and complete the function `local_sgd`, a training loop that does not use `fit`. Two parts
# are missing: the step (three lines with `tf.GradientTape` and `optimizer.apply(gradients, weights)`), and the loop
# over the batches with the averaging (about five lines). `horovod.allreduce(tensor, op=horovod.Average)` returns the
# mean over all ranks, and `variable.assign(...)` stores it. The check replaces Horovod by a simulation of 2 ranks, with
# and without momentum, and compares their weights with the correct ones.

# %% labs={"id": "workers.5"}
script = "scripts/local_sgd.py"
check("workers.5", script)

# %% [markdown]
# The script trains a dense network on 2 ranks, four times for each value of k. **Predict:** what is the number of steps
# per second with k = 16, divided by that with k = 1?

# %% labs={"id": "workers.6"}
### BEGIN SOLUTION
faster_with_16 = 2.0
### END SOLUTION
predict("workers.6", faster_with_16)

# %%
ks = (1, 16) if quick else (1, 4, 16, 64)
if devices.has("horovod") and answered("workers.5"):
    options = ["--k", *ks, "--steps", 128 if quick else 256, "--repeats", 2 if quick else 4]
    job = jobs.run(script, *options, name="local_sgd", ranks=2, launcher="mpiexec")
    gains = compared.by_k(job.out)
    if 16 in gains:
        outcome("workers.6", gains[16].value, gains[16].interval)

# %% [markdown]
# On average, a step now costs its computation plus 1/k of an exchange. After the last exchange, all the ranks have the
# same weights. These trainings are too few and too short to show what a large k costs in accuracy.
#
# A network with `parameters` float32 weights is trained for 512 steps with k = 64. How many times do the ranks exchange
# their weights, and how many bytes of weights does each rank contribute in total?

# %% labs={"id": "workers.7"}
parameters = 394_634
### BEGIN SOLUTION
exchanges = 512 // 64
bytes_in_all = exchanges * 4 * parameters
### END SOLUTION
check("workers.7", exchanges, bytes_in_all, parameters)

# %% [markdown]
# ### What does it cost in accuracy?
#
# Eight workers train a small NumPy network for 512 steps, each on its own shard of the digits. In one experiment, the
# digits are shuffled before they are divided into shards. In the other, they are sorted by label, so the first worker
# gets the zeros and some ones, and the last one gets the nines and some eights. The eight workers take turns in one
# process, but the training is real.
#
# With shuffled shards, you will see the same accuracy for k = 1 and k = 128. **Predict** the test accuracy with
# *sorted* shards and k = 128. (Random guessing gives 0.1.)

# %% labs={"id": "workers.8"}
### BEGIN SOLUTION
accuracy_sorted = 0.8
### END SOLUTION
predict("workers.8", accuracy_sorted)

# %%
of_seeds = {}
for order in ("shuffled", "sorted"):
    of_workers = trials.shards(8, order)
    of_seeds[f"{order} shards"] = {
        k: [trials.local_sgd(k, of_workers, steps=512, rate=0.2, seed=seed) for seed in seeds]
        for k in ((1, 128) if quick else (1, 4, 16, 64, 128))
    }
at_128 = of_seeds["sorted shards"][128]
outcome("workers.8", np.mean(at_128), intervals.shares(at_128), how="simulated")

# %%
title = "local SGD, 8 workers, 512 steps"
plots.show(
    pictures.accuracy_by(of_seeds, xlabel="k: steps between two exchanges", title=title, note=pictures.ONE_PROCESS)
)

# %% [markdown]
# With shuffled shards, 4 exchanges instead of 512 cost no accuracy. Why does a large k reduce the accuracy with sorted
# shards?
#
# - **a**: between two exchanges, each worker trains only on its own classes, and its weights drift away from those of
#   the others
# - **b**: with a large k, each worker takes fewer steps
# - **c**: sorted shards contain fewer images
# - **d**: the mean of the weights is less precise if the labels differ

# %% labs={"id": "workers.9"}
### BEGIN SOLUTION
why_sorted_loses = "a"
### END SOLUTION
check("workers.9", why_sorted_loses)

# %% [markdown]
# Published results disagree:
#
# | source | finding |
# |---|---|
# | S. Stich, [1805.09767](https://arxiv.org/abs/1805.09767) | for convex problems, local SGD needs no more steps than synchronous SGD, with up to $\sqrt{T}$ times fewer exchanges in $T$ steps |
# | T. Lin and others, [1808.07217](https://arxiv.org/abs/1808.07217) | for the same amount of computation, local SGD generalises better than one large batch |
# | J. Gonzalez Ortiz and others, [2110.08133](https://arxiv.org/abs/2110.08133) | at the scale of ImageNet, local SGD is faster but *less accurate*: the results of smaller experiments do not carry over |
#
# Your own experiment is one of the smaller ones.

# %% [markdown]
# ## A shortcut that saves nothing
#
# A tempting shortcut: each of K ranks runs the same generator and takes `steps_per_epoch / K` steps. On two ranks, this
# also halves the number of steps. Both ranks run the same program, so they create their generators with the same seed:


# %%
def generator(seed, batch=10):
    """Batches of sample numbers, for ever; each pass over the 1000 samples in a new order."""
    random = np.random.default_rng(seed)
    while True:
        yield from random.permutation(1000).reshape(-1, batch)


# %% [markdown]
# In one epoch, each of the two ranks takes half of the 100 steps. How many of the 1000 samples does neither rank read,
# and how many do both ranks read?

# %% labs={"id": "workers.10"}
### BEGIN SOLUTION
read_by_nobody, read_by_both = 500, 500
### END SOLUTION
check("workers.10", read_by_nobody, read_by_both)

# %%
if answered("workers.10"):
    from lessons import sharding

    ranks, rows = [generator(seed=7), generator(seed=7)], []
    for epoch in (1, 2):
        taken = [np.concatenate([next(rank) for _ in range(100 // 2)]) for rank in ranks]
        found = sharding.coverage(taken, 1000)
        row = {"epoch": epoch, "read by nobody": len(found.unseen), "read by both": len(found.repeated)}
        rows.append(row | {"both ranks read the same": np.array_equal(*taken)})
    tables.show(rows)

# %% [markdown]
# Identical generators do identical work. Here the generators continue in epoch 2, so they then deliver the other half
# of the samples, again to both ranks. If they restarted in each epoch, nobody would ever read that half. In both cases,
# two ranks do only what one could do. `shard` gives them different samples.

# %% [markdown]
# ## Summary
#
# - Adding workers splits up only the computation. Measure the parts of a step before you add workers.
# - Workers can exchange less often. What this costs depends on how similar their shards are.
#
# Next: `23_large_batches`.
