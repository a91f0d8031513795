# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Basic concepts: why many devices, and how to divide the work
#
# **Time: 50 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** *an afternoon* (next: `03_mirrored_strategy`), *the practical* (next: `02_averages_and_rings`),
# *everything*.
#
# Why train one network on many devices at all? What does "faster" mean, and how do you measure it? How can you divide
# the work? At the end you complete task **T1** in your own words.
#
# You will not train anything here: you work with small simulations and with numbers that others have published or
# measured.

# %% [markdown]
# ## Why one device is not enough
#
# From 2012 to 2018, the amount of computation used in the largest training runs doubled every **3.4 months** (D. Amodei
# and D. Hernandez, "AI and Compute", OpenAI, 2018). Suppose that the speed of *one* chip doubles every 24 months, as
# its number of transistors did for decades (Moore's law). Suppose, too, that one chip was enough for the largest run of
# 2012. Guess before you compute: in which year will a single chip be able to handle the largest training run of 2018?
#
# Write a function that says by what factor such a quantity grows in one year. The picture then uses your function.

# %% labs={"id": "concepts.1"}
from labs.checks import check
from labs.show import plots
from lessons.basic_concepts import pictures


def per_year(months):
    """Factor by which something grows in a year, if it doubles every `months` months."""
    ### BEGIN SOLUTION
    return 2 ** (12 / months)
    ### END SOLUTION


if check("concepts.1", per_year):
    plots.show(pictures.gap(per_year))

# %% [markdown]
# Nobody waits for that chip: *more* chips and longer training runs fill the gap. But are a thousand chips a thousand
# times as fast? To answer this question, you need two terms:
#
# - **Acceleration**: a different, faster device does the same work.
# - **Scaling**: more devices *of the same kind* share the work.
#
# The **speedup** belongs to scaling: $S(p) = T(1) / T(p)$, the time on 1 device divided by the time on $p$ devices.
# Ideally, the speedup is $p$. The **efficiency**, $E(p) = S(p) / p$, is the share of this ideal that you reach.
#
# ## "150 times as fast"
#
# A network for photographs was trained first on a CPU and then with Horovod on GPUs. Somebody reports:
#
# | | 1 CPU | 1 GPU | 2 GPUs | 4 GPUs |
# |---|---|---|---|---|
# | speed relative to the CPU | 1 | 75 | 150 | no further gain |
#
# How well does this training program *scale*? Compute the speedups on 2 and 4 GPUs, and the efficiency on 4 GPUs.

# %% labs={"id": "concepts.2"}
### BEGIN SOLUTION
speedup_2, speedup_4 = 150 / 75, 150 / 75
efficiency_4 = speedup_4 / 4
### END SOLUTION
check("concepts.2", speedup_2, speedup_4, efficiency_4)

# %% [markdown]
# The factor of 75 is acceleration: a GPU replaced a CPU. The gain after that is scaling, and it stopped at 2 GPUs. A
# "speedup of 150" hides both facts, so always say what you are comparing with.
#
# ## From 29 hours to 1.2 minutes
#
# A well-known benchmark is to train the network ResNet-50 on the images of ImageNet. One group needed 29 h on 8 P100
# GPUs. A few years later, another group needed 1.2 min on 2048 V100 GPUs: **1450 times as fast**.
#
# **Predict:** what is the largest factor that the *number* of devices can explain? (The rest is due to faster devices,
# better programs and everything else.)

# %% labs={"id": "concepts.3"}
from labs.checks import predict

### BEGIN SOLUTION
by_number = 256
### END SOLUTION
predict("concepts.3", by_number)

# %%
from labs import recorded
from labs.checks import outcome
from labs.show import tables

trainings = recorded.imagenet()
first, last = trainings[0], trainings[-1]
headings = {"batch": "global batch", "top1": "accuracy (top-1, %)"}
tables.show(trainings, ("who", "hardware", "devices", "batch", "minutes", "top1"), headings)
outcome("concepts.3", last["devices"] / first["devices"], how="computed")

# %% [markdown]
# The picture splits each row's gain over the first row into two factors: the number of devices and the rest.

# %%
plots.show(pictures.imagenet())

# %% [markdown]
# The points for 256 and 1024 P100 GPUs lie a little *above* the line: they took longer, because communication takes
# time. The points far *below* the line come from faster devices and better programs, so they say nothing about scaling.
#
# Only the three P100 rows give you a speedup. Nobody published a time on 1 device, so take the first row as the
# baseline. How many times as fast as this baseline is another row, and how many times as many devices does it use?


