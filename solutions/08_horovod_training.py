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
# **Time: 80 minutes, including 4 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `09_resnet152_scaling`), *everything*; *an afternoon* leaves this notebook out.
#
# With MirroredStrategy, one process controls all the devices of one machine. Horovod works the other way round: the
# *same program* runs many times, once for each device, on one machine or on hundreds. You turn a script into such a
# program in six steps, launch it, prove that all processes train the same network, and look at what they wait for. You
# hand in task **H1**. In an optional part at the end, which takes about 40 minutes more, you build the averaging
# yourself.
#
# TensorFlow also has a strategy for several machines: `MultiWorkerMirroredStrategy`. With Keras 3, its `fit` fails in
# the first step ([Keras' issue 20585](https://github.com/keras-team/keras/issues/20585)), so this course uses Horovod
# for several machines.
#
# > **Why still use Horovod?** It is hardly being developed any more. Its latest release, 0.28.1, dates from June 2023,
# > and a change that would let it build with TensorFlow 2.20 has been waiting since 2025
# > ([4302](https://github.com/horovod/horovod/pull/4302)). PyTorch Lightning removed Horovod in 2022
# > ([16150](https://github.com/Lightning-AI/pytorch-lightning/pull/16150)), and Ray had removed it by May 2025
# > ([49454](https://github.com/ray-project/ray/issues/49454)). DeePMD-kit stopped testing it in December 2025
# > ([5079](https://github.com/deepmodeling/deepmd-kit/pull/5079)). The Databricks runtimes after 15.4 LTS come
# > [without it](https://learn.microsoft.com/en-us/azure/databricks/archive/machine-learning/train-model/horovod-runner-examples).
# > (All of these pages were read in November 2026.) For a new project, use what your framework offers:
# > `DistributedDataParallel` (DDP) or FSDP in PyTorch, or sharded arrays in JAX.
# >
# > What you learn here also applies there: ranks, a share of the samples for each rank, identical weights at the start,
# > gradients averaged in every step, and a rate that fits the global batch. DDP needs all of these. FSDP also divides
# > the weights and the optimizer state among the ranks. In JAX, you specify how arrays are divided, and the compiler
# > adds the communication. Horovod is still a good teacher: each of these points is a line in your script, and you can leave
# > it out to see what breaks.

# %%
import json

from labs import devices, jobs, models, presets, recorded, results
from labs.checks import answered, check, outcome, predict
from labs.measure import study
from labs.show import plots, tables
from lessons import compare, timeline, timelines
from lessons.horovod_training import pictures

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
        print(job.out.read_text().replace("<stdout>:", " "))  # as mpiexec marks its lines
    outcome("horovod.1", job.out.read_text().count("I am rank") if n == 4 else None, how="counted")

# %% [markdown]
# Every process prints one line, and the order varies. In this notebook, each line begins with its rank, as in `[1]`.
# The processes share nothing: each has its own memory, its own data and its own network.
#
# On several machines (**nodes**), the launcher starts one process for each GPU of each node, K in total:
#
# $$ K = \text{nodes} \times \text{tasks per node} . $$
#
# What is K on 2 nodes with 4 GPUs each?

# %% labs={"id": "horovod.2"}
### BEGIN SOLUTION
ranks_in_all = 2 * 4
### END SOLUTION
check("horovod.2", ranks_in_all)

# %% [markdown]
# Ranks are numbered node by node, beginning with node 0. The **local rank** starts again at 0 on each node. On which
# node does rank 6 of this job run, and what is its local rank?

# %% labs={"id": "horovod.3"}
### BEGIN SOLUTION
node_of_6, local_rank_of_6 = 1, 2
### END SOLUTION
check("horovod.3", node_of_6, local_rank_of_6)

# %% [markdown]
# The picture shows all the processes, with the four numbers that each of them can ask for: rank, size, local rank and
# local size.

# %%
if answered("horovod.2", "horovod.3"):
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
# For the six steps, `labs.hvd` offers:
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

# %% labs={"id": "horovod.4"}
script = "scripts/ResNet50_horovod.py"
check("horovod.4", script)

# %% [markdown]
# **2. Pin.** Each process uses one device of its node. `devices.pin` takes the index of a GPU (or core) on this node,
# and the number of processes on the node.

