# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Horovod: the same training in many processes
#
# **Time: 80 minutes, of which 4 minutes on 2 cores are computing.**
#
# MirroredStrategy is one process that controls all devices of one machine. Horovod works the other way round: the *same program* runs
# many times, once for each device, on one machine or on hundreds. You turn a script into such a program in six steps, launch it,
# prove that all processes train one network, and look at what they wait for. You hand in task **H1**. An optional part at the end,
# in which you build the averaging yourself, takes about 30 minutes more.
#
# TensorFlow has a strategy for several machines, too: `MultiWorkerMirroredStrategy`. With Keras 3 its `fit` ends in its first step
# with an error ([Keras' issue 20585](https://github.com/keras-team/keras/issues/20585)), so this course goes over several machines
# with Horovod.
#
# > **Why still Horovod?** It is hardly developed any more. Its last release, 0.28.1, is from June 2023, and a change that lets it
# > build with TensorFlow 2.20 has been waiting since 2025 ([4302](https://github.com/horovod/horovod/pull/4302)). PyTorch Lightning
# > removed it in 2022 ([16150](https://github.com/Lightning-AI/pytorch-lightning/pull/16150)), Ray by May 2025
# > ([49454](https://github.com/ray-project/ray/issues/49454)); DeePMD-kit stopped testing it in December 2025
# > ([5079](https://github.com/deepmodeling/deepmd-kit/pull/5079)); Databricks' runtimes after 15.4 LTS come
# > [without it](https://learn.microsoft.com/en-us/azure/databricks/archive/machine-learning/train-model/horovod-runner-examples).
# > (All read in November 2026.) For a new project take what your framework brings: `DistributedDataParallel` (DDP) or FSDP in
# > PyTorch, sharded arrays in JAX.
# >
# > What you learn here goes with you: ranks, a shard of the samples for each, equal weights at the start, gradients averaged at
# > every step, a rate that fits the global batch. DDP needs the same; FSDP divides weights and optimizer as well; in JAX you say how
# > arrays are divided, and the compiler adds the exchange. Horovod is still a good teacher: each of these is a line of your script,
# > which you can leave out to see what breaks.

# %%
from labs import devices, jobs, models, presets, recorded
from labs.checks import answered, check, outcome, predict
from labs.lessons.nb07 import pictures
from labs.measure import study
from labs.results import collect, timeline
from labs.results import record as run_record
from labs.show import compare, plots, tables, timelines

plan = presets.choose()
quick = plan.name == "test"
unit = "GPU" if devices.gpus() else "CPU core"
print(f"preset {plan.name}; a rank computes on one {unit}, and this machine has {devices.cores()} cores")

# %% [markdown]
# ## One program, n processes
#
# This is a whole Horovod program:

# %%
print(open("scripts/who_am_i.py").read())

# %% [markdown]
# A **launcher** starts it n times. `hvd.init()` makes the n processes find each other. From then on each knows its **rank**
# (0 to n-1) and the **size** n. **Predict:** the program has one `print`. How many lines does it print with 4 ranks?

# %% labs={"id": "07.1"}
### BEGIN SOLUTION
lines_expected = 4
### END SOLUTION
predict("07.1", lines_expected)

# %%
if devices.has("horovod"):
    for n in (2,) if quick else (2, 4):
        job = jobs.run("scripts/who_am_i.py", name=f"who_am_i_{n}", ranks=n)
        print(job.out.read_text())
    outcome("07.1", job.out.read_text().count("I am rank") if n == 4 else None, how="counted")

# %% [markdown]
# Every process prints its line, in no certain order. The mark before it, such as `[1]<stdout>:`, is the launcher's
# (`mpiexec` writes `[1]`): it says which rank spoke. Nothing is shared: each process has its own memory, its own data and its own
# network.
#
# On several machines (**nodes**) one process is started for each GPU of each node:
#
# $$ K = \text{nodes} \times \text{tasks per node} . $$
#
# How large is K on 2 nodes with 4 GPUs each?

