# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Write the schedule: data parallelism
#
# **Time: 35 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** only *everything* contains this notebook.
#
# This notebook is **optional**. It needs no cluster and trains nothing. In three puzzles, you write the program that
# each rank runs in one training step. The kit plays it on all ranks and says whether the sums are right, how long the
# step takes, how much memory each rank needs, and how many bytes it sends. Each puzzle has a bar to beat: a limit for
# the time, the memory or the bytes. The puzzles do not depend on each other.
#
# Nine more puzzles follow in notebooks 32 (ZeRO), 33 (rings and tensor parallelism) and 34 (pipelines). They are
# optional, too, and you can choose any order. They need only the first section of this notebook.
#
# The idea of such puzzles comes from Sasha Rush's
# [LLM Training Puzzles](https://github.com/srush/LLM-Training-Puzzles).

# %%
from labs.checks import check
from lessons.write_the_schedule import game
from lessons.write_the_schedule.programs import all_reduce, backward, forward, gradient, load, program, update, wait

# %% [markdown]
# ## How to write a program
#
# A program is a function that calls operations one after the other. Every rank runs the same function with its own
# number:
#
# - `rank`: the number of this rank, from 0 to `K - 1`
# - `K`: the number of ranks
# - `L`: the number of layers; layer 0 comes first
# - `M`: the number of micro-batches, over all ranks
#
# Here is the whole program for a single rank, which computes all M micro-batches:


# %%
@program
def alone(rank, K, L, M):
    for batch in range(M):
        load(batch)
        for layer in range(L):
            forward(layer, batch)
        for layer in reversed(range(L)):
            backward(layer, batch)
    for layer in range(L):
        update(layer)


game.show("schedule.1", alone, ranks=1, layers=3, batches=2)

# %% [markdown]
# Each box is one operation, and the number in it is the layer. A white box with stripes means that the rank is idle.
# Below the boxes you see the memory of each rank. Move the `time` slider with the mouse or with the arrow keys: the
# text below the picture says what each rank does and holds at that moment.
#
# The kit keeps track of the micro-batches in each gradient, so it notices when one is missing. In the next program, two
# ranks share the micro-batches, but they never add up their gradients:


# %%
@program
def nobody_adds(rank, K, L, M):
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
    for layer in range(L):
        update(layer)


game.show("schedule.1", nobody_adds, ranks=2, batches=2)

# %% [markdown]
# These are the words that the three puzzles need:
#
# | operation | what it does |
# |---|---|
# | `load(batch)` | reads a micro-batch |
# | `forward(layer, batch)` | the forward pass of one layer; needs its weights and the activation of the layer before |
# | `backward(layer, batch)` | the backward pass of one layer; needs the layer's weights, the activation before it and `error(layer, batch)`, the gradient that the layer above hands down; the last forward pass makes the first one. Adds this micro-batch to `gradient(layer)`, and frees the activation and the error that it used |
# | `update(layer)` | needs the gradient summed over *all* micro-batches; frees it |
# | `all_reduce(gradient(0), gradient(1))` | all ranks get the sums; the tensors in one call are exchanged together, like one tensor |
#
# `gradient(layer)` names a tensor: the gradient of the weights of one layer.
#
# Exchanges involve all ranks, so every rank must call the same ones in the same order. A call returns when the exchange
# is complete. With `wait=False`, it returns at once and the exchange runs while the rank computes:
#
# ```python
# sum_of_5 = all_reduce(gradient(5), wait=False)
# backward(4, rank)
# wait(sum_of_5)
# ```
#
# Before you use a tensor that is being exchanged, you must wait for the exchange. Exchanges use the links one after
# another, in the order of the calls: one that you start now begins when all earlier ones are complete. At its end, a
# program waits for every exchange that it has started.
#
# In puzzles 1 to 6, each pass is computed once: for each layer and micro-batch, only one rank computes `forward(layer,
# batch)`, and only once. The same holds for `backward`. A program that breaks this rule is not right, even if its sums
# are.
#
# A rank computes one operation at a time. An all-reduce of n MB is a ring: 2 (K - 1) messages, one after another, of
# n / K MB each. A message takes the latency plus its size divided by the bandwidth.
#
# A check first plays your program on the example. Then it plays it with other numbers of ranks, layers and
# micro-batches. If it finds something there, `game.show("schedule.1", your_program, last=True)` shows that case. In each
# case, the bar is 5 % above the best schedule that is known. At the end of a program that computes passes, all weights
# that a rank holds must be updated. (The names in a blank are suggestions.)

# %% [markdown]
# ## Puzzle 1: plain data parallelism
#
# There are as many micro-batches as ranks, and every rank holds all the weights. At the end, all the weights must be
# updated on every rank. In this puzzle, you cannot write `wait=False`.

# %%
game.puzzle("schedule.1")

