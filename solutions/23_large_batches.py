# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Large batches, idle cores, late workers
#
# **Time: 60 minutes, including 3 minutes of computing on 2 cores.** Three optional parts at the end take about 25
# minutes more.
#
# **Paths:** only *everything* contains this notebook.
#
# In notebook 22, more workers did not help, mainly because the exchange took too long. There are other reasons why they
# may not help. More workers also mean a larger batch, so you measure at what batch size the number of steps stops
# falling. Then you use the workers in another way, for several training runs at once, and you see what a single late
# worker costs. At the end you write task **W1**, for which you also need your results from notebook 22.

# %%
import os
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # small experiments: they run on CPU cores, also where there is a GPU

from labs import devices, jobs, presets, results  # import this first: it sets up TensorFlow
from labs.checks import answered, check, outcome, predict, predictions
from labs.results import intervals
from labs.show import plots, tables
from lessons.when_workers_do_not_help import compared, pictures, small, trials
from lessons.large_batches import late_workers, one_rate

import numpy as np

quick = presets.choose().name == "test"
seeds = range(3 if quick else 5)

# %% [markdown]
# ## 1. Large batches: a dispute
#
# With a larger batch, an epoch has fewer steps and so fewer exchanges. But do larger batches lead to worse networks? A
# popular experiment trains a network with several batch sizes, each for 10 epochs and at the same learning rate. The
# smallest batch size takes by far the longest, and gives the most accurate network.
#
# **Predict** which batch size gives the highest test accuracy here, after 10 epochs at a learning rate of 0.05: "8",
# "32", "128" or "512".

# %% labs={"id": "batches.1"}
### BEGIN SOLUTION
most_accurate = "8"
### END SOLUTION
predict("batches.1", most_accurate)

# %%
sizes_of_batch = (8, 32, 128, 512)
same_rate = {b: [trials.train(b, 0.05, epochs=10, seed=seed) for seed in seeds] for b in sizes_of_batch}
outcome("batches.1", str(compared.by_batch(same_rate)))

# %% [markdown]
# So are large batches harmful? First, count what else differs between these runs. Write a function that returns the
# number of **updates** in a training run. At the end of each epoch, any images that do not fill a whole batch are left
# out.


# %% labs={"id": "batches.2"}
def updates(images, batch, epochs):
    ### BEGIN SOLUTION
    return images // batch * epochs
    ### END SOLUTION


check("batches.2", updates)

# %%
if answered("batches.2"):
    print(*(f"batch {batch}: {updates(small.TRAIN, batch, 10)} updates" for batch in sizes_of_batch), sep="\n")

# %% [markdown]
# With the same number of epochs and the same rate, the run with batch size 512 made 20 updates, and the run with batch
# size 8 made 1600. There are two ways to make the comparison fairer. The first is the linear rule (notebook 04): the
# rate grows in proportion to the batch size. The second gives every batch size the same number of *steps*, tries
# several rates for each batch size, and keeps the one with the best result on the validation images. The test images
# are used only for the final result.