# %% labs={"id": "07.2"}
### BEGIN SOLUTION
ranks_in_all = 2 * 4
### END SOLUTION
check("07.2", ranks_in_all)

# %% [markdown]
# Ranks are counted through, node by node: node 0 has the first ones. The **local rank** counts on each node anew. On which node
# does rank 6 of these run, and which local rank has it?

# %% labs={"id": "07.3"}
### BEGIN SOLUTION
node_of_6, local_rank_of_6 = 1, 2
### END SOLUTION
check("07.3", node_of_6, local_rank_of_6)

# %% [markdown]
# All of them in one picture, with the four numbers that each rank can ask for: rank, size, local rank, local size.

# %%
if answered("07.2", "07.3"):
    plots.show(pictures.ranks(nodes=2, gpus=4))

# %% [markdown]
# `hvd.size()` counts *processes*. It knows nothing of GPUs: 8 processes on one GPU are still size 8. That each process takes a
# device of its own is up to your program, and the local rank is made for it.
#
# On GPUs the processes would even be in each other's way: TensorFlow takes nearly all memory of *every* GPU that it sees. The first
# rank of a node would take that of all four GPUs, and the others would find none. `devices.pin`, which you meet in step 2, lets
# a process see one GPU only.
#
# ## Six steps
#
# Open `scripts/ResNet50_horovod.py`. It is the training of notebook 05 for Horovod, with six blanks. Fill one, save, and
# check it here; the checks try the script out up to its `fit`, alone and
# as each of 6 ranks on 2 nodes, without Horovod, and look at what each rank does. What `labs.hvd` offers for the steps:
#
# | step | in `labs.hvd` | what it is |
# |---|---|---|
# | 1 | `hvd.init` | starts Horovod |
# | 2, 3, 6 | `hvd.rank`, `hvd.size`, `hvd.local_rank`, `hvd.local_size` | functions that return the four numbers |
# | 4 | `hvd.DistributedOptimizer` | takes an optimizer of Keras and gives one that averages the gradients over all ranks before it uses them |
# | 5 | `hvd.callbacks.BroadcastGlobalVariablesCallback` | takes the number of a rank: before the first step all ranks get the weights of that one |
# | 5 | `hvd.callbacks.MetricAverageCallback` | takes nothing: at each epoch's end a metric becomes its mean over all ranks |
#
# **1. Start.** Horovod must run before anyone asks it for a rank.

# %% labs={"id": "07.4"}
script = "scripts/ResNet50_horovod.py"
check("07.4", script)

# %% [markdown]
# **2. Pin.** One worker for each process of the node: `devices.pin` takes the number of a GPU (or core) of this node, and how
# many processes share the node.

# %% labs={"id": "07.5"}
check("07.5", script)

# %% [markdown]
# **3. Shard.** All ranks hold the same order of sample numbers. Each reads its own share of it (notebook 06).

# %% labs={"id": "07.6"}
check("07.6", script)

# %% [markdown]
# **4. Scale and wrap.** Horovod scales no rate: that is yours (one rank: 0.01). And it averages gradients only if the optimizer
# is wrapped.

# %% labs={"id": "07.7"}
check("07.7", script)

# %% [markdown]
# **5. Broadcast and average.** All ranks take the weights of rank 0 at the start. At each epoch's end they average loss and
# accuracy, which each has measured on its own share.

# %% labs={"id": "07.8"}
check("07.8", script)

# %% [markdown]
# **6. One log.** Only rank 0 prints and saves.

# %% labs={"id": "07.9"}
check("07.9", script)

# %% [markdown]
# What is different from the script of notebook 05? Printing and the record are left out of this list. Look for the network, the
# loss and the data: which of their lines are different, and which of the six steps made them so?

# %%
compare.scripts("scripts/ResNet50.py", script)

