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
# **Time: 40 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `11_report`), *everything*; *an afternoon* leaves this notebook out.
#
# You plot your results of ResNet50V2 and ResNet152V2 side by side, find out whether their speedups differ by more than
# chance, and explain what you see. You hand in task **T10**. Nothing has to be trained. An optional part at the end
# takes about 8 minutes more.

# %%
from labs import devices, presets
from labs.checks import check, outcome, predict

plan = presets.choose()
unit = "GPU" if devices.gpus() else "CPU core"
small, large = "ResNet50V2", "ResNet152V2"
print(f"preset {plan.name}; a worker is one {unit}")

# %% [markdown]
# ## Both networks in one figure
#
# These are your runs from notebooks 05 and 09. If your runs of either network are missing, recorded runs are used for
# *both*, as in notebook 09.

# %%
from labs import recorded, results
from labs.show import plots, tables
from lessons.resnet152_scaling import experiments

files = {small: experiments.earlier(plan, "ResNet50", "mirrored")}
files[large] = experiments.earlier(plan, "ResNet152V2", "mirrored", network=large)
lacks = experiments.lacks(files[small], files[large])
if lacks:
    for name in files:
        files[name] = [file for file in recorded.laptop_two_networks() if file.name.startswith(name)]
print(f"Recorded runs are used for both networks. {lacks}" if lacks else "These are your own runs of both networks.")
runs = results.load([*files[small], *files[large]])
tables.scaling(runs)

# %% [markdown]
# **Draw one figure with three plots**, as for T6: epoch time, images per second, and speedup, each against the number
# of workers, but now with **both networks in each plot**. `runs` contains one run for each line of the table; its
# values are `run.model`, `run.workers`, `run.epoch_seconds.value`, `run.images_per_second.value` and
# `run.speedup.value`. Label the axes, with units, and add a legend that names the networks. Start with
# `figure = Figure(figsize=(12, 3.2), layout="constrained")`.

# %% labs={"id": "networks.1"}
from matplotlib.figure import Figure

### BEGIN SOLUTION
### GIVEN: figure = ...  # your code here
figure = Figure(figsize=(12, 3.2), layout="constrained")
epoch_time, rate, gain = figure.subplots(1, 3)
for name, mark in ((small, "o-"), (large, "s-")):
    mine = sorted((run for run in runs if run.model == name), key=lambda run: run.workers)
    workers = [run.workers for run in mine]
    epoch_time.plot(workers, [run.epoch_seconds.value for run in mine], mark, label=name)
    rate.plot(workers, [run.images_per_second.value for run in mine], mark, label=name)
    gain.plot(workers, [run.speedup.value for run in mine], mark, label=name)
labels = ("seconds per epoch", "images per second", "speedup (times)")
for axis, label in zip((epoch_time, rate, gain), labels):
    axis.set(xlabel=f"workers (one worker: one {unit})", ylabel=label, ylim=(0, None), xticks=workers)
    axis.legend()
### END SOLUTION
if check("networks.1", figure, runs):
    figure.alt = "Your plots of epoch time, images per second and speedup of both networks over the number of workers."
    plots.show(figure)

# %% [markdown]
# The kit's own figure adds the intervals, and shows the efficiency instead of the images per second:

# %%
plots.show(plots.scaling(runs, ("epoch time", "speedup", "efficiency")))

# %% [markdown]
# ## How much longer is an epoch?
#
# On one worker, what is the epoch time of ResNet152V2, divided by that of ResNet50V2? Compute it from `runs`. (The two
# networks were measured at different times: if the machine became faster or slower in between, this ratio changes,
# too.)

# %% labs={"id": "networks.2"}
### BEGIN SOLUTION
### GIVEN: epoch_ratio = ...  # your code here
alone = {run.model: run.epoch_seconds.value for run in runs if run.workers == 1}
epoch_ratio = alone[large] / alone[small]
### END SOLUTION
check("networks.2", epoch_ratio, runs)

# %%
from lessons import counts

