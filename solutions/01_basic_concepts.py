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
# **Time: 60 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** *an afternoon* (next: `03_mirrored_strategy`), *the practical* (next: `02_averages_and_rings`), *everything*.
#
# Why train one network on many devices at all? What does "faster" mean, and how do you measure it? How can you divide
# the work, and what must each device keep in its memory? At the end you complete task **T1** in your own words.
#
# You will not train anything in this notebook. Instead, you will work with small simulations and with numbers that
# others have published or measured. One example is a training run on a cluster: on 4 GPUs, it is nearly 4 times as fast
# as on one.

# %%
from labs import recorded, results
from labs.checks import answered, check, outcome, predict
from labs.show import plots, tables, widgets
from labs.simulate import memory
from lessons.basic_concepts import laws, pictures, pipeline

# %% [markdown]
# ## Why one device is not enough
#
# From 2012 to 2018, the amount of computation used in the largest training runs doubled every **3.4 months** (D. Amodei
# and D. Hernandez, "AI and Compute", OpenAI, 2018). Before you compute anything, guess: by what factor does it grow in
# one year?
#
# Then write a function that computes this factor from the number of months in which something doubles.


# %% labs={"id": "concepts.1"}
def per_year(months):
    """Factor by which something grows in a year, if it doubles every `months` months."""
    ### BEGIN SOLUTION
    return 2 ** (12 / months)
    ### END SOLUTION


check("concepts.1", per_year)

# %% [markdown]
# Compare this with something that doubles every 24 months, as the number of transistors on a chip did for decades
# (Moore's law). The next cell uses your formula to plot both on a logarithmic axis. Guess before you look: if the
# speed of *one* chip doubles every 24 months, in which year will a single chip be able to handle the largest training
# run of 2018?

# %%
if answered("concepts.1"):
    plots.show(pictures.gap(per_year))

# %% [markdown]
# Nobody waits for that chip: *more* chips and longer training runs fill the gap. But are a thousand chips a thousand
# times as fast? That is the central question of this course.
#
# Two estimates illustrate this: GPT-3 would take about **355 years on one V100** (C. Li, Lambda, 2020), and about **34
# days on 1024 A100** GPUs (D. Narayanan and others, [2104.04473](https://arxiv.org/abs/2104.04473), 2021). That is 3811
# times as fast. The number of devices accounts for a factor of 1024 at best. The rest, a factor of 3.7 or more, comes
# from the newer device and everything else. So you need to distinguish between two terms:
#
# - **Acceleration**: a different, faster device does the same work.
# - **Scaling**: more devices *of the same kind* share the work.
#
# Only scaling has a **speedup**, $S(p) = T(1) / T(p)$: the time on 1 device divided by the time on $p$ devices.
# Ideally, the speedup is $p$. The **efficiency**, $E(p) = S(p) / p$, is the share of this ideal that you reach.
#
# ## "150 times as fast"
#
# A network for photographs of 500 x 500 pixels was trained first on a CPU and then with Horovod on GPUs. Somebody
# reports:
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
# "speedup of 150" hides both facts. So never use the term *speedup* for a ratio of times on two kinds of device, and
# always say what you are comparing with.
#
# ## From 29 hours to 1.2 minutes
#
# A well-known benchmark is to train the network ResNet-50 on the images of ImageNet. One group needed 29 h on 8 P100
# GPUs. A few years later, another group needed 1.2 min on 2048 V100 GPUs: **1450 times as fast**.
#
# **Predict:** how much of this factor of 1450 is due to the *number* of devices? (The rest is due to faster devices,
# better programs and everything else.)

# %% labs={"id": "concepts.3"}
### BEGIN SOLUTION
by_number = 256
### END SOLUTION
predict("concepts.3", by_number)

# %% [markdown]
# Here are the results that several groups have published, slowest first:

# %%
trainings = recorded.imagenet()
tables.show(
    trainings,
    ("who", "hardware", "devices", "batch", "minutes", "top1"),
    {"batch": "global batch", "top1": "accuracy (top-1, %)"},
)
first, last = (next(row for row in trainings if row["minutes"] == minutes) for minutes in (29 * 60, 1.2))
outcome("concepts.3", last["devices"] / first["devices"], how="computed")

