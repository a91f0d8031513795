# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Start here
#
# **Time: 5 minutes on 2 cores.**
#
# You will train one neural network on many devices, measure what that gains, and explain what you
# measured. Everything runs on the machine in front of you, with or without a GPU; the same notebooks and
# scripts run on a node with 8 GPUs.
#
# Run a cell with **Shift + Enter**. To run all cells: menu *Run*, *Run All Cells*.

# %% [markdown]
# ## What is this machine?
#
# The doctor looks at it. Each row says what was found and what follows from it; where something
# should be mended, it says how.

# %%
from labs import devices, doctor
from labs.show import tables

tables.show(doctor.look(), ("what", "found", "means", "fix"))

# %% [markdown]
# ## Your first check
#
# Whenever you see `...` followed by `# your code here`, that is a **blank**: replace the `...` by your answer and run
# the cell. A check tells you at once whether it is right. If not, it gives a hint; try as often as you like.
#
# A *worker* is what computes one share of a training. What is a worker on this machine: a `"gpu"` or a `"core"`?

# %% labs={"id": "00.1"}
from labs.checks import check

### BEGIN SOLUTION
worker = "gpu" if devices.gpus() else "core"
### END SOLUTION
check("00.1", worker)

# %% [markdown]
# ## How the kit works
#
# A training is a **job**: a program in a process of its own. Whether it ran in a notebook, in a terminal or on
# a cluster, it leaves three files in the folder `runs`:
#
# | file | holds |
# |---|---|
# | `NAME.out` | what the program printed: Keras' own log |
# | `NAME.err` | what went wrong, or nothing |
# | `NAME.json` | the run record: every step's time, the settings, the machine, the versions |
#
# All results come from these files, never from anywhere else. Try it: this job trains a small network for two epochs.

# %%
from labs import jobs

job = jobs.run(
    "-m",
    "labs.training.program",
    "--model",
    "SmallCNN",
    "--epochs",
    2,
    "--batch_size",
    64,
    "--images",
    512,
    name="first_job",
)

# %%
print(job.out.read_text())

# %% [markdown]
# The first epoch took longer than the second, though both saw the same images: in the first one, TensorFlow also
# *traces* the program, that is, turns Python into a graph. Every measurement in this course leaves the first epoch out; while it
# runs, the progress bar names no images/s. Here only the second one is left, and it says how fast this job was:

# %%
from labs.results import collect

tables.scaling(collect.rows([job.record]))

# %% [markdown]
# ## The notebooks, in order
#
# | notebook | you find out |
# |---|---|
# | `01_basic_concepts` | why many devices, how to say what they gain, and three ways to divide the work |
# | `02_concurrency` | how many workers train one network, with and without waiting for each other |
# | `03_mirrored_strategy` | where the weights live when several devices train one network |
# | `04_batch_size_and_learning_rate` | what fits into memory, and what a larger batch asks of the learning rate |
# | `05_resnet50_scaling` | how much faster 2 workers train ResNet50V2, and how sure you can be |
# | `06_horovod_sharding` | who reads which samples, and why a training with more workers may not be faster |
# | `07_horovod_training` | how many processes train one network, on one machine or on several |
# | `08_resnet152_scaling` | whether a larger network scales better or worse, and how sure you can be |
# | `09_why_scaling_fails` | when more workers do not help: exchange, batches, a slow one; and what to do instead |
# | `10_faster_and_watched` | what limits a step, and how to make it shorter without more hardware |
# | `11_report` | what a report needs to be trusted, and how to hand in yours |
#
# Four kinds of items carry a number. **Checks** are answered at once. **Predictions** are kept, not judged: commit
# yourself *before* you run. The outcome is set beside them, and what you said last before it counts. **Blanks** are yours to fill. **Written tasks** (T3, T4, ...) are answered in a text cell, in
# your own words; they are what you hand in.
#
# ## Your progress
#
# Run this cell again whenever you come back.

# %%
from labs import checks

tables.progress(checks.progress())

# %% [markdown]
# How good are your predictions, over the course? Each point is a number: the outcome divided by what you said. On the dashed
# line you were right; at 2, it was twice as much. Words are right or not. A bar is the outcome's interval.

# %%
from labs.lessons.nb00 import pictures
from labs.show import plots

plots.show(pictures.predictions())
