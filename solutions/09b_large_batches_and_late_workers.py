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
# **Time: 80 minutes, including 3 minutes of computing on 2 cores.**
#
# **Paths:** *everything*; *an afternoon* and *the practical* leave it out.
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
# Larger batches are another way to exchange less often. Do they lead to worse networks? A popular experiment trains with several batch
# sizes, for 10 epochs each and at the same learning rate. The smallest batch takes by far the longest, and is the most accurate.
#
# **Predict** which batch is the most accurate here after 10 epochs at rate 0.05: "8", "32", "128" or "512".

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
# So do large batches do harm? First count what else differs. Write a function for the number of **updates** of a training. In each
# epoch, the images that do not fill a whole batch are left out.


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
# With equal epochs and one rate, batch 512 made 20 updates and batch 8 made 1600, all with the same rate. There are two ways to make the
# comparison fairer. One is the linear rule: the rate grows with the batch. The other gives all batches the same number of *steps*, and
# each batch the rate that is best on the validation images. The test images are used for the result alone.

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
# One point lies at or below the accuracy of guessing (0.1): batch 512 with the linear rule. Its rate of 3.2 is too high for this network,
# and the training **diverges**. The loss ends far above 2.3 = ln 10, the loss of a network that finds all ten digits equally likely. The
# steps were so long that nearly all hidden units are at -1 or 1, where their gradients are close to 0, and the network takes nearly every
# image for the same digit. So the linear rule has a limit, which you look for in section 2.
#
# The same batches and the same images gave three different answers. With equal steps and tuned rates, what is left of the disadvantage
# of the large batch?
#
# - **a**: all of it: batch 512 stays far behind
# - **b**: nothing that these intervals show, but its training read 64 times as many images as that of batch 8
# - **c**: nothing, because the large batch was given a better rate than the small one
# - **d**: nobody can tell, because the test images were different ones

# %% labs={"id": "09.12"}
### BEGIN SOLUTION
what_is_left = "b"
### END SOLUTION
check("09.12", what_is_left)

# %% [markdown]
# The dispute in four papers:
#
# | source | found |
# |---|---|
# | N. Keskar and others, [1609.04836](https://arxiv.org/abs/1609.04836) (2016) | large batches end in sharp minima and generalise worse |
# | E. Hoffer and others, [1705.08741](https://arxiv.org/abs/1705.08741) (2017) | with as many updates as the small batch and adapted rates, the gap disappears |
# | P. Goyal and others, [1706.02677](https://arxiv.org/abs/1706.02677) (2017) | ImageNet up to batch 8192 without loss, by the linear rule with warm-up; about 90 % efficiency from 8 to 256 GPUs |
# | C. Shallue and others, [1811.03600](https://arxiv.org/abs/1811.03600) (2019) | 168,160 trained models: no evidence that larger batches harm by themselves; disagreements come from tuning and from the budget (epochs or steps) |
#
# So ask two questions about every comparison of batches. Did they get equal epochs or equal steps? For which batch was the rate chosen?
#
# ## 2. The critical batch
#
# More workers help if a larger batch needs *fewer steps*. From which batch on does it save no more? Here each batch trains at several
# rates until it recognises 95 % of the validation images, and its best rate counts. **Predict:** batch 128 needs how many times as many
# steps as batch 512? (It would be 4 if each doubling of the batch halved the steps.)

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
# The table shows three regimes. For small batches, twice the batch halves the steps, so the number of images stays about the same. In the
# middle each doubling saves less. For large batches the number of steps no longer falls, and all further images are wasted. The best
# rate shows the same: it grows with the batch only at first. There the linear rule ends.
#
# A curve with these three regimes was proposed by S. McCandlish and others ([1812.06162](https://arxiv.org/abs/1812.06162)):
#
# $$ S(B) = S_\text{min} \left(1 + \frac{B_\text{crit}}{B}\right) $$
#
# Fit this curve. Over which quantity is it a straight line? `np.polyfit(x, y, 1)` fits a straight line and returns its slope and its
# value at 0. The scatter of the steps is proportional to the steps, so give the fit the weights `w=1/steps`: then small and large
# numbers of steps count alike. (In NumPy, `steps` must be an array for this.)


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
# With so few seeds and batches, the fit shows roughly where the curve bends, and no more. At B = B_crit, how many times S_min are the
# steps? How many times as many images are read as with a very small batch?

# %% labs={"id": "09.15"}
### BEGIN SOLUTION
steps_at_critical, images_at_critical = 2, 2
### END SOLUTION
check("09.15", steps_at_critical, images_at_critical)

