# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Many workers, one network: averages and rings
#
# **Time: 50 minutes, including 2 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `03_mirrored_strategy`), *everything*; *an afternoon* leaves this notebook out.
#
# Several workers compute gradients at the same time. How do they train one network together? You average gradients, let
# workers race, and write a ring that adds up gradients between real processes. You hand in task **T2**.
#
# The gradients are computed from real digits. Where it says so, the *seconds* are simulated.

# %% [markdown]
# ## Many workers, one gradient
#
# The network has one layer: 64 grey values and a constant 1 go in, and one score for each of the ten digits comes out.
# **Stochastic gradient descent** (SGD) computes the gradient from a few samples, the **mini-batch**, and immediately
# uses it to take a step.
#
# In **data parallelism**, each of K workers has a copy of the weights and its own mini-batch. Here are 4 workers with 8
# digits each, before the first step:

# %%
import numpy as np

from lessons.averages_and_rings import sgd

images, labels = sgd.digits()
start = np.zeros((65, 10))  # the weights before the first step
step = sgd.one_step(workers=4, batch=8)
for worker, rows in enumerate(step["rows"]):
    print(f"worker {worker} reads the digits {labels[rows]}")

# %% [markdown]
# `step["gradients"]` is a list of their four gradients, each of shape (65, 10). The workers must agree on **one**
# gradient, which is the mean. Write a function that computes it. The cell then compares the mean with the gradient that
# a single worker gets from all 32 digits at once.

# %% labs={"id": "averages.1"}
from labs.checks import check


def averaged(gradients):
    """The mean of a list of gradients, an array of the shape of each."""
    ### BEGIN SOLUTION
    return np.mean(gradients, axis=0)
    ### END SOLUTION


if check("averages.1", averaged):
    mean, whole = averaged(step["gradients"]), sgd.gradient(start, np.concatenate(step["rows"]))
    print(f"largest entry of the gradient of all 32 digits: {np.abs(whole).max():.4f}")
    print(f"largest difference from the mean of four:       {np.abs(mean - whole).max():.1e}")

# %% [markdown]
# They are equal, except for rounding. For K batches $B_j$ of $n$ samples each, where no sample belongs to two batches:
#
# $$ \frac{1}{K} \sum_{j=1}^{K} \frac{1}{n} \sum_{i \in B_j} \nabla L_i \;=\; \frac{1}{nK} \sum_{i} \nabla L_i $$
#
# Four workers with 8 samples each take the same step as *one* worker with 32. The picture shows this for the weights of
# one digit.

# %%
from labs.show import widgets
from lessons.averages_and_rings import pictures

widgets.explore(pictures.averaging, workers=(2, 6), batch=(1, 8), digit=(0, 9))

# %% [markdown]
# Does this also hold after many steps? Each worker now updates its own copy with the same mean. `alone` is a single
# worker that uses the whole batch.

# %%
from labs.checks import answered

copies, alone, source = [start] * 4, start, sgd.batches(8)
if answered("averages.1"):
    for _ in range(50):
        parts = [next(source) for _ in range(4)]
        mean = averaged([sgd.gradient(copy, rows) for copy, rows in zip(copies, parts)])
        copies = [copy - 0.5 * mean for copy in copies]
        alone = alone - 0.5 * sgd.gradient(alone, np.concatenate(parts))
    print("4 copies equal after 50 steps:", all(np.array_equal(copy, copies[0]) for copy in copies))
    print(f"difference from one worker:    {np.abs(copies[0] - alone).max():.1e}")
    print(f"loss: {sgd.loss(start):.3f} at the start, {sgd.loss(copies[0]):.3f} now")

# %% [markdown]
# The copies are equal at the start and take equal steps, so they stay equal. After this common start, no weights
# need to be sent.
#
# Now for a trap. Worker 0 gets 4 digits, and worker 1 gets 12. **Predict:** is the mean of their two gradients still
# the gradient for all 16? Write `"yes"` or `"no"`.

