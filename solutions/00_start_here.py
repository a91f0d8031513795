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
# You will train one neural network on many devices, measure what you gain, and explain your measurements. Everything
# runs on the machine in front of you, with or without a GPU. The same notebooks and scripts also run on a node with 8
# GPUs.
#
# Run a cell with **Shift + Enter**. To run all cells, choose *Run All Cells* from the *Run* menu.
#
# Start with the cell below: it shows the path that you choose through the course, and how far you have got.

# %%
from labs import checks
from labs.show import plots
from lessons.start_here import pictures

path = "afternoon"  # or "practical", or "everything"
plots.show(pictures.course(checks.progress(), path))

# %% [markdown]
# ## Three ways through the course
#
# | path | time | what you can do afterwards |
# |---|---|---|
# | `"afternoon"` | 3.5 hours | train one network on 1 and on 2 workers, measure the speedup, and explain why it is not 2 |
# | `"practical"` | 11.5 hours | complete tasks T1 to T11: find the largest batch, run jobs on a cluster, shard data, train with Horovod, compare ResNet50V2 with ResNet152V2, and write the report |
# | `"everything"` | 18.5 hours | also train on two nodes, find out why jobs hang, explain why scaling fails, and speed up a step (optional notebooks: 7 hours more) |
#
# Choose one: change `path` in the cell above, and run that cell again whenever you come back. A longer path includes all
# the notebooks of a shorter one, so you can change your mind at any time.

# %% [markdown]
# ## What is this machine?
#
# The kit's doctor inspects this machine. Each row says what was found and what that means; if something needs fixing,
# it says how. The first time, this takes a few seconds because TensorFlow has to start.

# %%
from labs import devices, doctor
from labs.show import tables

tables.show(doctor.look(), ("what", "found", "means", "fix"))

# %% [markdown]
# ## Your first check
#
# Whenever you see `...` followed by `# your code here`, that is a **blank**: replace the `...` with your answer and run
# the cell. A check tells you at once whether your answer is right. If it is not, you get a hint; try as often as you
# like.
#
# A *worker* computes one share of a training run. What is a worker on this machine: a `"gpu"` or a `"core"`?

# %% labs={"id": "start.1"}
from labs.checks import check, outcome, predict

### BEGIN SOLUTION
worker = "gpu" if devices.gpus() else "core"
### END SOLUTION
check("start.1", worker)

# %% [markdown]
# ## Your first measurement
#
# You will train a small network on 1 worker, and the same network on 2. **Predict:** by what factor do 2 workers
# raise the number of images processed per second? A factor of 1 means no gain; 2 means twice as fast. Your prediction
# is recorded, but not judged.

# %% labs={"id": "start.2"}
### BEGIN SOLUTION
gain_expected = 1.7
### END SOLUTION
predict("start.2", gain_expected)

# %% [markdown]
# Now measure. Both training runs start and then take turns: while one trains, the other waits.

# %%
from lessons.start_here import first

runs = first.measure()

# %%
plots.show(pictures.first(runs))
outcome("start.2", *first.speedup(runs))

# %% [markdown]
# The left plot shows how many seconds each epoch took; the right plot shows the speed of 2 workers relative to 1
# worker in each round. If you measured again, you would get different numbers. The grey band is the **95 % interval**
# of the mean ratio; it shows how far you can trust the mean. The seconds are valid only for the few minutes in which
# they were measured: an hour later the machine may be faster or slower, for both training runs.
#
# The question above the figure depends on where the band lies. Between 1 and 2: why are 2 workers not twice as fast?
# Below 1: why are they *slower*? If the band includes 1, these rounds do not show which is faster. A value above 2 is
# noise: measure again when the machine is quiet. Do the same if the figure says that other programs were running.
#
# This question runs through the whole course:
#
# - The workers train *one* network, so they must agree after each step: what do they send each other
#   (`02_averages_and_rings`, `03_mirrored_strategy`)?
# - Every worker waits for the slowest one (`02_averages_and_rings`).
# - What if part of the work cannot be divided (`01_basic_concepts`)?
# - The workers share one machine. You will take a training step apart and see how much time each of these effects costs
#   here (`05_resnet50_scaling`).
# - Does the answer depend on the network? A larger network has more to compute, but also more to send
#   (`09_resnet152_scaling`, `10_two_networks`).
#
# ## How the kit works
#
# Each of the two training runs was a **job**: a program in its own process. Whether a job runs in a notebook, in a
# terminal or on a cluster, it leaves three files in the folder `runs`:
#
# | file | contents |
# |---|---|
# | `NAME.out` | what the program printed: Keras' own log |
# | `NAME.err` | what went wrong, if anything |
# | `NAME.json` | the run record: every step's time, the settings, the machine, the versions |
#
# All your measured results come from these files. This is the `.out` file of the run on 1 worker:

# %%
from labs import jobs

print((jobs.folder() / "first_w1.out").read_text())

# %% [markdown]
# The first epoch took longer than the others, although every epoch processed the same images. In the first epoch,
# TensorFlow also *traces* the program: it turns the Python code into a graph. Every measurement in this course leaves
# out the first epoch; while it runs, the progress bar shows no images/s.
#
# Here are the numbers from the run records, with intervals in brackets. (**Speedup** is what you predicted;
# **efficiency** is the speedup divided by the number of workers.) The intervals for speedup and efficiency are 95 %
# intervals. Those for seconds and images/s show how much the values varied during these minutes:

# %%
tables.scaling(runs)

# %% [markdown]
# ## Checks, predictions, blanks and tasks
#
# **Checks** tell you at once whether you are right. **Predictions** are recorded, not judged: commit yourself
# *before* you run the cell. The outcome is then shown beside the last prediction you made before seeing it.
# **Blanks** are yours to fill in. You answer **written tasks** (T1, T2, ...) in a text cell, in your own words. When
# you have written your answer, run the cell below it: it lists what a good answer contains. The report collects what
# you hand in.
#
# How good are your predictions throughout the course? Each point is one number that you predicted; it shows the outcome
# divided by your prediction. If a point is on the dashed line, you were right; at 2, the outcome was twice your
# prediction. Predictions in words are either right or wrong. The bars show the intervals of the outcomes.

# %%
plots.show(pictures.predictions())

# %% [markdown]
# Next: `01_basic_concepts`.
