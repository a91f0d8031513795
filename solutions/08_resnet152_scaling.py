# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Does the larger network scale better or worse?
#
# **Time: 90 minutes, including 9 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `11_report`), *everything*; *an afternoon* leaves it out.
#
# ResNet152V2 is the big sister of ResNet50V2. "It is bigger, so it scales worse" is easily said, but it is a guess.
# First you count what grows. Then you write the training script and find the largest batch size. Finally you run the
# script and let the intervals tell you what your data support. The long runs continue in the background while you
# work. You hand in tasks **T7** to **T10**. Three optional parts at the end take about 25 minutes more.

# %%
from labs import devices, jobs, presets, recorded
from labs.checks import answered, check, outcome, predict
from labs.lessons.nb08 import experiments, logs
from labs.measure import maxbatch
from labs.models import counts as facts
from labs.results import collect, verdict
from labs.results.run import load_record
from labs.show import compare, plots, tables
from labs.slurm import sites

plan = presets.choose()
quick = plan.name == "test"
unit = "GPU" if devices.gpus() else "CPU core"
small, large = "ResNet50V2", "ResNet152V2"
print(f"preset {plan.name}: {plan.images or 'all'} images of {plan.dataset}, {plan.local_batch} per worker and step")
print(f"A worker is one {unit}; this machine has {devices.cores()} cores.")

# %% [markdown]
# ## Predict first
#
# Both networks train on the same images, with the same batch size, on **one** worker. How many times as long does an
# epoch take with ResNet152V2 as with ResNet50V2?

# %% labs={"id": "08.1"}
### BEGIN SOLUTION
epoch_ratio_expected = 3.1
### END SOLUTION
predict("08.1", epoch_ratio_expected)

# %% [markdown]
# Now both train on 2 workers, with the same batch size per worker. Which network has the larger speedup? Answer
# `"ResNet50V2"`, `"ResNet152V2"` or `"equal"` (no difference that your runs can show).

# %% labs={"id": "08.2"}
### BEGIN SOLUTION
larger_speedup_expected = "ResNet152V2"
### END SOLUTION
predict("08.2", larger_speedup_expected)

# %% [markdown]
# ## What grows how much?
#
# These numbers are counted layer by layer in the Keras models, for the image size of this notebook. No training is
# needed. A **multiply-add** is one multiplication and the addition that follows it. The table counts the
# multiply-adds of one forward pass for one image.

# %%
size = {name: facts.of(name, image_size=plan.image_size, classes=10) for name in (small, large)}
columns = {
    "model": "network",
    "multiply_adds": "multiply-adds per image",
    "gradient_bytes": "bytes of the gradient",
    "tensors": "gradient tensors",
    "activation_bytes": "bytes of activations per image",
}
tables.show([vars(found) for found in size.values()], tuple(columns), columns)

# %% [markdown]
# How many times as many multiply-adds does ResNet152V2 have as ResNet50V2, and how many times as many gradient bytes?
# `size[large]` and `size[small]` have the table's columns as attributes, for example `size[large].multiply_adds`.

# %% labs={"id": "08.3"}
### BEGIN SOLUTION
operations_ratio = size[large].multiply_adds / size[small].multiply_adds
gradient_ratio = size[large].gradient_bytes / size[small].gradient_bytes
### END SOLUTION
check("08.3", operations_ratio, gradient_ratio, size[small], size[large])

# %% [markdown]
# Several workers share the computation, but pay for it with the exchange. So compare the two: how many bytes of
# gradient are exchanged for each multiply-add that a worker computes in a step? In each step, a worker computes the
# forward pass for all the images in its batch. (The backward pass takes about twice as much work as the forward pass,
# for both networks, so leave it out.)


# %% labs={"id": "08.4"}
def bytes_per_operation(facts, batch):
    """Bytes of gradient for each multiply-add of forward, in a step with `batch` images per worker."""
    ### BEGIN SOLUTION
    return facts.gradient_bytes / (batch * facts.multiply_adds)
    ### END SOLUTION


check("08.4", bytes_per_operation)

# %%
if answered("08.4"):
    shown = [
        {"batch": batch} | {name: 1000 * bytes_per_operation(size[name], batch) for name in size}
        for batch in (8, 16, 32, 64, 128, 256)
    ]
    print("bytes of gradient for each 1,000 multiply-adds:")
    tables.show(shown, ("batch", small, large))

