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
# **Time: 65 minutes, including 5 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `09_resnet152_scaling`), *everything*; *an afternoon* leaves this notebook out.
#
# With MirroredStrategy, one process controls all the devices of one machine. Horovod works the other way round: the
# *same program* runs many times, once for each device, on one machine or on hundreds. You see how these processes
# average a gradient, and write an optimizer that does it. Then you turn a training script into a Horovod program in six
# steps, measure it, and run it as a job. You hand in task **H1**.
#
# > **Why Horovod?** In its programs, everything that the processes do together is a line that you can read, change or
# > leave out. For new projects, other tools have taken its place (`docs/students/pytorch.md`): Horovod's latest release,
# > 0.28.1, dates from June 2023. TensorFlow's own strategy for several machines, `MultiWorkerMirroredStrategy`, fails
# > with Keras 3 in the first step of `fit` ([Keras' issue 20585](https://github.com/keras-team/keras/issues/20585)).

# %%
from labs import devices, jobs, presets
from labs.checks import answered, check, outcome, predict

plan = presets.choose()
quick = plan.name == "test"
unit = "GPU" if devices.gpus() else "CPU core"
print(f"preset {plan.name}; a rank computes on one {unit}, and this machine has {devices.cores()} cores")

# %% [markdown]
# ## One program, n processes
#
# Here is a complete Horovod program:

# %%
print(open("scripts/who_am_i.py").read())

# %% [markdown]
# A **launcher** starts it n times. With `hvd.init()`, the n processes find each other. From then on, each process knows
# its **rank** (0 to n-1) and the **size**, n. **Predict:** the program contains a single `print`. How many lines are
# printed with 4 ranks?

# %% labs={"id": "horovod.1"}
### BEGIN SOLUTION
lines_expected = 4
### END SOLUTION
predict("horovod.1", lines_expected)

# %%
if devices.has("horovod"):
    for n in (2,) if quick else (2, 4):
        job = jobs.run("scripts/who_am_i.py", name=f"who_am_i_{n}", ranks=n)
        print(job.out.read_text().replace("<stdout>:", " "))
    outcome("horovod.1", job.out.read_text().count("I am rank") if n == 4 else None, how="counted")

# %% [markdown]
# Every process prints one line, and the order varies. The launcher begins each line with its rank, as in `[1]`. The
# processes share nothing: each has its own memory, its own data and its own network.
#
# Launch it yourself, too. Open a terminal (*File*, *New*, *Terminal*), go to the folder `notebooks`, and type each of
# these commands. They use two launchers:
#
# ```
# uv run horovodrun --gloo -np 2 -H localhost:2 python scripts/who_am_i.py
# uv run mpiexec -n 2 python scripts/who_am_i.py
# ```
#
# ## Average a gradient
#
# In the next program, both ranks have a small network with the same weights. Each rank computes a gradient from its own
# half of 64 images. Then `hvd.allreduce` averages it over all ranks:

# %%
print(open("scripts/average.py").read())

# %%
one_gradient = None
if devices.has("horovod"):
    one_gradient = jobs.run("scripts/average.py", name="average", ranks=2)
    said = one_gradient.out.read_text().replace("<stdout>:", " ")
else:
    said = "rank 0: +0.17451 before, rank 1: +0.05245 before"  # recorded on 2 cores
before = [float(said.partition(f"rank {rank}: ")[2].split()[0]) for rank in (0, 1)]
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
if answered("horovod.2") and one_gradient:
    print(said)

# %% [markdown]
# After the average, every rank has the gradient of *all* the images, although it has read only its own half. The shares
# must be equally large for this: otherwise, the images of the smaller share count more.
#
# ## Your own optimizer
#
# Training needs little more than this average: all ranks begin with equal weights, and average their gradients in every
# step. You write both. Open `scripts/own_optimizer.py`: two functions are blank, and the loop below them uses both.
# Each rank starts with different weights, one layer is frozen (it is not trained), and one layer is used twice.
#
# First, write `begin_equal(model)`: it sets all weights to the values of rank 0. `hvd.broadcast(tensor, root_rank=0)`
# returns rank 0's tensor on every rank.

