# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Memory and exchange: a step that keeps less and sends less often
#
# **Time: 30 minutes, including 4 minutes of computing on 2 cores.** Three optional parts take about 10 minutes more.
#
# **Paths:** only *everything* contains this notebook.
#
# In notebook 24, you made a step shorter by removing its waiting time. Here you change the step itself: it computes
# with 2-byte numbers, keeps fewer activations, and exchanges less often. You write gradient accumulation and a sharded
# optimizer by hand. From notebook 24, you need only the basic idea: name the limit, remove it, and measure again.

# %%
from labs import data, devices, doctor, jobs, presets  # import this first: it sets up TensorFlow
from labs.checks import answered, check, outcome, predict
from labs.results import intervals
from labs.show import tables
from lessons import memory
from lessons import on_gpu
from lessons.faster_steps import by_hand, recompute

import json

import keras
import numpy as np
import tensorflow as tf

quick = presets.choose().name == "test"
digits = data.load("digits")

# %% [markdown]
# ## Precision
#
# With `keras.config.set_dtype_policy("mixed_bfloat16")`, the layers compute with 2-byte numbers instead of 4-byte ones.
# Does this machine have hardware for such numbers?

# %%
print(doctor.text([row for row in doctor.look() if row["what"] in ("bfloat16", "GPUs")]))

# %% [markdown]
# **Predict** a ratio for this machine: the speed of a step in mixed_bfloat16, divided by the speed of a step in
# float32.

# %% labs={"id": "memory.1"}
### BEGIN SOLUTION
bfloat16_speed = 1.0
### END SOLUTION
predict("memory.1", bfloat16_speed)

# %%
options = {"rounds": 2, "steps": 1, "train": 2, "batch": 8} if quick else {}
job = jobs.run("-m", "lessons.faster_steps.precision", json.dumps(options), name="precision")
precision = json.loads(job.out.read_text().splitlines()[-1])
plain = precision["float32"]["seconds"]
rows, faster = [], {}
for policy, found in precision.items():
    estimate = intervals.mean([a / b for a, b in zip(plain, found["seconds"])])
    faster[policy] = estimate
    low, high = estimate.interval
    row = {"policy": policy, "step": 1e3 * np.mean(found["seconds"]), "kB": found["activation_bytes"] / 1e3}
    row |= {"speed": f"{estimate.value:.2f} ({low:.2f} to {high:.2f})" if policy != "float32" else "1"}
    rows.append(row | found["stored"] | {"accuracy": found["accuracy"]})
names = {"step": "step (ms)", "speed": "times as fast", "kB": "activations of an image (kB)"}
tables.show(rows, ("policy", *names, "weights", "optimizer", "activations", "loss", "accuracy"), names)
outcome("memory.1", faster["mixed_bfloat16"].value, faster["mixed_bfloat16"].interval)

# %%
low, high = faster["mixed_bfloat16"].interval
said = "faster" if low > 1 else "slower" if high < 1 else "neither faster nor slower, as far as this run can tell"
print(f"On this machine a step in mixed_bfloat16 is {said}. The activations have half the bytes on any machine.")

# %% [markdown]
# Whether 2-byte numbers are faster depends on the hardware. The matrix units of some CPUs (AMX) and of GPUs (tensor
# cores) multiply such numbers faster than float32 numbers. A CPU without such operations converts them to
# float32 and back, which is slower. On any hardware, the activations take up half as much memory. Here is a GPU, with
# ResNet50V2, 128 images of 224x224 pixels:

# %%
print(f"{on_gpu.WHERE}:")
tables.show(on_gpu.precisions())

# %% [markdown]
# The row `float32 (products in TF32)` is what JAX and TensorFlow compute there if you ask for float32. In matrix
# products and convolutions, the tensor cores first round the factors to **TF32**, which has the range of float32 but
# only about three decimal digits. With products in full float32, the step took more than three times as long. So
# "float32" already is a reduced precision there.
#
# What does mixed precision still store in float32?
#
# - **a**: nothing: that is the whole point
# - **b**: the weights, the optimizer's state and the activations
# - **c**: the weights and the optimizer's state; activations take up 2 bytes each
# - **d**: everything: only products are computed in 2 bytes

# %% labs={"id": "memory.2"}
### BEGIN SOLUTION
in_float32 = "c"
### END SOLUTION
check("memory.2", in_float32)

# %% [markdown]
# So a weight needs more memory, not less: 4 bytes of its own, and 2 for the copy that a layer computes with.
#
# There are two 2-byte formats. bfloat16 has the same exponent range as float32, but fewer digits. float16 has more
# digits than bfloat16, but a smaller range: small gradients become 0, unless the loss is scaled (see the optional part
# at the end).

