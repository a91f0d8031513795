# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Write the schedule: data parallelism and ZeRO
#
# **Time: 110 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** only *everything* contains this notebook.
#
# This notebook is **optional**, and no other notebook depends on it. It needs no cluster and trains nothing. In six
# puzzles, you write the program that each rank runs in one training step. The kit plays it on all ranks and says
# whether the sums are right, how long the step takes, how much memory each rank needs, and how many bytes it sends.
# Each puzzle has a bar to beat. The puzzles do not depend on each other.
#
# The idea of such puzzles comes from Sasha Rush's
# [LLM Training Puzzles](https://github.com/srush/LLM-Training-Puzzles).

# %%
from labs.checks import check
from labs.lessons.nb13 import game
from labs.lessons.nb13.programs import (
    all_gather,
    all_reduce,
    backward,
    forward,
    free,
    gradient,
    load,
    program,
    reduce_scatter,
    update,
    wait,
    weights,
)

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


game.show("13.1", alone, ranks=1, layers=3, batches=2)

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


game.show("13.1", nobody_adds, ranks=2, batches=2)

# %% [markdown]
# These are the words that the six puzzles need:
#
# | operation | what it does |
# |---|---|
# | `load(batch)` | reads a micro-batch |
# | `forward(layer, batch)` | the forward pass of one layer; needs its weights and the activation of the layer before |
# | `backward(layer, batch)` | the backward pass of one layer; needs the layer's weights, the activation before it and `error(layer, batch)`, the gradient that the layer above hands down; the last forward pass makes the first one. Adds this micro-batch to `gradient(layer)`, and frees the activation and the error that it used |
# | `update(layer)` | needs the gradient summed over *all* micro-batches; frees it. If you hold parts of the optimizer state, it updates these parts |
# | `all_reduce(gradient(0), gradient(1))` | all ranks get the sums; the tensors in one call form one message |
# | `reduce_scatter(gradient(0))` | rank r gets part r of the sum, and frees all other parts |
# | `all_gather(weights(0))` | rank r contributes part r, and all ranks get all parts |
# | `free(weights(0), keep=rank)` | frees all parts but part `rank`; without `keep`, it frees everything |
#
# A tensor is written `weights(layer)`, `gradient(layer)` or `optimizer(layer)` (the state of the optimizer). It has K
# parts of equal size.
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
# In all six puzzles, each pass is computed once: only one rank computes `forward(layer, batch)` for a layer and a
# micro-batch, and only once. The same holds for `backward`. A program that breaks this rule is not right, even if its
# sums are.
#
# A rank computes one operation at a time. An all-reduce of n MB is a ring: 2 (K - 1) messages, one after another, of
# n / K MB each. A reduce-scatter or an all-gather is K - 1 messages, half of an all-reduce. A message takes the latency
# plus its size divided by the bandwidth.
#
# A check first plays your program on the example. Then it plays it with other numbers of ranks, layers and
# micro-batches, and draws other times for each of these cases. If it finds something there,
# `game.show("13.1", your_program, last=True)` shows that case. The bar is always 5 % above the best schedule that is
# known.

# %% [markdown]
# ## Puzzle 1: plain data parallelism
#
# There are as many micro-batches as ranks, and every rank holds all the weights. At the end, all the weights must be
# updated on every rank. In this puzzle, you cannot write `wait=False`.

# %%
game.puzzle("13.1")

# %% [markdown]
# <details><summary>Hint 1</summary>Start with <code>nobody_adds</code> above. Which operation is missing, and after which line?</details>
# <details><summary>Hint 2</summary>Every message costs the latency. How many messages are there if you exchange the gradient of each layer by itself?</details>
# <details><summary>Hint 3</summary><code>all_reduce</code> takes any number of tensors: <code>all_reduce(*[gradient(layer) for layer in ...])</code>.</details>


# %% labs={"id": "13.1"}
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


check("13.1", data_parallel)

# %%
game.show("13.1", data_parallel)

# %% [markdown]
# In the picture, the links are idle while the ranks compute, and the ranks are idle while the links are in use. The
# next puzzle is about this.
#
# ## Puzzle 2: overlap by buckets
#
# The backward pass begins with the last layer. The gradient of that layer is complete long before the others. Now you
# may write `wait=False`. But the latency is high, so one exchange for each layer is too many.

# %%
game.puzzle("13.2")

