# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # One sum from many gradients: a server, a ring, and a ring of your own
#
# **Time: 60 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `03_mirrored_strategy`), *everything*; *an afternoon* leaves this notebook out.
#
# At every step, all K workers need the sum of their K gradients (notebook 02), and each gradient is as large as the
# network. Where are the gradients added up, and how much data must pass through each link? First you will count and
# predict. Then you will write the ring yourself and run it on real processes. At the end you answer task **T2** in your
# own words.

# %%
from statistics import geometric_mean

import numpy as np

from labs.checks import answered, check, outcome, predict
from labs.results import intervals
from labs.show import plots, tables, widgets
from labs.simulate import reduce
from lessons.rings import pictures, ring

# %% [markdown]
# ## Server or ring
#
# ResNet50V2 with 10 classes has 23.5 million trainable weights. In float32, its gradient takes up 94 MB, at every step
# and on every worker. There are two ways to compute the sum:
#
# - **A server**: every worker sends its gradient to one process, which adds up the gradients and sends the sum back to
#   each worker.
# - **A ring**: worker 0 sends to worker 1, worker 1 to worker 2, and so on; the last worker sends to worker 0. There is
#   no server.
#
# In the ring, each gradient is cut into K chunks. At each step, *every* worker sends one chunk to the next worker. The
# first phase is the **reduce-scatter**: the chunks are added up as they are passed round the ring, until each worker
# has the complete sum of one chunk. The second phase is the **all-gather**: these sums are passed round the ring.
#
# **Predict:** how many steps do the two phases take in total with 4 workers?

# %% labs={"id": "rings.1"}
### BEGIN SOLUTION
ring_steps = 6
### END SOLUTION
predict("rings.1", ring_steps)

# %% [markdown]
# Go through the steps with the `step` slider. The left side shows who sends which chunk; the right side shows what each
# worker has afterwards. The number on a chunk tells you how many workers' gradients have been added up in it. After
# which step does each worker have one complete sum?

# %%
widgets.explore(pictures.ring, workers=(2, 8), step=(0, 14))

# %% [markdown]
# The answer is step 3. This is the end of the reduce-scatter:

# %%
plots.show(pictures.ring(workers=4, step=3))

# %% [markdown]
# It takes K - 1 steps until each worker has one complete sum, and K - 1 more until it has all of them: 2 (K - 1) in
# total. Are the sums right? The next cell tests this with whole numbers, because their sums are exact. Some of the
# gradients have lengths that are not multiples of K:

# %%
random = np.random.default_rng(0)
for workers, size in ((2, 10), (4, 12), (5, 12), (16, 1000), (100, 1)):
    vectors = random.integers(-1000, 1000, (workers, size))
    steps = reduce.ring(vectors)
    assert np.array_equal(steps[-1].vectors, np.tile(vectors.sum(axis=0), (workers, 1)))
    print(f"{workers:3} workers, {size:4} numbers: exact sum on every worker after {len(steps)} steps")
    if workers == 4:
        outcome("rings.1", len(steps), how="counted")

# %% [markdown]
# Now count bytes. With K workers, how many bytes go through the *server's* link, in and out? If S servers share the
# gradient, how many go through each server's link? And how many bytes does each worker in the ring send?


# %% labs={"id": "rings.2"}
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


check("rings.2", server_bytes, ring_bytes)

# %% [markdown]
# The simulated ring records its messages, so you can compare your formula with an actual count. The table then applies
# your formulas to the 94 MB of ResNet50V2 (in GB):

# %%
if answered("rings.2"):
    steps = reduce.ring(np.ones((8, 1000)))  # 8 workers, gradients of 1000 numbers of 8 bytes
    sent = sum(8 * send.size for step in steps for send in step.sends if send.sender == 3)
    print(f"worker 3 of 8 has sent {sent} bytes; by your formula {ring_bytes(8, 8000):.0f}")
    rows = [
        {
            "workers": workers,
            "one": server_bytes(workers, 0.094),
            "16": server_bytes(workers, 0.094, 16),
            "ring": ring_bytes(workers, 0.094),
        }
        for workers in (2, 8, 64, 256, 10_000)
    ]
    tables.show(
        rows,
        ("workers", "one", "16", "ring"),
        {"one": "one server, in and out", "16": "each of 16 servers", "ring": "each worker of the ring, out"},
    )

