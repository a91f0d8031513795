# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Concurrency: many workers, one network
#
# **Time: 60 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `02b_rings`), *everything*; *an afternoon* leaves this notebook out.
#
# Several workers compute gradients at the same time. How do they train one network together? And should they wait for
# one another? You need the answers for the first half of task **T2**, at the end of the next notebook. The second half
# of T2 is about adding up many large gradients.
#
# This notebook computes all its gradients from the digits that come with scikit-learn. Only the *seconds* are
# simulated, so you can have 10,000 workers.

# %%
import numpy as np

from labs.checks import answered, check, outcome, predict
from labs.show import tables, widgets
from lessons.averages import pictures, sgd, stragglers

# %% [markdown]
# ## A gradient from few samples
#
# The network has one layer: 64 grey values and a constant 1 go in, and one score for each of the ten digits comes out.
# Its weights form a 65 x 10 matrix. The network is small enough to inspect, and yet it learns.
#
# Gradient descent follows the gradient of the loss over *all* samples. **Stochastic gradient descent** (SGD) computes
# the gradient from only a few samples, the **mini-batch**, and immediately uses it to take a step. Here are three
# entries of each gradient, for the digit 3:

# %%
images, labels = sgd.digits()
start = np.zeros((65, 10))  # the weights before the first step
print(f"all {len(labels)} digits:", sgd.gradient(start)[18:21, 3].round(3))
print("32 of them:     ", sgd.gradient(start, next(sgd.batches(32)))[18:21, 3].round(3))

# %% [markdown]
# The gradients are similar, but not equal: the gradient of a mini-batch has an error. It depends on which samples were
# drawn, so look at its mean over many batches.
#
# **Predict:** if you make the batch 4 times as large, by what factor does the error of its gradient change? Write 1 for
# no change, or 0.25 for a quarter.

# %% labs={"id": "averages.1"}
### BEGIN SOLUTION
error_factor = 0.5
### END SOLUTION
predict("averages.1", error_factor)

# %% [markdown]
# To find out, write a function for the error: the length of the difference between the gradient for these `rows` and
# the gradient for all the digits. `np.linalg.norm` gives the length of a vector or a matrix.


# %% labs={"id": "averages.2"}
def distance(weights, rows):
    """Length of the difference between the gradient of `rows` and that of all digits, both at `weights`."""
    ### BEGIN SOLUTION
    return np.linalg.norm(sgd.gradient(weights, rows) - sgd.gradient(weights))
    ### END SOLUTION


check("averages.2", distance)

# %%
if answered("averages.2"):
    errors = {}
    for size in (4, 16, 64, 256):
        source = sgd.batches(size)
        errors[size] = np.mean([distance(start, next(source)) for _ in range(200)])
        print(f"batch {size:3}: mean error {errors[size]:.3f}")
    outcome("averages.1", errors[16] / errors[4])

# %% [markdown]
# With four times as many samples, the error is half as large: the error of the mean of $n$ independent samples falls as
# $1/\sqrt{n}$. (From 64 to 256 it falls a little more, because 256 is already a seventh of all the digits, and with all
# the digits there is no error.)
#
# So is a large batch better? In the next picture, the left plot shows the error as a share of the full gradient's
# length. The right plot shows what counts in the end: the loss, plotted against the number of samples read. Press Tab
# to move between the controls, and use the arrow keys to change one.

# %%
widgets.explore(pictures.minibatches, batch=[4, 8, 16, 32, 64, 128, 256, 512], rate=[0.1, 0.5, 1.0, 2.0, 4.0])

# %% [markdown]
# You make the batch 16 times as large and keep the learning rate. What do you get?
#
# - **a**: a gradient with 1/16 of the error
# - **b**: a gradient with 1/4 of the error, and 1/16 as many updates in an epoch
# - **c**: the exact gradient, so that the loss falls at every step
# - **d**: the same loss after each epoch, because the same samples are read

# %% labs={"id": "averages.3"}
### BEGIN SOLUTION
larger_batch = "b"
### END SOLUTION
check("averages.3", larger_batch)