# %% [markdown]
# <details><summary>Hint 1</summary>Try the two extremes first: one exchange for each layer, and one exchange for all layers. Which of the two costs does each of them pay?</details>
# <details><summary>Hint 2</summary>Collect the gradients of some neighbouring layers in a list (a <i>bucket</i>). When the bucket is full, start its exchange and begin a new bucket. Do not forget the last one.</details>
# <details><summary>Hint 3</summary>Keep what <code>all_reduce(*bucket, wait=False)</code> returns in a second list, and wait for all of them before the updates. Try different sizes of a bucket with <code>game.show</code>.</details>


# %% labs={"id": "13.2"}
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


check("13.2", in_buckets)

# %%
game.show("13.2", in_buckets)

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
game.puzzle("13.3")

# %% [markdown]
# <details><summary>Hint 1</summary><code>range(rank, M, K)</code> gives each rank its micro-batches. Finish one micro-batch, forward and backward, before you begin with the next.</details>
# <details><summary>Hint 2</summary>What does a gradient contain if you exchange it after every micro-batch? Try it: the message counts the copies of each micro-batch.</details>
# <details><summary>Hint 3</summary>During the last micro-batch, the gradient of a layer is complete as soon as its backward pass is done. Start its exchange then. Here the latency is low.</details>


# %% labs={"id": "13.3"}
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


check("13.3", accumulated)

# %%
game.show("13.3", accumulated)

# %% [markdown]
# In PyTorch, a loop over micro-batches leaves out the exchange with
# [`no_sync()`](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html) in all
# passes but the last. In notebook 10b you accumulate gradients in TensorFlow.
#
# ## Puzzle 4: ZeRO-1, a sharded optimizer
#
# Adam keeps two numbers for each weight, on every rank. With ZeRO-1, each rank keeps only its part of this state: at
# the start, rank r holds all weights, but only part r of `optimizer(layer)`. So rank r can update only part r of the
# weights. Work on one of K parts takes 1/K of the time. At the end, every rank must hold all the updated weights. The
# bar is for the bytes that a rank sends.

# %%
game.puzzle("13.4")

# %% [markdown]
# <details><summary>Hint 1</summary>For its update, rank r needs only part r of the summed gradient. Which exchange gives it just that?</details>
# <details><summary>Hint 2</summary>After <code>update</code>, rank r holds part r of the new weights, and old numbers in all other parts.</details>
# <details><summary>Hint 3</summary>An all-reduce is a reduce-scatter followed by an all-gather. Put the update between the two.</details>


# %% labs={"id": "13.4"}
@program
def zero_1(rank, K, L, M):
    ### BEGIN SOLUTION
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
    for layer in range(L):
        reduce_scatter(gradient(layer))
        update(layer)
        all_gather(weights(layer))
    ### END SOLUTION


check("13.4", zero_1)

# %%
game.show("13.4", zero_1)

# %% [markdown]
# ## Puzzle 5: ZeRO-2, sharded gradients
#
# The start is the same as in puzzle 4, but the example has 7 layers. Play your program from puzzle 4 on it, in a cell of
# its own: `game.show("13.5", zero_1)`. At the end of the backward pass, every rank holds the whole gradients of all
# layers, although it needs only its own part of each. Now there is also a bar for the memory. Keep only one whole
# gradient at a time: wait for each exchange before the next backward pass.

# %%
game.puzzle("13.5")

# %% [markdown]
# <details><summary>Hint 1</summary>Move the slider of <code>game.show("13.5", zero_1)</code> to the peak. Which gradients lie there, although nobody adds anything to them any more?</details>
# <details><summary>Hint 2</summary><code>reduce_scatter</code> frees all parts but one. When is the earliest moment for it?</details>
# <details><summary>Hint 3</summary>Move <code>reduce_scatter</code> into the loop of the backward pass. The updates may follow later.</details>


# %% labs={"id": "13.5"}
@program
def zero_2(rank, K, L, M):
    ### BEGIN SOLUTION
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
        reduce_scatter(gradient(layer))
    for layer in range(L):
        update(layer)
        all_gather(weights(layer))
    ### END SOLUTION


check("13.5", zero_2)

# %%
game.show("13.5", zero_2)

# %% [markdown]
# ## Puzzle 6: ZeRO-3 with prefetch
#
# Now the weights are sharded, too: at the start and at the end, rank r holds only part r of everything. Before a rank
# can compute with a layer, it must gather the layer's weights. Afterwards, it frees the parts that are not its own. A
# program that waits for each layer computes for little more than half of the time. So let the weights of the next layer
# arrive while the current layer computes. If you gather all the weights at the start, they need too much memory.