# %% [markdown]
# In each row, the larger network exchanges *fewer* bytes for each multiply-add. **Judging by bytes alone, it should
# scale better at the same batch size.** What works against this?
#
# - **a**: its gradient has more bytes, no matter how much is computed during the exchange
# - **b**: with three times as many layers, the workers wait for each other three times as often in a step
# - **c**: less memory is left for images, so its largest batch is smaller; and the workers have three times as many
#   tensors to agree on
# - **d**: it needs more epochs, and every epoch means one more exchange

# %% labs={"id": "08.5"}
### BEGIN SOLUTION
other_way = "c"
### END SOLUTION
check("08.5", other_way)

# %% [markdown]
# Which effect is stronger depends on the batch size, the links and the software. An argument cannot settle this; a
# measurement may.
#
# ## T7: the script
#
# Open `scripts/ResNet152V2.py` next to your `scripts/ResNet50.py`. It already contains everything that is the same in
# every training script. **Write the rest, using your own script as a model**: the strategy, the learning rate, the
# first line of the log, the network, the recorder and the training. Only a few lines differ.
#
# What happens if you change the network but forget to change `model="ResNet50V2"` in the recorder?
#
# - **a**: the run stops, since the record and the network do not agree
# - **b**: the run does not stop; the times of ResNet152V2 are recorded under the name ResNet50V2, and compared with
#   those of ResNet50V2
# - **c**: ResNet50V2 is trained, because the recorder chooses the network
# - **d**: no record is written

# %% labs={"id": "08.6"}
### BEGIN SOLUTION
forgotten = "b"
### END SOLUTION
check("08.6", forgotten)

# %%
script = "scripts/ResNet152V2.py"
compare.scripts("scripts/ResNet50.py", script)

# %% [markdown]
# Above you see the lines that occur in only one of the two scripts (printing and recording are left out). The check
# tries out your script, as in notebook 05.

# %% labs={"id": "T7"}
check("T7", script)

# %% [markdown]
# ## T8: the largest batch
#
# As in notebook 04, a separate process trains with 1, 2, 4, ... images until memory runs out. Both networks get the
# same amount of memory for a step.
#
# **Predict:** what is the ratio of ResNet50V2's largest batch to that of ResNet152V2? The table above shows what
# grows with the batch size.

# %% labs={"id": "08.7"}
### BEGIN SOLUTION
batch_ratio_expected = size[large].activation_bytes / size[small].activation_bytes
### END SOLUTION
predict("08.7", batch_ratio_expected)

# %%
pair = ("SmallCNN", small) if quick else (small, large)  # the preset test is for tests: it takes smaller networks here
memory = 2**28 if quick else plan.memory
search = {name: maxbatch.search(name, image_size=plan.image_size, memory=memory) for name in pair}
for result in search.values():
    print(maxbatch.table(result), "\n")

# %% [markdown]
# ## T9: start the runs
#
# There is one job for each number of workers, and the jobs **take turns**, as in notebook 05: a round is one epoch of
# each job, and the first round is for warm-up. The runs take several minutes. They start only now that the search has
# finished, because two measurements must not run at the same time. `begin()` starts the turns **in the background**
# and returns at once. Keep reading and writing here, but do not start anything that computes. The rounds do wait
# while other programs use the cores, but not for ever.

# %%
sizes = [*plan.arguments(), "--images", 64] if quick else plan.arguments()
turns = jobs.Turns()
if answered("T7"):
    for workers in plan.workers:
        asked = ["--n_gpus", workers, "--batch_size", workers * plan.local_batch, *sizes]
        turns.start(script, *asked, name=f"ResNet152V2_w{workers}")
    turns.begin()

# %% [markdown]
# As long as the script has blanks, the notebook continues with *recorded* runs from a machine with 2 cores.
#
# ## While they run: what the search found

# %%
plots.show(plots.search(search[pair[1]]))

# %% [markdown]
# Doubling finds the limit only to within a factor of 2: it lies between `result["largest"]`, which fits, and
# `result["fails"]`, which does not. So all that you know about the *ratio* of the two limits (first network / second
# network) is that it lies between two bounds. What are these bounds?

# %% labs={"id": "08.9"}
first, second = (search[name] for name in pair)
### BEGIN SOLUTION
ratio_low = first["largest"] / second["fails"]
ratio_high = first["fails"] / second["largest"]
### END SOLUTION
check("08.9", ratio_low, ratio_high, first, second)