# %% labs={"id": "averages.2"}
from labs.checks import predict

### BEGIN SOLUTION
still_equal = "no"
### END SOLUTION
predict("averages.2", still_equal)

# %%
from labs.checks import outcome

sixteen = next(sgd.batches(16))
gradients = [sgd.gradient(start, part) for part in (sixteen[:4], sixteen[4:])]
whole = sgd.gradient(start, sixteen)
difference = np.abs((gradients[0] + gradients[1]) / 2 - whole).max()
print(f"largest entry of the gradient of all 16: {np.abs(whole).max():.3f}")
print(f"largest difference from the mean of two: {difference:.3f}")
outcome("averages.2", "yes" if difference < 1e-9 else "no", how="computed")

# %% [markdown]
# In this mean, which worker's samples have more weight? Write a function for the mean that gives every sample the same
# weight.


# %% labs={"id": "averages.3"}
def weighted(gradients, sizes):
    """The gradient of all samples. gradients: one from each worker; sizes: how many samples each has read."""
    ### BEGIN SOLUTION
    return sum(size * gradient for size, gradient in zip(sizes, gradients)) / sum(sizes)
    ### END SOLUTION


if check("averages.3", weighted):
    print(f"largest difference from the weighted mean: {np.abs(weighted(gradients, [4, 12]) - whole).max():.1e}")

# %% [markdown]
# That is why input pipelines give all workers batches of equal size: they drop the last, partial batch, or fill it up
# with extra samples.
#
# MirroredStrategy and Horovod train in this way: gradients travel, at every step. Suppose that each worker takes SGD
# steps with its *own* gradients instead, and their *weights* are averaged. Is the result the same?
#
# - **a**: no, never
# - **b**: yes, after one step and after ten
# - **c**: yes after one step, no after ten
# - **d**: only if all the gradients are equal

# %% labs={"id": "averages.4"}
### BEGIN SOLUTION
same_weights = "c"
### END SOLUTION
check("averages.4", same_weights)

# %% [markdown]
# ## Synchronous: the slowest sets the step
#
# Computing the mean requires *all* the gradients. So at every step, every worker waits until the last one is done. This
# is called a **barrier**. Here are the simulated seconds that 4 workers (columns) take in 5 steps (rows):

# %%
from lessons.averages_and_rings import stragglers

times = stragglers.draws(workers=4, steps=5, spread=0.3)
print(times.round(2))

# %% [markdown]
# With `spread=0.3`, a time typically differs from the mean of 1 s by 30 %. How long does a step with a barrier take on
# average?


# %% labs={"id": "averages.5"}
def step_seconds(times):
    """Mean seconds of a step with a barrier. times: shape (steps, workers)."""
    ### BEGIN SOLUTION
    return times.max(axis=1).mean()
    ### END SOLUTION


if check("averages.5", step_seconds):
    print(f"mean time of a worker {times.mean():.2f} s, mean time of a step {step_seconds(times):.2f} s")

# %% [markdown]
# Now take 64 workers whose times vary by only 10 %. **Predict:** for what share of the time are they computing rather
# than waiting? Give a number from 0 to 1.

# %% labs={"id": "averages.6"}
### BEGIN SOLUTION
computing_share = 0.8
### END SOLUTION
predict("averages.6", computing_share)

# %%
if answered("averages.5"):
    for workers in (1, 4, 64, 1024):
        times = stragglers.draws(workers, steps=1000, spread=0.1)
        computing = times.mean() / step_seconds(times)
        print(f"{workers:4} workers: a step takes {step_seconds(times):.2f} s, computing {computing:.0%} of the time")
        if workers == 64:
            outcome("averages.6", computing, how="simulated")

# %% [markdown]
# The more workers there are, the more likely it is that *somebody* is late. Change the number of workers and the
# spread. The orange lines are barriers. Which worker is the last to reach each of them?

# %%
widgets.explore(pictures.barrier, workers=(2, 256, 2), spread=(0.0, 1.0, 0.05))