# %% [markdown]
# The picture splits each row's gain over the first row into two factors. In the left plot, the dashed line shows the
# time that larger numbers of P100 GPUs would take if they scaled ideally from 8. In the right plot, the grey bar is the
# factor that the number of devices gives at best, and the coloured bar is the remaining factor. Multiply the two to get
# the total gain.

# %%
plots.show(pictures.imagenet())

# %% [markdown]
# The points for 256 and 1024 P100 GPUs lie a little *above* the line. Their remaining factor is below 1, because
# communication takes time. The points far *below* the line come from faster devices and better programs, so their
# remaining factors, such as 5.7 or 7.6, say nothing about scaling. (For the TPU pod, the number of devices was not
# published.)
#
# You can compute a speedup only from the three P100 rows, but nobody published a time on 1 device. So take the first
# row as the baseline. Compared with this baseline, how many times as fast is another row, and how many times as many
# devices does that row use?


# %% labs={"id": "concepts.4"}
def scaling(first, row):
    """(speedup of `row` against `first`, efficiency). Both are dicts with "devices" and "minutes"."""
    ### BEGIN SOLUTION
    return (first["minutes"] / row["minutes"], first["minutes"] / row["minutes"] / (row["devices"] / first["devices"]))
    ### END SOLUTION


check("concepts.4", scaling)

# %%
if answered("concepts.4"):
    p100 = [dict(row) for row in trainings if row["hardware"] == "P100"]
    for row in p100:
        row["speedup"], row["efficiency"] = scaling(p100[0], row)
    tables.show(
        p100,
        ("devices", "batch", "minutes", "speedup", "efficiency", "top1"),
        {"batch": "global batch", "speedup": "speedup against 8 P100", "top1": "accuracy (top-1, %)"},
    )

# %% [markdown]
# From 8 to 1024 devices, the efficiency stays at about nine tenths. Look at the last column, too: the fastest of the
# three runs is also the least accurate. A training run is faster only if the network is just as good at the end, so
# **state the accuracy alongside every time**. (The three groups used three different programs, so this is a comparison,
# not yet a measurement.)
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
# Now look at one program on one kind of device: ResNet50V2, trained on 1, 2 and 4 V100 GPUs of a node of CTE-POWER, a
# cluster in Barcelona. Each epoch is one pass through 50,000 images. Here is the log that was recorded there, without
# the run on 2 GPUs.

# %%
log = recorded.CTE_POWER.read_text().splitlines()
print(*log[:13], "...", *log[26:], sep="\n")

# %% [markdown]
# Which of a run's epochs do you use to determine how long *one* epoch takes?
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


check("concepts.7", throughput, speedup, efficiency)

# %%
if answered("concepts.7"):
    rows = []
    for gpus, seconds in {1: 45, 2: 24, 4: 12}.items():
        row = {"GPUs": gpus, "seconds per epoch": seconds, "images per second": throughput(50_000, seconds)}
        row |= {"speedup": speedup(45, seconds), "efficiency": efficiency(45, seconds, gpus)}
        rows.append(row)
    tables.show(rows)

# %% [markdown]
# Is the efficiency really the same on 2 GPUs as on 4? Be careful: the log gives whole seconds. An epoch logged as "12
# s" took anything from 11.5 s to 12.5 s, and one logged as "45 s" anything from 44.5 s to 45.5 s. What are the lowest
# and the highest speedup on 4 GPUs that are consistent with this log?

# %% labs={"id": "concepts.8"}
### BEGIN SOLUTION
lowest, highest = 44.5 / 12.5, 45.5 / 11.5
### END SOLUTION
check("concepts.8", lowest, highest)

# %% [markdown]
# Were 4 GPUs less efficient than 2? E(4) / E(2) is 24 / (2 x 12) = 1, but because of the rounding it could be
# anything from 0.94 to 1.07: this log does not tell you. In notebook 05 you will time single steps, and repeat that
# several times.
#
# Here is the whole study in one picture. The bars show the uncertainty due to rounding.

# %%
plots.show(plots.scaling(results.load(recorded.CTE_POWER, images=50_000), ("epoch time", "speedup")))

