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
# **Time: 40 minutes, including 3 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `05_resnet50_scaling`), *everything*; *an afternoon* leaves this notebook out.
#
# How many images can one device process in a step? What fills its memory? And if more workers make the batch larger,
# how must the learning rate change? At the end you hand in task **T4**: the largest batch size that fits, with
# evidence.

# %%
from labs import jobs, models, presets, results
from labs.checks import check, outcome, predict
from labs.measure import maxbatch
from labs.show import plots, tables
from lessons import on_gpu

plan = presets.choose()
print(f"preset {plan.name}: {plan.models[0]}, images of {plan.image_size}x{plan.image_size}")

# %% [markdown]
# ## What fills the memory
#
# You know the four parts from notebook 01: **weights**, **gradients**, **optimizer** state, and **activations**. The
# picture shows their sizes for several batch sizes, computed from the model's layers (SGD with momentum keeps one
# number per weight):

# %%
network = models.network("ResNet50V2", image_size=32, classes=10)
parts = {batch: models.memory(network, batch, optimizer_slots=1) for batch in (1, 64, 256, 512)}
plots.show(plots.memory(parts))

# %%
tables.show([{"part": part, "bytes for 1 image": size} for part, size in parts[1].items()])

# %% [markdown]
# Only the activations grow. At which batch size do they take up as much memory as the other three parts together?
# `parts[1]` is a dictionary of the byte counts in the table.

# %% labs={"id": "rate.1"}
### BEGIN SOLUTION
border = sum(size for part, size in parts[1].items() if part != "activations") / parts[1]["activations"]
### END SOLUTION
check("rate.1", border)

# %% [markdown]
# These images are 32 x 32 pixels. How does this batch size change if the same network gets images of 64 x 64 pixels?
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
    of_one = models.memory(models.network("ResNet50V2", image_size=pixels, classes=10), 1, optimizer_slots=1)
    kept = of_one.pop("activations")
    shown.append({"pixels": f"{pixels} x {pixels}", "activations of an image (MB)": kept / 1e6})
    shown[-1]["as much as the rest at batch"] = sum(of_one.values()) / kept
tables.show(shown)

# %% [markdown]
# The picture is only an estimate. Some layers work in place, and others need working memory that this formula does
# not include. To know for certain, you have to try.
#
# ## The search
#
# `maxbatch.search` runs real training steps with 1, 2, 4, 8, ... images until memory runs out. It runs in a separate
# process, so this notebook survives whatever happens there. On a GPU, the limit is the GPU's memory. Without a GPU,
# the process takes one step with one image, and from then on it may use only a fixed budget of additional memory, so
# that TensorFlow itself runs out of memory.

# %%
print(f"budget for a step: {plan.memory / 2**30:.3g} GiB" if plan.memory else "budget: the memory of the GPU")

# %% [markdown]
# **Predict first**, using the picture above: what is the largest batch size that fits?

# %% labs={"id": "rate.3"}
### BEGIN SOLUTION
largest = 256
### END SOLUTION
predict("rate.3", largest)

# %%
result = maxbatch.search(plan.models[0], image_size=plan.image_size, memory=plan.memory)
print(maxbatch.table(result))

# %%
plots.show(plots.search(result))
fits, fails = result["largest"], result["fails"]
outcome("rate.3", fits, (fits, fails) if fails else None)

# %% [markdown]
# The limit lies between the largest size that fits and the next size that was tried; both are shown in brackets. The
# search trains without momentum, so leave the optimizer out when you compare the limit with the bars. If there was no
# GPU, compare only the activations with the budget: memory that the first step left in use does not count. Even then,
# the bars are only an estimate, because they count the output of every layer.
#
# At first, the number of images per second rises with the batch size; then it hardly changes. Larger batches keep the
# device busy, but once it *is* busy, they only cost more memory. (There is only one step per size, so these speeds
# are rough.)
#
# On a GPU, small batches lose more:

# %%
plots.show(on_gpu.batches())

# %% [markdown]
# On this GPU, a step with 4 images took hardly any longer than a step with one. There are two likely reasons: one image
# does not keep all of its units busy, and starting an operation takes the same time for one image as for four. A batch
# twice as large takes almost twice the time only from about 128 images on.
#
# ## The evidence
#
# The search's `.err` file contains the message that TensorFlow wrote when memory ran out. A file is evidence; a claim
# is not.

# %%
error_file = (result["evidence"] or result["trials"][-1]).get("file") or result["trials"][-1]["err"]
text = open(error_file, errors="replace").read()
print(f"{error_file}, its last 900 characters:\n")
print(text[-900:])

# %% [markdown]
# Find the line that names the tensor for which there was not enough memory. (You do not have to copy it by hand:
# search for it in `text`.)

# %% labs={"id": "rate.4"}
### BEGIN SOLUTION
evidence_line = next(line for line in text.splitlines() if line.startswith("OOM"))
### END SOLUTION
check("rate.4", evidence_line, result)

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
# In a terminal, `uv run labs maxbatch --model ResNet50V2 --memory 1GiB --bisect 3` halves the gap three times. In
# practice, most people stick to powers of two, because the last few images per step gain little.