# %%
kept = [facts.of(name, image_size=plan.image_size, classes=10).activation_bytes for name in pair]
print(f"activations per image of {pair[1]}: {kept[1] / kept[0]:.2f} times those of {pair[0]}")
borders = [first["largest"], second["fails"], first["fails"], second["largest"]]
low, high = (borders[0] / borders[1], borders[2] / borders[3]) if all(borders) else (None, None)
outcome("08.7", borders[0] / borders[3] if low and not quick else None, (low, high) if low else None)

# %% [markdown]
# Weights, gradients and optimizer state take up their memory only once. The images share what is left, and each image
# needs memory for its activations. Whether the largest batch is also the fastest is a separate question: once the
# number of images per second has stopped rising, a larger batch gains nothing on *one* worker. On many workers it
# still helps, since there are fewer exchanges per image.
#
# **Write for T8**, in about four sentences: What is the largest batch of ResNet152V2 that fits, and how much memory
# was there for a step? Quote the line of the `.err` file that names the tensor, and give the file's name: you find
# both below the trials of your search. Compare this limit with that of ResNet50V2 for the same amount of memory, as
# an interval. Which part of the memory sets the limit, and why?

# %% [markdown] labs={"id": "T8", "kind": "answer"}
# ### T8: your answer
# ### BEGIN SOLUTION
# I doubled the batch size of ResNet152V2 from 1 until memory ran out, with the memory that the preset allows for a
# step (the table shows each trial). The largest batch that fits is the last one marked "fits". The next one fails
# with the line `OOM when allocating tensor with shape[...]` in the search's .err file; the first number in this shape
# is the batch size that failed. ResNet50V2 fits more images into the same memory. Doubling gives the ratio of the two
# limits only as an interval; this can be compared with the ratio of the activations per image, computed from the
# layers. Activations set the limit, since they alone grow with the batch size. The weights and gradients of
# ResNet152V2 take up 2.5 times as much memory as those of ResNet50V2, but only once.
# ### END SOLUTION

# %% [markdown]
# How far have the runs got? `print(turns)` tells you at any time.

# %%
print(turns)

# %% [markdown]
# ## While they run: when is a difference real?
#
# Soon you will have two speedups, and they will differ, since two runs always differ. Is the difference more than
# chance? Each network was run for several rounds, and each round contains an epoch on 1 worker and one on 2, seconds
# apart. Take the logarithm of the ratio of their times, $d = \log(t_1 / t_2)$. Whatever slowed down the whole round
# cancels out. Then the logarithm of the ratio of the efficiencies is a difference between means over the rounds:
#
# $$ \log\frac{E_\text{large}}{E_\text{small}} = \bar d_\text{large} - \bar d_\text{small} . $$
#
# The mean of n values with variance $s^2$ has variance $s^2/n$, and the variances of independent means add up. Return
# both numbers: the difference and its standard error.

# %% labs={"id": "08.16"}
from math import exp, log, sqrt
from statistics import mean, variance


def contrast(small_1, small_2, large_1, large_2):
    """(log of E(large) / E(small), its standard error); each argument: epoch seconds by round, on 1 or 2 workers."""
    ### BEGIN SOLUTION
    d_small, d_large = (
        [log(one / two) for one, two in zip(*times)] for times in ((small_1, small_2), (large_1, large_2))
    )
    return mean(d_large) - mean(d_small), sqrt(variance(d_large) / len(d_large) + variance(d_small) / len(d_small))
    ### END SOLUTION


check("08.16", contrast)

# %% [markdown]
# From these two numbers, the kit computes a 95 % interval for the ratio. (It uses Student's t instead of 1.96, since
# there are only a few rounds.) Three answers are possible:
#
# - `"yes"`: the interval does not contain 1. The difference is real, even if it is small.
# - `"no"`: the interval contains 1 and lies *entirely* between 1 / (1 + matters) and 1 + matters. Differences in this
#   range do not matter to you.
# - `"can't tell"`: the interval contains 1, but it also contains differences that would matter.


# %% labs={"id": "08.17"}
def answer(low, high, matters):
    """ "yes", "no" or "can't tell", for the interval [low, high] of a ratio; matters: 0.05 for 5 %."""
    ### BEGIN SOLUTION
    if low > 1 or high < 1:
        return "yes"
    if low >= 1 / (1 + matters) and high <= 1 + matters:
        return "no"
    return "can't tell"
    ### END SOLUTION


check("08.17", answer)

# %% [markdown]
# You will use both functions below, once your runs have finished.

# %%
print(turns)