# %% [markdown]
# If you know PyTorch: its `DistributedDataParallel` takes the same six steps; the course's README says what stands for what. This is
# the twin of your script, with the numbers of the steps (not run here). `torchrun --nproc-per-node=2 train.py` starts it on each
# node:
#
# ```python
# dist.init_process_group("nccl")                                             # 1  (dist: torch.distributed)
# here, size = int(os.environ["LOCAL_RANK"]), dist.get_world_size()
# torch.cuda.set_device(here)                                                 # 2
# mine = DistributedSampler(dataset, seed=args.seed, drop_last=True)          # 3
# train = DataLoader(dataset, args.batch_size // size, sampler=mine)
# model = DistributedDataParallel(network.cuda(), device_ids=[here])          # 4 averages; 5 rank 0's weights for all
# optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * size)             # 4 the rate is yours
# for epoch in range(args.epochs):
#     mine.set_epoch(epoch)                                                   # another order in each epoch
#     for images, labels in train:
#         optimizer.zero_grad()
#         loss = cross_entropy(model(images.cuda()), labels.cuda())
#         loss.backward()                                                     # gradients travel meanwhile
#         optimizer.step()
#     last = loss.detach()
#     dist.all_reduce(last, op=dist.ReduceOp.AVG)                             # 5 metrics are yours: here the last loss
#     if dist.get_rank() == 0:                                                # 6
#         print(epoch, last.item())
# ```
#
# What is different: it wraps the model, not the optimizer, and its sampler wants to be told the epoch.
#
# ## Launch
#
# The batch per rank is fixed, as in notebook 05. **Predict** the speedup on 2 ranks, as a number. (You have seen that of
# MirroredStrategy on 2 workers; a rank has its own process, and its own input pipeline.)

# %% labs={"id": "07.10"}
### BEGIN SOLUTION
speedup_expected = 1.8
### END SOLUTION
predict("07.10", speedup_expected)

# %%
counts, sizes = plan.workers, plan.arguments()
if quick:
    counts, sizes = (2,), [*sizes, "--images", 64, "--epochs", 2]
# MPI is the faster one as long as every rank has a core of its own.
launcher = "mpiexec" if not devices.gpus() and max(counts) <= devices.cores() else "horovodrun"
turns = jobs.Turns()
if answered("07.4", "07.5", "07.6", "07.7", "07.8", "07.9") and devices.has("horovod"):
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
    print("Runs on 1 and 2 ranks of your own are not done. What follows uses recorded ones instead.")
if not own:
    on_two = files[1]

# %% [markdown]
# In a terminal, in this folder, either launcher does the same:
#
# ```
# uv run horovodrun --gloo -np 2 -H localhost:2 python scripts/ResNet50_horovod.py --batch_size 128
# uv run mpiexec -n 2 python scripts/ResNet50_horovod.py --batch_size 128
# ```
#
# Over several nodes, SLURM's `srun` starts one task for each GPU, and the script stays as it is. You do that in notebook `07b`.
#
# Each rank names its core or GPU; then rank 0 alone speaks. The log as far as its second epoch:

# %%
print(on_two.read_text().partition("Epoch 3/")[0].rpartition("\n")[0])  # whole lines only

# %% [markdown]
# ## The batch of one rank, given to two
#
# `--batch_size` is the global batch. You doubled it for 2 ranks, so the **local** batch, that of one rank, stayed. Both runs, by
# their records:

# %%
run_1, run_2 = (run_record.load(file.with_suffix(".json")) for file in files[:2])
shown = [run.configuration.model_dump() | {"steps": run.steps} for run in (run_1, run_2)]
columns = {"workers": "ranks", "global_batch": "images in a step of all ranks", "local_batch": "of each rank"}
columns |= {"steps": "steps in an epoch", "learning_rate": "learning rate"}
tables.show(shown, tuple(columns), columns)

# %% [markdown]
# Now a run that you have not made: 2 ranks again, with the `--batch_size` of your run on **1** rank. How many images would one rank
# take in a step, and how many steps would an epoch have? And what would its updates be, beside those of the run on 1 rank? (Look at
# step 4 of your script again.)
#
# - **a**: as many, on the same images, at the same rate: the same training
# - **b**: half as many, each on twice as many images, at twice the rate
# - **c**: as many, on the same images, at twice the rate
# - **d**: twice as many, each on half of the images, at the same rate