# %% [markdown]
# Each of the 64 workers takes 1 s on average. Why does a step take longer than 1 s?
#
# - **a**: it does not: a worker's fast and slow steps even out over an epoch
# - **b**: one worker is slower than the others; without that worker, a step would take 1 s
# - **c**: at each step a different worker is late, and all the others wait for it
# - **d**: the delays of all workers in a step add up

# %% labs={"id": "averages.7"}
### BEGIN SOLUTION
why_longer = "c"
### END SOLUTION
check("averages.7", why_longer)

# %% [markdown]
# ## Asynchronous: nobody waits
#
# Now leave out the barrier. A **parameter server** stores the weights. Each worker fetches the newest weights, computes
# a gradient, sends it to the server, and starts again; the server applies each gradient as it arrives. This is
# **asynchronous** SGD.
#
# It has a price: while one worker is computing, others change the weights. So its gradient belongs to *old* weights: it
# is **stale**. Its staleness is the number of updates that were made while it was being computed.
#
# **Predict:** if 8 workers are equally fast, how stale is a gradient on average?

# %% labs={"id": "averages.8"}
### BEGIN SOLUTION
mean_staleness = 7
### END SOLUTION
predict("averages.8", mean_staleness)

# %% [markdown]
# Here is a simulated training run with 8 workers. The list `history.work` contains all its gradients.

# %%
times = stragglers.draws(workers=8, steps=100, spread=0.1)
history = sgd.asynchronous(8, updates=400, times=times)
for one in history.work[200:203]:
    print(f"worker {one.worker}: from {one.begin:.2f} s to {one.end:.2f} s")

# %% [markdown]
# Every gradient becomes an update at its `end`. For the gradient `one`, how many updates were made after its `begin`
# and before its `end`? Write a function that counts them.


# %% labs={"id": "averages.9"}
def staleness(work, one):
    """How many of the gradients in `work` were applied while `one` was computed."""
    ### BEGIN SOLUTION
    return sum(one.begin < other.end < one.end for other in work)
    ### END SOLUTION


if check("averages.9", staleness):
    counts = [staleness(history.work, one) for one in history.work]
    print("the first ten:", *counts[:10])
    print(f"mean from the 50th on: {np.mean(counts[50:]):.2f}")
    outcome("averages.8", np.mean(counts[50:]), how="counted")

# %% [markdown]
# At any time, 7 other workers are computing gradients; each update makes all of these one update older. So the mean is
# K - 1 for K workers, whatever their speeds. But it hides how stale a slow worker's gradients are. Let worker 7 take 4
# times as long:

# %%
from labs.show import tables

slower = times * np.where(np.arange(8) == 7, 4, 1)
work = sgd.asynchronous(8, updates=800, times=slower).work[50:]
rows = []
for name, numbers in (("0 to 6", range(7)), ("7", [7]), ("all", range(8))):
    stale = [one.staleness for one in work if one.worker in numbers]
    rows.append({"worker": name, "gradients": len(stale), "mean staleness": float(np.mean(stale))})
tables.show(rows)

# %% [markdown]
# The slow worker no longer holds anybody up. But its gradients are four times as stale as the average gradient.
#
# ## Who is first?
#
# Asynchronous SGD makes more updates per second; synchronous SGD makes better ones. Now 8 workers race to a loss of
# 0.5. **Predict** which kind gets there first in each of these three cases: write `"s"` for synchronous or `"a"` for
# asynchronous. Give three letters, such as `"ssa"`.
#
# 1. equally fast workers, rate 0.5
# 2. equally fast workers, rate 4
# 3. the last worker takes 8 times as long, rate 4

# %% labs={"id": "averages.10"}
### BEGIN SOLUTION
first_in_three = "asa"
### END SOLUTION
predict("averages.10", first_in_three)

# %% [markdown]
# First, watch the race. The darker the bar, the staler its gradient. Make all workers equally fast (`slow` 1), then
# raise the learning rate. Then slow the last worker down again.