# %% labs={"id": "horovod.3"}
own_script = "scripts/own_optimizer.py"
check("horovod.3", own_script)

# %% [markdown]
# Then write `distributed(optimizer)`: it returns an optimizer with the same settings as the given one. The
# `apply(gradients, variables)` of the new optimizer first averages the gradients over all ranks.
# `hvd.grouped_allreduce(tensors)` averages a list of tensors in one exchange. All ranks must call the same collectives
# (functions in which all ranks exchange data) in the same order.

# %% labs={"id": "horovod.4"}
check("horovod.4", own_script)

# %% [markdown]
# Run it on 2 ranks. For comparison, the kit's optimizer trains from the same weights on the same shares:

# %%
if answered("horovod.3", "horovod.4") and devices.has("horovod"):
    job = jobs.run(own_script, name="own_optimizer", ranks=2)
    print(job.out.read_text().replace("<stdout>:", " "))

# %% [markdown]
# Now break it: run the same training without `begin_equal`. The gradients are still averaged, so all ranks take the
# same steps. **Predict** how the largest difference between the ranks' weights changes over 20 steps: give the
# difference afterwards divided by the difference before (1 for unchanged, 0.5 for half).

# %% labs={"id": "horovod.5"}
### BEGIN SOLUTION
difference_left = 0.5
### END SOLUTION
predict("horovod.5", difference_left)

# %%
if answered("horovod.3", "horovod.4") and devices.has("horovod"):
    job = jobs.run(own_script, "--no_begin", name="no_begin", ranks=2)
    said = job.out.read_text().replace("<stdout>:", " ")
    print(said)
    apart, still_apart = (float(said.partition(word)[0].split()[-1]) for word in (" before,", " after "))
    outcome("horovod.5", still_apart / apart)

# %% [markdown]
# Equal steps from different starting points end at different points, and nothing ever brings the ranks together. Both
# losses fall, and no error tells you that the averaged gradients belong to different networks. The kit's own optimizer
# compares the weights of all ranks in its first step, and stops if they differ.
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
# `hvd.size()` counts *processes*. Horovod does not look at GPUs: with 8 processes on one GPU, the size is still 8. Your
# program must make sure that each process uses its own device, and the local rank tells it which one.
#
# On GPUs, the processes would otherwise get in each other's way: TensorFlow reserves nearly all the memory of *every*
# GPU that it sees. The first process on a node would reserve all four GPUs and leave nothing for the others.
# `devices.pin`, which you meet in step 2, lets a process see only one GPU.
#
# ## Six steps
#
# Open `scripts/ResNet50_horovod.py`. It is the training script from notebook 05, adapted for Horovod, with six
# blanks. Fill in one blank, save the file, and check it here. Each check runs the script up to its call to `fit`, as
# a single rank and as each of 6 ranks on 2 nodes, and examines what each rank does. (It simulates Horovod for this.)
# `labs.hvd` offers:
#
# | step | in `labs.hvd` | what it does |
# |---|---|---|
# | 1 | `hvd.init` | starts Horovod |
# | 2, 3, 6 | `hvd.rank`, `hvd.size`, `hvd.local_rank`, `hvd.local_size` | functions that return the four numbers |
# | 4 | `hvd.DistributedOptimizer` | takes a Keras optimizer, and returns one that averages the gradients over all ranks before it uses them |
# | 5 | `hvd.callbacks.BroadcastGlobalVariablesCallback` | takes a rank number, and copies the weights of that rank to all ranks before the first step |
# | 5 | `hvd.callbacks.MetricAverageCallback` | takes no argument; at the end of each epoch, it averages the metrics over all ranks, and the moving means and variances of batch normalisation |
#
# **1. Start.** Horovod must be started before anything asks it for a rank.

# %% labs={"id": "horovod.7"}
script = "scripts/ResNet50_horovod.py"
check("horovod.7", script)

# %% [markdown]
# **2. Pin.** Each process uses one device of its node. `devices.pin` takes the index of a GPU (or core) on this node,
# and the number of processes on the node.

# %% labs={"id": "horovod.8"}
check("horovod.8", script)