# %% labs={"id": "horovod.5"}
check("horovod.5", script)

# %% [markdown]
# **3. Shard.** All ranks have the sample numbers in the same order. Each rank reads its own share of them (notebook
# 07).

# %% labs={"id": "horovod.6"}
check("horovod.6", script)

# %% [markdown]
# **4. Scale and wrap.** Horovod does not scale the rate; your script does (0.01 for one rank). Horovod averages
# gradients only if the optimizer is wrapped.

# %% labs={"id": "horovod.7"}
check("horovod.7", script)

# %% [markdown]
# **5. Broadcast and average.** At the start, all ranks copy the weights of rank 0. At the end of each epoch, they
# average the loss and the accuracy, since each rank has measured them only on its own share.

# %% labs={"id": "horovod.8"}
check("horovod.8", script)

# %% [markdown]
# **6. One log.** Only rank 0 prints and saves.

# %% labs={"id": "horovod.9"}
check("horovod.9", script)

# %% [markdown]
# How does this script differ from the one in notebook 05? The comparison leaves out printing and the record. Look at
# the lines about the network, the loss and the data: which of them differ, and which of the six steps explains each
# difference?

# %%
compare.scripts("scripts/ResNet50.py", script)

# %% [markdown]
# If you know PyTorch, note that its `DistributedDataParallel` needs the same six steps; `docs/students/pytorch.md`
# compares the names. This is the PyTorch version of your script, marked with the step numbers (it is not run here).
# `torchrun --nproc-per-node=2 train.py` starts it on each node:
#
# ```python
# dist.init_process_group("nccl")                                             # 1  (dist: torch.distributed)
# here, size = int(os.environ["LOCAL_RANK"]), dist.get_world_size()
# torch.cuda.set_device(here)                                                 # 2
# mine = DistributedSampler(dataset, seed=args.seed, drop_last=True)          # 3
# train = DataLoader(dataset, args.batch_size // size, sampler=mine)
# model = DistributedDataParallel(network.cuda(), device_ids=[here])          # 4 averages; 5 rank 0's weights for all
# optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * size)             # 4 you scale the rate
# for epoch in range(args.epochs):
#     mine.set_epoch(epoch)                                                   # another order in each epoch
#     for images, labels in train:
#         optimizer.zero_grad()
#         loss = cross_entropy(model(images.cuda()), labels.cuda())
#         loss.backward()                                                     # gradients are exchanged while this runs
#         optimizer.step()
#     last = loss.detach()
#     dist.all_reduce(last, op=dist.ReduceOp.AVG)                             # 5 you average metrics: here the last loss
#     if dist.get_rank() == 0:                                                # 6
#         print(epoch, last.item())
# ```
#
# There are two differences: you wrap the model instead of the optimizer, and you tell the sampler the epoch number.
#
# ## Launch
#
# The batch per rank is fixed, as in notebook 05. **Predict** the speedup on 2 ranks, as a number. (In notebook 05, you
# measured the speedup of MirroredStrategy on 2 workers. Here, each rank has its own process and its own input
# pipeline.)

# %% labs={"id": "horovod.10"}
### BEGIN SOLUTION
speedup_expected = 1.8
### END SOLUTION
predict("horovod.10", speedup_expected)

# %%
counts, sizes = plan.workers, plan.arguments()
if quick:
    counts, sizes = (2,), [*sizes, "--images", 64, "--epochs", 2]
# MPI is the faster one as long as every rank has a core of its own.
launcher = "mpiexec" if not devices.gpus() and max(counts) <= devices.cores() else "horovodrun"
turns = jobs.Turns()
if answered("horovod.4", "horovod.5", "horovod.6", "horovod.7", "horovod.8", "horovod.9") and devices.has("horovod"):
    with turns:  # an epoch on 1 rank, an epoch on 2, as in notebook 05
        for n in counts:
            arguments = ["--batch_size", n * plan.local_batch, *sizes]
            turns.start(script, *arguments, name=f"ResNet50_horovod_w{n}", ranks=n, launcher=launcher)
own = bool(turns.jobs) and turns.state == "finished"

