# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Batch size and learning rate
#
# **Time: 25 minutes, including 3 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `05_resnet50_scaling`), *everything*; *an afternoon* leaves this notebook out.
#
# How many images can one device process in a step? What fills its memory? And if more workers make the batch larger,
# how must the learning rate change? You hand in task **T4**: the largest batch size that fits, with evidence.

# %%
from labs import models, presets
from labs.checks import check, outcome, predict
from labs.show import plots, tables
from lessons import counts

plan = presets.choose()
print(f"preset {plan.name}: {plan.models[0]}, images of {plan.image_size}x{plan.image_size}")

# %% [markdown]
# ## What fills the memory
#
# You know the four parts from notebook 01: **weights**, **gradients**, **optimizer** state (here, SGD with momentum),
# and **activations**. The table shows their sizes for several batch sizes, computed from the model's layers:

# %%
network = models.network("ResNet50V2", image_size=32, classes=10)
parts = {batch: counts.memory(network, batch, optimizer_slots=1) for batch in (1, 64, 256, 512)}
rows = [{"part": part} | {f"{batch} images (GiB)": parts[batch][part] / 2**30 for batch in parts} for part in parts[1]]
tables.show(rows)

# %% [markdown]
# Only the activations grow with the batch. They are the layers' inputs and outputs that the backward pass reads again.
# Count them for one image:

# %%
from math import prod

from keras import layers

reads_input = layers.Conv2D, layers.Dense, layers.BatchNormalization, layers.MaxPooling2D
reads_output = layers.Activation, layers.Dense, layers.MaxPooling2D
every = [layer.output for layer in network.layers]
again = [layer.input for layer in network.layers if isinstance(layer, reads_input)]
again += [layer.output for layer in network.layers if isinstance(layer, reads_output)]
for name, tensors in {"output of every layer": every, "read again": again}.items():
    sizes = {id(tensor): 4 * prod(tensor.shape[1:]) for tensor in tensors}  # float32, each tensor once
    print(f"{name}: {sum(sizes.values()):,} bytes")
print(f"counts.memory: {parts[1]['activations']:,} bytes")

# %% [markdown]
# At which batch size do the activations take up as much memory as the other three parts together? `parts[1]` is a
# dictionary of the bytes for one image.

# %% labs={"id": "rate.1"}
### BEGIN SOLUTION
border = sum(size for part, size in parts[1].items() if part != "activations") / parts[1]["activations"]
### END SOLUTION
check("rate.1", border)

# %% [markdown]
# These images are 32 x 32 pixels. How does this batch size change if they are 64 x 64?
#
# - **a**: it stays the same, because the network has as many weights as before
# - **b**: it drops to about half
# - **c**: it drops to about a quarter
# - **d**: it becomes about 4 times as large

# %% labs={"id": "rate.2"}
### BEGIN SOLUTION
at_64_pixels = "c"
### END SOLUTION
check("rate.2", at_64_pixels)

# %%
shown = []
for pixels in (32, 64):
    of_one = counts.memory(models.network("ResNet50V2", image_size=pixels, classes=10), 1, optimizer_slots=1)
    kept = of_one.pop("activations")
    shown.append({"pixels": f"{pixels} x {pixels}", "activations of an image (MB)": kept / 1e6})
    shown[-1]["as much as the rest at batch"] = sum(of_one.values()) / kept
tables.show(shown)

# %% [markdown]
# This is an estimate: operations also need working memory, which is not counted here. To know for certain, you have to
# try.
#
# ## The search
#
# Train one step with 1, 2, 4, 8, ... images until memory runs out:

# %%
import tensorflow as tf


def double(step):
    """(Largest batch that fits, smallest that does not.) step: trains one step with so many images."""
    batch = 1
    while True:
        try:
            step(batch)
        except (tf.errors.ResourceExhaustedError, MemoryError):
            return batch // 2, batch
        batch *= 2


# %% [markdown]
# `maxbatch.search` does this in a separate process, so that this notebook survives. On a GPU, the limit is the GPU's
# memory. Without a GPU, the process takes one step with one image, and from then on it may use only a fixed budget of
# additional memory.

# %%
print(f"budget for a step: {plan.memory / 2**30:.3g} GiB" if plan.memory else "budget: the memory of the GPU")

# %% [markdown]
# **Predict first**, using the table: what is the largest batch size that fits? Without a GPU, only the activations
# count: the budget is for what comes on top of the first step. With a GPU, leave out the optimizer, since the search
# trains without momentum.

# %% labs={"id": "rate.3"}
### BEGIN SOLUTION
largest = 256
### END SOLUTION
predict("rate.3", largest)

# %%
from labs.measure import maxbatch

result = maxbatch.search(plan.models[0], image_size=plan.image_size, memory=plan.memory)
print(maxbatch.table(result))


# %%
def measured(batch):
    """What the search's step with this batch did."""
    if not any(trial["fits"] for trial in result["trials"] if trial["batch"] == batch):
        raise MemoryError


fits, fails = result["largest"], result["fails"]
print("double(measured):", double(measured), "maxbatch.search:", (fits, fails))
outcome("rate.3", fits, (fits, fails) if fails else None)

# %% [markdown]
# The limit lies between the two sizes in brackets.
#
# On a quiet machine, images per second rise with the batch size at first, and then hardly change. (There is only one
# step per size, so these speeds are rough.) On a GPU, small batches lose more:

# %%
from lessons import on_gpu

plots.show(on_gpu.batches())

# %% [markdown]
# On this GPU, a step with 4 images took hardly any longer than a step with one: probably one image does not keep all of
# its units busy, and starting an operation takes the same time for four. Only from about 128 images on does a batch
# twice as large take almost twice the time.
#
# ## The evidence
#
# The search's `.err` file contains the message that TensorFlow wrote when memory ran out.