size = {name: counts.of(name, image_size=plan.image_size, classes=10) for name in (small, large)}
for what in ("multiply_adds", "activation_bytes", "tensors", "gradient_bytes"):
    print(f"{what} of {large}: {getattr(size[large], what) / getattr(size[small], what):.2f} times as many")
took = {run.model: run.epoch_seconds.value for run in runs if run.workers == 1}
kind = "recorded" if lacks else "measured"
outcome("resnet152.1", took[large] / took[small], how=kind)

# %% [markdown]
# The ratio of the epoch times need not match any of these factors. Computing, moving activations, starting operations
# and updating weights each grow by their own factor. Parts of a step do not grow at all, such as reading the batch and
# Keras's loop. With images of 32x32 pixels there is little to compute, so these fixed costs pull the ratio down; so does
# a machine that was slower during notebook 05 than during 09. What is the ratio on a GPU, with images of 224x224?

# %%
from lessons import on_gpu

print(on_gpu.networks())

# %% [markdown]
# There, too, the ratio was not the 3.13 of the multiply-adds. It lies close to the factors of the bytes of activations
# (2.46 with these images) and of gradients (2.47). This fits a step that spends much of its time moving bytes, but it
# does not prove it.
#
# ### Accuracy beside speed

# %%
plots.show(plots.learning(runs))

# %% [markdown]
# After the same number of epochs, 2 workers have made half as many updates as 1 worker, for both networks. This study
# is too short to tell which network learns more in an hour.
#
# ## When is a difference real?
#
# Is the difference between the two speedups more than chance? Each round contains an epoch on 1 worker and one on 2. As
# in notebook 05, take the logarithm of their ratio in each round, $d = \log(t_1 / t_2)$: whatever slowed down the whole
# round cancels out.
#
# The efficiency E is the speedup divided by the number of workers. Both networks have the same number of workers, so
# the logarithm of the ratio of their efficiencies is the difference between the mean values of d:
#
# $$ \log\frac{E_\text{large}}{E_\text{small}} = \bar d_\text{large} - \bar d_\text{small} . $$
#
# How uncertain is this difference? If n values have the variance $s^2$, their mean has the variance $s^2/n$. The
# variances of independent means add up, even when the means are subtracted. The **standard error** is the square root
# of the variance.
#
# Write a function that returns the difference and its standard error. Each argument is a list with the epoch time in
# each round. The two networks may have different numbers of rounds.

# %% labs={"id": "networks.3"}
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


contrast_right = check("networks.3", contrast)

# %% [markdown]
# From these two numbers, the kit computes a 95 % interval for the ratio of the efficiencies, with Student's t as in
# notebook 05. You decide how large a difference you would ignore: with `matters = 0.05`, up to 5 %. Then three answers
# are possible:
#
# - `"yes"`: the interval does not contain 1. The data speak for a difference, even if it is small. (Without any
#   difference, 5 of 100 studies say so, too.)
# - `"no"`: the interval contains 1 and lies *entirely* between `1 / (1 + matters)` and `1 + matters`.
# - `"can't tell"`: the interval contains 1, but it also contains differences that would matter.


# %% labs={"id": "networks.4"}
def answer(low, high, matters):
    """ "yes", "no" or "can't tell", for the interval [low, high] of a ratio; matters: 0.05 for 5 %."""
    ### BEGIN SOLUTION
    if low > 1 or high < 1:
        return "yes"
    if low >= 1 / (1 + matters) and high <= 1 + matters:
        return "no"
    return "can't tell"
    ### END SOLUTION


answer_right = check("networks.4", answer)

# %% [markdown]
# ## Is the difference real?
#
# **Predict** before you apply your two functions: which of the three answers do your runs give, if a difference of 5 %
# matters? Enter `"yes"`, `"no"` or `"can't tell"`.

# %% labs={"id": "networks.5"}
### BEGIN SOLUTION
verdict_expected = "can't tell"
### END SOLUTION
predict("networks.5", verdict_expected)

# %%
found = results.compare(runs, large, small, workers=2, matters=0.05)
print(found)
outcome("networks.5", found.answer, how=kind)
outcome("resnet152.2", "unclear" if found.answer != "yes" else large if found.ratio > 1 else small, how=kind)