# %% [markdown]
# ## T9: what the runs say
#
# Collect the runs: `wait()` returns when all of them have finished. At first, look only at the run on **one worker**,
# since you will predict the others.

# %%
if turns.jobs:
    turns.wait()
own_small = experiments.earlier(plan, "ResNet50", "mirrored")
lacks = experiments.lacks(own_small, turns, "MirroredStrategy")
own = not lacks
if quick and not own_small:  # the preset test is for tests: it looks at the new runs without those of notebook 05
    own = bool(turns.jobs) and turns.state == "finished"

# %% [markdown]
# Your runs of ResNet152V2 are compared with your runs of ResNet50V2 from notebook 05. If your runs of one network are
# missing, recorded runs are used for *both*. Your runs and the recorded ones come from two different machines, so
# mixing them would mean comparing machines as well as networks.


# %%
def of(name, files):
    return [file for file in files if file.name.startswith(name)]


small_files, large_files = (of(name, recorded.laptop_two_networks()) for name in (small, large))
if own:
    small_files, large_files = own_small or small_files, [job.record for job in turns.jobs]
if lacks:
    print("Recorded runs stand for", f"{small}." if own else "both networks.", lacks)
else:
    print("These are your own runs of both networks.")

# %% [markdown]
# **Predict the step time on 2 workers by hand before you look at it.** On 2 workers, a step of ResNet50V2 takes
# longer than on 1, because of exchange and waiting. Assume that this extra time grows in proportion to the bytes of
# the gradient, and add it to the step time of ResNet152V2 on one worker.


# %% labs={"id": "08.10"}
def step(row):
    return row["epoch_seconds"] / row["steps"]


small_step = {row["workers"]: step(row) for row in collect.rows(small_files)}
large_step = {1: step(collect.rows(large_files[:1])[0])}
print(f"{small}: {small_step[1]:.3f} s on 1 worker, {small_step[2]:.3f} s on 2; {large}: {large_step[1]:.3f} s on 1")
### BEGIN SOLUTION
step_expected = (
    large_step[1] + (small_step[2] - small_step[1]) * size[large].gradient_bytes / size[small].gradient_bytes
)
### END SOLUTION
check("08.10", step_expected, small_step, large_step[1], size[small], size[large])

# %% [markdown]
# Now look. Each worker processes the same number of images in a step, so 2 workers together process twice as many.

# %%
rows = collect.rows([*small_files, *large_files])
tables.scaling(rows)

# %%
if answered("08.10"):
    measured_step = next(step(row) for row in rows if (row["model"], row["workers"]) == (large, 2))
    how = "recorded" if lacks else "measured"
    print(f"step of {large} on 2 workers: predicted {step_expected:.3f} s, {how} {measured_step:.3f} s")
    print(f"residual: {measured_step / step_expected - 1:+.1%} of the prediction")

# %% [markdown]
# Note down the residual: you need it for T9. The extra time does not have to grow in proportion to the bytes, and
# other things in a step may take time, too.
#
# The number of images per second counts only the images that were actually processed: 512 images are 8 steps of 64
# images, or 4 steps of 128 images. If the batch size does not divide the number of images evenly, the kit's pipeline
# leaves out the last, partial step.

# %% labs={"id": "08.11"}
check("08.11", rows, "" if own else lacks)

# %% [markdown]
# On 2 cores, a run with 4 workers would be marked **oversubscribed**, and its times would say nothing about speed. If
# you have GPUs, the preset trains on 1, 2 and 4 workers.
#
# ## On the cluster
#
# `slurm/local/ResNet152V2.sh` (or the one in your site's folder) is the counterpart of the script that you wrote in
# notebook 05b. Fill in its blanks. The check finds mistakes that `sbatch` would accept.

# %%
site = sites.load()
batch_script = sites.script("ResNet152V2.sh")
print(batch_script.read_text())

# %% labs={"id": "08.13"}
check("08.13", batch_script)

# %% [markdown]
# If SLURM is available on this machine, the next cell submits the script. Otherwise, nothing runs here: the check has
# already tried out the script, and your runs above did the same training.

# %%
from labs.jobs import queue

short = ["--images", 128, "--epochs", 2, "--repeats", 1] if site.preset != "course" else []
if answered("T7", "08.13") and not quick and queue.available():
    batch_job = jobs.run(batch_script, *short, name="ResNet152V2", site=site.id)
    print(*batch_job.out.read_text().split("\n")[:12], sep="\n")
    print("...\nin the .err:", batch_job.err.read_text().strip() or "nothing")
    if batch_job.records:
        tables.scaling(collect.rows(batch_job.records))