# %%
on_two = jobs.folder() / "ResNet50_horovod_w2.out"
files = [on_two.with_name(f"ResNet50_horovod_w{n}.out") for n in counts]
if not own or quick:
    files = recorded.laptop_horovod()
    print("You have no finished runs on 1 and 2 ranks, so recorded ones are used below.")
if not own:
    on_two = files[1]

# %% [markdown]
# You can also train on 2 ranks in a terminal, in this folder, with one of the two commands below. They use the script's
# own defaults, all 1797 digits and 5 epochs; the options of your run are in its record, under `command`. `horovodrun`
# puts `[1]<stdout>:` before each line of rank 1. `mpiexec` puts nothing there, unless you add `-prepend-rank`.
#
# ```
# uv run horovodrun --gloo -np 2 -H localhost:2 python scripts/ResNet50_horovod.py --batch_size 128
# uv run mpiexec -n 2 python scripts/ResNet50_horovod.py --batch_size 128
# ```
#
# On several nodes, SLURM's `srun` starts one task for each GPU, and the script stays the same. You do that in notebook
# 20.
#
# Each rank reports its core or GPU. After that, only rank 0 prints. This is the log up to the end of the second epoch:

# %%
print(on_two.read_text().partition("Epoch 3/")[0].rpartition("\n")[0])  # whole lines only

# %% [markdown]
# ## Two ranks with the batch of one
#
# `--batch_size` is the global batch. For 2 ranks it was doubled, so the **local** batch, which is the batch of one
# rank, stayed the same. Here are both runs, as their records describe them:

# %%
run_1, run_2 = results.load([file.with_suffix(".json") for file in files[:2]])
tables.show(
    [
        {
            "ranks": run.workers,
            "images per step, all ranks": run.global_batch,
            "images per step, each rank": run.configuration.local_batch,
            "steps in an epoch": run.steps,
            "learning rate": run.configuration.learning_rate,
        }
        for run in (run_1, run_2)
    ]
)

# %% [markdown]
# Now consider a run that you have not done: 2 ranks again, but with the `--batch_size` of the run on **1** rank. How
# many images does one rank process in a step, and how many steps does an epoch have? And how do the updates of this run
# compare with those of the run on 1 rank? (Look at step 4 of your script again.)
#
# - **a**: just as many updates, on the same images, at the same rate: the training is the same
# - **b**: half as many updates, each on twice as many images, at twice the rate
# - **c**: just as many updates, on the same images, at twice the rate
# - **d**: twice as many updates, each on half as many images, at the same rate

# %% labs={"id": "horovod.11"}
### BEGIN SOLUTION
images_of_a_rank = run_1.global_batch // 2
steps_of_an_epoch = run_1.steps
its_updates = "c"
### END SOLUTION
check("horovod.11", images_of_a_rank, steps_of_an_epoch, its_updates, run_1, run_2)

# %% [markdown]
# The global batch determines which images an update uses, and so how many updates an epoch has. A rate of 0.01 times
# the number of ranks, as in your script, is right only as long as the local batch stays the same. With a fixed global
# batch, each of 2 ranks computes for half as long in a step, but exchanges as much data as before, so there is less to
# gain. Further down, you train in both ways and compare the losses.
#
# ## Is it one network?
#
# At the end of the run, the ranks compared their weights bit by bit. The record keeps the result, together with the
# checksum (SHA-256) of the weights:

# %%
results.load(on_two.with_suffix(".json"))[0].weights

# %% [markdown]
# Why must the weights that the gradients change be identical on all ranks, down to the last bit?
#
# - **a**: they need not be: nearly equal weights are good enough for an average
# - **b**: all ranks begin with the same weights and add the same averaged gradient in each step
# - **c**: rank 0 sends its weights to all the others after each epoch
# - **d**: the metrics are averaged over the ranks

# %% labs={"id": "horovod.12"}
### BEGIN SOLUTION
why_identical = "b"
### END SOLUTION
check("horovod.12", why_identical)

# %% [markdown]
# No rank controls the others. Rank 0 sends its weights once, at the start; after that, it trains like all the others,
# and also prints and saves. The gradients are averaged over all ranks in every step. No gradient changes the moving
# means and variances of batch normalisation: each rank computes them from its own images. They are identical at the end
# of an epoch only because `MetricAverageCallback` averages them.
#
# ## How much faster?
#
# The table compares the Horovod runs with the MirroredStrategy runs from notebook 05: your own if their settings match,
# otherwise recorded ones.