# %% labs={"id": "concepts.4"}
def scaling(first, row):
    """(speedup of `row` against `first`, efficiency). Both are dicts with "devices" and "minutes"."""
    ### BEGIN SOLUTION
    return (first["minutes"] / row["minutes"], first["minutes"] / row["minutes"] / (row["devices"] / first["devices"]))
    ### END SOLUTION


if check("concepts.4", scaling):
    p100 = [dict(row) for row in trainings if row["hardware"] == "P100"]
    for row in p100:
        row["speedup"], row["efficiency"] = scaling(first, row)
    tables.show(p100, ("devices", "minutes", "speedup", "efficiency", "top1"), headings)

# %% [markdown]
# From 8 to 1024 devices, the efficiency stays at about nine tenths. But the fastest of the three runs is also the least
# accurate. A training run is faster only if the network is just as good at the end, so **state the accuracy alongside
# every time**.
#
# Somebody writes: "With 256 times as many devices, training was 1450 times as fast. So the efficiency is 1450 / 256, or
# 566 %." What is wrong with this?
#
# - **a**: the divisor: with 2048 devices, the efficiency is 1450 / 2048, or 71 %
# - **b**: nothing; with many devices the data fit into the devices' fast memories, so more than 100 % is possible
# - **c**: it compares 8 P100 GPUs with 2048 V100 GPUs, so 1450 is not a speedup and does not give an efficiency
# - **d**: one row has an accuracy of 75.3 % and the other 75.08 %, and this explains the factor of 5.7

# %% labs={"id": "concepts.5"}
### BEGIN SOLUTION
what_is_wrong = "c"
### END SOLUTION
check("concepts.5", what_is_wrong)

# %% [markdown]
# ## Measure by hand
#
# Now look at one program on one kind of device: ResNet50V2, trained on 1, 2 and 4 V100 GPUs of CTE-POWER, a cluster in
# Barcelona. An epoch is one pass through 50,000 images. Here is the log from 1 and from 4 GPUs.

# %%
log = recorded.CTE_POWER.read_text().splitlines()
print(*log[:13], "...", *log[26:], sep="\n")

# %% [markdown]
# How long does *one* epoch of this run take? Choose the epochs that you use for it:
#
# - **a**: the mean of all five, because you also have to wait for the first one
# - **b**: the mean of epochs 2 to 5, because the first one also includes preparing the program and reserving memory
# - **c**: the shortest epoch, because it shows what the machine can do
# - **d**: the first epoch, because no data have been cached yet

# %% labs={"id": "concepts.6"}
### BEGIN SOLUTION
which_epochs = "b"
### END SOLUTION
check("concepts.6", which_epochs)

# %% [markdown]
# So an epoch takes 45, 24 and 12 s on 1, 2 and 4 GPUs. Write functions for the three quantities that every scaling
# study starts with. **Throughput** is the number of images processed per second.


# %% labs={"id": "concepts.7"}
def throughput(images, seconds):
    ### BEGIN SOLUTION
    return images / seconds
    ### END SOLUTION


def speedup(seconds_1, seconds_p):
    ### BEGIN SOLUTION
    return seconds_1 / seconds_p
    ### END SOLUTION


def efficiency(seconds_1, seconds_p, workers):
    ### BEGIN SOLUTION
    return speedup(seconds_1, seconds_p) / workers
    ### END SOLUTION


if check("concepts.7", throughput, speedup, efficiency):
    rows = []
    for gpus, seconds in {1: 45, 2: 24, 4: 12}.items():
        row = {"GPUs": gpus, "images per second": throughput(50_000, seconds)}
        rows.append(row | {"speedup": speedup(45, seconds), "efficiency": efficiency(45, seconds, gpus)})
    tables.show(rows)

# %% [markdown]
# Is the efficiency really the same on 2 GPUs as on 4? The log gives whole seconds. An epoch logged as "12 s" took
# anything from 11.5 s to 12.5 s, and one logged as "45 s" anything from 44.5 s to 45.5 s. What are the lowest and the
# highest speedup on 4 GPUs that are consistent with this log?

# %% labs={"id": "concepts.8"}
### BEGIN SOLUTION
lowest, highest = 44.5 / 12.5, 45.5 / 11.5
### END SOLUTION
check("concepts.8", lowest, highest)

# %% [markdown]
# So this log does not tell you whether 4 GPUs were less efficient than 2. In notebook 05 you will time single steps.
#
# Here is the whole study in one picture. The bars show the uncertainty due to rounding.

# %%
from labs import results

plots.show(plots.scaling(results.load(recorded.CTE_POWER, images=50_000), ("epoch time", "speedup")))

