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
# **Time: 10 minutes, including less than 1 minute of computing on 2 cores.**
#
# **Paths:** *an afternoon* (next: `01_basic_concepts`), *the practical* (next: `01_basic_concepts`), *everything*.
#
# You will train one neural network on many devices, measure what that gains, and explain what you
# measured. Everything runs on the machine in front of you, with or without a GPU; the same notebooks and
# scripts run on a node with 8 GPUs.
#
# Run a cell with **Shift + Enter**. To run all cells: menu *Run*, *Run All Cells*.
#
# ## Three ways through the course
#
# | path | time | what you can do afterwards |
# |---|---|---|
# | `"afternoon"` | 3 hours | train one network on 1 and on 2 workers, measure the speedup, and say why it is not 2 |
# | `"practical"` | 9 hours | solve the tasks T1 to T11: search for the largest batch, run jobs on a cluster, compare ResNet50V2 with ResNet152V2, and write the report |
# | `"everything"` | 17 hours | also shard data, train with Horovod on many nodes, say why scaling fails, and make a step faster |
#
# Choose one below. A longer path goes through all notebooks of a shorter one, so you can change your mind at any time. Run the cell
# again whenever you come back: it shows how far you are.

# %%
from labs import checks
from labs.lessons.nb00 import pictures
from labs.show import plots

path = "afternoon"  # or "practical", or "everything"
plots.show(pictures.course(checks.progress(), path))

# %% [markdown]
# ## What is this machine?
#
# The doctor looks at it. Each row says what was found and what follows from it; where something
# should be mended, it says how. The first time this takes some seconds: TensorFlow starts.

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
from labs.checks import check, outcome, predict

### BEGIN SOLUTION
worker = "gpu" if devices.gpus() else "core"
### END SOLUTION
check("00.1", worker)

# %% [markdown]
# ## Your first measurement
#
# A small network is trained on 1 worker, and the same on 2. **Predict:** how many times as many images do 2 workers train in a
# second? 1 would be no gain, 2 twice as fast. A prediction is kept and not judged.

# %% labs={"id": "00.2"}
### BEGIN SOLUTION
gain_expected = 1.7
### END SOLUTION
predict("00.2", gain_expected)

# %% [markdown]
# Now measure. Both trainings start, and then take turns: one trains, the other one waits.

# %%
from labs.lessons.nb00 import first

runs = first.measure()

# %%
plots.show(pictures.first(runs))
outcome("00.2", *first.speedup(runs))

# %% [markdown]
# On the left are the seconds of every epoch, on the right how many times as fast 2 workers were in each round. Measured again,
# these numbers would not be the same. The grey band is the **95 % interval** of the ratios' mean, and says how far to trust it.
# The seconds are those of these minutes: in an hour the machine may be faster or slower, for both trainings.
#
# Above the figure stands a question. If the band lies between 1 and 2: why not twice as fast? If it lies below 1: why *slower*? If 1 is
# in the band, these rounds cannot tell. More than 2 is noise: measure again when the machine is quiet, as you do where
# the figure says that other programs ran.
#
# The question goes through the whole course:
#
# - The workers train *one* network, so they must agree after each step: what do they send each other (`02_concurrency`,
#   `02b_ring_all_reduce`, `03_mirrored_strategy`)?
# - All wait for the slowest one (`02_concurrency`).
# - What if a part of the work cannot be divided (`01_basic_concepts`)?
# - The workers share one machine. You take a step apart, and see how much each of these costs here (`05_resnet50_scaling`).
# - Is it the network? A larger one has more to compute, and more to send (`08_resnet152_scaling`).
#
# ## How the kit works
#
# Each of the two trainings was a **job**: a program in a process of its own. Whether it ran in a notebook, in a terminal or on
# a cluster, it leaves three files in the folder `runs`:
#
# | file | holds |
# |---|---|
# | `NAME.out` | what the program printed: Keras' own log |
# | `NAME.err` | what went wrong, or nothing |
# | `NAME.json` | the run record: every step's time, the settings, the machine, the versions |
#
# All results come from these files, never from anywhere else. This is the `.out` file of the training on 1 worker:

# %%
from labs import jobs

print((jobs.folder() / "first_w1.out").read_text())

# %% [markdown]
# The first epoch took longer than the others, though all saw the same images: in the first one, TensorFlow also
# *traces* the program, that is, turns Python into a graph. Every measurement in this course leaves the first epoch out; while it
# runs, the progress bar names no images/s.
#
# The run records in numbers, with their intervals in brackets (**speedup** is what you predicted, **efficiency** the speedup
# divided by the workers). Those of speedup and efficiency are 95 % intervals; those of seconds and images/s say how much they
# spread in these minutes:

# %%
from labs.results import metrics

tables.scaling(metrics.summarise(runs))

# %% [markdown]
# ## What carries a number
#
# **Checks** are answered at once. **Predictions** are kept, not judged: commit
# yourself *before* you run. The outcome is set beside them, and what you said last before it counts. **Blanks** are yours to fill.
# **Written tasks** (T3, T4, ...) are answered in a text cell, in your own words; they are what you hand in.
#
# How good are your predictions, over the course? Each point is a number: the outcome divided by what you said. On the dashed
# line you were right; at 2, it was twice as much. Words are right or not. A bar is the outcome's interval.

# %%
plots.show(pictures.predictions())

# %% [markdown]
# Next: `01_basic_concepts`.