# %%
widgets.explore(pictures.races, workers=(2, 8), slow=(1.0, 8.0, 1.0), rate=[0.25, 0.5, 1.0, 2.0, 4.0])

# %% [markdown]
# Now let them race, each with three different orders of the samples. The seconds are simulated.


# %%
def seconds_to(history, target):
    """The first time at which the loss is at or below `target`; infinite if it never is."""
    reached = [now for now, loss in zip(history.seconds, history.losses) if loss <= target]
    return reached[0] if reached else np.inf


def race(train, updates, slow, rate):
    """Mean seconds until the loss is 0.5: 8 workers, 1 s for a gradient, the last worker `slow` times as long."""
    times = np.array([[1.0] * 7 + [slow]])
    return np.mean([seconds_to(train(8, updates, times, rate=rate, seed=seed, until=0.5), 0.5) for seed in range(3)])


rates, slows, seconds = (0.5, 2.0, 4.0), (1, 2, 4, 8), {}
for rate in rates:
    for slow in slows:
        seconds["s", rate, slow] = race(sgd.synchronous, 100, slow, rate)
        seconds["a", rate, slow] = race(sgd.asynchronous, 500, slow, rate)

# %%
rows = [
    {"slow": slow} | {rate: "{:.0f} : {:.0f}".format(*(seconds[kind, rate, slow] for kind in "sa")) for rate in rates}
    for slow in slows
]
headings = {"slow": "last worker: times slower"} | {rate: f"rate {rate:g}: sync : async (s)" for rate in rates}
tables.show(rows, ("slow", *rates), headings)
cases = ((0.5, 1), (4.0, 1), (4.0, 8))
outcome("averages.10", [min("sa", key=lambda kind: seconds[kind, *case]) for case in cases], how="simulated")

# %% [markdown]
# Look down one column. The synchronous times double with each row, because the slowest worker sets the pace. The
# asynchronous times hardly change.
#
# In the first row nobody is slow, and yet the winner depends on the learning rate. In one second, synchronous SGD takes
# one step with the mean gradient, and the 8 asynchronous workers take 8 steps of that length. At a small learning rate,
# 8 steps go up to 8 times as far. At a large one, that is too far: together they overshoot.
#
# So a race at equal learning rates is not a fair comparison. Compare each kind at its best rate:

# %%
for slow in slows:
    (s, rate_s), (a, rate_a) = (min((seconds[kind, rate, slow], rate) for rate in rates) for kind in "sa")
    print(f"last worker {slow} x: synchronous {s:3.0f} s (rate {rate_s:g}), asynchronous {a:3.0f} s (rate {rate_a:g})")

# %% [markdown]
# With equally fast workers, this race is nearly a draw: synchronous SGD with rate 4 = 8 x 0.5 does what asynchronous
# SGD does with rate 0.5. With a slow worker, asynchronous SGD is ahead.
#
# Which of these statements do the numbers support?
#
# - **a**: asynchronous SGD is always the first to reach a given loss, because nobody waits
# - **b**: gradients for old weights are wrong, so asynchronous SGD cannot train
# - **c**: a slow worker delays both kinds equally, because its gradients are needed
# - **d**: slow workers are a reason for asynchronous SGD; large rates and equal workers are reasons for synchronous SGD

# %% labs={"id": "averages.11"}
### BEGIN SOLUTION
race_says = "d"
### END SOLUTION
check("averages.11", race_says)