# %% [markdown]
# The global batch for 2 workers must include the images of both. What else may differ from `ResNet50.sh`? A larger
# network needs more time (`--time`). At the largest batch size, the number of images per worker is different.
#
# **Hand in for T9**: your `ResNet152V2.py` and `ResNet152V2.sh`, with the batch size per worker and the learning rate
# for each number of workers. Add the relevant lines of `.out` for each number of workers, and a comment on `.err`.
# Give the epoch time and the images per second over the rounds, without the first epoch; the speedup with its
# interval, and what one worker is; the accuracy alongside the speed, with the number of updates; and your prediction
# of the step time on 2 workers, with its residual. Apart from the quoted lines, about eight sentences are enough.

# %%
for file in large_files:
    if file.with_suffix(".out").exists():
        print(file.with_suffix(".out").read_text()[:420], "...\n")

# %% [markdown] labs={"id": "T9", "kind": "answer"}
# ### T9: your answer
# ### BEGIN SOLUTION
# The scripts are scripts/ResNet152V2.py and slurm/local/ResNet152V2.sh. I trained on 1 and 2 workers (a worker is one
# CPU core, or one GPU where there are GPUs). The runs took turns for several rounds, with a fixed batch size per
# worker. The files are runs/ResNet152V2_w1 and _w2 with .out, .err and .json. The header of the .out file names the
# model, the number of workers, the global batch size and the learning rate. The lines `N/N - ..s` are used, except
# for the line of each run's first epoch. The .err files contain no errors. The table above gives the speedup and the
# efficiency with 95 % intervals, alongside the epoch time and images per second measured in these minutes. After the
# same number of epochs, the accuracy is lower on 2 workers, which make half as many updates. I predicted the step
# time on 2 workers from the runs of ResNet50V2; the residual is printed below the table. A run on 4 workers would be
# oversubscribed on 2 cores.
# ### END SOLUTION

# %% [markdown]
# ## T10: both networks together
#
# Using `rows`, plot epoch time, images per second and speedup against the number of workers, with **both networks in
# each plot**. Label the axes with units, and add a legend that names the networks. Each row has the keys `model`,
# `workers`, `epoch_seconds`, `images_per_second` and `speedup`. Start with
# `figure = Figure(figsize=(12, 3.2), layout="constrained")`.

# %% labs={"id": "08.14"}
from matplotlib.figure import Figure

### BEGIN SOLUTION
figure = Figure(figsize=(12, 3.2), layout="constrained")
for axis, key, label in zip(
    figure.subplots(1, 3),
    ("epoch_seconds", "images_per_second", "speedup"),
    ("seconds per epoch", "images per second", "speedup (times)"),
):
    for name, mark in ((small, "o-"), (large, "s-")):
        mine = sorted((row for row in rows if row["model"] == name), key=lambda row: row["workers"])
        axis.plot([row["workers"] for row in mine], [row[key] for row in mine], mark, label=name)
    axis.set(xlabel=f"workers (one worker: one {unit})", ylabel=label, ylim=(0, None))
    axis.legend()
### END SOLUTION
if check("08.14", figure, rows):
    figure.alt = "Your plots of epoch time, images per second and speedup of both networks over the number of workers."
    plots.show(figure)

# %% [markdown]
# The kit's plot of the same rows adds the intervals:

# %%
plots.show(plots.scaling(rows, ("epoch time", "speedup", "efficiency")))

# %% [markdown]
# On one worker, what is the ratio of ResNet152V2's epoch time to that of ResNet50V2? Compute it from `rows`. (The two
# networks were measured at different times, so the ratio includes any drift of the machine. That is why `rows` does
# not give it.)

# %% labs={"id": "08.15"}
### BEGIN SOLUTION
alone = {row["model"]: row["epoch_seconds"] for row in rows if row["workers"] == 1}
epoch_ratio = alone[large] / alone[small]
### END SOLUTION
check("08.15", epoch_ratio, rows)

# %%
grown = {
    what: getattr(size[large], key) / getattr(size[small], key)
    for what, key in (
        ("multiply-adds", "multiply_adds"),
        ("bytes of activations", "activation_bytes"),
        ("tensors", "tensors"),
        ("bytes of gradients", "gradient_bytes"),
    )
}
for what, factor in grown.items():
    print(f"{what} of {large}: {factor:.2f} times as many")
