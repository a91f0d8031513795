# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Harder schedules: rings and tensor parallelism
#
# **Time: 30 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** only *everything* contains this notebook.
#
# This notebook is **optional**. Each of its three puzzles takes 20 to 25 minutes, and you can choose any order. You
# write programs as in notebook 31; its first section explains how. Two things are new here: single messages from one
# rank to another, and layers that are split over the ranks.

# %%
from labs.checks import check
from lessons.write_the_schedule import game
from lessons.write_the_schedule.programs import (
    activation,
    all_gather,
    all_reduce,
    backward,
    error,
    forward,
    free,
    gradient,
    load,
    program,
    receive,
    reduce_scatter,
    send,
    update,
    wait,
    weights,
)

# %% [markdown]
# ## Messages
#
# | operation | what it does |
# |---|---|
# | `send(tensor, to)` | sends a tensor to rank `to`; returns when all of it has arrived there |
# | `receive(tensor, source)` | waits for this tensor from rank `source`; it replaces what is there |
# | `receive(tensor, source, add=True)` | adds the tensor to what is there |
#
# A message begins when one rank has called `send` *and* the other has called `receive` with the same tensor. A rank can
# send one message and receive another at the same time; messages over the same link follow one another. With
# `wait=False`, both calls return at once, with what `wait` needs. A gradient is sent as a copy: it stays here, too.
#
# These tensors can be sent:
#
# - `gradient(layer)`, or some of its K parts, which are of equal size: `gradient(0, 2)` is part 2, and `gradient(0, 1,
#   3)` is parts 1 and 3
# - `activation(layer, batch)`: what a layer hands to the next layer
# - `error(layer, batch)`: the gradient of the loss with respect to this activation; in the backward pass, each layer
#   computes it for the layer before
#
# This program is meant to add up the gradients of two ranks:


# %%
@program
def swap(rank, K, L, M):
    other = 1 - rank
    send(gradient(0), other)
    receive(gradient(0), other, add=True)


game.show("harder.1", swap, ranks=2, batches=2)

# %% [markdown]
# This is a **deadlock**: each of the two ranks waits until the other one receives. The arrows show who waits for whom.
# Real MPI programs with large messages hang in the same way. Start the message with `wait=False`:


# %%
@program
def swap(rank, K, L, M):
    other = 1 - rank
    send(gradient(0), other, wait=False)
    receive(gradient(0), other, add=True)


game.show("harder.1", swap, ranks=2, batches=2)

# %% [markdown]
# ## Puzzle 7: a ring
#
# Every rank holds the gradient of its own micro-batch. At the end, every rank must hold the sum. You may use only
# `send` and `receive`. In the plain solution, each rank adds its gradient to what arrives and passes the sum on; then
# the result travels round the ring. That is slow, because only one link is in use at a time. In the pictures of puzzles
# 7 and 8, the numbers at the beginning of a message are the parts that it carries. Nothing is computed there, so the
# ranks are idle all the time: look at how much the links are in use.

# %%
game.puzzle("harder.1")

# %% [markdown]
# <details><summary>Hint 1</summary>Cut the gradient into its K parts. In each step, every rank sends one part to the
# right and receives another one from the left.</details> <details><summary>Hint 2</summary>First K - 1 steps in which
# parts are added up. Rank r sends part r first. Which part arrives from the left at the same time, and which part does
# it send next?</details> <details><summary>Hint 3</summary>After these steps, rank r holds the complete sum of part (r
# + 1) % K. In K - 1 more steps, the complete parts travel on and replace what is there. Notebook 02 does the same with
# numbers.</details>


# %% labs={"id": "harder.1"}
@program
def ring(rank, K, L, M):
    ### BEGIN SOLUTION
    right, left = (rank + 1) % K, (rank - 1) % K
    for step in range(K - 1):
        send(gradient(0, (rank - step) % K), right, wait=False)
        receive(gradient(0, (rank - step - 1) % K), left, add=True)
    for step in range(K - 1):
        send(gradient(0, (rank + 1 - step) % K), right, wait=False)
        receive(gradient(0, (rank - step) % K), left)
    ### END SOLUTION


check("harder.1", ring)

# %%
game.show("harder.1", ring)

# %% [markdown]
# NCCL uses such rings for large messages. [P. Patarasuk and X. Yuan (2009)](https://doi.org/10.1016/j.jpdc.2008.09.002)
# proved that no all-reduce sends fewer bytes over its busiest link.
#
# ## Puzzle 8: reduce-scatter, then all-gather, in few messages
#
# The task is the same, but now the latency is high, and K is a power of two. The 2 (K - 1) successive messages of the
# ring take too long. There is also a bar for the bytes: whoever sends whole gradients misses it.