# %% labs={"id": "07.11"}
### BEGIN SOLUTION
images_of_a_rank = run_1.configuration.global_batch // 2
steps_of_an_epoch = run_1.steps
its_updates = "c"
### END SOLUTION
check("07.11", images_of_a_rank, steps_of_an_epoch, its_updates, run_1, run_2)

# %% [markdown]
# The global batch says what an update is, and the script's line `0.01 x ranks` is right only as long as the local batch stays. With
# a fixed global batch each rank computes half as long in a step and exchanges as much as before: there is less to gain. Further down,
# both ways train beside each other.
#
# ## Is it one network?
#
# At the end the ranks compared their weights, bit by bit. The record keeps the result, with the checksum (SHA-256) of the weights:

# %%
run_record.load(on_two.with_suffix(".json")).weights

# %% [markdown]
# Why must the trained weights be identical, to the last bit?
#
# - **a**: they need not be: nearly equal is enough for an average
# - **b**: all ranks begin with the same weights and add the same averaged gradient at each step
# - **c**: rank 0 sends its weights to all others after each epoch
# - **d**: the metrics are averaged over the ranks

# %% labs={"id": "07.12"}
### BEGIN SOLUTION
why_identical = "b"
### END SOLUTION
check("07.12", why_identical)

# %% [markdown]
# No rank is special here. Rank 0 gives its weights once, at the start; then it prints and saves. Gradients are
# averaged among all, at every step.
#
# ## How much faster?
#
# Beside Horovod's runs stand those of MirroredStrategy from notebook 05: yours if they fit, else recorded ones.

# %%
mirrored = [jobs.folder() / f"ResNet50_w{n}.json" for n in (1, 2)]
fits = [
    study.reusable(file, study.configuration(plan, "ResNet50V2", n, "mirrored")) for n, file in enumerate(mirrored, 1)
]
if not own or quick or not all(fits):
    mirrored = [file.with_suffix(".json") for file in recorded.laptop()]
    print("MirroredStrategy: recorded runs. If yours above are of another machine, compare speedups, not seconds.")
rows = collect.rows([*mirrored, *(file.with_suffix(".json") for file in files)])
tables.scaling([row | {"model": f"{row['model']}, {row['strategy']}"} for row in rows])
on_2 = next(row for row in rows if (row["strategy"], row["workers"]) == ("horovod", 2))
outcome("07.10", on_2["speedup"], on_2["speedup_interval"], how=on_2["kind"])

# %%
plots.show(plots.scaling(rows))

# %% [markdown]
# These are two studies, measured at other minutes: do not compare their seconds. Each speedup is a ratio within rounds, so these
# may be compared, with their intervals; whether a difference is real needs the interval of *their* ratio, as in notebook 08.
#
# You may start more ranks than there are cores: `horovodrun --gloo -np 4 -H localhost:4 ...`. They share the cores, the record is
# marked **oversubscribed**, and its times say nothing about speed. Use Gloo for it: a rank that waits in MPI keeps its core busy.

# %% [markdown]
# ## Another wrapper
#
# `labs.hvd` has a `DistributedOptimizer`, and Horovod has one of its own for Keras. `labs.lessons.nb07.experiment` trains a small
# dense network, and with these options Horovod's own class wraps its optimizer. All ranks begin with equal weights. **Predict:**
# will they be identical after 3 epochs? (`True` or `False`)

# %% labs={"id": "07.14"}
### BEGIN SOLUTION
identical_after = False
### END SOLUTION
predict("07.14", identical_after)

# %%
small, few = ("-m", "labs.lessons.nb07.experiment"), ["--images", 256, "--epochs", 3]
cores = {"launcher": "mpiexec", "env": {"CUDA_VISIBLE_DEVICES": ""}}  # small experiments need no GPU
wrong = [*few, "--optimizer", "horovods_own"]
if devices.has("horovod"):
    job = jobs.run(*small, *wrong, "--unchecked", name="silent", ranks=2, **cores)
    print(job.out.read_text())
    outcome("07.14", "True after" in job.out.read_text())