# %% [markdown]
# The result of synchronous SGD does not depend on which worker was late. On *equal* devices it is used at a very large
# scale: Llama 3 was trained synchronously on 16,384 GPUs ([2407.21783](https://arxiv.org/abs/2407.21783), 2024). The
# rest of this course uses synchronous SGD.
#
# ## Server or ring
#
# At every step, all K workers need the sum of their K gradients. ResNet50V2 with 10 classes has 23.5 million trainable
# weights. In float32, its gradient takes up 94 MB on every worker. There are two ways to compute the sum:
#
# - **A server**: every worker sends its gradient to one process, which adds up the gradients and sends the sum back.
# - **A ring**: worker 0 sends to worker 1, worker 1 to worker 2, and so on; the last worker sends to worker 0.
#
# In the ring, each gradient is cut into K chunks. At each step of the ring, *every* worker sends one chunk to the next
# worker. The first phase is the **reduce-scatter**: the chunks are added up as they are passed round the ring, until
# each worker has the complete sum of one chunk. The second phase is the **all-gather**: these sums are passed round the
# ring.
#
# **Predict:** how many steps do the two phases take in total with 4 workers?

# %% labs={"id": "averages.12"}
### BEGIN SOLUTION
ring_steps = 6
### END SOLUTION
predict("averages.12", ring_steps)

# %% [markdown]
# Go through the steps with the `step` slider. The number on a chunk tells you how many workers' gradients have been
# added up in it. After which step does each worker have one complete sum?

# %%
widgets.explore(pictures.ring, workers=(2, 8), step=(0, 14))

# %% [markdown]
# It takes K - 1 steps until each worker has one complete sum, and K - 1 more until it has all of them: 2 (K - 1) in
# total. Are the sums right? Test this with whole numbers, whose sums are exact:

# %%
from lessons import reduce

vectors = np.random.default_rng(0).integers(-1000, 1000, (4, 12))
steps = reduce.ring(vectors)
exact = all(np.array_equal(vector, vectors.sum(axis=0)) for vector in steps[-1].vectors)
print(f"after {len(steps)} steps, every worker has the exact sum: {exact}")
outcome("averages.12", len(steps), how="counted")

# %% [markdown]
# Now count bytes. With K workers and a server beside them, how many bytes go through the *server's* link, in and out?
# If S servers share the gradient, how many go through each server's link? And how many bytes does each worker in the
# ring send?
#
# The cell compares your `ring_bytes` with the messages of a simulated ring, and applies both formulas to 94 MB.


# %% labs={"id": "averages.13"}
def server_bytes(workers, size, servers=1):
    """Bytes received and sent by each server. size: bytes of one gradient."""
    ### BEGIN SOLUTION
    return 2 * workers * size / servers
    ### END SOLUTION


def ring_bytes(workers, size):
    """Bytes sent by each worker of the ring, which receives as many. size: bytes of one gradient."""
    ### BEGIN SOLUTION
    return 2 * (workers - 1) / workers * size
    ### END SOLUTION


if check("averages.13", server_bytes, ring_bytes):
    steps = reduce.ring(np.ones((8, 1000)))  # 8 workers, gradients of 1000 numbers of 8 bytes
    sent = sum(8 * send.size for step in steps for send in step.sends if send.sender == 3)
    print(f"worker 3 of 8 has sent {sent} bytes; by your formula {ring_bytes(8, 8000):.0f}")
    size, rows = 0.094, []
    for workers in (2, 8, 64, 256, 10_000):
        row = {"workers": workers, "one server, in and out (GB)": server_bytes(workers, size)}
        row["each of 16 servers (GB)"] = server_bytes(workers, size, 16)
        rows.append(row | {"each worker of the ring, out (GB)": ring_bytes(workers, size)})
    tables.show(rows)

# %% [markdown]
# The server's load grows with the number of workers. A worker in the ring never sends more than twice the size of the
# gradient, and receives as much. But the ring takes more *steps*, and each message has a **latency**: the time until
# the first byte arrives.
#
# Take 256 workers, links of 10 GB/s, and a latency of 10 microseconds. **Predict:** which is faster for 94 MB, and
# which for 4 kB? Write two letters: `"r"` for the ring, `"s"` for one server.

# %% labs={"id": "averages.14"}
### BEGIN SOLUTION
faster = "rs"
### END SOLUTION
predict("averages.14", faster)