# %% [markdown]
# There, 4 GPUs are nearly 4 times as fast as one. On your own machine the workers may share cores and memory, and 2
# workers may even be slower than 1.
#
# ## Strong or weak
#
# What stays the same when you add workers? There are two kinds of scaling:
#
# - **strong scaling**: the *global batch* stays the same. This is the number of images that all workers together
#   process in one step, so with more workers, each one gets fewer images.
# - **weak scaling**: the *local batch* stays the same. This is the number of images that each worker processes in one
#   step, so the global batch grows with the number of workers.
#
# `Batch_size` in the log is the global batch. Which kind of scaling does this study use?
#
# - **a**: strong, because an epoch has 50,000 images in all three runs
# - **b**: weak, because each GPU processes 256 images in a step in all three runs
# - **c**: strong, because each GPU gets fewer images in a step when there are more GPUs
# - **d**: weak, because each GPU processes the same number of images in an epoch in all three runs

# %% labs={"id": "concepts.9"}
### BEGIN SOLUTION
kind_of_scaling = "b"
### END SOLUTION
check("concepts.9", kind_of_scaling)

# %% [markdown]
# How far can scaling go? Suppose that 5 % of the time on one worker is **serial**: adding workers does not shorten it.
# For example, one worker reads a file for all the others.
#
# **Predict:** if the total work is fixed, by what factor are 64 workers faster than one?

# %% labs={"id": "concepts.10"}
### BEGIN SOLUTION
speedup_of_64 = 15
### END SOLUTION
predict("concepts.10", speedup_of_64)

# %% [markdown]
# Two laws give the answer, where $s$ is the serial share. **Amdahl's law** holds if the work is fixed, **Gustafson's
# law** if it grows in proportion to the number of workers; $T(1)$ is then the time that one worker would need for all
# of it:
#
# $$ \text{fixed work: } S(p) = \frac{1}{s + (1 - s)/p} \qquad \text{growing work: } S(p) = s + p\,(1 - s) $$

# %%
from lessons.basic_concepts import laws


def amdahl(p, s):
    return 1 / (s + (1 - s) / p)


rows = []
for workers in (64, 1000, 100_000):
    row = {"workers": workers, "times as fast": amdahl(workers, 0.05)}
    rows.append(row | {"by the kit's function": laws.amdahl(workers, serial=0.05)})
tables.show(rows)
outcome("concepts.10", amdahl(64, 0.05), how="computed")

# %% [markdown]
# Move the controls: press Tab to go from one to the next, and use the arrow keys to change a value. What happens to
# Amdahl's curve, the lower one, when there are 4 times as many workers?

# %%
from labs.show import widgets

widgets.explore(pictures.speedups, workers=[4, 16, 64, 256, 1024], serial=[0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5])

# %% [markdown]
# If the work of a step is fixed, the speedup never exceeds $1/s$, however many workers there are. This is strong
# scaling. In weak scaling, the divisible work grows and the serial part does not, so the speedup keeps growing. This is
# one reason why training runs on many devices use large batches.
#
# ## Where the workers are
#
# A **worker** is a GPU, or a CPU core where there are no GPUs. A **node** is one machine. Which devices a program can
# use depends on its **processes**, because a process cannot access the devices of another node:
#
# | program | number of processes | computes on |
# |---|---|---|
# | no strategy | one | one device |
# | `MirroredStrategy()` | one | all devices that this process can access |
# | Horovod | one for each device | all nodes on which processes have been started |
#
# With Horovod, `hvd.size()` is the number of processes.
#
# A job has **2 nodes with 4 GPUs each**. Answer three questions:
#
# 1. *One* process is started, with `MirroredStrategy()`. How many GPUs does it train on?
# 2. How many Horovod processes do you need so that every GPU of the job is used?
# 3. By mistake, only 2 Horovod processes are started. What is `hvd.size()`?

# %% labs={"id": "concepts.11"}
### BEGIN SOLUTION
gpus_at_work = 4
processes_needed = 8
hvd_size = 2
### END SOLUTION
check("concepts.11", gpus_at_work, processes_needed, hvd_size)

# %% [markdown]
# ## Three ways to divide the work
#
# A network is a chain of layers. In the **forward** pass, a mini-batch goes through them. Then the **backward** pass
# goes from the last layer to the first and computes the gradients. Four devices can share this work in different ways:
#
# - **data parallelism**: each device has *all layers*, and a quarter of the mini-batch
# - **model parallelism**: each device has *a quarter of the layers*; the whole mini-batch moves from one device to the
#   next
# - **pipeline parallelism**: like model parallelism, but the mini-batch is cut into **micro-batches**, which follow one
#   another through the devices
#
# **Predict:** in model parallelism on 4 devices, what share of the time is a device *idle*, on average? Give a number
# from 0 to 1.