# %% [markdown]
# This is what success looks like: 4 GPUs of one node are nearly 4 times as fast as one. The numbers were *recorded* on
# a cluster with a GPU for each worker. On your own machine the workers may share cores and memory, and 2 workers may
# even be slower than 1. From notebook 05 on, you will measure this and find out why.
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
# How far can scaling go? Suppose that part of the work is **serial**: adding workers does not shorten it. In a training
# run, one worker might have to read a file for all the others. Starting an operation also takes time, and just as long
# for a few images as for many. Suppose that 5 % of the time on one worker is serial.
#
# **Predict:** if the total work is fixed, by what factor are 64 workers faster than one?

# %% labs={"id": "concepts.10"}
### BEGIN SOLUTION
speedup_of_64 = 15
### END SOLUTION
predict("concepts.10", speedup_of_64)

# %% [markdown]
# Two laws give the answer, where $s$ is the serial share. **Amdahl's law** holds if the work is fixed, **Gustafson's
# law** if it grows in proportion to the number of workers:
#
# $$ \text{fixed work: } S(p) = \frac{1}{s + (1 - s)/p} \qquad \text{growing work: } S(p) = s + p\,(1 - s) $$
#
# Move the controls: press Tab to go from one to the next, and use the arrow keys to change a value. What happens to the
# lower curve when there are 4 times as many workers?

# %%
widgets.explore(pictures.speedups, workers=[4, 16, 64, 256, 1024], serial=[0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5])

# %%
tables.show([{"workers": p, "serial": 0.05, "times as fast": laws.amdahl(p, serial=0.05)} for p in (64, 1000, 100_000)])
outcome("concepts.10", laws.amdahl(64, serial=0.05), how="computed")

# %% [markdown]
# If the work is fixed, the time can never be shorter than the serial part: the speedup never exceeds $1/s$, however
# many workers there are. This is strong scaling. In weak scaling, the divisible work grows and the serial part does
# not, so the speedup keeps growing. This is one reason why training runs on many devices use large batches. Notebook 04
# shows how that affects learning.
#
# ## Where the workers are
#
# A **worker** computes one share of a training run. It is a GPU, or a CPU core where there are no GPUs. A **node** is
# one machine.
#
# - The cores of a node share its memory. A GPU has its own memory and fast links to the other GPUs of its node.
# - Nodes do not share memory. Whatever goes from one node to another travels over the network.
#
# Which devices a program can use depends on its **processes**:
#
# | program | number of processes | computes on |
# |---|---|---|
# | no strategy | one | one device |
# | `MirroredStrategy()` | one | all devices that this process can access |
# | Horovod | one for each device | all nodes on which processes have been started |
#
# A process runs on one node and cannot access the devices of another. With Horovod, `hvd.size()` is the number of
# processes.
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
# (If you know PyTorch: `docs/students/pytorch.md` lists the PyTorch names for these terms.)
#
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
# copies of the network. It takes half a unit and counts as work. Sending data from one device to another takes no time
# in this simulation.

# %%
plots.show(pictures.compare(device_count=4, micro_batches=4))
outcome("concepts.12", pipeline.idle(pipeline.pipelined(devices=4, layers=8)), how="simulated")

# %% [markdown]
# In the middle diagram, each device waits until the previous one is done, so only one device works at a time. The only
# gain is memory: each device keeps just a quarter of the layers. In the bottom diagram, the first device passes
# micro-batch 1 on and continues with micro-batch 2, so several devices work at the same time.
#
# Watch this over time: choose a `kind`, then move the slider `now`. Which device is the last to start, and which is the
# last to finish? What effect do more micro-batches have?

# %%
widgets.explore(
    pictures.parallelism,
    kind=["data", "model", "pipeline"],
    device_count=[1, 2, 4, 8],
    micro_batches=[1, 2, 4, 8, 16, 32],
    now=(0, 100, 5),
)

# %% [markdown]
# What is the idle share of a pipeline with K devices and M micro-batches? Look at the forward half and count in
# *turns*: a turn is the time that one device needs for one micro-batch. After how many turns has the last device
# finished the last micro-batch? During how many of these turns is a given device working? The backward half has the
# same shape.


# %% labs={"id": "concepts.13"}
def bubble(devices, micro_batches):
    """Idle share of a pipeline, from 0 to 1."""
    ### BEGIN SOLUTION
    return (devices - 1) / (micro_batches + devices - 1)
    ### END SOLUTION


check("concepts.13", bubble)

# %% [markdown]
# This share is called the **bubble**. Compare your formula with the simulator, which adds up the gaps between all the
# boxes:

# %%
if answered("concepts.13"):
    rows = []
    for k, m in ((2, 1), (4, 1), (4, 4), (4, 16), (8, 16)):
        counted = pipeline.idle(pipeline.pipelined(devices=k, layers=8, parts=m))
        rows.append({"devices": k, "micro-batches": m, "counted": counted, "by your formula": bubble(k, m)})
        assert abs(counted - bubble(k, m)) < 1e-9
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
# each micro-batch adds a message at each cut. Micro-batches also cost memory. In the schedule shown above (**GPipe**,
# [1811.06965](https://arxiv.org/abs/1811.06965)), all forward passes come first, so a device stores what the backward
# pass needs for all M micro-batches. If each device starts the backward pass as soon as it can (**1F1B**,
# [2104.04473](https://arxiv.org/abs/2104.04473)), the bubble is the same, but a device stores the activations of at
# most K micro-batches.
#
# What do the devices send each other?
#
# - **a**: data parallelism: the weights, after each epoch; model and pipeline parallelism: the activations
# - **b**: data parallelism: the activations; model and pipeline parallelism: the gradients of all weights, at every
#   step
# - **c**: data parallelism: the gradients of all weights, at every step; model and pipeline parallelism: the
#   activations at each cut, and their gradients in the backward pass
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
# weights, and model parallelism is expensive for large images or large batches.
#
# Large training runs combine the two: a few devices share the layers, and several such chains work side by side, each
# with its own samples. Many of them also divide the matrices of every layer among the devices of a node (**tensor
# parallelism**, [1909.08053](https://arxiv.org/abs/1909.08053)). Then no device waits for its turn, but all of them
# exchange activations in each layer.
#
# ## Does it fit?
#
# Data parallelism needs the whole network on each device. What does one training step store in memory?
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


check("concepts.16", state_bytes)

# %% [markdown]
# Guess before you look: for ResNet50V2 with 32 images of 224 x 224 pixels, which take up more memory, these three parts
# or the activations?

# %%
if answered("concepts.16"):
    rows = []
    for name, (parameters, activations) in recorded.networks().items():
        row = {
            "network": name,
            "parameters": parameters,
            "weights, gradients, momentum (MB)": state_bytes(parameters) / 1e6,
        }
        rows.append(row | {f"activations, batch {n} (MB)": n * activations / 1e6 for n in (1, 32)})
    tables.show(rows)

# %% [markdown]
# In networks for images, the activations take most of the memory. Halving the batch halves the activations; they are
# the reason why a batch can be too large (notebook 04). VGG16 has by far the most weights, but no more activations than
# ResNet50V2: up to a batch size of 27, its weights, gradients and momentum take more memory than its activations.
#
# Now try all the controls. Here, *float16* means two bytes for every number (training in mixed precision needs more, as
# you will see). The dotted lines mark the memory sizes of three GPUs, where these fit on the axis. How can you make
# ResNet152V2 fit into 16 GB with 128 images? Which parts change with *devices*, and under what condition?

# %%
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
# possibly of the gradients and weights), and fetches the other parts when it needs them. Sharding does not divide the
# activations. In notebook 25 you will shard an optimizer.
#
# The largest networks need sharding. A network with **175 billion** weights of 16 bits each needs 350 GB for the
# weights alone, and so at least 5 devices with 80 GB each. Training takes more. In mixed precision, Adam needs 16
# bytes for each weight: 2 for the weight and 2 for its gradient, in 16 bits, and 12 for a copy of the weight and
# Adam's two numbers, in float32 (S. Rajbhandari and others, ZeRO, [1910.02054](https://arxiv.org/abs/1910.02054),
# section 3.1). That makes 2,800 GB, without counting a single activation.
#
# Plain data parallelism cannot train such a network, because each device would have to store all of that. A network
# with fewer than 100 million weights can fit on one device, depending on the image size and the batch size. That is why
# this course uses data parallelism.
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
# ## Summary
#
# - Scaling means using more devices of the same kind; acceleration means using a faster device. Only scaling has a
#   speedup and an efficiency.
# - Leave out the first epoch, allow for rounding, and state the accuracy alongside the time.
# - Data parallelism copies the network and divides the samples; model parallelism divides the network; micro-batches
#   fill the gaps.
# - Weights, gradients and optimizer state depend on the network; the activations also depend on the batch.
#
# Next: `02_averages_and_rings`.