# %% [markdown]
# K workers with b images each have a batch of b K images. Well below the critical batch, twice the workers need nearly half the steps. Far
# beyond it twice the workers save nothing, however fast the network between them is.
#
# ## 3. The critical batch from a single training (optional)
#
# Few people can afford so many trainings of a large network to find one number. McCandlish and others estimate it from a single training.
# The gradient of a batch of B images is the true gradient $G$ plus noise. The mean square of the noise is inversely proportional to B:
#
# $$ E\,|g_B|^2 = |G|^2 + \frac{\operatorname{tr} \Sigma}{B}, \qquad B_\text{simple} = \frac{\operatorname{tr} \Sigma}{|G|^2} . $$
#
# At a batch of $B_\text{simple}$ images, the **noise scale**, noise and signal are equally strong. Data parallelism computes gradients of
# two batch sizes anyway: each worker's own gradient, of b images, and their mean, of b K images. The first formula holds for both:
# these are two equations for the two unknowns $|G|^2$ and $\operatorname{tr} \Sigma$.
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
# In a single step both squares scatter too much. So first take the mean of each square over 50 steps, then divide. Here eight workers have
# 16 images each:

# %%
window, length = 50, (200 if quick else 400)
watched = [trials.squares(workers=8, batch=16, rate=0.4, steps=length, seed=seed) for seed in seeds]


def windows(values):
    return np.nanmean(values.reshape(-1, window), axis=1)