# %%
mirrored = [jobs.folder() / f"ResNet50_w{n}.json" for n in (1, 2)]
fits = [
    study.reusable(file, study.configuration(plan, "ResNet50V2", n, "mirrored")) for n, file in enumerate(mirrored, 1)
]
if not own or quick or not all(fits):
    mirrored = [file.with_suffix(".json") for file in recorded.laptop()]
    print("The runs with MirroredStrategy are recorded. Beside runs of your own, compare speedups only, not seconds.")
runs = results.load([*mirrored, *(file.with_suffix(".json") for file in files)])
tables.scaling(runs)
on_2 = next(run for run in runs if (run.strategy, run.workers) == ("horovod", 2))
outcome("horovod.10", on_2.speedup.value, on_2.speedup.interval, how=on_2.kind)

# %%
plots.show(plots.scaling(runs))

# %% [markdown]
# The two studies were run at different times, so do not compare their seconds. Each speedup is a ratio of times from
# the same rounds, so you may compare the speedups, with their intervals. To find out whether the speedups really
# differ, you need an interval for *their* ratio, as in notebook 10.
#
# You can start more ranks than there are cores: `horovodrun --gloo -np 4 -H localhost:4 ...`. The ranks then share the
# cores, the record is marked **oversubscribed**, and its times say nothing about speed. Use `horovodrun --gloo` for
# this. With `mpiexec`, all ranks meet in a small exchange every millisecond, whatever your script does, and those that
# come first keep their cores busy until the last one comes.
#
# ## Another wrapper
#
# Both `labs.hvd` and Horovod itself have a `DistributedOptimizer` for Keras. The module `lessons.horovod_training.experiment`
# trains a small dense network. With the options below, it uses Horovod's own class. All ranks begin with identical
# weights. **Predict:** will the weights still be identical after 3 epochs? (`True` or `False`)

# %% labs={"id": "horovod.13"}
### BEGIN SOLUTION
identical_after = False
### END SOLUTION
predict("horovod.13", identical_after)

# %%
small, few = ("-m", "lessons.horovod_training.experiment"), ["--images", 256, "--epochs", 3]
cores = {"launcher": "mpiexec", "env": {"CUDA_VISIBLE_DEVICES": ""}}  # small experiments need no GPU
wrong = [*few, "--optimizer", "horovods_own"]
if devices.has("horovod"):
    job = jobs.run(*small, *wrong, "--unchecked", name="silent", ranks=2, **cores)
    print(job.out.read_text())
    outcome("horovod.13", "True after" in job.out.read_text())

# %% [markdown]
# Horovod's class was written for Keras 2, and Keras 3 never calls the method that does the averaging. There is no error
# and no warning. The loss falls on each rank, and each rank trains a network of its own on its own half of the data.
# How many different networks would 4 ranks train in this way?

# %% labs={"id": "horovod.14"}
### BEGIN SOLUTION
networks = 4
### END SOLUTION
check("horovod.14", networks)

# %% [markdown]
# If rank 0 then saved its network, you would have one that has seen only a quarter of the data, but report the speedup
# of all 4 ranks. So `labs.hvd` checks the optimizer before the first step. Here is the same run with the callbacks of
# step 5:

# %%
if devices.has("horovod"):
    job = jobs.run(*small, *wrong, name="refused", ranks=2, **cores)

# %% [markdown]
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
shared = cores | {"launcher": "horovodrun" if K > devices.cores() else "mpiexec"}
curves = {}
if devices.has("horovod"):
    for number, (name, (n, batch, rate)) in enumerate(experiments.items()):
        options = ["--images", 512 if quick else 1024, "--epochs", 6, "--batch_size", batch, "--rate", rate]
        job = jobs.run(*small, *options, name=f"batch_{number}", ranks=n, **shared)
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