# %%
linear = {
    b: [trials.train(b, 0.05 * b / 8, epochs=10, seed=seed) | {"rate": 0.05 * b / 8} for seed in seeds]
    for b in sizes_of_batch
}
rates_to_tune = (0.1, 0.4, 1.6) if quick else (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
same_steps = {b: trials.tuned(b, rates_to_tune, steps=200 if quick else 1600, seeds=seeds) for b in sizes_of_batch}
print("10 epochs, linear rule:")
compared.by_batch(linear)
print("Equal steps, tuned rate:")
_ = compared.by_batch(same_steps)

# %%
ways = {"10 epochs, one rate": same_rate, "10 epochs, linear rule": linear, "equal steps, tuned rate": same_steps}
accuracies = {name: {b: [each["test"] for each in of[b]] for b in of} for name, of in ways.items()}
plots.show(pictures.accuracy_by(accuracies, xlabel="batch (images)", title="three ways to compare batches"))

# %% [markdown]
# With the linear rule, batch size 512 is no better than random guessing (0.1). Its rate of 3.2 is too high for this
# network, so training **diverges**: the final loss is far above 2.3 = ln 10, the loss of a network that considers all
# ten digits equally likely. The steps were so large that nearly all hidden units, which use tanh, are at -1 or 1, where
# their gradients are close to 0, and the network classifies nearly every image as the same digit. So the linear rule
# has a limit, which you will look for in section 2. (Other rules multiply the rate by a smaller power of the factor:
# its square root, as in notebook 04, or the power 2/3, an example that no theory prescribes.)
#
# The same batch sizes and the same images gave three different answers. With the same number of steps and tuned rates,
# how much of the large batch's disadvantage is left?
#
# - **a**: all of it: batch size 512 stays far behind
# - **b**: nothing that these intervals can show, but the run with batch size 512 read 64 times as many images as the
#   run with batch size 8
# - **c**: nothing, because the large batch was given a better rate than the small one
# - **d**: nobody can tell, because the test images were different

# %% labs={"id": "batches.3"}
### BEGIN SOLUTION
what_is_left = "b"
### END SOLUTION
check("batches.3", what_is_left)

# %% [markdown]
# Here is the dispute in four papers:
#
# | source | finding |
# |---|---|
# | N. Keskar and others, [1609.04836](https://arxiv.org/abs/1609.04836) (2016) | training with large batches ends in sharp minima and generalises worse |
# | E. Hoffer and others, [1705.08741](https://arxiv.org/abs/1705.08741) (2017) | with adapted rates and as many updates as for the small batch, the gap disappears |
# | P. Goyal and others, [1706.02677](https://arxiv.org/abs/1706.02677) (2017) | on ImageNet, batch sizes up to 8192 lose no accuracy, thanks to the linear rule with warm-up |
# | C. Shallue and others, [1811.03600](https://arxiv.org/abs/1811.03600) (2019) | 168,160 trained models give no evidence that larger batches do harm; studies disagree because they fix different budgets (epochs or steps) and tune differently |
#
# So ask two questions about every comparison of batch sizes. Did all of them get the same number of epochs, or the same
# number of steps? For which batch size was the learning rate chosen?
#
# ## 2. The critical batch size
#
# A larger batch saves time only if training then needs *fewer steps*. Up to what batch size is this true? Here a
# network is trained with each batch size at several rates, until it recognises 95 % of the validation images. For each
# batch size, only the rate that needs the fewest steps counts. **Predict:** what is the number of steps at batch size
# 128, divided by that at batch size 512? (If each doubling of the batch size halved the number of steps, the answer
# would be 4.)

# %% labs={"id": "batches.4"}
### BEGIN SOLUTION
steps_128_over_512 = 2.0
### END SOLUTION
predict("batches.4", steps_128_over_512)

# %%
rates_to_target = (0.1, 0.4, 0.8, 1.6) if quick else (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
measured = []
for batch in (8, 128, 512, 1280) if quick else (2, 8, 32, 128, 512, 1280):
    rate, counts = trials.steps_to(batch, rates_to_target, seeds=seeds, most=1500)
    measured.append({"batch": batch, "rate": rate, "steps": counts})
compared.steps_to_target(measured)
of_batch = {row["batch"]: row["steps"] for row in measured}
ratio = intervals.ratio(intervals.mean(of_batch[128]), intervals.mean(of_batch[512]))
outcome("batches.4", ratio.value, ratio.interval)

# %% [markdown]
# The table shows three regimes. For small batches, doubling the batch size halves the number of steps, so the number of
# images stays about the same. In the middle, each doubling saves less. For large batches, the number of steps no longer
# falls, so the additional images are wasted. The best rate shows the same pattern: it grows with the batch size only at
# first. The linear rule ends where the rate stops growing.
#
# S. McCandlish and others ([1812.06162](https://arxiv.org/abs/1812.06162)) proposed a curve with these three regimes:
#
# $$ S(B) = S_\text{min} \left(1 + \frac{B_\text{crit}}{B}\right) $$
#
# $S(B)$ is the number of steps with batch size B, $S_\text{min}$ the number with a very large batch, and
# $B_\text{crit}$ the critical batch size. Write a function that fits this curve to measured numbers of steps. Against
# which quantity, your `x`, must you plot S to get a straight line? `np.polyfit(x, y, 1)` fits a straight line and
# returns its slope and its value at x = 0. All measured numbers of steps vary by about the same percentage, so pass
# `w=1/steps` to weight them: then each batch size counts equally. (Your function gets lists: first convert them with
# `np.array(...)`.)


# %% labs={"id": "batches.5"}
def fit(batches, steps):
    """(S_min, B_crit) for lists of batches (images) and of steps."""
    ### BEGIN SOLUTION
    slope, s_min = np.polyfit(1 / np.array(batches), steps, 1, w=1 / np.array(steps))
    return s_min, slope / s_min
    ### END SOLUTION


check("batches.5", fit)

# %%
fitted = None
if answered("batches.5"):
    fitted = fit([row["batch"] for row in measured], [float(np.mean(row["steps"])) for row in measured])
    print(f"S_min = {fitted[0]:.1f} steps, B_crit = {fitted[1]:.0f} images")
plots.show(pictures.critical(measured, fitted))

# %% [markdown]
# With so few seeds and batch sizes, the fit shows only roughly where the curve bends. Use the formula: at B = B_crit,
# what is the number of steps, divided by S_min? And what is the number of images read, divided by that with a very
# small batch?

# %% labs={"id": "batches.6"}
### BEGIN SOLUTION
steps_at_critical, images_at_critical = 2, 2
### END SOLUTION
check("batches.6", steps_at_critical, images_at_critical)

# %% [markdown]
# If each of K workers takes b images, a step processes b K images. Well below the critical batch size, doubling the
# number of workers nearly halves the number of steps. Far above it, more workers save nothing, however fast the links
# between them are.
#
# ## 3. Training runs that need no exchange
#
# You have two cores and must find a learning rate. You start four training runs with four different rates. They run
# either one after the other, each on both cores, or two at a time, each on one core. **Predict:** what is the time for
# all four runs one after the other, divided by the time for two at a time?

# %% labs={"id": "batches.7"}
### BEGIN SOLUTION
one_by_one_over_two = 1.3
### END SOLUTION
predict("batches.7", one_by_one_over_two)

# %% [markdown]
# `start(rate)` starts a training run as a job (`labs.jobs`) and returns the job at once. `job.wait(show=False)` returns
# when the run has ended. Write a function that starts one run for each rate. At most `at_a_time` runs may be active at
# once. As soon as a run has ended, start the next one; do not wait for a whole group. All the runs take about the same
# time, so they end in the order in which they started. When all of them have ended, return the jobs in the order of the
# rates.


# %% labs={"id": "batches.8"}
def search(start, rates, at_a_time):
    ### BEGIN SOLUTION
    started = []
    for number, rate in enumerate(rates):
        if number >= at_a_time:
            started[number - at_a_time].wait(show=False)
        started.append(start(rate))
    for job in started:
        job.wait(show=False)
    return started
    ### END SOLUTION


check("batches.8", search)

# %%
rates_to_search, sizes_of_job = (0.01, 0.1) if quick else (0.001, 0.01, 0.1, 1.0), ["--epochs", 1 if quick else 4]
searches = {"one after the other, on both cores": [(0, 1)], "two at a time, on one core each": [(0,), (1,)]}
plans, durations, trained = {}, [], []
if answered("batches.8"):
    for title, places in searches.items():
        starts = one_rate.Starts(places, sizes_of_job, prefix=f"rate_{len(places)}")
        begin = time.perf_counter()
        trained = search(starts, rates_to_search, len(places))
        durations.append(time.perf_counter() - begin)
        plans[title] = starts.times()
    outcome("batches.7", durations[0] / durations[1])
    headers = {"from": "began after (s)", "to": "printed its last line after (s), measured"}
    tables.show([{"search": title} | run for title, runs in plans.items() for run in runs], headers=headers)

# %% [markdown]
# How much can a single search of each kind show? The ratio of their times has no interval, and it includes the effect
# of whatever else the machine was doing during each search. Look at the table: if the runs within one search differ by
# 5 s, and the two searches also differ by 5 s, the ratio tells you nothing. For a better answer, repeat both searches
# several times in random order.
#
# A single run of a small network cannot make good use of two cores, and separate runs exchange nothing. If you need
# several runs, let them run side by side rather than dividing each of them among workers.

# %%
rows = []
for rate, job in zip(rates_to_search, trained):
    run = results.load(job.record)[0]
    metrics = run.epochs[-1].metrics if run.epochs else {}
    rows.append(
        {"rate": rate, "state": job.state, "loss": metrics.get("loss"), "accuracy": metrics.get("val_accuracy")}
    )
tables.show(
    rows, ("rate", "state", "loss", "accuracy"), {"loss": "training loss", "accuracy": "validation accuracy (measured)"}
)

# %% [markdown]
# ## 4. One slow worker
#
# One of K workers is late, because its disk is slow or because another program is using its core. Must all the others
# wait for it? Here four processes train a small network, and in every step one of them sleeps for 20 ms before it sends
# its gradient to a server. The server either waits for all four gradients (a **barrier**), or continues as soon as
# three of them have arrived and ignores the late one. If K workers compute but only K - 1 gradients are needed, the
# extra worker is called a **backup worker** (J. Chen and others, [1604.00981](https://arxiv.org/abs/1604.00981)).
#
# **Predict:** what is the time of a step with the barrier, divided by that of a step without it? (If no worker sleeps,
# a step takes about 1 ms or less.)

# %% labs={"id": "batches.9"}
### BEGIN SOLUTION
barrier_over_backup = 20
### END SOLUTION
predict("batches.9", barrier_over_backup)

# %%
count = 60 if quick else 300
late = {
    "barrier": late_workers.run("barrier", steps=count),
    "the late one left out": late_workers.run("left_out", steps=count, backup=1),
}
if all(late.values()):
    waits, goes_on = (np.median(result["seconds"]) for result in late.values())
    outcome("batches.9", waits / goes_on)

# %% [markdown]
# Without the late worker, a step uses a quarter fewer images and takes much less time. But the same quarter is missing
# in every step. Now the shards are sorted by label, so that only the late worker has the eights and nines. **Predict:**
# on these shards, after the same number of steps, is the accuracy without the late worker "equal" to that with the
# barrier, "higher" or "lower"?

# %% labs={"id": "batches.10"}
### BEGIN SOLUTION
accuracy_left_out = "lower"
### END SOLUTION
predict("batches.10", accuracy_left_out)

# %%
late |= {
    "barrier, sorted": late_workers.run("barrier_sorted", steps=count, order="sorted"),
    "left out, sorted": late_workers.run("left_out_sorted", steps=count, order="sorted", backup=1),
}
if all(late.values()):
    fair, unfair = (late[name]["accuracy"] for name in ("barrier, sorted", "left out, sorted"))
    outcome("batches.10", "equal" if abs(fair - unfair) < 0.02 else "higher" if unfair > fair else "lower")
    rows = []
    for name, result in late.items():
        row = {"run": name, "ms": 1000 * np.median(result["seconds"]), "accuracy": result["accuracy"]}
        rows.append(row | {"used": ", ".join(map(str, result["used"]))})
    headers = {"ms": "half of the steps take at most (ms)", "accuracy": "test accuracy (one run of each kind)"}
    tables.show(rows, headers=headers | {"used": "gradients used of workers 0 to 3"})

# %% [markdown]
# If a worker is late only now and then, the others can go on without it in those steps. If it is always late, fix it
# or give its shard to other workers. Otherwise the network never learns what only that shard contains.
#
# With many ranks, even rare delays slow all of them down. Suppose that each rank pauses for 50 ms in one step out of
# 100, independently of the others. In what fraction of the steps (0 to 1) does at least one of 64 ranks pause, so that
# all of them wait at the barrier?

# %% labs={"id": "batches.11"}
### BEGIN SOLUTION
share_of_steps = 1 - 0.99**64
### END SOLUTION
check("batches.11", share_of_steps)

# %% [markdown]
# ## W1
#
# A colleague is training a network on 2 workers and wants to use 64. Write your advice in 6 to 8 sentences, with
# numbers from your experiments here and in notebook 22; the cell below the questions lists the outcomes of your
# predictions. Answer these questions:
#
# - Which part of a step do additional workers divide, and which parts do they not? What would you measure first?
# - How rarely may the workers exchange, and what does this depend on besides speed?
# - Up to what batch size do more images save steps, and what does this mean for 64 workers?
# - Does a large batch by itself do harm? What must you keep equal to find out?
# - What would you rather do with idle cores, and what would a few slow workers among the 64 cost?

# %%
rows = []
for each in predictions():
    if each["notebook"] in ("22_when_workers_do_not_help", "23_large_batches") and each["outcome"] is not None:
        low, high = each["interval"] or (None, None)
        rows.append({"prediction": each["title"], "outcome": each["outcome"], "low": low, "high": high})
tables.show(rows, ("prediction", "outcome", "low", "high"), {"low": "95 % interval, from", "high": "to"})

# %% [markdown] labs={"id": "W1", "kind": "answer"}
# ### W1: your answer
# ### BEGIN SOLUTION
# More workers divide the computing, which grows with the number of images, but not the start of operations, and they
# add an exchange: in notebook 22, with the same 32 images per step, my smallest network was no faster on 2 ranks than
# on 1, while the largest was (first figure, with intervals). So I would first measure the parts of your step on 1 and 2
# workers, with the batch size that you want to use. If the exchange costs too much, average the weights only after
# every k-th step: with shuffled shards, k = 128 caused no loss of accuracy that the seeds could show, but with shards
# sorted by label the accuracy fell to about 0.6, so the cost depends on how similar the shards are. With 64 workers, the
# batch becomes 32 times as large: this saves steps up to about the B_crit of my fit, and nearly nothing far beyond it.
# A large batch by itself was no worse: with the same number of steps and tuned rates, no difference was left. With
# workers to spare, I would rather try several rates at the same time, without any exchange. I would also look for slow
# workers: if each of 64 ranks pauses in one step out of 100, some rank pauses in 47 % of the steps. A rank that is
# always late must be fixed, not left out: without it, the network never learns what only that rank's shard contains.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# - Whether large batches do harm depends on the comparison: the same number of epochs or of steps, the same rate or a
#   tuned one.
# - Far above the critical batch size, more images save no steps.
# - Separate training runs exchange nothing. The workers of a single run wait for the slowest of them.
#
# Next: `24_faster_steps`. Three optional parts follow. They go deeper into the critical batch size and
# the late worker, and into a step that is clipped; no later notebook needs them.
#
# ## Optional: the critical batch size from a single run
#
# (About 15 minutes.) Few people can afford to train a large network many times to find one number. McCandlish and
# others estimate the critical batch size from a single training run. The gradient of a batch of B images is the true
# gradient $G$ plus noise. The mean square of the noise is inversely proportional to B:
#
# $$ E\,|g_B|^2 = |G|^2 + \frac{\operatorname{tr} \Sigma}{B}, \qquad B_\text{simple} = \frac{\operatorname{tr}
# \Sigma}{|G|^2} . $$
#
# The batch size $B_\text{simple}$, at which noise and signal are equally strong, is called the **noise scale**.
#
# **Predict** what happens to the noise scale as the loss falls. Answer "grows", "falls" or "stays".

# %% labs={"id": "batches.12"}
### BEGIN SOLUTION
noise_scale_later = "grows"
### END SOLUTION
predict("batches.12", noise_scale_later)

# %% [markdown]
# Data parallelism computes gradients for two batch sizes anyway: each worker's own gradient, for b images, and the mean
# of these gradients, for b K images. The first formula holds for both of them, which gives two equations for the two
# unknowns $|G|^2$ and $\operatorname{tr} \Sigma$. Write a function that solves them and returns $B_\text{simple}$.
# `local_square` is the squared length $|g|^2$ of a worker's own gradient, averaged over the workers; `mean_square` is
# the squared length of their mean gradient. Each worker has `local_batch` images (b), and there are `workers` workers
# (K).


# %% labs={"id": "batches.13"}
def noise_scale(local_square, mean_square, local_batch, workers):
    """B_simple in images, from |g|^2 of the workers' own gradients (their mean) and |g|^2 of the mean gradient."""
    ### BEGIN SOLUTION
    large = local_batch * workers
    noise = (local_square - mean_square) / (1 / local_batch - 1 / large)
    signal = (large * mean_square - local_batch * local_square) / (large - local_batch)
    return noise / signal
    ### END SOLUTION


check("batches.13", noise_scale)

# %% [markdown]
# In a single step, both squares are too noisy. So average each of them over 50 steps before you divide. Here eight
# workers have 16 images each:

# %%
window, length = 50, (200 if quick else 400)
watched = [trials.squares(workers=8, batch=16, rate=0.4, steps=length, seed=seed) for seed in seeds]


def windows(values):
    return np.nanmean(values.reshape(-1, window), axis=1)


if answered("batches.13"):
    scales = np.array([noise_scale(windows(w["local"]), windows(w["mean"]), 16, 8) for w in watched]).T
    losses = np.mean([windows(w["loss"]) for w in watched], axis=0)
    middles = window * (np.arange(length // window) + 0.5)
    plots.show(pictures.noise(middles, losses, scales, fitted and fitted[1]))
    first, last = (intervals.mean([s for s in scales[place] if s > 0]) for place in (0, -1))
    change = last.value / first.value
    print(f"B_simple: {first.value:.0f} images at the start, {last.value:.0f} at the end")
    outcome("batches.12", "grows" if change > 1.5 else "falls" if change < 1 / 1.5 else "stays", how="simulated")

# %% [markdown]
# At first, the gradients of all the images point in similar directions, and a small batch is enough. Later the
# gradient is small but the noise is not, so a larger batch pays off. Do not expect the noise scale to equal the B_crit
# of your fit. The fit covers the whole run, until it reaches 95 % accuracy, at the best rate for each batch size. A
# noise scale belongs to one moment and one learning rate, and it continues to grow after the network has reached 95 %.
# Compare only the orders of magnitude and the direction.
#
# Suppose that the noise scale of a training run is 70 images at the start, and later 400 images. What follows from
# this?
#
# - **a**: batches of more than 70 images are wasteful throughout the run
# - **b**: a batch size of 400 is the best one from the start
# - **c**: the estimate is wrong, because the noise scale should be a single number
# - **d**: the batch size can be small at first and grow during training

# %% labs={"id": "batches.14"}
### BEGIN SOLUTION
what_follows = "d"
### END SOLUTION
check("batches.14", what_follows)

# %% [markdown]
# Be careful: the formula assumes plain SGD and a well-conditioned problem. W. Merrill and others
# ([2505.23971](https://arxiv.org/abs/2505.23971)) measured the critical batch size of language models directly: from a
# single training run, they branched off further runs with different batch sizes. The critical batch size is near 0 at
# the start, grows fast and then levels off, and the noise scale is not a reliable estimate of it. With a batch size
# that grew in this way, a model with a billion weights reached the same loss in 43 % fewer steps.
#
# ## Optional: a late rank in a run record
#
# (About 5 minutes.) How does a late rank show up in a run record? Here an experiment from notebook 08 runs on 2 ranks,
# once unchanged and once with a pause of 50 ms on rank 1 in each step. The two versions take turns.

# %%
paused, turns = [], jobs.Turns()
if devices.has("horovod"):
    with turns:
        for name, pause in (("as_it_is", []), ("rank_1_late", ["--slow", 1, 50])):
            options = ["--model", "SmallCNN", "--images", 256, "--epochs", 4, *pause]
            turns.start("-m", "lessons.horovod_training.experiment", *options, name=name, ranks=2, launcher="mpiexec")
if turns.jobs and turns.state == "finished":
    paused = results.load([job.record for job in turns.jobs])
    for run, job in zip(paused, turns.jobs):
        run.configuration.model = job.name
    plots.show(plots.steps(*paused))
    usual = [[np.median(epoch.step_seconds) for epoch in run.repeats[0][1:]] for run in paused]  # of each round
    later = [1000 * (slow - plain) for plain, slow in zip(*usual)]
    low, high = intervals.plain(later)
    print(f"usual step with the pause: {np.mean(later):.0f} ms longer [{low:.0f}, {high:.0f}]")

# %% [markdown]
# The last line of the output says how much longer the median recorded step is with the pause of 50 ms. What follows
# from these step times alone?
#
# - **a**: rank 0, which wrote this record, is late
# - **b**: some rank or the exchange delays every step; these times do not show which
# - **c**: the exchange takes 50 ms longer
# - **d**: there was a single long step, like the first one

# %% labs={"id": "batches.15"}
### BEGIN SOLUTION
what_steps_say = "b"
### END SOLUTION
check("batches.15", what_steps_say)

# %% [markdown]
# The timeline in notebook 20 shows which rank is late: it is the rank whose gradients come last. Step times show only
# *that* all the ranks are waiting, and whether they wait in every step (the whole distribution shifts) or only now and
# then (the distribution has a long tail).
#
# ## Optional: clip before the average, or after it?
#
# `clipnorm=0.005` shortens every gradient longer than 0.005 to a length of 0.005. With a rate of 1, one step of SGD
# then changes a weight matrix W by at most 0.005, however steep the loss is. Many training runs rely on such a bound.
# With your `distributed`, the bound holds on any number of ranks: it averages the gradients first, and then the
# optimizer clips the average. Does the bound also hold on 4 replicas of MirroredStrategy?
#
# In this experiment, the batch contains the *same* 4 images four times: one replica gets all 16, or each of 4 replicas
# gets the 4 images once. So all gradients point in the same direction, and each is far longer than 0.005. **Predict:**
# by how much does one step change W on one replica, and on 4 replicas?

# %% labs={"id": "batches.16"}
### BEGIN SOLUTION
change_on_1 = 0.005
change_on_4 = 0.005
### END SOLUTION
predict("batches.16", [change_on_1, change_on_4])


# %%
import json


def clipped(clipnorm):
    """Rows: how far one step changes W, on so many replicas."""
    job = jobs.run("-m", "lessons.large_batches.clipped", clipnorm, name="clipped")
    return json.loads(job.out.read_text())


steps = clipped(0.005)
tables.show(steps[:2], ("replicas", "each gets", "change"), {"change": "|change of W|, clipnorm 0.005"})
changes = {row["replicas"]: row["change"] for row in steps[:2]}
outcome("batches.16", list(changes.values()))

# %% [markdown]
# The order of two operations makes the difference. With MirroredStrategy, Keras clips the gradient of *each replica*,
# and then adds up the clipped gradients. Each of them is within the bound, but their sum need not be. A training run
# whose updates stayed within the bound on one device makes larger updates on many devices, and no error tells you. The
# same happens with `global_clipnorm` and `clipvalue`. (The course's recorder warns you before the first step.)
#
# What is the largest `clipnorm` that keeps the change in W on 4 replicas within 0.005, whatever images they get?

# %% labs={"id": "batches.17"}
### BEGIN SOLUTION
clipnorm_on_4 = 0.005 / 4
### END SOLUTION
check("batches.17", clipnorm_on_4, changes)

# %%
if answered("batches.17"):
    head = {"change": f"|change of W|, clipnorm {clipnorm_on_4:g}"}
    tables.show(clipped(clipnorm_on_4)[1:], ("replicas", "each gets", "change"), head)

# %% [markdown]
# Now the bound holds. With different images, the gradients of the replicas point in different directions. Their sum is
# then shorter than the bound, and the step is smaller than a single worker's would be. To clip as a single worker does,
# average the gradients *first*, as your optimizer and `labs.hvd` do.