took = {row["model"]: row["epoch_seconds"] for row in rows if row["workers"] == 1}
longer = took[large] / took[small]
outcome("08.1", longer, how="recorded" if lacks else "measured")
inside = min(grown.values()) <= longer <= max(grown.values())
print(
    f"The epoch is {longer:.2f} times as long:", "within these factors." if inside else "outside of all these factors."
)

# %% [markdown]
# No single factor has to match the ratio of the epoch times. Time is spent on multiply-adds, on moving activations,
# on starting one operation after another, and on updating weights, and each of these grows by its own factor. Some of
# the time in a step does not grow at all: reading the batch, Keras's loop, the work around each step. With images of
# 32x32 pixels there is little to compute, so these fixed costs make up a large share of the time and pull the ratio
# below the factors. With large images they hardly matter. A ratio above all the factors would need another cause, for
# example a machine that was slower in one of the two studies.
#
# A speedup compares workers of the same kind. The statement "ResNet50V2 on 2 GPUs is n times as fast as ResNet152V2
# on a CPU" mixes three things: different work, different hardware and more workers. The result does not tell you how
# much each of them contributes.
#
# ### Accuracy beside speed

# %%
plots.show(plots.learning(rows))

# %% [markdown]
# After the same number of epochs, 2 workers have made half as many updates as 1 worker, for both networks. After so
# few epochs, the larger network is not necessarily ahead, since it has more to learn. How much a *second* of training
# improves the network is a different question from how much an *epoch* does; this study is too short to answer it.
#
# ## Is the difference real?
#
# Now use your two functions. Before you look: which of the three answers do your runs give, if a difference of 5 %
# matters?

# %% labs={"id": "08.18"}
### BEGIN SOLUTION
verdict_expected = "can't tell"
### END SOLUTION
predict("08.18", verdict_expected)

# %%
runs = [load_record(file) for file in (*small_files, *large_files)]
found = verdict.compare(runs, large, small, workers=2, matters=0.05)
print(found)
kind = "recorded" if lacks else "measured"
outcome("08.18", found.answer, how=kind)
outcome("08.2", "equal" if found.answer != "yes" else large if found.ratio > 1 else small, how=kind)

# %%
if answered("08.16", "08.17") and found.interval:
    times = [
        list(run.rounds.values()) or run.steady_times()[0]
        for name in (small, large)
        for run in sorted(runs, key=lambda run: run.workers)
        if run.model == name and run.workers <= 2
    ]
    centre, error = contrast(*times)
    print(f"your ratio: {exp(centre):.3f}, standard error of its logarithm {error:.3f}")
    print("your answer:", answer(*found.interval, 0.05))

# %% [markdown]
# **Why in turns?** Suppose that the runs had followed one another, and that something (another user, a hot laptop)
# had slowed down the machine during one of them. The slowdown would have looked like a property of the network. Here
# are the rounds of ResNet152V2:

# %%
one, two = (load_record(file) for file in large_files[:2])
plots.show(plots.rounds(two, one))

# %% [markdown]
# "Can't tell" is a result, and it tells you what to do next. The last sentence of the verdict gives the smallest
# difference that such data can show. To halve it, you need about four times as many rounds, or a quieter machine.
#
# ## Equal batch, or its own largest?
#
# In all these runs, both networks had the same batch size. With its own largest batch (T8), each network processes
# more images per exchange. Count again how many bytes are exchanged for each multiply-add:

# %%
if answered("08.4"):
    shown = []
    for name in pair:
        found = facts.of(name, image_size=plan.image_size, classes=10)
        for what, batch in (("equal", plan.local_batch), ("its largest", search[name]["largest"])):
            each = {"network": name, "batch": f"{batch:,} ({what})", "bytes": 1000 * bytes_per_operation(found, batch)}
            shown.append(each)
    headers = {"bytes": "bytes of gradient for each 1,000 multiply-adds"}
    tables.show(shown, ("network", "batch", "bytes"), headers)

# %% [markdown]
# Is the order of the two networks the same at both batch sizes? These bytes are counted. No run was measured at the
# largest batch sizes, and bytes are not seconds. So anyone who speaks of "the scaling of ResNet152V2" must say at
# which batch size. The optional notebook `12_where_a_step_goes` takes a step apart, measures it at the largest batch
# sizes as well, and makes a prediction for 4,096 workers.
#
# ## T10
#
# Use your three plots to explain why an epoch of ResNet152V2 takes longer, and how its speedup compares with that of
# ResNet50V2. Say what your data settle and what they leave open. Distinguish the equal batch size from each network's
# own largest batch, and what you measured from what you counted.