# %% labs={"id": "horovod.15"}
### BEGIN SOLUTION
same = "d"
### END SOLUTION
check("horovod.15", same)

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
# ## What do the ranks wait for?
#
# A gradient can be averaged only when *all* ranks have computed it. How many tensors does Horovod average in each step
# of ResNet50V2, and how many bytes do they take up in total? (Count in float32; 2 or 3 digits are enough.)

# %% labs={"id": "horovod.16"}
network = models.network("ResNet50V2", image_size=32, classes=10)
### BEGIN SOLUTION
tensors = len(network.trainable_weights)
size = models.memory(network, batch=1)["gradients"]
### END SOLUTION
check("horovod.16", tensors, size)

# %% [markdown]
# Horovod can record when each rank announced each tensor, and when the tensor was averaged: set `HOROVOD_TIMELINE` to a
# file name. (Horovod remembers which tensors were announced in earlier steps, and then no longer records which rank
# announced them. With `HOROVOD_CACHE_CAPACITY=0`, it asks again in every step.)


# %%
def watch(name):
    """Environment of a job that writes its timeline; the file."""
    file = (jobs.folder() / f"{name}_timeline.json").resolve()
    file.unlink(missing_ok=True)
    return {"HOROVOD_TIMELINE": str(file), "HOROVOD_CACHE_CAPACITY": "0"}, file


trace, kind = recorded.horovod_timeline(), "recorded"
if own and not quick:
    env, trace = watch("ResNet50")
    options = ["--batch_size", 2 * plan.local_batch, *plan.arguments(), "--epochs", 1, "--repeats", 1]
    job = jobs.run(script, *options, name="ResNet50_watched", ranks=2, launcher=launcher, env=env)
    kind = "measured"

# %%
events = timeline.read(trace)
plots.show(timelines.figure(events, kind=kind))

# %% [markdown]
# The upper curves rise while the backward pass works its way from the last layer to the first. Where one rank's curve
# is higher, that rank has announced more gradients than the other. The curve of averaged gradients can only follow the
# slower rank. In the lower part, each block is one message.
#
# Do you see fewer tensors than you counted? Where two biases are added to the same sum, their gradients are equal.
# TensorFlow notices this, so Horovod averages each such pair only once.
#
# Every message has a start-up cost. So Horovod **fuses** tensors that are ready at the same time into one buffer, and
# sends the buffer as one message. These messages contain the most tensors:

# %%
messages = sorted(timeline.messages(events), key=lambda row: -row["tensors"])[:4]
shown = [row | {"MB": row["bytes"] / 1e6, "ms": 1000 * row["seconds"], "first": row["names"][0]} for row in messages]
tables.show(
    shown, ("message", "tensors", "MB", "ms", "first"), {"ms": "all-reduce (ms)", "first": "first tensor in it"}
)

# %% [markdown]
# Now one rank is slow: rank 1 pauses for 50 ms in each step of a small network. This timeline has one row for each
# tensor.

# %%
if devices.has("horovod"):
    env, trace = watch("slow")
    options = ["--network", "SmallCNN", "--images", 128, "--epochs", 1, "--slow", 1, 50]
    job = jobs.run(*small, *options, name="slow", ranks=2, launcher="mpiexec", env=env | cores["env"])
    slow = timeline.read(trace)
    plots.show(timelines.figure(slow))

# %% [markdown]
# Which rank waits in each step: 0 or 1? The marks tell you.

# %% labs={"id": "horovod.17"}
### BEGIN SOLUTION
waiting_rank = 0
### END SOLUTION
check("horovod.17", waiting_rank)

# %%
if devices.has("horovod"):
    rows = timeline.summary(slow)[2:]  # without the first steps, in which TensorFlow traces and ranks are apart
    for row in rows:
        row |= {"wait": 1000 * max(row["waited"].values()), "reduce": 1000 * row["allreduce_seconds"]}
    columns = {"step": "step", "last": "last rank", "wait": "wait for it (ms)", "reduce": "all-reduce (ms)"}
    tables.show(rows, tuple(columns), columns)