# %% [markdown]
# That class was written for Keras 2; Keras 3 never calls what averages in it. No error, no warning. The loss falls on each rank,
# and each trains a network of its own on its own half of the data. How many different networks would 4 ranks train like this?

# %% labs={"id": "07.15"}
### BEGIN SOLUTION
networks = 4
### END SOLUTION
check("07.15", networks)

# %% [markdown]
# You would keep rank 0's network, which has seen a part of the data, and report the speedup of all. So `labs.hvd` looks at the
# optimizer before the first step. The same run with the callbacks of step 5:

# %%
if devices.has("horovod"):
    job = jobs.run(*small, *wrong, name="refused", ranks=2, **cores)

# %% [markdown]
# ## What counts is the effective batch
#
# K ranks average their gradients, so an update uses the images of all of them. How large is the **effective batch**
# of 4 ranks with a local batch of 8?

# %% labs={"id": "07.16"}
### BEGIN SOLUTION
effective_batch = 4 * 8
### END SOLUTION
check("07.16", effective_batch)

# %% [markdown]
# With K ranks you have two options:
#
# - **option 1**: keep the local batch. The effective batch grows K times, and the rate is scaled up.
# - **option 2**: divide the local batch by K. The effective batch and the rate stay.
#
# How far up? The linear rule takes K, the square-root rule the root of K (notebook 04). Any power between them can be tried; 2/3
# stands here as an example, and no theory asks for it. Write `rates`: for the rate of one rank and K, the three rates by the
# **linear**, the **square-root** and the **2/3-power** rule.


# %% labs={"id": "07.17"}
def rates(rate, K):
    ### BEGIN SOLUTION
    return rate * K, rate * K**0.5, rate * K ** (2 / 3)
    ### END SOLUTION


if check("07.17", rates):
    rules = ("linear", "square root", "2/3 power")
    tables.show([{"K": K} | dict(zip(rules, rates(0.01, K))) for K in (1, 2, 4, 8, 64)], ("K", *rules))

# %% [markdown]
# Now three trainings of the small network, from the same weights, in the same order of images: on 1 rank, and on several ranks by
# either option. It has no batch normalisation, which would see the local batch.

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
# Which two curves are one, and why?
#
# - **a**: 1 rank and option 1: the rate makes up for the batch
# - **b**: the two with several ranks: the number of ranks is the same
# - **c**: none: every way to train gives its own curve
# - **d**: 1 rank and option 2: every update uses the same 32 images and the same rate

# %% labs={"id": "07.18"}
### BEGIN SOLUTION
same = "d"
### END SOLUTION
check("07.18", same)

# %%
if devices.has("horovod"):
    records = [run_record.load(file) for file in curves.values()]
    one, option_2, _ = [[epoch.metrics["loss"] for epoch in record.epochs] for record in records]
    print("oversubscribed:", [record.oversubscribed for record in records])
    difference = max(abs(a - b) for a, b in zip(one, option_2))
    print(f"1 rank and option 2, largest difference of their losses: {difference:.1e}")
    assert difference < 1e-3

# %% [markdown]
# What is left is rounding: the same numbers are added in another order. Option 1 is another training: its updates are
# fewer, and each one goes further. After the same epochs it is behind, after the same updates it is not. With batch
# normalisation, the first two would be close, not equal.
#
# ## What do the ranks wait for?
#
# A rank may average a gradient when *all* have it. How many tensors does Horovod average in each step of ResNet50V2, and how
# many bytes are they together (float32; rounded to 2 or 3 digits is enough)?

# %% labs={"id": "07.19"}
network = models.network("ResNet50V2", image_size=32, classes=10)
### BEGIN SOLUTION
tensors = len(network.trainable_weights)
size = models.memory(network, batch=1)["gradients"]
### END SOLUTION
check("07.19", tensors, size)

