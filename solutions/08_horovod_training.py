# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Horovod: one training run in many processes
#
# **Time: 55 minutes, including 5 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `09_resnet152_scaling`), *everything*; *an afternoon* leaves this notebook out.
#
# With MirroredStrategy, one process controls all the devices of one machine. With Horovod, the *same program* runs many
# times, once for each device, on one machine or on hundreds. You see how these processes average a gradient, and write
# an optimizer that does it. Then you turn a training script into a Horovod program in six steps, measure it, and run it
# as a job. You hand in task **H1**.
#
# > **Why Horovod?** Everything that its processes do together is a line that you can read, change or leave out. New
# > projects use other tools (`docs/students/pytorch.md`): Horovod's latest release, 0.28.1, dates from June 2023.
#
# ## One program, n processes
#
# Here is a complete Horovod program:

# %%
print(open("scripts/who_am_i.py").read())

# %% [markdown]
# A **launcher** starts it n times. With `hvd.init()`, the n processes find each other. Then each process knows its
# **rank** (0 to n-1) and the **size**, n. **Predict:** how many lines are printed with 4 ranks?

# %% labs={"id": "horovod.1"}
from labs.checks import answered, check, outcome, predict

### BEGIN SOLUTION
lines_expected = 4
### END SOLUTION
predict("horovod.1", lines_expected)

# %%
from labs import devices, jobs

if devices.has("horovod"):
    job = jobs.run("scripts/who_am_i.py", name="who_am_i", ranks=4)
    print(job.printed)
    outcome("horovod.1", job.printed.count("I am rank"), how="counted")

# %% [markdown]
# The order of the lines varies. The launcher begins each line with its rank, as in `[1]`. The processes share nothing:
# each has its own memory, data and network.
#
# Launch it yourself, too, with two launchers. Open a terminal (*File*, *New*, *Terminal*), go to the folder
# `notebooks`, and type:
#
# ```
# uv run horovodrun --gloo -np 2 -H localhost:2 python scripts/who_am_i.py
# uv run mpiexec -n 2 python scripts/who_am_i.py
# ```
#
# ## Average a gradient
#
# In the next program, both ranks have a small network with the same weights. Each computes a gradient from its own half
# of 64 images, and `hvd.allreduce` averages it over all ranks:

# %%
print(open("scripts/average.py").read())

# %%
import re

gradients = "rank 0: +0.17451 before, rank 1: +0.05245 before"  # recorded on 2 cores
if devices.has("horovod"):
    gradients = jobs.run("scripts/average.py", name="average", ranks=2).printed
before = [float(re.search(rf"rank {rank}: (\S+) before", gradients)[1]) for rank in (0, 1)]
print(f"before the average: {before[0]:+.5f} on rank 0, {before[1]:+.5f} on rank 1")

# %% [markdown]
# What does each rank have after the average? And what is the gradient of all 64 images, computed in a single process?

# %% labs={"id": "horovod.2"}
### BEGIN SOLUTION
after = (before[0] + before[1]) / 2
of_all_images = after
### END SOLUTION
check("horovod.2", after, of_all_images, before)

# %%
if answered("horovod.2"):
    print(gradients)

# %% [markdown]
# After the average, every rank has the gradient of *all* the images, although it has read only its own half. (The
# shares must be equally large, or the images of the smaller one count more. MirroredStrategy gets there by a sum: each
# replica divides its loss by the *global* batch.)
#
# ## Your own optimizer
#
# Training needs little more than this average: all ranks begin with equal weights, and average their gradients in every
# step. You write both, in `scripts/own_optimizer.py`, where each rank starts with different weights.
#
# First, write `begin_equal(model)`: it sets all weights to the values of rank 0. `hvd.broadcast(tensor, root_rank=0)`
# returns rank 0's tensor on every rank; `tensor` may be a variable.

# %% labs={"id": "horovod.3"}
own_script = "scripts/own_optimizer.py"
check("horovod.3", own_script)

