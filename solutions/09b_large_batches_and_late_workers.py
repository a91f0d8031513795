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
# **Time: 80 minutes, of which 3 minutes on 2 cores are computing.**
#
# In notebook 09 the exchange was the reason why more workers did not help. It is not the only one. More workers mean a larger batch:
# you measure up to which size a larger batch saves steps. Then you use workers in another way, for several trainings at once, and see
# what a single late worker costs. At the end you hand in task **W1**, for which you also need your results of notebook 09.

# %%
import os
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # small experiments: they run on CPU cores, also where there is a GPU

from labs import devices, jobs, presets  # first: it silences TensorFlow's start-up messages
from labs.checks import answered, check, outcome, predict
from labs.lessons.nb09 import pictures, small, trials
from labs.lessons.nb09b import late_workers, one_rate
from labs.results import intervals
from labs.results import record as run_record
from labs.results.run import load_record
from labs.show import plots, tables

import numpy as np

quick = presets.choose().name == "test"
seeds = range(3 if quick else 5)

# %% [markdown]
# ## 1. Large batches: a dispute
#
# The other way to exchange less often is a larger batch. Are large batches worse? A popular experiment trains with
# several batch sizes, for 10 epochs each, at one rate. The smallest batch takes by far the longest, and is the most accurate.
#
# **Predict** which batch is the most accurate here, after 10 epochs at rate 0.05: "8", "32", "128" or "512".

# %% labs={"id": "09.10"}
### BEGIN SOLUTION
most_accurate = "8"
### END SOLUTION
predict("09.10", most_accurate)

# %%
sizes_of_batch = (8, 32, 128, 512)
same_rate = {b: [trials.train(b, 0.05, epochs=10, seed=seed) for seed in seeds] for b in sizes_of_batch}


def show_trainings(trainings):
    """A table of {batch: [training of each seed]}, test accuracy with its interval."""
    rows = []
    for batch, of_batch in trainings.items():
        accuracy = [training["test"] for training in of_batch]
        low, high = intervals.shares(accuracy)
        row = {"batch": batch, "rate": of_batch[0].get("rate"), "steps": of_batch[0]["steps"]}
        row["images"] = batch * row["steps"]
        row["loss"] = float(np.mean([training["loss"] for training in of_batch]))
        row["seconds"] = float(np.mean([training["seconds"] for training in of_batch]))
        rows.append(row | {"accuracy": f"{np.mean(accuracy):.3f} [{low:.3f}, {high:.3f}]"})
    columns = ("batch", "rate", "steps", "images", "seconds", "loss", "accuracy")
    names = {"seconds": "seconds (measured)", "loss": "training loss at the end", "accuracy": "test accuracy"}
    tables.show(rows, columns, names)
    return max(trainings, key=lambda batch: np.mean([training["test"] for training in trainings[batch]]))


best_batch = show_trainings(same_rate)
outcome("09.10", str(best_batch))

# %% [markdown]
# So large batches harm? Before you believe it, count what else differs. How many **updates** does a training make? What fills no whole
# batch is left out in each epoch.


# %% labs={"id": "09.11"}
def updates(images, batch, epochs):
    ### BEGIN SOLUTION
    return images // batch * epochs
    ### END SOLUTION


check("09.11", updates)

# %%
if answered("09.11"):
    print(*(f"batch {batch}: {updates(small.TRAIN, batch, 10)} updates" for batch in sizes_of_batch), sep="\n")

# %% [markdown]
# With equal epochs and one rate, batch 512 was given 20 updates, and batch 8 1600 of the same length. Two repairs. First the linear rule:
# a rate that grows with the batch. Then the same number of *steps* for all batches, each with the rate that is best on the
# validation images. The test images decide nothing; they give the result.