# %%
link, rows = {"latency": 10e-6, "bandwidth": 10e9}, []
for workers in (256, 10_000):
    for name, size in (("94 MB", 94e6), ("4 kB", 4e3)):
        row = {"workers": workers, "gradient": name}
        row["one server (ms)"] = 1000 * reduce.server_seconds(workers, size, **link)
        row["16 servers (ms)"] = 1000 * reduce.server_seconds(workers, size, **link, servers=16)
        row["ring (ms)"] = 1000 * reduce.ring_seconds(workers, size, **link)
        rows.append(row)
tables.show(rows)
outcome("averages.14", ["r" if row["ring (ms)"] < row["one server (ms)"] else "s" for row in rows[:2]], how="computed")

# %% [markdown]
# More servers help until each worker's *own* link becomes the limit: the whole gradient must travel over that link in
# both directions.
#
# What is the bottleneck with 256 workers?
#
# - **a**: for 94 MB, the link of the single server; for 4 kB, the ring's 510 messages, which are sent one after another
# - **b**: in both cases, the bytes sent in the ring: the more workers there are, the more each of them sends
# - **c**: in both cases, the latency, because the single server must receive 256 messages
# - **d**: for 94 MB, the link of the single server, so 1000 servers would take 1/1000 of the time

# %% labs={"id": "averages.15"}
### BEGIN SOLUTION
bottleneck = "a"
### END SOLUTION
check("averages.15", bottleneck)

# %% [markdown]
# ## Build it
#
# Now write the ring yourself, as the program of *one* worker; K processes will run it. Each process knows its number
# `worker`, from 0 to K - 1, and the list `chunks`: its own gradient, cut into K arrays. `exchange(array)` sends an
# array to the next worker and returns the array that the previous worker sends at the same time.
#
# Begin with the reduce-scatter: K - 1 exchanges of one chunk each. As in the picture above, worker w sends chunk w
# first. At the end, it has the complete sum of chunk w + 1 (the last worker has the sum of chunk 0). It does not matter
# what its other chunks contain at that point.


# %% labs={"id": "averages.16"}
def reduce_scatter(worker, K, chunks, exchange):
    """Returns the list of K chunks, of which number (worker + 1) % K is the sum over all workers."""
    ### BEGIN SOLUTION
    for step in range(K - 1):
        arrived = exchange(chunks[(worker - step) % K])
        place = (worker - step - 1) % K
        chunks[place] = chunks[place] + arrived
    return chunks
    ### END SOLUTION


check("averages.16", reduce_scatter)

# %% [markdown]
# Next, write the all-gather, which begins where the reduce-scatter ended. After K - 1 more exchanges, every worker has
# all the sums.


# %% labs={"id": "averages.17"}
def all_gather(worker, K, chunks, exchange):
    """Returns the list of K chunks, all of them sums; at first, only chunk (worker + 1) % K is a sum."""
    ### BEGIN SOLUTION
    for step in range(K - 1):
        chunks[(worker - step) % K] = exchange(chunks[(worker + 1 - step) % K])
    return chunks
    ### END SOLUTION


check("averages.17", all_gather)

# %% [markdown]
# Four processes, connected only by pipes, now run both functions on a gradient as large as that of ResNet50V2. Runs of
# the ring alternate with runs in which worker 0 is the server.
#
# **Predict:** on *this* machine, what is the server's time divided by the ring's?

# %% labs={"id": "averages.18"}
### BEGIN SOLUTION
times_as_long = 2
### END SOLUTION
predict("averages.18", times_as_long)

# %%
from lessons.averages_and_rings import ring

summed = {}
if answered("averages.16", "averages.17"):
    for size in (1_000, 23_500_000):
        name = f"ring_{4 * size}_bytes"
        found = ring.run(reduce_scatter, all_gather, name, workers=4, numbers=size, rounds=8)
        summed |= {size: found} if found else {}

# %%
from labs.results import intervals

