# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # The same training on other engines
#
# **Time: 25 minutes, including 2 minutes of computing on 2 cores.**
#
# **Paths:** only *everything* contains this notebook.
#
# This notebook is **optional**: you hand nothing in, and no other notebook depends on it. Which parts of this course
# still hold when you train with something else? You train one Keras model with TensorFlow's MirroredStrategy, with
# Horovod and with JAX, and test whether all three end up with the same weights. With a different loss, one of them does
# not, and you find out why. Then you write the data-parallel step yourself in JAX, and look at what its compiler makes
# of it.
#
# JAX is not part of the usual set-up. In a terminal, `make jax` installs it, for the CPU only: it downloads about 90 MB
# and takes up about 400 MB on disk. Then restart the kernel. Without JAX (or without Horovod), the cells that need it
# say so, and the rest still runs.

# %%
from labs import devices, jobs, presets
from labs.checks import answered, check, outcome, predict
from labs.show import plots, tables
from lessons import on_gpu
from lessons.other_engines import experiments

import numpy as np

plan = presets.choose()
quick = plan.name == "test"  # for tests, which train on fewer engines
there = {name: devices.has(name) for name in ("horovod", "jax")}
print(f"preset {plan.name}; {devices.cores()} cores")

# %% [markdown]
# ## One program for all devices
#
# In Horovod, you write the program of *one rank*: it knows its number, reads its own samples, and exchanges gradients
# with the others. In JAX, you usually write the program for *the whole batch*, as for a single device. Then you say how
# the arrays are divided among the devices, and the compiler (XLA) adds the exchange. An array that is divided like this
# is called **sharded**. Keras offers this as `keras.distribution.DataParallel`: it splits each batch by rows, and every
# device holds all the weights.
#
# When Keras is imported, it takes its backend (TensorFlow, JAX or PyTorch) from the environment variable
# `KERAS_BACKEND`. So a program on JAX needs a process of its own, and all training here runs in jobs. As in the other
# notebooks, a device is a CPU core: JAX divides its CPU into two *virtual* devices.
#
# ## Are they the same?
#
# The test is simple: all engines begin with the same weights and train on the same 20 batches of 64 images. The network
# has two convolutions and a dense layer, in float32, without dropout. With two workers, each processes 32 of the 64
# images. **Predict:** after these 20 steps, what is the largest difference between a weight trained with JAX on two
# devices and the same weight trained with TensorFlow in one process? (The largest weight is about 2. Give a number,
# such as 0, 1e-6 or 0.01.)

# %% labs={"id": "engines.1"}
### BEGIN SOLUTION
difference_expected = 1e-6
### END SOLUTION
predict("engines.1", difference_expected)

# %% [markdown]
# Now train: in one process, under MirroredStrategy, with Horovod on two ranks, and with JAX on one and on two devices.
# Each engine trains three variants of the network, called **cases**; for now, you need only the first. This takes one
# or two minutes.

# %%
engines = ["one process"] if quick else experiments.ENGINES
trained = experiments.trained(engines)
one = trained["one process"]

# %% [markdown]
# How far apart may the weights of two training runs be if both compute the same thing? In floating-point arithmetic, (a
# + b) + c does not always equal a + (b + c). So the mean gradient depends on the order in which the images are added
# up, and each engine has its own order. A single process shows how much this matters: it was trained four more times,
# each time with the images of every batch in a different order.
#
# Write a function that takes these weights and returns the **tolerance**. First find the largest absolute difference
# between a weight in the first row and the same weight in any later row. The other engines also use different libraries
# for their convolutions, so allow ten times as much.


# %% labs={"id": "engines.2"}
def tolerance(trained):
    """trained: an array of shape (5, weights), a row for each order of the images."""
    ### BEGIN SOLUTION
    return 10 * np.abs(trained[1:] - trained[0]).max()
    ### END SOLUTION


check("engines.2", tolerance)

# %% [markdown]
# For comparison, one worker also trained without the exchange: it took its half of each batch, and received nothing
# from the other half. That is what you get if you forget the all-reduce.

# %%
if answered("engines.2"):
    limit = float(tolerance(experiments.orders(one)))
    rows = experiments.table(trained, "plain")
    outcome("engines.1", {row["engine"]: row["apart"] for row in rows}.get("JAX, 2 devices"), how="measured")
    rows.append({"engine": "without the exchange", "apart": experiments.apart(one["half"], one["plain"])})
    rows = [row | {"times": row["apart"] / limit} for row in rows]
    tables.show(rows, headers={"apart": "largest difference from one process", "times": "times the tolerance"})

# %% [markdown]
# On this network, all these engines compute the same thing: their weights differ only in the last few bits. The row
# for training without the exchange shows that the test would notice such a mistake.
#
# All of this ran on CPUs. Would a GPU compute the same weights?