if answered("09.17"):
    scales = np.array([noise_scale(windows(w["local"]), windows(w["mean"]), 16, 8) for w in watched]).T
    losses = np.mean([windows(w["loss"]) for w in watched], axis=0)
    middles = window * (np.arange(length // window) + 0.5)
    plots.show(pictures.noise(middles, losses, scales, fitted and fitted[1]))
    first, last = (intervals.mean([s for s in scales[place] if s > 0]) for place in (0, -1))
    change = last.value / first.value
    print(f"B_simple: {first.value:.0f} images at first, {last.value:.0f} at last")
    outcome("09.16", "grows" if change > 1.5 else "falls" if change < 1 / 1.5 else "stays", how="simulated")

# %% [markdown]
# At first the gradients of all images point in similar directions, and a small batch is enough. Later the gradient is small while the
# noise is not, so a larger batch pays. Do not expect the B_crit of your fit. The fit is about the whole way to 95 %, with the best rate
# for each batch. A noise scale belongs to one moment and one rate, and it still grows after 95 % are reached. Compare the orders of
# magnitude and the direction.
#
# Suppose that a training has a noise scale of 70 images at the start and of 400 later. What follows?
#
# - **a**: batches above 70 are wasted in the whole training
# - **b**: batch 400 is the best one from the start
# - **c**: the estimate is wrong, because it should be one number
# - **d**: the batch may be small at first and grow during the training

# %% labs={"id": "09.18"}
### BEGIN SOLUTION
what_follows = "d"
### END SOLUTION
check("09.18", what_follows)

# %% [markdown]
# Be careful: the formula assumes plain SGD and a well-conditioned problem. W. Merrill and others
# ([2505.23971](https://arxiv.org/abs/2505.23971)) measured the critical batch of language models directly: from one training they
# branched off others with different batches. The critical batch is near 0 at the start, grows fast and then levels off, and the noise
# scale is not a reliable estimate of it. With a batch that grew in this way, a model with a billion weights reached the same loss in
# 43 % fewer steps.
#
# ## 4. Trainings that need no exchange
#
# You have two cores and must find a learning rate. Four trainings have four different rates. They run either one after the other, each on
# both cores, or two at a time, each on one core. **Predict:** the first way takes how many times as long as the second?

# %% labs={"id": "09.19"}
### BEGIN SOLUTION
one_by_one_over_two = 1.3
### END SOLUTION
predict("09.19", one_by_one_over_two)

# %% [markdown]
# `start(rate)` starts a training as a job (labs.jobs) and returns at once. `job.wait(show=False)` returns when that training has ended.
# Write the search: at most `at_a_time` trainings run at once, and as soon as one has ended, the next rate starts. All take about
# equally long, so those that start first end first. Do not wait for a whole group. When all have ended, return the jobs in the order of
# the rates.


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
# How much can one search of each kind show? Their ratio has no interval, and it includes whatever else the machine did during one of
# them. Look at the bars: if the four trainings within one search differ as much as the two searches do, the ratio says nothing. For a
# better answer, repeat both searches in an order drawn at random.
#
# One training of a small network cannot use two cores well. Its operations are too short to be divided, and it starts, reads and traces
# on one core. Two trainings side by side exchange nothing: there is no all-reduce and no barrier. If you need several trainings, run
# them at the same time before you divide a single one among workers.

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
# Most of the four rates could have been stopped after one epoch. **Successive halving** does that: all trainings begin, and at each
# *rung* (a number of epochs at which they are compared) only the best third continues. Suppose 27 random rates and rungs after 1, 3, 9
# and 27 epochs. How many epochs do all trainings have together? (A training that continues keeps the epochs that it has.)

# %% labs={"id": "09.21"}
### BEGIN SOLUTION
epochs_in_all = 27 * 1 + 9 * 2 + 3 * 6 + 1 * 18
### END SOLUTION
check("09.21", epochs_in_all)

# %% [markdown]
# Compare it with two searches that stop no training: one with all the rates, and one with as many rates as the same epochs allow.

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
    for name, (trained_rates, of_rungs) in budgets.items():
        searched[name].append(trials.search(drawn[:trained_rates], of_rungs, seed=seed))
plots.show(pictures.stopping(searched))

# %% [markdown]
# The two cheap searches spend about the same number of epochs. Is it better to stop bad trainings early than to train three rates to the
# end? Each seed gives a pair, since the three rates are the first three of the longer list and see the same batches. `gains` holds the
# difference in accuracy for each seed. What do the differences show: `"better"`, `"worse"` or `"can't tell"`?

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
# With many workers each rung is a barrier: all wait for the slowest training of the rung. **ASHA** (L. Li and others,
# [1810.05934](https://arxiv.org/abs/1810.05934)) removes this barrier. Whenever a worker is free, it continues a training that is among the
# best third of its rung *so far*. If there is none, it starts a new one.
#
# ## 5. One slow worker
#
# One of K workers is late, because its disk is slow or another program uses its core. Here four processes train a small network, and at
# every step one of them sleeps for 20 ms before it sends its gradient to a server. The server either waits for all four (a **barrier**),
# or it continues as soon as three gradients have come and ignores the late one. With K workers for K - 1 gradients, the extra one is
# called a **backup worker** (J. Chen and others, [1604.00981](https://arxiv.org/abs/1604.00981)).
#
# **Predict:** a step with the barrier takes how many times as long as a step without it?

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
# Without the late worker a step uses a quarter fewer images and takes much less time. But it is always the same quarter that is missing.
# Now the shards are sorted by label, so that the late worker alone has the last digits. **Predict** the accuracy without the late worker,
# compared with the barrier after as many steps on the same shards: is it "equal", "higher" or "lower"?

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
# A worker that is late now and then may be left out now and then. A worker that is always late must be repaired, or others must take over
# its shard. Otherwise the network never learns what that shard alone contains.
#
# With many ranks, rare delays are enough to slow down all. Suppose that each rank pauses for 50 ms in one step of 100, at random. In
# which share of the steps do 64 ranks wait at the barrier?

# %% labs={"id": "09.24"}
### BEGIN SOLUTION
share_of_steps = 1 - 0.99**64
### END SOLUTION
check("09.24", share_of_steps)

# %% [markdown]
# How does a late rank show in a run record? Here a training of notebook 07 runs on 2 ranks, once as it is and once with a pause of 50 ms
# on rank 1 in each step. The two trainings take turns.

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
# The last line says by how much the median of the recorded steps grew. The pause is 50 ms. What follows from these step times alone?
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
# The timeline of notebook 07 shows which rank is late: the one whose gradients come last. Step times show only *that* all wait. They also
# show whether this happens at every step (the whole distribution moves) or now and then (a long tail).
#
# ## W1
#
# A colleague trains a network on 2 workers and wants to use 64. Write your advice in 8 to 12 sentences, based on your experiments here and
# in notebook 09. What would the exchange and the larger batch do? What would you measure first? What else could 64 workers do?

# %% [markdown] labs={"id": "W1", "kind": "answer"}
# ### W1: your answer
# ### BEGIN SOLUTION
# More workers divide the computing, which grows with the images, but not the start of operations, and they add an exchange. With the same
# 32 images my smallest network was not faster on 2 ranks than on 1 in notebook 09, and much slower on 4, which share 2 cores. The largest one
# was faster on 2 (first figure, with intervals), and the parts of its step limit the computed speedup on 32 ranks. So I would first measure
# the parts of your step on 1 and 2 workers, with the batch that you want to use. If the exchange costs too much, take the mean of the weights
# after every k-th step only. With shuffled shards k = 128 cost no accuracy that the seeds showed, but with shards sorted by label the accuracy
# fell to about 0.6, so it depends on how alike the shards are. At the scale of ImageNet it did cost accuracy (2110.08133). 64 workers make
# the batch 32 times as large: this saves steps up to about the B_crit of my fit, and nearly nothing far beyond it. (The noise scale was
# larger and grew as the loss fell. It belongs to one moment and one rate, B_crit to the whole way to 95 %.) A large batch by itself was not
# worse: with equal steps and tuned rates no difference was left. With equal epochs and one rate, batch 512 had made 80 times fewer updates
# than batch 8. With workers to spare I would rather train several rates at the same time, without any exchange, and stop the bad ones early.
# I would also look for slow workers: if each of 64 ranks pauses in one step of 100, some rank pauses in 47 % of the steps. A rank that is
# always late must be repaired, because without it the network never learns what only its shard contains.
# ### END SOLUTION

# %% [markdown]
# ## What you take along
#
# - Whether large batches do harm depends on the comparison: equal epochs or equal steps, the same rate or a tuned one.
# - Far beyond the critical batch more images save no steps. The critical batch grows during a training.
# - Independent trainings exchange nothing. Workers of one training wait for the slowest.
#
# Next: `10_faster_and_watched`.