# %% [markdown]
# <details><summary>Hint 1</summary>Start with <code>nobody_adds</code> above. Which operation is missing, and after which line?</details>
# <details><summary>Hint 2</summary>Every message costs the latency. How many messages are there if you exchange the gradient of each layer by itself?</details>
# <details><summary>Hint 3</summary><code>all_reduce</code> takes any number of tensors: <code>all_reduce(*[gradient(layer) for layer in ...])</code>.</details>


# %% labs={"id": "schedule.1"}
@program
def data_parallel(rank, K, L, M):
    ### BEGIN SOLUTION
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
    all_reduce(*[gradient(layer) for layer in range(L)])
    for layer in range(L):
        update(layer)
    ### END SOLUTION


check("schedule.1", data_parallel)

# %%
game.show("schedule.1", data_parallel)

# %% [markdown]
# In the picture, the links are idle while the ranks compute, and the ranks are idle while the links are in use. The
# next puzzle is about this.
#
# ## Puzzle 2: overlap by buckets
#
# The backward pass begins with the last layer. The gradient of that layer is complete long before the others. Now you
# may write `wait=False`. But the latency is high, so one exchange for each layer is too many.

# %%
game.puzzle("schedule.2")

# %% [markdown]
# <details><summary>Hint 1</summary>Try the two extremes first: one exchange for each layer, and one exchange for all layers. Which one pays too much latency, and which one hides nothing?</details>
# <details><summary>Hint 2</summary>Collect the gradients of some neighbouring layers in a list (a <i>bucket</i>). When the bucket is full, start its exchange and begin a new bucket. Do not forget the last one.</details>
# <details><summary>Hint 3</summary>Keep what <code>all_reduce(*bucket, wait=False)</code> returns in a second list, and wait for all of them before the updates. Try different sizes of a bucket with <code>game.show</code>.</details>


# %% labs={"id": "schedule.2"}
@program
def in_buckets(rank, K, L, M):
    ### BEGIN SOLUTION
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    bucket, started = [], []
    for layer in reversed(range(L)):
        backward(layer, rank)
        bucket.append(gradient(layer))
        if len(bucket) == 3 or layer == 0:
            started.append(all_reduce(*bucket, wait=False))
            bucket = []
    for each in started:
        wait(each)
    for layer in range(L):
        update(layer)
    ### END SOLUTION


check("schedule.2", in_buckets)

# %%
game.show("schedule.2", in_buckets)

# %% [markdown]
# Real systems do exactly this. PyTorch's DistributedDataParallel fills buckets of 25 MB by default
# ([S. Li and others, VLDB 2020](https://arxiv.org/abs/2006.15704)). Horovod fuses small tensors into one buffer
# ([A. Sergeev and M. Del Balso, 2018](https://arxiv.org/abs/1802.05799)).
#
# ## Puzzle 3: accumulation
#
# Now M is a multiple of K: there are several micro-batches for each rank. You choose which rank computes which of them.
# `backward` adds to the gradient that is already there. There are two bars. The bar for the memory is too low to keep
# the activations of two micro-batches. If the exchange begins after the last backward pass, you miss the bar for the
# time.

# %%
game.puzzle("schedule.3")

# %% [markdown]
# <details><summary>Hint 1</summary><code>range(rank, M, K)</code> gives each rank its micro-batches. Finish one micro-batch, forward and backward, before you begin with the next.</details>
# <details><summary>Hint 2</summary>What does a gradient contain if you exchange it after every micro-batch? Try it: the message counts the copies of each micro-batch.</details>
# <details><summary>Hint 3</summary>During the last micro-batch, the gradient of a layer is complete as soon as its backward pass is done. Start its exchange then. Here the latency is low.</details>


# %% labs={"id": "schedule.3"}
@program
def accumulated(rank, K, L, M):
    ### BEGIN SOLUTION
    started = []
    for batch in range(rank, M, K):
        load(batch)
        for layer in range(L):
            forward(layer, batch)
        for layer in reversed(range(L)):
            backward(layer, batch)
            if batch + K >= M:
                started.append(all_reduce(gradient(layer), wait=False))
    for each in started:
        wait(each)
    for layer in range(L):
        update(layer)
    ### END SOLUTION


check("schedule.3", accumulated)

# %%
game.show("schedule.3", accumulated)

# %% [markdown]
# In PyTorch, a loop over micro-batches leaves out the exchange with
# [`no_sync()`](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html) in all
# passes but the last. In notebook 25 you accumulate gradients in TensorFlow.
#
# ## Summary
#
# - A schedule is judged by four things: its sums, its time, its peak memory, and its bytes. Improving one of them can
#   cost another.
# - Overlap hides an exchange behind computation, but only what is ready early enough. The last message stays visible.
# - A few large messages cost less latency; many small ones can be hidden better. Buckets are the compromise.
# - With accumulation, each gradient is exchanged once for all micro-batches, during the last backward pass.
#
# Next: `32_zero_schedules`.