# %%
print(on_gpu.same_steps())

# %% [markdown]
# On this GPU, JAX rounds the factors of convolutions and matrix products to TF32, which has about three decimal digits
# (notebook 25). With full float32, GPU and CPU agree, so the difference comes from this rounding. It is about as large
# as the difference between two orders of the images on the GPU itself. So measure the tolerance on the device on which
# you will use it.
#
# ## A difference that is not rounding
#
# Now look at the second case. Only the end of the network is different: the last layer has a softmax, and the loss
# takes its probabilities instead of the scores (in Keras, without `from_logits=True`). The networks of this course are
# built like this. In all cases, the last layer starts with large weights, so the network starts
# out very sure of wrong classes.

# %%
tables.show(experiments.table(trained, "softmax"), ("engine", "apart"), {"apart": "largest difference, with a softmax"})

# %%
with_itself = {name: of for name, of in trained.items() if "JAX" in name}
if with_itself:
    shown = experiments.table(with_itself, "softmax", by="JAX, 1 device")
    tables.show(shown, ("engine", "apart"), {"apart": "largest difference from JAX on 1 device"})

# %% [markdown]
# The first table compares every engine with one process of TensorFlow, and the second one compares JAX with itself. (If
# you do not have JAX: on our machine, both JAX rows in the first table showed 3.4e-02, and the second table showed
# 1.2e-07.) Why does JAX end up with different weights?
#
# - **a**: its all-reduce adds up the gradients of the devices in a different order
# - **b**: its devices get different shares of the batch from MirroredStrategy's replicas
# - **c**: on JAX, even a single device computes something different: the loss after a softmax
# - **d**: its convolutions are less precise

# %% labs={"id": "engines.3"}
### BEGIN SOLUTION
cause = "c"
### END SOLUTION
check("engines.3", cause)

# %% [markdown]
# On TensorFlow, Keras notices that the probabilities come from a softmax, goes back to the scores, and computes the
# loss from them. On JAX, it takes the logarithm of the probabilities, which it first limits to the range from `1e-7` to
# `1-1e-7`. A probability outside this range has no gradient, so the network learns nothing from its worst mistakes.
# (You can read both in Keras's source code, in `sparse_categorical_crossentropy` of `backend/tensorflow/nn.py` and of
# `backend/jax/nn.py`.) The exchange is not the cause, since JAX on one device agrees with JAX on two. When you move a
# training run to another engine, first compare *one* device with *one* device.
#
# ## Whose mean?
#
# In the third case, a batch normalisation layer comes after the first layer. During training, it subtracts the mean
# over the batch from its input. But which batch is that, if each of two devices has 32 of the 64 images?

# %%
tables.show(experiments.table(trained, "batch_norm"), ("engine", "apart"), {"apart": "largest difference, batch norm."})

# %% [markdown]
# (On our machine, the weights of MirroredStrategy and Horovod were 6.1e-02 away from those of one process, and those of
# JAX, on 1 and on 2 devices, were at most 1.7e-05 away. The tolerance belongs to the first case; here, look at the size
# of the differences.) With JAX on 2 devices, whose mean does the layer use?
#
# - **a**: that of all 64 images: the devices exchange it
# - **b**: each device uses that of its own 32 images
# - **c**: both use that of the first device's 32 images
# - **d**: both use the moving mean

# %% labs={"id": "engines.4"}
### BEGIN SOLUTION
whose_mean = "a"
### END SOLUTION
check("engines.4", whose_mean)

# %% [markdown]
# The program is written for the whole batch, so a mean in it is a mean over the whole batch. Under MirroredStrategy and
# Horovod, a batch normalisation layer sees only the images of its own worker. (The same is true of PyTorch's DDP,
# unless you ask for `SyncBatchNorm`; on TensorFlow, Keras offers `BatchNormalization(synchronized=True)`.) All engines
# average their gradients over the same images, but some normalise over 32 images, and others over all 64.
#
# ## Where is the all-reduce?
#
# Here is the same step for four engines. (The programs are shortened. The one for PyTorch is not run in this course.)
#
# **A. MirroredStrategy**
#
# ```python
# 1  def on_each_replica(images, labels):
# 2      with tf.GradientTape() as tape:
# 3          value = loss(labels, model(images, training=True)) / replicas
# 4      gradients = tape.gradient(value, model.trainable_variables)
# 5      optimizer.apply_gradients(zip(gradients, model.trainable_variables))
# 6  strategy.run(on_each_replica, args=(images, labels))
# ```
#
# **B. Horovod** (`labs.hvd`)
#
# ```python
# 1  optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.01 * hvd.size()))
# 2  with tf.GradientTape() as tape: value = loss(labels, model(images, training=True))
# 3  gradients = tape.gradient(value, model.trainable_variables)
# 4  optimizer.apply(gradients, model.trainable_variables)
# ```
#
# **C. PyTorch DDP**
#
# ```python
# 1  model = DistributedDataParallel(network)
# 2  optimizer.zero_grad()
# 3  value = cross_entropy(model(images), labels)
# 4  value.backward()
# 5  optimizer.step()
# ```
#
# **D. JAX** (`images` and `labels` are split by rows; `weights` are whole on each device)
#
# ```python
# 1  images, labels = jax.device_put((images, labels), NamedSharding(mesh, P("data")))
# 2  @jax.jit
# 3  def step(weights, images, labels):
# 4      value, gradient = jax.value_and_grad(loss)(weights, images, labels)
# 5      return jax.tree.map(lambda w, g: w - RATE * g, weights, gradient), value
# ```
#
# For each program, give the line *in which the gradients are exchanged* while the program runs. In A, line 3 divides
# the loss, and after line 4 each replica still has its own `gradients`. DDP sends a bucket as soon as its gradients are
# ready (notebook 26). In D, look for the line whose result needs the images of both devices.