# %% [markdown]
# The number of bytes through the server's link grows with the number of workers. A worker in the ring never sends more
# than twice the size of the gradient. It also receives the same number of bytes, so double the last column before you
# compare it with a server's link. But the ring takes more *steps*, and each message has a **latency**: the time until
# the first byte arrives.
#
# Suppose that there are 256 workers, links of 10 GB/s, and a latency of 10 microseconds. **Predict:** which is faster
# for 94 MB, and which is faster for 4 kB? Write two letters: `"r"` for the ring, `"s"` for one server.

# %% labs={"id": "rings.3"}
### BEGIN SOLUTION
faster = "rs"
### END SOLUTION
predict("rings.3", faster)

# %%
latency, bandwidth, rows = 10e-6, 10e9, []
for workers in (256, 10_000):
    for name, size in (("94 MB", 94e6), ("4 kB", 4e3)):
        rows.append(
            {
                "workers": workers,
                "size": name,
                "server": 1000 * reduce.server_seconds(workers, size, latency, bandwidth),
                "16": 1000 * reduce.server_seconds(workers, size, latency, bandwidth, servers=16),
                "ring": 1000 * reduce.ring_seconds(workers, size, latency, bandwidth),
            }
        )
tables.show(
    rows,
    ("workers", "size", "server", "16", "ring"),
    {"size": "gradient", "server": "one server (ms)", "16": "16 servers (ms)", "ring": "ring (ms)"},
)
outcome("rings.3", ["r" if row["ring"] < row["server"] else "s" for row in rows[:2]], how="computed")

# %% [markdown]
# Where do the lines cross? Change the size of the gradient, the speed of the links, and the number of servers. With 32
# workers, beyond how many servers does adding more no longer help?

# %%
widgets.explore(
    pictures.costs,
    megabytes=[0.004, 0.1, 1.0, 10.0, 94.0, 400.0],
    gigabytes_per_second=[1.0, 10.0, 100.0],
    microseconds=[1.0, 10.0, 100.0],
    servers=[2, 4, 16, 64, 256],
)

# %% [markdown]
# Servers share the load until each worker's *own* link becomes the limit, because the whole gradient must travel over
# that link in both directions. Once there are as many servers as workers, adding more does not help.
#
# What is the bottleneck with 256 workers?
#
# - **a**: for 94 MB, the link of the single server; for 4 kB, the ring's 510 messages, which are sent one after another
# - **b**: in both cases, the bytes sent in the ring: the more workers there are, the more each of them sends
# - **c**: in both cases, the latency, because the single server must receive 256 messages
# - **d**: for 94 MB, the link of the single server, so 1000 servers would take 1/1000 of the time

# %% labs={"id": "rings.4"}
### BEGIN SOLUTION
bottleneck = "a"
### END SOLUTION
check("rings.4", bottleneck)

# %% [markdown]
# ## Build it
#
# Now write the ring yourself, as the program of *one* worker; K processes will run it. Each process knows its number
# `worker`, from 0 to K - 1, and the list `chunks`: its own gradient, cut into K arrays. `exchange(array)` sends an
# array to the next worker (the last worker sends to worker 0). It returns the array that the previous worker sends at
# the same time.
#
# Begin with the reduce-scatter: K - 1 exchanges of one chunk each. In the picture above, worker w sends chunk w first.
# At the end, it has the complete sum of chunk w + 1 (the last worker has the sum of chunk 0). It does not matter what
# its other chunks contain at that point.


# %% labs={"id": "rings.5"}
def reduce_scatter(worker, K, chunks, exchange):
    """Returns the list of K chunks, of which number (worker + 1) % K is the sum over all workers."""
    ### BEGIN SOLUTION
    for step in range(K - 1):
        arrived = exchange(chunks[(worker - step) % K])
        place = (worker - step - 1) % K
        chunks[place] = chunks[place] + arrived
    return chunks
    ### END SOLUTION


check("rings.5", reduce_scatter)

# %% [markdown]
# Next, write the all-gather. It begins where the reduce-scatter ended: worker w has the complete sum of chunk w + 1.
# After K - 1 more exchanges, every worker has all the sums.


# %% labs={"id": "rings.6"}
def all_gather(worker, K, chunks, exchange):
    """Returns the list of K chunks, all of them sums; at first, only number (worker + 1) % K is one."""
    ### BEGIN SOLUTION
    for step in range(K - 1):
        chunks[(worker - step) % K] = exchange(chunks[(worker + 1 - step) % K])
    return chunks
    ### END SOLUTION