# %% [markdown]
# **3. Shard.** All ranks have the sample numbers in the same order. Each rank reads its own share of them (notebook
# 07).

# %% labs={"id": "horovod.9"}
check("horovod.9", script)

# %% [markdown]
# **4. Scale and wrap.** Horovod does not scale the rate; your script does (0.01 for one rank). Horovod averages
# gradients only if the optimizer is wrapped.

# %% labs={"id": "horovod.10"}
check("horovod.10", script)

# %% [markdown]
# **5. Broadcast and average.** At the start, all ranks copy the weights of rank 0. At the end of each epoch, they
# average the loss and the accuracy, since each rank has measured them only on its own share.

# %% labs={"id": "horovod.11"}
check("horovod.11", script)

# %% [markdown]
# **6. One log.** Only rank 0 prints and saves.

# %% labs={"id": "horovod.12"}
check("horovod.12", script)

# %% [markdown]
# How does this script differ from the one in notebook 05? (The comparison leaves out printing and the record.) Which of
# the six steps explains each difference?

# %%
from lessons import compare

compare.scripts("scripts/ResNet50.py", script)

# %% [markdown]
# ## Predict, then launch
#
# You train with this script in three ways, which take turns: first on 1 rank, then on 2 ranks with the same batch *per
# rank*. This is **weak scaling**, as in notebook 05. **Predict** its speedup.

# %% labs={"id": "horovod.13"}
### BEGIN SOLUTION
weak_expected = 1.8
### END SOLUTION
predict("horovod.13", weak_expected)

# %% [markdown]
# The third run has 2 ranks and the same *global* batch as the run on 1 rank. This is **strong scaling**. Suppose that an
# epoch has 512 images, and that the run on 1 rank takes 64 of them in a step. With strong scaling, how many images does
# each of the 2 ranks process in a step, and how many steps does an epoch have? And how do the updates compare with those
# on 1 rank? (Look at step 4 of your script again.)
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
# **Predict** the speedup of strong scaling on 2 ranks. (In each step, a rank computes for half as long, but exchanges
# just as much.)

# %% labs={"id": "horovod.15"}
### BEGIN SOLUTION
strong_expected = 1.7
### END SOLUTION
predict("horovod.15", strong_expected)

# %%
ways = {f"ResNet50_horovod_w{n}": (n, n * plan.local_batch) for n in plan.workers}  # name: ranks, global batch
ways["ResNet50_horovod_strong_w2"] = 2, plan.local_batch
sizes = plan.arguments()
if quick:  # a test of this notebook measures nothing
    ways, sizes = {"ResNet50_horovod_w2": (2, 64)}, [*sizes, "--images", 64, "--epochs", 2]
launcher = "mpiexec" if not devices.gpus() and devices.cores() > 1 else "horovodrun"  # MPI is faster between cores
steps, turns = [f"horovod.{number}" for number in range(7, 13)], jobs.Turns()
if answered(*steps) and devices.has("horovod"):
    for name, (ranks, batch) in ways.items():
        turns.start(script, "--batch_size", batch, *sizes, name=name, ranks=ranks, launcher=launcher)
    turns.begin()

# %% [markdown]
# ## As a job
#
# If your script is complete, the runs are training now, in the background. Meanwhile, write the batch script. On a cluster, SLURM starts the ranks:
# `srun` takes the place of the launcher, and each rank is a **task**. Open `slurm/local/ResNet50_horovod.sh` (or the one
# in your site's folder). It trains on 1 rank, then on 2, and so on up to the number of GPUs in a node. Fill in its
# blanks: one task for each GPU, the cores *of a task*, and the global batch of each run. (Notebook 20 does the same on
# several nodes.)

# %% labs={"id": "horovod.16"}
from labs.slurm import sites

batch_script = sites.script("ResNet50_horovod.sh")
check("horovod.16", batch_script)

# %% [markdown]
# ## Is it one network?
#
# Now wait until the three runs have ended:

# %%
from labs import recorded, results

if turns.jobs:
    turns.wait()