# %% [markdown]
# ## Recompute
#
# The backward pass needs the activations, so they are kept, and they take up most of the memory during training
# (notebook 04). They could be recomputed instead: every layer that is created inside `keras.RematScope()` does this.
# Here you train a network with 24 convolutions. Each run has its own process, which reports its peak memory minus the
# memory before the first step. **Predict** a ratio: the peak if each layer recomputes its activations, divided by the
# peak if all activations are kept.

# %% labs={"id": "memory.3"}
### BEGIN SOLUTION
peak_of_layers = 0.5
### END SOLUTION
predict("memory.3", peak_of_layers)

# %%
size = {"batch": 4 if quick else 16, "steps": 1 if quick else 2}
remat = hasattr(keras, "RematScope")
modes = ["none", "layers"] if remat else ["none"]
found = [recompute.measure(mode, **size) for mode in modes]
outcome("memory.3", found[1]["peak_bytes"] / found[0]["peak_bytes"] if remat and all(found) else None)

# %% [markdown]
# A layer that recomputes its own activation keeps its *input*, which is the activation of the previous layer, so
# nothing is gained. Only **blocks** of layers save memory. A block of b layers keeps only its input; while the backward
# pass works through the block, its b activations are in memory again. With 24 layers, the memory holds 24/b inputs and
# b activations. Which whole number b requires the least memory? (It need not divide 24.)

# %% labs={"id": "memory.4"}
### BEGIN SOLUTION
block_size = 5
### END SOLUTION
check("memory.4", block_size)

# %%
if answered("memory.4") and remat:
    sizes = (block_size,) if quick else sorted({2, 12, block_size})
    rounds = {} if quick else {block_size: 6}  # in which it takes turns with a network that keeps all
    blocks = [recompute.measure("blocks", block, rounds=rounds.get(block, 0), **size) for block in sizes]
    found = found[: len(modes)] + blocks  # the same when this cell runs again
    rows = []
    for row in filter(None, found):
        rows.append(row | {"peak": row["peak_bytes"] / 2**20})
        if row["seconds"]:
            ratio = intervals.paired(row["seconds"], row["kept_seconds"])
            low, high = ratio.interval
            rows[-1]["times"] = f"{ratio.value:.2f} [{low:.2f}, {high:.2f}]"
    names = {"mode": "recomputed", "block": "layers in a block", "peak": "peak memory of a step (MiB)"}
    tables.show(rows, (*names, "times"), names | {"times": "step, times as long"})

# %% [markdown]
# The price is a second forward pass, which adds between a quarter and a third to the operations in a step. If you
# repeat a run, you get the same peak, but not the same step time. So the network with blocks and the one that keeps
# all activations took turns in one process. The brackets show the 95 % interval of the ratio, computed from its value
# in each round.
# %% [markdown]
# ## Accumulate
#
# A batch that does not fit into memory can be processed in several passes. Their gradients are averaged before a
# *single* update. On several ranks, this also saves exchanges: one exchange is enough for all the passes. Open
# `scripts/accumulated.py` and write the function `accumulated`. The script imports `labs.hvd` as `hvd`:
# `hvd.allreduce(tensor)` returns the mean over all ranks, as `horovod.allreduce` did in notebook 22, and
# `hvd.grouped_allreduce(tensors)` does the same for a whole list of tensors in one exchange. The check runs your
# function on 1, 2 and 4 simulated ranks, without Horovod.

# %% labs={"id": "memory.5"}
script = "scripts/accumulated.py"
check("memory.5", script)

# %% [markdown]
# Now your function runs on real ranks, with four networks: a dense one, one with a frozen layer, one that uses a layer
# twice (tied weights), and one with batch normalisation. The script compares the weights with those of a single process
# that handles each batch as a whole.

# %%
compared = {"alike": "equal on all ranks", "apart": "largest difference from one process"}
compared |= {"fixed": "difference of variables not trained", "moved": "largest change by training"}


def compare(script, name, *networks):
    """A table: the weights of each network after training on two ranks, beside those of one process."""
    rows = []
    for network in networks:
        job = jobs.start(script, "--model", network, name=f"{name}_{network}", ranks=2, launcher="mpiexec")
        if job.wait(show=False).state == "finished":
            rows.append({"network": network, **by_hand.told(job.out.read_text())})
        else:
            print(job.explain())
    tables.show(rows, ("network", *compared), compared)


if answered("memory.5") and devices.has("horovod"):
    compare(script, "accumulated", "dense", *([] if quick else ["frozen", "tied", "batch_norm"]))

