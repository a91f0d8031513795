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
# **Time: 60 minutes, of which 3 minutes on 2 cores are computing.**
#
# You have seen that more workers need less time. Here you see how that fails: first on a small network, whose exchange costs more
# than it saves. You take its steps apart to find out why. Then you write local SGD, in which the workers exchange less often, and
# measure what it saves and what it costs. Notebook 09b, the second part, is about large batches and late workers.

# %%
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # small experiments: they run on CPU cores, also where there is a GPU

from labs import devices, jobs, presets  # first: it silences TensorFlow's start-up messages
from labs.checks import answered, check, outcome, predict
from labs.lessons.nb09 import pictures, steps, trials
from labs.measure import allreduce
from labs.results import intervals
from labs.show import plots, tables

import numpy as np

plan = presets.choose()
quick = plan.name == "test"
seeds = range(3 if quick else 5)
print(f"preset {plan.name}; a rank computes on one CPU core, and this machine has {devices.cores()}")

# %% [markdown]
# ## 1. Exchange may cost more than it saves
#
# A published lesson on Horovod trains a small network on images of digits: 73 s in one process, 443 s in four, with the same
# effective batch. Its text says that four processes are "almost eight times slower". How many times as long do they take?

# %% labs={"id": "09.1"}
### BEGIN SOLUTION
times_as_long = 443 / 73
### END SOLUTION
check("09.1", times_as_long)

# %% [markdown]
# A slip in a division survives in a text as long as nobody divides again. The effect is real, though: four processes are far slower than
# one. You cause it here. Some networks, all alike but for their size: three convolutions and a dense layer.

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
# The batch is fixed for all ranks together: 32 images. One rank computes all 32, each of two ranks 16, each of four 8. (In notebooks
# 05 and 07 each worker kept its batch. This is the harder case, called **strong scaling**.)
#
# **Predict** for the smallest network: how many times as long as on one rank does a step take on two? A number below 1 says that
# two are faster.

# %% labs={"id": "09.2"}
### BEGIN SOLUTION
two_over_one = 2.0
### END SOLUTION
predict("09.2", two_over_one)

# %% [markdown]
# The kit's cost model predicts, too, before anything has run on two ranks. It needs the steps of one rank, with different batches, and
# the latency and bandwidth of an all-reduce alone:

# %%
rounds, of_round = (3, 4) if quick else (6, 10)
expected, rows = {2: {}}, []
if devices.has("horovod"):
    alone = steps.measure(1, sizes, rounds=rounds, steps=of_round, launcher="mpiexec")
    link = allreduce.measure(2, sizes=(2**10, 2**14, 2**18, 2**22), repeats=8, launcher="mpiexec", runs=jobs.folder())
    print(f"all-reduce: {1e6 * link['latency']['value']:.0f} us a message, {link['bandwidth']['value'] / 1e6:.0f} MB/s")
    expected = {2: steps.predicted(alone, link, ranks=2)}

# %%
for filters, seconds in expected[2].items():
    one = np.mean(alone["seconds"][filters]["alone 32"])
    rows.append({"filters": filters, "one": 1000 * one, "two": 1000 * seconds, "ratio": seconds / one})
headers = {"one": "one rank (ms), measured", "two": "two ranks (ms), predicted", "ratio": "two / one, predicted"}
tables.show(rows, ("filters", "one", "two", "ratio"), headers)

# %% [markdown]
# Now measure it. In each round all kinds of steps take turns: one rank alone with the whole batch and with its share, all ranks side by
# side without exchange, all ranks with exchange. Two ranks exchange over MPI. Four do so, too, if each has a core; else over Gloo, since a
# rank that waits over MPI keeps a core busy that another one needs.

# %%
if devices.has("horovod"):
    found = [steps.measure(2, sizes, rounds=rounds, steps=of_round, launcher="mpiexec")]
    if not quick:
        by = "horovodrun" if devices.oversubscribed(4) else "mpiexec"  # Gloo, or MPI
        found.append(steps.measure(4, [sizes[0], sizes[-1]], rounds=rounds, steps=of_round, launcher=by))
    ratios = steps.times_as_long(found[0])
    outcome("09.2", ratios[sizes[0]].value, ratios[sizes[0]].interval)
    plots.show(pictures.pays(alone, found, expected))