# %%
from labs.results import metrics

if contrast_right and answer_right and found.interval:
    times = []
    for name in (small, large):
        of_1, of_2 = (next(run for run in runs if (run.model, run.workers) == (name, n)) for n in (1, 2))
        counted, _ = metrics.undisturbed_rounds(of_2, of_1)  # without rounds in which other programs ran
        times += [[run.rounds[n] for n in counted] for run in (of_1, of_2)]
    centre, error = contrast(*times)
    print(f"your ratio: {exp(centre):.3f} (the kit's: {found.ratio:.3f}), standard error of its logarithm {error:.3f}")
    print(f"your answer: {answer(*found.interval, 0.05)} (the kit's: {found.answer})")

# %% [markdown]
# If the runs had not taken turns, something that slowed down the machine during one of them would have looked like a
# property of the network. Here are the rounds of ResNet152V2:

# %%
one, two = (run for run in runs if run.model == large and run.workers in (1, 2))
plots.show(plots.rounds(two, one))

# %% [markdown]
# "Can't tell" is a result, too. After "With this spread", the verdict says how large a difference would have counted as
# real, and which true difference 80 % of such studies would find. Plan with the second one. To halve both, you need
# about four times as many rounds, or a quieter machine.
#
# ## Equal batch, or its own largest?
#
# In all these runs, both networks had the same batch size per worker. With its own largest batch (T8), each network
# would process more images per exchange. How many bytes are then exchanged for each multiply-add?

# %%
shown = []
for name in (small, large):
    largest, how = experiments.largest_batch(name, plan.image_size)
    for what, batch in (("equal", plan.local_batch), (f"its largest, {how}", largest)):
        if batch:
            each = 1000 * size[name].gradient_bytes / (batch * size[name].multiply_adds)
            shown.append({"network": name, "batch": f"{batch:,} ({what})", "bytes": each})
headers = {"bytes": "bytes of gradient for each 1,000 multiply-adds"}
tables.show(shown, ("network", "batch", "bytes"), headers)

# %% [markdown]
# Is the order of the two networks the same at both batch sizes? These bytes were counted: no run was measured at the
# largest batch sizes, and bytes are not seconds. So whoever talks about "the scaling of ResNet152V2" must say at which
# batch size. (The optional notebook `26_where_a_step_goes` measures steps at the largest batch sizes.)
#
# ## Where does the order turn?
#
# A step of ResNet152V2 takes longer, and so does its exchange: it has 2.47 times as many bytes of gradient, and 2.95
# times as many tensors. Whatever grows *more slowly* than the time of a step matters less in the larger network. Suppose
# that a step computes first, and then exchanges one tensor after another over a ring of K workers. For each tensor, the
# ring sends 2 (K - 1) messages in a row, each of which has a **latency**. Each worker sends 2 (K - 1) / K times the
# bytes of the gradient through its link (notebook 02). Write the seconds of one exchange of all tensors.


# %% labs={"id": "networks.6"}
def exchange_seconds(tensors, size, workers, latency, bandwidth):
    """size: bytes of the gradient; latency: seconds of a message; bandwidth: bytes/s of a link."""
    ### BEGIN SOLUTION
    return 2 * (workers - 1) * (tensors * latency + size / workers / bandwidth)
    ### END SOLUTION


exchange_right = check("networks.6", exchange_seconds)

# %% [markdown]
# The efficiency is then the share of the step spent computing. **Predict** which network is ahead on 8 H200 GPUs, with
# links of 1 GB/s, first with a latency of 1 microsecond, then with one of 1 millisecond. Write two letters: `"s"` for
# the smaller network, `"l"` for the larger one.

# %% labs={"id": "networks.7"}
### BEGIN SOLUTION
ahead = "ls"
### END SOLUTION
predict("networks.7", ahead)

# %%
computing = on_gpu.step_seconds()  # 128 images of 224x224 on one GPU, for each network


def efficiency(name, latency):
    exchange = exchange_seconds(size[name].tensors, size[name].gradient_bytes, 8, latency, 1e9)
    return computing[name] / (computing[name] + exchange)