# %% [markdown]
# Once a batch is large enough to keep the device busy, a larger one is a bad bargain for *one* worker: 16 times as much
# work makes the error of the gradient only 4 times smaller. But if you have many workers, they can share this work and
# do it at the same time.
#
# ## Many workers, one gradient
#
# In **data parallelism**, each of K workers has a copy of the weights and its own mini-batch. Here are 4 workers with 8
# digits each, before the first step:

# %%
step = sgd.one_step(workers=4, batch=8)
for worker, rows in enumerate(step["rows"]):
    print(f"worker {worker} reads the digits {labels[rows]}")

# %% [markdown]
# `step["gradients"]` is a list of their four gradients, each of shape (65, 10). The workers must agree on **one**
# gradient, which is the mean. Write a function that computes it.


# %% labs={"id": "averages.4"}
def averaged(gradients):
    """The mean of a list of gradients, an array of the shape of each."""
    ### BEGIN SOLUTION
    return np.mean(gradients, axis=0)
    ### END SOLUTION


check("averages.4", averaged)

# %% [markdown]
# What does this average represent? Compare it with the gradient that a single worker gets from all 32 digits at once.

# %%
if answered("averages.4"):
    mean, whole = averaged(step["gradients"]), sgd.gradient(start, np.concatenate(step["rows"]))
    print(f"largest entry of the gradient of all 32 digits: {np.abs(whole).max():.4f}")
    print(f"largest difference to the mean of four:         {np.abs(mean - whole).max():.1e}")
    assert np.abs(mean - whole).max() < 1e-12  # equal, but for the order in which numbers were added

# %% [markdown]
# They are equal. For K batches $B_j$ of $n$ samples each, where no sample belongs to two batches:
#
# $$ \frac{1}{K} \sum_{j=1}^{K} \frac{1}{n} \sum_{i \in B_j} \nabla L_i \;=\; \frac{1}{nK} \sum_{i} \nabla L_i $$
#
# Four workers with 8 samples each take the same step as *one* worker with 32. The picture shows the batches, each
# worker's gradient for the weights of one digit, the mean of these gradients, and the gradient for all the batches at
# once.

# %%
widgets.explore(pictures.averaging, workers=(2, 6), batch=(1, 8), digit=(0, 9))

# %% [markdown]
# Does this also hold after many steps? Now each worker updates its own copy with the same mean. `alone` is a single
# worker that uses the whole batch.

# %%
copies, alone, source = [start] * 4, start, sgd.batches(8)
if answered("averages.4"):
    for _ in range(50):
        parts = [next(source) for _ in range(4)]
        mean = averaged([sgd.gradient(copy, rows) for copy, rows in zip(copies, parts)])
        copies = [copy - 0.5 * mean for copy in copies]
        alone = alone - 0.5 * sgd.gradient(alone, np.concatenate(parts))
    print("4 copies equal after 50 steps:", all(np.array_equal(copy, copies[0]) for copy in copies))
    print(f"difference to one worker:      {np.abs(copies[0] - alone).max():.1e}")
    print(f"loss: {sgd.loss(start):.3f} at the start, {sgd.loss(copies[0]):.3f} now")

# %% [markdown]
# The copies are equal at the start and take equal steps, so they stay equal. Weights never need to be sent.
#
# Now for a trap. There are 16 digits left for 2 workers: worker 0 gets 4 of them, and worker 1 gets 12. **Predict:** is
# the mean of their two gradients still the gradient for all 16? Write `"yes"` or `"no"`.

# %% labs={"id": "averages.5"}
### BEGIN SOLUTION
still_equal = "no"
### END SOLUTION
predict("averages.5", still_equal)

# %%
sixteen = next(sgd.batches(16))
parts = [sixteen[:4], sixteen[4:]]
gradients, whole = [sgd.gradient(start, part) for part in parts], sgd.gradient(start, sixteen)
if answered("averages.4"):
    print(f"largest entry of the gradient of all 16: {np.abs(whole).max():.3f}")
    difference = np.abs(averaged(gradients) - whole).max()
    print(f"largest difference to the mean of two:   {difference:.3f}")
    outcome("averages.5", "yes" if difference < 1e-9 else "no", how="computed")