# %% [markdown]
# Then write `distributed(optimizer)`: it returns an optimizer with the same settings as the given one. The
# `apply(gradients, variables)` of the new optimizer first averages the gradients over all ranks. (Define a subclass of
# `type(optimizer)`, and create the new optimizer with its `from_config(optimizer.get_config())`.)
# `hvd.grouped_allreduce(tensors)` averages a list of tensors in one exchange. All ranks must call the same collectives
# (functions in which all ranks exchange data) in the same order.

# %% labs={"id": "horovod.4"}
check("horovod.4", own_script)

# %% [markdown]
# Run it on 2 ranks. For comparison, the kit's optimizer trains from the same weights on the same shares:

# %%
if answered("horovod.3", "horovod.4") and devices.has("horovod"):
    print(jobs.run(own_script, name="own_optimizer", ranks=2).printed)

# %% [markdown]
# Now leave out `begin_equal`. The gradients are still averaged, so all ranks take the same steps. **Predict** the
# largest difference between the ranks' weights after 20 steps, divided by the difference before (1 for unchanged, 0.5
# for half).

# %% labs={"id": "horovod.5"}
### BEGIN SOLUTION
difference_left = 0.5
### END SOLUTION
predict("horovod.5", difference_left)

# %%
if answered("horovod.3", "horovod.4") and devices.has("horovod"):
    said = jobs.run(own_script, "--no_begin", name="no_begin", ranks=2).printed
    print(said)
    apart, still_apart = re.search(r"weights: (\S+) before, (\S+) after", said).groups()
    outcome("horovod.5", float(still_apart) / float(apart))

# %% [markdown]
# Equal steps from different starting points end at different points. Both losses fall, and no error tells you that the
# averaged gradients belong to different networks. The kit's optimizer compares the weights of all ranks in its first
# step, and stops if they differ.
#
# ## Which rank runs where?
#
# On several machines (**nodes**), the launcher starts one process for each GPU of each node. Ranks are numbered node by
# node, beginning with node 0. The **local rank** starts again at 0 on each node. With 2 nodes of 4 GPUs each, on which
# node does rank 6 run, and what is its local rank?

# %% labs={"id": "horovod.6"}
### BEGIN SOLUTION
node_of_6, local_rank_of_6 = 1, 2
### END SOLUTION
check("horovod.6", node_of_6, local_rank_of_6)

# %%
from labs.show import plots, tables
from lessons.horovod_training import pictures

if answered("horovod.6"):
    plots.show(pictures.ranks(nodes=2, gpus=4))

# %% [markdown]
# `hvd.size()` counts *processes*, not GPUs. Each process must use its own device, and the local rank tells it which
# one. Otherwise the first process on a node would reserve nearly all the memory of all four GPUs, as TensorFlow does by
# default.
#
# ## Six steps
#
# Open `scripts/ResNet50_horovod.py`: the training script from notebook 05, adapted for Horovod, with six blanks. Fill
# in one blank, save the file, and check it here. Each check plays the script up to `fit`, as a single rank and as each
# of 6 ranks on 2 nodes. Besides what `who_am_i.py` uses, `labs.hvd` offers:
#
# | step | in `labs.hvd` | what it does |
# |---|---|---|
# | 4 | `hvd.DistributedOptimizer` | takes a Keras optimizer, and returns one that averages the gradients over all ranks |
# | 5 | `hvd.callbacks.BroadcastGlobalVariablesCallback` | takes a rank number, and copies the weights of that rank to all ranks before the first step |
# | 5 | `hvd.callbacks.MetricAverageCallback` | takes no argument; averages the metrics over all ranks after each epoch, and also the moving means and variances of batch normalisation |
#
# **1. Start.** Horovod must be started before anything asks it for a rank.

# %% labs={"id": "horovod.7"}
script = "scripts/ResNet50_horovod.py"
check("horovod.7", script)

# %% [markdown]
# **2. Pin.** `devices.pin` takes the local rank and the local size, and lets the process see only its own GPU (or
# core).

# %% labs={"id": "horovod.8"}
check("horovod.8", script)

# %% [markdown]
# **3. Shard.** All ranks have the sample numbers in the same order. Each reads its own share (notebook 07).

# %% labs={"id": "horovod.9"}
check("horovod.9", script)