# %% [markdown]
# Each point is a network. Above the line several ranks lose; where a curve crosses it, they begin to pay. Where did the cost model err,
# and which way? It knows computation and links. It does not know what one more process does to a machine of two cores.
#
# Each curve compares steps of one measurement, which took turns. The curves themselves did not: they were measured one after the
# other, and two and four ranks may differ in how they exchange as well. So do not read from their distance what two more ranks cost.
#
# The parts of a step, by differences, as shares of the step on all ranks in the same round. **Start of operations** is what is left of a
# step at 0 images: each operation is started once, however few images it gets. A part below 0 cannot be: such a network is marked
# as too noisy.

# %%
if devices.has("horovod"):
    plots.show(pictures.step_parts(found))

# %% [markdown]
# Write the speedup of a step from its parts. All are in the same unit: `start`, the start of operations; `per_image`, computing for one
# image; `exchange`, all that the exchange adds on several ranks. The batch of all ranks together is 32.


# %% labs={"id": "09.3"}
def speedup(start, per_image, exchange, ranks):
    ### BEGIN SOLUTION
    return (start + 32 * per_image) / (start + 32 * per_image / ranks + exchange)
    ### END SOLUTION


check("09.3", speedup)

# %%
if answered("09.3") and devices.has("horovod"):
    columns = {"2 ranks, measured": steps.measured(found[0])}
    columns |= {f"{ranks} ranks, computed": steps.speedups(found[0], speedup, ranks) for ranks in (8, 32)}
    rows = [{"filters": filters} | {name: of[filters] for name, of in columns.items()} for filters in sizes]
    tables.show(rows, ("filters", *columns))

# %% [markdown]
# In brackets: 95 % intervals over the rounds. For 2 ranks your function is not in the table. It would give what was measured, because the
# parts are differences of those very steps: they agree by construction, which proves nothing.
#
# 8 and 32 ranks are computed as if the exchange took no longer among more of them, and each had a core: the best case. Even so the
# speedup has an end: what is not divided stays.
#
# Why does a second rank not help the *smallest* network?
#
# - **a**: its gradient takes longest to exchange
# - **b**: with two ranks it computes twice as many images in a step
# - **c**: a second rank halves a small part of its step, and adds an exchange to it
# - **d**: two processes cannot be faster than one on this machine

# %% labs={"id": "09.4"}
### BEGIN SOLUTION
why_it_loses = "c"
### END SOLUTION
check("09.4", why_it_loses)

# %% [markdown]
# ## 2. Exchange less often
#
# If exchanging is what costs, do it at every k-th step only. Between two exchanges each worker trains by itself, as if it were alone;
# then all take the mean of their *weights*. This is **local SGD**:
#
# $$ w_i \leftarrow w_i - \eta\, g_i(w_i) \quad\text{at every step,}\qquad w_i \leftarrow \frac{1}{K} \sum_{j=1}^{K} w_j
# \quad\text{after every } k\text{-th.} $$
#
# With k = 1 and plain SGD it is the synchronous training that you know: the mean of weights that were equal a step ago is the mean of
# their gradients' steps.
#
# Open `scripts/local_sgd.py` and write its function `local_sgd`: a training loop of your own, without `fit`. A step of SGD takes about
# five lines (`tf.GradientTape`, `optimizer.apply`; `@tf.function` before it makes it fast), the mean another five.
# `horovod.allreduce(tensor, op=horovod.Average)` returns the mean over all ranks, `variable.assign(...)` stores it. The check plays your
# function on 2 ranks in one process, with and without momentum, and compares the weights; it needs no Horovod.

# %% labs={"id": "09.5"}
script = "scripts/local_sgd.py"
check("09.5", script)

# %% [markdown]
# The script trains a dense network on 2 ranks, one training for each k. **Predict:** how many times as many steps in a second does it
# take with k = 16 as with k = 1?

# %% labs={"id": "09.6"}
### BEGIN SOLUTION
faster_with_16 = 2.0
### END SOLUTION
predict("09.6", faster_with_16)

# %%
ks = (1, 16) if quick else (1, 4, 16, 64)
results = []
if devices.has("horovod") and answered("09.5"):
    options = ["--k", *ks, "--steps", 128 if quick else 256, "--repeats", 2 if quick else 4]
    job = jobs.run(script, *options, name="local_sgd", ranks=2, launcher="mpiexec")
    lines = [line for line in job.out.read_text().splitlines() if '{"k"' in line]
    results = [json.loads(line[line.index("{") :]) for line in lines]