# %% [markdown] labs={"id": "T10", "kind": "answer"}
# ### T10: your answer
# ### BEGIN SOLUTION
# An epoch of ResNet152V2 takes longer because the network computes 3.13 times as many multiply-adds for each image. The
# measured ratio on one worker (08.15) is different, since activations and the number of operations grow by other
# factors, and some costs of a step do not grow at all. The gradient of ResNet152V2 has only 2.47 times as many bytes,
# so the network exchanges less for each operation. Judging by bytes alone, it should scale better at the same batch
# size. The plots show both speedups with their intervals, measured at the same batch size. The verdict above shows
# whether they differ: it gives the ratio of the efficiencies, its interval, and the smallest difference that these
# rounds could show. Nothing was measured at each network's own largest batch size. There, ResNet152V2 fits fewer
# images, so it exchanges more often per image: the bytes for each multiply-add, counted in the last table, show how
# much of its advantage is left. Its workers also have to agree on 514 tensors instead of 174. After the same number of
# epochs, 2 workers have made half as many updates, and the accuracy is lower, for both networks.
# ### END SOLUTION

# %% [markdown]
# ## Optional: the same with Horovod
#
# (About 12 minutes, plus a few minutes of computing if you have your own runs.) MirroredStrategy is a single process.
# With Horovod, every worker is a separate process, has its own input pipeline, and exchanges its gradients in a
# different way. If a difference between the two networks is due to the *networks*, it should appear both with
# MirroredStrategy and with Horovod.
#
# The script is your `ResNet50_horovod.py` from notebook 07, with the name of the larger network in it. It runs in the
# background if you have your own runs of both networks with MirroredStrategy and those from notebook 07. Otherwise,
# recorded runs are used for both networks.

# %%
small_horovod = experiments.earlier(plan, "ResNet50_horovod", "horovod")
horovod_script = experiments.with_network("scripts/ResNet50_horovod.py", large)
horovod_turns = jobs.Turns()
if horovod_script and own and (small_horovod or quick) and devices.has("horovod"):
    # MPI wants a core for each rank
    launcher = "horovodrun" if devices.oversubscribed(max(plan.workers)) else "mpiexec"
    for workers in plan.workers if small_horovod else (2,):
        options = {"name": f"ResNet152V2_horovod_w{workers}", "ranks": workers, "launcher": launcher}
        horovod_turns.start(horovod_script, "--batch_size", workers * plan.local_batch, *sizes, **options)
    horovod_turns.begin()

# %% [markdown]
# **Assume** that with Horovod, the efficiency of ResNet152V2 is the same multiple of ResNet50V2's efficiency as with
# MirroredStrategy. **From this, predict the efficiency of ResNet152V2 on 2 Horovod ranks** before you look. The other
# three efficiencies are known; they all come from your own runs, or all from recorded ones:


# %% labs={"id": "08.12"}
def efficiency(rows, name):
    return next(row["efficiency"] for row in rows if (row["model"], row["workers"]) == (name, 2))


all_own = not (lacks or experiments.lacks(small_horovod, horovod_turns, "Horovod", beside=small_files, going=True))
known = rows if all_own else collect.rows(recorded.laptop_two_networks())
mirrored = {name: efficiency(known, name) for name in (small, large)}
small_rows = collect.rows(small_horovod if all_own else of(small, recorded.laptop_two_networks_horovod()))
horovod = {small: efficiency(small_rows, small)}
print("Your own runs:" if all_own else "Recorded runs:")
print(f"MirroredStrategy: {small} {mirrored[small]:.3f}, {large} {mirrored[large]:.3f}")
print(f"Horovod:          {small} {horovod[small]:.3f}, {large} ...")
### BEGIN SOLUTION
efficiency_expected = horovod[small] * mirrored[large] / mirrored[small]
### END SOLUTION
check("08.12", efficiency_expected, mirrored, horovod)

# %%
if horovod_turns.jobs:
    horovod_turns.wait()
horovod_lacks = lacks or experiments.lacks(small_horovod, horovod_turns, "Horovod", beside=small_files)
own_horovod = not horovod_lacks
horovod_files = [*small_horovod, *(job.record for job in horovod_turns.jobs)]
if not own_horovod:
    horovod_files = experiments.both(recorded.laptop_two_networks_horovod())
    print("Recorded runs stand for both networks.", horovod_lacks)