# %% [markdown]
# In this mean, how much weight does a sample on worker 0 have, and how much does a sample on worker 1 have? Write a
# function for the mean that gives every sample the same weight.


# %% labs={"id": "averages.6"}
def weighted(gradients, sizes):
    """The gradient of all samples. gradients: one from each worker; sizes: how many samples each has read."""
    ### BEGIN SOLUTION
    return sum(size * gradient for size, gradient in zip(sizes, gradients)) / sum(sizes)
    ### END SOLUTION


if check("averages.6", weighted):
    print(f"largest difference to the weighted mean: {np.abs(weighted(gradients, [4, 12]) - whole).max():.1e}")

# %% [markdown]
# That is why input pipelines give all workers batches of equal size. They drop the last, partial batch, or pad it (fill
# it up with extra samples). Then the plain mean is correct, and no worker needs to know the sizes.
#
# MirroredStrategy and Horovod, the tools in the next notebooks, train in this way. What do the workers send each other,
# and when?
#
# - **a**: each worker's parameters, after every epoch
# - **b**: all gradients, to rank 0, at every step; rank 0 updates the parameters and sends them back
# - **c**: gradients, at every step; each worker ends up with their mean and makes the update itself
# - **d**: the samples, at every step, so that each worker sees the whole batch

# %% labs={"id": "averages.7"}
### BEGIN SOLUTION
what_travels = "c"
### END SOLUTION
check("averages.7", what_travels)

# %% [markdown]
# ## Synchronous: the slowest sets the step
#
# Computing the mean requires *all* the gradients. So at every step, every worker waits until the last one is done. This
# is called a **barrier**. Workers are never equally fast: reading files, other programs, the network and the
# temperature can all delay them. Here are the seconds that 4 workers (columns) took in 5 steps (rows):

# %%
times = stragglers.draws(workers=4, steps=5, spread=0.3)
print(times.round(2))

# %% [markdown]
# With `spread=0.3`, a time typically differs from the mean of 1 s by 30 %. How long does a step with a barrier take on
# average?


# %% labs={"id": "averages.8"}
def step_seconds(times):
    """Mean seconds of a step with a barrier. times: shape (steps, workers)."""
    ### BEGIN SOLUTION
    return times.max(axis=1).mean()
    ### END SOLUTION


if check("averages.8", step_seconds):
    print(f"mean time of a worker {times.mean():.2f} s, mean time of a step {step_seconds(times):.2f} s")

# %% [markdown]
# Now take 64 workers whose times vary by only 10 %. On average, no worker is slower than the others.
#
# **Predict:** for what share of the time are they computing rather than waiting? Give a number from 0 to 1.

# %% labs={"id": "averages.9"}
### BEGIN SOLUTION
computing_share = 0.8
### END SOLUTION
predict("averages.9", computing_share)

# %%
if answered("averages.8"):
    for workers in (1, 4, 64, 1024):
        times = stragglers.draws(workers, steps=1000, spread=0.1)
        print(
            f"{workers:4} workers: a step takes {step_seconds(times):.2f} s, computing "
            f"{times.mean() / step_seconds(times):.0%} of the time"
        )
        if workers == 64:
            outcome("averages.9", times.mean() / step_seconds(times), how="simulated")

# %% [markdown]
# One late worker holds up all the others. The more workers there are, the more likely it is that *somebody* is late.
# Change the number of workers and the spread. In the left plot, the orange lines are barriers. Which worker is the last
# to reach each of them?

# %%
widgets.explore(pictures.barrier, workers=(2, 256, 2), spread=(0.0, 1.0, 0.05))

# %% [markdown]
# For one distribution of times, there is a formula for this cost. Suppose that the times are exponentially distributed:
# mostly short, but sometimes very long, with a spread of 1. On average, the first of K workers is done after 1/K of the
# mean time. Then K - 1 workers are left, and so on:
#
# $$ \text{slowest of } K \;=\; \frac{1}{K} + \frac{1}{K-1} + \dots + \frac{1}{2} + 1 \quad \text{mean times} $$