# %%
by_k = {k: [result for result in results if result["k"] == k] for k in ks}
gain, rows = None, []
for k, trainings in by_k.items() if results else ():
    seconds = [training["step_seconds"] for training in trainings]
    gain = intervals.paired([training["step_seconds"] for training in by_k[1]], seconds)
    if k == 16:
        outcome("09.6", gain.value, gain.interval)
    span = "" if k == 1 else f" [{gain.interval[0]:.3g}, {gain.interval[1]:.3g}]"
    row = {
        "k": k,
        "means": trainings[0]["means"],
        "step": 1000 * float(np.mean(seconds)),
        "gain": f"{gain.value:.3g}{span}",
    }
    row["accuracy"] = float(np.mean([training["accuracy"] for training in trainings]))
    rows.append(row | {"identical": all(training["identical"] for training in trainings)})
headers = {"step": "step (ms), measured", "gain": "steps/s against k = 1", "identical": "weights identical at the end"}
tables.show(rows, ("k", "means", "step", "gain", "accuracy", "identical"), headers)

# %% [markdown]
# What is saved is the exchange: a step costs what computing costs, plus a k-th of an exchange. Behind the last mean all ranks hold one
# network.
#
# A network of `parameters` float32 weights trains for 512 steps with k = 128. How many times do the ranks exchange, and how many bytes of
# weights are that in all, for each rank?

# %% labs={"id": "09.7"}
parameters = 394_634
### BEGIN SOLUTION
exchanges = 512 // 128
bytes_in_all = exchanges * 4 * parameters
### END SOLUTION
check("09.7", exchanges, bytes_in_all, parameters)

# %% [markdown]
# ### What does it cost in accuracy?
#
# Eight workers, a small network in NumPy, 512 steps, each worker with its own shard of the digits. Either the digits were shuffled
# before they were divided, or they were sorted by label: then worker 0 has all zeros, and worker 7 all nines. The eight workers take
# turns in one process here; what they learn is real.
#
# With shuffled shards, accuracy is the same for k = 1 and k = 128, as you will see. **Predict** the accuracy on test images with *sorted*
# shards and k = 128 (guessing at random gives 0.1):

# %% labs={"id": "09.8"}
### BEGIN SOLUTION
accuracy_sorted = 0.8
### END SOLUTION
predict("09.8", accuracy_sorted)

# %%
of_seeds = {}
for order in ("shuffled", "sorted"):
    of_workers = trials.shards(8, order)
    of_seeds[f"{order} shards"] = {
        k: [trials.local_sgd(k, of_workers, steps=512, rate=0.2, seed=seed) for seed in seeds]
        for k in ((1, 128) if quick else (1, 4, 16, 64, 128))
    }
at_128 = of_seeds["sorted shards"][128]
outcome("09.8", np.mean(at_128), intervals.shares(at_128), how="simulated")

# %%
title = "local SGD, 8 workers, 512 steps"
plots.show(
    pictures.accuracy_by(of_seeds, xlabel="k: steps from one mean to the next", title=title, note=pictures.ONE_PROCESS)
)

# %% [markdown]
# Four exchanges in place of 512, and nothing lost: with shuffled shards. Why does a large k harm with sorted ones?
#
# - **a**: between two means each worker trains on its own classes only, and drifts away from the others
# - **b**: with a large k each worker takes fewer steps
# - **c**: sorted shards hold fewer images
# - **d**: the mean of weights is less exact when the labels differ

# %% labs={"id": "09.9"}
### BEGIN SOLUTION
why_sorted_loses = "a"
### END SOLUTION
check("09.9", why_sorted_loses)

# %% [markdown]
# What papers say, and they do not agree:
#
# | source | found |
# |---|---|
# | S. Stich, [1805.09767](https://arxiv.org/abs/1805.09767) | for convex problems: as few steps as synchronous SGD needs, with up to $\sqrt{T}$ times fewer exchanges in $T$ steps |
# | T. Lin and others, [1808.07217](https://arxiv.org/abs/1808.07217) | at equal computation local SGD generalises better than one large batch; best is to begin synchronously and exchange less often later |
# | J. Gonzalez Ortiz and others, [2110.08133](https://arxiv.org/abs/2110.08133) | at the scale of ImageNet local SGD is faster and *less accurate*: smaller experiments do not carry over; a slow momentum over the means helps |
#
# Yours is one of the smaller experiments.

# %% [markdown]
# ## What you take along
#
# - More workers divide the computing alone. Take a step apart before you add some.
# - Workers may exchange less often. What that costs depends on how alike their shards are.
#
# Next: `09b_large_batches_and_late_workers`.