check("rings.6", all_gather)

# %% [markdown]
# Four processes now run both functions on a gradient as large as that of ResNet50V2: 23.5 million numbers, 94 MB. The
# processes are connected only by pipes. Runs of the ring alternate with runs of a server: the same four processes also
# compute the sum with worker 0 as the server.
#
# **Predict:** on *this* machine, what is the server's time divided by the ring's?

# %% labs={"id": "rings.7"}
### BEGIN SOLUTION
times_as_long = 2
### END SOLUTION
predict("rings.7", times_as_long)

# %%
summed = {}
if answered("rings.5", "rings.6"):
    for size in (1_000, 23_500_000):
        name = f"ring_{4 * size}_bytes"
        summed[size] = ring.run(reduce_scatter, all_gather, name, workers=4, numbers=size, rounds=8)

# %%
rows = []
for size, found in summed.items():
    if found:
        seconds, sent = found["seconds"], found["bytes"]
        ratio = intervals.paired(seconds["server"], seconds["ring"])
        low, high = ratio.interval
        faster = "the server" if high < 1 else "the ring" if low > 1 else "can't tell"
        shown = f"{ratio.value:.2f} [{low:.2f}, {high:.2f}]"
        rows.append({"size": f"{4 * size:,} bytes", "ratio": shown, "faster": faster})
        for kind in ("ring", "server"):
            rows[-1][kind] = 1000 * geometric_mean(seconds[kind])
            rows[-1][f"out of {kind}"] = " ".join(f"{each:,}" for each in sent[kind])
if rows:
    headings = {"size": "gradient", "ring": "ring (ms)", "server": "server (ms)", "ratio": "server / ring [95 %]"}
    headings["faster"] = "which is faster?"
    tables.show(rows, tuple(headings), headings)
    headings = {"size": "gradient", "out of ring": "ring: bytes sent by worker 0 1 2 3"}
    headings["out of server"] = "server: by worker 0 1 2 3"
    tables.show(rows, tuple(headings), headings)
    outcome("rings.7", ratio.value, ratio.interval)
if rows and answered("rings.2"):
    print(f"94 MB by your formulas: ring_bytes(4, size) = {ring_bytes(4, 94_000_000):,.0f},")
    print(f"and half of server_bytes(3, size) = {server_bytes(3, 94_000_000) / 2:,.0f}")

# %% [markdown]
# The milliseconds are geometric means over the rounds, so dividing them gives the ratio in the table. The interval is
# computed from the ratios within each round. If it includes 1, these rounds do not show which way is faster.
#
# The ring sends exactly as many bytes as your `ring_bytes` predicts. The server sends fewer bytes than
# `server_bytes(4, size)`. In that formula, the server is a separate process; here, it is worker 0, whose own gradient
# does not go through any link. Three gradients come in and three sums go out. The bytes that it *sends* are only half
# of this total: half of `server_bytes(3, size)`.
#
# The times are a different matter. All four processes share one memory. So what matters most is how many bytes are
# copied in total, not how many go through *each* link. This total is the same for both. For 4 kB, the ring needs 6
# messages one after another, and the server only 2. So the server should win here; the last column shows whether it did
# in your rounds. The ring pays off when every worker has its own link, as on a cluster.
#
# There are other ways to speed up the exchange:
#
# - **A tree**: sums go up a tree of workers and come down again. That takes 2 log2 K successive messages instead of 2
#   (K - 1): for 256 workers, 16 instead of 510. For large gradients, use two trees, each for half of the gradient. A
#   worker at the end of a branch (a leaf) in one tree passes on sums in the other, so all the links are in use ([NCCL
#   2.4](https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/), 2019).
# - **Two levels**: first compute the sum within each machine, over its fast links, and only then across the machines.
#   That makes the ring shorter.
# - **Larger messages**: put many small tensors into one buffer.
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
# ## Summary
#
# - A server is limited by its link; a ring is limited by its number of messages.
# - The ring consists of a reduce-scatter and an all-gather: 2 (K - 1) messages, and each worker sends less than twice
#   the size of the gradient.
# - Where the links are not the limit, copying is, so measure on the machine where you train.
#
# Next: `03_mirrored_strategy`.