# %%
linear = {
    b: [trials.train(b, 0.05 * b / 8, epochs=10, seed=seed) | {"rate": 0.05 * b / 8} for seed in seeds]
    for b in sizes_of_batch
}
rates = (0.1, 0.4, 1.6) if quick else (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
same_steps = {b: trials.tuned(b, rates, steps=200 if quick else 1600, seeds=seeds) for b in sizes_of_batch}
print("10 epochs, the rate grows with the batch:")
show_trainings(linear)
print("Equal steps, the rate tuned for each batch:")
_ = show_trainings(same_steps)

# %%
ways = {"10 epochs, one rate": same_rate, "10 epochs, linear rule": linear, "equal steps, tuned rate": same_steps}
accuracies = {name: {b: [each["test"] for each in of[b]] for b in of} for name, of in ways.items()}
plots.show(pictures.accuracy_by(accuracies, xlabel="batch (images)", title="three ways to compare batches"))

# %% [markdown]
# One point lies at or below guessing (0.1): batch 512 by the linear rule. Its rate of 3.2 is too high for this network, and the training
# **diverges**. Its loss ends far above 2.3 = ln 10, which is the loss of a network that finds all ten digits equally likely. The steps have
# been so long that nearly all hidden units are at -1 or 1, where a gradient changes nothing, and the network calls nearly every image
# the same digit. The linear rule has an end: section 4 looks for it.
#
# The same batches, the same images, three answers. With equal steps and tuned rates, what is left of the disadvantage of the large
# batch?
#
# - **a**: all of it: batch 512 stays far behind
# - **b**: nothing that these intervals show; but its training read 64 times as many images as that of batch 8
# - **c**: nothing, because the large batch was given a better rate than the small one
# - **d**: this cannot be told, for the test images were different ones

# %% labs={"id": "09.12"}
### BEGIN SOLUTION
what_is_left = "b"
### END SOLUTION
check("09.12", what_is_left)

# %% [markdown]
# The dispute, in four steps:
#
# | source | found |
# |---|---|
# | N. Keskar and others, [1609.04836](https://arxiv.org/abs/1609.04836) (2016) | large batches end in sharp minima, and generalise worse |
# | E. Hoffer and others, [1705.08741](https://arxiv.org/abs/1705.08741) (2017) | with as many updates as the small batch has, and adapted rates, the gap goes away |
# | P. Goyal and others, [1706.02677](https://arxiv.org/abs/1706.02677) (2017) | ImageNet up to batch 8192 without loss, by the linear rule with warm-up; about 90 % efficiency from 8 to 256 GPUs |
# | C. Shallue and others, [1811.03600](https://arxiv.org/abs/1811.03600) (2019) | 168,160 trained models: no evidence that larger batches harm by themselves; disagreements come from tuning and from the budget (epochs or steps) |
#
# So ask of every comparison: equal epochs, or equal steps? At whose rate?
#
# ## 2. The critical batch
#
# More workers are of use if a larger batch needs *fewer steps*. From which batch on does it not? Here each batch trains until 95 % of the
# validation images are recognised, at several rates; the best rate of each batch counts. **Predict:** how many times as many steps as
# batch 512 does batch 128 need? (If twice the batch halved the steps, it would be 4.)

# %% labs={"id": "09.13"}
### BEGIN SOLUTION
steps_128_over_512 = 2.0
### END SOLUTION
predict("09.13", steps_128_over_512)

# %%
rates = (0.1, 0.4, 0.8, 1.6) if quick else (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
measured = []
for batch in (8, 128, 512, 1280) if quick else (2, 8, 32, 128, 512, 1280):
    rate, counts = trials.steps_to(batch, rates, seeds=seeds, most=1500)
    measured.append({"batch": batch, "rate": rate, "steps": counts})
rows = []
for row in measured:
    estimate = intervals.mean(row["steps"])
    low, high = estimate.interval or (estimate.value, estimate.value)
    shown = {
        "steps": f"{estimate.value:.0f} [{low:.0f}, {high:.0f}]",
        "images": f"{row['batch'] * estimate.value:,.0f}",
    }
    rows.append(row | shown)
tables.show(rows, ("batch", "rate", "steps", "images"), {"rate": "best rate", "steps": "steps to 95 %"})
of_batch = {row["batch"]: row["steps"] for row in measured}
ratio = intervals.product([of_batch[128]], [of_batch[512]])
outcome("09.13", ratio.value, ratio.interval)

# %% [markdown]
# Three regimes in one table. At first twice the batch halves the steps: the number of images stays about the same, and so does the price.
# In the middle each doubling saves less. At last the steps stay as they are, and all further images are wasted. The best rate tells
# the same: it grows with the batch at first, then no more. There linear scaling of the rate ends.
#
# A curve with these three regimes (S. McCandlish and others, [1812.06162](https://arxiv.org/abs/1812.06162)):
#
# $$ S(B) = S_\text{min} \left(1 + \frac{B_\text{crit}}{B}\right) $$
#
# Fit it: over which quantity is it a straight line? `np.polyfit(x, y, 1)` fits one, and returns slope and value at 0. Steps scatter by a
# share of themselves, so weights `w=1/steps` make small and large ones count alike.


# %% labs={"id": "09.14"}
def fit(batches, steps):
    """(S_min, B_crit) for lists of batches (images) and of steps."""
    ### BEGIN SOLUTION
    slope, least = np.polyfit(1 / np.array(batches), steps, 1, w=1 / np.array(steps))
    return least, slope / least
    ### END SOLUTION


check("09.14", fit)

# %%
fitted = None
if answered("09.14"):
    fitted = fit([row["batch"] for row in measured], [float(np.mean(row["steps"])) for row in measured])
    print(f"S_min = {fitted[0]:.1f} steps, B_crit = {fitted[1]:.0f} images")
plots.show(pictures.critical(measured, fitted))

# %% [markdown]
# With 3 seeds and few batches, the fit says where the bend is, and not more. At B = B_crit: how many times S_min are the steps, and how many
# times as many images are read as with a very small batch?

# %% labs={"id": "09.15"}
### BEGIN SOLUTION
steps_at_critical, images_at_critical = 2, 2
### END SOLUTION
check("09.15", steps_at_critical, images_at_critical)

# %% [markdown]
# For workers this means: K workers with b images each are a batch of b K. Up to the critical batch they save time nearly in proportion.
# Far beyond it twice the workers save nothing, however fast the network between them is.
#
# ## 3. The critical batch for nothing
#
# Many trainings to find one number: who can afford that with a large network? McCandlish and others estimate it from a single training:
# a gradient of B images is the true gradient $G$ plus noise, whose square falls with B:
#
# $$ E\,|g_B|^2 = |G|^2 + \frac{\operatorname{tr} \Sigma}{B}, \qquad B_\text{simple} = \frac{\operatorname{tr} \Sigma}{|G|^2} . $$
#
# At the **noise scale** $B_\text{simple}$, noise and signal are equally strong. Data parallelism computes gradients of two batch sizes anyway:
# each worker's own, of b images, and their mean, of b K. Two equations, two unknowns.
#
# **Predict:** as the loss falls, what does the noise scale do: "grows", "falls" or "stays"?

# %% labs={"id": "09.16"}
### BEGIN SOLUTION
noise_scale_later = "grows"
### END SOLUTION
predict("09.16", noise_scale_later)


# %% labs={"id": "09.17"}
def noise_scale(local_square, mean_square, local_batch, workers):
    """B_simple in images. local_square: mean of |g|^2 of the workers' own gradients; mean_square: |g|^2 of their mean."""
    ### BEGIN SOLUTION
    large = local_batch * workers
    noise = (local_square - mean_square) / (1 / local_batch - 1 / large)
    signal = (large * mean_square - local_batch * local_square) / (large - local_batch)
    return noise / signal
    ### END SOLUTION


check("09.17", noise_scale)

# %% [markdown]
# A single step tells little: both squares scatter. So take means of the squares over 50 steps first, and divide then. Eight workers with 16
# images each:

# %%
window, count = 50, (200 if quick else 400)
watched = [trials.squares(workers=8, batch=16, rate=0.4, steps=count, seed=seed) for seed in seeds]


def windows(values):
    return np.nanmean(values.reshape(-1, window), axis=1)


if answered("09.17"):
    scales = np.array([noise_scale(windows(w["local"]), windows(w["mean"]), 16, 8) for w in watched]).T
    losses = np.mean([windows(w["loss"]) for w in watched], axis=0)
    middles = window * (np.arange(count // window) + 0.5)
    plots.show(pictures.noise(middles, losses, scales, fitted and fitted[1]))
    first, last = (intervals.mean([s for s in scales[place] if s > 0]) for place in (0, -1))
    change = last.value / first.value
    print(f"B_simple: {first.value:.0f} images at first, {last.value:.0f} at last")
    outcome("09.16", "grows" if change > 1.5 else "falls" if change < 1 / 1.5 else "stays", how="simulated")

# %% [markdown]
# At first all images agree on where to go, and a small batch is enough. Later the gradient is small, the noise is not, and a larger batch is
# worth having. Do not expect the B_crit of your fit: that one is of the way to 95 %, with the best rate for each batch; a noise scale
# is of a moment, at one rate, and goes on growing when 95 % are long reached. Compare orders of magnitude, and the direction.
#
# Suppose that a training has a noise scale of 70 images at the start and of 400 later. What follows?
#
# - **a**: batches above 70 are wasted in all of the training
# - **b**: batch 400 is best from the start on
# - **c**: the estimate is wrong: it should be one number
# - **d**: a batch may begin small, and grow in the course of the training

# %% labs={"id": "09.18"}
### BEGIN SOLUTION
what_follows = "d"
### END SOLUTION
check("09.18", what_follows)

# %% [markdown]
# With care: the formula supposes plain SGD and a well-conditioned problem. W. Merrill and others
# ([2505.23971](https://arxiv.org/abs/2505.23971)) measured the critical batch of language models directly, by branching off trainings: it
# is near 0 at the start, grows fast, then levels off, and the noise scale is a doubtful stand-in for it. A batch that grew in this way
# trained a model of a billion weights to the same loss in 43 % fewer steps.
#
# ## 4. Trainings that need no exchange
#
# You have two cores and must find a learning rate. Four trainings, of four rates: one after the other, each on both cores; or two at a
# time, each on one core. **Predict:** the first way takes how many times as long as the second?

# %% labs={"id": "09.19"}
### BEGIN SOLUTION
one_by_one_over_two = 1.3
### END SOLUTION
predict("09.19", one_by_one_over_two)

# %% [markdown]
# `start(rate)` starts a training as a job (labs.jobs) and returns at once; `job.wait(show=False)` returns when it has ended. Write the search: never
# more than `at_a_time` trainings at once, but never fewer while rates are left. Return the jobs, in the order of the rates, when all have ended.


# %% labs={"id": "09.20"}
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


check("09.20", search)

# %%
rates, sizes_of_job = (0.01, 0.1) if quick else (0.001, 0.01, 0.1, 1.0), ["--epochs", 1 if quick else 4]
searches = {"one after the other, on both cores": [(0, 1)], "two at a time, on one core each": [(0,), (1,)]}
plans, durations, trained = {}, [], []
if answered("09.20"):
    for title, places in searches.items():
        starts = one_rate.Starts(places, sizes_of_job, prefix=f"rate_{len(places)}")
        begin = time.perf_counter()
        trained = search(starts, rates, len(places))
        durations.append(time.perf_counter() - begin)
        plans[title] = starts.bars()
    outcome("09.19", durations[0] / durations[1])
    plots.show(pictures.schedule(plans))

# %% [markdown]
# What can one search of each kind show? Their ratio has no interval, and what else the machine did during one of the two is in it. The
# bars help: if the four trainings of one search differ among themselves as much as the two searches do, the ratio says nothing. To know it
# better, repeat both, in an order drawn at random.
#
# One training of a small network cannot use two cores well: its operations are too short to be divided, and it starts, reads and
# traces on one core. Two trainings side by side have nothing to tell each other. No all-reduce, no barrier, the same results. When you
# have several trainings to make, make them at the same time before you divide a single one.

# %%
rows = []
for rate, job in zip(rates, trained):
    record = run_record.load(job.record)
    metrics = record.epochs[-1].metrics if record.epochs else {}
    rows.append(
        {"rate": rate, "state": job.state, "loss": metrics.get("loss"), "accuracy": metrics.get("val_accuracy")}
    )
tables.show(
    rows, ("rate", "state", "loss", "accuracy"), {"loss": "training loss", "accuracy": "validation accuracy (measured)"}
)

# %% [markdown]
# Most of the four rates could have been given up after an epoch. **Successive halving** does that: all begin, and at each *rung* only the best
# third goes on. With 27 random rates and rungs after 1, 3, 9 and 27 epochs: how many epochs do all trainings have together? (Who goes on
# does not begin anew.)

# %% labs={"id": "09.21"}
### BEGIN SOLUTION
epochs_in_all = 27 * 1 + 9 * 2 + 3 * 6 + 1 * 18
### END SOLUTION
check("09.21", epochs_in_all)

# %% [markdown]
# Against it stand two searches of random rates that stop nobody: one with all the rates, one with as many as fit into the epochs of the first.

# %%
rungs, most = ((1, 3, 9), 9) if quick else ((1, 3, 9, 27), 27)
budgets = {
    "all to the end": (most, rungs[-1:]),
    "the best third goes on": (most, rungs),
    "3 rates, to the end": (3, rungs[-1:]),
}
searched = {name: [] for name in budgets}
for seed in seeds:
    drawn = 10 ** np.random.default_rng(seed).uniform(-3, 0.7, most)  # rates from 0.001 to 5, as likely in each decade
    for name, (count, of_rungs) in budgets.items():
        searched[name].append(trials.search(drawn[:count], of_rungs, seed=seed))
plots.show(pictures.stopping(searched))

# %% [markdown]
# The two cheap searches spend about the same number of epochs. Is the one that stops the bad ones better than three rates to the end? Each
# seed gives a pair: the three rates are the first three of the longer list, and they see the same batches. `gains` holds the difference in
# accuracy for each seed. Can it be told: `"better"`, `"worse"` or `"can't tell"`?

# %% labs={"id": "09.26"}
pairs = zip(searched["the best third goes on"], searched["3 rates, to the end"])
gains = [stopped - whole for (stopped, _), (whole, _) in pairs]
low, high = intervals.plain(gains)
print(f"mean difference {np.mean(gains):.4f}, 95 % interval from {low:.4f} to {high:.4f}, {len(gains)} seeds")
### BEGIN SOLUTION
told = "better" if low > 0 else "worse" if high < 0 else "can't tell"
### END SOLUTION
check("09.26", told, gains)

# %% [markdown]
# With many workers the rungs are a barrier: all wait for the slowest training of a rung. **ASHA** (L. Li and others,
# [1810.05934](https://arxiv.org/abs/1810.05934)) takes it away: whenever a worker is free, it continues the best training that is among the best third
# of its rung *so far*, or else starts a new one.
#
# ## 5. One slow worker
#
# K workers, and one of them is late: its disk is slow, or somebody else uses its core. Four processes train a small network here. One
# of them sleeps 20 ms before it gives its gradient, at every step. The server waits for all (a **barrier**), or goes on when three
# gradients have come and throws the late one away: a **backup worker** (J. Chen and others,
# [1604.00981](https://arxiv.org/abs/1604.00981)).
#
# **Predict:** how many times as long as without waiting does a step take with the barrier?

# %% labs={"id": "09.22"}
### BEGIN SOLUTION
barrier_over_backup = 20
### END SOLUTION
predict("09.22", barrier_over_backup)

# %%
count = 60 if quick else 300
late = {
    "barrier": late_workers.run("barrier", steps=count),
    "the late one left out": late_workers.run("left_out", steps=count, backup=1),
}
if all(late.values()):
    waits, goes_on = (np.median(result["seconds"]) for result in late.values())
    outcome("09.22", waits / goes_on)

# %% [markdown]
# Leaving it out costs a quarter of the images of each step, and much less time. But it is always the same quarter. **Predict** what
# happens to the accuracy if the shards are sorted by label, so that the late worker alone has the last digits: against the barrier,
# with equal steps and equal shards, is it "equal", "higher" or "lower"?

# %% labs={"id": "09.23"}
### BEGIN SOLUTION
accuracy_left_out = "lower"
### END SOLUTION
predict("09.23", accuracy_left_out)

# %%
late |= {
    "barrier, sorted": late_workers.run("barrier_sorted", steps=count, order="sorted"),
    "left out, sorted": late_workers.run("left_out_sorted", steps=count, order="sorted", backup=1),
}
if all(late.values()):
    fair, unfair = (late[name]["accuracy"] for name in ("barrier, sorted", "left out, sorted"))
    outcome("09.23", "equal" if abs(fair - unfair) < 0.02 else "higher" if unfair > fair else "lower")
    rows = [{"training": name, "used": ", ".join(map(str, result["used"]))} for name, result in late.items()]
    tables.show(rows, ("training", "used"), {"used": "gradients used of workers 0 to 3"})
    plots.show(pictures.late(late))

# %% [markdown]
# A worker that is late now and then may be left out now and then. One that is late always must be mended, or its share given to others:
# what it alone has seen is never learned.
#
# Now and then is enough, if there are many. Suppose that each rank pauses for 50 ms in one step of 100, at random. In which share of the steps
# do 64 ranks wait at the barrier?

# %% labs={"id": "09.24"}
### BEGIN SOLUTION
share_of_steps = 1 - 0.99**64
### END SOLUTION
check("09.24", share_of_steps)

# %% [markdown]
# What do you see of a late rank in a run record? A training of notebook 07 on 2 ranks, as it is and with rank 1 pausing for 50 ms in
# each step. The two take turns:

# %%
paused, turns = [], jobs.Turns(patience=0 if quick else 5)
if devices.has("horovod"):
    with turns:
        for name, pause in (("as_it_is", []), ("rank_1_late", ["--slow", 1, 50])):
            options = ["--network", "SmallCNN", "--images", 256, "--epochs", 4, *pause]
            turns.start("-m", "labs.lessons.nb07.experiment", *options, name=name, ranks=2, launcher="mpiexec")
if turns.jobs and turns.state == "finished":
    for job in turns.jobs:
        paused.append(load_record(job.record))
        paused[-1].configuration.model = job.name
    plots.show(plots.steps(*paused))
    usual = [[np.median(epoch.step_seconds) for epoch in run.repeats[0][1:]] for run in paused]  # of each round
    later = [1000 * (slow - plain) for plain, slow in zip(*usual)]
    low, high = intervals.plain(later)
    print(f"usual step with the pause: {np.mean(later):.0f} ms longer [{low:.0f}, {high:.0f}]")

# %% [markdown]
# The line above says how much longer the usual (median) step on record is. The pause is 50 ms. What follows from these step times alone?
#
# - **a**: rank 0, whose record this is, is late
# - **b**: some rank or the exchange delays every step; which one, these times do not tell
# - **c**: the exchange takes 50 ms longer
# - **d**: it was a single long step, as the first one is

# %% labs={"id": "09.25"}
### BEGIN SOLUTION
what_steps_say = "b"
### END SOLUTION
check("09.25", what_steps_say)

# %% [markdown]
# Who is late stands in the timeline of notebook 07: the rank whose gradients come last. Step times tell *that* all wait, and whether it is at
# every step (the whole distribution moves) or now and then (a long tail).
#
# ## W1
#
# A colleague trains a network on 2 workers and wants to take 64. Advise, in 8 to 12 sentences, from your experiments: what the exchange and
# the batch would do, what you would measure first, and what you would do with 64 workers instead.

# %% [markdown] labs={"id": "W1", "kind": "answer"}
# ### W1: your answer
# ### BEGIN SOLUTION
# More workers divide what grows with the images, not the start of operations, and add an exchange: in my measurement the smallest network,
# with the same 32 images, was not faster on 2 ranks than on 1 as far as the interval tells, and far slower on 4, which share two cores; the largest one
# was faster on 2 (first figure, with intervals), and the computed speedup on 32 ranks has an end that the parts of the step set. So I would measure your step on 1 and 2 workers first, taken apart, at the batch that you really want. If the exchange
# is what costs, take the mean of the weights at every k-th step: with shuffled shards k = 128 cost no accuracy that the seeds showed, with shards sorted by
# label it fell to about 0.6; so it depends on how alike the shards are, and at the scale of ImageNet it did cost accuracy (2110.08133). 64 workers make the batch
# 32 times as large: that saves steps up to about B_crit of my fit and nearly nothing far beyond it. The noise scale, which the workers' gradients give
# for nothing, was larger and grew as the loss fell: it is of a moment and of one rate, B_crit of the way to 95 % with the best rate for each batch. A large
# batch by itself was not worse: with equal steps and tuned rates no difference was left, while at equal epochs and one rate the batch of 512 had made
# 80 times fewer updates (Shallue: it is tuning and budget). With workers to spare I would rather train several rates at the same time, and stop the bad
# ones early: no exchange at all. And I would look for slow ones: if each of 64 ranks pauses in one step of 100, somebody pauses in 47 % of the steps; a rank that is
# always late must be mended, for leaving it out loses what only its shard holds.
# ### END SOLUTION

# %% [markdown]
# ## What you take along
#
# - Equal epochs or equal steps, one rate or a tuned one: each gives another answer about large batches.
# - Beyond the critical batch more images save no steps. It grows in the course of a training.
# - Independent trainings share nothing but the machine. All others wait for the slowest.
#
# Next: `10_faster_and_watched`.