# %%
for workers in (1, 10, 100, 1000):
    drawn = stragglers.barrier(stragglers.draws(workers, steps=2000, kind="exponential"))
    print(f"{workers:4} workers: {drawn:.2f} s drawn, {stragglers.expected_slowest(workers):.2f} s by the formula")

# %% [markdown]
# The cost grows without limit, though slowly: each tenfold increase in the number of workers adds about 2.3 mean times.
# Now draw the times for 10,000 workers in 1000 steps, ten million in total:

# %%
for kind, spread in (("gamma", 0.1), ("exponential", 1.0)):
    times = stragglers.draws(10_000, steps=1000, spread=spread, kind=kind)
    print(
        f"spread {spread:4.0%}: a step takes {stragglers.barrier(times):5.2f} s, computing "
        f"{stragglers.efficiency(times):.0%} of the time"
    )

# %% [markdown]
# "A barrier costs nothing," says a colleague. Each of the 64 workers takes 1 s on average. Why does a step take longer
# than 1 s?
#
# - **a**: it does not: a worker's fast and slow steps even out over an epoch
# - **b**: one worker is slower than the others; without that worker, a step would take 1 s
# - **c**: at each step a different worker is late, and all the others wait for it
# - **d**: the delays of all workers in a step add up

# %% labs={"id": "averages.10"}
### BEGIN SOLUTION
why_longer = "c"
### END SOLUTION
check("averages.10", why_longer)

# %% [markdown]
# ## Asynchronous: nobody waits
#
# Now leave out the barrier. A **parameter server** stores the weights. Each worker fetches the newest weights, computes
# a gradient, sends it to the server, and starts again; the server applies each gradient as it arrives. This is
# asynchronous SGD.
#
# This has a price: while one worker is computing, others change the weights. So when the gradient arrives, it belongs
# to *old* weights: it is **stale**. Its staleness is the number of updates that were made while it was being computed.
#
# **Predict:** if 8 workers are equally fast, how stale is a gradient on average?

# %% labs={"id": "averages.11"}
### BEGIN SOLUTION
mean_staleness = 7
### END SOLUTION
predict("averages.11", mean_staleness)

# %% [markdown]
# Here is a simulated training run with 8 workers. The list `history.work` contains all its gradients, each with the
# worker that computed it and the times at which this worker began and ended.

# %%
times = stragglers.draws(workers=8, steps=100, spread=0.1)
history = sgd.asynchronous(8, updates=400, times=times)
for one in history.work[200:203]:
    print(f"worker {one.worker}: from {one.begin:.2f} s to {one.end:.2f} s")

# %% [markdown]
# Every gradient becomes an update at its `end`. For the gradient `one`, how many updates were made after its `begin`
# and before its `end`? Write a function that counts them.


# %% labs={"id": "averages.12"}
def staleness(work, one):
    """How many of the gradients in `work` were applied while `one` was computed."""
    ### BEGIN SOLUTION
    return sum(one.begin < other.end < one.end for other in work)
    ### END SOLUTION


check("averages.12", staleness)

# %%
if answered("averages.12"):
    counts = [staleness(history.work, one) for one in history.work]
    print("the first ten:", *counts[:10])
    print(f"mean from the 50th on: {np.mean(counts[50:]):.2f}")
    outcome("averages.11", np.mean(counts[50:]), how="counted")
    assert counts == [one.staleness for one in history.work]  # the simulator counts updates, not times

# %% [markdown]
# The answer is seven. Whenever one gradient is applied, the other 7 workers are computing, and the gradients that they
# are working on become one update older. The mean is K - 1 for K workers, whatever their speeds. But this is a mean
# over all gradients: it hides how stale a slow worker's gradients are. See what happens when worker 7 takes 4 times as
# long:

# %%
slower = times * np.where(np.arange(8) == 7, 4, 1)
work = sgd.asynchronous(8, updates=800, times=slower).work[50:]
rows = []
for name, numbers in (("0 to 6", range(7)), ("7", [7]), ("all", range(8))):
    stale = [one.staleness for one in work if one.worker in numbers]
    rows.append({"worker": name, "gradients": len(stale), "stale": float(np.mean(stale))})