# %% [markdown]
# The all-reduce itself is short, but when one rank pauses, every rank pays for it: the slowest rank sets the pace. On a
# cluster, the cause may be a slow disk, a busy core or a larger shard.
#
# ## H1
#
# Hand in your `ResNet50_horovod.py`, and describe your runs in 6 to 12 sentences:
#
# - how you launched them: the command, the number of ranks and where they ran, the local batch and the rate;
# - the evidence that all ranks trained the same network, and what would make their weights differ;
# - the speedup with its interval, next to that of MirroredStrategy, and what the two intervals cannot decide;
# - what the timeline shows: when the all-reduces run, and which rank waits for which.

# %% [markdown] labs={"id": "H1", "kind": "answer"}
# ### H1: your answer
# ### BEGIN SOLUTION
# I started scripts/ResNet50_horovod.py with `mpiexec -n N` (in a terminal, `horovodrun --gloo` also works) on 1 and 2
# ranks. Each rank was pinned to one core, the batch per rank was fixed, and the rate was 0.01 x ranks. The .out file
# shows `Rank 0 of 2 on core ..` and `Rank 1 of 2 on core ..`, and then a single log, written by rank 0. The record of
# the run on 2 ranks is the evidence that the ranks trained one network: it has weights.identical = true, and the same
# SHA-256 for all ranks, although the ranks drew different weights at the start. The broadcast made the weights equal,
# the averaged gradients kept them equal, and MetricAverageCallback averaged the moving statistics of batch
# normalisation. Without any one of the three, the same comparison gives false. (`labs.hvd` refuses unequal weights at
# the start and an optimizer that is not wrapped.) The table above gives each speedup with its interval. Horovod and
# MirroredStrategy were measured in two studies, so I compare only their speedups, and do not claim that they differ.
# The timeline shows the gradients of a step, 94 MB, fused into fewer messages. An all-reduce starts when the slower
# rank has announced its gradients; until
# then, the faster rank waits. When one rank paused for 50 ms in each step, the other waited for about as long, as the
# last table in that section shows.
# ### END SOLUTION

# %% [markdown]
# ## Optional: build it yourself
#
# (This takes about 30 minutes, and the last two sections take another 10.) Very little is missing from Horovod's own
# class, and you can write that part yourself. Open `scripts/own_optimizer.py`: two functions are blank, and the loop
# below them uses both. Each rank starts with different weights, one layer is frozen (it is not trained), and one layer
# is used twice.
#
# First, write `begin_equal(model)`: it sets all weights to the values of rank 0. `hvd.broadcast(tensor, root_rank=0)`
# returns rank 0's tensor on every rank.

# %% labs={"id": "horovod.18"}
own_script = "scripts/own_optimizer.py"
check("horovod.18", own_script)

# %% [markdown]
# Then write `distributed(optimizer)`: it returns an optimizer with the same settings as the given one. The
# `apply(gradients, variables)` of the new optimizer first averages the gradients over all ranks.
# `hvd.grouped_allreduce(tensors)` averages a list of tensors in one exchange. All ranks must call the same collectives
# (functions in which all ranks exchange data) in the same order.

# %% labs={"id": "horovod.19"}
check("horovod.19", own_script)

# %% [markdown]
# Run the script on 2 ranks, with two kinds of optimizer. For comparison, the kit's optimizer trains from the same
# weights on the same shares:

# %%
if answered("horovod.18", "horovod.19") and devices.has("horovod"):
    for kind in ("sgd", "adam"):
        job = jobs.run(own_script, "--optimizer", kind, name=f"own_{kind}", ranks=2, **cores)
        print(job.out.read_text())

# %% [markdown]
# Now break it: run the same training without `begin_equal`. The gradients are still averaged, so all ranks take the
# same steps. **Predict** how the largest difference between the ranks' weights changes over 20 steps: give the
# difference afterwards divided by the difference before (1 for unchanged, 0.5 for half).

# %% labs={"id": "horovod.20"}
### BEGIN SOLUTION
difference_left = 0.5
### END SOLUTION
predict("horovod.20", difference_left)

# %%
if answered("horovod.18", "horovod.19") and devices.has("horovod"):
    job = jobs.run(own_script, "--no_begin", name="no_begin", ranks=2, **cores)
    said = job.out.read_text()
    print(said)
    before, after = (float(said.partition(word)[0].split()[-1]) for word in (" before,", " after "))
    outcome("horovod.20", after / before)