horovod_rows = collect.rows(horovod_files)
tables.scaling(horovod_rows)

# %%
if all_own != own_horovod:
    print("One of these is of your runs, the other of recorded ones: the prediction 08.12, and the table above.")
    print("So they are not compared. Run the cell of 08.12 again, which takes the other runs now, then this one.")
elif answered("08.12"):
    row = next(row for row in horovod_rows if (row["model"], row["workers"]) == (large, 2))
    low, high = row["efficiency_interval"]
    print(f"efficiency of {large} with Horovod: predicted {efficiency_expected:.3f},", end=" ")
    print("measured" if own_horovod else "recorded", f"{row['efficiency']:.3f} [{low:.3f}, {high:.3f}]")
    print("The interval", "holds" if low <= efficiency_expected <= high else "leaves out", "your prediction.")

# %% [markdown]
# If the interval contains your prediction, these runs do not contradict the assumption; but a wide interval contains
# many values. If it does not, some effect depends both on the network *and* on the method of exchange. Your
# prediction is uncertain as well, since it is computed from three measurements.
#
# Compare the speedups with those of MirroredStrategy above only if both tables come from your runs, or both from
# recorded runs. Compare seconds only if all the runs are yours.

# %%
plots.show(plots.scaling(horovod_rows, ("epoch time", "speedup", "efficiency")))

# %% [markdown]
# And here is the verdict on these runs:

# %%
print(verdict.compare([load_record(file) for file in horovod_files], large, small, workers=2, matters=0.05))

# %% [markdown]
# If both verdicts are on your runs, or both on recorded runs, you have two measurements of one machine, taken at
# different times and with different methods of exchange. Where they agree, they support each other. If one is on your
# runs and the other on recorded runs, they come from two different machines, and you must judge each on its own.
#
# ## Optional: one configuration against itself
#
# How large a difference does your machine show where there is none? Let two training runs of *one* configuration take
# turns, as your runs did above. (This is called an A/A test.) Their ratio should be 1. The end of its interval that
# is farther from 1 is your noise floor: do not believe any smaller difference. In a terminal, the command is
# `labs study --twice`. To measure it here with a small network, set the first line to `True`; it takes a few minutes.

# %%
measure_it = False  # True: takes a few minutes
if measure_it:
    from labs.measure import study

    twice = study.run(plan, models=["SmallCNN"], workers=[1], twice=True)
    print(*study.believed([], study.itself(twice[-2:])), sep="\n")

# %% [markdown]
# You can do the same with any two commands, or with one command at two commits of a repository: `labs compare` runs
# them in rounds, in random order.
#
# ## Optional: what a log in whole seconds would have said
#
# (About 8 minutes.) Keras's log gives the time of an epoch in whole seconds. Here are the same runs with rounded
# times: once taken at face value, and once with an interval that accounts for the rounding.

# %%
tables.show(logs.table(runs, large, small))

# %% [markdown]
# A log says 12 s for every epoch. What do you know about the epoch time?
#
# - **a**: it is 12.0 s, and since all epochs agree, the interval has zero width
# - **b**: it is somewhere between 11.5 s and 12.5 s, no matter how many epochs say 12 s
# - **c**: the more epochs there are, the closer it is to 12.0 s
# - **d**: nothing at all

# %% labs={"id": "08.19"}
### BEGIN SOLUTION
whole_seconds = "b"
### END SOLUTION
check("08.19", whole_seconds)

# %% [markdown]
# At 12 s, half a second either way changes the efficiency by 4 %, and people argue about differences of this size.
# Look at the table again. If all epochs of a run are rounded to the same number, the result looks certain, but the
# spread that would have warned you is gone. If your epochs are spread over several seconds, the spread survives the
# rounding, and the row "rounding counted" has the widest interval of the three.

# %% [markdown]
# ## Summary
#
# - A larger network computes more *and* exchanges more. What counts is the ratio of the two, at a given batch size.
# - State the batch size, the machine and the baseline. Without these, "scales better" means nothing.
# - Memory sets the largest batch, and activations fill the memory: with the larger network, fewer images fit.
# - A difference is real, absent or undecided. Only an interval tells you which, and "undecided" is worth writing
#   down.
# - Predict first. A residual tells you what your assumption left out.
#
# Next: `09_why_scaling_fails`. The optional notebook `12_where_a_step_goes` shows where the time of a step goes.