# %%
game.puzzle("13.6")

# %% [markdown]
# <details><summary>Hint 1</summary>Write it without <code>wait=False</code> first: gather, compute, free, for each layer forward and backward, and a <code>reduce_scatter</code> after each backward pass. Keep this version as <code>waiting</code>: you compare with it later.</details>
# <details><summary>Hint 2</summary><code>all_gather(..., wait=False)</code> returns a number for <code>wait</code>. Keep it in a variable, such as <code>arriving</code>. In each round: wait for it, start the next one, compute, free.</details>
# <details><summary>Hint 3</summary>The backward pass begins with the layer that the forward pass ended with, so keep the weights of that layer. The reduce-scatter can be started, too; wait for it after the backward pass of the next layer, so that whole gradients do not pile up.</details>


# %% labs={"id": "13.6"}
@program
def zero_3(rank, K, L, M):
    ### BEGIN SOLUTION
    arriving = all_gather(weights(0), wait=False)
    load(rank)
    for layer in range(L):
        wait(arriving)
        if layer < L - 1:
            arriving = all_gather(weights(layer + 1), wait=False)
        forward(layer, rank)
        if layer < L - 1:
            free(weights(layer), keep=rank)
    summed = None
    for layer in reversed(range(L)):
        if layer < L - 1:
            wait(arriving)
        if layer > 0:
            arriving = all_gather(weights(layer - 1), wait=False)
        backward(layer, rank)
        free(weights(layer), keep=rank)
        if summed is not None:
            wait(summed)
        summed = reduce_scatter(gradient(layer), wait=False)
    wait(summed)
    for layer in range(L):
        update(layer)
    ### END SOLUTION


check("13.6", zero_3)

# %%
game.show("13.6", zero_3)

# %% [markdown]
# ZeRO-1, 2 and 3 come from DeepSpeed ([S. Rajbhandari and others, SC 2020](https://arxiv.org/abs/1910.02054)).
# PyTorch's FullyShardedDataParallel gathers the next layer ahead of time, as you do here ([Y. Zhao and others, VLDB
# 2023](https://arxiv.org/abs/2304.11277)).
#
# ## Your own games
#
# You can change everything in the example of a puzzle: the numbers of ranks, layers and micro-batches, the times, the
# latency, the bandwidth (in MB/ms), and the sizes. With links that are four times as fast, how much time does the
# prefetch of puzzle 6 still save? Compare it with `waiting`, your version without `wait=False`.

# %%
game.show("13.6", zero_3, bandwidth=32.0)

# %% [markdown]
# These are your best schedules of the examples so far. A schedule that meets all bars always counts as better than one
# that does not:

# %%
game.best()

# %% [markdown]
# ## P1
#
# Choose one of your schedules, and write 3 to 5 sentences. When are the ranks still idle, and why can no other order of
# the operations prevent it? What would you measure on a real machine before you chose this schedule? The report shows
# the pictures of your best schedules beside your answer.

# %% [markdown] labs={"id": "P1", "kind": "answer"}
# ### P1: your answer
# ### BEGIN SOLUTION
# In my schedule for ZeRO-3, the ranks are idle twice. At the start, they wait for the weights of layer 0, because no
# operation can run without them. At the end, they wait for the summed gradient of layer 0, because its backward pass is
# the last one. All other exchanges run while something is computed, so no other order can save more. Before I chose it
# on a real machine, I would measure how long a layer computes, and how long it takes to gather its weights: prefetching
# one layer ahead is only enough if gathering is faster than computing. I would also measure the peak memory, because
# two layers are gathered at the same time.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# - A schedule is judged by four things: its sums, its time, its peak memory, and its bytes. Improving one of them can
#   cost another.
# - Overlap hides an exchange behind computation, but only what is ready early enough. The last message stays visible.
# - A few large messages cost less latency; many small ones can be hidden better. Buckets are the compromise.
# - A reduce-scatter and an all-gather together send as many bytes as an all-reduce. So ZeRO-1 and ZeRO-2 save memory
#   without sending more. ZeRO-3 saves the most memory. It gathers the weights twice, and so sends up to half as much
#   again.
#
# Next: `13b_harder_schedules`.