# %% [markdown]
# **4. Scale and wrap.** Horovod does not scale the rate; your script does (0.01 for one rank). Horovod averages
# gradients only if the optimizer is wrapped.

# %% labs={"id": "horovod.10"}
check("horovod.10", script)

# %% [markdown]
# **5. Broadcast and average.** Each rank measures the loss and the accuracy only on its own share, so they must be
# averaged.

# %% labs={"id": "horovod.11"}
check("horovod.11", script)

# %% [markdown]
# **6. One log.** Only rank 0 prints and saves.

# %% labs={"id": "horovod.12"}
check("horovod.12", script)

# %% [markdown]
# How does this script differ from the one in notebook 05? Which differences do the six steps explain? (Printing
# and the record are left out.)

# %%
from lessons import compare

compare.scripts("scripts/ResNet50.py", script)

# %% [markdown]
# ## Predict, then launch
#
# Three runs take turns. The first two are on 1 rank, and on 2 ranks with the same batch *per rank*: **weak scaling**,
# as in notebook 05. **Predict** its speedup.

# %% labs={"id": "horovod.13"}
### BEGIN SOLUTION
weak_expected = 1.8
### END SOLUTION
predict("horovod.13", weak_expected)

# %% [markdown]
# The third run has 2 ranks and the same *global* batch as the run on 1 rank: **strong scaling**. Suppose that an epoch
# has 512 images, and that 1 rank takes 64 of them in a step. How many images does each of the 2 ranks process in a
# step, and how many steps does an epoch have? And how do the updates compare with those on 1 rank? (Look at step 4 of
# your script again.)
#
# - **a**: just as many updates, on the same images, at the same rate: the training is the same
# - **b**: half as many updates, each on twice as many images, at twice the rate
# - **c**: just as many updates, on the same images, at twice the rate
# - **d**: twice as many updates, each on half as many images, at the same rate

# %% labs={"id": "horovod.14"}
### BEGIN SOLUTION
images_of_a_rank = 64 // 2
steps_of_an_epoch = 512 // 64
its_updates = "c"
### END SOLUTION
check("horovod.14", images_of_a_rank, steps_of_an_epoch, its_updates)

# %% [markdown]
# So this run breaks the linear rule: it only measures the speed. **Predict** the speedup of strong scaling on 2 ranks.

# %% labs={"id": "horovod.15"}
### BEGIN SOLUTION
strong_expected = 1.7
### END SOLUTION
predict("horovod.15", strong_expected)

# %%
from labs import presets

plan = presets.choose()
sizes, quick = plan.arguments(), plan.name == "test"
ways = {f"ResNet50_horovod_w{n}": (n, n * plan.local_batch) for n in plan.workers}  # name: ranks, global batch
ways["ResNet50_horovod_strong_w2"] = 2, plan.local_batch
if quick:  # a test of this notebook measures nothing
    ways, sizes = {"ResNet50_horovod_w2": (2, 64)}, [*sizes, "--images", 64, "--epochs", 2]
launcher = "mpiexec" if not devices.gpus() and devices.cores() > 1 else "horovodrun"  # MPI is faster between cores
steps, turns = [f"horovod.{number}" for number in range(7, 13)], jobs.Turns()
if answered(*steps) and devices.has("horovod"):
    for name, (ranks, batch) in ways.items():
        turns.start(script, "--batch_size", batch, *sizes, name=name, ranks=ranks, launcher=launcher)
    turns.begin()
    print(f"Training in the background, started by {launcher}: {', '.join(ways)}")

# %% [markdown]
# ## As a job
#
# If your script is complete, it is training now, in the background. Meanwhile, write the batch script. On a cluster,
# `srun` takes the place of the launcher, and each rank is a **task**. Open `slurm/local/ResNet50_horovod.sh` (or the
# one in your site's folder). Fill in its blanks: one task for each GPU, the cores *of a task*, and the global batch of
# each run.

# %% labs={"id": "horovod.16"}
from labs.slurm import sites

batch_script = sites.script("ResNet50_horovod.sh")
check("horovod.16", batch_script)