# %% [markdown]
# Apart from rounding, the first three networks end up with the same weights as in the single process. **The one with
# batch normalisation does not**: it uses the mean and variance of each pass, not those of the whole batch, and no
# averaging of gradients can correct this.
#
# How much faster is one exchange for 4 passes than one exchange for each pass? Both runs use the same images, with the
# same number of images in each pass:

# %%
rates = {}
if answered("memory.5") and devices.has("horovod") and not quick:
    wide, shared = ["--hidden", 1024, "--model", "dense"], {"ranks": 2, "launcher": "mpiexec"}
    for name, options in {
        "one exchange for 4 passes": ["--passes", 4, "--batch_size", 128, "--steps", 12],
        "an exchange for each": ["--passes", 1, "--batch_size", 32, "--steps", 48],
    }.items():
        job = jobs.start(script, *wide, *options, name=name.replace(" ", "_"), **shared).wait(show=False)
        print(f"{name}: {job.out.read_text().splitlines()[-1] if job.state == 'finished' else job.explain()}")

# %% [markdown]
# ## Shard the optimizer
#
# An optimizer has a state: momentum needs one number for each weight, and Adam needs two. In data parallelism, every
# rank keeps an identical copy of the whole state. With **ZeRO-1**, each rank is responsible for one share of the
# weights, called a **shard**, and keeps only the state for this share (S. Rajbhandari and others, SC 2020). A step then
# has three parts:
#
# 1. **reduce-scatter**: each rank gets the mean gradient for its own share only;
# 2. each rank updates its share of the weights, using its share of the state;
# 3. **all-gather**: every rank gets all the new weights.
#
# An all-reduce *is* a reduce-scatter followed by an all-gather (as in the ring of notebook 02), so the ranks should
# send no more than before.
#
# Write the class `ShardedSGD` in `scripts/sharded_optimizer.py`; it takes about a dozen lines, and comments in the file
# say what goes where. The given function `flat` puts all the values into one vector and pads it with zeros to a given
# length. Choose as length a multiple of the number of ranks, so that all shares have the same size. `hvd.reducescatter`
# gives each rank its part of the mean vector, and `hvd.allgather` joins the parts again. Which part is a rank's own
# follows from `hvd.rank()` and `hvd.size()`. The check runs your class on 1, 2 and 4 simulated ranks.

# %% labs={"id": "memory.6"}
script = "scripts/sharded_optimizer.py"
check("memory.6", script)

# %%
if answered("memory.6") and devices.has("horovod"):
    compare(script, "sharded", "dense", *([] if quick else ["frozen", "tied"]))

# %% [markdown]
# The sharded optimizer gives the same weights as the unsharded one. How much memory does it save, and how much do its
# ranks send? The next cell measures both with a wide network. The ranks are connected by Gloo, whose messages pass
# through the machine's loopback interface, where they can be counted:

# %%
if answered("memory.6") and devices.has("horovod") and not quick:
    options = ["--hidden", 4096, "--steps", 4]
    quiet = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "1048576"}  # what is freed is given back
    for name, more in {"whole": ["--whole"], "sharded": []}.items():
        run = {"name": f"optimizer_{name}", "ranks": 2, "launcher": "horovodrun", "env": quiet}
        job = jobs.start(script, *options, *more, **run).wait(show=False)
        lines = [line for line in job.printed.splitlines() if "MB" in line]
        print(name, *(lines if job.state == "finished" else [job.explain()]), sep="\n")
    values = by_hand.network("dense", 4096, 0).count_params()
    print(f"The gradient takes up {4 * values / 1e6:.1f} MB, and so does the whole velocity.")

# %% [markdown]
# You can shard even more. With **ZeRO-2**, a rank also keeps only its share of the gradients. With **ZeRO-3** (FSDP),
# it also keeps only its share of the weights. The weights are then gathered layer by layer, in the forward pass and
# again in the backward pass, so the ranks send 1.5 times as much as in plain data parallelism. The next table shows how
# many bytes each device needs for each weight of the network, with Adam in float32 (simulated):

# %%
names = {"nothing": "-", "optimizer": "ZeRO-1", "optimizer, gradients": "ZeRO-2", "everything": "ZeRO-3"}
rows = []
for sharded, name in names.items():
    row = {"stage": name, "sharded": sharded}
    for count in (1, 2, 4, 64):
        row[f"{count}"] = sum(memory.step(1, 0, 1, slots=2, devices=count, sharded=sharded).values())
    rows.append(row)
tables.show(rows, ("stage", "sharded", "1", "2", "4", "64"), {"1": "1 device", "64": "64 devices"})

# %% [markdown]
# A network with 1.5 billion weights is trained with Adam in float32, on 8 devices with ZeRO-1. How many bytes do the
# weights, the gradients and the optimizer's state together take up on each device?