# %% [markdown]
# Horovod can write down when each rank announced each tensor, and when it was averaged: set `HOROVOD_TIMELINE` to a file. (It
# remembers what was announced before, and then no longer says by whom; `HOROVOD_CACHE_CAPACITY=0` makes it ask anew.)


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
# The upper curves grow while backward works its way from the last layer to the first. Where one rank's curve runs ahead, it has
# announced more than the other; the blue one can only follow the slower of the two. Below, each block is one message.
#
# Fewer tensors than you counted? Where two biases are added to the same sum, their gradients are equal. TensorFlow notices, and
# has each such pair averaged once.
#
# Every message costs a start. So Horovod **fuses** tensors that are ready together into one buffer and sends that.
# The messages with most tensors:

# %%
messages = sorted(timeline.messages(events), key=lambda row: -row["tensors"])[:4]
shown = [row | {"MB": row["bytes"] / 1e6, "ms": 1000 * row["seconds"], "first": row["names"][0]} for row in messages]
tables.show(
    shown, ("message", "tensors", "MB", "ms", "first"), {"ms": "all-reduce (ms)", "first": "first tensor in it"}
)

# %% [markdown]
# Now one rank is slow: rank 1 pauses 50 ms in each step of a small network. Its timeline has one row for each tensor.

# %%
if devices.has("horovod"):
    env, trace = watch("slow")
    options = ["--network", "SmallCNN", "--images", 128, "--epochs", 1, "--slow", 1, 50]
    job = jobs.run(*small, *options, name="slow", ranks=2, launcher="mpiexec", env=env | cores["env"])
    slow = timeline.read(trace)
    plots.show(timelines.figure(slow))

# %% [markdown]
# Which rank waits at each step? Read it from the marks.

# %% labs={"id": "07.20"}
### BEGIN SOLUTION
waiting_rank = 0
### END SOLUTION
check("07.20", waiting_rank)

# %%
if devices.has("horovod"):
    rows = timeline.summary(slow)[1:]  # without the first step, in which TensorFlow traces
    for row in rows:
        row |= {"wait": 1000 * max(row["waited"].values()), "reduce": 1000 * row["allreduce_seconds"]}
    columns = {"step": "step", "last": "last rank", "wait": "wait for it (ms)", "reduce": "all-reduce (ms)"}
    tables.show(rows, tuple(columns), columns)

# %% [markdown]
# The all-reduce itself is short. The pause of one rank is paid by all: the slowest rank sets the step. On a cluster, a slow
# disk, a busy core or a larger shard does the same.

# %% [markdown]
# ## Four mistakes
#
# `scripts/four_mistakes.py` trains a small network on any number of ranks. Whoever wrote it was in a hurry: four things are wrong
# that you know from the six steps. Run it:

# %%
hasty = "scripts/four_mistakes.py"
if devices.has("horovod"):
    job = jobs.run(hasty, "--images", 512, "--epochs", 2, name="four_mistakes", ranks=2, **cores)

# %% [markdown]
# Repair it, and run the cell above after each change. The kit refuses two of the mistakes, one after the other. The other two train:
# no error, identical weights. Which field of the record would have told you about one of them? And what would you have
# to count to see the other?

# %% labs={"id": "07.27"}
check("07.27", hasty)

# %%
if answered("07.27") and devices.has("horovod") and job.state == "finished":
    record = run_record.load(job.record)
    print("ranks:", record.configuration.workers, "  rate:", record.configuration.learning_rate)
    print("weights identical:", record.weights["identical"])

# %% [markdown]
# The record of a run with the fixed rate says 0.01 on 2 ranks: it is not the rate of the batch. That the ranks shuffle by seeds of their own
# stands in no field: each still reads half of the samples, but some are read twice and others never. Count the sample numbers, or
# let `ranks.check_shards` do it, as `ResNet50_horovod.py` does.

# %% [markdown]
# ## H1
# Hand in your `ResNet50_horovod.py` and a short account: how you launched it (the commands, where the ranks ran), the evidence
# that all ranks trained one network, the speedup with its interval beside MirroredStrategy's, and what the timeline says about
# waiting.