# %% labs={"id": "concepts.12"}
### BEGIN SOLUTION
idle_share = 0.75
### END SOLUTION
predict("concepts.12", idle_share)

# %% [markdown]
# The next picture simulates one mini-batch in a network of 8 equal layers. The unit of time is one layer's forward pass
# for the whole mini-batch; the backward pass takes twice as long. The final all-reduce sums the gradients from all
# copies of the network. Sending data from one device to another takes no time in this simulation.

# %%
plots.show(pictures.parallelism(device_count=4, micro_batches=4))

# %% [markdown]
# Check the middle diagram: add up its boxes, and divide by what 4 devices could have done in the same time.

# %%
from lessons.basic_concepts import pipeline

boxes = pipeline.pipelined(devices=4, layers=8)  # the middle diagram: one micro-batch
busy = sum(box.end - box.begin for box in boxes)
length = max(box.end for box in boxes)
idle = 1 - busy / (4 * length)
print(f"busy for {busy:g} of 4 x {length:g} units: idle share {idle:.2f}; by the simulator {pipeline.idle(boxes):.2f}")
outcome("concepts.12", idle, how="simulated")

# %% [markdown]
# In model parallelism, only one device works at a time. The only gain is memory: each device keeps just a quarter of
# the layers. In the pipeline, the first device passes micro-batch 1 on and continues with micro-batch 2, so several
# devices work at the same time.
#
# Watch this over time: choose a `kind`, then move the slider `now`. What effect do more micro-batches have?

# %%
widgets.explore(
    pictures.parallelism,
    kind=["data", "model", "pipeline"],
    device_count=[1, 2, 4, 8],
    micro_batches=[1, 2, 4, 8, 16, 32],
    now=(0, 100, 5),
)

# %% [markdown]
# The idle share of a pipeline is called the **bubble**. How large is it with K devices and M micro-batches? Look at the
# forward half and count in *turns*: a turn is the time that one device needs for one micro-batch. After how many turns
# has the last device finished the last micro-batch? During how many of these turns is a given device working? The
# backward half has the same shape.
#
# The table then compares your formula with the boxes of the forward half, and with the simulator.


# %% labs={"id": "concepts.13"}
def bubble(devices, micro_batches):
    """Idle share of a pipeline, from 0 to 1."""
    ### BEGIN SOLUTION
    return (devices - 1) / (micro_batches + devices - 1)
    ### END SOLUTION


if check("concepts.13", bubble):
    rows = []
    for devices, parts in ((2, 1), (4, 1), (4, 4), (4, 16), (8, 16)):
        turns = [part + device for part in range(parts) for device in range(devices)]  # when each box begins
        counted = 1 - len(turns) / (devices * (max(turns) + 1))
        simulated = pipeline.idle(pipeline.pipelined(devices, layers=8, parts=parts))
        row = {"devices": devices, "micro-batches": parts, "by your formula": bubble(devices, parts)}
        rows.append(row | {"from the boxes": counted, "simulated": simulated})
    tables.show(rows)

# %% [markdown]
# On 4 devices, what is the smallest number of micro-batches for which the idle share is at most 10 %?

# %% labs={"id": "concepts.14"}
### BEGIN SOLUTION
enough = 27
### END SOLUTION
check("concepts.14", enough)

# %% [markdown]
# More micro-batches make the bubble even smaller. But a micro-batch with few samples does not keep a device busy, and
# each one adds a message between neighbouring devices. Micro-batches also cost memory. In the schedule above (**GPipe**,
# [1811.06965](https://arxiv.org/abs/1811.06965)), a device stores the activations of all M micro-batches. If it starts
# the backward pass as soon as it can (**1F1B**, [2104.04473](https://arxiv.org/abs/2104.04473)), the bubble is the
# same, but it stores the activations of at most K.
#
# What do the devices send each other?
#
# - **a**: data parallelism: the weights, after each epoch; model and pipeline parallelism: the activations
# - **b**: data parallelism: the activations; model and pipeline parallelism: the gradients of all weights, at every
#   step
# - **c**: data parallelism: the gradients of all weights, at every step; model and pipeline parallelism: the
#   activations, and their gradients in the backward pass
# - **d**: all three: the gradients of all weights, at every step; model and pipeline parallelism: the activations as
#   well

# %% labs={"id": "concepts.15"}
### BEGIN SOLUTION
what_travels = "c"
### END SOLUTION
check("concepts.15", what_travels)