# %% labs={"id": "engines.5"}
### BEGIN SOLUTION
line_in_A, line_in_B, line_in_C, line_in_D = 5, 4, 4, 4
### END SOLUTION
check("engines.5", line_in_A, line_in_B, line_in_C, line_in_D)

# %% [markdown]
# ## By hand
#
# Open `scripts/jax_by_hand.py`. It trains a small network without Keras, in two ways. In `by_hand`, you write the program
# of one device, as in Horovod. `by_compiler` is written for the whole batch, as for a single device. Two functions have
# blanks.
#
# **The mesh.** A `Mesh` puts the devices in order and gives each axis a name; here there is one axis, `"data"`. A
# `NamedSharding(mesh, P("data"))` says that the first axis of an array is divided along `"data"`, and
# `NamedSharding(mesh, P())` that the array is whole on each device. `jax.device_put(array, sharding)` places an array
# in this way. It also takes a dict of arrays. `Mesh(devices, ("data",))` makes a mesh of the devices. Fill in `spread`.

# %% labs={"id": "engines.6"}
script = "scripts/jax_by_hand.py"
check("engines.6", script, without="jax")

# %% [markdown]
# **The step.** `jax.shard_map` runs a function on each device, with that device's part of the arrays, like the program
# of one rank in Horovod. In the function, `jax.lax.psum(array, "data")` adds up the arrays of all devices along the
# axis `"data"`: it is the all-reduce, and returns the sum. It takes an array or a dict of arrays, and `jax.tree.map(f,
# gradient)` calls `f` for each array of a dict. `mesh.size` is the number of devices. As the script stands, each device would update its
# weights with the gradient of its own share. Complete `on_one_device`: the gradient and the loss must both be means
# over all devices.

# %% labs={"id": "engines.7"}
check("engines.7", script, without="jax")

# %% [markdown]
# Your function exchanges five arrays: the gradients of two matrices and two biases, and the loss. **Predict:** how many
# all-reduces does the compiler use for them in each step?

# %% labs={"id": "engines.8"}
### BEGIN SOLUTION
all_reduces_expected = 5
### END SOLUTION
predict("engines.8", all_reduces_expected)

# %%
said = ""
if there["jax"] and answered("engines.6", "engines.7"):
    job = jobs.run(script, name="jax_by_hand")
    said = job.out.read_text()
    print(said)
    outcome("engines.8", said.partition("velocity")[0].count("all-reduce of"), how="counted")

# %% [markdown]
# These lines come from the compiled program, which XLA writes in its own language (**HLO**). They show what is
# exchanged, and the type and shape of each array. `f32[3072,64]` is a matrix of 3072 x 64 numbers in float32.
#
# - The compiler has put all five arrays into *one* all-reduce. Horovod does the same at run time with its fusion buffer,
#   and DDP with its buckets.
# - `by_compiler` contains no `psum`, and yet the same all-reduce is there. The loss is a mean over the rows of the
#   whole batch. The rows lie on different devices, so the gradient of the loss is a sum over devices.
#
# With `check_vma=False`, as in the script, `shard_map` makes only the exchanges that you write yourself. By default,
# JAX keeps track of what is equal on all devices. It then automatically adds up the gradients of weights that are whole
# on each device, and your `psum` would be one too many.
#
# ## A divided state
#
# In notebook 25, you wrote a sharded optimizer by hand: each rank kept its part of the velocity (ZeRO-1). Look at the
# last part of the output again. The two runs of `by_compiler` differ in a single annotation, the `PartitionSpec` of the
# velocity: `P()` or `P("data")`. Both end with the same loss, but with `P("data")` each device holds only half of the
# velocity. In return, every device updates only its part of the weights, and all-gathers put the parts together. (The
# compiler has kept the all-reduce. Your optimizer of notebook 25 replaced it with a reduce-scatter, and so exchanged no
# more bytes than before.)
#
# ## Two processes
#
# Virtual devices belong to one process. On a cluster, each node has a process of its own, as with Horovod:
# `jax.distributed.initialize(address, num_processes, process_id)` connects them. From then on, `jax.devices()` lists
# the devices of *all* processes, and the step is still written for the whole batch. Only the input changes: each
# process reads its own rows, and `jax.make_array_from_process_local_data` tells JAX that they are its part of the
# global array. So here you need a shard of your own again (notebook 07). Between CPUs, the arrays travel over Gloo, which Horovod uses,
# too.

