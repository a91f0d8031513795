"""Answers to the self-checks of 25_memory_and_exchange that have a judge of their own."""

import re
from functools import partial

import numpy as np
from making import SOLUTIONS, swapped


def solution(name, number=0):
    """What students write in solutions/`name`: the text of one of its regions."""
    text = (SOLUTIONS / name).read_text()
    return re.findall(r"### BEGIN SOLUTION\n(?: *### GIVEN[^\n]*\n)*(.*?) *### END SOLUTION", text, re.DOTALL)[number]


MEAN, SUM = "hvd.grouped_allreduce([each / passes for each in total])", "part if total is None else [a + b for a, b in"
ACCUMULATED = [  # what students write in place of a part of the solution
    (MEAN, "hvd.grouped_allreduce(total)"),
    (MEAN, "[each / passes for each in total]"),
    (MEAN, f"total if hvd.rank() else {MEAN}"),
    ("np.split(images, passes), np.split(labels, passes)", "[images] * passes, [labels] * passes"),
    ("gradient(some, their_labels)", "hvd.grouped_allreduce(gradient(some, their_labels))"),
    (SUM, "part if total is None else [passes * b for a, b in"),
]
accumulated = partial(swapped, "scripts/accumulated.py")

INIT, STEP = (solution("scripts/sharded_optimizer.py", number) for number in (0, 1))
REDUCED, MINE = "hvd.reducescatter(flat(gradients, padded))", "flat(self.weights, padded)[begin : begin + self.share]"
MASTER = "tf.Variable(flat(weights, hvd.size() * self.share)[hvd.rank() * self.share :][: self.share])"
SHARDED = [
    [("self.momentum * self.velocity - ", "-")],
    [(REDUCED, "hvd.reducescatter(flat(gradients, padded), op=hvd.Sum)")],
    [(REDUCED, "hvd.allreduce(flat(gradients, padded))[begin : begin + self.share]")],
    [(REDUCED, "flat(gradients, padded)[begin : begin + self.share]")],
    [("begin, padded = hvd.rank()", "begin, padded = (hvd.size() - 1 - hvd.rank())")],
    [("hvd.allgather(mine)", "tf.concat([mine, hvd.allgather(mine)], 0)")],
    [(INIT, f"{INIT}        self.whole = flat(weights, sum(self.sizes))\n")],
    [(INIT, f"{INIT}        self.apply = keras.optimizers.SGD(rate, momentum).apply\n")]
    + [(STEP, "        self.apply(hvd.grouped_allreduce(gradients), self.weights)\n")],
]
sharded = partial(swapped, "scripts/sharded_optimizer.py")
NEW = f"{MINE} + self.velocity", "self.own.assign_add(self.velocity)"
MIXED = sharded((INIT, f"{INIT}        self.own = {MASTER}\n"), NEW)  # it also keeps the weights in float32

ANSWERS = {
    "memory.4": dict(right=[(5,), (np.int64(5),)], wrong=[(4,), (6,), (5.0,), (24,)], secret=r"\b5\b"),
    "memory.5": dict(
        right=[accumulated()], wrong=[*map(accumulated, ACCUMULATED)], secret=r"/ passes|hvd\.(grouped_)?allreduce"
    ),
    "memory.6": dict(
        right=[sharded(), MIXED],
        wrong=[sharded(*pairs) for pairs in SHARDED],
        secret=r"reducescatter\(|hvd\.rank\(\) \* self\.share",
    ),
}