if exchange_right:
    rows = []
    for latency in (1e-6, 1e-5, 1e-4, 1e-3):
        of_both = {name: efficiency(name, latency) for name in (small, large)}
        rows.append({"latency": f"{1e6 * latency:g} µs"} | of_both | {"ahead": max(of_both, key=of_both.get)})
    tables.show(rows, ("latency", small, large, "ahead"), {small: f"{small}, computed", large: f"{large}, computed"})
    outcome("networks.7", ["s" if row["ahead"] == small else "l" for row in (rows[0], rows[-1])], how="computed")

# %% [markdown]
# This is arithmetic with measured steps and assumed links. It shows that "scales better" belongs to a network *and* to
# the machine that exchanges its gradients. (The larger network computes for 2.54 times as long: that is more than 2.47,
# the ratio of the bytes, and less than 2.95, the ratio of the tensors. So here the latency decides.)
#
# ## T10: explain what you found
#
# Write about ten sentences. Keep what you measured apart from what you counted.
#
# - Why does an epoch of ResNet152V2 take longer? Give the measured ratio, alongside what you counted.
# - How does its speedup (or efficiency) compare with that of ResNet50V2 at the same batch size? Give the intervals,
#   and the verdict: yes, no or can't tell.
# - What do your data settle, and what do they leave open? How large a difference would have counted as real?
# - Which network do the bytes alone favour, and what works against this?
# - What may be different at each network's own largest batch?
# - How accurate are the networks, and after how many updates?

# %% [markdown] labs={"id": "T10", "kind": "answer"}
# ### T10: your answer
# ### BEGIN SOLUTION
# An epoch of ResNet152V2 takes longer because the network has more of everything: counted, 3.13 times as many
# multiply-adds for each image, 2.5 times as many bytes of activations and of gradients, 2.95 times as many tensors. The
# measured ratio on one worker (networks.2) need not match any of these factors: each part of a step grows by its own
# factor, and some costs do not grow at all. Since the bytes of the gradient grow less than the multiply-adds,
# ResNet152V2 exchanges less for each operation. Judging by bytes alone, it should scale better at the same batch size.
# The plots show both speedups with their intervals, measured at the same batch size. The verdict above shows whether
# they differ: it gives the ratio of the efficiencies, its interval, and the difference that would have counted as real
# with this spread. Two things work against ResNet152V2. The number of its tensors, each of which takes some time to
# exchange, grows by a larger factor than the measured time: computed for 8 workers, it is behind when a message has a
# latency of 1 ms. And at its own largest batch size, where nothing was measured, it fits fewer images, so it exchanges
# more often per image: the bytes for each multiply-add, counted above, show how much of its advantage is left. After
# the same number of epochs, 2 workers have made half as many updates as 1 worker, for both networks; the first table
# gives the accuracy of each run.
# ### END SOLUTION

# %% [markdown]
# ## Optional: what a log in whole seconds would have said
#
# Keras's log gives epoch times in whole seconds. The table compares the two networks three times:
# with the recorded times; with rounded times, taken at face value; and with rounded times and an interval that accounts
# for the rounding.

# %%
from lessons.two_networks import logs

tables.show(logs.table(runs, large, small))

# %% [markdown]
# A log says 12 s for every epoch. What do you know about the epoch time?
#
# - **a**: it is 12.0 s, and since all epochs agree, the interval has zero width
# - **b**: it is somewhere between 11.5 s and 12.5 s, no matter how many epochs say 12 s
# - **c**: the more epochs there are, the closer it is to 12.0 s
# - **d**: nothing at all

# %% labs={"id": "networks.8"}
### BEGIN SOLUTION
whole_seconds = "b"
### END SOLUTION
check("networks.8", whole_seconds)

# %% [markdown]
# At 12 s, half a second either way changes the efficiency by 4 %, and people argue about differences of this size. If
# all epoch times of a run are rounded to the same number, the result looks certain, but the spread that would have
# warned you is gone.

# %% [markdown]
# Next: `11_report`.