# %%
from labs import jobs

error_file = jobs.folder() / f"{result['name']}.err"
text = error_file.read_text(errors="replace")
print(f"{error_file}, its last 900 characters:\n\n{text[-900:]}")

# %% [markdown]
# The search above quotes the line that names the tensor. How many bytes would this float32 tensor have needed?

# %% labs={"id": "rate.4"}
### BEGIN SOLUTION
tensor_bytes = 4 * prod(map(int, result["evidence"]["line"].partition("shape[")[2].partition("]")[0].split(",")))
### END SOLUTION
if check("rate.4", tensor_bytes, result) and plan.memory:
    print(f"{float(tensor_bytes) / plan.memory:.1%} of the budget: the other tensors of the step were there before it")

# %% [markdown]
# ## Closer to the limit
#
# Doubling leaves a gap: one size fits, but twice that size does not. Write a function that returns the size to try
# next.


# %% labs={"id": "rate.5"}
def next_batch(fits, fails):
    ### BEGIN SOLUTION
    return (fits + fails) // 2
    ### END SOLUTION


check("rate.5", next_batch)

# %% [markdown]
# ## More workers, larger batches
#
# One worker processes 256 images per step at a learning rate of 0.01. Now there are 4 workers, each with 256 images.
# Which batch size do you pass to the pipeline? And which learning rate does the **linear rule** of notebook 03 give?

# %% labs={"id": "rate.6"}
### BEGIN SOLUTION
global_batch, learning_rate = 4 * 256, 4 * 0.01
### END SOLUTION
check("rate.6", global_batch, learning_rate)

# %% [markdown]
# A common mistake is to pass 256. Each worker then gets only 64 images, so training is slower, *and* the network learns
# differently.
#
# Take 50,000 images in batches of 8192, without leaving any out. How many steps does an epoch have, and how many images
# are in the last step?

# %% labs={"id": "rate.7"}
### BEGIN SOLUTION
steps, last = -(-50_000 // 8192), 50_000 % 8192
### END SOLUTION
check("rate.7", steps, last)

# %% [markdown]
# The kit's pipeline leaves out such a partial batch. It shuffles the images anew for each epoch, so different ones are
# left out every time.
#
# ## Does the rule hold?
#
# Compare three training runs of a small network on *one* worker: batch 32, batch 256, and batch 256 with 8 times the
# learning rate.

# %%
files = {}
for batch, rate in ((32, 0.01), (256, 0.01), (256, 0.08)):
    sizes = ["--epochs", 10, "--batch_size", batch, "--learning_rate", rate]
    training = "-m", "labs.training.program", "--model", "SmallCNN", *sizes
    files[f"batch {batch}, rate {rate}"] = jobs.run(*training, name=f"rule_b{batch}_r{rate}").record

# %%
from labs import results

runs = {name: results.load(file)[0] for name, file in files.items()}
curves = {name: run.loss for name, run in runs.items()}
title = "batch and rate on one worker"
plots.show(plots.curves(curves, start=1, x="epoch", y="training loss (cross-entropy, nats)", title=title))
rows = []
for name, run in runs.items():
    row = {"training": name, "updates per epoch": run.steps, "final loss": run.final_loss.value}
    rows.append(row | {"final accuracy": run.final_accuracy.value})
tables.show(rows)
assert runs["batch 256, rate 0.01"].final_loss.value > runs["batch 256, rate 0.08"].final_loss.value

# %% [markdown]
# What do the curves show?
#
# - **a**: with more workers, training gets worse
# - **b**: with a larger batch, the network sees fewer images per epoch and learns less
# - **c**: with a larger batch, the network gets fewer updates per epoch and falls behind; a higher learning rate
#   makes up for much of this
# - **d**: the learning rate makes no difference

# %% labs={"id": "rate.8"}
### BEGIN SOLUTION
answer = "c"
### END SOLUTION
check("rate.8", answer)

# %% [markdown]
# The rule has its limits: beyond a certain batch size, no rate makes up for the missing updates. Another rule
# multiplies the rate by the *square root* of the factor (A. Krizhevsky, [1404.5997](https://arxiv.org/abs/1404.5997),
# 2014). Neither holds for all networks and batch sizes (C. Shallue and others,
# [1811.03600](https://arxiv.org/abs/1811.03600), 2019). And since a high rate is dangerous in the first steps, it is
# often raised gradually over the first epochs; this is called **warm-up**.
#
# ## T4
#
# In 4 to 8 sentences: what is the largest batch size at which your network fits into memory, and how did the search
# find it? Quote the `.err` line that proves the limit, and say what the shape in it means (images, height, width,
# channels). Which part of the memory sets the limit, and which parts do not grow? Compare your result with your
# prediction in rate.3.

# %% [markdown] labs={"id": "T4", "kind": "answer"}
# ### T4: your answer
# ### BEGIN SOLUTION
# I doubled the batch size from 1 until memory ran out, with real training steps in a separate process. The table above
# shows each size that was tried. The largest batch that fits is the last one marked "fits". Twice that size fails with
# `OOM when allocating tensor with shape[...]` in the search's .err file; the first number in this shape is the batch
# size that failed. The activations set the limit. Weights, gradients and optimizer state do not depend on the batch
# size, and the tensor that could not be allocated is an activation or its gradient, of shape batch x height x width x
# channels. The optimizer in the first table has momentum, which the search leaves out. My prediction in rate.3 was 256;
# the outcome is shown below the search, with the next size that was tried.
# ### END SOLUTION

# %% [markdown]
# Next: `05_resnet50_scaling`.
