# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Pipeline schedules: GPipe, 1F1B, zero bubble
#
# **Time: 50 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** only *everything* contains this notebook.
#
# This notebook is **optional**. Each of its three puzzles takes 20 to 25 minutes. Each rank holds a single layer, and
# micro-batches pass from rank to rank. You write programs as in notebook 31; its first section explains how.

# %%
from labs.checks import check
from lessons.write_the_schedule import game
from lessons.write_the_schedule.programs import (
    activation,
    backward,
    backward_inputs,
    backward_weights,
    error,
    forward,
    load,
    program,
    receive,
    send,
    update,
    wait,
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
# `wait=False`, both calls return at once, with what `wait` needs.
#
# These tensors are sent in a pipeline:
#
# - `activation(layer, batch)`: what a layer hands to the next layer
# - `error(layer, batch)`: the gradient of the loss with respect to this activation; in the backward pass, each layer
#   computes it for the layer before
#
# If each of two ranks waits until the other one receives, neither goes on. This is a **deadlock**; notebook 33 shows
# one before its first puzzle.
#
# ## Puzzle 10: GPipe
#
# Rank r holds only layer r, so K equals L. Micro-batches pass through the ranks as on a production line. Send
# `activation(rank, batch)` to the next rank and, in the backward pass, `error(rank - 1, batch)` to the previous one. An
# activation or an error that you send leaves the rank; it does not keep a copy. Of the two activations, the backward
# pass needs only the one that came in. In puzzles 10 to 12, each rank computes only its own layer, and no pass twice.
# In their pictures, the number in a box is the micro-batch.

# %%
game.puzzle("pipeline.1")

# %% [markdown]
# <details><summary>Hint 1</summary>In the plain solution, a micro-batch goes forward and backward through all ranks
# before the next one begins. How many ranks work at the same time?</details> <details><summary>Hint 2</summary>Two
# loops over the micro-batches: one for all forward passes, one for all backward passes. Only rank 0 loads; only rank K
# - 1 does not send an activation.</details> <details><summary>Hint 3</summary>For rank 2: receive <code>activation(1,
# batch)</code>, compute layer 2, send <code>activation(2, batch)</code>. Backward: receive <code>error(2,
# batch)</code>, compute, send <code>error(1, batch)</code>.</details>


# %% labs={"id": "pipeline.1"}
@program
def gpipe(rank, K, L, M):
    ### BEGIN SOLUTION
    for batch in range(M):
        if rank == 0:
            load(batch)
        else:
            receive(activation(rank - 1, batch), rank - 1)
        forward(rank, batch)
        if rank < K - 1:
            send(activation(rank, batch), rank + 1)
    for batch in range(M):
        if rank < K - 1:
            receive(error(rank, batch), rank + 1)
        backward(rank, batch)
        if rank > 0:
            send(error(rank - 1, batch), rank - 1)
    update(rank)
    ### END SOLUTION


check("pipeline.1", gpipe)

# %%
game.show("pipeline.1", gpipe)

# %% [markdown]
# GPipe is by [Y. Huang and others, 2019](https://arxiv.org/abs/1811.06965).
#
# ## Puzzle 11: 1F1B
#
# GPipe keeps the activations of all M micro-batches until the backward passes begin. *One forward, one backward* (1F1B)
# is just as fast and keeps far fewer: after the first error has arrived, a rank alternates between backward and forward
# passes.

# %%
game.puzzle("pipeline.2")

# %% [markdown]
# <details><summary>Hint 1</summary>How many micro-batches can rank r begin before the first error comes back? For the
# last rank, it is one.</details> <details><summary>Hint 2</summary>Write the forward part (receive or load, compute,
# send) as a function inside the program. Call it K - rank times, and then once after each backward pass, as long as
# there are micro-batches.</details> <details><summary>Hint 3</summary>If the check says "Deadlock", two neighbours
# are both sending: one an activation, the other an error. Start the messages with <code>wait=False</code>.</details>


# %% labs={"id": "pipeline.2"}
@program
def one_forward_one_backward(rank, K, L, M):
    ### BEGIN SOLUTION
    ### GIVEN: def forward_part(batch):
    ### GIVEN:     ...  # your code here
    ### GIVEN: ahead = ...  # your code here
    def forward_part(batch):
        if rank == 0:
            load(batch)
        else:
            receive(activation(rank - 1, batch), rank - 1)
        forward(rank, batch)
        if rank < K - 1:
            send(activation(rank, batch), rank + 1, wait=False)

    ahead = K - rank
    for batch in range(ahead):
        forward_part(batch)
    for batch in range(M):
        if rank < K - 1:
            receive(error(rank, batch), rank + 1)
        backward(rank, batch)
        if rank > 0:
            send(error(rank - 1, batch), rank - 1, wait=False)
        if batch + ahead < M:
            forward_part(batch + ahead)
    update(rank)
    ### END SOLUTION


check("pipeline.2", one_forward_one_backward)

# %%
game.show("pipeline.2", one_forward_one_backward)

# %% [markdown]
# 1F1B comes from PipeDream ([D. Narayanan and others, 2019](https://arxiv.org/abs/1806.03377)). Megatron-LM uses the
# form that you wrote here, which ends with one update for all micro-batches
# ([D. Narayanan and others, 2021](https://arxiv.org/abs/2104.04473)).
#
# ## Puzzle 12: zero bubble
#
# A backward pass computes two things: the error, for which the previous rank is waiting, and the gradient of the
# weights, for which nobody is waiting. So you can split the pass:
#
# - `backward_inputs(layer, batch)` gives the error of the layer before, and frees nothing yet.
# - `backward_weights(layer, batch)` comes later. It adds to the gradient, and frees the activation and the error.
#
# Fill the idle times of 1F1B with the second halves, `backward_weights`. But the activation and the error stay in
# memory until then, and there is a bar for the memory, too.

# %%
game.puzzle("pipeline.3")

# %% [markdown]
# <details><summary>Hint 1</summary>Start from your 1F1B program, with <code>backward_inputs</code> instead of
# <code>backward</code>, and <code>backward_weights</code> after it. Which ranks still wait too often at the
# start?</details> <details><summary>Hint 2</summary>At the start, the last rank has the most work: the others wait
# for the errors that it sends back. It should put off its second halves; rank 0 need not.</details> <details><summary>Hint
# 3</summary>Let the second halves of rank r lag r micro-batches behind: after micro-batch b, compute the one of b - r,
# before you call the next forward part. Do the rest at the end.</details>


# %% labs={"id": "pipeline.3"}
@program
def zero_bubble(rank, K, L, M):
    ### BEGIN SOLUTION
    ### GIVEN: def forward_part(batch):
    ### GIVEN:     ...  # your code here
    ### GIVEN: ahead = ...  # your code here
    ### GIVEN: behind = ...  # your code here
    def forward_part(batch):
        if rank == 0:
            load(batch)
        else:
            receive(activation(rank - 1, batch), rank - 1)
        forward(rank, batch)
        if rank < K - 1:
            send(activation(rank, batch), rank + 1, wait=False)

    ahead, behind = K - rank, rank
    for batch in range(ahead):
        forward_part(batch)
    for batch in range(M):
        if rank < K - 1:
            receive(error(rank, batch), rank + 1)
        backward_inputs(rank, batch)
        if rank > 0:
            send(error(rank - 1, batch), rank - 1, wait=False)
        if batch >= behind:
            backward_weights(rank, batch - behind)
        if batch + ahead < M:
            forward_part(batch + ahead)
    for batch in range(M - behind, M):
        backward_weights(rank, batch)
    update(rank)
    ### END SOLUTION


check("pipeline.3", zero_bubble)

# %%
game.show("pipeline.3", zero_bubble)

# %% [markdown]
# The idea is that of the schedule ZB-H1 by [P. Qi and others, 2024](https://arxiv.org/abs/2401.10241).
#
# ## Summary
#
# - In a pipeline, the number of micro-batches determines the idle share, and the order of the operations determines the
#   memory.
# - A backward pass in two halves fills idle times: the errors first, because other ranks are waiting for them.
# - Start messages early, and wait only where you need the result. Then two ranks do not wait for each other.