# %% [markdown]
# ## More workers, larger batches
#
# One worker processes 256 images per step at a learning rate of 0.01. Now there are 4 workers, each still with 256
# images. Which batch size do you pass to the pipeline, and which learning rate does the **linear rule** give? The
# rule (Goyal et al. 2017) says: multiply the learning rate by the same factor as the batch size.

# %% labs={"id": "rate.6"}
### BEGIN SOLUTION
global_batch, learning_rate = 4 * 256, 4 * 0.01
### END SOLUTION
check("rate.6", global_batch, learning_rate)

# %% [markdown]
# A common mistake is to pass the local batch size of 256. Each of the 4 workers then gets only 64 images, so training
# is slower, *and* the network learns differently.
#
# The batch size seldom divides the number of images evenly. Take 50,000 images in batches of 8192, without leaving
# any out. How many steps does an epoch have, and how many images are in the last step?

# %% labs={"id": "rate.7"}
### BEGIN SOLUTION
steps, last = -(-50_000 // 8192), 50_000 % 8192
### END SOLUTION
check("rate.7", steps, last)

# %% [markdown]
# That last step has about a tenth of a full batch. It takes about a tenth of the time of a full step, plus a fixed cost
# that every step has. So this step lowers the number of images processed per second. The kit's pipeline leaves the
# last, partial batch out of each epoch and counts only the images that it uses. The data are shuffled anew for each
# epoch, so different images are left out every time.
#
# ## Does the rule hold?
#
# Compare three training runs on *one* worker. Only the batch size and the learning rate differ: batch 32, batch 256,
# and batch 256 with 8 times the learning rate. The network is small, to save time.

# %%
epochs = 2 if plan.name == "test" else 10
files = {}
for name, batch, rate in (
    ("batch 32, rate 0.01", 32, 0.01),
    ("batch 256, rate 0.01", 256, 0.01),
    ("batch 256, rate 0.08", 256, 0.08),
):
    job = jobs.run(
        "-m",
        "labs.training.program",
        "--model",
        "SmallCNN",
        "--epochs",
        epochs,
        "--batch_size",
        batch,
        "--learning_rate",
        rate,
        name=f"rule_b{batch}_r{rate}",
    )
    files[name] = job.record

# %%
runs = {name: results.load(file)[0] for name, file in files.items()}
plots.show(
    plots.curves(
        {name: run.loss for name, run in runs.items()},
        start=1,
        x="epoch",
        y="training loss (cross-entropy, nats)",
        title="batch and rate on one worker",
    )
)
tables.show(
    [
        {
            "training": name,
            "updates per epoch": run.steps,
            "final loss": run.final_loss.value,
            "final accuracy": run.final_accuracy.value,
            "images/s": run.images_per_second.value,
        }
        for name, run in runs.items()
    ],
    ("training", "updates per epoch", "final loss", "final accuracy", "images/s"),
)

# %%
loss = {name: run.final_loss.value for name, run in runs.items()}
assert loss["batch 256, rate 0.01"] > loss["batch 256, rate 0.08"]

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
# The rule has its limits. Learning rates cannot grow without limit, and beyond a certain batch size, no rate makes up
# for the missing updates. (Whether a large batch in itself makes learning worse is disputed: see notebook 23.) Another
# rule multiplies the rate by the square root of the factor, which keeps the variance of an update the same (A.
# Krizhevsky, [1404.5997](https://arxiv.org/abs/1404.5997), 2014). Neither rule holds for all networks and batch sizes
# (C. Shallue and others, [1811.03600](https://arxiv.org/abs/1811.03600), 2019). Besides, a high learning rate is
# dangerous in the first steps. So the rate is often raised gradually over the first epochs; this is called **warm-up**.
#
# ## T4
#
# In 4 to 8 sentences: what is the largest batch size at which your network fits into memory, and how did the search
# find it? Quote the `.err` line that proves that you reached the limit, and say what the shape in it means. Which part
# of the memory sets the limit, and which parts do not grow? Compare your result with your prediction in rate.3.

# %% [markdown] labs={"id": "T4", "kind": "answer"}
# ### T4: your answer
# ### BEGIN SOLUTION
# I doubled the batch size from 1 until memory ran out, with real training steps in a separate process. The table above
# shows each size that was tried. The largest batch that fits is the last one marked "fits". Twice that size fails with
# `OOM when allocating tensor with shape[...]` in the search's .err file; the first number in this shape is the batch
# size that failed. The activations set the limit. Weights, gradients and optimizer state do not depend on the batch
# size, and the tensor that could not be allocated is an activation or its gradient, of shape batch x height x width x
# channels. The optimizer in the picture has momentum, which the search leaves out. My prediction in rate.3 was 256; the
# outcome is shown below the search, with the next size that was tried.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# - Only the activations grow with the batch size; the other parts have a fixed size.
# - You find the largest batch size by measuring, and a line of the `.err` file proves the limit.
# - You pass the global batch size to the pipeline; the linear rule scales the learning rate with it.
#
# Next: `05_resnet50_scaling`.