own = bool(turns.jobs) and turns.state == "finished" and not quick
files = {name: jobs.folder() / f"{name}.json" for name in ways} if own else recorded.laptop_horovod()
if not own:
    print("You have no finished runs of your own, so recorded ones are used below.")

# %% [markdown]
# Each rank reports its core or GPU. After that, only rank 0 prints. This is the log of the second run, up to the end of
# the second epoch:

# %%
log = files["ResNet50_horovod_w2"].with_suffix(".out").read_text()
print(log.partition("Epoch 3/")[0].rpartition("\n")[0])  # whole lines only

# %% [markdown]
# At the end of the run, the ranks gathered the checksums (SHA-256) of their weights and compared them. The record keeps
# the result:

# %%
results.load(files["ResNet50_horovod_w2"])[0].weights

# %% [markdown]
# Why must the weights that the gradients change be identical on all ranks, down to the last bit?
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
# No rank controls the others. Rank 0 sends its weights once, at the start; after that, it trains like all the others,
# and also prints and saves. The gradients are averaged over all ranks in every step. No gradient changes the moving
# means and variances of batch normalisation: each rank computes them from its own images. They are identical at the end
# of an epoch only because `MetricAverageCallback` averages them.
#
# ## How much faster?
#
# Both speedups come from the same rounds. The table has its own line for the MirroredStrategy run of notebook 05: yours
# if its settings match, otherwise a recorded one.

# %%
from labs.measure import study

mirrored = [jobs.folder() / f"ResNet50_w{n}.json" for n in (1, 2)]
fits = [
    study.reusable(file, study.configuration(plan, "ResNet50V2", n, "mirrored")) for n, file in enumerate(mirrored, 1)
]
if not own or not all(fits):
    mirrored = [file.with_suffix(".json") for file in recorded.laptop()]
    print("The runs with MirroredStrategy are recorded.")
runs = results.load([*mirrored, *files.values()])
tables.scaling(runs)
weak, strong = runs[[*files].index("ResNet50_horovod_w2") - len(files)], runs[-1]
outcome("horovod.13", weak.speedup.value, weak.speedup.interval, how=weak.kind)
outcome("horovod.15", strong.speedup.value, strong.speedup.interval, how=strong.kind)

# %%
plots.show(plots.scaling(runs[:-1]))

# %% [markdown]
# With strong scaling, an epoch has as many steps as on 1 rank, and each of them exchanges the whole gradient. With weak
# scaling, it has half as many, so the same exchange is paid for half as often. On many ranks, the share of a rank
# becomes so small that strong scaling stops paying off; weak scaling then changes the training instead, since its batch
# grows.
#
# The runs of notebook 05 belong to another study, so do not compare their seconds with these. Each speedup is a ratio of
# times from the same rounds, so you may compare the speedups, with their intervals. To find out whether two speedups
# really differ, you need an interval for *their* ratio, as in notebook 10.
#
# ## What counts is the effective batch
#
# K ranks average their gradients, so an update uses the images of all of them. The **effective batch** is K times the
# local batch. With K ranks, you have two options:
#
# - **option 1**: keep the local batch. The effective batch becomes K times as large, and you scale the rate up.
# - **option 2**: divide the local batch by K. The effective batch and the rate stay the same.
#
# With the linear rule, you multiply the rate by K (notebook 04). Now train the small network three times, starting from
# the same weights and with the images in the same order: once on 1 rank, and then on several ranks, once with each of
# the two options. The network has no batch normalisation, because that would depend on the local batch.

# %%
K = 2 if quick else 4
experiments = {
    "1 rank x 32 images, rate 0.01": (1, 32, 0.01),
    f"{K} ranks x {32 // K}, rate 0.01 (option 2)": (K, 32, 0.01),
    f"{K} ranks x 32, rate {0.01 * K:.2f} (option 1)": (K, 32 * K, 0.01 * K),
}
small = ("-m", "lessons.horovod_training.experiment")
curves = {}
if devices.has("horovod"):
    for number, (name, (n, batch, rate)) in enumerate(experiments.items()):
        options = ["--images", 512 if quick else 1024, "--epochs", 6, "--batch_size", batch, "--rate", rate]
        job = jobs.run(*small, *options, name=f"batch_{number}", ranks=n, env={"CUDA_VISIBLE_DEVICES": ""})
        curves[name] = job.record