tables.show(rows, ("worker", "gradients", "stale"), {"stale": "mean staleness"})

# %% [markdown]
# The slow worker no longer holds anybody up. But its gradients are four times as stale as the average gradient.
#
# With only one worker, nobody else changes the weights. So asynchronous SGD must be identical to plain SGD, down to the
# last bit:

# %%
alone = sgd.asynchronous(1, updates=200, times=times, rate=0.5)
weights, source = start, sgd.batches(32)
for _ in range(200):
    weights = weights - 0.5 * sgd.gradient(weights, next(source))
print("equal weights after 200 updates:", np.array_equal(alone.weights, weights))
assert np.array_equal(alone.weights, weights)

# %% [markdown]
# ## Who is first?
#
# Asynchronous SGD makes more updates per second; synchronous SGD makes better ones. What counts is how long it takes
# until the loss is low enough. A `history` has two arrays of equal length, `seconds` and `losses`. Write a stopwatch
# for the race.


# %% labs={"id": "averages.13"}
def seconds_to(history, target):
    """The first time at which the loss is at or below `target`; np.inf if it never is."""
    ### BEGIN SOLUTION
    for now, loss in zip(history.seconds, history.losses):
        if loss <= target:
            return now
    return np.inf
    ### END SOLUTION


check("averages.13", seconds_to)

# %% [markdown]
# 8 workers race to a loss of 0.5, with the same learning rate for both kinds of SGD. **Predict** which kind gets there
# first in each of the three cases below: write `"s"` for synchronous or `"a"` for asynchronous. Give three letters,
# such as `"ssa"`.
#
# 1. equally fast workers, rate 0.5
# 2. equally fast workers, rate 4
# 3. the last worker takes 8 times as long, rate 4

# %% labs={"id": "averages.14"}
### BEGIN SOLUTION
first_in_three = "asa"
### END SOLUTION
predict("averages.14", first_in_three)

# %% [markdown]
# First, watch the race. Who waits, and how does the loss fall over *time*? The darker the bar, the staler its gradient.
# Make all workers equally fast (`slow` 1), then raise the learning rate. Then slow the last worker down again.

# %%
widgets.explore(pictures.races, workers=(2, 8), slow=(1.0, 8.0, 1.0), rate=[0.25, 0.5, 1.0, 2.0, 4.0])

# %% [markdown]
# Now measure with your stopwatch. Each time is the mean over three different orders of the samples. For each learning
# rate, the table shows the seconds for synchronous SGD, followed by those for asynchronous SGD.


# %%
def race(train, updates, slow, rate):
    """Mean seconds until the loss is 0.5: 8 workers, 1 s for a gradient, the last worker `slow` times as long."""
    times = np.array([[1.0] * 7 + [slow]])
    return np.mean([seconds_to(train(8, updates, times, rate=rate, seed=seed), 0.5) for seed in range(3)])


rates, slows, seconds = (0.5, 2.0, 4.0), (1, 2, 4, 8), {}
if answered("averages.13"):
    for rate in rates:
        for slow in slows:
            seconds["s", rate, slow] = race(sgd.synchronous, 100, slow, rate)
            seconds["a", rate, slow] = race(sgd.asynchronous, 500, slow, rate)

# %%
if seconds:
    rows = [
        {"slow": slow}
        | {rate: "{:.0f} : {:.0f}".format(*(seconds[kind, rate, slow] for kind in "sa")) for rate in rates}
        for slow in slows
    ]
    tables.show(
        rows,
        ("slow", *rates),
        {"slow": "last worker: times slower"} | {rate: f"rate {rate:g} (s : s)" for rate in rates},
    )
    cases = ((0.5, 1), (4.0, 1), (4.0, 8))
    outcome("averages.14", [min("sa", key=lambda kind: seconds[kind, *case]) for case in cases], how="simulated")

# %% [markdown]
# Look down one column. The synchronous times double with each row, because the slowest worker sets the pace. The
# asynchronous times hardly change. So at rates 2 and 4, asynchronous SGD leads from a certain row onwards; at rate 4,
# that row is further down. At rate 0.5, it leads from the first row.
#
# In the first row nobody is slow, and yet the winner depends on the learning rate. Why? How high did the loss rise
# along the way?