# %% labs={"id": "memory.7"}
### BEGIN SOLUTION
bytes_on_a_device = 1.5e9 * (4 + 4 + 8 / 8)
### END SOLUTION
check("memory.7", bytes_on_a_device)

# %% [markdown]
# ## Summary
#
# - 2-byte numbers halve the memory for activations on any machine, but not the memory for weights. They save time where
#   the hardware multiplies them fast.
# - Recompute blocks of layers, not single layers.
# - Accumulate the gradients of several passes, and exchange once. Batch normalisation treats each pass separately.
# - A sharded optimizer trains the same network and sends no more data: reduce-scatter, update, all-gather.
#
# Next: `26_where_a_step_goes`, which is optional. Three optional parts follow here.

# %% [markdown]
# ## Optional: scale the loss
#
# In float16, small gradients become 0. To prevent this, the *loss* is multiplied by a scale factor. This multiplies
# all the gradients by the same factor, and the update divides them by this factor again (`LossScaleOptimizer`).
# Suppose that a gradient is 1e-8. What is the smallest power of two by which you must multiply the loss so that the
# scaled gradient is not 0 in `np.float16`?

# %%
print(np.float16(1e-8), "in float16; smallest number above 0:", np.finfo(np.float16).smallest_subnormal)

# %% labs={"id": "memory.8"}
### BEGIN SOLUTION
scale = 4
### END SOLUTION
check("memory.8", scale)

# %% [markdown]
# ## Optional: what recomputing is worth
#
# Memory use grows linearly with the batch size. Two batch sizes determine the line, and the line gives the largest
# batch that fits into a given amount of memory:

# %%
if answered("memory.4") and remat and not quick:
    rows = []
    for row in [found[0], next(row for row in found if row["block"] == block_size)]:
        mode, half = row["mode"], row["batch"] // 2
        less = recompute.measure(mode, row["block"] or 1, batch=half, steps=1)
        per_image = (row["peak_bytes"] - less["peak_bytes"]) / (row["batch"] - half)
        largest = (2**30 - row["peak_bytes"]) / per_image + row["batch"]
        rows.append({"mode": mode, "per_image": per_image / 2**20, "largest": int(largest)})
    names = {"per_image": "MiB per image", "largest": "largest batch in 1 GiB, computed from the line"}
    tables.show(rows, ("mode", *names), names)

# %% [markdown]
# ## Optional: accumulate with Keras
#
# Keras can accumulate gradients, too: `keras.optimizers.SGD(..., gradient_accumulation_steps=4)`, which
# `hvd.DistributedOptimizer` takes as well. (Under `MirroredStrategy` this fails in the first step with Keras 3, so the
# course's recorder refuses it there.) There is a pitfall. In the cell after your prediction, a schedule halves the learning rate after 8 steps, and each update takes 4 passes. **Predict:** after
# how many *updates* is the rate halved?

# %% labs={"id": "memory.9"}
### BEGIN SOLUTION
updates = 8
### END SOLUTION
predict("memory.9", updates)

# %%
halves = keras.optimizers.schedules.PiecewiseConstantDecay([7], [0.1, 0.05])  # at step 7 the old rate still holds
optimizer = keras.optimizers.SGD(halves, gradient_accumulation_steps=4)
weight = keras.Variable([1.0])
passes = 0
while float(optimizer.learning_rate) > 0.07:
    optimizer.apply([tf.constant([1.0])], [weight])
    passes += 1
print(f"the rate is {float(optimizer.learning_rate):.2f} after {passes} passes, {int(optimizer.iterations)} updates")
outcome("memory.9", int(optimizer.iterations), how="counted")

# %% [markdown]
# Keras's schedules count passes, not updates. So multiply the number of steps in a schedule by the number of passes.
#
# Do four passes in Keras give the same weights as one large batch? The next cell compares them, first without and then
# with batch normalisation:

# %%
for network in ("dense", "batch_norm"):
    weights = []
    for passes in (1, 4):
        model = by_hand.network(network, 64, seed=1)
        sgd = keras.optimizers.SGD(0.05, 0.9, gradient_accumulation_steps=passes if passes > 1 else None)
        model.compile(sgd, "sparse_categorical_crossentropy", jit_compile=False)
        model.fit(digits.images[:256], digits.labels[:256], batch_size=64 // passes, shuffle=False, verbose=0)
        weights.append([variable.numpy() for variable in model.trainable_variables])
    apart = max(np.abs(a - b).max() for a, b in zip(*weights))
    print(f"{network}: 4 passes of 16 against batches of 64, largest difference of a weight: {apart:.1e}")