# %%
game.puzzle("harder.2")

# %% [markdown]
# <details><summary>Hint 1</summary>Pair the ranks: the partner of rank r is <code>r ^ distance</code>, which flips one
# bit of r. What can two ranks do in one exchange so that each then needs only half of the parts?</details>
# <details><summary>Hint 2</summary>Begin with all parts and <code>distance = K // 2</code>. Send the half that your
# partner will go on with. Keep the other one, which contains part <code>rank</code>, and add to it what your partner
# sends. Halve the distance and repeat.</details>
# <details><summary>Hint 3</summary>At the end of this reduce-scatter, rank r holds the complete part r. Remember for
# each round the partner and both halves. The all-gather goes through the rounds backwards, and the parts replace what
# is there.</details>


# %% labs={"id": "harder.2"}
@program
def by_halves(rank, K, L, M):
    ### BEGIN SOLUTION
    mine, rounds, distance = list(range(K)), [], K // 2
    while distance:
        partner = rank ^ distance
        kept = [part for part in mine if part & distance == rank & distance]
        given = [part for part in mine if part not in kept]
        send(gradient(0, *given), partner, wait=False)
        receive(gradient(0, *kept), partner, add=True)
        rounds.append((partner, kept, given))
        mine, distance = kept, distance // 2
    for partner, kept, given in reversed(rounds):
        send(gradient(0, *kept), partner, wait=False)
        receive(gradient(0, *given), partner)
    ### END SOLUTION


check("harder.2", by_halves)

# %%
game.show("harder.2", by_halves)

# %% [markdown]
# This is Rabenseifner's algorithm, which MPICH uses for large messages
# ([R. Thakur and others, 2005](https://doi.org/10.1177/1094342005051521)).
#
# ## Puzzle 9: tensor parallelism of layers in pairs
#
# Now the layers are too large for one rank. Of each layer, rank r holds only part r of the weights. All ranks work on
# the same micro-batch, and L is even. So every rank computes each pass, but only its part of it: an operation on one of
# K parts takes 1/K of its time. An all-gather is K - 1 messages, half of an all-reduce. There are two ways to split a
# layer:
#
# | | needs | gives | the backward pass needs | and gives |
# |---|---|---|---|---|
# | `split="columns"` | the whole activation before | part r of its own activation | part r of its error | a share of the whole error before |
# | `split="rows"` | part r of the activation before | a share of its whole activation | its whole error | part r of the error before |
#
# You name the way in both passes: `forward(layer, 0, split="columns")`, and later `backward(layer, 0,
# split="columns")`. A *share* is one of the terms that add up to the result. Add up the shares before you use them:
# `all_reduce(activation(layer, 0))` or `all_reduce(error(layer, 0))`. To put parts together, call
# `all_gather(activation(layer, 0))`. The activations of layers 0, 2, 4, ... are four times as wide as the others, as in
# the feed-forward layers of a transformer. (`reduce_scatter` and `free`, which notebook 32 explains, may be used.)

# %%
game.puzzle("harder.3")

# %% [markdown]
# <details><summary>Hint 1</summary>If all layers are split by columns, there is an <code>all_gather</code> after each
# of them, also of the wide activations. Which way of splitting accepts a part as it is?</details>
# <details><summary>Hint 2</summary>Split layers 0, 2, 4, ... by columns and layers 1, 3, 5, ... by rows. Where does a
# share arise in the forward pass?</details> <details><summary>Hint 3</summary>In the backward pass, a share of an error
# arises before each layer that is split by columns. Before layer 0, nobody needs it.</details>


# %% labs={"id": "harder.3"}
@program
def tensor_parallel(rank, K, L, M):
    ### BEGIN SOLUTION
    load(0)
    for layer in range(0, L, 2):
        forward(layer, 0, "columns")
        forward(layer + 1, 0, "rows")
        all_reduce(activation(layer + 1, 0))
    for layer in reversed(range(0, L, 2)):
        backward(layer + 1, 0, "rows")
        backward(layer, 0, "columns")
        if layer > 0:
            all_reduce(error(layer - 1, 0))
    for layer in range(L):
        update(layer)
    ### END SOLUTION


check("harder.3", tensor_parallel)

# %%
game.show("harder.3", tensor_parallel)

# %% [markdown]
# This is how Megatron-LM splits the layers of a transformer
# ([M. Shoeybi and others, 2019](https://arxiv.org/abs/1909.08053)).
#
# ## Summary
#
# - A ring keeps all links busy. Where the latency is high, the number of messages matters more.
# - In tensor parallelism, the wide activations should never leave their ranks.
# - A blocking message in the wrong place leads to a deadlock. Start messages early, and wait only where you need the
#   result.
#
# Next: `34_pipeline_schedules`.