# %%
equal = np.ones((1, 8))
for rate in (0.25, 0.5, 2.0, 4.0):
    highest = [
        train(8, updates, equal, rate=rate).losses.max()
        for train, updates in ((sgd.synchronous, 60), (sgd.asynchronous, 480))
    ]
    print("rate {:4}: highest loss {:4.1f} synchronous, {:4.1f} asynchronous".format(rate, *highest))

# %% [markdown]
# The loss started at 2.3. In one second, synchronous SGD takes one step with the mean gradient, and the 8 asynchronous
# workers take 8 steps of that length. At a small learning rate, 8 steps go 8 times as far. At a large one, that is too
# far. All 8 workers see the same slope, and each goes down it without knowing about the others. Together they
# overshoot, and land on the other side of the valley.
#
# So a race at equal learning rates is not a fair comparison. Compare each kind at whichever of the three rates is best
# for it:

# %%
for slow in slows if seconds else ():
    (s, rate_s), (a, rate_a) = (min((seconds[kind, rate, slow], rate) for rate in rates) for kind in "sa")
    print(f"last worker {slow} x: synchronous {s:3.0f} s (rate {rate_s:g}), asynchronous {a:3.0f} s (rate {rate_a:g})")

# %% [markdown]
# With equally fast workers, this race is nearly a draw: synchronous SGD with rate 4 = 8 x 0.5 does what asynchronous
# SGD does with rate 0.5. (Notebook 04 says more about multiplying the rate by the number of workers.) With a slow
# worker, asynchronous SGD is ahead of synchronous SGD *if the latter has to wait for this worker*. There is a third
# way: nobody waits for the slow worker, and the other 7 continue without it (clusters have **backup workers** for
# this).

# %%
if answered("averages.13"):
    seven = np.ones((1, 7))
    for rate in rates:
        found = np.mean([seconds_to(sgd.synchronous(7, 100, seven, rate=rate, seed=seed), 0.5) for seed in range(3)])
        print(f"7 equally fast workers, synchronous, rate {rate:g}: {found:.0f} s")

# %% [markdown]
# Compare this with the lines above. No gradient is stale, and the time does not depend on how slow the eighth worker
# is.
#
# Which of these statements do the numbers support?
#
# - **a**: asynchronous SGD is always the first to reach a given loss, because nobody waits
# - **b**: gradients for old weights are wrong, so asynchronous SGD cannot train
# - **c**: a slow worker delays both kinds equally, because its gradients are needed
# - **d**: slow workers are a reason for asynchronous SGD; large rates and equal workers are reasons for synchronous SGD

# %% labs={"id": "averages.15"}
### BEGIN SOLUTION
race_says = "d"
### END SOLUTION
check("averages.15", race_says)

# %% [markdown]
# What happens in practice? In 2018, a survey found that synchronous SGD was common on up to about 32 to 50 nodes, and
# asynchronous SGD beyond that or on mixed hardware (T. Ben-Nun and T. Hoefler,
# [1802.09941](https://arxiv.org/abs/1802.09941)). On *equal* devices, synchronous SGD has been used at a much larger
# scale: 256 GPUs trained ResNet-50 in one hour (P. Goyal and others, 2017), and Llama 3 was trained on 16,384 GPUs
# ([2407.21783](https://arxiv.org/abs/2407.21783), 2024), both synchronously. The result of synchronous SGD does not
# depend on which worker was late. The rest of this course uses synchronous SGD.
#
# ## Summary
#
# - The mean of K gradients from batches of equal size is the gradient of one large batch. Equal copies stay equal.
# - With a barrier, the slowest of K workers determines how long each step takes. The waiting time grows with K, even if
#   all workers are equally fast on average.
# - Without a barrier, gradients are K - 1 updates old on average. Compare losses over *time*, and use the best learning
#   rate for each kind.
#
# How do workers compute the mean of many large gradients? Next: `02b_rings`.