rows = []
for size, found in summed.items():
    ratio = intervals.paired(found["seconds"]["server"], found["seconds"]["ring"])
    low, high = ratio.interval
    winner = "the server" if high < 1 else "the ring" if low > 1 else "can't tell"
    shown = f"{ratio.value:.2f} [{low:.2f}, {high:.2f}]"
    rows.append({"bytes": 4 * size, "server / ring [95 %]": shown, "which is faster?": winner})
if rows:
    tables.show(rows)
if 23_500_000 in summed:
    outcome("averages.18", ratio.value, ratio.interval)

# %% [markdown]
# If the interval includes 1, these rounds do not show which way is faster. The ring pays where each worker has a link of
# its own. Here, all four share one memory, and as many bytes are copied either way. For 4 kB, the ring needs 6 messages
# one after another; by way of a server, a gradient needs 2: one in, one out.
#
# How many bytes did each worker send?

# %%
rows = []
for size, found in summed.items():
    for kind in ("ring", "server"):
        sent = {f"sent by worker {worker}": each for worker, each in enumerate(found["bytes"][kind])}
        rows.append({"bytes": 4 * size, "with a": kind} | sent)
        rows[-1]["by your formula"] = ring_bytes(4, 4 * size) if kind == "ring" else None
if rows:
    tables.show(rows)

# %% [markdown]
# Every worker of the ring sends as many bytes as your formula says. The server, worker 0, sends three sums: three times
# as many bytes as any other worker. The ring pays off when every worker has its own link, as on a cluster.
#
# There are other ways to speed up the exchange:
#
# - **A tree**: sums go up a tree of workers and come down again, which takes 2 log2 K successive messages instead of 2
#   (K - 1): for 256 workers, 16 instead of 510.
# - **Two levels**: first compute the sum within each machine, over its fast links, and only then across the machines.
# - **Fewer bytes**: send gradients in 16 bits.
# - **Fewer exchanges**: add up the gradients of several batches before you exchange them.
#
# ## T2
#
# (a) In one paragraph of about 5 to 8 sentences, compare synchronous with asynchronous SGD. What does each kind do at
# an update, what does it cost, and when would you choose it?
#
# (b) In 3 to 5 sentences: why is a single parameter server a bottleneck, and how can you relieve it? Name at least two
# ways, and say what limits each of them.

# %% [markdown] labs={"id": "T2", "kind": "answer"}
# ### T2: your answer
# ### BEGIN SOLUTION
# (a) In synchronous SGD, all K workers compute a gradient with the same weights, each from its own batch. The mean of
# the K gradients is used for one update, which is the same as a single worker would make with a batch K times as large.
# The mean needs all the gradients, so each step lasts as long as its slowest worker; with more workers, somebody is
# late more often (64 workers whose times vary by 10 % compute for 80 % of the time). In asynchronous SGD, nobody waits:
# each worker takes the newest weights, and its gradient is applied as soon as it is done. So a slow worker delays
# nobody, but gradients belong to old weights: with K workers, K - 1 other updates are made in between on average, and
# more for a slow worker. Training with stale gradients works as long as the learning rate is small; at a large rate,
# the loss overshoots. I would choose synchronous SGD on equal devices, where its result is reproducible and the waiting
# times are short, and asynchronous SGD on mixed hardware or with workers that are often late.
#
# (b) A single server receives K gradients and sends K sums at every step, so 2 K times the size of the gradient goes
# through one link, and the exchange time grows in proportion to K. Several servers, each of which stores part of the
# weights, can share this load, up to the point where each worker's own link is the limit. A ring needs no server: each
# worker sends 2 (K - 1) / K times the size of the gradient, less than twice its size for any K; but it takes 2 (K - 1)
# messages one after another, so for small messages or thousands of workers its latency becomes significant. Then two
# levels can help (first a sum within each machine, then one across the machines), and so can smaller or fewer
# exchanges: gradients in 16 bits, or several batches before each exchange.
# ### END SOLUTION

# %% [markdown]
# Next: `03_mirrored_strategy`.
