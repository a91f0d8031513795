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
# **Time: 7 minutes, including less than 1 minute of computing on 2 cores.**
#
# **Paths:** *an afternoon* (next: `01_basic_concepts`), *the practical* (next: `01_basic_concepts`), *everything*.
#
# You will train one neural network on many devices, measure what you gain, and explain your measurements. Everything
# runs on the machine in front of you, with or without a GPU.
#
# Run a cell with **Shift + Enter**. The first cell shows your path through the course, and how far you have got.

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
# | `"afternoon"` | 2 hours | train one network on 1 and on 2 workers, measure the speedup, and explain why it is not 2 |
# | `"practical"` | 7.5 hours | complete all tasks: find the largest batch, run jobs on a cluster, shard data, train with Horovod, compare ResNet50V2 with ResNet152V2, and write the report |
# | `"everything"` | 11 hours | also train on two nodes, find out why jobs hang, explain why scaling fails, and speed up a step (optional notebooks: 3.5 hours more) |
#
# (The times count reading, writing and computing; thinking comes on top.) Choose one: change `path` in the cell above and
# run it again. A longer path includes all the notebooks of a shorter one, so you can change your mind at any time.

# %% [markdown]
# ## What is this machine?
#
# The kit's doctor inspects this machine. If something needs fixing, the last column says how. (In red, TensorFlow says
# that it uses oneDNN, a library for faster convolutions.)

# %%
from labs import doctor
from labs.show import tables

tables.show(doctor.look(), ("what", "found", "means", "fix"))

# %% [markdown]
# ## Your first check
#
# A `...` followed by `# your code here` is a **blank**: replace the `...` with your answer and run the cell. A
# **check** tells you at once whether your answer is right. If it is not, you get a hint; try as often as you like.
#
# A *worker* computes one share of a training run. What is a worker on this machine: a `"gpu"` or a `"core"`?

# %% labs={"id": "start.1"}
from labs import devices
from labs.checks import check

### BEGIN SOLUTION
worker = "gpu" if devices.gpus() else "core"
### END SOLUTION
check("start.1", worker)

# %% [markdown]
# ## Your first measurement
#
# You will train a small network on 1 worker, and the same network on 2. **Predict:** by what factor do 2 workers
# raise the number of images processed per second? 1 means no gain; 2 means twice as fast. A prediction is recorded, but
# not judged: commit yourself *before* you run the next cell.

# %% labs={"id": "start.2"}
from labs.checks import predict

### BEGIN SOLUTION
gain_expected = 1.7
### END SOLUTION
predict("start.2", gain_expected)

# %% [markdown]
# Now measure. The two training runs take turns: while one trains, the other waits. One epoch of each is a **round**.

# %%
from lessons.start_here import first

runs = first.measure()

# %%
from labs.checks import outcome

plots.show(pictures.first(runs))
outcome("start.2", *first.speedup(runs))

# %% [markdown]
# Each round gives one ratio: the speed of 2 workers relative to 1 worker. If you measured again, you would get
# different ratios. The grey band is the **95 % interval** of their mean; it shows how far you can trust the mean.
#
# The question above the figure depends on where the band lies. Between 1 and 2: why are 2 workers not twice as fast?
# Below 1: why are they *slower*? If the band includes 1, these rounds do not show which is faster. A value above 2 is
# noise: measure again when the machine is quiet.
#
# You will meet the possible answers one by one:
#
# - Part of the work may not be divisible (`01_basic_concepts`).
# - The workers train *one* network, so they must agree after each step, and every worker waits for the slowest one
#   (`02_averages_and_rings`, `03_mirrored_strategy`).
# - The workers share one machine. You will take a training step apart to see what each of these effects costs here
#   (`05_resnet50_scaling`).
# - A larger network has more to compute, but also more to send (`09_resnet152_scaling`, `10_two_networks`).
#
# ## How the kit works
#
# Each training run was a **job**: a program in its own process. In a notebook, in a terminal or on a cluster, a job
# leaves three files in the folder `runs`:
#
# | file | contents |
# |---|---|
# | `NAME.out` | what the program printed: Keras' own log |
# | `NAME.err` | what went wrong, if anything |
# | `NAME.json` | the run record: every step's time, the settings, the machine, the versions |
#
# This is the `.out` file of the run on 1 worker:

# %%
from labs import jobs

print((jobs.folder() / "first_w1.out").read_text())

# %% [markdown]
# The first epoch took longer than the others, as its ms/step show: in it, TensorFlow also *traces* the program, which
# turns the Python code into a graph. So every measurement in this course leaves out the first epoch.
#
# Here are the numbers from the run records. The **speedup** is what you predicted; the **efficiency** is the speedup
# divided by the number of workers. (*Weak scaling*, in its heading, means that each worker keeps its batch size.)

# %%
tables.scaling(runs)

# %% [markdown]
# ## Written tasks and predictions
#
# You answer most of the **tasks** (T1 to T11, S1 and H1) in a text cell, in your own words. The cell below it then
# lists what a good answer contains. The report collects what you hand in.
#
# How good are your predictions? Each point is one number that you predicted; it shows the outcome divided by your
# prediction. On the dashed line you were right; at 2, the outcome was twice your prediction. The bars show the
# intervals of the outcomes.

# %%
plots.show(pictures.predictions())

# %% [markdown]
# Next: `01_basic_concepts`.