# %% [markdown]
# The gradients are as large as the network, whatever the batch size. The activations at a cut are as large as the
# output of *one* layer, times the number of samples. So data parallelism is expensive for a network with very many
# weights, and model parallelism is expensive for large images or large batches. Large training runs combine the two.
#
# ## Does it fit?
#
# What does one training step store in memory?
#
# | part | size | grows with the batch? |
# |---|---|---|
# | weights | one number for each parameter | no |
# | gradients | one number for each parameter | no |
# | optimizer state | for each parameter: nothing for plain SGD, one number with momentum, two with Adam | no |
# | activations | outputs of layers, kept until the backward pass needs them | yes |
#
# Write a function that returns how many bytes the first three take up for SGD with momentum in float32.


# %% labs={"id": "concepts.16"}
def state_bytes(parameters):
    """Bytes of weights, gradients and momentum. parameters: how many numbers the network learns."""
    ### BEGIN SOLUTION
    return 3 * 4 * parameters
    ### END SOLUTION


if check("concepts.16", state_bytes):
    parameters, activations = recorded.networks()["ResNet50V2"]
    print(f"ResNet50V2: weights, gradients and momentum {state_bytes(parameters) / 1e6:.0f} MB")
    print(f"activations of 32 images of 224 x 224 pixels: {32 * activations / 1e6:.0f} MB")

# %% [markdown]
# Make ResNet152V2 fit into 16 GB with 128 images on each device. (*float16* means two bytes for every number; what is
# *sharded* is divided among the devices.)

# %%
from lessons import memory

widgets.explore(
    pictures.memory,
    network=list(recorded.networks()),
    batch=[1, 8, 32, 64, 128, 512],
    optimizer=list(memory.SLOTS),
    precision=["float32", "float16"],
    devices=[1, 2, 4, 8, 64],
    sharded=list(memory.SHARDED),
)

# %% [markdown]
# With data parallelism, you go from 1 device to 8, with 32 images on each. What does each of the 8 devices store,
# compared with the single device?
#
# - **a**: an eighth of everything
# - **b**: all weights, gradients and optimizer state, and an eighth of the activations
# - **c**: all weights, and an eighth of the gradients and the optimizer state, because the all-reduce divides them
# - **d**: as much of everything as the single device

# %% labs={"id": "concepts.17"}
### BEGIN SOLUTION
on_each_of_8 = "d"
### END SOLUTION
check("concepts.17", on_each_of_8)

# %% [markdown]
# Data parallelism does not save memory. **Sharding** does: each of K devices stores 1/K of the optimizer state (and
# possibly of the gradients and weights), and fetches the other parts when it needs them.
#
# ## T1
#
# In 8 to 12 sentences: what are the advantages and disadvantages of data parallelism and model parallelism? Say what a
# pipeline improves and what limits it. When would you choose each of them? Consider memory, idle time, what travels
# between devices, and how hard the program is to write.

# %% [markdown] labs={"id": "T1", "kind": "answer"}
# ### T1: your answer
# ### BEGIN SOLUTION
# In data parallelism, each device has a copy of the whole network and computes the gradient for its share of the batch;
# the gradients are summed over all devices at every step. It works for any network without changes, all devices work at
# the same time, and adding devices is easy. But the network must fit on each device together with its gradients,
# optimizer state and activations, because none of these are divided. At every step, a gradient as large as the network
# is exchanged, and every device waits for the slowest one; with a fixed local batch, the global batch also grows, which
# changes how the network learns.
#
# In model parallelism, each device has some of the layers, so you can train a network that is too large for any single
# device. Only the activations at the cuts and their gradients are sent. But the devices work one after another: on K
# devices, each is idle for (K-1)/K of the time, or 75 % on 4 devices. The layers must also be divided so that all
# devices have the same amount of work, and the programmer must do this again for each network.
#
# A pipeline cuts the batch into M micro-batches that follow one another, which reduces the idle share to (K-1)/(M+K-1);
# on 4 devices, 27 micro-batches bring it down to 10 %. The limit is the micro-batch size: a micro-batch with few
# samples does not keep a device busy, and each one adds messages. In addition, GPipe stores the activations of all M
# micro-batches until the backward pass, and 1F1B stores those of at most K.
#
# I would use data parallelism as long as the network fits on one device, with sharding if its state is too large; I
# would divide the network only if it does not fit otherwise, and then always use a pipeline; on many devices, I would
# combine the two.
# ### END SOLUTION

# %% [markdown]
# Next: `02_averages_and_rings`.