# %% [markdown]
# ## Is it one network?
#
# Wait until the three runs have ended:

# %%
from labs import recorded, results

if turns.jobs:
    turns.wait()
own = bool(turns.jobs) and turns.state == "finished" and not quick
files = {name: jobs.folder() / f"{name}.json" for name in ways} if own else recorded.laptop_horovod()
if not own:
    print("You have no finished runs of your own, so recorded ones are used below.")

# %% [markdown]
# Each rank reports its core or GPU; after that, only rank 0 prints. Here are the first two epochs of the second run:

# %%
log = files["ResNet50_horovod_w2"].with_suffix(".out").read_text()
print(log.partition("Epoch 3/")[0].rpartition("\n")[0])  # whole lines only

# %% [markdown]
# At the end, the ranks gathered the checksums (SHA-256) of their weights and compared them. The record keeps the
# result:

# %%
results.load(files["ResNet50_horovod_w2"])[0].weights

# %% [markdown]
# Why must the trained weights be identical on all ranks, down to the last bit?
#
# - **a**: they need not be: nearly equal weights are good enough for an average
# - **b**: all ranks begin with the same weights and add the same averaged gradient in each step
# - **c**: rank 0 sends its weights to all the others after each epoch
# - **d**: the metrics are averaged over the ranks

# %% labs={"id": "horovod.17"}
### BEGIN SOLUTION
why_identical = "b"
### END SOLUTION
check("horovod.17", why_identical)

# %% [markdown]
# No rank controls the others. Rank 0 sends its weights only once, at the start; the gradients are averaged in every
# step. No gradient changes the moving means and variances of batch normalisation: these are identical only because
# `MetricAverageCallback` averages them.
#
# ## How much faster?

# %%
runs = results.load(files.values())
tables.scaling(runs)
weak, strong = runs[[*files].index("ResNet50_horovod_w2")], runs[-1]
outcome("horovod.13", weak.speedup.value, weak.speedup.interval, how=weak.kind)
outcome("horovod.15", strong.speedup.value, strong.speedup.interval, how=strong.kind)

# %%
plots.show(plots.scaling(runs[:-1]))

# %% [markdown]
# With strong scaling, an epoch has as many steps as on 1 rank, and each of them exchanges the whole gradient. With weak
# scaling, it has half as many, so it exchanges half as often; but its larger batch changes the training. Are the two
# epoch times different? Their ratio within the rounds tells you, with the interval of notebook 05:

# %%
from labs.results import intervals, metrics

counted, _ = metrics.undisturbed_rounds(strong, weak)
if len(counted) > 1:
    ratio = intervals.paired([strong.rounds[n] for n in counted], [weak.rounds[n] for n in counted])
    low, high = ratio.interval
    print(f"epoch of strong / weak scaling: {ratio.value:.2f} [{low:.2f}, {high:.2f}]")

# %% [markdown]
# Notebook 05 has the speedup with MirroredStrategy. You may compare the speedups, with their intervals, but not the
# seconds: these come from different studies.
#
# ## What counts is the global batch
#
# K ranks average their gradients, so an update uses the images of all of them: the global batch, K times the local one.
# You have two options:
#
# - **option 1**: keep the local batch. The global batch becomes K times as large, and you multiply the rate by K (the
#   linear rule).
# - **option 2**: divide the local batch by K. The global batch and the rate stay the same.
#
# Train a small network three times, from the same weights and with the images in the same order: on 1 rank, then on K
# ranks with each option. It has no batch normalisation, because that would depend on the local batch.

# %%
K = 2
experiments = {
    "1 rank x 32 images, rate 0.01": (1, 32, 0.01),
    f"{K} ranks x {32 // K}, rate 0.01 (option 2)": (K, 32, 0.01),
    f"{K} ranks x 32, rate {0.01 * K:.2f} (option 1)": (K, 32 * K, 0.01 * K),
}
small = ("-m", "lessons.horovod_training.experiment")
curves = {}
if devices.has("horovod"):
    for number, (name, (n, batch, rate)) in enumerate(experiments.items()):
        options = ["--images", 1024, "--epochs", 6, "--batch_size", batch, "--rate", rate]
        job = jobs.run(*small, *options, name=f"batch_{number}", ranks=n, env={"CUDA_VISIBLE_DEVICES": ""})
        curves[name] = job.record