# %% [markdown]
# Equal steps from different starting points end at different points, and nothing ever brings the ranks together. Both
# losses fall, and no error tells you that the averaged gradients belong to different networks. The record tells you, in
# `weights.identical`. The kit's own optimizer compares the weights of all ranks in its first step, and stops if they
# differ.
#
# ### Clip before the average, or after it?
#
# `clipnorm=0.005` shortens every gradient longer than 0.005 to a length of 0.005. With a rate of 1, one step of SGD
# then changes a weight matrix W by at most 0.005, however steep the loss is. Many training runs rely on such a bound.
# With your `distributed`, the bound holds on any number of ranks: it averages the gradients first, and then the
# optimizer clips the average. Does the bound also hold on 4 replicas of MirroredStrategy?
#
# In this experiment, the batch contains the *same* 4 images four times: one replica gets all 16, or each of 4 replicas
# gets the 4 images once. So all gradients point in the same direction, and each is far longer than 0.005. **Predict:**
# by how much does one step change W on one replica, and on 4 replicas?

# %% labs={"id": "horovod.21"}
### BEGIN SOLUTION
change_on_1 = 0.005
change_on_4 = 0.005
### END SOLUTION
predict("horovod.21", [change_on_1, change_on_4])


# %%
def clipped(clipnorm):
    """Rows: how far one step changes W, on so many replicas."""
    job = jobs.run("-m", "lessons.horovod_training.clipped", clipnorm, name="clipped")
    return json.loads(job.out.read_text())


steps = clipped(0.005)
tables.show(steps[:2], ("replicas", "each gets", "change"), {"change": "|change of W|, clipnorm 0.005"})
changes = {row["replicas"]: row["change"] for row in steps[:2]}
outcome("horovod.21", list(changes.values()))

# %% [markdown]
# The order of two operations makes the difference. With MirroredStrategy, Keras clips the gradient of *each replica*,
# and then adds up the clipped gradients. Each of them is within the bound, but their sum need not be. A training run
# whose updates stayed within the bound on one device makes larger updates on many devices, and no error tells you. The
# same happens with `global_clipnorm` and `clipvalue`. (The course's recorder warns you before the first step.)
#
# What is the largest `clipnorm` that keeps the change in W on 4 replicas within 0.005, whatever images they get?

# %% labs={"id": "horovod.22"}
### BEGIN SOLUTION
clipnorm_on_4 = 0.005 / 4
### END SOLUTION
check("horovod.22", clipnorm_on_4, changes)

# %%
if answered("horovod.22"):
    head = {"change": f"|change of W|, clipnorm {clipnorm_on_4:g}"}
    tables.show(clipped(clipnorm_on_4)[1:], ("replicas", "each gets", "change"), head)

# %% [markdown]
# Now the bound holds. With different images, the gradients of the replicas point in different directions. Their sum is
# then shorter than the bound, and the step is smaller than a single worker's would be. To clip as a single worker does,
# average the gradients *first*, as your optimizer and `labs.hvd` do.
#
# ### Three rules for the rate
#
# With the linear rule, you multiply the rate by K; with the square-root rule, you multiply it by the square root of K
# (notebook 04). You can try any power in between; 2/3 is only an example, which no theory prescribes. Write `rates`:
# given K and the rate for one rank, it returns three rates, by the **linear**, the **square-root** and the
# **2/3-power** rule.


# %% labs={"id": "horovod.23"}
def rates(rate, K):
    ### BEGIN SOLUTION
    return rate * K, rate * K**0.5, rate * K ** (2 / 3)
    ### END SOLUTION


if check("horovod.23", rates):
    rules = ("linear", "square root", "2/3 power")
    tables.show([{"K": K} | dict(zip(rules, rates(0.01, K))) for K in (1, 2, 4, 8, 64)], ("K", *rules))

# %% [markdown]
# ## Summary
#
# - One program runs as K processes. The rank, local rank and size tell each process what to do.
# - There are six steps: start, pin, shard, scale and wrap, broadcast and average, print once.
# - Compare the weights of all ranks: no error tells you when the averaging is missing.
# - The effective batch, not the number of ranks, determines how the loss falls.
# - All ranks wait for the slowest one, and a timeline shows which one that is.
#
# Next: `09_resnet152_scaling`.
