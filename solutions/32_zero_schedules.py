# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Schedules for ZeRO: sharded optimizer, gradients and weights
#
# **Time: 45 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** only *everything* contains this notebook.
#
# This notebook is **optional**. In plain data parallelism, every rank holds everything. In the three puzzles here, each
# rank keeps only its part of the optimizer state (ZeRO-1), then also of the gradients (ZeRO-2), and finally of the
# weights (ZeRO-3). You write programs as in notebook 31; its first section explains how. The rules are the same, too:
# only one rank computes each pass, and only once. At the end you write task **P1**, about one of your schedules.

# %%
from labs.checks import check
from lessons.write_the_schedule import game
from lessons.write_the_schedule.programs import (
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
# ## Words for parts
#
# You know `load`, `forward`, `backward`, `update`, `all_reduce` and `wait` from notebook 31. Three words are new:
#
# | operation | what it does |
# |---|---|
# | `reduce_scatter(gradient(0))` | rank r gets part r of the sum, and frees all other parts |
# | `all_gather(weights(0))` | rank r contributes part r, and all ranks get all parts |
# | `free(weights(0), keep=rank)` | frees all parts but part `rank`; without `keep`, it frees everything |
#
# A tensor is written `weights(layer)`, `gradient(layer)` or `optimizer(layer)` (the state of the optimizer). It has K
# parts of equal size. If you hold parts of the optimizer state, `update(layer)` updates these parts of the weights.
#
# The first two are exchanges between all ranks, with the same rules as `all_reduce`: every rank must call the same ones
# in the same order, the tensors in one call are exchanged together, and with `wait=False` the call returns at once. A
# reduce-scatter or an all-gather is K - 1 messages, half of an all-reduce.
#
# ## Puzzle 4: ZeRO-1, a sharded optimizer
#
# Adam keeps two numbers for each weight, on every rank. With ZeRO-1, each rank keeps only its part of this state: at
# the start, rank r holds all weights, but only part r of `optimizer(layer)`. So rank r can update only part r of the
# weights. An operation on one of K parts takes 1/K of its time. As in puzzle 1, there are as many micro-batches as
# ranks. At the end, every rank must hold all the updated weights. The bar is for the bytes that a rank sends.

# %%
game.puzzle("zero.1")

# %% [markdown]
# <details><summary>Hint 1</summary>For its update, rank r needs only part r of the summed gradient. Which exchange gives it just that?</details>
# <details><summary>Hint 2</summary>After <code>update</code>, rank r holds part r of the new weights, and old numbers in all other parts.</details>
# <details><summary>Hint 3</summary>An all-reduce is a reduce-scatter followed by an all-gather. Put the update between the two.</details>


# %% labs={"id": "zero.1"}
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


check("zero.1", zero_1)

# %%
game.show("zero.1", zero_1)

# %% [markdown]
# ## Puzzle 5: ZeRO-2, sharded gradients
#
# The start is the same as in puzzle 4, but the example has 7 layers. Play your program from puzzle 4 on it, in a cell of
# its own: `game.show("zero.2", zero_1)`. At the end of the backward pass, every rank holds the whole gradients of all
# layers, although it needs only its own part of each. Now there is also a bar for the memory. Keep only one whole
# gradient at a time: wait for each exchange before the next backward pass.

# %%
game.puzzle("zero.2")

# %% [markdown]
# <details><summary>Hint 1</summary>Move the slider of <code>game.show("zero.2", zero_1)</code> to the peak. Which gradients lie there, although nobody adds anything to them any more?</details>
# <details><summary>Hint 2</summary><code>reduce_scatter</code> frees all parts but one. When is the earliest moment for it?</details>
# <details><summary>Hint 3</summary>Move <code>reduce_scatter</code> into the loop of the backward pass. The updates may follow later.</details>


# %% labs={"id": "zero.2"}
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


check("zero.2", zero_2)

# %%
game.show("zero.2", zero_2)

# %% [markdown]
# ## Puzzle 6: ZeRO-3 with prefetch
#
# Now the weights are sharded, too: at the start and at the end, rank r holds only part r of everything. Before a rank
# can compute with a layer, it must gather the layer's weights. Afterwards, it frees the parts that are not its own. A
# program that waits for each layer computes for little more than half of the time. So let the weights of the next layer
# arrive while the current layer computes. If you gather all the weights at the start, they need too much memory.

# %%
game.puzzle("zero.3")

# %% [markdown]
# <details><summary>Hint 1</summary>Write it without <code>wait=False</code> first: gather, compute, free, for each layer forward and backward, and a <code>reduce_scatter</code> after each backward pass. Keep this version as <code>waiting</code>: you compare with it later.</details>
# <details><summary>Hint 2</summary><code>all_gather(..., wait=False)</code> returns a number for <code>wait</code>. Keep it in a variable, such as <code>arriving</code>. In each round: wait for it, start the next one, compute, free.</details>
# <details><summary>Hint 3</summary>The backward pass begins with the layer that the forward pass ended with, so keep the weights of that layer. The reduce-scatter can be started, too; wait for it after the backward pass of the next layer, so that whole gradients do not pile up.</details>


# %% labs={"id": "zero.3"}
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


check("zero.3", zero_3)

# %%
game.show("zero.3", zero_3)

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
game.show("zero.3", zero_3, bandwidth=32.0)

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
# - A reduce-scatter and an all-gather together send as many bytes as an all-reduce. So ZeRO-1 and ZeRO-2 save memory
#   without sending more.
# - If each gradient is exchanged as soon as it is complete, whole gradients do not pile up.
# - ZeRO-3 saves the most memory. It gathers the weights twice, and so sends up to half as much again. Prefetching hides
#   most of the time for this.
#
# Next: `33_harder_schedules`.