# %%
if there["jax"]:
    job = jobs.run("-m", "lessons.other_engines.processes", name="jax_processes")
    print(job.out.read_text())

# %% [markdown]
# Each process has one of the two devices, and both print the same loss. It is also the loss of `by_hand` above, which
# trained the same network with the same batches and the same rate.
#
# ## How fast?
#
# For each engine, a study trains the course's SmallCNN on 1 and on 2 workers, which take turns, as in `labs study
# --strategy jax`.
# **Predict** the speedup of JAX on 2 devices, as a number.

# %% labs={"id": "engines.9"}
### BEGIN SOLUTION
speedup_expected = 1.8
### END SOLUTION
predict("engines.9", speedup_expected)

# %%
strategies = ["jax"] if quick else ["mirrored", "horovod", "jax"]
runs = experiments.studied(plan, *strategies)
if runs:
    tables.scaling(runs)
on_2 = next((run for run in runs if (run.strategy, run.workers) == ("jax", 2)), None)
if on_2:
    outcome("engines.9", on_2.speedup.value, on_2.speedup.interval, how=on_2.kind)

# %%
if runs:
    plots.show(plots.scaling(runs))

# %% [markdown]
# Each speedup is a ratio within rounds, so you may compare the speedups, with their intervals. Do not compare the seconds:
# the studies were measured one after the other, and the engines run different code. On JAX, XLA compiles the whole step;
# on TensorFlow, the course switches XLA off.
#
# ## What is it called elsewhere?
#
# A small circle (°) marks what comes from the documentation and is not run in this course.
#
# | here | MirroredStrategy | Horovod | PyTorch DDP, FSDP2 ° | JAX |
# |---|---|---|---|---|
# | one program for | all replicas of one machine | each rank | each rank | all devices; started once for each process |
# | rank | replica | `hvd.rank()` | `dist.get_rank()` | `jax.process_index()` |
# | size | `num_replicas_in_sync` | `hvd.size()` | `dist.get_world_size()` | `jax.device_count()`, `jax.process_count()` |
# | shard of the data | Keras divides each batch | `numbers.shard(size, rank)` | `DistributedSampler` | `P("data")`; in each process, `make_array_from_process_local_data` |
# | broadcast at the start | variables are mirrored | `BroadcastGlobalVariablesCallback(0)` | DDP does it in its constructor | the same seed, placed with `P()`; `multihost_utils.broadcast_one_to_all` ° |
# | average of the gradients | in `apply_gradients` | `DistributedOptimizer`, in `apply` | in `backward()` | by the compiler; `psum` in `shard_map` |
# | barrier | not needed | `hvd.barrier()`, only in `horovod.torch` ° | `dist.barrier()` | `multihost_utils.sync_global_devices` ° |
# | divided state | not offered | by hand (notebook 25) | `fully_shard` | `P("data")` on the state |
# | launcher | none | `horovodrun`, `mpiexec`, `srun` | `torchrun`, `srun` | none of its own; `srun` ° |
# | SLURM's variables | not read | MPI gets them from `srun` (PMI) | you copy `SLURM_PROCID` to `RANK`, and so on | `jax.distributed.initialize()` reads them ° |
# | checkpoint | the process saves | rank 0 saves | rank 0; for FSDP2, `torch.distributed.checkpoint` | Orbax °; process 0 if the arrays are whole |
#
# ## Summary
#
# - Ranks, shards, identical weights at the start, averaged gradients: every engine needs them, and you can prove that
#   the engines compute the same thing. Take the tolerance from the order of summation, and show that a missing exchange
#   exceeds it.
# - If two engines differ, compare one device with one device first. The cause may be a loss, not the exchange.
# - JAX programs are written for the whole batch. You say where arrays lie, and the compiler adds the exchange. Batch
#   normalisation then uses the whole batch as well.
# - A sharded optimizer state takes one annotation in JAX. It still costs an all-gather in every step.
#
# Next: `31_write_the_schedule`.