# %%
if curves:
    plots.show(compare.losses(curves))

# %% [markdown]
# Which two curves coincide, and why?
#
# - **a**: 1 rank and option 1: the rate compensates for the batch
# - **b**: the two curves for several ranks: the number of ranks is the same
# - **c**: no two of them: each way of training gives its own curve
# - **d**: 1 rank and option 2: every update uses the same 32 images and the same rate

# %% labs={"id": "horovod.18"}
### BEGIN SOLUTION
same = "d"
### END SOLUTION
check("horovod.18", same)

# %%
if curves:
    one, option_2, option_1 = results.load(curves.values())
    difference = max(abs(a - b) for a, b in zip(one.loss, option_2.loss))
    print(f"1 rank and option 2, largest difference of their losses: {difference:.1e}")

# %% [markdown]
# The remaining difference is due to rounding, since the same numbers are added in a different order. Option 1 makes
# fewer updates, and each one goes further. After the same number of epochs, it is behind; after the same number of
# updates, it is not.
#
# ## Submit the job
#
# Submit the batch script. (Without SLURM, bash runs it on this machine; on the site `local`, the runs are short.)

# %%
site = sites.load()
short = ["--images", 256, "--epochs", 2, "--repeats", 1] if site.preset != "course" else []
batch_job = None
if answered("horovod.16", *steps) and not quick:
    batch_job = jobs.run(batch_script, *short, name="ResNet50_horovod", site=site.id)

# %%
if batch_job:
    print(*[line for line in batch_job.printed.splitlines() if "Rank " in line], sep="\n")
    tables.scaling(results.load(batch_job.records))

# %% [markdown]
# These short runs came one after the other, once each, so their speedup may be far off: for H1, the speedups from above
# count.
#
# ## H1
#
# Hand in your `ResNet50_horovod.py` and `ResNet50_horovod.sh`, and describe your runs in 6 to 12 sentences:
#
# - how you launched them: the launcher (printed when they started), the number of ranks and where they ran, the local
#   batch and the rate;
# - the evidence that all ranks trained the same network, and what would make their weights differ;
# - the speedups of weak and of strong scaling with their intervals, next to that of MirroredStrategy, and what the
#   intervals cannot decide;
# - whether weak and strong scaling differ in your runs, and why they should: what a step computes and exchanges in
#   each.

# %% [markdown] labs={"id": "H1", "kind": "answer"}
# ### H1: your answer
# ### BEGIN SOLUTION
# I started scripts/ResNet50_horovod.py with `mpiexec -n N` (by `jobs.Turns`, in turns) on 1 and 2 ranks, and
# slurm/local/ResNet50_horovod.sh as a job, in which `srun` starts the ranks. Each rank was pinned to one core, and the
# rate was 0.01 x ranks. The batch per rank was fixed in weak scaling; in strong scaling, the global batch was. The .out
# file shows `Rank 0 of 2 on core ..` and `Rank 1 of 2 on core ..`, and then a single log, written by rank 0. The record
# of the run on 2 ranks is the evidence that the ranks trained one network: it has weights.identical = true, and the
# same SHA-256 for all ranks, although the ranks drew different weights at the start. The broadcast made the weights
# equal, the averaged gradients kept them equal, and MetricAverageCallback averaged the moving statistics of batch
# normalisation. Without any one of the three, the same comparison gives false. The table above gives each speedup with
# its interval; the table of notebook 05 gives that of MirroredStrategy. Weak and strong scaling come from the same
# rounds. In strong scaling, each rank computes only half as long in a step, but a step still exchanges the whole
# gradient of 94 MB, so the exchange is a larger share of it; in weak scaling, an epoch has half as many steps and
# exchanges. The runs with MirroredStrategy belong to another study, so I compare only the speedups, and do not claim
# that they differ.
# ### END SOLUTION

# %% [markdown]
# Next: `09_resnet152_scaling`.