# %% [markdown] labs={"id": "H1", "kind": "answer"}
# ### H1: your answer
# ### BEGIN SOLUTION
# I started scripts/ResNet50_horovod.py with `mpiexec -n N` (in a terminal also with `horovodrun --gloo`) on 1 and 2
# ranks, each pinned to one core, with the batch per rank fixed and the rate 0.01 x ranks. The .out shows `Rank 0 of 2 on core ..`
# and `Rank 1 of 2 on core ..`, then one log, by rank 0. Evidence: the record of the run on 2 ranks has
# weights.identical = true with one SHA-256 for all ranks, although the ranks drew different weights at the start: the
# broadcast made them equal, and the averaged gradients kept them so. With the optimizer not wrapped, the same comparison says
# false, and no error appears. Speedup and interval stand in the table above; Horovod and MirroredStrategy were measured in
# two studies, so I compare their speedups only, and do not claim a difference. The timeline shows the gradients of a step, 94 MB, fused into fewer messages;
# the all-reduces start when the slower rank has announced its gradients, and the faster one waits for it. When
# one rank paused 50 ms in each step, the table above shows how long the other waited for it at each step.
# ### END SOLUTION


# %% [markdown]
# ## Optional: build it yourself
#
# What that class lacks is little. Open `scripts/own_optimizer.py`: its two blanks make a distributed training. Below them stands
# the loop that uses both; every rank draws other weights at first, one layer is frozen, and one is used twice.
#
# `begin_equal(model)` gives all weights the values of rank 0. `hvd.broadcast(tensor, root_rank=0)` returns rank 0's tensor on
# every rank.

# %% labs={"id": "07.24"}
own_script = "scripts/own_optimizer.py"
check("07.24", own_script)

# %% [markdown]
# `distributed(optimizer)` returns an optimizer like the one that it is given, with one difference: its `apply(gradients, variables)`
# takes the mean of the gradients over all ranks first. `hvd.grouped_allreduce(tensors)` averages a list of tensors in
# one exchange. All ranks must call the same collectives in the same order.

# %% labs={"id": "07.25"}
check("07.25", own_script)

# %% [markdown]
# Run it on 2 ranks, for two kinds of optimizer. Beside yours, the kit's trains from the same weights on the same shares:

# %%
if answered("07.24", "07.25") and devices.has("horovod"):
    for kind in ("sgd", "adam"):
        job = jobs.run(own_script, "--optimizer", kind, name=f"own_{kind}", ranks=2, **cores)
        print(job.out.read_text())

# %% [markdown]
# Now break it: the same training, with `begin_equal` left out. Gradients are still averaged, so all ranks make the same steps.
# **Predict:** how large will the largest difference between the ranks' weights be after 20 steps, divided by what it was before? Write 1
# for unchanged, 0.5 for half.

# %% labs={"id": "07.26"}
### BEGIN SOLUTION
difference_left = 0.5
### END SOLUTION
predict("07.26", difference_left)

# %%
if answered("07.24", "07.25") and devices.has("horovod"):
    job = jobs.run(own_script, "--no_begin", name="no_begin", ranks=2, **cores)
    said = job.out.read_text()
    print(said)
    before, after = (float(said.partition(word)[0].split()[-1]) for word in (" before,", " after "))
    outcome("07.26", after / before)

# %% [markdown]
# Equal steps from different places end in different places: nothing ever brings the ranks together. Both losses fall, and no
# error says that the gradients that are averaged belong to different networks. What in a record tells you? `weights.identical`,
# as above. The kit's own optimizer compares the weights of all ranks in its first step, and stops where they differ.

# %% [markdown]
# ## What you take along
#
# - One program, K processes; rank, local rank and size tell each what it has to do.
# - Six steps: start, pin, shard, scale and wrap, broadcast and average, print once.
# - Compare the weights of all ranks: a missing average makes no error.
# - The effective batch decides how a training goes, not the number of ranks.
# - All wait for the slowest, and a timeline shows who that is.
#
# Next: `07b_going_on_and_many_nodes`.