# %%
if devices.has("horovod"):
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
if devices.has("horovod"):
    one, option_2, option_1 = results.load(curves.values())
    print("oversubscribed:", [run.oversubscribed for run in (one, option_2, option_1)])
    difference = max(abs(a - b) for a, b in zip(one.loss, option_2.loss))
    print(f"1 rank and option 2, largest difference of their losses: {difference:.1e}")
    assert difference < 1e-3

# %% [markdown]
# The remaining difference is due to rounding, since the same numbers are added in a different order. Option 1 trains
# differently: it makes fewer updates, and each one goes further. After the same number of epochs, it is behind; after
# the same number of updates, it is not. With batch normalisation, the curves of 1 rank and option 2 would be close, but
# they would not coincide.
#
# ## Submit the job
#
# Now submit the batch script. Where there is no SLURM, bash runs it on this machine. On the practice site, the
# runs are short.

# %%
site = sites.load()
short = ["--images", 256, "--epochs", 2, "--repeats", 1] if site.preset != "course" else []
batch_job = None
if answered("horovod.16", *steps) and not quick:
    batch_job = jobs.run(batch_script, *short, name="ResNet50_horovod", site=site.id)

# %%
if batch_job:
    text = batch_job.out.read_text().replace("<stdout>:", " ")
    print(*[line for line in text.split("\n") if "Rank " in line], sep="\n")
    tables.scaling(results.load(batch_job.records))

# %% [markdown]
# Every rank of each run reported its worker. These runs came one after the other, once each: for H1, the speedups from
# above count.
#
# ## H1
#
# Hand in your `ResNet50_horovod.py` and `ResNet50_horovod.sh`, and describe your runs in 6 to 12 sentences:
#
# - how you launched them: the command, the number of ranks and where they ran, the local batch and the rate;
# - the evidence that all ranks trained the same network, and what would make their weights differ;
# - the speedups of weak and of strong scaling with their intervals, next to that of MirroredStrategy, and what the
#   intervals cannot decide;
# - why weak and strong scaling differ: what a step computes and what it exchanges in each.

# %% [markdown] labs={"id": "H1", "kind": "answer"}
# ### H1: your answer
# ### BEGIN SOLUTION
# I started scripts/ResNet50_horovod.py with `mpiexec -n N` (by `jobs.Turns`, in turns) on 1 and 2 ranks, and
# slurm/local/ResNet50_horovod.sh as a job, in which `srun` starts the ranks. Each rank was pinned to one core, and the
# rate was 0.01 x ranks. The batch per rank was fixed in weak scaling; in strong scaling, the global batch was. The .out
# file shows `Rank 0 of 2 on core ..` and `Rank 1 of 2 on core ..`, and then a single log, written by rank 0. The record
# of the run on 2 ranks is the evidence that the ranks trained one network: it has weights.identical = true, and the same
# SHA-256 for all ranks, although the ranks drew different weights at the start. The broadcast made the weights equal,
# the averaged gradients kept them equal, and MetricAverageCallback averaged the moving statistics of batch
# normalisation. Without any one of the three, the same comparison gives false. The table above gives each speedup with
# its interval. Weak and strong scaling come from the same rounds. In strong scaling, each rank computes only half as
# long in a step, but a step still exchanges the whole gradient of 94 MB, so the exchange is a larger share of it; in
# weak scaling, an epoch has half as many steps and exchanges. The runs with MirroredStrategy belong to another study, so
# I compare only the speedups, and do not claim that they differ.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# - One program runs as K processes. The rank, local rank and size tell each process what to do.
# - Averaged gradients of equal shares are the gradient of the whole batch. With equal weights at the start, all ranks
#   train one network.
# - There are six steps: start, pin, shard, scale and wrap, broadcast and average, print once.
# - Compare the weights of all ranks: no error tells you when the averaging is missing.
# - Weak scaling exchanges less often, and changes the training; strong scaling divides the same batch.
#
# Next: `09_resnet152_scaling`.
