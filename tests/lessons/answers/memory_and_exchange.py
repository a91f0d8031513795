"""Answers to the self-checks of 25_memory_and_exchange: right ones, and wrong ones that students give."""

import re
from functools import partial

import numpy as np
from making import SOLUTIONS, swapped


def solution(name, number=0):
    """What students write in solutions/`name`: the text of one of its regions."""
    text = (SOLUTIONS / name).read_text()
    return re.findall(r"### BEGIN SOLUTION\n(?: *### GIVEN[^\n]*\n)*(.*?) *### END SOLUTION", text, re.DOTALL)[number]


LOOP = solution("scripts/accumulated.py")
INIT, STEP = (solution("scripts/sharded_optimizer.py", number) for number in (0, 1))
accumulated = partial(swapped, "scripts/accumulated.py")
sharded = partial(swapped, "scripts/sharded_optimizer.py")

RETURN = "    return hvd.grouped_allreduce([each / passes for each in total])"
EVERY_PASS = """    total = None
    for some, their_labels in zip(np.split(images, passes), np.split(labels, passes)):
        part = hvd.grouped_allreduce([each / passes for each in gradient(some, their_labels)])
        total = part if total is None else [a + b for a, b in zip(total, part)]
    return total
"""
SPLIT = "np.split(images, passes), np.split(labels, passes)"

# Of its share a rank also keeps the weights in float32, as mixed precision does.
MASTER_INIT = (
    INIT
    + """        begin = hvd.rank() * self.share
        self.master = tf.Variable(flat(weights, hvd.size() * self.share)[begin : begin + self.share])
"""
)
MASTER = "mine = self.master.assign_add(self.velocity)"
HIDDEN_INIT = """        whole = keras.optimizers.SGD(rate, momentum)
        whole.build(weights)
        self.apply = lambda gradients: whole.apply(gradients, weights)
"""

REDUCED = "hvd.reducescatter(flat(gradients, padded))"
ALONE = "        if hvd.rank() == 0:\n            hvd.allreduce([1.0])\n"
MINE = "flat(self.weights, padded)[begin : begin + self.share] + self.velocity"
MEAN = "hvd.grouped_allreduce([each / passes for each in total])"


ANSWERS = {
    "memory.8": dict(right=[(4,), (4.0,)], wrong=[(2,), (6,)], secret=r"(?<!\d)4(?!\d)"),
    "memory.4": dict(right=[(5,), (np.int64(5),)], wrong=[(4,), (6,), (5.0,)], secret=r"\b5\b"),
    "memory.5": dict(
        right=[accumulated()],
        wrong=[
            accumulated((RETURN, "    return hvd.grouped_allreduce(total)")),
            accumulated((RETURN, "    return [each / passes for each in total]")),
            accumulated((LOOP, EVERY_PASS)),
            accumulated((MEAN, f"total if hvd.rank() else {MEAN}")),
            accumulated((SPLIT, "[images] * passes, [labels] * passes")),
        ],
        secret=r"/ passes|hvd\.(grouped_)?allreduce",
    ),
    "memory.6": dict(
        right=[sharded(), sharded((INIT, MASTER_INIT), (f"mine = {MINE}", MASTER))],
        wrong=[
            sharded(("self.momentum * self.velocity - self.rate * mean", "-self.rate * mean")),
            sharded((REDUCED, "hvd.reducescatter(flat(gradients, padded), op=hvd.Sum)")),
            sharded(("begin, padded = hvd.rank()", "begin, padded = (hvd.size() - 1 - hvd.rank())")),
            sharded(
                (REDUCED, "hvd.allreduce(flat(gradients, padded))"),
                ("tf.zeros(self.share)", "tf.zeros(self.share * hvd.size())"),
                ("+ self.velocity\n", "+ self.velocity[begin : begin + self.share]\n"),
            ),
            sharded((REDUCED, "hvd.allreduce(flat(gradients, padded))[begin : begin + self.share]")),
            sharded(("        mean = hvd", f"{ALONE}        mean = hvd")),
            sharded((INIT, HIDDEN_INIT), (STEP, "        self.apply(hvd.grouped_allreduce(gradients))\n")),
        ],
        secret=r"reducescatter\(|hvd\.rank\(\) \* self\.share",
    ),
    "memory.7": dict(right=[(13.5e9,), (13_500_000_000,)], wrong=[(12.75e9,), (13.5,)], secret=r"13[.,]?5"),
}
